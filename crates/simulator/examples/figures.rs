//! Prints the table "Figures in between" of `docs/simulator.md`.

use std::collections::BTreeMap;

use tokdyno_domain::metrics::stage_figures;
use tokdyno_simulator::{
    Engine, FlagError, SimConfig,
    model::NCCL_SET,
    virtual_time::{ClosedLoop, simulate},
};

/// Title, engine, flags, environment.
type Row<'a> = (String, Engine, &'a [&'a str], Vec<(&'a str, &'a str)>);

fn main() -> Result<(), FlagError> {
    let set: Vec<(&str, &str)> = NCCL_SET.to_vec();
    let aq: &[&str] = &[
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        "AQ-MedAI/Kimi-K2-Instruct-eagle3",
    ];
    let mut rows: Vec<Row<'_>> = vec![
        ("vLLM".into(), Engine::Vllm, &[], vec![]),
        ("vLLM, NCCL set".into(), Engine::Vllm, &[], set.clone()),
        ("SGLang".into(), Engine::Sglang, &[], vec![]),
        ("SGLang, NCCL set".into(), Engine::Sglang, &[], set.clone()),
    ];
    for (name, value) in &set {
        let title = format!("SGLang, `{name}={value}` alone");
        rows.push((title, Engine::Sglang, &[], vec![(*name, *value)]));
    }
    rows.push((
        "SGLang, AQ-MedAI drafter".into(),
        Engine::Sglang,
        aq,
        vec![],
    ));
    println!(
        "| configuration | single stream | C = 8 | 32 | 64 | 128 |\n|---|---|---|---|---|---|"
    );
    for (title, engine, flags, env) in rows {
        let env: BTreeMap<String, String> = env
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let config = SimConfig::parse(engine, flags, env)?;
        print!("| {title} |");
        for concurrency in [1, 8, 32, 64, 128] {
            let plan = ClosedLoop::founding(concurrency);
            let figures = stage_figures(&plan.asked(), &simulate(&config, &plan));
            let tps = if concurrency == 1 {
                figures.e2e_tps.p50
            } else {
                figures.output_tps
            };
            print!(" {:.1} |", tps.unwrap_or(f64::NAN));
        }
        println!();
    }
    Ok(())
}
