//! Draws sample charts into a folder, to look at: `cargo run -p tokdyno-figures
//! --example gallery -- FOLDER`.

use std::{error::Error, fs, path::PathBuf};

use tokdyno_figures::{Theme, plotly_json, svg};

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .ok_or("Name the folder to draw into.")?,
    );
    fs::create_dir_all(&folder)?;
    let mut empty = samples::curve();
    empty.id = "empty".to_owned();
    empty.series.clear();
    let mut crowd = samples::curve();
    crowd.id = "crowd".to_owned();
    crowd.series = (0..24)
        .map(|n| {
            samples::series(
                &format!("Configuration {n} with a rather long name that goes on and on"),
                n,
                [
                    tokdyno_domain::chart::Mark::Circle,
                    tokdyno_domain::chart::Mark::Square,
                    tokdyno_domain::chart::Mark::Diamond,
                ][usize::from(n % 3)],
                tokdyno_domain::chart::Line::Solid,
                tokdyno_domain::source::Source::Estimated,
                [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 512.0]
                    .map(|x| samples::point(x, x * f64::from(n)))
                    .to_vec(),
            )
        })
        .collect();
    for spec in [
        samples::board(),
        samples::curve(),
        samples::distribution(),
        empty,
        crowd,
    ] {
        for (theme, name) in [
            (Theme::Light, "light"),
            (Theme::Dark, "dark"),
            (Theme::Css, "css"),
        ] {
            fs::write(
                folder.join(format!("{}-{name}.svg", spec.id)),
                svg(&spec, theme),
            )?;
        }
        fs::write(
            folder.join(format!("{}.json", spec.id)),
            plotly_json(&spec)?,
        )?;
    }
    Ok(())
}
