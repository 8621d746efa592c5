//! Who listens on which TCP port.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::ErrorKind,
    net::TcpListener,
};

use super::{engines::lossy, filter::masked_command, process};
use crate::wire::PortUse;

/// Ports and sockets of listeners in a `/proc/net/tcp` or `tcp6` file.
fn listeners(text: &str) -> Vec<(u16, u64)> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            // State 0A is LISTEN.
            if *fields.get(3)? != "0A" {
                return None;
            }
            let (_, port) = fields.get(1)?.rsplit_once(':')?;
            Some((
                u16::from_str_radix(port, 16).ok()?,
                fields.get(9)?.parse().ok()?,
            ))
        })
        .collect()
}

/// As the process `pid` sees them: a container has a network of its own.
fn listeners_of(pid: &str) -> HashMap<u64, u16> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|file| fs::read_to_string(format!("/proc/{pid}/net/{file}")).ok())
        .flat_map(|text| listeners(&text))
        .map(|(port, socket)| (socket, port))
        .collect()
}

/// Sockets that a process holds, as far as they can be read.
fn sockets(pid: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let name = target.to_str()?;
            name.strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        })
        .collect()
}

/// Ports that any of `pids` listens on.
pub(super) fn of(top: u32, pids: &HashSet<u32>) -> Vec<u16> {
    let listening = listeners_of(&top.to_string());
    let mut ports: Vec<u16> = pids
        .iter()
        .flat_map(|&pid| sockets(pid))
        .filter_map(|socket| listening.get(&socket).copied())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Is `port` free, and if not, who holds it?
pub(super) fn usage(port: u16) -> PortUse {
    let listening = listeners_of("self");
    let socket = listening
        .iter()
        .find(|&(_, &held)| held == port)
        .map(|(&socket, _)| socket);
    let Some(socket) = socket else {
        // Also what /proc does not show, such as a port set aside by a sandbox.
        let taken = ["127.0.0.1", "0.0.0.0"].iter().any(|address| {
            TcpListener::bind((*address, port))
                .is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
        });
        return if taken {
            PortUse::Held {
                pid: None,
                command: None,
            }
        } else {
            PortUse::Free
        };
    };
    let holder = process::all()
        .iter()
        .find(|stat| sockets(stat.pid).contains(&socket))
        .map(|stat| stat.pid);
    PortUse::Held {
        pid: holder,
        command: holder
            .and_then(process::argv)
            .map(|words| masked_command(&lossy(&words)).0.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_count() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 23457 1 0000000000000000 100 0 0 10 0\n\
   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 23460 1 0000000000000000 20 4 30 10 -1\n\
   2: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 999 1 0 100 0 0 10 0\n";
        assert_eq!(listeners(text), [(8000, 23457), (22, 999)]);
    }

    #[test]
    fn a_held_port_names_its_holder_and_a_released_one_is_free() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let PortUse::Held { pid, command } = usage(port) else {
            panic!("port {port} is held");
        };
        assert_eq!(pid, Some(std::process::id()));
        assert!(command.is_some_and(|command| !command.is_empty()));
        drop(listener);
        assert_eq!(usage(port), PortUse::Free);
    }
}
