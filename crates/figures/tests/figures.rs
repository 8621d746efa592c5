//! The three forms of a chart: what they hold, and that nothing breaks them.

use proptest::prelude::*;
use roxmltree::Document;
use serde_json::Value;
use tokdyno_domain::{
    chart::{ChartSpec, Line, Mark, Point, Scale},
    source::Source,
};
use tokdyno_figures::{Theme, csv, plotly_json, svg};

mod samples;

use samples::{axis, board, curve, distribution, point, series};

const THEMES: [Theme; 3] = [Theme::Light, Theme::Dark, Theme::Css];

fn figure(spec: &ChartSpec) -> Value {
    serde_json::from_str(&plotly_json(spec).expect("a figure")).expect("JSON")
}

/// All text of a picture, in order.
fn words(picture: &str) -> Vec<String> {
    let document = Document::parse(picture).expect("well-formed XML");
    document
        .descendants()
        .filter(|node| node.tag_name().name() == "text")
        .filter_map(|node| node.text().map(str::to_owned))
        .collect()
}

fn count(picture: &str, element: &str) -> usize {
    let document = Document::parse(picture).expect("well-formed XML");
    document
        .descendants()
        .filter(|node| node.tag_name().name() == element)
        .count()
}

fn with_points(points: Vec<Point>) -> ChartSpec {
    let mut spec = curve();
    spec.series = vec![series(
        "one",
        0,
        Mark::Circle,
        Line::Solid,
        Source::Measured,
        points,
    )];
    spec
}

#[test]
fn a_picture_says_what_it_shows() {
    for theme in THEMES {
        let picture = svg(&curve(), theme);
        let document = Document::parse(&picture).expect("well-formed XML");
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        assert_eq!(root.attribute("viewBox"), Some("0 0 720 420"));
        let child = |name: &str| {
            root.children()
                .find(|node| node.tag_name().name() == name)
                .and_then(|node| node.text().map(str::to_owned))
        };
        assert_eq!(child("title"), Some(curve().title));
        assert_eq!(child("desc"), Some(curve().summary));
        let words = words(&picture);
        for expected in [
            "Concurrency",
            "output_tps (tok/s)",
            "128",
            "2,000",
            "SGLang 0.5.23 tiny · NCCL tuned · simulated",
            "bars: min–max over 3 repeats",
            "as of 2026-11-29 16:00 UTC",
            "simulated",
        ] {
            assert!(
                words.iter().any(|word| word == expected),
                "{expected}: {words:?}"
            );
        }
    }
}

#[test]
fn only_files_of_their_own_carry_title_remarks_and_ground() {
    let alone = words(&svg(&board(), Theme::Light));
    let inside = words(&svg(&board(), Theme::Css));
    assert!(alone.iter().any(|word| word.starts_with("Kimi-K2.5 INT4")));
    assert!(!inside.iter().any(|word| word.starts_with("Kimi-K2.5 INT4")));
    assert!(
        alone
            .iter()
            .any(|word| word.starts_with("Each figure rests"))
    );
    assert!(
        !inside
            .iter()
            .any(|word| word.starts_with("Each figure rests"))
    );
    assert!(svg(&board(), Theme::Dark).contains("#141817"));
    let inside = svg(&board(), Theme::Css);
    assert!(inside.contains("var(--series-1)") && inside.contains("currentColor"));
    // A strict content-security policy forbids both.
    assert!(!inside.contains("style=") && !inside.contains("<script"));
}

#[test]
fn an_empty_chart_says_so() {
    let mut spec = curve();
    spec.series.clear();
    for theme in THEMES {
        let words = words(&svg(&spec, theme));
        assert!(words.contains(&"Nothing to show yet.".to_owned()));
        assert!(!words.contains(&"0".to_owned()), "no made-up labels");
    }
    let figure = figure(&spec);
    assert_eq!(figure["data"], Value::Array(Vec::new()));
    assert_eq!(
        figure["layout"]["annotations"][0]["text"],
        "Nothing to show yet."
    );
    assert_eq!(csv(&spec).expect("a table").lines().count(), 1);
}

#[test]
fn a_single_point_is_drawn() {
    let spec = with_points(vec![point(8.0, 480.0)]);
    let picture = svg(&spec, Theme::Light);
    // One in the plot and one in the legend.
    assert_eq!(count(&picture, "circle"), 2);
    assert_eq!(figure(&spec)["data"][0]["x"], serde_json::json!([8.0]));
}

