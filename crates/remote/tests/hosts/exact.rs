//! Any argument and any variable arrive as they are.

use proptest::{prelude::*, test_runner::TestRunner};
use tokdyno_remote::{RawCommand, Spawn, testing::TestSshd};
use tokio::runtime::Runtime;

use crate::support::{self, TestHost};

/// Any bytes but NUL; those that shells read are frequent.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => 1_u8..=255,
        2 => prop::sample::select(b"'\"\\$`!#&;|<>(){}[]*?~^% \t\n\r=-".to_vec()),
    ];
    proptest::collection::vec(byte, 0..40)
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    // No real variable: those could keep the programs below from starting at all.
    proptest::collection::vec((1_u8..=255).prop_filter("=", |&byte| byte != b'='), 1..10)
        .prop_map(|rest| [b"T_".as_slice(), &rest].concat())
}

type Variables = Vec<(Vec<u8>, Vec<u8>)>;

fn arguments_and_variables() -> impl Strategy<Value = (Vec<Vec<u8>>, Variables)> {
    (
        proptest::collection::vec(word(), 0..6),
        proptest::collection::btree_map(name(), word(), 0..6)
            .prop_map(|map| map.into_iter().collect()),
    )
}

/// A command that prints its own command line and environment, then its arguments.
fn mirror(arguments: &[Vec<u8>], variables: &Variables) -> RawCommand {
    let mut command = RawCommand::new(["cat", "/proc/self/cmdline", "/proc/self/environ", "--"]);
    // Named files of that name do not exist; what they are called is what counts.
    command.argv.extend_from_slice(arguments);
    command.environment.clone_from(variables);
    command
}

fn arrived(
    output: &[u8],
    arguments: &[Vec<u8>],
    variables: &Variables,
) -> Result<(), TestCaseError> {
    let mut expected: Vec<u8> = Vec::new();
    for word in mirror(arguments, variables).argv {
        expected.extend_from_slice(&word);
        expected.push(0);
    }
    prop_assert!(
        output.starts_with(&expected),
        "argv: {:?}",
        output.escape_ascii().to_string()
    );
    let environment: Vec<&[u8]> = output[expected.len()..].split(|&byte| byte == 0).collect();
    for (name, value) in variables {
        let line = [name.as_slice(), b"=", value].concat();
        prop_assert!(
            environment.contains(&line.as_slice()),
            "{}",
            line.escape_ascii().to_string()
        );
    }
    Ok(())
}

fn unchanged_on(host: &TestHost, cases: u32) {
    let runtime = Runtime::new().expect("a runtime");
    let config = ProptestConfig {
        cases,
        // What fails is printed; no file is left in the tree.
        failure_persistence: None,
        max_shrink_iters: 50,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&arguments_and_variables(), |(words, variables)| {
        let command = mirror(&words, &variables);
        let output = runtime
            .block_on(host.host.run(&command, b""))
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        arrived(&output.stdout, &words, &variables)
    });
    result.expect("arguments and variables arrive unchanged");
}

#[test]
fn any_arguments_and_variables_arrive_unchanged_locally() {
    unchanged_on(&support::local(), 128);
}

#[test]
fn any_arguments_and_variables_arrive_unchanged_through_bash() {
    unchanged_on(&support::remote("/bin/bash"), 64);
}

#[test]
fn any_arguments_and_variables_arrive_unchanged_through_dash() {
    unchanged_on(&support::remote("/bin/dash"), 64);
}

#[test]
fn any_arguments_and_variables_arrive_unchanged_through_tcsh() {
    unchanged_on(&support::remote("/bin/tcsh"), 64);
}

#[test]
fn any_arguments_and_variables_arrive_unchanged_through_fish() {
    unchanged_on(&support::remote("/usr/bin/fish"), 64);
}

#[tokio::test]
async fn launches_get_exact_arguments_and_write_exact_logs() {
    let words: Vec<Vec<u8>> = vec![
        b"it's \"quoted\" $HOME `id` !! \\ \n\ttwo".to_vec(),
        Vec::new(),
        "\u{fc}\u{1f980}".as_bytes().to_vec(),
        vec![0xff, 0xfe, 0x80],
        vec![b'x'; 100_000],
    ];
    let variables = vec![(b"T_X".to_vec(), b"a=b\n'c'\xff".to_vec())];
    for host in support::both() {
        let spawned = host
            .host
            .spawn(&Spawn {
                folder: "exact".to_owned(),
                command: mirror(&words, &variables),
            })
            .await
            .expect("starts");
        host.over("exact", &spawned.identity).await;
        let log = host
            .host
            .read("exact", "log", 1 << 22)
            .await
            .expect("read")
            .expect("a log");
        // Both streams go to the log; complaints about missing files come last.
        arrived(&log, &words, &variables).expect("unchanged");
    }
}

#[tokio::test]
async fn standard_input_and_both_outputs_are_bytes() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for host in support::both() {
        let command = RawCommand::new(["sh", "-c", "tee /dev/stderr"]);
        let output = host.host.run(&command, &every_byte).await.expect("runs");
        assert!(output.status.success());
        assert!(output.stdout == every_byte && output.stderr == every_byte);
        assert!(!output.truncated);
    }
}

#[tokio::test]
async fn more_output_than_is_kept_is_cut_and_said_so() {
    let host = support::local();
    let command = RawCommand::new(["head", "-c", "6000000", "/dev/zero"]);
    let output = host.host.run(&command, b"").await.expect("runs");
    assert!(output.truncated && output.status.success());
    assert_eq!(output.stdout.len(), 4 << 20);
}

#[tokio::test]
async fn what_login_shells_print_first_is_skipped() {
    for shell in ["/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
        let host = support::remote(shell);
        let sshd: &TestSshd = host.sshd.as_ref().expect("an sshd");
        sshd.set_banner("Welcome!\ntokdyno-agent\nno line end")
            .expect("set");
        let checked = host.host.check().await.expect(shell);
        assert!(checked.uploaded, "{shell}");
        let output = host
            .host
            .run(&RawCommand::new(["echo", "x"]), b"")
            .await
            .expect(shell);
        assert_eq!(output.stdout, b"x\n", "{shell}");
    }
}
