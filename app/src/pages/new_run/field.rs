//! The fields that can be wrong, and reading what stands in them.

use std::str::FromStr;

use tokdyno_domain::{
    goodput::BoundsError,
    views::measure::{LoadForm, WorkloadForm},
    workload::WorkloadError,
};

/// A field that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Field {
    Url,
    Name,
    Hardware,
    Single,
    Concurrencies,
    UpTo,
    Gain,
    Rates,
    Burstiness,
    Requests,
    Seconds,
    Tokens,
    Repeats,
    Warmup,
    Prompts,
    PromptTokens,
    Groups,
    PrefixTokens,
    RestTokens,
    GoodTtft,
    GoodTpot,
    GoodE2el,
    // Of an experiment, whose form has a workload too.
    ExperimentName,
    Varied,
    Launches,
    Looks,
    Budget,
    GiveBack,
    Effect,
    Seed,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pages) struct Wrong {
    pub(in crate::pages) field: Field,
    pub(in crate::pages) sentence: String,
}

impl Field {
    /// Element id of its input; the note about it has the same with `-error`.
    pub(in crate::pages) const fn id(self) -> &'static str {
        match self {
            Self::Url => "run-url",
            Self::Name => "run-name",
            Self::Hardware => "run-hardware",
            Self::Single => "run-single",
            Self::Concurrencies => "run-concurrencies",
            Self::UpTo => "run-up-to",
            Self::Gain => "run-gain",
            Self::Rates => "run-rates",
            Self::Burstiness => "run-burstiness",
            Self::Requests => "run-requests",
            Self::Seconds => "run-seconds",
            Self::Tokens => "run-tokens",
            Self::Repeats => "run-repeats",
            Self::Warmup => "run-warmup",
            Self::Prompts => "run-prompts",
            Self::PromptTokens => "run-prompt-tokens",
            Self::Groups => "run-groups",
            Self::PrefixTokens => "run-prefix-tokens",
            Self::RestTokens => "run-rest-tokens",
            Self::GoodTtft => "run-good-ttft",
            Self::GoodTpot => "run-good-tpot",
            Self::GoodE2el => "run-good-e2el",
            Self::ExperimentName => "experiment-name",
            Self::Varied => "experiment-varied",
            Self::Launches => "experiment-launches",
            Self::Looks => "experiment-looks",
            Self::Budget => "experiment-budget",
            Self::GiveBack => "experiment-back",
            Self::Effect => "experiment-effect",
            Self::Seed => "experiment-seed",
        }
    }
}

/// The field that an error belongs to.
pub(in crate::pages) fn field_of(error: &WorkloadError, form: &WorkloadForm) -> Field {
    match error {
        WorkloadError::Concurrency(_)
        | WorkloadError::NoLadder
        | WorkloadError::DuplicateLevel(_)
        | WorkloadError::NoLevels
        | WorkloadError::TooManyLevels(_) => match form.load {
            LoadForm::Concurrencies => Field::Concurrencies,
            LoadForm::Saturation => Field::UpTo,
            LoadForm::Rates => Field::Rates,
        },
        WorkloadError::ConcurrencyList(_) => Field::Concurrencies,
        WorkloadError::Saturation(_) => Field::Gain,
        // A trace is replayed at its own rate, which this form does not offer.
        WorkloadError::Rate(_) | WorkloadError::RateList(_) | WorkloadError::Speed(_) => {
            Field::Rates
        }
        WorkloadError::Burstiness(_) => Field::Burstiness,
        // The single stream's requests and a stage's share a bound.
        WorkloadError::Requests(requests)
            if form.single_stream.map(u64::from) == Some(*requests) =>
        {
            Field::Single
        }
        WorkloadError::Requests(_)
        | WorkloadError::FewerRequestsThanSlots { .. }
        | WorkloadError::RequestsOnLadder => Field::Requests,
        WorkloadError::Duration(_) | WorkloadError::TwoSizes => Field::Seconds,
        WorkloadError::OutputTokens(_)
        | WorkloadError::Temperature(_)
        | WorkloadError::IdleTimeout(_)
        | WorkloadError::ThinkingWithoutChat
        | WorkloadError::ExtraField(_)
        | WorkloadError::ExtraNul(_)
        | WorkloadError::ExtraDepth(_) => Field::Tokens,
        WorkloadError::Repeats(_) => Field::Repeats,
        WorkloadError::Warmup(_) => Field::Warmup,
        WorkloadError::Prompts(_) if form.prompt_file.is_none() => {
            if form.shared_prefix.is_some() {
                Field::Groups
            } else {
                Field::PromptTokens
            }
        }
        WorkloadError::Prompts(_)
        | WorkloadError::NoTrace
        | WorkloadError::OpenConversations
        | WorkloadError::ChatNeeded(_) => Field::Prompts,
        WorkloadError::Bounds(error) => bound_of(error, form),
    }
}

/// The first bound that has this value.
fn bound_of(error: &BoundsError, form: &WorkloadForm) -> Field {
    let BoundsError::Value(wrong) = error else {
        return Field::GoodTtft;
    };
    let is = |bound: Option<f64>| bound.is_some_and(|bound| bound.total_cmp(wrong).is_eq());
    if is(form.goodput.ttft_ms) {
        Field::GoodTtft
    } else if is(form.goodput.tpot_ms) {
        Field::GoodTpot
    } else {
        Field::GoodE2el
    }
}

/// A whole number, or none where nothing stands.
pub(in crate::pages) fn number(field: Field, text: &str) -> Result<Option<u32>, Wrong> {
    read(
        field,
        text,
        "is not a whole number that can be used here. Write digits only, such as 8.",
    )
}

/// A number with or without decimals, or none where nothing stands.
pub(in crate::pages) fn decimal(field: Field, text: &str) -> Result<Option<f64>, Wrong> {
    read(
        field,
        text,
        "is not a number. Write it with a point, such as 0.5, and without its unit.",
    )
}

fn read<T: FromStr>(field: Field, text: &str, trouble: &str) -> Result<Option<T>, Wrong> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| Wrong {
        field,
        sentence: format!("`{text}` {trouble}"),
    })
}

/// What must not be missing.
pub(in crate::pages) fn required<T>(
    field: Field,
    read: impl Fn(Field, &str) -> Result<Option<T>, Wrong>,
    text: &str,
) -> Result<T, Wrong> {
    read(field, text)?.ok_or_else(|| Wrong {
        field,
        sentence: "A number is needed here.".to_owned(),
    })
}
