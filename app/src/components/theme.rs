//! Dark, light, or as the system has it.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::browser;

/// Where the choice is kept in the browser; the document's own script reads it
/// before the first paint.
pub const THEME_KEY: &str = "tokdyno-theme";

/// The choices: stored word, name, drawing.
const CHOICES: [(&str, &str, Glyph); 3] = [
    ("light", "Light", Glyph::Sun),
    ("dark", "Dark", Glyph::Moon),
    ("system", "As the system", Glyph::Display),
];

/// The switch.
#[component]
pub fn ThemeSwitch() -> impl IntoView {
    // What the server cannot know is filled in after hydration.
    let chosen = RwSignal::new("");
    Effect::new(move |_| {
        let stored = browser::stored(THEME_KEY).unwrap_or_default();
        let word = CHOICES
            .iter()
            .find(|choice| choice.0 == stored)
            .map_or("system", |choice| choice.0);
        chosen.set(word);
    });
    let choose = move |word: &'static str| {
        browser::store(THEME_KEY, word);
        if let Some(root) = browser::root() {
            // Attributes of this name can always be set.
            let _ = if word == "system" {
                root.remove_attribute("data-theme")
            } else {
                root.set_attribute("data-theme", word)
            };
        }
        chosen.set(word);
    };
    view! {
        <div class="theme-switch script-only" role="group" aria-label="Colours">
            {CHOICES
                .into_iter()
                .map(|(word, name, glyph)| {
                    view! {
                        <button
                            type="button"
                            title=name
                            aria-pressed=move || (chosen.get() == word).to_string()
                            on:click=move |_| choose(word)
                        >
                            <Icon glyph=glyph/>
                            <span class="visually-hidden">{name}</span>
                        </button>
                    }
                })
                .collect_view()}
        </div>
    }
}