#[test]
fn log2_ticks_stand_at_the_points() {
    let axis = &figure(&curve())["layout"]["xaxis"];
    assert_eq!(axis["type"], "log");
    assert_eq!(axis["tickvals"], serde_json::json!([1.0, 8.0, 32.0, 128.0]));
    assert_eq!(axis["ticktext"], serde_json::json!(["1", "8", "32", "128"]));
    let y = &figure(&curve())["layout"]["yaxis"];
    assert_eq!(y["rangemode"], "tozero");
    assert_eq!(y["title"]["text"], "output_tps (tok/s)");
}

#[test]
fn the_ticks_of_a_narrow_logarithmic_axis_lie_inside_it() {
    let mut spec = with_points(vec![
        Point {
            x: 3.92624,
            y: 50.0,
            ..Point::default()
        },
        Point {
            x: 3.97427,
            y: 100.0,
            ..Point::default()
        },
    ]);
    spec.x.scale = Scale::Log10;
    let axis = &figure(&spec)["layout"]["xaxis"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let (low, high) = (number(&axis["range"][0]), number(&axis["range"][1]));
    let ticks = axis["tickvals"].as_array().expect("ticks");
    assert!(!ticks.is_empty());
    for tick in ticks {
        let place = number(tick).log10();
        assert!(low < place && place < high, "{place} in {low} to {high}");
    }
}

#[test]
fn disputed_points_are_hollow() {
    let spec = board();
    let figure = figure(&spec);
    assert_eq!(
        figure["data"][2]["marker"]["symbol"],
        serde_json::json!(["circle-open"])
    );
    assert_eq!(figure["data"][0]["marker"]["symbol"], "square");
    let picture = svg(&spec, Theme::Light);
    assert_eq!(
        picture.matches(r##"fill="#ffffff" stroke-width"##).count(),
        2,
        "in the plot and in the legend"
    );
    assert!(
        words(&picture)
            .iter()
            .any(|word| word.contains("hollow: disputed"))
    );
    assert!(csv(&spec).expect("a table").contains(",1,yes,"));
}

#[test]
fn bars_reach_from_low_to_high() {
    let spec = with_points(vec![Point {
        x_bar: Some((1.0, 16.0)),
        // The wrong way round.
        y_bar: Some((500.0, 400.0)),
        ..point(8.0, 480.0)
    }]);
    let trace = &figure(&spec)["data"][0];
    assert_eq!(trace["error_y"]["array"], serde_json::json!([20.0]));
    assert_eq!(trace["error_y"]["arrayminus"], serde_json::json!([80.0]));
    assert_eq!(trace["error_x"]["array"], serde_json::json!([8.0]));
    assert_eq!(trace["error_x"]["arrayminus"], serde_json::json!([7.0]));
    assert_eq!(trace["error_y"]["symmetric"], false);
    // A vertical and a horizontal bar, each with two caps.
    let picture = svg(&spec, Theme::Light);
    let document = Document::parse(&picture).expect("well-formed XML");
    let bars = document
        .descendants()
        .find(|node| node.attribute("opacity") == Some("0.75"))
        .and_then(|node| node.attribute("d"))
        .expect("bars");
    assert_eq!(bars.matches('M').count(), 6);
}

#[test]
fn markup_in_names_is_shown_and_not_obeyed() {
    let evil = "<b>&\"'<script>alert(1)</script>\u{0}\u{1b}";
    let mut spec = board();
    spec.title = evil.to_owned();
    spec.summary = evil.to_owned();
    spec.x.label = evil.to_owned();
    spec.series[0].name = evil.to_owned();
    spec.series[0].points[0].note = Some(evil.to_owned());
    spec.bars = Some(evil.to_owned());
    spec.id = "a\"><x".to_owned();
    for theme in THEMES {
        let picture = svg(&spec, theme);
        assert!(!picture.contains("<script"), "{theme:?}");
        assert!(
            words(&picture)
                .iter()
                .any(|word| word.starts_with("<b>&\"'<script>"))
        );
    }
    let figure = figure(&spec);
    let name = figure["data"][0]["name"].as_str().expect("a name");
    assert!(name.starts_with("&lt;b&gt;&amp;"), "{name}");
    let hover = figure["data"][0]["hovertext"][0].as_str().expect("text");
    assert!(!hover.contains("<script"), "{hover}");
}

#[test]
fn the_hover_text_tells_all_of_a_point() {
    let figure = figure(&board());
    let trace = &figure["data"][2];
    assert_eq!(trace["hovertemplate"], "%{hovertext}<extra></extra>");
    let hover = trace["hovertext"][0].as_str().expect("text");
    for expected in [
        "SGLang, NCCL tuning + --num-continuous-decode-steps 4",
        "Throughput at C = 128, output_tps: 2,320 tok/s",
        "n = 1",
        "disputed or flagged",
        "a second note calls it an estimate",
        "source: recorded",
    ] {
        assert!(hover.contains(expected), "{expected}: {hover}");
    }
    let with_bars = curve();
    let hover = self::figure(&with_bars)["data"][0]["hovertext"][0]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(hover.contains("90 tok/s (bar 83.7 – 93.6)"), "{hover}");
}

#[test]
fn the_figure_keeps_zoom_and_its_colours_have_names() {
    for spec in [board(), curve(), distribution()] {
        let figure = figure(&spec);
        assert_eq!(figure["layout"]["uirevision"], spec.id.as_str());
        assert_eq!(figure["config"]["responsive"], true);
        assert_eq!(figure["config"]["displaylogo"], false);
        assert_eq!(figure["config"]["displayModeBar"], "hover");
        assert_eq!(
            figure["config"]["modeBarButtonsToRemove"],
            serde_json::json!(["select2d", "lasso2d"])
        );
        assert!(figure["layout"]["title"].is_null());
        let mut colours = Vec::new();
        collect_colours(&figure, &mut colours);
        assert!(colours.len() > 10);
        for colour in colours {
            let known = colour.strip_prefix("@series").map_or_else(
                || {
                    ["@ink", "@muted", "@grid", "@surface", "@transparent"]
                        .contains(&colour.as_str())
                },
                |place| matches!(place.parse(), Ok(1..=8)),
            );
            assert!(known, "{colour}");
        }
        for trace in figure["data"].as_array().expect("traces") {
            assert_eq!(trace["type"], "scatter");
        }
    }
}

fn collect_colours(value: &Value, colours: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if let (true, Value::String(colour)) = (key.ends_with("color"), value) {
                    colours.push(colour.clone());
                }
                collect_colours(value, colours);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_colours(item, colours)),
        _ => {}
    }
}

