//! A unix socket here that ssh carries to a port of a host.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{
    error::RemoteError,
    tail::Tail,
    transport::{Request, Transport, apart},
    trouble::Ending,
};

/// How long connecting may take.
const OPENING: Duration = Duration::from_secs(45);
/// How long a request to an open connection, or a look at the configuration, may take.
const ASKING: Duration = Duration::from_secs(10);
/// Longest path of the folder. A unix socket's may have 107 bytes, and ssh adds 17 to
/// one while it makes it.
const LONGEST: usize = 80;

/// The socket lies in a folder of this user's alone, and works once [`Self::dig`] has
/// returned it: ssh itself has said so. Closed when dropped.
///
/// ssh cannot clear the forwards of a configuration and keep that of its command
/// line. So a connection is opened without any, and this one is then asked of it.
/// A connection that the user shares already is asked first: where logging in needs
/// a person, it is the only way.
#[derive(Debug)]
pub(super) struct Tunnel {
    transport: Arc<dyn Transport>,
    port: u16,
    folder: TempDir,
    control: PathBuf,
    /// None if the connection is the user's.
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    child: Child,
    stderr: Option<Tail>,
}

impl Tunnel {
    pub(super) async fn dig(
        transport: &Arc<dyn Transport>,
        port: u16,
    ) -> Result<Self, RemoteError> {
        if let Some(control) = shared(transport).await {
            let tunnel = Self::new(transport, port, Some(control))?;
            if tunnel.request_open().await.is_ok() {
                return Ok(tunnel);
            }
        }
        let mut tunnel = Self::new(transport, port, None)?;
        tunnel.connect().await?;
        tunnel.request_open().await?;
        Ok(tunnel)
    }

    fn new(
        transport: &Arc<dyn Transport>,
        port: u16,
        control: Option<PathBuf>,
    ) -> Result<Self, RemoteError> {
        let folder = private_folder().map_err(|error| RemoteError::NoForward {
            host: transport.label().to_owned(),
            port,
            reason: error.to_string(),
        })?;
        Ok(Self {
            transport: Arc::clone(transport),
            port,
            control: control.unwrap_or_else(|| folder.path().join("control")),
            folder,
            own: None,
        })
    }

    /// The socket here.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("port")
    }

    /// Does ssh still carry it?
    pub(super) async fn is_open(&mut self) -> bool {
        match &mut self.own {
            Some(own) => matches!(own.child.try_wait(), Ok(None)),
            // Its process is not ours to watch.
            None => UnixStream::connect(self.socket()).await.is_ok(),
        }
    }

    /// What ssh said last.
    pub(super) fn said(&self) -> Option<String> {
        Some(self.own.as_ref()?.stderr.as_ref()?.text())
    }

    async fn connect(&mut self) -> Result<(), RemoteError> {
        let control = self.control.clone();
        let command = apart(&self.transport, move |transport| {
            Ok(transport.connection(&control))
        });
        let Some(mut command) = command.await? else {
            return Err(self.failed("it is this machine".to_owned()));
        };
        let mut child = command
            .spawn()
            .map_err(|error| self.transport.not_started(&error))?;
        let stderr = child.stderr.take().map(Tail::of);
        let own = self.own.insert(Own { child, stderr });
        let until = Instant::now() + OPENING;
        // ssh puts the socket there in one step, once it is let in.
        while !self.control.exists() {
            if let Ok(Some(status)) = own.child.try_wait() {
                if let Some(stderr) = &mut own.stderr {
                    stderr.settle().await;
                }
                return Err(self.transport.explain(&Ending {
                    code: status.code(),
                    stderr: own.stderr.as_ref().map(Tail::text).unwrap_or_default(),
                    ..Ending::default()
                }));
            }
            if Instant::now() >= until {
                return Err(RemoteError::TimedOut {
                    host: self.transport.label().to_owned(),
                    seconds: OPENING.as_secs(),
                });
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Returns once ssh listens on the socket.
    async fn request_open(&self) -> Result<(), RemoteError> {
        let Some(mut command) = self.request(Request::Open) else {
            return Err(self.failed("it is this machine".to_owned()));
        };
        let output = timeout(ASKING, command.output())
            .await
            .map_err(|_| self.failed("ssh did not answer".to_owned()))?
            .map_err(|error| self.transport.not_started(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(self.failed(said.trim().to_owned()))
    }

    fn request(&self, request: Request) -> Option<Command> {
        self.transport
            .request(&self.control, request, &self.socket(), self.port)
    }

    fn failed(&self, reason: String) -> RemoteError {
        RemoteError::NoForward {
            host: self.transport.label().to_owned(),
            port: self.port,
            reason,
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        if let Some(own) = &mut self.own {
            // It may have ended already.
            let _ = own.child.start_kill();
            return;
        }
        // Others' connection goes on, and would keep what was asked of it.
        if let (Ok(runtime), Some(mut cancel)) = (
            tokio::runtime::Handle::try_current(),
            self.request(Request::Cancel),
        ) {
            runtime.spawn(async move { timeout(ASKING, cancel.output()).await });
        }
    }
}

/// Where the user's own shared connection to the host listens, if there may be one.
async fn shared(transport: &Arc<dyn Transport>) -> Option<PathBuf> {
    let command = apart(transport, |transport| Ok(transport.configuration()));
    let mut command = command.await.ok()??;
    let output = timeout(ASKING, command.output()).await.ok()?.ok()?;
    let path = control_path(&output.stdout)?;
    path.exists().then_some(path)
}

/// The path in ssh's configuration as `ssh -G` prints it.
fn control_path(configuration: &[u8]) -> Option<PathBuf> {
    let path = configuration
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"controlpath "))?;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    path.is_absolute().then(|| path.to_owned())
}

/// A folder for sockets that nobody else can enter.
fn private_folder() -> io::Result<TempDir> {
    let chosen = std::env::temp_dir();
    let places = [chosen.as_path(), Path::new("/tmp")];
    let place = places.into_iter().find(|place| fits(place));
    tempfile::Builder::new()
        .prefix("tokdyno-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(place.unwrap_or(Path::new("/tmp")))
}

/// Does a path fit a unix socket and mean itself in ssh's `-L`?
fn fits(place: &Path) -> bool {
    let bytes = place.as_os_str().as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    place.is_absolute()
        && bytes.len() + "/tokdyno-XXXXXX".len() <= LONGEST
        && bytes.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_private_and_its_path_is_short() {
        let folder = private_folder().expect("a folder");
        let mode = fs::metadata(folder.path()).expect("facts").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        assert!(folder.path().as_os_str().len() <= LONGEST);
    }

    #[test]
    fn long_and_ambiguous_places_are_passed_over() {
        assert!(fits(Path::new("/var/tmp")));
        let long = format!("/{}", "x".repeat(LONGEST));
        for place in [long.as_str(), "/a:b", "/a b", "/a%h", "/${HOME}", "here"] {
            assert!(!fits(Path::new(place)), "{place}");
        }
    }

    #[test]
    fn only_an_absolute_path_is_a_shared_connection() {
        let path = |text: &str| control_path(text.as_bytes());
        assert_eq!(
            path("host h\ncontrolpath /run/a b\nport 22\n"),
            Some(PathBuf::from("/run/a b"))
        );
        assert_eq!(path("controlpath none\n"), None);
        assert_eq!(path("controlpersist no\n"), None);
    }
}
