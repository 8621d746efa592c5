//! From the form of an experiment to what is done: cells, order, pace and cautions.

use std::time::SystemTime;

use sqlx::{PgConnection, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::Actor,
    experiment::{
        Budget, Change, ExperimentSpec, Fit, LL128_CAUTION, Paces, Plan, Step, Trial, TrialStatus,
        estimate,
    },
    host::Inventory,
    ids::{HostId, LaunchId},
    launch::GIVE_BACK_LEAD_S,
    timestamp::Timestamp,
    views::experiments::{ExperimentForm, ExperimentPreview, PreviewCell},
};
use tokdyno_engines::{
    knowledge::{self, KnownFlags},
    shell,
};

use super::{
    design::{Chosen, changes, chosen, design_of, hold_profiles},
    measured::{self, Earlier},
    paces::{gpus, paces},
};
use crate::{
    LabError,
    commands::fresh_seed,
    hosts,
    launch_commands::{check_give_back, may_be_restored, workload_of},
    profile_rows,
};

/// Launches of a configuration from which on their spread can be seen well enough.
const ENOUGH_LAUNCHES: u32 = 3;

/// An experiment that can be queued.
pub(super) struct Planned {
    pub(super) spec: ExperimentSpec,
    pub(super) host: HostId,
    pub(super) base: Chosen,
    pub(super) restore: Option<LaunchId>,
    pub(super) skip_measured: bool,
    pub(super) plan: Plan,
    pub(super) paces: Paces,
    pub(super) earlier: Vec<Earlier>,
    steps: Vec<Step>,
}

/// Now, by this machine's clock.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_datetime(OffsetDateTime::from(SystemTime::now()))
}

/// Holds profiles and host of a form until the transaction ends, so that what is planned
/// from them is what they are when it is queued.
pub(super) async fn hold(
    connection: &mut PgConnection,
    actor: &Actor,
    form: &ExperimentForm,
) -> Result<(), LabError> {
    hold_profiles(connection, actor, form).await?;
    hosts::lock(connection, actor, form.host).await?;
    Ok(())
}

/// Plans what the form asks for, from profiles and host as they are now.
pub(super) async fn plan(
    connection: &mut PgConnection,
    actor: &Actor,
    form: &ExperimentForm,
) -> Result<Planned, LabError> {
    let base = chosen(connection, actor, form.base).await?;
    let (design, profiles, steps) = design_of(connection, actor, form, &base).await?;
    let inventory = inventory(connection, actor, form.host).await?;
    if let Some(at) = form.give_back_at {
        check_give_back(at, GIVE_BACK_LEAD_S, now())?;
    }
    let workload = workload_of(&form.workload)?;
    let seed = match form.seed {
        Some(seed) => seed,
        None => fresh_seed()?,
    };
    let spec = form.spec(design, workload, seed);
    let plan = spec
        .plan_with(&base.spec, &profiles, &KnownFlags)
        .map_err(|error| LabError::Invalid(error.to_string()))?;
    for cell in &plan.cells {
        profile_rows::checked(&cell.spec)?;
    }
    if let Some(restore) = form.restore {
        may_be_restored(connection, actor, restore, form.host).await?;
    }
    let workload = spec.workload.hash();
    let paces = paces(
        connection,
        form.host,
        &plan.cells,
        &base.spec.hash(),
        &workload,
        gpus(plan.cells.iter().map(|cell| &cell.spec), inventory.as_ref()),
    )
    .await?;
    let earlier = if form.skip_measured {
        measured::earlier(connection, actor, form.host, &plan.cells, &spec).await?
    } else {
        Vec::new()
    };
    Ok(Planned {
        spec,
        host: form.host,
        base,
        restore: form.restore,
        skip_measured: form.skip_measured,
        plan,
        paces,
        earlier,
        steps,
    })
}

impl Planned {
    fn statuses(&self) -> Vec<TrialStatus> {
        let trials = self.plan.trials.iter().copied();
        trials.map(TrialStatus::planned).collect()
    }

    /// What was measured before and is taken over.
    pub(super) fn taken_over(&self) -> Vec<(Trial, &Earlier)> {
        measured::taken_over(
            &self.statuses(),
            &self.plan.cells,
            &self.spec.workload.hash(),
            &self.earlier,
        )
    }

    /// What it would do and cost.
    pub(super) fn preview(self) -> ExperimentPreview {
        let taken_over = self.taken_over();
        let to_run: Vec<Trial> = self
            .plan
            .trials
            .iter()
            .copied()
            .filter(|trial| !taken_over.iter().any(|(taken, _)| taken == trial))
            .collect();
        let estimate = estimate(
            &to_run,
            &self.paces,
            now(),
            &self.spec.budget,
            0.0,
            GIVE_BACK_LEAD_S,
        );
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let cautions = self.cautions(&to_run, estimate.fit);
        ExperimentPreview {
            cells: self
                .plan
                .cells
                .iter()
                .map(|cell| PreviewCell {
                    title: cell.title.clone(),
                    command: shell::quote(&cell.spec.command()),
                    hash: cell.hash.clone(),
                })
                .collect(),
            launches: count(self.plan.trials.len()),
            measured: count(taken_over.len()),
            estimate,
            cautions,
            steps: self.steps,
        }
    }

    fn cautions(&self, to_run: &[Trial], fit: Fit) -> Vec<String> {
        let mut cautions = Vec::new();
        if self.spec.launches_per_cell < ENOUGH_LAUNCHES {
            cautions.push(format!(
                "{} launches of each configuration hardly show how much launches differ among themselves. Three or more do.",
                self.spec.launches_per_cell
            ));
        }
        let limited = self.spec.budget != Budget::default();
        if limited && !to_run.is_empty() && fit == Fit::None {
            cautions.push(self.none_fits(to_run));
        }
        let changes = changes(&self.spec.design);
        let is_ll128 = |change: &&Change| {
            matches!(change, Change::SetVariable { name, value }
                if name == "NCCL_PROTO" && value.contains("LL128"))
        };
        if changes.iter().any(is_ll128) {
            cautions.push(LL128_CAUTION.to_owned());
        }
        for change in changes {
            let (Change::SetArgument { flag, .. } | Change::SetArgumentValues { flag, .. }) =
                change
            else {
                continue;
            };
            if let Some(why) = knowledge::is_inert(self.base.spec.engine, flag, None) {
                let caution = format!("{flag}: {why}");
                if !cautions.contains(&caution) {
                    cautions.push(caution);
                }
            }
        }
        cautions
    }

    fn none_fits(&self, to_run: &[Trial]) -> String {
        let first = to_run.first().map(|trial| self.paces.seconds(trial.cell));
        match first.flatten() {
            None => super::unknown_pace(&self.base.name),
            Some(seconds) => format!(
                "Not even the first launch fits: it takes about {}. Allow more, or choose a shorter workload.",
                tokdyno_domain::text::duration(seconds)
            ),
        }
    }
}

async fn inventory(
    connection: &mut PgConnection,
    actor: &Actor,
    host: HostId,
) -> Result<Option<Inventory>, LabError> {
    let inventory = sqlx::query_scalar!(
        r#"SELECT inventory AS "inventory: Json<Inventory>" FROM hosts
           WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL"#,
        host.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::NoSuchHost(host))?;
    Ok(inventory.map(|inventory| inventory.0))
}
