//! Experiments out of a seeded generator, whose truth is known.

mod ablation;
mod grid;
mod looks;
mod states;
mod world;
