//! Tests of what leads from one profile to another.

use proptest::prelude::*;

use super::{
    super::{
        apply::apply,
        samples::{set, sglang, switch, variable, vllm, without, words},
    },
    *,
};

const NCCL: [(&str, &str); 6] = [
    ("NCCL_PROTO", "LL"),
    ("NCCL_ALGO", "Ring"),
    ("NCCL_P2P_LEVEL", "SYS"),
    ("NCCL_MAX_NCHANNELS", "16"),
    ("NCCL_BUFFSIZE", "16777216"),
    ("NCCL_NTHREADS", "512"),
];

#[test]
fn the_founding_tuning_is_eight_changes() {
    let base = sglang("--attention-backend triton");
    let mut tuned = sglang(
        "--attention-backend triton --num-continuous-decode-steps 4 --disable-custom-all-reduce",
    );
    tuned.environment = NCCL
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let changes = changes_between(&base, &tuned).expect("changes");
    let mut expected = vec![
        set("--num-continuous-decode-steps", "4"),
        switch("--disable-custom-all-reduce"),
    ];
    expected.extend(NCCL.map(|(name, value)| variable(name, value)));
    assert_eq!(changes, expected);
    assert_eq!(
        apply(&base, &changes).expect("a profile").hash(),
        tuned.hash()
    );
    let back = changes_between(&tuned, &base).expect("changes");
    assert_eq!(back.len(), 8);
    assert_eq!(back[0], without("--num-continuous-decode-steps"));
    assert_eq!(apply(&tuned, &back).expect("a profile").hash(), base.hash());
}

#[test]
fn what_changes_nothing_is_no_change() {
    let one = sglang("--a 1 --b 2");
    let mut two = sglang("--b=2 --a 1");
    two.parameters.port = 9000;
    two.parameters.served_name = "kimi".to_owned();
    two.ready_timeout_s = 60;
    two.notes = "other".to_owned();
    let tp = two
        .arguments
        .iter()
        .position(|word| word == "{TP}")
        .expect("a placeholder");
    two.arguments[tp] = "8".to_owned();
    assert_eq!(changes_between(&one, &two), Ok(Vec::new()));
}

#[test]
fn a_drafter_is_one_change_and_its_settings_follow() {
    let base = sglang("");
    let mut eagle = sglang(
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path {DRAFTER} --speculative-num-steps 5 --max-running-requests 128",
    );
    eagle.parameters.drafter = Some("/d".to_owned());
    let changes = changes_between(&base, &eagle).expect("changes");
    assert_eq!(
        changes,
        [
            Change::Drafter {
                model: Some("/d".to_owned())
            },
            set("--speculative-num-steps", "5"),
            set("--max-running-requests", "128"),
            without("--speculative-eagle-topk"),
            without("--speculative-num-draft-tokens"),
        ]
    );
    let made = apply(&base, &changes).expect("a profile");
    assert_eq!(changes_between(&made, &eagle), Ok(Vec::new()));
    assert_eq!(
        changes_between(&eagle, &base).expect("changes"),
        [
            Change::Drafter { model: None },
            without("--max-running-requests")
        ]
    );
}

#[test]
fn parameters_are_changes_where_the_command_uses_them() {
    let one = sglang("");
    let mut two = one.clone();
    two.parameters.tensor_parallel = 4;
    assert_eq!(
        changes_between(&one, &two),
        Ok(vec![Change::TensorParallel { ranks: 4 }])
    );
    // Elsewhere a value says what the parameter would.
    let mut fixed = vllm("--tensor-parallel-size 8");
    fixed.parameters.tensor_parallel = 8;
    let mut open = vllm("--tensor-parallel-size {TP}");
    open.parameters.tensor_parallel = 4;
    assert_eq!(
        changes_between(&fixed, &open),
        Ok(vec![set("--tensor-parallel-size", "4")])
    );
    // A drafter that the command does not use is none.
    let mut unused = one.clone();
    unused.parameters.drafter = Some("/d".to_owned());
    assert_eq!(changes_between(&one, &unused), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_taken_apart_is_named() {
    let base = sglang("--ids 1");
    let other = |change: &dyn Fn(&mut ProfileSpec)| {
        let mut spec = base.clone();
        change(&mut spec);
        changes_between(&base, &spec)
            .expect_err("a refusal")
            .to_string()
    };
    for (said, part) in [
        (other(&|s| s.engine = EngineKind::Vllm), "vLLM"),
        (
            other(&|s| s.program = "/v2/python3".to_owned()),
            "/v2/python3",
        ),
        (
            other(&|s| {
                s.activation = Activation::VirtualEnvironment {
                    path: "/v2".to_owned(),
                };
            }),
            "nothing and the virtual environment /v2",
        ),
        (
            other(&|s| s.directory = Some("/w".to_owned())),
            "the home and /w",
        ),
        (other(&|s| s.parameters.model = "m2".to_owned()), "m2"),
        (other(&|s| s.arguments[3] = "/other".to_owned()), "/other"),
        (
            other(&|s| s.arguments[1] = "sglang.other".to_owned()),
            "sglang.other",
        ),
        (
            other(&|s| s.arguments.extend(words("--x 1 --x 2"))),
            "--x is given more than once",
        ),
    ] {
        assert!(said.contains(part), "{said}");
    }
    let secret = other(&|s| s.parameters.model = "s3://key:abcdef@store/m".to_owned());
    assert!(!secret.contains("abcdef"), "{secret}");
    let repeated = sglang("--x 1 --x 2");
    assert_eq!(changes_between(&repeated, &repeated), Ok(Vec::new()));
    assert_eq!(
        changes_between(&repeated, &sglang("")),
        Ok(vec![without("--x")])
    );
}

/// Flags with their values. A word of its own behind a flag is left out, since nothing
/// but knowledge of the engine tells it from a value.
fn rows_of_flags() -> impl Strategy<Value = Vec<String>> {
    let row =
        "--[abc]( (-1|8|\\{TP\\}|\\{DRAFTER\\})){0,2}|--a=[12]|--no-b|--spec-x( \\{DRAFTER\\})?";
    proptest::collection::vec(row, 0..6).prop_map(|rows| words(&rows.join(" ")))
}

fn environment() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::btree_map("[ABC]", "(1|2|\\{TP\\})", 0..3)
        .prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn the_changes_lead_there(
        arguments in rows_of_flags(),
        others in rows_of_flags(),
        variables in environment(), other_variables in environment(),
        ranks in 7_u32..9, drafter in "[de]",
    ) {
        let make = |arguments: Vec<String>, environment, ranks, drafter| {
            let mut spec = sglang("--first");
            spec.arguments.extend(arguments);
            spec.environment = environment;
            spec.parameters.tensor_parallel = ranks;
            spec.parameters.drafter = Some(drafter);
            spec
        };
        let from = make(arguments, variables, 8, "d".to_owned());
        let to = make(others, other_variables, ranks, drafter);
        if let Ok(changes) = changes_between(&from, &to) {
            let made = apply(&from, &changes).expect("a profile");
            prop_assert_eq!(changes_between(&made, &to), Ok(Vec::new()));
            prop_assert_eq!(changes_between(&to, &made), Ok(Vec::new()));
        }
    }
}