#[test]
fn what_is_not_measured_is_named_in_the_legend() {
    let mut spec = curve();
    spec.series[0].source = Source::Estimated;
    let figure = figure(&spec);
    // Long names are cut in the legend, where the suffix must not be what is lost.
    let first = figure["data"][0]["name"].as_str().expect("a name");
    let second = figure["data"][1]["name"].as_str().expect("a name");
    assert!(first.ends_with(" · estimated"), "{first}");
    assert_eq!(second, "vLLM 0.33.0 tiny · simulated");
}

#[test]
fn a_long_name_keeps_its_suffix() {
    let mut spec = curve();
    spec.series[0].name = "a very long name ".repeat(20);
    let figure = figure(&spec);
    let name = figure["data"][0]["name"].as_str().expect("a name");
    assert!(
        name.ends_with("… · simulated") && name.chars().count() <= 34,
        "{name}"
    );
    let picture = svg(&spec, Theme::Light);
    let words = words(&picture);
    let name = words
        .iter()
        .find(|word| word.starts_with("a very long"))
        .expect("an entry");
    assert!(
        name.ends_with("… · simulated") && name.chars().count() <= 48,
        "{name}"
    );
}

#[test]
fn points_that_have_no_place_are_counted() {
    let spec = with_points(vec![
        point(8.0, 1.0),
        point(0.0, 1.0),
        point(-1.0, 1.0),
        point(f64::NAN, 1.0),
        point(1.0, f64::INFINITY),
    ]);
    assert!(
        words(&svg(&spec, Theme::Css))
            .contains(&"4 points cannot be drawn on these axes; the table has them.".to_owned())
    );
    assert_eq!(csv(&spec).expect("a table").lines().count(), 6);
    assert!(!plotly_json(&spec).expect("a figure").contains("null"));
}

#[test]
fn tables_hold_every_value_and_no_formula() {
    let mut spec = board();
    spec.series[0].name = "=HYPERLINK(\"http://x\")".to_owned();
    spec.series[0].points[0].note = Some("+1\n@cmd".to_owned());
    spec.series[1].points[0].y_bar = Some((60.0, 66.5));
    let table = csv(&spec).expect("a table");
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some(
            "series,source,\"Throughput at C = 128, output_tps (tok/s)\",\"Single-stream speed, e2e_tps (tok/s)\",x_low,x_high,y_low,y_high,n,flagged,note"
        )
    );
    assert!(
        table.contains("\"'=HYPERLINK(\"\"http://x\"\")\",recorded,1536,82.5,,,,,1,,\"'+1\n@cmd\""),
        "{table}"
    );
    assert!(
        table.contains(",recorded,2370,63.6,,,60,66.5,1,,"),
        "{table}"
    );
}

