//! Who keeps a process, as its control group tells.

use tokdyno_domain::host::Keeper;

/// Units that start whatever people start: their name says nothing about a process.
const HARBOURS: [&str; 12] = [
    "ssh.service",
    "sshd.service",
    "cron.service",
    "crond.service",
    "atd.service",
    "docker.service",
    "containerd.service",
    "podman.service",
    "getty.service",
    "dbus.service",
    "display-manager.service",
    "tmux.service",
];

/// Reads the content of `/proc/PID/cgroup`.
pub(super) fn keeper(text: &str) -> Keeper {
    let paths: Vec<&str> = text
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .collect();
    paths
        .iter()
        .find_map(|path| container(path))
        .or_else(|| paths.iter().find_map(|path| unit(path)))
        .unwrap_or(Keeper::Process)
}

fn container(path: &str) -> Option<Keeper> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.iter().enumerate().rev().find_map(|(index, part)| {
        let name = part.strip_suffix(".scope").unwrap_or(part);
        let (runtime, id) = if let Some(id) = name.strip_prefix("docker-") {
            ("docker", id)
        } else if let Some(id) = name.strip_prefix("libpod-") {
            ("podman", id)
        } else if let Some(id) = name.strip_prefix("cri-containerd-") {
            ("containerd", id)
        } else if index > 0 && parts[index - 1] == "docker" {
            ("docker", name)
        } else {
            return None;
        };
        let is_id = id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Keeper::Container {
            runtime: runtime.to_owned(),
            id: id.to_owned(),
            name: String::new(),
        })
    })
}

fn unit(path: &str) -> Option<Keeper> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let manager = parts
        .iter()
        .position(|part| part.starts_with("user@") && part.ends_with(".service"));
    let own = &parts[manager.map_or(0, |at| at + 1)..];
    // A scope below a service is a session or a terminal's, and no unit of its own.
    let name = own.iter().rev().find(|part| part.ends_with(".service"))?;
    let harbour = HARBOURS.contains(name)
        || name.starts_with("getty@")
        || name.starts_with("ssh@")
        || name.starts_with("sshd@")
        || name.contains("terminal");
    let in_scope = own.last().is_some_and(|part| part.ends_with(".scope"));
    (!harbour && !in_scope).then(|| Keeper::Unit {
        name: (*name).to_owned(),
        user: manager.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4c01db0b339c8ec1bfa2ed42c6bd2c2fe4a0ec8c8b5f7f0b3a1d2c3b4a596877";

    #[test]
    fn units_of_the_machine_and_of_the_user_are_told_apart() {
        assert_eq!(
            keeper("0::/system.slice/vllm.service\n"),
            Keeper::Unit {
                name: "vllm.service".to_owned(),
                user: false
            }
        );
        assert_eq!(
            keeper("0::/user.slice/user-1000.slice/user@1000.service/app.slice/sglang.service\n"),
            Keeper::Unit {
                name: "sglang.service".to_owned(),
                user: true
            }
        );
        assert_eq!(
            keeper("12:cpu,cpuacct:/\n1:name=systemd:/system.slice/vllm.service/worker\n"),
            Keeper::Unit {
                name: "vllm.service".to_owned(),
                user: false
            }
        );
    }

    #[test]
    fn sessions_terminals_and_daemons_that_only_harbour_are_nobody() {
        for text in [
            "0::/user.slice/user-0.slice/session-3.scope\n",
            "0::/system.slice/ssh.service\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-terminal.service\n",
            "0::/user.slice/user-1000.slice/user@1000.service/tmux-spawn-1.scope\n",
            "0::/\n",
            "",
        ] {
            assert_eq!(keeper(text), Keeper::Process, "{text}");
        }
    }

    #[test]
    fn containers_are_recognised_under_either_version_of_control_groups() {
        for (text, runtime) in [
            (format!("0::/system.slice/docker-{ID}.scope\n"), "docker"),
            (format!("9:memory:/docker/{ID}\n"), "docker"),
            (
                format!(
                    "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n"
                ),
                "podman",
            ),
            (
                format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n"),
                "containerd",
            ),
        ] {
            assert_eq!(
                keeper(&text),
                Keeper::Container {
                    runtime: runtime.to_owned(),
                    id: ID.to_owned(),
                    name: String::new()
                },
                "{text}"
            );
        }
    }
}
