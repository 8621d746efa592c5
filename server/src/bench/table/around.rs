//! Goodput, acceptance, the cache, and what the measuring machine can do: a line
//! each, where there is something to say.

use tokdyno_domain::{
    conditions::{Certificate, EngineReport},
    goodput::Goodput,
    metrics::cached_share,
    result_file::ResultStage,
    text,
};

/// All of it, each section with its heading.
pub(super) fn said(stages: &[ResultStage]) -> String {
    let mut out = String::new();
    // One stage that does not tell its share may have had any.
    let all_tell = stages.iter().all(|stage| !shares(stage).is_empty());
    if all_tell && !stages.is_empty() && stages.iter().all(|stage| cache(stage).is_none()) {
        out.push_str("\nPrefix cache: no prompt token came from it.\n");
    }
    for (heading, lines) in [
        (goodput_heading(stages), per_stage(stages, goodput)),
        ("Acceptance".to_owned(), per_stage(stages, acceptance)),
        ("Prefix cache".to_owned(), per_stage(stages, cache)),
        ("In the engine".to_owned(), per_stage(stages, in_engine)),
        ("Ended early".to_owned(), per_stage(stages, ended_early)),
    ] {
        if !lines.is_empty() {
            out.push_str(&format!("\n{heading}\n{lines}"));
        }
    }
    let certificates = certificates(stages);
    if !certificates.is_empty() {
        out.push_str(&format!("\n{certificates}"));
    }
    out
}

fn per_stage(stages: &[ResultStage], line: fn(&ResultStage) -> Option<String>) -> String {
    stages
        .iter()
        .filter_map(|stage| Some((stage, line(stage)?)))
        .map(|(stage, line)| format!("  stage {}, {}: {line}\n", stage.index + 1, stage.kind))
        .collect()
}

fn goodput_heading(stages: &[ResultStage]) -> String {
    let bounds = stages
        .iter()
        .find_map(|stage| stage.figures.goodput)
        .map(|goodput| goodput.bounds)
        .unwrap_or_default();
    let parts: Vec<String> = [
        ("TTFT", bounds.ttft_ms),
        ("TPOT", bounds.tpot_ms),
        ("e2el", bounds.e2el_ms),
    ]
    .into_iter()
    .filter_map(|(name, bound)| Some(format!("{name} up to {} ms", bound?)))
    .collect();
    format!("Goodput ({})", parts.join(", "))
}

fn goodput(stage: &ResultStage) -> Option<String> {
    let Goodput {
        good,
        undefined,
        requests_per_s,
        ..
    } = stage.figures.goodput?;
    let mut line = format!(
        "{} req/s, {} of {} good",
        text::optional(requests_per_s),
        text::count(good),
        text::plural(
            stage.figures.completed,
            "successful request",
            "successful requests"
        ),
    );
    if undefined > 0 {
        line.push_str(&format!(
            ", {} without a bounded figure and so not good",
            text::count(undefined)
        ));
    }
    Some(line)
}

fn engine(stage: &ResultStage) -> Option<&EngineReport> {
    stage.conditions.engine.as_ref()
}

fn acceptance(stage: &ResultStage) -> Option<String> {
    let speculation = engine(stage)?.speculation.as_ref()?;
    let length = speculation.accept_length()?;
    let rate = speculation.accept_rate().map_or_else(
        || "the strict rate is not told".to_owned(),
        |rate| format!("{} of the drafted tokens accepted", text::share(rate)),
    );
    Some(format!(
        "accept length {} tokens a step, {rate}",
        text::figure(length)
    ))
}

/// Shares of the prompt tokens that came from the prefix cache, and who says so.
fn shares(stage: &ResultStage) -> Vec<(f64, &'static str)> {
    [
        (
            cached_share(stage.figures.cached_tokens, stage.figures.prompt_tokens),
            "by the replies' count",
        ),
        (
            engine(stage).and_then(EngineReport::prefix_hit_rate),
            "by the engine's",
        ),
    ]
    .into_iter()
    .filter_map(|(share, whose)| Some((share?, whose)))
    .collect()
}

fn cache(stage: &ResultStage) -> Option<String> {
    let shares = shares(stage);
    if shares.iter().all(|(share, _)| *share == 0.0) {
        return None;
    }
    let parts: Vec<String> = shares
        .iter()
        .map(|(share, whose)| format!("{} of the prompt tokens {whose}", text::share(*share)))
        .collect();
    Some(parts.join(", "))
}

/// Only what slows requests down: a queue, or a cache that is too small.
fn in_engine(stage: &ResultStage) -> Option<String> {
    let report = engine(stage)?;
    let mut parts = Vec::new();
    if let Some(waiting) = report.waiting_max.filter(|waiting| *waiting > 0.0) {
        parts.push(format!("up to {waiting:.0} waiting in its queue"));
    }
    if let Some(preemptions) = report.preemptions.filter(|count| *count > 0) {
        parts.push(text::plural(
            preemptions,
            "request thrown out of the KV cache",
            "requests thrown out of the KV cache",
        ));
    }
    if parts.is_empty() {
        return None;
    }
    if let Some(running) = report.running_mean {
        parts.push(format!("{} running on average", text::figure(running)));
    }
    Some(parts.join(", "))
}

fn ended_early(stage: &ResultStage) -> Option<String> {
    stage.conditions.ended_early.clone()
}

/// A sentence for each concurrency that was certified, with the stage that asked
/// most of the machine.
fn certificates(stages: &[ResultStage]) -> String {
    let mut found: Vec<(&Certificate, &ResultStage, f64)> = Vec::new();
    for stage in stages {
        let (Some(certificate), Some(needed)) = (
            stage.conditions.certificate.as_ref(),
            stage.figures.chunks_per_s(),
        ) else {
            continue;
        };
        match found
            .iter_mut()
            .find(|(known, _, _)| known.concurrency == certificate.concurrency)
        {
            Some(known) if known.2 < needed => *known = (certificate, stage, needed),
            Some(_) => {}
            None => found.push((certificate, stage, needed)),
        }
    }
    found
        .into_iter()
        .map(|(certificate, stage, needed)| {
            format!(
                "With {} this machine times {}{} chunks/s truthfully (first token {:+.2} ms in the median, time per token {:+.2} %{}); stage {} had {}.\n",
                text::plural(certificate.concurrency.into(), "stream", "streams"),
                if certificate.is_limit { "" } else { "at least " },
                text::count(certificate.chunks_per_s as u64),
                certificate.ttft_error_p50_ms,
                certificate.tpot_error * 100.0,
                if certificate.remembered { "; remembered" } else { "" },
                stage.index + 1,
                text::count(needed as u64),
            )
        })
        .collect()
}
