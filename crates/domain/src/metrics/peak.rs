//! The most there ever was: tokens within a second, requests in flight.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use super::{
    Traced,
    chunks::{TOKEN, arrivals},
};

/// The window over which a peak is taken, in ns.
const WINDOW_NS: u64 = 1_000_000_000;

/// Largest number of tokens that arrived within a second, wherever it begins (its
/// beginning counts, its end does not). None without the chunk times of every
/// success, or for a stage shorter than that second.
pub(super) fn peak_output_tps(requests: &[Traced], duration_s: Option<f64>) -> Option<f64> {
    if duration_s? < WINDOW_NS as f64 / 1e9 {
        return None;
    }
    let mut streams = Vec::new();
    for traced in requests.iter().filter(|(record, _)| record.is_success()) {
        streams.push(arrivals(traced)?);
    }
    // The streams are merged rather than written out and sorted: there may be
    // hundreds of millions of chunks, and only a second of them is looked at.
    let mut next: BinaryHeap<Reverse<(u64, usize, u64)>> = streams
        .iter_mut()
        .enumerate()
        .filter_map(|(stream, arrivals)| {
            let first = arrivals.next()?;
            Some(Reverse((first.at_ns, stream, first.tokens)))
        })
        .collect();
    let mut window: VecDeque<(u64, u64)> = VecDeque::new();
    let (mut within, mut most) = (0_u64, 0_u64);
    while let Some(Reverse((at_ns, stream, tokens))) = next.pop() {
        if let Some(arrival) = streams.get_mut(stream).and_then(Iterator::next) {
            next.push(Reverse((arrival.at_ns, stream, arrival.tokens)));
        }
        while let Some((first_ns, first)) = window.front().copied()
            && at_ns - first_ns >= WINDOW_NS
        {
            within -= first;
            window.pop_front();
        }
        // No second holds as many; what comes on top is left out of the window too.
        let tokens = tokens.min(u64::MAX - within);
        within += tokens;
        match window.back_mut() {
            Some((last_ns, last)) if *last_ns == at_ns => *last += tokens,
            _ => window.push_back((at_ns, tokens)),
        }
        most = most.max(within);
    }
    (most > 0).then(|| most as f64 / TOKEN as f64)
}

/// Most requests that were in flight at any moment, failed ones too. One that ends
/// as another is sent has made room for it. Requests that took no time (no
/// connection was found) were never in flight; none if all were such.
pub(super) fn peak_in_flight(requests: &[Traced]) -> Option<u32> {
    let (mut sends, mut ends): (Vec<u64>, Vec<u64>) = requests
        .iter()
        .filter(|(record, _)| record.end_ns > 0)
        .map(|(record, _)| (record.sent_ns, record.sent_ns.saturating_add(record.end_ns)))
        .unzip();
    sends.sort_unstable();
    ends.sort_unstable();
    let mut over = 0;
    let mut most = None;
    for (sent, send) in sends.iter().enumerate() {
        while ends.get(over).is_some_and(|end| end <= send) {
            over += 1;
        }
        most = most.max(Some(sent + 1 - over));
    }
    u32::try_from(most?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::testing::{MS, record},
        *,
    };
    use crate::record::ChunkTrace;

    fn traced(sent_ms: u64, gaps_ms: &[u32]) -> Traced {
        let e2el: u32 = gaps_ms.iter().sum();
        let trace = ChunkTrace {
            gaps_us: gaps_ms.iter().map(|gap| gap * 1000).collect(),
            tokens: vec![1; gaps_ms.len()],
        };
        let tokens = u32::try_from(gaps_ms.len()).expect("a few");
        let first = gaps_ms[0].into();
        (record(0, sent_ms, first, e2el.into(), tokens), Some(trace))
    }

    #[test]
    fn an_even_stream_peaks_at_its_rate() {
        let even = [traced(0, &[10; 300])];
        assert_eq!(peak_output_tps(&even, Some(3.0)), Some(100.0));
        assert_eq!(peak_output_tps(&even, Some(0.9)), None);
        assert_eq!(peak_output_tps(&even, None), None);
    }

    #[test]
    fn the_busiest_second_need_not_begin_with_a_whole_one() {
        let requests = [traced(0, &[1500, 100, 100, 2000]), traced(900, &[900, 300])];
        // At 1500, 1600, 1700, 1800 and 2100 ms.
        assert_eq!(peak_output_tps(&requests, Some(3.7)), Some(5.0));
        let mut untold = requests;
        untold[1].1 = None;
        assert_eq!(peak_output_tps(&untold, Some(3.7)), None);
    }

    #[test]
    fn an_end_makes_room_for_a_send_of_the_same_moment() {
        let timed = |times: &[(u64, u64)]| {
            let requests: Vec<Traced> = times
                .iter()
                .map(|(sent, end)| {
                    let mut record = record(0, *sent, 1, 2, 2);
                    record.end_ns = end * MS;
                    (record, None)
                })
                .collect();
            peak_in_flight(&requests)
        };
        assert_eq!(timed(&[(0, 10), (10, 10), (20, 10)]), Some(1));
        assert_eq!(timed(&[(0, 11), (10, 10), (20, 10)]), Some(2));
        assert_eq!(timed(&[(5, 0), (5, 0)]), None);
        assert_eq!(timed(&[(5, 0), (5, 1)]), Some(1));
        assert_eq!(timed(&[]), None);
    }

    proptest! {
        #[test]
        fn peaks_are_those_of_a_count_at_every_moment(
            requests in prop::collection::vec(
                (0_u64..3000, prop::collection::vec(0_u32..400, 1..30)), 1..20,
            ),
        ) {
            let requests: Vec<Traced> = requests
                .iter()
                .map(|(sent, gaps)| traced(*sent, gaps))
                .collect();
            let times: Vec<u64> = requests
                .iter()
                .flat_map(|traced| arrivals(traced).expect("chunk times"))
                .map(|arrival| arrival.at_ns)
                .collect();
            let most = times
                .iter()
                .map(|from| times.iter().filter(|at| (*from..from + WINDOW_NS).contains(at)).count())
                .max();
            prop_assert_eq!(
                peak_output_tps(&requests, Some(9.0)),
                most.map(|most| most as f64)
            );
            let in_flight = requests
                .iter()
                .filter(|(record, _)| record.end_ns > 0)
                .map(|(one, _)| {
                    requests
                        .iter()
                        .filter(|(other, _)| {
                            (other.sent_ns..other.sent_ns + other.end_ns).contains(&one.sent_ns)
                        })
                        .count()
                })
                .max();
            prop_assert_eq!(
                peak_in_flight(&requests).map(|most| most as usize),
                in_flight
            );
        }
    }
}
