//! Server functions: public endpoints, each of which asks the laboratory, which
//! asks who may do what. One file per subject; flat names for the pages.
#![expect(
    missing_docs,
    reason = "the server macro makes fields of the arguments, which cannot carry documentation"
)]

#[cfg(feature = "ssr")]
mod artefacts;
pub mod audit;
pub mod board;
pub mod compare;
#[cfg(feature = "ssr")]
mod context;
pub mod experiments;
pub mod failures;
pub mod founding;
pub mod gates;
pub mod hosts;
pub mod me;
pub mod measure;
#[cfg(feature = "ssr")]
mod plain_form;
pub mod profiles;
pub mod runs;
pub mod servers;

pub use audit::{Audit, audit};
pub use board::{Board, board};
pub use compare::{Compare, Frozen, Share, compare, frozen, share};
pub use experiments::{
    CancelExperiment, Experiment, Experiments, PauseExperiment, PreviewExperiment, QueueExperiment,
    ResumeExperiment, cancel_experiment, experiment, experiments, pause_experiment,
    preview_experiment, queue_experiment, resume_experiment,
};
pub use failures::{FailureGroup, Failures, failures};
pub use founding::{LoadFounding, load_founding};
pub use gates::{DecideGate, Gates, RecordGate, decide_gate, gates, record_gate};
pub use hosts::{
    AddHost, Adopt, CheckHost, CleanUp, EditHost, Host, Hosts, RemoveHost, RunningOn, add_host,
    adopt, check_host, clean_up, edit_host, host, hosts, remove_host, running_on,
};
pub use me::{AskMe, SignInRefusal, me, sign_in_refusal};
pub use measure::{Probe, QueueRun, probe, queue_run};
pub use profiles::{
    AddProfile, ArchiveProfile, DraftProfile, DuplicateProfile, FoundProfile, NamedDraft,
    PasteProfile, Profile, ProfileDiff, Profiles, RenameProfile, RevisionSpec, SaveProfile,
    add_profile, archive_profile, draft, duplicate_profile, found_profile, paste_profile, profile,
    profile_diff, profiles, rename_profile, revision_spec, save_profile,
};
pub use runs::{
    CancelRun, DeleteRun, Records, RenameRun, Run, Runs, cancel_run, delete_run, records,
    rename_run, run, runs,
};
pub use servers::{
    AskStop, Launch, LaunchByForm, LaunchLog, MeasureByForm, MeasureLaunch, QueueLaunch,
    RestoreLaunch, Servers, StopLaunch, launch, launch_by_form, launch_log, measure_by_form,
    measure_launch, queue_launch, restore_launch, servers, stop_launch, stop_question,
};
