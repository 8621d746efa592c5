//! Whether a trial may begin within budget and time.

use tokdyno_domain::{
    experiment::{Budget, Fit, Paces, Trial, fits},
    launch::GIVE_BACK_LEAD_S,
    text,
};

use crate::experiments::{now, unknown_pace};

/// Why a trial does not fit, in a sentence with a remedy; none if it does.
pub(super) fn misfit(
    trial: Trial,
    paces: &Paces,
    budget: &Budget,
    spent_gpu_minutes: f64,
    base: &str,
) -> Option<String> {
    let fits = |budget: &Budget| {
        fits(
            now(),
            &[trial],
            paces,
            budget,
            spent_gpu_minutes,
            GIVE_BACK_LEAD_S,
        ) == Fit::All
    };
    if fits(budget) {
        return None;
    }
    let Some(seconds) = paces.seconds(trial.cell) else {
        return Some(unknown_pace(base));
    };
    let in_budget = fits(&Budget {
        give_back_at: None,
        ..*budget
    });
    let (takes, minutes) = (
        text::duration(seconds),
        seconds * f64::from(paces.gpus) / 60.0,
    );
    Some(match (budget.give_back_at, budget.gpu_minutes) {
        (Some(at), _) if in_budget => format!(
            "The next launch takes about {takes} and would not end before the host is given back at {}. Resume after that time, or plan another experiment.",
            at.exact()
        ),
        (_, most) => format!(
            "The next launch costs about {} GPU minutes, and {} of the {} are used up. Plan another experiment that takes over what was measured.",
            text::figure(minutes),
            text::figure(spent_gpu_minutes),
            text::optional(most),
        ),
    })
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{experiment::Pace, timestamp::Timestamp};

    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_its_reason() {
        let trial = Trial {
            number: 0,
            block: 0,
            cell: 0,
        };
        let known = Paces {
            overall: Some(Pace {
                ready_s: 60.0,
                measure_s: 60.0,
            }),
            gpus: 8,
            ..Paces::default()
        };
        let unknown = Paces {
            overall: None,
            ..known.clone()
        };
        let minutes = |most| Budget {
            gpu_minutes: Some(most),
            give_back_at: None,
        };
        let told = |paces: &Paces, budget: &Budget, spent| misfit(trial, paces, budget, spent, "p");
        assert_eq!(told(&unknown, &Budget::default(), 0.0), None);
        assert_eq!(told(&known, &minutes(16.0), 0.0), None);
        let used = told(&known, &minutes(16.0), 4.0).expect("too much");
        assert!(
            used.contains("about 16.00 GPU minutes") && used.contains("4.00 of the 16.00"),
            "{used}"
        );
        let unknown = told(&unknown, &minutes(16.0), 0.0).expect("unknown");
        assert!(unknown.contains("not known yet"), "{unknown}");
        let soon = Budget {
            gpu_minutes: Some(1000.0),
            give_back_at: Some(Timestamp(now().0 + 120_000_000)),
        };
        let late = told(&known, &soon, 0.0).expect("too late");
        assert!(late.contains("given back at"), "{late}");
    }
}
