//! The stand-in's own settings (`--sim-…`).

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use crate::{
    config::{Engine, bad},
    fault::{BadFault, Fault},
    flags::{FlagError, Parsed},
    noise::Noise,
    pacer::FixedPacing,
    resolved,
    startup::{StartFault, StartupOptions},
};

/// Most worker processes.
const MOST_CHILDREN: u32 = 64;
/// Longest start-up: a day.
const LONGEST_STARTUP_MS: u64 = 86_400_000;

/// The stand-in's own settings (`--sim-…`).
#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// Seed of all that is random.
    pub seed: u64,
    /// Noise on the step time.
    pub noise: Noise,
    /// So many times faster than the model.
    pub speed: f64,
    /// Where true send times are written.
    pub log: Option<PathBuf>,
    /// Misbehaviour of requests.
    pub faults: Vec<Fault>,
    /// Fixed times in place of the model.
    pub fixed: Option<FixedPacing>,
    /// Arguments that server info reports with another value than asked for, by
    /// their names with underscores.
    pub resolve: Vec<(String, Value)>,
    /// How it starts and stops as a process.
    pub startup: StartupOptions,
}

/// Reads them from a command line taken apart.
pub(crate) fn read(parsed: &Parsed, engine: Engine) -> Result<SimOptions, FlagError> {
    let share = |name: &str| -> Result<f64, FlagError> {
        let what = "a percentage from 0 to 100";
        let percent: f64 = parsed.number(name, what)?.unwrap_or(0.0);
        if (0.0..=100.0).contains(&percent) {
            Ok(percent / 100.0)
        } else {
            Err(bad(name, &percent.to_string(), what))
        }
    };
    let milliseconds = |name: &str| -> Result<Option<f64>, FlagError> {
        let what = "milliseconds from 0 to 600000";
        match parsed.number::<f64>(name, what)? {
            Some(ms) if !(0.0..=600_000.0).contains(&ms) => Err(bad(name, &ms.to_string(), what)),
            other => Ok(other),
        }
    };
    let what = "a factor from 0.001 to 10000";
    let speed = parsed.number("sim-speed", what)?.unwrap_or(1.0);
    if !(0.001..=10_000.0).contains(&speed) {
        return Err(bad("sim-speed", &speed.to_string(), what));
    }
    let (step, ttft) = (milliseconds("sim-step-ms")?, milliseconds("sim-ttft-ms")?);
    let fixed = step.or(ttft).map(|either| FixedPacing {
        step_ms: step.unwrap_or(either),
        ttft_ms: ttft.unwrap_or(either),
    });
    let mut faults = Vec::new();
    for text in parsed.values.get("sim-fault").into_iter().flatten() {
        faults.push(
            text.parse()
                .map_err(|error: BadFault| bad("sim-fault", text, &error.to_string()))?,
        );
    }
    Ok(SimOptions {
        seed: parsed
            .number("sim-seed", "a whole number from 0")?
            .unwrap_or(0),
        noise: Noise {
            launch: share("sim-noise-launch")?,
            repeat: share("sim-noise-repeat")?,
            request: share("sim-noise-request")?,
        },
        speed,
        log: parsed.last("sim-log").map(PathBuf::from),
        faults,
        fixed,
        resolve: overridden(parsed)?,
        startup: startup(parsed, engine)?,
    })
}

fn startup(parsed: &Parsed, engine: Engine) -> Result<StartupOptions, FlagError> {
    let what = "whole milliseconds from 0 to 86400000";
    let ms = parsed.number("sim-startup-ms", what)?.unwrap_or(0);
    if ms > LONGEST_STARTUP_MS {
        return Err(bad("sim-startup-ms", &ms.to_string(), what));
    }
    let what = "a whole number from 0 to 64";
    let children = parsed.number("sim-children", what)?.unwrap_or(0);
    if children > MOST_CHILDREN {
        return Err(bad("sim-children", &children.to_string(), what));
    }
    let fault = parsed
        .last("sim-start-fault")
        .map(|text| {
            StartFault::parse(text, engine)
                .map_err(|error| bad("sim-start-fault", text, &error.to_string()))
        })
        .transpose()?;
    Ok(StartupOptions {
        time: Duration::from_millis(ms),
        fault,
        ignore_term: parsed.has("sim-ignore-term"),
        children,
    })
}

fn overridden(parsed: &Parsed) -> Result<Vec<(String, Value)>, FlagError> {
    let texts = parsed.values.get("sim-resolve").into_iter().flatten();
    texts
        .map(|text| {
            let (name, value) = text
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| bad("sim-resolve", text, "write NAME=VALUE"))?;
            let name = name.trim_start_matches('-').replace('-', "_");
            let value = match value {
                "null" => Value::Null,
                value => resolved::typed(value),
            };
            Ok((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::sglang;

    #[test]
    fn the_way_it_starts_is_read_from_its_flags() {
        let startup = sglang(&[
            "--sim-startup-ms",
            "1500",
            "--sim-start-fault",
            "die-after:250",
            "--sim-ignore-term",
            "--sim-children",
            "2",
        ])
        .sim
        .startup;
        assert_eq!(
            startup,
            StartupOptions {
                time: Duration::from_millis(1500),
                fault: Some(StartFault::DieAfter(Duration::from_millis(250))),
                ignore_term: true,
                children: 2,
            }
        );
        assert_eq!(sglang(&[]).sim.startup, StartupOptions::default());
    }
}
