//! Whether a preview picture can be read, whatever it has to say.

use proptest::prelude::*;
use resvg::usvg::{Group, Node, Rect, TextChunk};
use roxmltree::Document;
use tokdyno_domain::{
    chart::{Axis, ChartSpec, Line, Mark, Point, Scale, Series},
    source::Source,
    timestamp::Timestamp,
};

use super::{
    PICTURE_HEIGHT, PICTURE_WIDTH, PictureError, PictureText,
    font::{FILES, Fonts},
    page::page,
    picture, raster,
};
use crate::palette::{PALETTE_DARK, PALETTE_LIGHT, Theme};

const THEMES: [Theme; 2] = [Theme::Light, Theme::Dark];
const CONCLUSION: &str = "One launch each, launch-to-launch variation unknown: not established.";

fn chart(source: Source, points: &[(&str, f64, f64)]) -> ChartSpec {
    let axis = |label: &str| Axis {
        label: label.to_owned(),
        unit: "tok/s".to_owned(),
        scale: Scale::LinearFromZero,
    };
    ChartSpec {
        id: "decision".to_owned(),
        title: String::new(),
        summary: String::new(),
        x: axis("Output throughput at C = 128"),
        y: axis("Single-stream speed"),
        series: points
            .iter()
            .zip(0_u8..)
            .map(|((name, x, y), colour)| Series {
                name: (*name).to_owned(),
                colour,
                mark: Mark::Square,
                line: Line::None,
                source,
                points: vec![Point {
                    x: *x,
                    y: *y,
                    x_bar: Some((x * 0.9, x * 1.1)),
                    hollow: colour == 1,
                    ..Point::default()
                }],
            })
            .collect(),
        bars: Some("Bars: min–max over repeats.".to_owned()),
        notes: Vec::new(),
        as_of: None,
    }
}

fn text(name: &str, configurations: usize) -> PictureText {
    PictureText {
        title: format!("{name} · {name}"),
        verdict: format!(
            "Single stream: {name} against {name} is +9.1 % (single values, no interval). {CONCLUSION}"
        ),
        remark: format!("Confounded: {name} and more differ."),
        configurations: (0..configurations)
            .map(|n| {
                let figures = "90.0 tok/s for one user · 2,320 tok/s at C = 128";
                (format!("{name} {n}"), figures.to_owned())
            })
            .collect(),
        sources: vec![Source::Measured],
        address: format!("dyno.example/c/{name}"),
        frozen_at: Some(Timestamp(1_795_968_039_000_000)),
    }
}

