//! What these tests share: a laboratory with this machine as its host, whose state
//! lies in a folder of the test.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use sqlx::PgPool;
use tempfile::TempDir;
use tokdyno_domain::{
    access::Actor,
    engine::EngineKind,
    host::{ProcessIdentity, Reach},
    ids::{HostId, LaunchId},
    launch::{Afterwards, FailureKind, LaunchState},
    profile::{Activation, Parameters, ProfileSpec},
    views::{
        hosts::HostForm,
        servers::{LaunchForm, LaunchView},
    },
};
use tokdyno_remote::{Host, RemoteConfig, testing::TestSshd};

use crate::{Lab, LabConfig, WorkerHandle, launching::Patience, testing};

pub(crate) const ME: &Actor = &Actor::LOCAL;
/// Longest that a test waits for something that must come.
const LONGEST: Duration = Duration::from_secs(60);

/// A program of this workspace, built before the tests.
pub(crate) fn built(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().expect("a test runs");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push(name);
    assert!(
        path.exists(),
        "{} is not built; the suite builds it before the tests",
        path.display()
    );
    path
}

pub(crate) fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
        .display()
        .to_string()
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address").port()
}

/// Time-outs short enough for a test.
pub(crate) fn hasty() -> Patience {
    let ms = Duration::from_millis;
    Patience {
        loading: ms(100),
        serving: ms(200),
        stalled: ms(2_000),
        dying: ms(1_000),
        grace: ms(3_000),
        memory: ms(500),
        memory_restoring: ms(6_000),
        connection: ms(6_000),
        log_rest: ms(5_000),
        log_most: 64 << 20,
        runs: ms(8_000),
        unreachable: ms(3_000),
        again: (ms(50), ms(500)),
    }
}

/// A laboratory with this machine as its only host.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) pool: PgPool,
    pub(crate) host: HostId,
    pub(crate) folder: TempDir,
    /// Where the agent keeps the folders of launches.
    state: PathBuf,
    reach: Reach,
}

