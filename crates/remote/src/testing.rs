//! For tests: a real `sshd` on loopback, with keys, known hosts and a home of its
//! own. Nothing of the real account is read or written.
//!
//! A wrapper stands where sshd would start the account's login shell. It sets the
//! home and does just what sshd does: `SHELL -c "the command"`. So other login shells
//! are tested without touching accounts.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokdyno_domain::host::Reach;

use crate::client::RemoteConfig;

/// What its hosts are called in the configuration.
const ALIAS: &str = "tokdyno-test";
/// How long it may take to accept connections.
const START: Duration = Duration::from_secs(10);

/// A running `sshd`. It ends, with its connections, when this is dropped.
#[derive(Debug)]
pub struct TestSshd {
    folder: TempDir,
    child: Child,
    port: u16,
}

impl TestSshd {
    /// With bash as the login shell.
    ///
    /// # Errors
    /// If `sshd` or `ssh-keygen` is missing (Debian: `openssh-server`) or does not
    /// start.
    pub fn start() -> io::Result<Self> {
        Self::with_shell("/bin/bash")
    }

    /// With another login shell, named by its absolute path.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn with_shell(shell: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tokdyno-sshd-").tempdir()?;
        let path = folder.path();
        for name in ["home", "home/bin"] {
            fs::DirBuilder::new().mode(0o700).create(path.join(name))?;
        }
        for name in ["host_key", "client_key"] {
            make_key(&path.join(name))?;
        }
        fs::copy(path.join("client_key.pub"), path.join("authorized_keys"))?;
        write_wrapper(path, shell)?;
        if is_root() {
            // sshd as root wants an empty folder to lock its unprivileged half into.
            fs::create_dir_all("/run/sshd")?;
        }
        // Another process may take a port between its choice and its use.
        let mut last = io::Error::other("sshd was not started");
        for _ in 0..5 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
                .local_addr()?
                .port();
            write_configuration(path, port)?;
            match start(path, port) {
                Ok(child) => {
                    return Ok(Self {
                        folder,
                        child,
                        port,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Port on loopback.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What to pass to ssh.
    #[must_use]
    pub fn destination(&self) -> &'static str {
        ALIAS
    }

    /// How it is reached.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::Ssh {
            destination: ALIAS.to_owned(),
        }
    }

    /// The configuration for ssh's `-F`.
    #[must_use]
    pub fn ssh_config(&self) -> PathBuf {
        self.folder.path().join("ssh_config")
    }

    /// A configuration that reaches it with this agent.
    #[must_use]
    pub fn config(&self, agent: &Path) -> RemoteConfig {
        RemoteConfig {
            ssh_config: Some(self.ssh_config()),
            ..RemoteConfig::new(agent.to_owned())
        }
    }

    /// The account's home directory. Its `bin` stands first on the PATH.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where the agent is stored.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.home().join(".cache/tokdyno")
    }

    /// Makes every login shell print something before it runs a command.
    ///
    /// # Errors
    /// As writing files.
    pub fn set_banner(&self, text: &str) -> io::Result<()> {
        let home = self.home();
        fs::write(home.join("banner"), text)?;
        let print = "cat \"$HOME/banner\"\n";
        fs::create_dir_all(home.join(".config/fish"))?;
        for file in [".bashrc", ".cshrc", ".config/fish/config.fish"] {
            fs::write(home.join(file), print)?;
        }
        Ok(())
    }

    /// Makes the client forget the host's key.
    ///
    /// # Errors
    /// As writing a file.
    pub fn forget_host_key(&self) -> io::Result<()> {
        fs::write(self.folder.path().join("known_hosts"), "")
    }

    /// Makes the client remember another key.
    ///
    /// # Errors
    /// As writing a file.
    pub fn mistake_host_key(&self) -> io::Result<()> {
        write_known_hosts(self.folder.path(), self.port, "client_key.pub")
    }

    /// Makes the server refuse the client's key.
    ///
    /// # Errors
    /// As writing a file.
    pub fn refuse_key(&self) -> io::Result<()> {
        fs::write(self.folder.path().join("authorized_keys"), "")
    }

    /// Cuts all connections, as a network does: nobody is told beforehand.
    pub fn cut(&self) {
        for pid in children(self.child.id()) {
            kill(pid);
        }
    }

    /// What `sshd` has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for TestSshd {
    fn drop(&mut self) {
        self.cut();
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn make_key(path: &Path) -> io::Result<()> {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("ssh-keygen made no key"))
    }
}

fn write_wrapper(path: &Path, shell: &str) -> io::Result<()> {
    let home = path.join("home");
    let home = home.display();
    let wrapper = path.join("login");
    fs::write(
        &wrapper,
        format!(
            "#!/bin/sh\n\
             export HOME='{home}' SHELL='{shell}' PATH=\"{home}/bin:$PATH\" BASH_ENV='{home}/.bashrc'\n\
             unset XDG_CACHE_HOME XDG_STATE_HOME XDG_CONFIG_HOME\n\
             cd \"$HOME\" || exit 1\n\
             exec '{shell}' -c \"$SSH_ORIGINAL_COMMAND\"\n"
        ),
    )?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o700))
}

fn write_known_hosts(path: &Path, port: u16, key: &str) -> io::Result<()> {
    let key = fs::read_to_string(path.join(key))?;
    fs::write(
        path.join("known_hosts"),
        format!("[127.0.0.1]:{port} {}\n", key.trim()),
    )
}

fn write_configuration(path: &Path, port: u16) -> io::Result<()> {
    let at = |name: &str| path.join(name).display().to_string();
    fs::write(
        path.join("sshd_config"),
        format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 200\nMaxSessions 200\nPrintMotd no\nUseDNS no\nForceCommand {}\n",
            at("host_key"),
            at("authorized_keys"),
            at("login"),
        ),
    )?;
    let user = Command::new("id").arg("-un").output()?;
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    fs::write(
        path.join("ssh_config"),
        format!(
            "Host {ALIAS}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n",
            at("client_key"),
            at("known_hosts"),
        ),
    )?;
    write_known_hosts(path, port, "host_key.pub")
}

fn start(path: &Path, port: u16) -> io::Result<Child> {
    let log = path.join("log");
    let mut child = Command::new("/usr/sbin/sshd")
        .arg("-D")
        .arg("-f")
        .arg(path.join("sshd_config"))
        .arg("-E")
        .arg(&log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("/usr/sbin/sshd could not be started: {error}. Install openssh-server."),
            )
        })?;
    let until = Instant::now() + START;
    loop {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() && child.try_wait()?.is_none() {
            return Ok(child);
        }
        if child.try_wait()?.is_some() || Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(io::Error::other(format!("sshd does not serve: {said}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Children of a process.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .ok()
                .and_then(|line| {
                    let (_, rest) = line.rsplit_once(')')?;
                    rest.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
                })
                == Some(parent)
        })
        .collect()
}

/// Kills a process that the caller has started.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // It may be gone already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
