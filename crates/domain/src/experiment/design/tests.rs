//! Tests of designs and their cells.

use proptest::prelude::*;

use super::{
    super::{
        ablation::steps_of,
        difference::changes_between,
        factor::{drafter_factor, nccl_factors},
        samples::{factor, set, sglang, switch, variable, without},
    },
    *,
};
use crate::secrets::SECRET_MASK;

fn titles(cells: &[Cell]) -> Vec<&str> {
    cells.iter().map(|cell| cell.title.as_str()).collect()
}

fn tuned() -> ProfileSpec {
    let mut tuned = sglang("--num-continuous-decode-steps 4");
    tuned.environment = [("NCCL_PROTO", "LL"), ("NCCL_ALGO", "Ring")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    tuned
}

#[test]
fn one_at_a_time_varies_each_factor_from_the_base() {
    let design = Design::OneAtATime {
        factors: vec![factor("--a", &["1", "2"]), factor("--b", &["3"])],
    };
    let cells = design.cells(&sglang("--a 0"), &[]).expect("cells");
    assert_eq!(titles(&cells), ["base", "--a 1", "--a 2", "--b 3"]);
    assert_eq!(cells[0].spec, sglang("--a 0"));
    assert_eq!(cells[3].spec, sglang("--a 0 --b 3"));
    assert_eq!(
        cells[1].levels,
        [
            ("--a".to_owned(), "1".to_owned()),
            ("--b".to_owned(), "as it is".to_owned())
        ]
    );
    assert_eq!(cells[1].hash, cells[1].spec.hash());
}

#[test]
fn the_whole_space_of_nccl_with_and_without_a_drafter_fits() {
    let mut factors = nccl_factors();
    factors.push(drafter_factor("/d"));
    let design = Design::FullGrid { factors };
    assert_eq!(design.most_cells(), Some(144));
    let cells = design.cells(&sglang(""), &[]).expect("cells");
    assert_eq!(cells.len(), MOST_CELLS);
    assert_eq!(
        cells[0].title,
        "NCCL_PROTO as NCCL chooses, NCCL_ALGO as NCCL chooses, channels as NCCL chooses, drafter off"
    );
    let last = cells.last().expect("a cell");
    assert_eq!(last.index, 143);
    assert_eq!(last.spec.environment.len(), 4);
    assert!(last.spec.parameters.drafter.is_some());
}

#[test]
fn cells_that_come_to_the_same_command_are_one() {
    let design = Design::FullGrid {
        factors: vec![factor("--a", &["0", "1"])],
    };
    let cells = design.cells(&sglang("--a 0"), &[]).expect("cells");
    assert_eq!(titles(&cells), ["--a as it is", "--a 1"]);
    assert_eq!(cells[0].also, [vec![("--a".to_owned(), "0".to_owned())]]);
    let same = Design::FullGrid {
        factors: vec![factor("--a", &["0"])],
    };
    assert_eq!(
        same.cells(&sglang("--a 0"), &[]),
        Err(ExperimentError::OneCell)
    );
}

#[test]
fn an_ablation_leads_from_one_profile_to_the_other() {
    let base = sglang("");
    let changes = changes_between(&base, &tuned()).expect("changes");
    let design = Design::Ablation {
        steps: steps_of(&changes, false),
    };
    let cells = design.cells(&base, &[]).expect("cells");
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[0].spec, base);
    assert_eq!(cells[0].steps, Some(StepSet::NONE));
    assert_eq!(cells[1].title, "B");
    assert_eq!(cells[1].hash, tuned().hash());
    assert_eq!(cells[1].steps, Some(StepSet::all(3)));
    assert_eq!(
        titles(&cells)[2..],
        [
            "A + --num-continuous-decode-steps 4",
            "A + --num-continuous-decode-steps 4 + NCCL_PROTO=LL",
            "A + NCCL_PROTO=LL",
            "A + NCCL_ALGO=Ring",
            "B without --num-continuous-decode-steps 4",
            "B without NCCL_PROTO=LL",
        ]
    );
    assert_eq!(
        cells[7].levels[1],
        ("NCCL_PROTO=LL".to_owned(), "without".to_owned())
    );
    let grouped = Design::Ablation {
        steps: steps_of(&changes, true),
    };
    assert_eq!(grouped.cells(&base, &[]).expect("cells").len(), 4);
}

#[test]
fn profiles_are_compared_as_they_are() {
    let named = [
        ("base".to_owned(), sglang("")),
        ("tuned".to_owned(), tuned()),
    ];
    let cells = Design::Profiles
        .cells(&sglang("--ignored"), &named)
        .expect("cells");
    assert_eq!(titles(&cells), ["base", "tuned"]);
    assert_eq!(cells[1].spec, tuned());
    let refused = |profiles: &[(String, ProfileSpec)]| {
        Design::Profiles
            .cells(&sglang(""), profiles)
            .expect_err("a refusal")
    };
    assert_eq!(refused(&named[..1]), ExperimentError::Profiles);
    assert_eq!(
        refused(&[named[0].clone(), named[0].clone()]),
        ExperimentError::Twice("base".to_owned())
    );
    assert_eq!(
        refused(&[named[0].clone(), ("again".to_owned(), sglang(""))]),
        ExperimentError::OneCell
    );
    let mut masked = sglang("");
    masked
        .environment
        .push(("HF_TOKEN".to_owned(), SECRET_MASK.to_owned()));
    assert!(matches!(
        refused(&[named[0].clone(), ("masked".to_owned(), masked)]),
        ExperimentError::Masked { .. }
    ));
}

