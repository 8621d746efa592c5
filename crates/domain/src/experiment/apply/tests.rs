//! Tests of changes carried out.

use proptest::prelude::*;

use super::{
    super::samples::{set, sglang, switch, variable, vllm, without, words},
    *,
};

fn line(spec: &ProfileSpec, changes: &[Change]) -> String {
    let changed = apply(spec, changes).expect("a profile");
    changed.arguments[8..].join(" ")
}

fn drafter(model: &str) -> Change {
    Change::Drafter {
        model: Some(model.to_owned()),
    }
}

#[test]
fn arguments_keep_their_place_spelling_and_form() {
    let spec = sglang("--a 1 --on --b=2 --c_d 3 --a 4 --ids 1 2");
    for (changes, expected) in [
        (vec![set("--a", "5")], "--a 5 --on --b=2 --c_d 3 --ids 1 2"),
        (
            vec![set("--b", "x")],
            "--a 1 --on --b=x --c_d 3 --a 4 --ids 1 2",
        ),
        (
            vec![set("--c-d", "-1")],
            "--a 1 --on --b=2 --c_d -1 --a 4 --ids 1 2",
        ),
        (
            vec![set("--c-d", "--x")],
            "--a 1 --on --b=2 --c_d=--x --a 4 --ids 1 2",
        ),
        (
            vec![switch("--no-on"), without("--a")],
            "--no-on --b=2 --c_d 3 --ids 1 2",
        ),
        (
            vec![without("--ids"), without("--nowhere"), switch("--new")],
            "--a 1 --on --b=2 --c_d 3 --a 4 --new",
        ),
        (
            vec![Change::SetArgumentValues {
                flag: "--ids".to_owned(),
                values: words("2 30 58"),
            }],
            "--a 1 --on --b=2 --c_d 3 --a 4 --ids 2 30 58",
        ),
        (
            vec![switch("--b")],
            "--a 1 --on --b --c_d 3 --a 4 --ids 1 2",
        ),
    ] {
        assert_eq!(line(&spec, &changes), expected);
    }
}

#[test]
fn a_flag_never_takes_a_word_that_was_none_of_its_own() {
    let spec = sglang("--a=1 tail");
    assert_eq!(line(&spec, &[switch("--a")]), "tail --a");
    assert_eq!(line(&spec, &[set("--a", "2")]), "--a=2 tail");
    let repeated = sglang("--no-a --no-a tail");
    assert_eq!(line(&repeated, &[switch("--a")]), "tail --a");
}

#[test]
fn variables_are_set_once_and_keep_their_order() {
    let mut spec = sglang("");
    spec.environment = vec![
        ("A".to_owned(), "1".to_owned()),
        ("B".to_owned(), "2".to_owned()),
        ("A".to_owned(), "3".to_owned()),
    ];
    let changed = apply(&spec, &[variable("A", "9"), variable("C", "{MODEL}")]);
    let names: Vec<(String, String)> = changed.expect("a profile").environment;
    let text: Vec<String> = names.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(text, ["A=9", "B=2", "C={MODEL}"]);
    let gone = Change::RemoveVariable {
        name: "A".to_owned(),
    };
    assert_eq!(apply(&spec, &[gone]).expect("it").environment.len(), 1);
}

