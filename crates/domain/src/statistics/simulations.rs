//! How often the rules err, by simulation. Seeded, so each figure is the same on
//! every machine; `docs/statistics.md` has them in a table. To see them:
//! `cargo test -p tokdyno-domain simulations -- --nocapture`.

mod advice;
mod coverage;
mod families;
mod looks;
pub(crate) mod world;

use world::{Critical, Effect, World};

/// Trials behind each figure: the standard error of a rate of 5 % is 0.22 %.
const TRIALS: u32 = 10_000;

/// The share of trials in which it happened, in percent; printed for the table.
fn rate(what: &str, trials: u32, mut happens: impl FnMut() -> bool) -> f64 {
    let count = (0..trials).filter(|_| happens()).count();
    let percent = 100.0 * count as f64 / f64::from(trials);
    println!("{what}: {percent:.2} % of {trials}");
    percent
}