#[test]
fn a_chart_always_gives_the_same_bytes() {
    for spec in [board(), curve(), distribution()] {
        for theme in THEMES {
            assert_eq!(svg(&spec, theme), svg(&spec.clone(), theme));
        }
        assert_eq!(
            plotly_json(&spec).expect("a figure"),
            plotly_json(&spec.clone()).expect("a figure")
        );
        assert_eq!(csv(&spec).expect("a table"), csv(&spec).expect("a table"));
    }
}

#[test]
fn a_crowd_leaves_a_plot_and_no_label_leaves_the_picture() {
    let mut spec = board();
    spec.series = (0..40)
        .map(|n| {
            series(
                &format!("configuration {n} {}", "x".repeat(60)),
                n,
                Mark::Circle,
                Line::None,
                Source::Measured,
                vec![point(f64::from(n), 1.0)],
            )
        })
        .collect();
    let picture = svg(&spec, Theme::Light);
    assert!(
        words(&picture)
            .iter()
            .any(|word| word.starts_with("and ") && word.ends_with(" more"))
    );
    let document = Document::parse(&picture).expect("well-formed XML");
    for node in document
        .descendants()
        .filter(|node| node.tag_name().name() == "text")
    {
        let at =
            |name: &str| -> f64 { node.attribute(name).expect(name).parse().expect("a number") };
        assert!((0.0..=720.0).contains(&at("x")) && (0.0..=420.0).contains(&at("y")));
    }
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1e4..1e4_f64,
        1 => any::<f64>().prop_filter("finite", |value| value.is_finite()),
        1 => Just(0.0),
        1 => Just(f64::MIN_POSITIVE),
        1 => Just(f64::MAX),
    ]
}

fn any_point() -> impl Strategy<Value = Point> {
    (
        any_value(),
        any_value(),
        prop::option::of((any_value(), any_value())),
        prop::option::of((any_value(), any_value())),
        prop::option::of(any::<u32>()),
        any::<bool>(),
        prop::option::of(".{0,20}"),
    )
        .prop_map(|(x, y, x_bar, y_bar, n, hollow, note)| Point {
            x,
            y,
            x_bar,
            y_bar,
            n,
            hollow,
            note,
            ..Point::default()
        })
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
    let mark = prop::sample::select(vec![Mark::Circle, Mark::Square, Mark::Diamond, Mark::None]);
    let line = prop::sample::select(vec![Line::None, Line::Solid, Line::Dashed, Line::Steps]);
    let one = (
        ".{0,60}",
        any::<u8>(),
        mark,
        line,
        prop::sample::select(Source::ALL.to_vec()),
        prop::collection::vec(any_point(), 0..8),
    )
        .prop_map(|(name, colour, mark, line, source, points)| {
            series(&name, colour, mark, line, source, points)
        });
    (
        ".{0,120}",
        ".{0,40}",
        scale(),
        scale(),
        prop::collection::vec(one, 0..6),
        prop::option::of(".{0,300}"),
    )
        .prop_map(|(title, label, x, y, series, bars)| ChartSpec {
            id: "any".to_owned(),
            summary: title.clone(),
            title,
            x: axis(&label, "ms", x),
            y: axis(&label, "", y),
            series,
            bars,
            notes: vec![label.clone()],
            as_of: None,
        })
}

/// Attributes that hold places: numbers, and letters of path commands at most.
fn places_are_numbers(picture: &str) {
    let document = Document::parse(picture).expect("well-formed XML");
    for node in document.descendants() {
        for attribute in node.attributes() {
            match attribute.name() {
                "x" | "y" | "x1" | "x2" | "y1" | "y2" | "cx" | "cy" => {
                    let value: f64 = attribute.value().parse().expect("a number");
                    assert!((-20.0..=740.0).contains(&value), "{attribute:?}");
                }
                "d" => assert!(
                    attribute
                        .value()
                        .chars()
                        .all(|c| c.is_ascii_digit() || "MLHVlz.- ".contains(c)),
                    "{attribute:?}"
                ),
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_finite_data_can_be_drawn(spec in any_chart()) {
        for theme in THEMES {
            places_are_numbers(&svg(&spec, theme));
        }
        let figure: Value = serde_json::from_str(&plotly_json(&spec).expect("a figure")).expect("JSON");
        prop_assert_eq!(figure["data"].as_array().map(Vec::len), Some(spec.series.len()));
        let points: usize = spec.series.iter().map(|series| series.points.len()).sum();
        let table = csv(&spec).expect("a table");
        let read = ::csv::Reader::from_reader(table.as_bytes()).records().filter(Result::is_ok).count();
        prop_assert_eq!(read, points);
    }
}