#[test]
fn a_drafter_comes_with_its_arguments_and_goes_with_them() {
    let base = sglang("--mem 0.9");
    let with = apply(&base, &[drafter("/d")]).expect("a profile");
    assert_eq!(
        with.arguments[8..].join(" "),
        "--mem 0.9 --speculative-algorithm EAGLE3 --speculative-draft-model-path {DRAFTER} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    );
    assert_eq!(with.parameters.drafter.as_deref(), Some("/d"));
    let other = apply(&with, &[drafter("/e")]).expect("a profile");
    assert_eq!(other.arguments, with.arguments);
    let back = apply(&with, &[Change::Drafter { model: None }]).expect("a profile");
    assert_eq!(back, base);
}

#[test]
fn a_drafter_that_is_named_in_full_is_replaced_in_its_place() {
    let named = sglang("--speculative-algorithm EAGLE3 --speculative-draft-model /x --b 1");
    assert_eq!(
        line(&named, &[drafter("/d")]),
        "--speculative-algorithm EAGLE3 --speculative-draft-model {DRAFTER} --b 1"
    );
    let json = vllm(r#"--speculative-config {"method":"eagle3","model":"/x"}"#);
    let changed = apply(&json, &[drafter("/d")]).expect("a profile");
    assert_eq!(
        changed.command().arguments.last().map(String::as_str),
        Some(r#"{"method":"eagle3","model":"/d"}"#)
    );
    let ngram = vllm(r#"--speculative-config {"method":"ngram"} --b 1"#);
    let changed = apply(&ngram, &[drafter("/d")]).expect("a profile");
    assert_eq!(changed.arguments[4..6], ["--b".to_owned(), "1".to_owned()]);
    assert!(changed.arguments[7].contains("eagle3"));
}

#[test]
fn what_would_change_nothing_or_cannot_run_is_refused() {
    let mut other = sglang("");
    other.engine = EngineKind::Other;
    assert_eq!(
        apply(&other, &[drafter("/d")]),
        Err(ChangeError::NoSpeculation)
    );
    let ranks = Change::TensorParallel { ranks: 4 };
    assert_eq!(
        apply(&vllm(""), std::slice::from_ref(&ranks)),
        Err(ChangeError::NoTensorParallel)
    );
    let changed = apply(&sglang(""), &[ranks]).expect("a profile");
    assert_eq!(changed.command().arguments[5], "4");
    assert!(matches!(
        apply(&sglang(""), &[set("--x", "{DRAFTER}")]),
        Err(ChangeError::Profile(_))
    ));
}

#[test]
fn a_switch_is_given_no_value() {
    struct Switches;
    impl Flags for Switches {
        fn usual(&self, _: EngineKind, spelled: &str) -> String {
            spelled.to_owned()
        }
        fn takes(&self, _: EngineKind, _: &str) -> Takes {
            Takes::Nothing
        }
    }
    let spec = ProfileSpec {
        arguments: words("--on model"),
        ..sglang("")
    };
    assert_eq!(
        apply_with(&spec, &[set("--on", "1")], &Switches),
        Err(ChangeError::TooManyValues("--on".to_owned()))
    );
    let gone = apply_with(&spec, &[without("--on")], &Switches).expect("a profile");
    assert_eq!(gone.arguments, ["model"]);
}

proptest! {
    #[test]
    fn a_flag_stands_once_and_the_others_stay(
        arguments in proptest::collection::vec("(--[abc]|--a=[12]|--no-b|-1|x|y)", 0..8),
        flag in "--(no-)?[abd]", value in proptest::option::of("(1|-2|--z|)"),
    ) {
        let spec = ProfileSpec { arguments, ..sglang("") };
        let value = value.filter(|_| !flag.starts_with("--no-"));
        let change = Change::SetArgument { flag: flag.clone(), value: value.clone() };
        let once = apply(&spec, std::slice::from_ref(&change)).expect("a profile");
        let twice = apply(&once, &[change]).expect("a profile");
        prop_assert_eq!(&once, &twice);

        let name = Name::of(&flag, spec.engine, &PlainFlags);
        let found = rows(&once.arguments, once.engine, &PlainFlags);
        let own: Vec<&Row> = found.iter().filter(|row| row.is(&name.usual)).collect();
        prop_assert_eq!(own.len(), 1);
        if !name.off {
            let values: Vec<String> = value.into_iter().collect();
            prop_assert_eq!(own[0].values(&once.arguments), values);
        }
        let others = |spec: &ProfileSpec| -> Vec<String> {
            rows(&spec.arguments, spec.engine, &PlainFlags)
                .iter()
                .filter(|row| row.name.is_some() && !row.is(&name.usual))
                .map(|row| row.spelled(&spec.arguments).to_owned())
                .collect()
        };
        prop_assert_eq!(others(&spec), others(&once));
    }

    #[test]
    fn what_is_removed_is_gone_and_nothing_else(
        head in proptest::collection::vec("(x|y)", 0..2),
        arguments in proptest::collection::vec("(--[abc]|--a=[12]|--no-b|-1)", 0..8),
        flag in "--(no-)?[abd]",
    ) {
        let spec = ProfileSpec {
            arguments: head.into_iter().chain(arguments).collect(),
            ..sglang("")
        };
        let change = Change::RemoveArgument { flag: flag.clone() };
        let once = apply(&spec, &[change]).expect("a profile");
        let usual = Name::of(&flag, spec.engine, &PlainFlags).usual;
        let kept = rows(&spec.arguments, spec.engine, &PlainFlags)
            .into_iter()
            .filter(|row| !row.is(&usual))
            .flat_map(|row| spec.arguments[row.start..row.end].to_vec());
        prop_assert_eq!(once.arguments, kept.collect::<Vec<String>>());
    }
}
