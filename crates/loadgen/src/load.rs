//! Putting load on the server: in a closed loop, so many slots that each send one
//! request after the other, or in an open loop, each request at its time.

mod closed;
mod connect;
mod job;
mod open;
mod state;
mod unwritten;

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use tokdyno_domain::{
    conditions::RepliesSeen,
    meter::ApiKey,
    metrics::Traced,
    prompts::{Fit, PromptSet},
    workload::{StageKind, limits},
};
use tokio::time::{Interval, MissedTickBehavior};

pub(crate) use self::connect::freshen;
use self::state::Load;
use crate::{
    cancel::CancelFlag,
    connection::{Connection, Target},
    events::Emitter,
    progress::Outlook,
    request::Template,
    schedule::Schedule,
};

/// One read never takes more; shared by all slots of the thread.
const READ_BUFFER: usize = 64 << 10;
/// How often progress is told.
const TICK: Duration = Duration::from_millis(250);

/// What all stages of a run share.
pub(crate) struct Shared {
    pub(crate) origin: Instant,
    pub(crate) target: Target,
    pub(crate) template: Template,
    pub(crate) key: Option<ApiKey>,
    pub(crate) prompts: PromptSet,
    /// How many random words make how many tokens.
    pub(crate) fit: Fit,
    pub(crate) seed: u64,
    pub(crate) idle: Duration,
    pub(crate) emitter: Emitter,
    /// Raised by the user, by a lost reader, or by ourselves with a reason.
    pub(crate) stop: CancelFlag,
    /// Why we stopped by ourselves.
    pub(crate) hopeless: OnceCell<String>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    pub(crate) stages: u32,
    pub(crate) outlook: RefCell<Outlook>,
}

/// When a closed load stops issuing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Until {
    Requests(u32),
    Seconds(f64),
}

/// When requests are sent.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Whenever one of the slots is free.
    Closed(Until),
    /// At these times.
    Open(Rc<Schedule>),
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct LoadPlan {
    pub(crate) stage: u32,
    pub(crate) kind: StageKind,
    pub(crate) warming: bool,
    /// Connections that are opened before the clock starts.
    pub(crate) slots: u32,
    pub(crate) shape: Shape,
    pub(crate) first_prompt: u64,
    pub(crate) max_tokens: u32,
}

/// Slots with their connections, kept from one load to the next.
pub(crate) type Slots = Vec<Option<Connection>>;

/// What became of a load.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The requests, in the order in which they were over.
    pub(crate) requests: Vec<Traced>,
    /// Why it ended before its time, if it did so by itself.
    pub(crate) ended_early: Option<String>,
    /// How much later than scheduled the requests of an open loop were sent,
    /// connecting not included, in ms.
    pub(crate) lags_ms: Vec<f64>,
    /// What the successful replies were like.
    pub(crate) replies: RepliesSeen,
}

/// Runs a load to its end, or until the stop flag is raised.
pub(crate) async fn run(shared: &Rc<Shared>, plan: LoadPlan, slots: &mut Slots) -> Loaded {
    shared.open(slots, plan.slots).await;
    let shape = plan.shape.clone();
    let load = Rc::new(Load::new(Rc::clone(shared), plan));
    match shape {
        Shape::Closed(_) => closed::run(&load, slots).await,
        Shape::Open(schedule) => open::run(&load, &schedule, slots).await,
    }
    load.loaded()
}

impl Shape {
    /// Requests to be sent; none where only time sets a bound.
    pub(crate) fn planned(&self) -> Option<u64> {
        match self {
            Self::Closed(Until::Requests(requests)) => Some(u64::from(*requests)),
            Self::Closed(Until::Seconds(_)) => None,
            Self::Open(schedule) => Some(schedule.times_ns.len() as u64),
        }
    }
}

/// A stage that was ended by the bound of requests says so.
fn too_many() -> String {
    format!(
        "A stage has at most {} requests, and its time was not over. Shorten the stage, or lower the load.",
        limits::REQUESTS
    )
}

/// When progress is told.
fn ticks() -> Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
