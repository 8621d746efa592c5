//! Clusters of the real PostgreSQL, from nothing to recovery.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokdyno_pgcluster::{
    Cluster, ClusterError, Config, ConnectionUrl, Durability, attach_if_running,
};

/// Bound of every wait; a loaded machine needs a fraction of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that the user PostgreSQL runs as can enter, also under root.
fn directory() -> TempDir {
    directory_with_mode(0o711)
}

fn directory_with_mode(mode: u32) -> TempDir {
    tempfile::Builder::new()
        .prefix("tokdyno-pg")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempdir()
        .unwrap()
}

fn durable(data_dir: &Path) -> Config {
    Config::new(data_dir)
}

/// Without waits for the disk, where the disk is not what is tested.
fn quick(data_dir: &Path) -> Config {
    Config {
        durability: Durability::Throwaway,
        ..Config::new(data_dir)
    }
}

/// Runs statements with psql and returns what it prints, unadorned.
fn psql(bin_dir: &Path, url: &ConnectionUrl, statements: &str) -> String {
    let output = Command::new(bin_dir.join("psql"))
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
        .args(["--set", "ON_ERROR_STOP=1", "--command", statements])
        .arg(url.as_str())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a process that owns the cluster, and returns it with the postmaster's id.
fn owner(data_dir: &Path) -> (Child, u32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokdyno-pgcluster-owner"))
        .arg(data_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pid = line.trim().parse().expect("the owner prints a process id");
    (child, pid)
}

fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn data_survive_a_stop_and_a_start() {
    let dir = directory();
    let data_dir = dir.path().join("not/there/yet");
    let cluster = Cluster::ensure(&durable(&data_dir)).unwrap();
    assert!(!cluster.was_adopted());
    let bin_dir = cluster.bin_dir().to_path_buf();
    let show = |setting: &str| psql(&bin_dir, cluster.url(), &format!("SHOW {setting}"));
    assert_eq!(show("server_encoding"), "UTF8");
    assert_eq!(show("listen_addresses"), "");
    assert_eq!(show("fsync"), "on");
    assert_eq!(show("password_encryption"), "scram-sha-256");
    psql(
        &bin_dir,
        cluster.url(),
        "CREATE TABLE kept (word text); INSERT INTO kept VALUES ('é')",
    );
    let url = cluster.url().clone();
    let pid = cluster.pid();
    cluster.stop().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(attach_if_running(&durable(&data_dir)).unwrap().is_none());

    let again = Cluster::ensure(&durable(&data_dir)).unwrap();
    assert_eq!(*again.url(), url);
    assert_eq!(psql(&bin_dir, again.url(), "SELECT word FROM kept"), "é");
}

#[test]
fn the_password_is_private_needed_and_never_shown() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    let file = dir.path().join("postgres/password");
    let password = std::fs::read_to_string(&file).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(cluster.url().as_str().contains(&password));
    assert!(!format!("{cluster:?}").contains(&password));
    let log = std::fs::read_to_string(cluster.log_file()).unwrap();
    assert!(!log.contains(&password));

    let wrong = cluster.url().as_str().replace(&password, "wrong");
    let refused = Command::new(cluster.bin_dir().join("psql"))
        .args(["--no-password", "--command", "SELECT 1", &wrong])
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

#[test]
fn a_lost_password_file_is_replaced() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    let old = cluster.url().clone();
    drop(cluster);
    std::fs::remove_file(dir.path().join("postgres/password")).unwrap();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    assert_ne!(*cluster.url(), old);
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
}

#[test]
fn a_second_owner_is_refused_and_a_guest_is_not() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    let error = Cluster::ensure(&quick(dir.path())).unwrap_err();
    assert!(
        matches!(error, ClusterError::Busy { owner: Some(pid), .. } if pid == std::process::id())
    );
    assert!(error.to_string().contains("--data-dir"), "{error}");
    let url = attach_if_running(&quick(dir.path())).unwrap();
    assert_eq!(url.as_ref(), Some(cluster.url()));
}

