//! What dies in the middle of a run: the server, the meter, the database. And two
//! servers that share a database.

use std::collections::BTreeSet;

use crate::support::{DataDir, Server, Simulator, children_of, get_with, kill_nine, wait_for};
use tokdyno_pgcluster::{Cluster, Config, Durability};

/// Requests of a run that should not end by itself while something is killed: at
/// about 90 ms each.
const MANY: u32 = 2000;

/// All that the engine sent is stored, but for the one reply that was under way when
/// the measuring ended: the engine may have finished it unread, or it has a
/// record as cancelled and no complete reply.
fn assert_nothing_lost(simulator: &Simulator, before: u64, records: u64) {
    let sent = simulator.completed() - before;
    assert!(
        records + 1 >= sent && records <= sent + 1,
        "{records} records of {sent} replies"
    );
}

fn is_each_once(keys: &[(u32, u32)]) -> bool {
    keys.iter().collect::<BTreeSet<_>>().len() == keys.len()
}

/// A short run works from queue to end.
fn works(server: &Server, simulator: &Simulator) {
    let run = server.queue(&simulator.url, 3);
    assert_eq!(server.wait_until_over(run), ("finished".to_owned(), 3));
}

#[test]
fn a_killed_server_leaves_an_interrupted_run_with_its_requests() {
    let data = DataDir::new();
    let simulator = Simulator::start(10);
    let server = Server::start(data.path(), &["--no-founding"]);
    let run = server.queue(&simulator.url, MANY);
    let seen = server.wait_for_records(run, 3);
    let meters = children_of(server.pid(), "tokdyno-meter");
    assert_eq!(meters.len(), 1, "one meter");
    server.kill();
    // The meter notices that its parent is gone.
    wait_for("the meter's end", || {
        (!std::path::Path::new(&format!("/proc/{}", meters[0])).exists()).then_some(())
    });

    let server = Server::start(data.path(), &["--no-founding"]);
    let (state, records) = server.wait_until_over(run);
    assert_eq!(state, "interrupted");
    assert!(records >= seen, "{records} of at least {seen}");
    assert_nothing_lost(&simulator, 0, records);
    let keys = server.record_keys(run);
    assert_eq!(keys.len() as u64, records);
    assert!(is_each_once(&keys), "{keys:?}");
    works(&server, &simulator);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_killed_meter_ends_its_run_and_nothing_else() {
    let data = DataDir::new();
    let simulator = Simulator::start(10);
    let server = Server::start(data.path(), &["--no-founding"]);
    let run = server.queue(&simulator.url, MANY);
    let seen = server.wait_for_records(run, 3);
    let meters = children_of(server.pid(), "tokdyno-meter");
    assert_eq!(meters.len(), 1, "one meter");
    kill_nine(meters[0]);
    let (state, records) = server.wait_until_over(run);
    assert_eq!(state, "interrupted");
    assert!(records >= seen, "{records} of at least {seen}");
    assert_nothing_lost(&simulator, 0, records);
    assert!(is_each_once(&server.record_keys(run)));
    works(&server, &simulator);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_killed_database_comes_back_and_the_run_goes_on() {
    let data = DataDir::new();
    let simulator = Simulator::start(10);
    let server = Server::start(data.path(), &["--no-founding"]);
    // About ten seconds: long enough to outlive the outage.
    let run = server.queue(&simulator.url, 120);
    server.wait_for_records(run, 3);
    let postmaster = data.postmaster().expect("a postmaster");
    kill_nine(postmaster);
    // Whether the outage is seen from here depends on how fast it ends.
    let page = get_with(&server.address, "/runs", &[("accept", "text/html")]);
    assert!(matches!(page.status, 200 | 503), "{}", page.status);
    if page.status == 503 {
        assert!(
            page.body.contains("http-equiv=\"refresh\""),
            "{}",
            page.body
        );
    }
    wait_for("another postmaster", || {
        data.postmaster().filter(|pid| *pid != postmaster)
    });
    // The meter went on meanwhile, into its spool.
    assert_eq!(server.wait_until_over(run), ("finished".to_owned(), 120));
    let keys = server.record_keys(run);
    assert_eq!(keys.len(), 120);
    assert!(is_each_once(&keys), "{keys:?}");
    works(&server, &simulator);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn two_servers_share_a_database() {
    let (shared, one, two) = (DataDir::new(), DataDir::new(), DataDir::new());
    let config = Config {
        durability: Durability::Throwaway,
        ..Config::new(shared.path())
    };
    let cluster = Cluster::ensure(&config).expect("a database");
    let arguments = ["--no-founding", "--database-url", cluster.url().as_str()];
    let simulator = Simulator::start(10);
    // Both at once: the migrations wait for each other.
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| Server::start(one.path(), &arguments));
        let second = scope.spawn(|| Server::start(two.path(), &arguments));
        (
            first.join().expect("started"),
            second.join().expect("started"),
        )
    });
    assert!(
        !first.greeting.contains(cluster.url().as_str()),
        "no password"
    );

    // Two runs against one address: one after the other, each by one server.
    let runs = [
        first.queue(&simulator.url, 20),
        second.queue(&simulator.url, 20),
    ];
    for run in runs {
        assert_eq!(first.wait_until_over(run), ("finished".to_owned(), 20));
        let keys = second.record_keys(run);
        assert_eq!(keys.len(), 20);
        assert!(is_each_once(&keys), "{keys:?}");
    }

    // What a dead server leaves behind is seen by the other. Its spool is not: that
    // lies in the dead server's folder, and is brought in when it comes back.
    let run = first.queue(&simulator.url, MANY);
    second.wait_for_records(run, 3);
    let (dead, alive) = if children_of(first.pid(), "tokdyno-meter").is_empty() {
        (second, first)
    } else {
        (first, second)
    };
    dead.kill();
    let (state, records) = alive.wait_until_over(run);
    assert_eq!(state, "interrupted");
    assert!(records >= 3 && is_each_once(&alive.record_keys(run)));
    works(&alive, &simulator);
    assert_eq!(alive.stop(), Some(0));
    cluster.stop().expect("stopped");
}