/// All texts of a picture but the one that lies under the plot, with their places.
fn texts(svg: &str) -> Vec<(String, Rect)> {
    fn collect(group: &Group, found: &mut Vec<(String, Rect)>) {
        for node in group.children() {
            match node {
                Node::Group(group) => collect(group, found),
                Node::Text(text) => {
                    let words: String = text.chunks().iter().map(TextChunk::text).collect();
                    if words != "simulated" {
                        found.push((words, text.abs_bounding_box()));
                    }
                }
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(raster::read(svg).expect("an SVG").root(), &mut found);
    found
}

/// Every text lies in the picture and on no other.
fn is_orderly(svg: &str) {
    let found = texts(svg);
    for (at, (words, place)) in found.iter().enumerate() {
        assert!(
            place.left() >= 50.0
                && place.right() <= PICTURE_WIDTH as f32 - 50.0
                && place.top() >= 20.0
                && place.bottom() <= PICTURE_HEIGHT as f32 - 10.0,
            "{words:?} leaves the picture: {place:?}"
        );
        for (others, other) in &found[at + 1..] {
            let wide = place.right().min(other.right()) - place.left().max(other.left());
            let high = place.bottom().min(other.bottom()) - place.top().max(other.top());
            // Boxes hold room for accents and descenders, which may touch.
            let least = place.height().min(other.height());
            assert!(
                wide <= 1.0 || high <= least * 0.35,
                "{words:?} and {others:?} overlap"
            );
        }
    }
}

fn words(svg: &str) -> String {
    let document = Document::parse(svg).expect("well-formed XML");
    let words: Vec<&str> = document
        .descendants()
        .filter(|node| node.tag_name().name() == "text")
        .filter_map(|node| node.text())
        .collect();
    words.join(" ").replace('\u{a0}', " ")
}

#[test]
fn a_picture_is_a_png_of_the_promised_size_and_always_the_same() {
    let chart = chart(
        Source::Measured,
        &[("a 0", 1536.0, 82.5), ("a 1", 2320.0, 90.0)],
    );
    let draw = |theme| picture(&text("a", 2), Some(&chart), theme).expect("a picture");
    let (light, dark) = (draw(Theme::Light), draw(Theme::Dark));
    for png in [&light, &dark] {
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..20], PICTURE_WIDTH.to_be_bytes());
        assert_eq!(png[20..24], PICTURE_HEIGHT.to_be_bytes());
        assert!(png.len() < 300_000, "{} bytes", png.len());
    }
    assert_ne!(light, dark);
    assert_eq!(light, draw(Theme::Light));
    assert!(matches!(
        picture(&text("a", 2), None, Theme::Css),
        Err(PictureError::PageColours)
    ));
}

#[test]
fn texts_of_any_length_lie_side_by_side() {
    let names = [
        "a",
        "SGLang, NCCL tuned",
        "SGLang 0.5.23 with NCCL_MIN_NCHANNELS=32 and --num-continuous-decode-steps 4",
        &"W".repeat(400),
        &"wide and long ".repeat(100),
    ];
    for name in names {
        for configurations in [0, 2, 5, 40] {
            let text = text(name, configurations);
            let points = [(name, 1536.0, 82.5), ("b", 2_320_000.0, 90.0)];
            let chart = chart(Source::Simulated, &points);
            for chart in [None, Some(&chart)] {
                let svg = page(&text, chart, Theme::Light).expect("a page");
                is_orderly(&svg);
                let said = words(&svg);
                assert!(
                    said.contains(CONCLUSION),
                    "{name:.20} {configurations}: {said}"
                );
            }
        }
    }
}

#[test]
fn what_is_left_out_is_said() {
    let svg = page(&text("name", 40), None, Theme::Light).expect("a page");
    let shown = (0..40)
        .filter(|n| words(&svg).contains(&format!("name {n} ")))
        .count();
    assert!(shown > 3 && words(&svg).contains(&format!("and {} more", 40 - shown)));
    let mut many = chart(Source::Measured, &[("name", 1.0, 1.0)]);
    many.series[0].points = (0..5_000)
        .map(|n| Point {
            x: f64::from(n),
            y: if n % 2 == 0 { f64::NAN } else { f64::from(n) },
            ..Point::default()
        })
        .collect();
    let svg = page(&text("name", 1), Some(&many), Theme::Light).expect("a page");
    // 2,500 have no place; of the others every thirteenth is drawn.
    assert!(
        words(&svg).contains("4807 points not shown"),
        "{}",
        words(&svg)
    );
    assert!(svg.len() < 100_000, "{} bytes", svg.len());
}

#[test]
fn simulated_figures_are_marked_in_words() {
    let simulated = chart(Source::Simulated, &[("a", 1536.0, 82.5)]);
    let measured = chart(Source::Measured, &[("a", 1536.0, 82.5)]);
    let mut by_source = text("a", 1);
    by_source.sources = vec![Source::Measured, Source::Simulated];
    let marked = |text: &PictureText, chart: &ChartSpec| {
        let svg = page(text, Some(chart), Theme::Dark).expect("a page");
        words(&svg).contains("SIMULATED: says nothing about a real GPU")
    };
    assert!(marked(&text("a", 1), &simulated));
    assert!(marked(&by_source, &measured));
    assert!(marked(&by_source, &simulated));
    assert!(!marked(&text("a", 1), &measured));
    let mut recorded = text("a", 1);
    recorded.sources = vec![Source::Recorded, Source::Estimated];
    let svg = page(&recorded, Some(&measured), Theme::Dark).expect("a page");
    assert!(words(&svg).contains("Figures: recorded by hand, estimated"));
}

#[test]
fn a_chart_without_points_leaves_its_place_to_the_words() {
    let wide = page(&text("a", 1), None, Theme::Light).expect("a page");
    for points in [
        &[][..],
        &[("a", f64::NAN, 1.0)],
        &[("a", f64::INFINITY, f64::NEG_INFINITY)],
    ] {
        let empty = chart(Source::Measured, points);
        let svg = page(&text("a", 1), Some(&empty), Theme::Light).expect("a page");
        assert_eq!(svg, wide);
    }
}

#[test]
fn configurations_bear_the_marks_of_the_chart() {
    let drawn = |name: &str| {
        let chart = chart(Source::Measured, &[(name, 1536.0, 82.5)]);
        let mut text = text("a", 0);
        text.configurations = vec![("tuned".to_owned(), String::new())];
        let svg = page(&text, Some(&chart), Theme::Light).expect("a page");
        // Squares of the plot and of the list; the other rectangle is the ground.
        svg.matches(r#"width="9" height="9""#).count()
    };
    assert_eq!(drawn("tuned"), 2);
    assert_eq!(drawn("other"), 1);
}

#[test]
fn an_estimate_among_measurements_is_named() {
    let long = "an estimate with a very long name ".repeat(9);
    let mut chart = chart(
        Source::Measured,
        &[("a", 1536.0, 82.5), (&long, 2320.0, 90.0)],
    );
    chart.series[1].source = Source::Estimated;
    // So many that only their names have room.
    let mut text = text("name", 0);
    text.configurations = [long.as_str(), "a", "b", "c", "d", "e", "f"]
        .map(|name| (name.to_owned(), "figures".to_owned()))
        .to_vec();
    let svg = page(&text, Some(&chart), Theme::Light).expect("a page");
    assert_eq!(
        words(&svg).matches("… · estimated").count(),
        1,
        "{}",
        words(&svg)
    );
    assert!(!words(&svg).contains("figures"));
}

/// Relative luminance (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour");
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (a, b) = (luminance(one), luminance(other));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn texts_and_marks_stand_out_from_their_ground() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    for (theme, palette) in [(Theme::Light, PALETTE_LIGHT), (Theme::Dark, PALETTE_DARK)] {
        for (ink, ground) in [
            (theme.ink(), theme.surface()),
            (theme.muted(), theme.surface()),
            (theme.warn_ink(), theme.warn_soft()),
        ] {
            assert!(contrast(ink, ground) >= 4.5, "{theme:?}: {ink} on {ground}");
        }
        for mark in palette {
            assert!(contrast(mark, theme.surface()) >= 3.0, "{theme:?}: {mark}");
        }
        // Texts are of the colours checked above and of no others.
        let text = text("a", 2);
        let chart = chart(Source::Simulated, &[("a 0", 1536.0, 82.5)]);
        let svg = page(&text, Some(&chart), theme).expect("a page");
        let document = Document::parse(&svg).expect("well-formed XML");
        for node in document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
        {
            let fill = node.ancestors().find_map(|node| node.attribute("fill"));
            let known = [theme.ink(), theme.muted(), theme.warn_ink()];
            assert!(fill.is_some_and(|fill| known.contains(&fill)), "{node:?}");
        }
    }
}

#[test]
fn only_the_fonts_inside_the_program_are_known() {
    let svg = page(&text("a", 1), None, Theme::Light).expect("a page");
    let tree = raster::read(&svg).expect("an SVG");
    assert_eq!(tree.fontdb().len(), FILES.len());
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => ".{0,80}",
        2 => "\\PC{0,400}",
        1 => "[a-z ().%=·,-]{0,900}",
        1 => prop::collection::vec(any::<char>(), 0..60).prop_map(String::from_iter),
    ]
}

