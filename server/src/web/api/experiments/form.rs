//! An experiment as scripts send it: profiles and hosts by number or name, levels as
//! words or as lists of changes.

use serde::Deserialize;
use tokdyno_domain::{
    access::Actor,
    experiment::{Factor, Step, nccl_factors, plain_factor},
    ids::{LaunchId, ProfileId},
    statistics::RELEVANT_EFFECT,
    timestamp::Timestamp,
    views::experiments::{DesignForm, ExperimentForm},
};

use super::super::{
    super::{Problem, Site},
    forms::{WorkloadBody, moment},
    named::Named,
};

/// `POST /api/v1/experiments` and `…/preview`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentBody {
    name: String,
    host: Named,
    base: Named,
    design: DesignBody,
    #[serde(default)]
    workload: WorkloadBody,
    #[serde(default = "launches")]
    launches_per_cell: u32,
    #[serde(default)]
    looks: Vec<u32>,
    #[serde(default)]
    gpu_minutes: Option<f64>,
    #[serde(default, deserialize_with = "moment")]
    give_back_at: Option<Timestamp>,
    #[serde(default)]
    restore: Option<LaunchId>,
    #[serde(default)]
    through_forward: bool,
    #[serde(default = "relevant_effect_percent")]
    relevant_effect_percent: f64,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    skip_measured: bool,
}

/// What is varied.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "design", deny_unknown_fields)]
enum DesignBody {
    OneAtATime {
        factors: Vec<FactorBody>,
    },
    FullGrid {
        factors: Vec<FactorBody>,
    },
    Ablation {
        to: Named,
        #[serde(default)]
        steps: Vec<Step>,
    },
    Profiles {
        profiles: Vec<Named>,
    },
}

/// A factor: a ready-made one by its name, or a name with its levels.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FactorBody {
    Ready(String),
    Plain(PlainBody),
    Full(Factor),
}

/// A factor whose levels are words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainBody {
    name: String,
    levels: Vec<String>,
}

const fn launches() -> u32 {
    3
}

fn relevant_effect_percent() -> f64 {
    RELEVANT_EFFECT * 100.0
}

impl ExperimentBody {
    /// The same with everything that was named looked up.
    ///
    /// # Errors
    /// 404 for a host or profile that is not there, 422 for a factor that is not
    /// ready-made.
    pub(super) async fn form(self, site: &Site, actor: &Actor) -> Result<ExperimentForm, Problem> {
        let (base, _) = self.base.profile(site, actor).await?;
        Ok(ExperimentForm {
            name: self.name,
            host: self.host.host(site, actor).await?,
            base,
            design: self.design.form(site, actor).await?,
            workload: self.workload.0,
            launches_per_cell: self.launches_per_cell,
            looks: self.looks,
            gpu_minutes: self.gpu_minutes,
            give_back_at: self.give_back_at,
            restore: self.restore,
            through_forward: self.through_forward,
            relevant_effect_percent: self.relevant_effect_percent,
            seed: self.seed,
            skip_measured: self.skip_measured,
        })
    }
}

impl DesignBody {
    async fn form(self, site: &Site, actor: &Actor) -> Result<DesignForm, Problem> {
        Ok(match self {
            Self::OneAtATime { factors } => DesignForm::OneAtATime {
                factors: all(factors)?,
            },
            Self::FullGrid { factors } => DesignForm::FullGrid {
                factors: all(factors)?,
            },
            Self::Ablation { to, steps } => DesignForm::Ablation {
                to: to.profile(site, actor).await?.0,
                steps,
            },
            Self::Profiles { profiles } => {
                let mut found: Vec<ProfileId> = Vec::with_capacity(profiles.len());
                for profile in profiles {
                    found.push(profile.profile(site, actor).await?.0);
                }
                DesignForm::Profiles { profiles: found }
            }
        })
    }
}

fn all(factors: Vec<FactorBody>) -> Result<Vec<Factor>, Problem> {
    factors.into_iter().map(FactorBody::factor).collect()
}

impl FactorBody {
    fn factor(self) -> Result<Factor, Problem> {
        match self {
            Self::Full(factor) => Ok(factor),
            Self::Plain(PlainBody { name, levels }) => Ok(plain_factor(&name, &levels)),
            Self::Ready(name) => {
                let mut ready = nccl_factors();
                let names: Vec<String> = ready.iter().map(|factor| factor.name.clone()).collect();
                let place = names.iter().position(|known| *known == name);
                place.map(|place| ready.swap_remove(place)).ok_or_else(|| {
                    Problem::new(
                        http::StatusCode::UNPROCESSABLE_ENTITY,
                        format!(
                            "`{name}` is no ready-made factor; these are: {}. Any other is sent with its levels.",
                            names.join(", ")
                        ),
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(sent: Value) -> Result<ExperimentBody, serde_json::Error> {
        serde_json::from_value(sent)
    }

    fn factors(body: ExperimentBody) -> Result<Vec<Factor>, Problem> {
        match body.design {
            DesignBody::FullGrid { factors } | DesignBody::OneAtATime { factors } => all(factors),
            _ => panic!("a design with factors"),
        }
    }

    #[test]
    fn what_is_left_out_is_as_usual() {
        let body = read(json!({
            "name": "n", "host": "gpu1", "base": 3,
            "design": {"design": "ablation", "to": "tuned"},
        }))
        .expect("an experiment");
        assert_eq!((body.launches_per_cell, body.looks.len()), (3, 0));
        assert!((body.relevant_effect_percent - 2.0).abs() < 1e-9);
        assert!(
            matches!(&body.design, DesignBody::Ablation { to: Named::Text(to), steps } if to == "tuned" && steps.is_empty())
        );
    }

    #[test]
    fn factors_come_in_three_forms() {
        let body = read(json!({
            "name": "n", "host": 1, "base": 3,
            "design": {"design": "full_grid", "factors": [
                "NCCL_PROTO",
                {"name": "--num-continuous-decode-steps", "levels": ["as it is", "4"]},
                {"name": "ranks", "levels": [
                    {"label": "4", "changes": [{"change": "tensor_parallel", "ranks": 4}]},
                    {"label": "8", "changes": []},
                ]},
            ]},
        }))
        .expect("an experiment");
        let factors = factors(body).expect("factors");
        assert_eq!(factors[0], nccl_factors()[0]);
        assert!(factors[1].levels[0].changes.is_empty());
        assert_eq!(factors[2].levels.len(), 2);
    }

    #[test]
    fn mistyped_fields_and_factors_are_refused() {
        let sent = |design: Value| json!({"name": "n", "host": 1, "base": 3, "design": design});
        assert!(read(sent(json!({"design": "grid"}))).is_err());
        assert!(read(sent(json!({"design": "full_grid", "factor": []}))).is_err());
        let body = read(sent(
            json!({"design": "full_grid", "factors": ["NCCL_PROTOS"]}),
        ));
        let refused = factors(body.expect("an experiment")).expect_err("no such factor");
        assert!(format!("{refused:?}").contains("NCCL_PROTO, NCCL_ALGO"));
    }
}
