//! What a host tells of itself, with recorded answers of `nvidia-smi` where a GPU
//! would be needed.

use std::{fs, net::TcpListener, time::Duration};

use tokdyno_remote::{PortUse, RawCommand, Spawn};

use crate::support::{self, TestHost};

/// Two cards, as `nvidia-smi` would tell; `holder` is a process that holds memory.
fn with_cards(host: &TestHost, holder: u32) {
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in\n\
         *compute-apps*) echo 'GPU-bbbb, {holder}, python3, 91234' ;;\n\
         *throttle_reasons*--loop-ms=1000*) while :; do\n\
           echo '0, 2430, 12481, 598.12, 71, 99, 3, 0x0000000000000004'\n\
           echo '1, 2400, 12481, 500.00, 69, 98, 91234, 0x0000000000000000'; sleep 1; done ;;\n\
         *throttle_reasons*)\n\
           echo '0, 2430, 12481, 598.12, 71, 99, 3, 0x0000000000000004'\n\
           echo '1, 2400, 12481, 500.00, 69, 98, 91234, 0x0000000000000000' ;;\n\
         *mig.mode*) echo 'Field \"mig.mode.current\" is not a valid field to query.'; exit 2 ;;\n\
         *query-gpu*)\n\
           echo '0, GPU-aaaa, NVIDIA RTX PRO 6000 Blackwell Server Edition, 97887, 3, 180, 405, 600.00'\n\
           echo '1, GPU-bbbb, NVIDIA RTX PRO 6000 Blackwell Server Edition, 97887, 91234, 2430, 12481, 600.00' ;;\n\
         'topo -m') printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\tNODE\\n' ;;\n\
         *) echo '| NVIDIA-SMI 570.133.20   Driver Version: 570.133.20   CUDA Version: 12.8 |' ;;\n\
         esac\n"
    );
    host.install("nvidia-smi", &script);
}

#[tokio::test]
async fn the_inventory_of_a_host_with_gpus_is_whole() {
    for host in support::both() {
        with_cards(&host, std::process::id());
        fs::write(host.home.join(".nccl.conf"), "NCCL_ALGO=Ring\n").expect("written");
        let inventory = host.host.inventory().await.expect("an inventory");
        assert_eq!(inventory.gpus.len(), 2, "{:?}", inventory.notes);
        assert_eq!(inventory.gpus[1].used_mib, 91_234);
        assert_eq!(inventory.gpu_processes.len(), 1);
        assert!(inventory.gpu_processes[0].user.is_some());
        assert_eq!(inventory.driver.as_deref(), Some("570.133.20"));
        assert_eq!(inventory.cuda.as_deref(), Some("12.8"));
        assert!(
            inventory
                .topology
                .is_some_and(|topology| topology.contains("NODE"))
        );
        let conf = host.home.join(".nccl.conf").display().to_string();
        assert!(inventory.nccl_conf.iter().any(|file| {
            file.path == conf && file.variables == [("NCCL_ALGO".to_owned(), "Ring".to_owned())]
        }));
        assert!(!inventory.boot_id.is_empty() && inventory.memory_total > 0);
    }
}

#[tokio::test]
async fn a_host_without_gpus_has_an_inventory_that_says_so() {
    let host = support::local();
    let inventory = host.host.inventory().await.expect("an inventory");
    if std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))
        .all(|place| !place.join("nvidia-smi").exists())
    {
        assert!(inventory.gpus.is_empty());
        assert!(
            inventory
                .notes
                .iter()
                .any(|note| note.contains("nvidia-smi"))
        );
    }
    assert!(inventory.cpus > 0 && !inventory.disks.is_empty());
}

#[tokio::test]
async fn a_driver_that_hangs_costs_ten_seconds_and_a_note() {
    let host = support::local();
    host.install("nvidia-smi", "#!/bin/sh\nexec sleep 70\n");
    let began = std::time::Instant::now();
    // One question only, so that this takes 10 s and not 60.
    let found = host.host.engines().await.expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(25));
    assert!(found.iter().all(|process| process.gpu_mib == 0));
    let hanging = fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .any(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x0070\0")
        });
    assert!(!hanging, "it was stopped");
}

