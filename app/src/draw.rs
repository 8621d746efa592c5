//! From what a chart shows to what a page needs to show it.

use tokdyno_domain::{chart::ChartSpec, views::ChartView};
use tokdyno_figures::Theme;

/// The chart as picture in the page's colours, and as plotly figure. A chart that
/// plotly's builder cannot write keeps its picture and its table.
#[must_use]
pub fn chart_view(spec: ChartSpec) -> ChartView {
    ChartView {
        figure: tokdyno_figures::plotly_json(&spec).unwrap_or_else(|error| {
            tracing::warn!(chart = spec.id, %error, "no figure for plotly.js");
            String::new()
        }),
        svg: tokdyno_figures::svg(&spec, Theme::Css),
        spec,
    }
}
