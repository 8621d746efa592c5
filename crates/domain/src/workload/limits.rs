//! Bounds of what a workload may ask for. Beyond them a typing error is likelier
//! than an intention.

/// Most requests in flight.
pub const CONCURRENCY: u32 = 8192;
/// Most requests in a stage.
pub const REQUESTS: u32 = 1_000_000;
/// Longest stage in seconds: a day.
pub const DURATION_S: f64 = 86_400.0;
/// Most completion tokens of a request.
pub const OUTPUT_TOKENS: u32 = 1_000_000;
/// Most repeats.
pub const REPEATS: u32 = 100;
/// Most load levels.
pub const LEVELS: usize = 64;
/// Most requests per second of an open loop.
pub const RATE: f64 = 10_000.0;
/// Smallest and largest burstiness.
pub const BURSTINESS: (f64, f64) = (0.01, 1000.0);
/// Deepest nesting of the further fields: a reader of JSON takes 128 levels, and the
/// fields stand within a workload, within a run, within an answer.
pub const EXTRA_DEPTH: usize = 64;
/// Slowest and fastest replay of a trace.
pub const SPEED: (f64, f64) = (0.01, 1000.0);