fn any_picture() -> impl Strategy<Value = PictureText> {
    (
        [any_text(), any_text(), any_text(), any_text()],
        prop::collection::vec((any_text(), any_text()), 0..15),
        prop::collection::vec(prop::sample::select(Source::ALL.to_vec()), 0..4),
        prop::option::of(any::<i64>().prop_map(Timestamp)),
    )
        .prop_map(
            |([title, verdict, remark, address], configurations, sources, frozen_at)| PictureText {
                title,
                verdict,
                remark,
                configurations,
                sources,
                address,
                frozen_at,
            },
        )
}

fn any_chart() -> impl Strategy<Value = ChartSpec> {
    let scale = || {
        prop::sample::select(vec![
            Scale::LinearFromZero,
            Scale::Linear,
            Scale::Log2,
            Scale::Log10,
        ])
    };
    let points = prop::collection::vec((any_text(), any::<f64>(), any::<f64>()), 0..6);
    (points, any_text(), scale(), scale()).prop_map(|(points, label, x, y)| {
        let points: Vec<(&str, f64, f64)> = points
            .iter()
            .map(|(name, x, y)| (name.as_str(), *x, *y))
            .collect();
        let mut chart = chart(Source::Measured, &points);
        (chart.x.scale, chart.y.scale) = (x, y);
        chart.x.label.clone_from(&label);
        chart.y.unit = label;
        chart
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_words_can_be_set(text in any_picture(), chart in prop::option::of(any_chart())) {
        let fonts = Fonts::read().expect("readable fonts");
        for theme in THEMES {
            let svg = page(&text, chart.as_ref(), theme).expect("a page");
            prop_assert!(svg.len() < 200_000);
            // No box where a letter should be.
            prop_assert!(words(&svg).chars().all(|c| fonts.has(c)));
            is_orderly(&svg);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn any_words_can_be_drawn(text in any_picture(), chart in any_chart()) {
        let png = picture(&text, Some(&chart), Theme::Dark).expect("a picture");
        prop_assert!(png.len() < 1_000_000);
    }
}
