//! From request records to figures. The definitions stand in `docs/metrics.md`;
//! a change of any of them raises [`METRIC_VERSION`], which is stored with every
//! run.

mod asked;
mod chunks;
mod distribution;
mod figures;
mod flags;
mod heed;
mod invariants;
mod peak;
mod request;
mod samples;
mod stage;
mod steady;
#[cfg(test)]
pub(crate) mod testing;

use self::samples::Samples;
pub use self::{
    asked::StageAsked,
    distribution::{Distribution, P99_NEEDS, median, percentile},
    figures::{StageFigures, cached_share},
    flags::StageFlag,
    invariants::FAILURE_FLAG_SHARE,
    request::{RequestFigures, request_figures},
    stage::{stage_figures, whole_stage},
};
pub(crate) use self::{
    chunks::gaps,
    invariants::{CACHE_HIT_SHARE, COMMON_HEAD},
};
use crate::record::{ChunkTrace, RequestRecord};

/// Version of the definitions in this module.
///
/// 2: tokens of chunks that were read together with the first one count as first
/// tokens, since they share its time.
pub const METRIC_VERSION: u32 = 2;

const NS_PER_US: u64 = 1000;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// A request with its chunk times, as a stage's figures need it.
pub type Traced = (RequestRecord, Option<ChunkTrace>);
