//! The figure that plotly.js draws. Colours are names (`@series1` … `@series8`,
//! `@ink`, `@muted`, `@grid`, `@surface`, `@transparent`), which the page replaces
//! by those of its theme before it draws.

use plotly::{
    Configuration, Layout, Plot, Scatter,
    common::{
        Anchor, DashType, ErrorData, ErrorType, ExponentFormat, Font, HoverInfo, Label,
        Line as PlotlyLine, LineShape, Marker, MarkerSymbol, Mode, Orientation, TickMode, Title,
    },
    configuration::{DisplayModeBar, ImageButtonFormats, ModeBarButtonName, ToImageButtonOptions},
    layout::{
        Annotation, Axis as PlotlyAxis, AxisType, HoverMode, Legend, Margin, ModeBar, RangeMode,
    },
};
use serde_json::{Value, json};
use tokdyno_domain::chart::{Axis, ChartSpec, Line, Mark, Scale};

use crate::{
    drawable::{Dot, Drawable, Drawn},
    error::FigureError,
    palette::token,
    scale::Scaled,
    text::{number, plotly as escaped, truncated},
};

/// Width of the plot on the narrowest screen: ticks must not touch there.
const NARROW: f64 = 270.0;
/// Longest name in the legend, in characters; the hover text has it whole.
const LONGEST_NAME: usize = 34;

/// The chart as JSON for `Plotly.react`: `data`, `layout`, `config`.
///
/// # Errors
/// [`FigureError::Json`] if the figure's builder writes anything but JSON.
pub fn plotly_json(spec: &ChartSpec) -> Result<String, FigureError> {
    let drawable = Drawable::of(spec);
    let mut plot = Plot::new();
    for series in &drawable.series {
        plot.add_trace(trace(spec, series));
    }
    plot.set_layout(layout(spec, &drawable));
    plot.set_configuration(configuration(spec));
    let mut figure: Value = serde_json::from_str(&plot.to_json())?;
    complete(&mut figure, spec, &drawable);
    Ok(serde_json::to_string(&figure)?)
}

fn trace(spec: &ChartSpec, series: &Drawn) -> Box<Scatter<f64, f64>> {
    let colour = token(series.colour);
    let dense = series.mark == Mark::None;
    let hollow = series.points.iter().any(|dot| dot.hollow);
    let joined = series.line != Line::None || dense;
    let mode = match (joined, dense && !hollow) {
        (true, true) => Mode::Lines,
        (true, false) => Mode::LinesMarkers,
        (false, _) => Mode::Markers,
    };
    let mut trace = Scatter::new(
        series.points.iter().map(|dot| dot.x).collect(),
        series.points.iter().map(|dot| dot.y).collect(),
    )
    .name(escaped(&series.legend_name(LONGEST_NAME)))
    .mode(mode)
    .show_legend(true)
    .marker(
        Marker::new()
            .symbol(symbol(series.mark))
            .size(10)
            .color(colour.clone())
            .line(PlotlyLine::new().color(colour.clone()).width(2.0)),
    )
    .line(
        PlotlyLine::new()
            .color(colour.clone())
            .width(2.0)
            .shape(match series.line {
                Line::Steps => LineShape::Hv,
                Line::None | Line::Solid | Line::Dashed => LineShape::Linear,
            })
            .dash(match series.line {
                Line::Dashed => DashType::Dash,
                Line::None | Line::Solid | Line::Steps => DashType::Solid,
            }),
    )
    .hover_info(HoverInfo::Text)
    .hover_text_array(
        series
            .points
            .iter()
            .map(|dot| hover(spec, series, dot))
            .collect(),
    )
    .hover_template("%{hovertext}<extra></extra>");
    if series.points.iter().any(|dot| dot.x_bar.is_some()) {
        trace = trace.error_x(error(
            series.points.iter().map(|dot| (dot.x, dot.x_bar)),
            &colour,
        ));
    }
    if series.points.iter().any(|dot| dot.y_bar.is_some()) {
        trace = trace.error_y(error(
            series.points.iter().map(|dot| (dot.y, dot.y_bar)),
            &colour,
        ));
    }
    trace
}

const fn symbol(mark: Mark) -> MarkerSymbol {
    match mark {
        Mark::Circle | Mark::None => MarkerSymbol::Circle,
        Mark::Square => MarkerSymbol::Square,
        Mark::Diamond => MarkerSymbol::Diamond,
    }
}

fn error(dots: impl Iterator<Item = (f64, Option<(f64, f64)>)>, colour: &str) -> ErrorData {
    // plotly.js wants distances from the point, none of them below zero.
    let (above, below) = dots
        .map(|(value, bar)| match bar {
            Some((low, high)) => ((high - value).max(0.0), (value - low).max(0.0)),
            None => (0.0, 0.0),
        })
        .unzip();
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(above)
        .array_minus(below)
        .color(colour.to_owned())
        .thickness(1.5)
        .width(4)
}

fn hover(spec: &ChartSpec, series: &Drawn, dot: &Dot) -> String {
    // No mark-up: plotly would turn it into style attributes, which a strict
    // content-security policy refuses.
    let mut lines = vec![escaped(&series.name)];
    for (axis, value, bar) in [(&spec.x, dot.x, dot.x_bar), (&spec.y, dot.y, dot.y_bar)] {
        let unit = if axis.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", axis.unit)
        };
        let bar = bar.map_or_else(String::new, |(low, high)| {
            format!(" (bar {} – {})", number(low), number(high))
        });
        lines.push(escaped(&format!(
            "{}: {}{unit}{bar}",
            axis.label,
            number(value)
        )));
    }
    if let Some(n) = dot.n {
        lines.push(format!("n = {n}"));
    }
    if dot.hollow {
        lines.push("disputed or flagged".to_owned());
    }
    lines.extend(
        dot.note
            .as_deref()
            .map(|note| escaped(&truncated(note, 160))),
    );
    lines.push(format!("source: {}", series.source));
    lines.join("<br>")
}

