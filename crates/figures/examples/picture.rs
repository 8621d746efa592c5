//! Draws preview pictures into a folder, to look at: `cargo run -p tokdyno-figures
//! --example picture -- FOLDER`. The samples are short, usual, crowded and extreme.

use std::{error::Error, fs, path::PathBuf, time::Instant};

use tokdyno_domain::{
    chart::{ChartSpec, Line, Mark, Point, Scale},
    source::Source,
    text::figure,
    timestamp::Timestamp,
};
use tokdyno_figures::{PictureText, Theme, picture};

#[path = "../tests/samples/mod.rs"]
#[expect(dead_code, reason = "the other charts are no previews")]
mod samples;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .ok_or("Name the folder to draw into.")?,
    );
    fs::create_dir_all(&folder)?;
    for (name, text, chart) in [
        founding(),
        simulated(),
        curves(),
        short(),
        crowd(),
        extreme(),
    ] {
        for (theme, suffix) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            let began = Instant::now();
            let bytes = picture(&text, chart.as_ref(), theme)?;
            let took = began.elapsed();
            let file = folder.join(format!("{name}-{suffix}.png"));
            fs::write(&file, &bytes)?;
            println!("{}: {} bytes, {took:.0?}", file.display(), bytes.len());
        }
    }
    Ok(())
}

