//! A whole run: from the specification to the outcome.

mod certificates;
mod stage;

use std::{
    cell::{OnceCell, RefCell},
    io::Write,
    rc::Rc,
    sync::mpsc::sync_channel,
    time::{Duration, Instant},
};

use tokdyno_domain::{
    meter::{METER_SCHEMA, MeterEvent, MeterEventKind, MeterOutcome, MeterSpec},
    prompts::Fit,
    workload::{StageKind, WorkloadError},
};
use tokio::task::LocalSet;

use self::stage::Stages;
use crate::{
    cancel::CancelFlag,
    connection::Target,
    events::{self, Calls, Emitter, Lines, Outlet, SpoolError},
    fit,
    load::{Shared, Slots},
    machine, preflight,
    progress::Outlook,
    request::{self, Extras, Template},
};

/// Why a specification cannot be run. Each says the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Written for another version.
    #[error(
        "The specification has version {0}, this meter reads version {METER_SCHEMA}. Use a meter and a server of the same version."
    )]
    Schema(u32),
    /// The workload is out of bounds.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The key cannot stand in a header.
    #[error(
        "The key holds a blank or a character that cannot stand in an HTTP header. Copy it again, without line breaks."
    )]
    Key,
    /// A name of nothing.
    #[error(
        "The model name is blank. Name a model, or leave it out to take the first one the server lists."
    )]
    Model,
    /// The spool file.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Too few open files allowed.
    #[error("{0}")]
    Files(String),
}

/// Checks everything that can be checked before anything is sent. Raises the
/// limit of open files.
///
/// # Errors
/// The first [`SpecError`] found.
pub fn check(spec: &MeterSpec) -> Result<(), SpecError> {
    if spec.schema != METER_SCHEMA {
        return Err(SpecError::Schema(spec.schema));
    }
    spec.workload.validate()?;
    if spec
        .api_key
        .as_ref()
        .is_some_and(|key| !request::is_usable_key(key))
    {
        return Err(SpecError::Key);
    }
    if spec
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return Err(SpecError::Model);
    }
    let most = spec
        .workload
        .levels
        .iter()
        .map(|level| level.kind)
        .max_by_key(|kind| kind.slots())
        .unwrap_or(StageKind::SingleStream);
    machine::make_room_for(most.slots()).map_err(|few| SpecError::Files(few.sentence(most)))
}

/// Measures, and hands every event to `emit` on the calling thread while
/// another one measures. Returns when all is over.
///
/// `emit` may take its time: up to 65,536 events wait. Beyond that progress is
/// dropped, and a request that finds no room ends the run as failed, because
/// waiting would spoil its times (what is finished is still handed over).
///
/// No runtime is needed around it, and it must not be called on a thread of one
/// that has other work to do: it blocks.
///
/// # Errors
/// [`SpecError`], before anything is sent and without any event.
pub fn run_blocking(
    spec: MeterSpec,
    cancel: &CancelFlag,
    emit: impl FnMut(MeterEvent),
) -> Result<MeterOutcome, SpecError> {
    check(&spec)?;
    let spool = spec.spool.as_deref().map(events::open_spool).transpose()?;
    let outlet = Calls {
        call: emit,
        spool: spool.map(|spool| Lines::new(None, Some(spool), cancel.clone())),
    };
    Ok(drive(spec, cancel, outlet))
}

/// Measures, and writes every event as a line of JSON to `output` and to the
/// spool file, if the specification names one. An output that is closed stops
/// the run unless there is a spool file.
///
/// # Errors
/// [`SpecError`], before anything is sent or written.
pub fn run_lines(
    spec: MeterSpec,
    cancel: &CancelFlag,
    output: impl Write,
) -> Result<MeterOutcome, SpecError> {
    check(&spec)?;
    let spool = spec.spool.as_deref().map(events::open_spool).transpose()?;
    let outlet = Lines::new(Some(output), spool, cancel.clone());
    Ok(drive(spec, cancel, outlet))
}

