//! Colours, by name. The figures say *series 3*; what that is stands here for
//! downloads and in the page's style sheet for everything inside the page.

/// Colours of the series on a light ground.
pub const PALETTE_LIGHT: [&str; 8] = [
    "#0a6e5c", "#b4451f", "#2b5fb4", "#8a4fa3", "#7a6a00", "#b3266b", "#3f6f8f", "#5b5b5b",
];

/// Colours of the series on a dark ground.
pub const PALETTE_DARK: [&str; 8] = [
    "#4fd1b5", "#ff9d73", "#8db8ff", "#d3a4ec", "#d9c64a", "#ff8fc3", "#9cc7df", "#bdbdbd",
];

/// The ground a static picture stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// A file of its own, on white.
    Light,
    /// A file of its own, on black.
    Dark,
    /// Inside the page, in the page's colours: `--series-1` … `--series-8`,
    /// `--muted`, `--grid`, `--surface`, and `currentColor` for text.
    Css,
}

impl Theme {
    /// Colour of a series by its place in the palette, which wraps around.
    pub(crate) fn series(self, place: u8) -> String {
        let place = usize::from(place % 8);
        match self {
            Self::Light => PALETTE_LIGHT[place].to_owned(),
            Self::Dark => PALETTE_DARK[place].to_owned(),
            Self::Css => format!("var(--series-{})", place + 1),
        }
    }

    /// Colour of text.
    pub(crate) const fn ink(self) -> &'static str {
        match self {
            Self::Light => "#1b1f1e",
            Self::Dark => "#e8ecea",
            Self::Css => "currentColor",
        }
    }

    /// Colour of lesser text.
    pub(crate) const fn muted(self) -> &'static str {
        match self {
            Self::Light => "#5a6461",
            Self::Dark => "#9aa5a1",
            Self::Css => "var(--muted, currentColor)",
        }
    }

    /// Colour of grid lines.
    pub(crate) const fn grid(self) -> &'static str {
        match self {
            Self::Light => "#e2e7e5",
            Self::Dark => "#2d3533",
            Self::Css => "var(--grid, #8884)",
        }
    }

    /// Colour of the ground.
    pub(crate) const fn surface(self) -> &'static str {
        match self {
            Self::Light => "#ffffff",
            Self::Dark => "#141817",
            Self::Css => "var(--surface, Canvas)",
        }
    }

    /// Colour of a warning's text, on [`Self::warn_soft`].
    pub(crate) const fn warn_ink(self) -> &'static str {
        match self {
            Self::Light => "#7a4a00",
            Self::Dark => "#f0c067",
            Self::Css => "var(--warn-ink, currentColor)",
        }
    }

    /// Colour of a warning's ground.
    pub(crate) const fn warn_soft(self) -> &'static str {
        match self {
            Self::Light => "#fbf0da",
            Self::Dark => "#322710",
            Self::Css => "var(--warn-soft, Canvas)",
        }
    }

    /// Is the picture a file of its own, which must explain itself?
    pub(crate) const fn stands_alone(self) -> bool {
        matches!(self, Self::Light | Self::Dark)
    }
}

/// The name by which a figure for plotly.js calls a series' colour.
pub(crate) fn token(place: u8) -> String {
    format!("@series{}", place % 8 + 1)
}
