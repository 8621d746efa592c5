//! How often each configuration is launched, and what all of it may cost.

use leptos::prelude::*;
use tokdyno_domain::views::servers::ServerList;

use super::{
    super::{
        new_launch::{GiveBack, RestoreChoice},
        new_run::{Field, Fold, Kind, Note, Wrong, input},
        server::Place,
    },
    form::{Fields, launches_help},
};

/// Launches, looks, the smallest effect that matters, seed.
#[component]
pub(super) fn Repeats(fields: Fields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let typed = !fields.seed.get_untracked().is_empty();
    view! {
        <fieldset class="panel">
            <legend>"How often"</legend>
            <div class="measure-fields">
                {input(
                    Field::Launches,
                    "Launches of each configuration",
                    launches_help(),
                    fields.launches,
                    Kind::Whole,
                    wrong,
                )}
                {input(
                    Field::Looks,
                    "Look after so many launches of each",
                    "With commas, such as 2, 4: what is settled then is launched no more. Blank looks at the end only. Every look declared makes each verdict a little stricter, so that looking often proves nothing by chance.",
                    fields.looks,
                    Kind::Text,
                    wrong,
                )}
                {input(
                    Field::Effect,
                    "Smallest effect that matters, %",
                    "Differences that are certainly below it count as no clear change.",
                    fields.effect,
                    Kind::Decimal,
                    wrong,
                )}
            </div>
            <p class="choice">
                <input
                    id="experiment-skip"
                    type="checkbox"
                    aria-describedby="experiment-skip-help"
                    checked=fields.skip_measured.get_untracked()
                    prop:checked=fields.skip_measured
                    on:change=move |event| fields.skip_measured.set(event_target_checked(&event))
                />
                <label for="experiment-skip">"Take over what was measured before"</label>
            </p>
            <p id="experiment-skip-help" class="field-help">
                "What earlier experiments on this host measured of the same commands under the same workload is not launched again. It stands under another day's conditions, so it is shown and not paired."
            </p>
            <Fold title="Order" open=typed fields=&[Field::Seed] wrong>
                {input(
                    Field::Seed,
                    "Seed",
                    "The order of the launches is shuffled from it and kept with the experiment. Blank draws one.",
                    fields.seed,
                    Kind::Whole,
                    wrong,
                )}
            </Fold>
        </fieldset>
    }
}

/// Budget, the time at which the host is wanted back, and production.
#[component]
pub(super) fn Limits(
    fields: Fields,
    servers: ServerList,
    ready: Signal<bool>,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    view! {
        <fieldset class="panel">
            <legend>"What it may cost"</legend>
            {input(
                Field::Budget,
                "GPU minutes",
                "Minutes times the GPUs of a launch. When they are used up, the experiment pauses. Blank for no limit.",
                fields.gpu_minutes,
                Kind::Decimal,
                wrong,
            )}
            <GiveBack
                id=Field::GiveBack.id()
                chosen=fields.give_back
                ready
                help="No launch begins that could not end by then. What is left waits, paused."
            />
            <Note field=Field::GiveBack wrong/>
            <RestoreChoice
                id="experiment-restore"
                chosen=fields.restore
                host=fields.host
                servers
                help="It is stopped its own way before the first launch, and started again when the experiment is over or paused, however it ends."
            />
            <Place through_forward=fields.through_forward/>
        </fieldset>
    }
}