impl Drop for Bench {
    // Whatever a failed assertion leaves running. Only what the agent recorded in
    // this test's own folder.
    fn drop(&mut self) {
        for record in self.records() {
            for identity in [&record["leader"], &record["keeper"]] {
                let Ok(identity) = serde_json::from_value::<ProcessIdentity>(identity.clone())
                else {
                    continue;
                };
                if !alive(&identity) {
                    continue;
                }
                let Some(pid) = pid_of(identity.pid) else {
                    continue;
                };
                if identity.pgid == identity.pid {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Does this very process live? A zombie does not.
pub(crate) fn alive(identity: &ProcessIdentity) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", identity.pid)) else {
        return false;
    };
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields.first() != Some(&"Z")
        && fields.get(19).and_then(|ticks| ticks.parse().ok()) == Some(identity.start_ticks)
        && pid_of(identity.pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

impl Bench {
    pub(crate) async fn new(pool: &PgPool) -> Self {
        Self::with(pool, |_| {}).await
    }

    pub(crate) async fn with(pool: &PgPool, change: impl FnOnce(&mut LabConfig)) -> Self {
        let folder = testing::folder();
        let mut config = testing::config(folder.path());
        config.remote = RemoteConfig::new(built("tokdyno-agent"));
        config.remote.local_environment = vec![(
            "XDG_STATE_HOME".into(),
            folder.path().join("state").into_os_string(),
        )];
        change(&mut config);
        let lab = Lab::with_pool(pool.clone(), config)
            .await
            .expect("a laboratory");
        let state = folder.path().join("state/tokdyno/launches");
        Self::made(lab, folder, state, Reach::Local).await
    }

    /// The same with a host behind SSH.
    pub(crate) async fn over(
        pool: &PgPool,
        sshd: &TestSshd,
        change: impl FnOnce(&mut LabConfig),
    ) -> Self {
        let folder = testing::folder();
        let mut config = testing::config(folder.path());
        config.remote = sshd.config(&built("tokdyno-agent"));
        change(&mut config);
        let lab = Lab::with_pool(pool.clone(), config)
            .await
            .expect("a laboratory");
        let state = sshd.home().join(".local/state/tokdyno/launches");
        Self::made(lab, folder, state, sshd.reach()).await
    }

    async fn made(lab: Lab, folder: TempDir, state: PathBuf, reach: Reach) -> Self {
        let form = HostForm {
            name: "bench".to_owned(),
            destination: match &reach {
                Reach::Local => String::new(),
                Reach::Ssh { destination } => destination.clone(),
            },
            notes: String::new(),
        };
        let host = lab.add_host(ME, &form).await.expect("added");
        Self {
            pool: lab.0.pool.clone(),
            lab,
            host,
            folder,
            state,
            reach,
        }
    }

    /// Where the agent keeps the folders of launches.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    fn records(&self) -> Vec<serde_json::Value> {
        let Ok(entries) = fs::read_dir(self.state()) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                let bytes = fs::read(entry.path().join("process.json")).ok()?;
                serde_json::from_slice(&bytes).ok()
            })
            .collect()
    }

    pub(crate) fn remote(&self) -> Host {
        Host::open(&self.lab.0.config.remote, &self.reach)
    }

    /// Starts the workers with short time-outs.
    pub(crate) fn work(&self) -> WorkerHandle {
        self.lab.start_worker_with(hasty())
    }

    /// Queues a launch of a new profile.
    pub(crate) async fn launch(&self, spec: &ProfileSpec) -> LaunchId {
        self.launch_with(spec, |_| {}).await
    }

    pub(crate) async fn launch_with(
        &self,
        spec: &ProfileSpec,
        change: impl FnOnce(&mut LaunchForm),
    ) -> LaunchId {
        let name = format!("profile-{}", uuid::Uuid::new_v4().simple());
        let profile = self
            .lab
            .add_profile(ME, &name, spec, None)
            .await
            .expect("a profile");
        let mut form = LaunchForm {
            profile,
            host: self.host,
            measure: None,
            configuration: String::new(),
            through_forward: false,
            verify_nccl: false,
            afterwards: Afterwards::Keep,
            restore: None,
            give_back_at: None,
            give_back_lead_s: None,
        };
        change(&mut form);
        self.lab.queue_launch(ME, &form).await.expect("queued")
    }

    pub(crate) async fn view(&self, launch: LaunchId) -> LaunchView {
        self.lab.launch(ME, launch).await.expect("a launch")
    }

    /// Waits until a launch stands so.
    pub(crate) async fn reach(&self, launch: LaunchId, state: LaunchState) -> LaunchView {
        let begun = Instant::now();
        loop {
            let view = self.view(launch).await;
            if view.summary.state == state {
                return view;
            }
            let final_word = view.summary.state.is_over();
            if final_word || begun.elapsed() > LONGEST {
                let log = self.log(launch).await;
                panic!("{view:#?} is not {state}; its log:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits until a launch failed, with this kind.
    pub(crate) async fn fails(&self, launch: LaunchId, kind: FailureKind) -> LaunchView {
        let view = self.reach(launch, LaunchState::Failed).await;
        let failure = view.summary.failure.clone().expect("a reason");
        assert_eq!(failure.kind, kind, "{failure}");
        self.nothing_runs(&view).await;
        view
    }

    /// No process of a launch is left.
    pub(crate) async fn nothing_runs(&self, view: &LaunchView) {
        let left = self.remote().leftovers(&view.folder).await.expect("looked");
        assert!(left.is_empty(), "{left:?}");
    }

    pub(crate) async fn log(&self, launch: LaunchId) -> String {
        let page = self.lab.launch_log(ME, launch, 0, 1 << 20, "").await;
        page.map(|page| page.text).unwrap_or_default()
    }

    /// Kills the keeper of a launch and its first process, as a kernel out of memory
    /// may: nobody is left who could say how it ended.
    pub(crate) fn kill_keeper_and_leader(&self, folder: &str) {
        let file = self.state.join(folder).join("process.json");
        let record: serde_json::Value =
            serde_json::from_slice(&fs::read(file).expect("a record")).expect("a record");
        for who in ["keeper", "leader"] {
            let identity: ProcessIdentity =
                serde_json::from_value(record[who].clone()).expect("an identity");
            assert!(alive(&identity), "{who}");
            let pid = pid_of(identity.pid).expect("a number");
            kill_process(pid, Signal::KILL).expect("killed");
        }
    }

    pub(crate) async fn identity(&self, launch: LaunchId) -> ProcessIdentity {
        sqlx::query_scalar::<_, sqlx::types::Json<ProcessIdentity>>(
            "SELECT identity FROM launches WHERE id = $1",
        )
        .bind(launch)
        .fetch_one(&self.pool)
        .await
        .expect("an identity")
        .0
    }
}

/// A profile of the stand-in as SGLang.
pub(crate) fn sglang(more: &[&str]) -> ProfileSpec {
    spec(
        EngineKind::Sglang,
        &["sglang", "--model-path", "{MODEL}", "--port", "{PORT}"],
        more,
    )
}

/// A profile of the stand-in as vLLM.
pub(crate) fn vllm(more: &[&str]) -> ProfileSpec {
    spec(
        EngineKind::Vllm,
        &["vllm", "serve", "{MODEL}", "--port", "{PORT}"],
        more,
    )
}

fn spec(engine: EngineKind, first: &[&str], more: &[&str]) -> ProfileSpec {
    ProfileSpec {
        engine,
        program: built("stand-in").display().to_string(),
        arguments: first
            .iter()
            .chain(more)
            .map(|&word| word.to_owned())
            .collect(),
        environment: Vec::new(),
        parameters: Parameters {
            model: "the-model".to_owned(),
            drafter: None,
            tensor_parallel: 1,
            port: free_port(),
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: 60,
        notes: String::new(),
    }
}

/// A profile of a script among the fixtures.
pub(crate) fn script(name: &str, arguments: &[&str]) -> ProfileSpec {
    ProfileSpec {
        program: fixture(name),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        ..sglang(&[])
    }
}
