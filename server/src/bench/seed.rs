//! A seed that no run before had.

/// The system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error(
    "The system gives no random numbers ({0}), so no prompts can be drawn that were not sent before. Give --seed."
)]
pub(crate) struct SeedError(getrandom::Error);

/// A seed that no run before had, almost surely. It has 32 bits, so that people can
/// type it again and every reader of JSON keeps it whole.
///
/// # Errors
/// The system gives no random numbers.
pub(crate) fn fresh_seed() -> Result<u64, SeedError> {
    getrandom::u32().map(u64::from).map_err(SeedError)
}