type Sample = (&'static str, PictureText, Option<ChartSpec>);

fn text(title: &str, verdict: &str, remark: &str, source: Source) -> PictureText {
    PictureText {
        title: title.to_owned(),
        verdict: verdict.to_owned(),
        remark: remark.to_owned(),
        configurations: Vec::new(),
        sources: vec![source],
        address: "dyno.example/c/3f9c2a71d40e5b86a2c4e01977d5b3f8".to_owned(),
        frozen_at: Some(Timestamp(1_795_968_039_000_000)),
    }
}

fn rows(chart: &ChartSpec) -> Vec<(String, String)> {
    chart
        .series
        .iter()
        .filter_map(|series| Some((series, series.points.first()?)))
        .map(|(series, point)| {
            let figures = format!(
                "{} tok/s for one user · {} tok/s at C = 128",
                figure(point.y),
                figure(point.x)
            );
            (series.name.clone(), figures)
        })
        .collect()
}

fn decision(series: &[(&str, Mark, Source, f64, f64, f64)]) -> ChartSpec {
    ChartSpec {
        series: series
            .iter()
            .zip(0_u8..)
            .map(|((name, mark, source, x, y, bar), colour)| {
                let point = Point {
                    x_bar: (*bar > 0.0).then(|| (x * (1.0 - bar), x * (1.0 + bar))),
                    y_bar: (*bar > 0.0).then(|| (y * (1.0 - bar), y * (1.0 + bar))),
                    n: Some(3),
                    ..samples::point(*x, *y)
                };
                samples::series(name, colour, *mark, Line::None, *source, vec![point])
            })
            .collect(),
        x: samples::axis(
            "Output throughput at C = 128",
            "tok/s",
            Scale::LinearFromZero,
        ),
        y: samples::axis("Single-stream speed", "tok/s", Scale::LinearFromZero),
        bars: series
            .iter()
            .any(|one| one.5 > 0.0)
            .then(|| "Bars: min–max over repeats.".to_owned()),
        ..samples::board()
    }
}

/// From the notes: one launch each, so nothing is established.
fn founding() -> Sample {
    let mut chart = samples::board();
    chart.x.label = "Output throughput at C = 128".to_owned();
    chart.y.label = "Single-stream speed".to_owned();
    let text = PictureText {
        configurations: rows(&chart),
        ..text(
            "Kimi-K2.5 INT4 on 8 RTX PRO 6000: vLLM or SGLang?",
            "Single stream: SGLang, NCCL tuned against vLLM baseline is +9.1 % (single values, no interval). One launch each, launch-to-launch variation unknown: not established.",
            "Confounded: 14 things differ, so none of them alone explains the result. 7 more verdicts on the page.",
            Source::Recorded,
        )
    };
    ("founding", text, Some(chart))
}

/// The stand-in engine, two configurations, a verdict.
fn simulated() -> Sample {
    let chart = decision(&[
        (
            "vLLM baseline",
            Mark::Square,
            Source::Simulated,
            1536.0,
            82.5,
            0.03,
        ),
        (
            "SGLang, NCCL tuned",
            Mark::Circle,
            Source::Simulated,
            2320.0,
            90.0,
            0.02,
        ),
    ]);
    let text = PictureText {
        configurations: rows(&chart),
        ..text(
            "vLLM baseline · SGLang, NCCL tuned",
            "Output throughput at C = 128: SGLang, NCCL tuned against vLLM baseline is +51.0 % (95 % interval +46.2 % to +56.1 % over 3 launches and 3 launches). Verdict: better, and by more than 2 %.",
            "Controlled: only engine differs.",
            Source::Simulated,
        )
    };
    ("simulated", text, Some(chart))
}

/// Curves, and a class of comparison for want of a verdict.
fn curves() -> Sample {
    let chart = samples::curve();
    let text = PictureText {
        configurations: chart
            .series
            .iter()
            .map(|series| (series.name.clone(), "2,370 tok/s at C = 128".to_owned()))
            .collect(),
        ..text(
            "After the driver's update",
            "Nothing that is known differs: a repetition.",
            "",
            Source::Simulated,
        )
    };
    ("curves", text, Some(chart))
}

/// As little as there can be.
fn short() -> Sample {
    let text = PictureText {
        configurations: vec![
            ("a".to_owned(), "no figures".to_owned()),
            ("b".to_owned(), "90.0 tok/s for one user".to_owned()),
        ],
        ..text(
            "a · b",
            "Single stream: a has no figure.",
            "",
            Source::Measured,
        )
    };
    ("short", text, None)
}

/// Twelve configurations.
fn crowd() -> Sample {
    let names: Vec<String> = (1..=12)
        .map(|n| format!("SGLang tp8, continuous decode {n}"))
        .collect();
    let series: Vec<(&str, Mark, Source, f64, f64, f64)> = names
        .iter()
        .zip(0_u32..)
        .map(|(name, n)| {
            let n = f64::from(n);
            (
                name.as_str(),
                Mark::Circle,
                Source::Measured,
                1200.0 + 90.0 * n,
                95.0 - 2.0 * n,
                0.02,
            )
        })
        .collect();
    let chart = decision(&series);
    let text = PictureText {
        configurations: rows(&chart),
        ..text(
            "Continuous decode steps from 1 to 12",
            "Single stream: SGLang tp8, continuous decode 2 against SGLang tp8, continuous decode 1 is −2.1 % (95 % interval −2.9 % to −1.3 % over 3 launches and 3 launches). Verdict: worse, though perhaps by less than 2 %.",
            "Controlled: only num_continuous_decode_steps differs. 21 more verdicts on the page.",
            Source::Measured,
        )
    };
    ("crowd", text, Some(chart))
}

/// More than there is room for, and signs for which there is no glyph.
fn extreme() -> Sample {
    let long = "SGLang 0.5.23 with NCCL_MIN_NCHANNELS=32 NCCL_P2P_LEVEL=SYS and --num-continuous-decode-steps 4 and --attention-backend triton";
    let chart = decision(&[
        (long, Mark::Circle, Source::Measured, 2_320_000.0, 90.0, 0.1),
        (
            "模型 🚀 <b>&amp;</b>",
            Mark::Diamond,
            Source::Estimated,
            1_536_000.0,
            82.5,
            0.1,
        ),
    ]);
    let text = PictureText {
        configurations: rows(&chart),
        sources: vec![Source::Measured, Source::Estimated],
        address: format!("dyno.example/{}", "sub/".repeat(60)),
        ..text(
            &format!("{long} · {long} · {long}"),
            &format!(
                "Output throughput at C = 128: {long} against {long} is +51.0 % (95 % interval +46.2 % to +56.1 % over 3 launches and 3 launches). One launch each, launch-to-launch variation unknown: not established."
            ),
            &format!("Confounded: {long} differ."),
            Source::Measured,
        )
    };
    ("extreme", text, Some(chart))
}
