//! Each flag in words: what was seen, what it does to the figure, what to do.

use super::StageFlag;
use crate::text;

impl StageFlag {
    /// What was seen, what it does to the figure, and what to do.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Failures { failed, requests } => format!(
                "{failed} of {requests} requests failed: no verdict rests on this stage. Look at the failures and measure again."
            ),
            Self::CountedByChunk { requests } => format!(
                "The server sent no usage for {requests} requests, so chunks were counted instead of tokens: not comparable with other runs. Let the server send usage (stream_options.include_usage)."
            ),
            Self::ApproximateTpot { requests } => format!(
                "{requests} requests packed several tokens into a chunk without running usage: TPOT is approximate. A server that sends continuous_usage_stats makes it exact."
            ),
            Self::NoDone { requests } => format!(
                "{requests} streams ended without [DONE], though finish reason and usage came: counted as successes."
            ),
            Self::LengthMismatch { requests, asked } => {
                let asked = asked.map_or_else(|| "as long as".to_owned(), |asked| format!("{asked} tokens long, as"));
                format!(
                    "{requests} replies are not {asked} asked: speeds of different lengths are not comparable. Check that the server honours ignore_eos and its context length."
                )
            }
            Self::LowConcurrency { achieved, asked } => format!(
                "On average {achieved:.1} of {asked} requests were in flight: throughput is understated. Ask for more requests per stage."
            ),
            Self::Partial => {
                "The stage did not run to its end: its figures rest on the requests that were finished.".to_owned()
            }
            Self::HighConcurrency {
                achieved,
                peak,
                asked,
            } => format!(
                "Up to {peak} requests were in flight, {achieved:.1} on average, where {asked} were asked for: times and requests contradict each other. Do not use this stage, and report it."
            ),
            Self::NotPositiveTtft { requests } => format!(
                "{requests} requests have a time to first token that is not positive, which no server can do. Do not use this stage, and report it."
            ),
            Self::TimesNotMonotonic { requests } => format!(
                "{requests} requests have times that run backwards. Do not use this stage, and report it."
            ),
            Self::UsageInconsistent { requests } => format!(
                "The running usage of {requests} requests fell, or does not add up to the usage at their end: times per token are approximate. Look whether a proxy changes the stream."
            ),
            Self::PeakBelowMean { peak, mean } => format!(
                "The busiest second delivered {peak:.1} tok/s, less than the average of {mean:.1}: tokens were not counted where they came. The peak is not to be used."
            ),
            Self::PromptLengthMismatch { requests, asked } => {
                let asked = asked.map_or_else(|| "as long as".to_owned(), |asked| format!("{asked} tokens long, as"));
                format!(
                    "{requests} prompts are not {asked} asked: times to first token are of other lengths. The server's tokenizer splits the words differently; choose a file of prompts."
                )
            }
            Self::ScheduleLag { p99_ms } => format!(
                "Requests left late, one in a hundred by {p99_ms:.1} ms or more: the load was not the one asked for. Use ttft_intended, or lower the rate."
            ),
            Self::Unsent { requests } => format!(
                "{requests} requests that were planned were never sent: the load was not the one asked for."
            ),
            Self::BeyondCertificate { needed, certified } => format!(
                "This machine was seen to time {certified:.0} chunks per second truthfully; the stage had {needed:.0}. Start the meter on another host, or lower the concurrency."
            ),
            Self::ClientBusy { share } => format!(
                "The measuring thread was busy {:.0} % of the time: it may have read late. Start the meter on another host, or lower the concurrency.",
                share * 100.0
            ),
            Self::ClientStolen { share } => format!(
                "The measuring machine lost {:.1} % of its processor time to its neighbours: times may be late. Measure from a machine that is not shared.",
                share * 100.0
            ),
            Self::ClientLag { p99_ms } => format!(
                "The measuring thread was woken late, one time in a hundred by {p99_ms:.1} ms or more: requests may have been sent late. Stop what else runs on this machine."
            ),
            Self::ClientStopped { stood_ms, share } => format!(
                "The measuring thread stood still for {} ms in all, {} of the stage: meanwhile no reply was read and no request sent, so throughput is too low by up to that share. Let nothing stop the measuring process or take its processor, and measure again.",
                text::count(stood_ms.round() as u64),
                text::share(*share)
            ),
            Self::BodiesLeftOpen { requests, of } => format!(
                "{requests} of {of} replies said [DONE] and did not end: each kept its place for a tenth of a second more and cost its connection, so the throughput of a closed loop is too low. Let the server, or the proxy before it, end the body of a reply after [DONE]."
            ),
            Self::EngineCountersFell => {
                "A counter of the engine fell during the stage: it was restarted or its counts were cleared. Acceptance and cache figures are left out.".to_owned()
            }
            Self::EngineCap { cap, in_flight } => format!(
                "The engine runs at most {cap} requests at once and {in_flight} were sent: the rest waited in its queue, and their wait is part of the times. Raise its limit, or ask for {cap} at once."
            ),
            Self::ForeignRequests { requests } => format!(
                "The engine finished {requests} requests that were not ours: somebody else used it meanwhile. Measure again when it is free."
            ),
            Self::CacheHits { share } => format!(
                "{:.0} % of the prompt tokens came from the prefix cache, though every prompt was meant to be new: times to first token are too good. Clear the cache before each stage; a seed of its own helps only where prompts are drawn.",
                share * 100.0
            ),
            Self::CacheNotCleared { reason } => format!(
                "The prefix cache was not cleared before the stage: {reason}"
            ),
            Self::FewForP99 { requests } => format!(
                "A 99th percentile was stated for {requests} requests, of which it is the largest value under another name, so it is left out. Ask for 100 requests a stage or more."
            ),
            Self::LoopingReplies {
                requests,
                of,
                speculative,
            } => {
                let so = if *speculative {
                    "a drafter guesses a loop nearly always, so acceptance and speed are too good"
                } else {
                    "where the engine speculates, acceptance and speed are too good"
                };
                format!(
                    "{requests} of {of} replies say the same over and over: {so}. Use prompts of real work with the model's chat template, and shorter replies."
                )
            }
            Self::BundledTokens { per_chunk } => format!(
                "{} tokens came in one chunk on average: the time to first token is that of a whole bundle, and the times between tokens are known of bundles only. Let the server, or the proxy before it, send each token as it comes.",
                text::figure(*per_chunk)
            ),
            Self::EngineQueue {
                running,
                waiting,
                asked,
            } => format!(
                "The engine never worked on more than {running} of {asked} requests, and up to {waiting} waited in its queue: their wait is part of the times, and C was not reached. Raise its limit of running requests or its KV cache, or ask for less at once."
            ),
            Self::HeldBack {
                at_engine,
                in_flight,
            } => format!(
                "{in_flight:.1} requests were in flight on average and never more than {at_engine} had come to the engine: something in between holds the rest back, and its wait is part of the times. Look at the limits of proxies in between; where several engines answer at the address, its metrics are those of one."
            ),
            Self::EngineRestarted { after } => format!(
                "The engine was started anew after stage {}, or several engines answer by turns: the repeats are not of one launch, and its caches began empty. Measure again on one launch.",
                u64::from(*after) + 1
            ),
            Self::SlowBeginning { slower, bias } => format!(
                "The first repeat was {} slower than the others, far beyond their spread: the mean over the repeats is {} too low. Send more warm-up requests before each stage.",
                text::share(*slower),
                text::share(*bias)
            ),
            Self::ClockDrift {
                gpus,
                low_mhz,
                high_mhz,
            } => format!(
                "Clocks drifted by more than 5 % under load: {} ran between {} and {} MHz, and speed goes with them. Lock the clocks to compare runs.",
                gpu_names(gpus),
                text::count((*low_mhz).into()),
                text::count((*high_mhz).into())
            ),
            Self::ClocksHeldDown {
                gpus,
                reasons,
                share,
            } => format!(
                "Clocks were held down ({}) on {} in {} of the samples: speed is that of a slower GPU. Compare runs under the same limits only.",
                reasons.join(", "),
                gpu_names(gpus),
                text::share(*share)
            ),
            Self::HotGpu { gpu, celsius } => format!(
                "GPU {gpu} reached {celsius} °C. Hot GPUs slow down; look at the cooling."
            ),
            Self::TemperatureDrift { gpu, from, to } => format!(
                "GPU {gpu} was at {to} °C under load, and at {from} °C in the first repeat: clocks follow the temperature, so the repeats were not made under equal conditions. Warm the GPUs up before the first stage, or lock their clocks."
            ),
            Self::OtherProcesses {
                processes,
                mib,
                share,
            } => format!(
                "{} came to the launch's GPUs and held up to {} MiB in {} of the samples: what it computed slowed the engine down. Measure again when the GPUs are free.",
                processes.join("; "),
                text::count(*mib),
                text::share(*share)
            ),
            Self::OtherRequests { most, share } => format!(
                "The engine worked on other people's requests too: up to {} at once, in {} of the samples. Ours were slower for it; measure again when it is free.",
                text::count(*most),
                text::share(*share)
            ),
        }
    }
}

/// `GPU 3`, or `GPUs 0, 1 and 3`.
fn gpu_names(gpus: &[u32]) -> String {
    match gpus {
        [] => "no GPU".to_owned(),
        [one] => format!("GPU {one}"),
        [head @ .., last] => {
            let head: Vec<String> = head.iter().map(u32::to_string).collect();
            format!("GPUs {} and {last}", head.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_the_client_stood_still_is_told() {
        let said = StageFlag::ClientStopped {
            stood_ms: 1885.2,
            share: 0.089,
        }
        .sentence();
        let begins = "The measuring thread stood still for 1,885 ms in all, 8.9 % of the stage";
        assert!(said.starts_with(begins), "{said}");
    }

    #[test]
    fn the_remedy_for_cache_hits_fits_all_prompts() {
        let said = StageFlag::CacheHits { share: 0.25 }.sentence();
        assert!(said.starts_with("25 % of the prompt tokens"), "{said}");
        // The seed changes nothing about listed prompts.
        assert!(said.contains("Clear the cache before each stage"), "{said}");
        assert!(said.contains("only where prompts are drawn"), "{said}");
    }
}
