//! Flags of the stand-in engine, which every engine it stands in for shares.

use super::flags::Flag;

/// The flags.
pub(super) const STAND_IN: &[Flag] = &[
    Flag::one(
        &["--sim-seed"],
        "whole number",
        "",
        "Simulated: seed of all that is random.",
    ),
    Flag::one(
        &["--sim-noise-launch"],
        "percent",
        "0",
        "Simulated: how much launches differ.",
    ),
    Flag::one(
        &["--sim-noise-repeat"],
        "percent",
        "0",
        "Simulated: how much repeats differ.",
    ),
    Flag::one(
        &["--sim-noise-request"],
        "percent",
        "0",
        "Simulated: how much requests differ.",
    ),
    Flag::one(
        &["--sim-speed"],
        "factor",
        "1",
        "Simulated: so many times faster than the model of time.",
    ),
    Flag::one(
        &["--sim-log"],
        "path",
        "none",
        "Simulated: where true send times are written.",
    ),
    Flag::one(
        &["--sim-fault"],
        "a fault",
        "none",
        "Simulated: misbehaviour of requests.",
    ),
    Flag::one(
        &["--sim-step-ms"],
        "milliseconds",
        "the model's",
        "Simulated: a fixed time of each step.",
    ),
    Flag::one(
        &["--sim-ttft-ms"],
        "milliseconds",
        "the model's",
        "Simulated: a fixed time to the first token.",
    ),
    Flag::one(
        &["--sim-engine-version"],
        "version",
        "",
        "Simulated: the version that is stood in for.",
    ),
    Flag::one(
        &["--sim-startup-ms"],
        "milliseconds",
        "0",
        "Simulated: how long the start-up takes.",
    ),
    Flag::one(
        &["--sim-start-fault"],
        "a kind",
        "none",
        "Simulated: how the start-up fails.",
    ),
    Flag::one(
        &["--sim-resolve"],
        "NAME=VALUE",
        "none",
        "Simulated: the server info reports this value, whatever was asked for.",
    ),
    Flag::one(
        &["--sim-children"],
        "whole number",
        "0",
        "Simulated: worker processes that outlive their parent.",
    ),
    Flag::switch(
        &["--sim-ignore-term"],
        "off",
        "Simulated: it does not end when it is asked to.",
    ),
];