fn drive(spec: MeterSpec, cancel: &CancelFlag, mut outlet: impl Outlet) -> MeterOutcome {
    let (sender, receiver) = sync_channel(events::QUEUE);
    let emitter = Emitter::new(sender, cancel.clone());
    let flag = cancel.clone();
    let spawned = std::thread::Builder::new()
        .name("tokdyno-measure".to_owned())
        .spawn(move || measure_on_this_thread(&spec, flag, &emitter));
    let outcome = events::pump(&receiver, &mut outlet, cancel);
    // A panic there has already shown as a missing last event.
    if let Ok(thread) = spawned {
        let _ = thread.join();
    }
    outcome
}

fn measure_on_this_thread(spec: &MeterSpec, cancel: CancelFlag, emitter: &Emitter) {
    let mut outcome = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => {
            let local = LocalSet::new();
            let outcome = local.block_on(&runtime, measure(spec, cancel, emitter));
            // A name look-up that hangs must not hold the end up.
            drop(local);
            runtime.shutdown_background();
            outcome
        }
        Err(error) => MeterOutcome::Failed {
            reason: format!(
                "The measuring engine could not start: {error}. Check the limits of this process."
            ),
        },
    };
    if emitter.has_overrun() {
        outcome = MeterOutcome::Failed {
            reason: format!(
                "The reader of the events fell {} events behind, and waiting for it would have spoilt the times. Let it read faster, or let it read the spool file.",
                events::QUEUE
            ),
        };
    }
    emitter.emit(MeterEventKind::Finished { outcome });
}

async fn measure(spec: &MeterSpec, cancel: CancelFlag, emitter: &Emitter) -> MeterOutcome {
    // Our own flag beside the user's: we also stop by ourselves, with a reason.
    let stop = CancelFlag::new();
    let (outer, inner) = (cancel.clone(), stop.clone());
    tokio::task::spawn_local(async move {
        outer.cancelled().await;
        inner.cancel();
    });
    let prepared = tokio::select! {
        biased;
        prepared = prepare(spec, &stop, emitter) => prepared,
        () = cancel.cancelled() => return MeterOutcome::Cancelled,
    };
    match prepared {
        Ok((shared, slots)) => Stages::new(spec, shared, cancel, slots).run().await,
        Err(_) if cancel.is_cancelled() => MeterOutcome::Cancelled,
        Err(reason) => MeterOutcome::Failed { reason },
    }
}

/// All that comes before the first stage, and the event that says so.
async fn prepare(
    spec: &MeterSpec,
    stop: &CancelFlag,
    emitter: &Emitter,
) -> Result<(Rc<Shared>, Slots), String> {
    let workload = &spec.workload;
    let idle = Duration::from_secs_f64(workload.idle_timeout_s);
    let target = Target::resolve(&spec.endpoint, &spec.tls, idle).await?;
    let model = preflight::choose_model(spec, &target).await?;
    let template = Template::new(
        &spec.endpoint,
        spec.api_key.as_ref(),
        workload,
        &model,
        Extras::wanted(workload),
    );
    let stages = u32::try_from(workload.plan().len()).unwrap_or(u32::MAX);
    let mut shared = Shared {
        origin: Instant::now(),
        target,
        template,
        key: spec.api_key.clone(),
        prompts: workload.prompts.clone(),
        fit: Fit::default(),
        seed: workload.seed,
        idle,
        emitter: emitter.clone(),
        stop: stop.clone(),
        hopeless: OnceCell::new(),
        buffer: Shared::new_buffer(),
        stages,
        outlook: RefCell::new(Outlook::new(workload)),
    };
    let mut connection = None;
    let dropped_fields = preflight::find_variant(spec, &mut shared, &mut connection).await?;
    shared.fit = fit::find(spec, &shared, &mut connection).await?;
    emitter.emit(MeterEventKind::Started {
        meter_version: env!("CARGO_PKG_VERSION").to_owned(),
        client: machine::client_info(),
        model,
        stages,
        dropped_fields,
    });
    Ok((Rc::new(shared), vec![connection]))
}
