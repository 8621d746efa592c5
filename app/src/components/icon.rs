//! Small drawings. They always stand beside a word and are hidden from readers
//! that speak.

use leptos::prelude::*;

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Glyph {
    Check,
    Cross,
    Flag,
    Clock,
    Pulse,
    Stop,
    Broken,
    Gauge,
    File,
    Pencil,
    About,
    Ghost,
    Equal,
    Up,
    Down,
    Question,
    NotEqual,
    Sun,
    Moon,
    Display,
    Plus,
    Link,
    Copy,
    Lock,
    Warning,
    Empty,
    Chevron,
}

impl Glyph {
    /// Outlines on a ground of 16 × 16.
    const fn path(self) -> &'static str {
        match self {
            Self::Check => "M3 8.5l3.2 3.2L13 4.8",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::Flag => "M4 14V2.5M4 3h8l-2 3 2 3H4",
            Self::Clock => "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.5V8l2.4 1.6",
            Self::Pulse => "M1.5 8.5h3L6.5 3l3 10 2-4.5h3",
            Self::Stop => "M4 4h8v8H4z",
            Self::Broken => "M2 8h4l-1.5-3M14 8h-4l1.5 3M8 2v2M8 12v2",
            Self::Gauge => {
                "M2.2 12a6.3 6.3 0 1 1 11.6 0M8 10.5l3-4.2M8 11.5a1 1 0 1 0 0-2 1 1 0 0 0 0 2z"
            }
            Self::File => "M4 1.8h5.2L12 4.6v9.6H4zM9 2v3h3",
            Self::Pencil => "M3 13l.6-3L10.8 2.800l2.4 2.400L6 12.400z",
            Self::About => {
                "M2.5 6.200c1.8-2 3.6-2 5.5-.6s3.7 1.4 5.5-.6M2.5 11c1.8-2 3.6-2 5.5-.6s3.7 1.4 5.5-.6"
            }
            Self::Ghost => {
                "M3.5 13.500V7a4.5 4.5 0 0 1 9 0v6.500l-2.250-1.500L8 13.5 5.750 12zM6.3 7v.6M9.7 7v.6"
            }
            Self::Equal => "M3 6h10M3 10h10",
            Self::Up => "M8 13V3M4 7l4-4 4 4",
            Self::Down => "M8 3v10M4 9l4 4 4-4",
            Self::Question => "M5.5 6a2.5 2.5 0 1 1 3.6 2.200c-.8.4-1.1.9-1.1 1.800M8 12.600v.2",
            Self::NotEqual => "M3 6h10M3 10h10M11 3L5 13",
            Self::Sun => {
                "M8 5.200a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.600zM8 1v1.600M8 13.400V15M1 8h1.600M13.4 8H15M3 3l1.2 1.200M11.8 11.800L13 13M13 3l-1.2 1.200M4.2 11.800L3 13"
            }
            Self::Moon => "M13.2 9.800A5.8 5.8 0 0 1 6.2 2.800a5.8 5.8 0 1 0 7 7z",
            Self::Display => "M1.8 3h12.400v8H1.800zM6 14h4M8 11v3",
            Self::Plus => "M8 3v10M3 8h10",
            Self::Link => {
                "M6.5 9.500l3-3M7 4.500l1.4-1.400a2.8 2.8 0 0 1 4 4L11 8.500M9 11.500l-1.4 1.400a2.8 2.8 0 0 1-4-4L5 7.5"
            }
            Self::Copy => "M5.5 5.500h8v8h-8zM10.5 5.500v-3h-8v8h3",
            Self::Lock => "M3.5 7h9v6.500h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
            Self::Warning => "M8 2.200l6.3 11.300H1.700zM8 6.500v3.200M8 11.600v.2",
            Self::Empty => "M8 2.500a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
            Self::Chevron => "M6 3.500L10.5 8 6 12.5",
        }
    }
}

/// A small drawing.
#[component]
pub fn Icon(
    /// Which one.
    glyph: Glyph,
) -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d=glyph.path()></path>
        </svg>
    }
}
