//! Why a workload cannot be run.

use super::{StageKind, limits};

/// Why a workload cannot be run. Each says the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// Out of 1..=[`limits::CONCURRENCY`].
    #[error("A concurrency of {0} cannot be measured. Choose 1 to {max} requests at once.", max = limits::CONCURRENCY)]
    Concurrency(u64),
    /// A list of concurrencies that does not read.
    #[error(
        "`{0}` is not a list of concurrencies. Write whole numbers with commas, such as 1,8,32,128."
    )]
    ConcurrencyList(String),
    /// A list of rates that does not read.
    #[error(
        "`{0}` is not a list of rates. Write requests per second with commas, such as 0.5,2,10."
    )]
    RateList(String),
    /// Two ends for one stage.
    #[error(
        "A stage ends after a number of requests or after a time, not after both. Leave one of them blank."
    )]
    TwoSizes,
    /// One number of requests for all rungs of a ladder.
    #[error(
        "To find where throughput saturates every step sends four requests per slot, so one number of requests cannot serve them all. Leave the requests blank, or give seconds per stage."
    )]
    RequestsOnLadder,
    /// The same level twice.
    #[error(
        "The load level {0} is asked for twice. Name each once and use repeats to run it more often."
    )]
    DuplicateLevel(StageKind),
    /// Nothing to do.
    #[error(
        "The workload has no load level. Choose the single stream or at least one concurrency."
    )]
    NoLevels,
    /// Too many levels.
    #[error("{0} load levels are too many. Choose at most {max}.", max = limits::LEVELS)]
    TooManyLevels(usize),
    /// Out of 1..=[`limits::REQUESTS`].
    #[error("A stage of {0} requests cannot be run. Choose 1 to {max}.", max = limits::REQUESTS)]
    Requests(u64),
    /// Fewer requests than slots.
    #[error(
        "{requests} requests cannot keep {concurrency} in flight. Ask for at least {concurrency}; four times as many give a steady figure."
    )]
    FewerRequestsThanSlots {
        /// Requests of the stage.
        requests: u32,
        /// Slots of the stage.
        concurrency: u32,
    },
    /// Not a positive, finite number within a day.
    #[error("A stage of {0} seconds cannot be run. Choose more than 0 and at most 86400.")]
    Duration(f64),
    /// Out of 1..=[`limits::OUTPUT_TOKENS`].
    #[error("{0} output tokens cannot be asked for. Choose 1 to {max}.", max = limits::OUTPUT_TOKENS)]
    OutputTokens(u64),
    /// Out of 1..=[`limits::REPEATS`].
    #[error("{0} repeats cannot be run. Choose 1 to {max}; three or more show the spread.", max = limits::REPEATS)]
    Repeats(u64),
    /// Too many warm-ups.
    #[error("{0} warm-up requests are too many. Choose 0 to {max}.", max = limits::CONCURRENCY)]
    Warmup(u64),
    /// Negative or not finite.
    #[error("A temperature of {0} is not possible. Choose 0 (the default) up to 2.")]
    Temperature(f64),
    /// Not positive or not finite.
    #[error("An idle time-out of {0} seconds is not possible. Choose 1 to 86400.")]
    IdleTimeout(f64),
    /// No prompt in a file.
    #[error(transparent)]
    Prompts(#[from] crate::prompts::PromptFileError),
    /// Out of 0.001..=[`limits::RATE`].
    #[error("A rate of {0} requests per second cannot be sent. Choose 0.001 to {max}.", max = limits::RATE)]
    Rate(f64),
    /// Out of [`limits::BURSTINESS`].
    #[error(
        "A burstiness of {0} is not possible. Choose 0.01 (bursts) over 1 (Poisson) to 1000 (even)."
    )]
    Burstiness(f64),
    /// Out of [`limits::SPEED`].
    #[error("A trace cannot be replayed {0} times as fast. Choose 0.01 to 1000.")]
    Speed(f64),
    /// A replay of nothing.
    #[error("There is no trace to replay. Give a trace file as the prompts, or choose a rate.")]
    NoTrace,
    /// Turns wait for each other, so no schedule can say when they are sent.
    #[error(
        "A conversation's next turn waits for the answer to the last, so it cannot be sent at a rate. Choose concurrencies for conversations."
    )]
    OpenConversations,
    /// Chats over the completions route.
    #[error("{0} are chats, and /v1/completions takes none. Choose the chat API.")]
    ChatNeeded(String),
    /// No chat template, no thinking.
    #[error(
        "Thinking is a switch of the chat template, which /v1/completions does not use. Choose the chat API, or leave the switch out."
    )]
    ThinkingWithoutChat,
    /// A field that is the workload's.
    #[error(
        "The field `{0}` of the request is set by the workload. Leave it out of the further fields."
    )]
    ExtraField(String),
    /// A further field that no database can keep.
    #[error(
        "The further field `{0}` holds a NUL character, which cannot be stored. Remove it from the further fields."
    )]
    ExtraNul(String),
    /// Deeper than [`limits::EXTRA_DEPTH`].
    #[error("The further field `{0}` is nested too deeply to be read back. Choose at most {max} levels.", max = limits::EXTRA_DEPTH)]
    ExtraDepth(String),
    /// Goodput bounds.
    #[error(transparent)]
    Bounds(crate::goodput::BoundsError),
    /// Out of 1..=50.
    #[error("A least gain of {0} % is not possible. Choose 1 to 50; 5 is usual.")]
    Saturation(u32),
    /// Nothing to climb.
    #[error(
        "To find where throughput saturates there must be at least two concurrencies, each larger than the one before. Give a rising list, such as 1,2,4,8,16."
    )]
    NoLadder,
}