#[test]
fn what_compares_nothing_is_refused() {
    let factors = |factors: Vec<Factor>| {
        Design::FullGrid { factors }
            .validate()
            .expect_err("a refusal")
    };
    assert_eq!(factors(Vec::new()), ExperimentError::NothingVaried);
    assert!(matches!(
        factors(vec![factor("--a", &[])]),
        ExperimentError::OneLevel(_)
    ));
    assert!(matches!(
        factors(vec![factor("--a", &["1"]), factor("--a", &["2"])]),
        ExperimentError::Twice(_)
    ));
    assert!(matches!(
        factors(vec![factor("--a", &["1", "1"])]),
        ExperimentError::Twice(_)
    ));
    let mut same = factor("--a", &["1", "2"]);
    same.levels[2].changes = same.levels[1].changes.clone();
    assert!(matches!(
        factors(vec![same]),
        ExperimentError::SameLevels(..)
    ));
    for bad in ["", "  ", "a\nb", &"x".repeat(81)] {
        let mut unnamed = factor("--a", &["1"]);
        unnamed.levels[1].label = bad.to_owned();
        assert!(matches!(factors(vec![unnamed]), ExperimentError::Label(_)));
    }
    let mut wrong = factor("--a", &["1"]);
    wrong.levels[1].changes = vec![switch("a")];
    assert!(matches!(
        factors(vec![wrong]),
        ExperimentError::Change { .. }
    ));
    let many: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(
        factors(vec![factor("--a", &many), factor("--b", &many)]),
        ExperimentError::Cells(169)
    );
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let mut other = factor("--b", &["1"]);
    other.levels[1].changes = vec![without("--no-a")];
    let overlap = Design::OneAtATime {
        factors: vec![factor("--a", &["1"]), other],
    };
    assert_eq!(
        overlap.validate(),
        Err(ExperimentError::Overlap(
            "--a".to_owned(),
            "--b".to_owned(),
            "--a".to_owned()
        ))
    );
    let step = |label: &str, changes: Vec<Change>| Step {
        label: label.to_owned(),
        changes,
    };
    let speculation = Design::Ablation {
        steps: vec![
            step("drafter", vec![Change::Drafter { model: None }]),
            step("steps", vec![set("--speculative-num-steps", "5")]),
        ],
    };
    assert!(matches!(
        speculation.validate(),
        Err(ExperimentError::Overlap(..))
    ));
    // Which spellings are one flag is known to whoever knows the engine.
    struct Known;
    impl Flags for Known {
        fn usual(&self, _: EngineKind, _: &str) -> String {
            "--tp-size".to_owned()
        }
        fn takes(&self, _: EngineKind, _: &str) -> super::super::Takes {
            super::super::Takes::One
        }
    }
    let spelled = Design::OneAtATime {
        factors: vec![factor("--tp", &["1"]), factor("--x", &["2"])],
    };
    assert_eq!(spelled.validate(), Ok(()));
    assert!(matches!(
        spelled.cells_with(&sglang(""), &[], &Known),
        Err(ExperimentError::Overlap(..))
    ));
}

#[test]
fn steps_that_do_nothing_and_too_many_of_them_are_refused() {
    let step = |label: &str, changes: Vec<Change>| Step {
        label: label.to_owned(),
        changes,
    };
    let refused = |steps: Vec<Step>| {
        Design::Ablation { steps }
            .cells(&sglang("--a 1"), &[])
            .expect_err("a refusal")
    };
    assert_eq!(refused(Vec::new()), ExperimentError::NothingVaried);
    assert_eq!(
        refused(vec![step("x", Vec::new())]),
        ExperimentError::EmptyStep("x".to_owned())
    );
    assert_eq!(
        refused(vec![
            step("x", vec![variable("A", "1")]),
            step("y", vec![set("--a", "1")])
        ]),
        ExperimentError::EmptyStep("y".to_owned())
    );
    let many = (0..9)
        .map(|number| {
            let name = format!("V{number}");
            step(&name, vec![variable(&name, "1")])
        })
        .collect();
    assert_eq!(refused(many), ExperimentError::Steps(9));
}

proptest! {
    #[test]
    fn every_choice_of_levels_is_in_exactly_one_cell(
        sizes in proptest::collection::vec(1_usize..4, 1..4),
        full in any::<bool>(),
    ) {
        let values = ["1", "2", "3"];
        let factors: Vec<Factor> = sizes
            .iter()
            .enumerate()
            .map(|(index, size)| factor(&format!("--f{index}"), &values[..*size]))
            .collect();
        let design = if full {
            Design::FullGrid { factors }
        } else {
            Design::OneAtATime { factors }
        };
        // The second value of the first factor is what the base has already.
        let cells = design.cells(&sglang("--f0 2"), &[]);
        let expected = design.most_cells().expect("a count");
        match cells {
            Ok(cells) => {
                let mut levels: Vec<_> = cells
                    .iter()
                    .flat_map(|cell| std::iter::once(&cell.levels).chain(&cell.also))
                    .collect();
                prop_assert_eq!(levels.len() as u64, expected);
                levels.sort();
                levels.dedup();
                prop_assert_eq!(levels.len() as u64, expected);
                let mut hashes: Vec<_> = cells.iter().map(|cell| &cell.hash).collect();
                hashes.sort();
                hashes.dedup();
                prop_assert_eq!(hashes.len(), cells.len());
                for (place, cell) in (0_u32..).zip(&cells) {
                    prop_assert_eq!(cell.index, place);
                }
            }
            Err(error) => prop_assert_eq!(error, ExperimentError::OneCell),
        }
    }
}
