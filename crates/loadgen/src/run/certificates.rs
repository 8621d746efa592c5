//! The certificates of a run: for how many streams, and which one counts.

use std::collections::{BTreeMap, BTreeSet};

use tokdyno_domain::{conditions::Certificate, meter::Certify};

use crate::{
    cancel::CancelFlag,
    certify::{certify, streams_of},
};

/// Fewer streams end before the rates that a single fast one can reach: no stream of
/// the meter's own server gets its chunks as fast.
const ENOUGH_STREAMS: u32 = 16;

/// What was found so far.
#[derive(Debug)]
pub(super) struct Certificates {
    mode: Certify,
    stop: CancelFlag,
    /// By streams, a power of two.
    known: BTreeMap<u32, Option<Certificate>>,
    /// Streams for which a second one was asked for.
    twice: BTreeSet<u32>,
}

impl Certificates {
    pub(super) const fn new(mode: Certify, stop: CancelFlag) -> Self {
        Self {
            mode,
            stop,
            known: BTreeMap::new(),
            twice: BTreeSet::new(),
        }
    }

    /// What this machine can time truthfully at this concurrency, found once a run.
    pub(super) async fn find(&mut self, concurrency: u32) -> Option<Certificate> {
        let streams = streams_of(concurrency);
        if let Some(known) = self.known.get(&streams) {
            return known.clone();
        }
        let found = certify(streams, self.mode, &self.stop).await;
        if !self.stop.is_cancelled() {
            self.known.insert(streams, found.clone());
        }
        found
    }

    /// The one for so many requests in flight, where that of before is for fewer.
    pub(super) async fn wider(
        &mut self,
        in_flight: u32,
        before: Option<&Certificate>,
    ) -> Option<Certificate> {
        if streams_of(in_flight) <= before?.concurrency {
            return None;
        }
        let found = self.find(in_flight).await?;
        (Some(&found) != before).then_some(found)
    }

    /// A second one, where a stage went beyond the first: that may stem from a busier
    /// moment, or from too few streams for the rate. What held at either time counts;
    /// None if the second is no better.
    pub(super) async fn better(
        &mut self,
        in_flight: u32,
        before: Option<&Certificate>,
    ) -> Option<Certificate> {
        if self.mode == Certify::Off {
            return None;
        }
        let streams = streams_of(in_flight);
        let enough = streams.max(ENOUGH_STREAMS);
        if self.twice.insert(enough)
            && let Some(found) = certify(enough, Certify::Anew, &self.stop).await
        {
            self.keep_better(enough, &found);
        }
        let second = self.known.get(&enough)?.clone()?;
        if !is_better(&second, before) {
            return None;
        }
        self.keep_better(streams, &second);
        Some(second)
    }

    fn keep_better(&mut self, streams: u32, found: &Certificate) {
        let known = self.known.entry(streams).or_default();
        if is_better(found, known.as_ref()) {
            *known = Some(found.clone());
        }
    }
}

fn is_better(found: &Certificate, before: Option<&Certificate>) -> bool {
    before.is_none_or(|before| found.chunks_per_s > before.chunks_per_s)
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::timestamp::Timestamp;

    use super::*;

    fn certificate(concurrency: u32, chunks_per_s: f64) -> Certificate {
        Certificate {
            at: Timestamp(0),
            concurrency,
            chunks_per_s,
            is_limit: false,
            ttft_error_p50_ms: 0.1,
            ttft_error_p99_ms: 1.0,
            tpot_error: 0.0,
            remembered: false,
        }
    }

    /// With these, all of them second ones already: nothing is measured.
    fn known(certificates: &[Certificate]) -> Certificates {
        let mut known = Certificates::new(Certify::Anew, CancelFlag::new());
        for one in certificates {
            known.known.insert(one.concurrency, Some(one.clone()));
            known.twice.insert(one.concurrency);
        }
        known
    }

    #[tokio::test]
    async fn a_busier_stage_has_the_certificate_of_its_concurrency() {
        let (few, many) = (certificate(8, 40e3), certificate(64, 10e3));
        let mut all = known(&[few.clone(), many.clone()]);
        assert_eq!(all.find(5).await.as_ref(), Some(&few));
        assert_eq!(all.wider(8, Some(&few)).await, None);
        // Also where it is worse.
        assert_eq!(all.wider(33, Some(&few)).await.as_ref(), Some(&many));
        assert_eq!(all.wider(33, None).await, None, "none was wanted");
    }

    #[tokio::test]
    async fn few_streams_are_certified_again_as_more() {
        let (one, more) = (certificate(1, 5e3), certificate(16, 80e3));
        let mut all = known(&[one.clone(), more.clone()]);
        assert_eq!(all.better(1, Some(&one)).await.as_ref(), Some(&more));
        // Later stages begin with it.
        assert_eq!(all.find(1).await.as_ref(), Some(&more));
        assert_eq!(all.better(1, Some(&more)).await, None);
        assert_eq!(all.better(16, Some(&certificate(16, 90e3))).await, None);
    }

    #[tokio::test]
    async fn without_certificates_there_is_no_second_one() {
        let mut off = Certificates::new(Certify::Off, CancelFlag::new());
        assert_eq!(off.find(4).await, None);
        assert_eq!(off.better(4, None).await, None);
    }
}
