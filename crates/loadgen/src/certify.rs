//! What this machine can time truthfully: before a stage it measures, with its own
//! code, a server of its own whose times are known.
//!
//! ```text
//! let certificate = certify::certify(concurrency, spec.certify, &stop).await;
//! ```
//!
//! The server (`pacing`) is in this process, on threads of its own, and notes when it
//! really wrote each first and last chunk, so its own lateness is no error of the
//! reader. It competes for the same processors, which only makes the outcome worse
//! than it would be against a server elsewhere.

mod cache;
mod pacing;
mod reader;
mod steps;

use tokdyno_domain::{conditions::Certificate, meter::Certify};
use tokio::sync::oneshot;

use self::{
    cache::{Cache, Key},
    steps::{Ladder, MOST_STREAMS},
};
use crate::{cancel::CancelFlag, events, machine};

/// Certifies this machine for `concurrency` streams at once, rounded up to a power
/// of two: about two and a half seconds, less if the stop flag is raised, and nothing
/// if an earlier run did so within seven days. None if it is not wanted, or if nothing
/// could be measured.
///
/// More than 1,024 streams are certified as 1,024, and fewer where the limit of open
/// files leaves no room for both ends of as many.
pub(crate) async fn certify(
    concurrency: u32,
    mode: Certify,
    stop: &CancelFlag,
) -> Option<Certificate> {
    if mode == Certify::Off {
        return None;
    }
    let streams = streams_for(concurrency)?;
    let cache = Cache::of_this_user();
    let key = Key::of_this_machine(streams);
    if mode == Certify::Remembered
        && let Some(known) = cache
            .as_ref()
            .and_then(|cache| cache.find(&key, events::now()))
    {
        return Some(known);
    }
    let certificate = measure(streams, stop).await?;
    // What went wrong throughout, on a machine that was busy perhaps, is not worth
    // remembering for days.
    if let Some(cache) = cache.filter(|_| certificate.chunks_per_s > 0.0) {
        cache.keep(&key, &certificate);
    }
    Some(certificate)
}

/// Measures on threads of its own, and waits for their end.
async fn measure(streams: u32, stop: &CancelFlag) -> Option<Certificate> {
    let (sender, measured) = oneshot::channel();
    let flag = stop.clone();
    std::thread::Builder::new()
        .name("tokdyno-certify".to_owned())
        .spawn(move || {
            let ladder = reader::climb(Ladder::new(streams), &flag);
            // Nobody may wait for it any more.
            let _ = sender.send(ladder);
        })
        .ok()?;
    let ladder = measured.await.ok()??;
    if stop.is_cancelled() {
        return None;
    }
    ladder.certificate(events::now())
}

/// The streams that stand for this concurrency.
pub(crate) fn streams_of(concurrency: u32) -> u32 {
    concurrency.clamp(1, MOST_STREAMS).next_power_of_two()
}

/// The streams to certify, both ends of each within the limit of open files.
fn streams_for(concurrency: u32) -> Option<u32> {
    let mut streams = streams_of(concurrency);
    while machine::make_room_for(streams.saturating_mul(2)).is_err() {
        streams /= 2;
        if streams == 0 {
            return None;
        }
    }
    Some(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_machine_is_certified() {
        let stop = CancelFlag::new();
        let certificate = measure(4, &stop).await.expect("a certificate");
        assert_eq!(certificate.concurrency, 4);
        // How fast depends on the machine's other work; that it is told does not.
        assert!(certificate.chunks_per_s.is_finite());
        assert!(certificate.ttft_error_p50_ms.is_finite());
        assert!(certificate.ttft_error_p50_ms <= certificate.ttft_error_p99_ms);
        assert!(certificate.tpot_error.is_finite());
        assert!(!certificate.remembered);
    }

    #[tokio::test]
    async fn a_raised_flag_and_an_unwanted_certificate_take_no_time() {
        let stop = CancelFlag::new();
        assert_eq!(certify(4, Certify::Off, &stop).await, None);
        stop.cancel();
        assert_eq!(certify(4, Certify::Anew, &stop).await, None);
    }

    #[test]
    fn streams_are_powers_of_two_up_to_a_bound() {
        let limit = streams_for(100_000).expect("streams");
        assert!(limit.is_power_of_two() && limit <= MOST_STREAMS);
        assert_eq!(streams_for(0), Some(1));
        assert_eq!(streams_for(3), Some(4));
    }
}