#[tokio::test]
async fn samples_come_each_second_with_and_without_gpus() {
    for host in support::both() {
        for with in [false, true] {
            if with {
                with_cards(&host, std::process::id());
            }
            let mut samples = host.host.sample().await.expect("samples");
            let first = samples.next().await.expect("a sample");
            let began = std::time::Instant::now();
            let second = samples.next().await.expect("a sample");
            assert!(second.at > first.at);
            let last = samples.next().await.expect("a sample");
            let passed = began.elapsed();
            assert!(
                passed > Duration::from_millis(1500) && passed < Duration::from_secs(4),
                "{passed:?}"
            );
            assert!(last.load.is_some());
            if with {
                assert_eq!(last.gpus.len(), 2);
                assert_eq!(last.gpus[0].throttle, ["power cap"]);
                assert_eq!(last.gpus[1].used_mib, Some(91_234));
                assert_eq!(last.processes.len(), 1);
            } else {
                assert!(last.gpus.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn a_running_engine_is_found_by_the_top_of_its_tree() {
    let host = support::local();
    // A shell under the name of Python: it stands in for an engine and serves nothing.
    fs::copy("/bin/sh", host.home.join("bin/python3")).expect("copied");
    let mut command = RawCommand::new([
        "python3",
        "-c",
        "sleep 60 & echo $! > \"$HOME/worker\"; wait",
        "-m",
        "sglang.launch_server",
        "--api-key",
        "abcdef",
    ]);
    command.environment = vec![
        (b"NCCL_PROTO".to_vec(), b"LL".to_vec()),
        (b"HF_TOKEN".to_vec(), b"hf_0123456789".to_vec()),
        (b"MY_KNOB".to_vec(), b"7".to_vec()),
    ];
    let spawned = host
        .host
        .spawn(&Spawn {
            folder: "engine".to_owned(),
            command,
        })
        .await
        .expect("starts");
    let worker: u32 = loop {
        let text = fs::read_to_string(host.home.join("worker")).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            break pid;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    with_cards(&host, worker);
    let found = host.host.engines().await.expect("a list");
    let ours: Vec<_> = found
        .iter()
        .filter(|process| {
            process.identity.pid == spawned.identity.pid || process.identity.pid == worker
        })
        .collect();
    assert_eq!(ours.len(), 1, "{found:?}");
    let engine = ours[0];
    assert_eq!(engine.identity, spawned.identity);
    assert_eq!(
        (engine.gpu_mib, engine.gpus.as_slice()),
        (91_234, [1].as_slice())
    );
    assert!(!engine.command.join(" ").contains("abcdef"));
    let environment = engine.environment.as_ref().expect("readable");
    assert!(environment.contains(&("NCCL_PROTO".to_owned(), "LL".to_owned())));
    assert!(!format!("{environment:?}").contains("hf_0123"));
    assert!(engine.withheld.contains(&"HF_TOKEN".to_owned()));
    assert!(engine.withheld.contains(&"MY_KNOB".to_owned()));

    let asked = host
        .host
        .process(
            spawned.identity.pid,
            &["MY_KNOB".to_owned(), "HF_TOKEN".to_owned()],
        )
        .await
        .expect("read")
        .expect("it lives");
    let environment = asked.environment.expect("readable");
    assert!(environment.contains(&("MY_KNOB".to_owned(), "7".to_owned())));
    assert!(!format!("{environment:?}").contains("hf_0123"));
    let stopped = host
        .host
        .stop("engine", &spawned.identity, Duration::from_millis(500))
        .await
        .expect("stopped");
    assert!(stopped.left.is_empty());
    // The recorded driver goes on naming the dead worker.
    assert!(stopped.gpu_held);
}

#[tokio::test]
async fn a_port_is_free_or_names_its_holder() {
    for host in support::both() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let usage = host.host.port_free(port).await.expect("an answer");
        let PortUse::Held { pid, command } = usage else {
            panic!("held: {usage:?}");
        };
        assert_eq!(pid, Some(std::process::id()));
        assert!(command.is_some());
        drop(listener);
        assert_eq!(host.host.port_free(port).await, Ok(PortUse::Free));
    }
}

#[tokio::test]
async fn variables_of_the_dashboard_do_not_reach_what_it_launches() {
    let host = support::local();
    let output = host
        .host
        .run(&RawCommand::new(["env"]), b"")
        .await
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("HOME="));
    for line in text.lines() {
        assert!(
            !line.starts_with("DATABASE_URL=") && !line.starts_with("PGPASSWORD="),
            "{line}"
        );
        assert!(
            !line.starts_with("TOKDYNO_") || line.starts_with("TOKDYNO_SIM_"),
            "{line}"
        );
    }
}
