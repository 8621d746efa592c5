//! Charts to draw: a board and a curve, in the words of the product.

use tokdyno_domain::{
    chart::{Axis, ChartSpec, Line, Mark, Point, Scale, Series},
    source::Source,
    timestamp::Timestamp,
};

/// An axis.
pub(crate) fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale,
    }
}

/// A series.
pub(crate) fn series(
    name: &str,
    colour: u8,
    mark: Mark,
    line: Line,
    source: Source,
    points: Vec<Point>,
) -> Series {
    Series {
        name: name.to_owned(),
        colour,
        mark,
        line,
        source,
        points,
    }
}

/// A point without anything else.
pub(crate) fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        y,
        ..Point::default()
    }
}

/// Throughput at C = 128 across, single-stream speed up; one point is disputed.
pub(crate) fn board() -> ChartSpec {
    let one = |x: f64, y: f64, hollow: bool, note: Option<&str>| {
        vec![Point {
            n: Some(1),
            hollow,
            note: note.map(str::to_owned),
            ..point(x, y)
        }]
    };
    ChartSpec {
        id: "board".to_owned(),
        title: "Kimi-K2.5 INT4 on 8 RTX PRO 6000: speed for one user against throughput at C = 128".to_owned(),
        summary: "Best for one user: SGLang, NCCL tuned, 90.0 tok/s. Best at C = 128: SGLang untuned, 2,370 tok/s.".to_owned(),
        x: axis("Throughput at C = 128, output_tps", "tok/s", Scale::LinearFromZero),
        y: axis("Single-stream speed, e2e_tps", "tok/s", Scale::LinearFromZero),
        series: vec![
            series("vLLM baseline", 0, Mark::Square, Line::None, Source::Recorded, one(1536.0, 82.5, false, None)),
            series("SGLang, CUDA graphs, triton, untuned", 1, Mark::Circle, Line::None, Source::Recorded, one(2370.0, 63.6, false, None)),
            series("SGLang, NCCL tuning + --num-continuous-decode-steps 4", 2, Mark::Circle, Line::None, Source::Recorded, one(2320.0, 90.0, true, Some("a second note calls it an estimate"))),
            series("SGLang + AQ-MedAI EAGLE-3 drafter", 3, Mark::Circle, Line::None, Source::Recorded, one(849.0, 62.9, false, None)),
            series("SGLang + own K2.5 EAGLE-3 drafter", 4, Mark::Circle, Line::None, Source::Recorded, one(597.0, 40.8, false, None)),
        ],
        bars: None,
        notes: vec!["Each figure rests on one launch: how much launches differ is unknown.".to_owned()],
        as_of: Some(Timestamp(1_795_968_039_000_000)),
    }
}

/// Throughput over concurrency, with bars, and from the stand-in engine.
pub(crate) fn curve() -> ChartSpec {
    let run = |factor: f64| {
        [(1.0, 90.0), (8.0, 480.0), (32.0, 1300.0), (128.0, 2370.0)]
            .into_iter()
            .map(|(x, y)| Point {
                y_bar: Some((y * factor * 0.93, y * factor * 1.04)),
                n: Some(3),
                ..point(x, y * factor)
            })
            .collect::<Vec<_>>()
    };
    ChartSpec {
        id: "throughput".to_owned(),
        title: "Throughput over concurrency".to_owned(),
        summary: "The tuned configuration is faster at every concurrency.".to_owned(),
        x: axis("Concurrency", "", Scale::Log2),
        y: axis("output_tps", "tok/s", Scale::LinearFromZero),
        series: vec![
            series(
                "SGLang 0.5.23 tiny · NCCL tuned",
                0,
                Mark::Circle,
                Line::Solid,
                Source::Simulated,
                run(1.0),
            ),
            series(
                "vLLM 0.33.0 tiny",
                2,
                Mark::Square,
                Line::Dashed,
                Source::Simulated,
                run(0.7),
            ),
        ],
        bars: Some("bars: min–max over 3 repeats".to_owned()),
        notes: Vec::new(),
        as_of: Some(Timestamp(1_795_968_039_000_000)),
    }
}

/// A distribution function in steps, and a dense line, over powers of ten.
pub(crate) fn distribution() -> ChartSpec {
    let steps = (1..=60)
        .map(|n| point(20.0 * 1.06_f64.powi(n), f64::from(n) / 60.0 * 100.0))
        .collect::<Vec<_>>();
    let dense = (1..=400)
        .map(|n| point(15.0 + f64::from(n), (f64::from(n) / 4.0).min(99.0)))
        .collect::<Vec<_>>();
    ChartSpec {
        id: "ttft".to_owned(),
        title: "Time to first token: share of requests that had it".to_owned(),
        summary: "Half the requests had their first token within 115 ms.".to_owned(),
        x: axis("TTFT", "ms", Scale::Log10),
        y: axis("Requests", "%", Scale::Linear),
        series: vec![
            series("C = 8", 0, Mark::None, Line::Steps, Source::Measured, steps),
            series(
                "C = 32",
                1,
                Mark::None,
                Line::Solid,
                Source::Measured,
                dense,
            ),
        ],
        bars: None,
        notes: Vec::new(),
        as_of: None,
    }
}
