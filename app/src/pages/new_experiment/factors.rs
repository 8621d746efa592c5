//! What is varied, as signals: NCCL's factors to tick, a drafter, and any argument or
//! variable by name.

use leptos::prelude::*;
use tokdyno_domain::experiment::{
    Factor, drafter_factor, nccl_factors, plain_factor, plain_levels,
};

/// The level of NCCL that is only tried by whoever asks for it: it can corrupt data.
pub(super) const DOUBTFUL_LEVEL: &str = "LL128";

/// A ready-made factor, of which levels are ticked.
#[derive(Clone)]
pub(super) struct ReadyFactor {
    pub(super) factor: Factor,
    pub(super) on: RwSignal<bool>,
    /// One for each level.
    pub(super) levels: Vec<RwSignal<bool>>,
}

/// A factor by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnFactor {
    /// Tells rows apart while they come and go.
    pub(super) id: u32,
    pub(super) name: RwSignal<String>,
    /// With commas between them.
    pub(super) levels: RwSignal<String>,
}

/// All that can be varied.
#[derive(Clone, Copy)]
pub(super) struct FactorFields {
    pub(super) ready: StoredValue<Vec<ReadyFactor>>,
    pub(super) with_drafter: RwSignal<bool>,
    pub(super) drafter: RwSignal<String>,
    pub(super) own: RwSignal<Vec<OwnFactor>>,
    next_id: StoredValue<u32>,
}

impl ReadyFactor {
    fn new(factor: Factor) -> Self {
        let levels = factor
            .levels
            .iter()
            .map(|level| RwSignal::new(level.label != DOUBTFUL_LEVEL))
            .collect();
        Self {
            factor,
            on: RwSignal::new(false),
            levels,
        }
    }

    /// Ticks these levels; whether all of them are known.
    fn tick(&self, wanted: &[String]) -> bool {
        let places: Option<Vec<usize>> = wanted
            .iter()
            .map(|label| {
                self.factor
                    .levels
                    .iter()
                    .position(|level| level.label.eq_ignore_ascii_case(label))
            })
            .collect();
        let Some(places) = places else {
            return false;
        };
        self.on.set(true);
        if !places.is_empty() {
            for (place, level) in self.levels.iter().enumerate() {
                level.set(places.contains(&place));
            }
        }
        true
    }

    fn ticked(&self) -> Option<Factor> {
        self.on.get().then(|| Factor {
            name: self.factor.name.clone(),
            levels: self
                .factor
                .levels
                .iter()
                .zip(&self.levels)
                .filter(|(_, ticked)| ticked.get())
                .map(|(level, _)| level.clone())
                .collect(),
        })
    }
}

impl FactorFields {
    pub(super) fn new() -> Self {
        Self {
            ready: StoredValue::new(nccl_factors().into_iter().map(ReadyFactor::new).collect()),
            with_drafter: RwSignal::new(false),
            drafter: RwSignal::new(String::new()),
            own: RwSignal::new(Vec::new()),
            next_id: StoredValue::new(0),
        }
    }

    /// Varies what the address names: a ready-made factor where it has all the levels,
    /// else one by hand.
    pub(super) fn vary(self, name: &str, levels: &str) {
        if name == "drafter" {
            self.with_drafter.set(true);
            self.drafter.set(levels.trim().to_owned());
            return;
        }
        let wanted = plain_levels(levels);
        let is_ready = self.ready.with_value(|ready| {
            ready
                .iter()
                .find(|ready| ready.factor.name == name)
                .is_some_and(|ready| ready.tick(&wanted))
        });
        if !is_ready {
            self.add(name, levels);
        }
    }

    /// Another factor by hand.
    pub(super) fn add(self, name: &str, levels: &str) {
        let id = self.next_id.get_value();
        self.next_id.set_value(id + 1);
        let row = OwnFactor {
            id,
            name: RwSignal::new(name.to_owned()),
            levels: RwSignal::new(levels.to_owned()),
        };
        self.own.update(|own| own.push(row));
    }

    /// Takes one by hand away.
    pub(super) fn remove(self, id: u32) {
        self.own.update(|own| own.retain(|row| row.id != id));
    }

    /// What is varied, in the order of the form. A blank row is none.
    pub(super) fn factors(self) -> Vec<Factor> {
        let mut factors: Vec<Factor> = self
            .ready
            .with_value(|ready| ready.iter().filter_map(ReadyFactor::ticked).collect());
        if self.with_drafter.get() {
            factors.push(drafter_factor(&self.drafter.get()));
        }
        let own = self.own.get();
        factors.extend(own.iter().filter_map(|row| {
            let (name, levels) = (row.name.get(), row.levels.get());
            let blank = name.trim().is_empty() && levels.trim().is_empty();
            (!blank).then(|| plain_factor(&name, &plain_levels(&levels)))
        }));
        factors
    }
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;

    use super::*;

    fn labels(factor: &Factor) -> Vec<&str> {
        factor
            .levels
            .iter()
            .map(|level| level.label.as_str())
            .collect()
    }

    #[test]
    fn an_address_ticks_what_is_ready_made_and_types_the_rest() {
        Owner::new().with(|| {
            let fields = FactorFields::new();
            assert_eq!(fields.factors(), []);
            fields.vary("NCCL_PROTO", "ll, Simple");
            fields.vary("NCCL_ALGO", "");
            fields.vary("channels", "as NCCL chooses,3");
            fields.vary("--num-continuous-decode-steps", "as it is, 4");
            fields.vary("drafter", " /models/d ");
            fields.add("", " ");
            let factors = fields.factors();
            let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            assert_eq!(
                names,
                [
                    "NCCL_PROTO",
                    "NCCL_ALGO",
                    "drafter",
                    "channels",
                    "--num-continuous-decode-steps"
                ]
            );
            assert_eq!(labels(&factors[0]), ["LL", "Simple"]);
            assert_eq!(labels(&factors[1]), ["as NCCL chooses", "Ring", "Tree"]);
            // Three channels are no ready-made level.
            assert_eq!(labels(&factors[3]), ["as NCCL chooses", "3"]);
            assert_eq!(labels(&factors[4]), ["as it is", "4"]);
            assert!(factors[4].levels[0].changes.is_empty());
        });
    }

    #[test]
    fn what_can_corrupt_data_is_not_ticked_beforehand() {
        Owner::new().with(|| {
            let fields = FactorFields::new();
            fields.vary("NCCL_PROTO", "");
            assert_eq!(
                labels(&fields.factors()[0]),
                ["as NCCL chooses", "LL", "Simple"]
            );
            fields.vary("NCCL_PROTO", "LL,LL128");
            assert_eq!(labels(&fields.factors()[0]), ["LL", "LL128"]);
        });
    }
}