fn layout(spec: &ChartSpec, drawable: &Drawable) -> Layout {
    let mut layout = Layout::new()
        .auto_size(true)
        .font(
            Font::new()
                .family("system-ui, sans-serif")
                .size(13)
                .color("@ink"),
        )
        .paper_background_color("@transparent")
        .plot_background_color("@transparent")
        // The mode bar stands in the upper margin, beside nothing else.
        .margin(
            Margin::new()
                .left(8)
                .right(16)
                .top(36)
                .bottom(8)
                .auto_expand(true),
        )
        .hover_mode(HoverMode::Closest)
        .hover_label(
            Label::new()
                .background_color("@surface")
                .border_color("@grid")
                .font(Font::new().size(13).color("@ink"))
                .align("left"),
        )
        .mode_bar(
            ModeBar::new()
                .orientation(Orientation::Horizontal)
                .background_color("@transparent")
                .color("@muted")
                .active_color("@ink"),
        )
        .show_legend(true)
        .legend(
            Legend::new()
                .orientation(Orientation::Horizontal)
                .x(0.0)
                .x_anchor(Anchor::Left)
                .y(0.0)
                .y_anchor(Anchor::Bottom)
                .background_color("@transparent")
                .font(Font::new().size(13).color("@ink")),
        )
        .x_axis(axis(
            &spec.x,
            drawable.x_extent(),
            drawable.dots().map(|dot| dot.x),
            42.0 / NARROW,
        ))
        .y_axis(axis(
            &spec.y,
            drawable.y_extent(),
            drawable.dots().map(|dot| dot.y),
            0.08,
        ));
    if drawable.is_empty() {
        layout = layout.annotations(vec![
            Annotation::new()
                .text("Nothing to show yet.")
                .x_ref("paper")
                .y_ref("paper")
                .x(0.5)
                .y(0.5)
                .show_arrow(false)
                .font(Font::new().size(13).color("@muted")),
        ]);
    }
    layout
}

fn axis(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
    own: impl Iterator<Item = f64>,
    apart: f64,
) -> PlotlyAxis {
    let drawn = PlotlyAxis::new()
        .title(Title::with_text(escaped(&axis.title())).font(Font::new().size(13).color("@ink")))
        .auto_margin(true)
        .grid_color("@grid")
        .grid_width(1)
        .line_color("@muted")
        .show_line(true)
        .zero_line(false)
        .tick_font(Font::new().size(12).color("@muted"))
        .tick_angle(0.0)
        .exponent_format(ExponentFormat::None)
        .separate_thousands(true);
    match axis.scale {
        Scale::LinearFromZero => drawn
            .type_(AxisType::Linear)
            .range_mode(RangeMode::ToZero)
            .n_ticks(7),
        Scale::Linear => drawn.type_(AxisType::Linear).n_ticks(7),
        Scale::Log2 | Scale::Log10 => {
            let scaled = Scaled::new(axis.scale, values, own, 6, apart);
            // Given, because plotly's own choice may leave out a tick at the very end
            // of the data, and it fails to place the title of an axis without ticks.
            let range: Vec<f64> = scaled.ends().map(f64::log10).to_vec();
            let (at, labels) = scaled.ticks.into_iter().unzip();
            drawn
                .type_(AxisType::Log)
                .range(range)
                .tick_mode(TickMode::Array)
                .tick_values(at)
                .tick_text(labels)
        }
    }
}

fn configuration(spec: &ChartSpec) -> Configuration {
    Configuration::new()
        .responsive(true)
        .display_logo(false)
        .display_mode_bar(DisplayModeBar::Hover)
        .mode_bar_buttons_to_remove(vec![
            ModeBarButtonName::Select2d,
            ModeBarButtonName::Lasso2d,
        ])
        .to_image_button_options(
            ToImageButtonOptions::new()
                .format(ImageButtonFormats::Png)
                .filename(&spec.id)
                .scale(2),
        )
}

/// What the builders have no words for.
fn complete(figure: &mut Value, spec: &ChartSpec, drawable: &Drawable) {
    let layout = &mut figure["layout"];
    // Zoom and hidden series stay when the data is refreshed.
    layout["uirevision"] = json!(spec.id);
    // At the foot of the whole picture, whatever its height: it can never lie on
    // the axis title.
    layout["legend"]["yref"] = json!("container");
    layout["xaxis"]["title"]["standoff"] = json!(10);
    layout["yaxis"]["title"]["standoff"] = json!(10);
    layout["hoverlabel"]["namelength"] = json!(-1);
    for (trace, series) in figure["data"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .zip(&drawable.series)
    {
        if !series.points.iter().any(|dot| dot.hollow) {
            continue;
        }
        let solid = trace["marker"]["symbol"]
            .as_str()
            .unwrap_or("circle")
            .to_owned();
        trace["marker"]["symbol"] = series
            .points
            .iter()
            .map(|dot| {
                if dot.hollow {
                    format!("{solid}-open")
                } else {
                    solid.clone()
                }
            })
            .collect();
        if series.mark == Mark::None {
            trace["marker"]["size"] = series
                .points
                .iter()
                .map(|dot| if dot.hollow { 9 } else { 0 })
                .collect();
        }
    }
    if let Some(object) = figure.as_object_mut()
        && object.get("frames").is_some_and(Value::is_null)
    {
        object.remove("frames");
    }
}