#[test]
fn an_orphan_is_adopted_with_its_data() {
    let dir = directory();
    let (mut owner, pid) = owner(dir.path());
    let url = attach_if_running(&durable(dir.path())).unwrap().unwrap();
    kill_9(owner.id());
    owner.wait().unwrap();

    let mut cluster = Cluster::ensure(&durable(dir.path())).unwrap();
    assert!(cluster.was_adopted());
    assert_eq!(cluster.pid(), pid);
    assert_eq!(*cluster.url(), url);
    assert!(cluster.is_alive());
    let bin_dir = cluster.bin_dir().to_path_buf();
    psql(&bin_dir, cluster.url(), "CREATE TABLE kept (n int)");

    // An adopted one is supervised and stopped like one of our own.
    kill_9(pid);
    wait_until("the postmaster is gone", || !cluster.is_alive());
    assert!(cluster.restart_if_dead().unwrap());
    assert_ne!(cluster.pid(), pid);
    assert_eq!(
        psql(&bin_dir, cluster.url(), "SELECT count(*) FROM kept"),
        "0"
    );
    let pid = cluster.pid();
    cluster.stop().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn committed_data_survive_kill_9_of_postgres() {
    let dir = directory();
    let mut cluster = Cluster::ensure(&durable(dir.path())).unwrap();
    let bin_dir = cluster.bin_dir().to_path_buf();
    psql(
        &bin_dir,
        cluster.url(),
        "CREATE TABLE kept (n int); INSERT INTO kept SELECT generate_series(1, 1000)",
    );
    assert!(!cluster.restart_if_dead().unwrap());
    let url = cluster.url().clone();
    kill_9(cluster.pid());
    wait_until("the postmaster is gone", || !cluster.is_alive());
    assert!(cluster.restart_if_dead().unwrap());
    assert_eq!(*cluster.url(), url);
    assert_eq!(psql(&bin_dir, &url, "SELECT count(*) FROM kept"), "1000");
}

#[test]
fn everything_killed_at_once_recovers() {
    let dir = directory();
    let (mut owner, pid) = owner(dir.path());
    kill_9(owner.id());
    kill_9(pid);
    owner.wait().unwrap();
    let cluster = Cluster::ensure(&durable(dir.path())).unwrap();
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
}

#[test]
fn a_stale_process_id_that_is_somebody_elses_now_does_not_matter() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    let cluster_dir = dir.path().join("postgres/cluster");
    let socket_dir = dir.path().join("postgres/socket");
    cluster.stop().unwrap();
    // What a container that was killed leaves behind: the number is taken by
    // a process that is alive, here a child of ours of PostgreSQL's own user.
    let mut other = Command::new("sleep");
    other.arg("600").current_dir("/");
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::MetadataExt;
        use std::os::unix::process::CommandExt;
        other.uid(std::fs::metadata(&cluster_dir).unwrap().uid());
    }
    let mut other = other.spawn().unwrap();
    let pid = other.id();
    let stale = format!(
        "{pid}\n{}\n1700000000\n5432\n{}\n\n 1 1\nready   \n",
        cluster_dir.display(),
        socket_dir.display()
    );
    std::fs::write(cluster_dir.join("postmaster.pid"), &stale).unwrap();
    std::fs::write(socket_dir.join(".s.PGSQL.5432.lock"), &stale).unwrap();
    assert!(attach_if_running(&quick(dir.path())).unwrap().is_none());
    let outcome = Cluster::ensure(&quick(dir.path()));
    let survived = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    let cluster = outcome.unwrap();
    assert!(survived, "the other process was touched");
    assert!(!cluster.was_adopted());
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
}

#[test]
fn a_half_made_cluster_is_made_anew() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    drop(cluster);
    let home = dir.path().join("postgres");
    std::fs::rename(home.join("cluster"), home.join("cluster.unfinished")).unwrap();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
    assert!(!home.join("cluster.unfinished").exists());
}

#[test]
fn a_path_too_long_for_a_socket_works() {
    let dir = directory();
    let data_dir = dir.path().join("d".repeat(120)).join("a, \"b");
    let cluster = Cluster::ensure(&quick(&data_dir)).unwrap();
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
    let sockets = psql(
        cluster.bin_dir(),
        cluster.url(),
        "SHOW unix_socket_directories",
    );
    let socket_dir = Path::new(sockets.trim_matches('"')).to_path_buf();
    assert!(socket_dir.as_os_str().len() < 60, "{sockets}");
    let mode = std::fs::metadata(&socket_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    cluster.stop().unwrap();
    assert!(!socket_dir.exists());
}

#[test]
fn quotes_and_spaces_in_the_path_work() {
    let dir = directory();
    let data_dir = dir.path().join("a \"b % c?&");
    let cluster = Cluster::ensure(&quick(&data_dir)).unwrap();
    assert_eq!(psql(cluster.bin_dir(), cluster.url(), "SELECT 1"), "1");
}

#[test]
fn a_link_in_place_of_the_log_is_not_followed() {
    let dir = directory();
    let cluster = Cluster::ensure(&quick(dir.path())).unwrap();
    let log = cluster.log_file();
    drop(cluster);
    let elsewhere = dir.path().join("elsewhere");
    std::fs::write(&elsewhere, "untouched").unwrap();
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &log).unwrap();
    let text = Cluster::ensure(&quick(dir.path())).unwrap_err().to_string();
    assert!(text.contains("Opening"), "{text}");
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "untouched");
}

#[test]
fn a_closed_directory_works_for_its_owner_and_is_named_by_root() {
    if !rustix::process::geteuid().is_root() {
        // Only root changes the user, so that only there this can happen; for
        // others the same directory simply works.
        let dir = directory_with_mode(0o700);
        Cluster::ensure(&quick(dir.path())).unwrap();
        return;
    }
    let dir = directory_with_mode(0o700);
    let closed = dir.path().canonicalize().unwrap();
    let error = Cluster::ensure(&quick(&dir.path().join("data"))).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(&error, ClusterError::NotTraversable { directory, .. } if *directory == closed),
        "{text}"
    );
    assert!(text.contains("--data-dir /var/lib/tokdyno"), "{text}");
}

#[test]
fn another_version_is_said_with_a_remedy() {
    let dir = directory();
    drop(Cluster::ensure(&quick(dir.path())).unwrap());
    let version = dir.path().join("postgres/cluster/PG_VERSION");
    std::fs::write(&version, "13\n").unwrap();
    let text = Cluster::ensure(&quick(dir.path())).unwrap_err().to_string();
    assert!(text.contains("made by PostgreSQL 13"), "{text}");
    assert!(text.contains("apt-get install postgresql-13"), "{text}");
}

#[test]
fn no_programs_is_said_with_a_remedy() {
    let dir = directory();
    let error = Cluster::ensure(&Config {
        bin_dir: Some(dir.path().to_path_buf()),
        ..durable(dir.path())
    })
    .unwrap_err();
    assert!(matches!(error, ClusterError::NoBinaries { .. }));
    assert!(error.to_string().contains("TOKDYNO_PG_BIN"));
}

#[test]
fn somebody_elses_directory_is_left_alone() {
    let dir = directory();
    let foreign = dir.path().join("postgres/cluster");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "x").unwrap();
    let error = Cluster::ensure(&quick(dir.path())).unwrap_err();
    assert!(matches!(error, ClusterError::NotACluster { .. }), "{error}");
    assert!(foreign.join("precious").exists());
}
