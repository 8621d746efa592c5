//! What is asked: built-in prompts and prompt files.

use serde::{Deserialize, Serialize};

/// The three prompts of the founding notes, in full.
pub const FOUNDING: [&str; 3] = [
    "Explain the theory of general relativity in detail, including its key principles and implications.",
    "Write a Python function to implement merge sort with detailed comments explaining each step.",
    "What are the main causes and effects of climate change? Provide a comprehensive analysis.",
];

/// Where the prompts of a workload come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "set")]
pub enum PromptSet {
    /// The three of the founding notes. Each pass after the first puts a serial
    /// number in front, so that no pass meets its predecessor in the cache.
    Founding,
    /// Questions made from a subject, a task and a point of view: 120,000
    /// different ones of about twenty tokens, in an order set by the seed.
    Varied,
    /// From a file; past its end they start again with a serial number in front.
    File {
        /// The file's name, without its folder.
        name: String,
        /// The prompts, in order.
        prompts: Vec<String>,
    },
}

/// Why a prompt file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptFileError {
    /// No prompt in it.
    #[error(
        "The prompt file `{0}` holds no prompt. Put one prompt on each line, or one JSON object with a \"prompt\" on each line."
    )]
    Empty(String),
    /// A line that starts like JSON and is none.
    #[error(
        "Line {line} of the prompt file `{name}` is not usable: {reason}. Each line is plain text, a JSON string, or an object with a \"prompt\"."
    )]
    Line {
        /// The file.
        name: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Too large to travel with every run.
    #[error("The prompt file `{name}` holds {bytes} bytes of prompts; at most {max} are kept with a run. Use fewer or shorter prompts.", max = MAX_FILE_BYTES)]
    TooLarge {
        /// The file.
        name: String,
        /// Its size.
        bytes: usize,
    },
}

/// Most bytes of prompts that travel with a workload.
pub const MAX_FILE_BYTES: usize = 16 << 20;

impl PromptSet {
    /// The word for the set.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Founding => "the three founding prompts".to_owned(),
            Self::Varied => "varied questions".to_owned(),
            Self::File { name, prompts } => format!("{name} ({} prompts)", prompts.len()),
        }
    }

    /// Reads a prompt file: JSONL (`{"prompt": "…"}` or `"…"` on each line) or
    /// plain text with a prompt on each line. Blank lines are passed over.
    ///
    /// # Errors
    /// No prompt, a broken JSON line, or more than [`MAX_FILE_BYTES`].
    pub fn from_file(name: &str, text: &str) -> Result<Self, PromptFileError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Line {
            Text(String),
            Object { prompt: String },
        }
        let mut prompts = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let prompt = if line.starts_with(['{', '"']) {
                match serde_json::from_str(line) {
                    Ok(Line::Text(prompt) | Line::Object { prompt }) => prompt,
                    Err(error) => {
                        return Err(PromptFileError::Line {
                            name: name.to_owned(),
                            line: index + 1,
                            reason: error.to_string(),
                        });
                    }
                }
            } else {
                line.to_owned()
            };
            if prompt.trim().is_empty() {
                return Err(PromptFileError::Line {
                    name: name.to_owned(),
                    line: index + 1,
                    reason: "the prompt is blank".to_owned(),
                });
            }
            prompts.push(prompt);
        }
        let set = Self::File {
            name: name.to_owned(),
            prompts,
        };
        set.validate()?;
        Ok(set)
    }

    /// Checks what a file may have brought.
    ///
    /// # Errors
    /// No prompt, or too many bytes.
    pub fn validate(&self) -> Result<(), PromptFileError> {
        let Self::File { name, prompts } = self else {
            return Ok(());
        };
        if prompts.is_empty() {
            return Err(PromptFileError::Empty(name.clone()));
        }
        let bytes = prompts.iter().map(String::len).sum();
        if bytes > MAX_FILE_BYTES {
            return Err(PromptFileError::TooLarge {
                name: name.clone(),
                bytes,
            });
        }
        Ok(())
    }

    /// The prompt with this index. Equal arguments give equal prompts; different
    /// indices give different ones (for [`Self::Varied`] under one seed, for the
    /// other sets thanks to the serial number).
    #[must_use]
    pub fn prompt(&self, seed: u64, index: u64) -> String {
        match self {
            Self::Founding => numbered(&FOUNDING, index),
            Self::Varied => varied(seed, index),
            Self::File { prompts, .. } => numbered(prompts, index),
        }
    }
}

fn numbered(texts: &[impl AsRef<str>], index: u64) -> String {
    let count = texts.len().max(1) as u64;
    let pass = index / count;
    let place = usize::try_from(index % count).unwrap_or(0);
    let text = texts.get(place).map_or("", AsRef::as_ref);
    if pass == 0 {
        text.to_owned()
    } else {
        format!("({}) {text}", pass + 1)
    }
}

const SUBJECTS: [&str; 100] = [
    "tidal power",
    "bread baking",
    "the French Revolution",
    "bee colonies",
    "suspension bridges",
    "the immune system",
    "jazz harmony",
    "plate tectonics",
    "public libraries",
    "chess openings",
    "coral reefs",
    "steam locomotives",
    "the Silk Road",
    "sleep cycles",
    "volcanic soils",
    "city trams",
    "bird migration",
    "the printing press",
    "fermented foods",
    "mountain weather",
    "glass making",
    "ocean currents",
    "the Roman aqueducts",
    "honey production",
    "solar eclipses",
    "wooden ships",
    "language change",
    "rainforest canopies",
    "railway signalling",
    "cave paintings",
    "wind turbines",
    "the human heart",
    "medieval guilds",
    "desert plants",
    "map projections",
    "paper folding",
    "vaccines",
    "lighthouses",
    "river deltas",
    "film editing",
    "the periodic table",
    "olive cultivation",
    "earthquake-proof houses",
    "tea ceremonies",
    "glaciers",
    "bicycle design",
    "the stock exchange",
    "owl hearing",
    "cathedral building",
    "soap making",
    "radio astronomy",
    "school gardens",
    "the Hanseatic League",
    "mushroom ecology",
    "elevators",
    "weaving looms",
    "memory techniques",
    "salt mines",
    "hot air balloons",
    "urban foxes",
    "clock making",
    "the water cycle",
    "folk dances",
    "antibiotics",
    "canal locks",
    "beach erosion",
    "opera voices",
    "seed banks",
    "traffic lights",
    "whale songs",
    "pottery kilns",
    "the Milky Way",
    "cheese ripening",
    "fire fighting",
    "the abacus",
    "ski jumping",
    "peat bogs",
    "insurance",
    "spider silk",
    "ferry routes",
    "stained glass",
    "grain storage",
    "parrots",
    "the metric system",
    "harbour cranes",
    "puppet theatre",
    "sand dunes",
    "dictionaries",
    "thermal springs",
    "kite flying",
    "organ pipes",
    "night markets",
    "snow avalanches",
    "cork oaks",
    "postage stamps",
    "submarine cables",
    "horse breeding",
    "street lighting",
    "wetlands",
    "violin varnish",
];

const TASKS: [&str; 30] = [
    "describe the history of",
    "explain the basic principles of",
    "list common mistakes with",
    "compare two approaches to",
    "write an introduction to",
    "give practical advice about",
    "summarise the open questions about",
    "outline a lecture on",
    "tell a short story about",
    "explain the economics of",
    "describe the main dangers of",
    "discuss the future of",
    "explain the science behind",
    "write a dialogue about",
    "plan a museum exhibit on",
    "draft a newspaper article about",
    "name the people who shaped",
    "explain the tools used for",
    "describe a typical day around",
    "argue for more research on",
    "argue for better teaching of",
    "describe the environmental side of",
    "explain the mathematics in",
    "write a quiz about",
    "describe how laws deal with",
    "explain the vocabulary of",
    "describe regional differences in",
    "analyse a famous example of",
    "explain how beginners start with",
    "review the literature on",
];

const VIEWS: [&str; 40] = [
    "for a curious child",
    "for an engineer",
    "for a historian",
    "for a busy manager",
    "for a school class",
    "for a travel guide",
    "for a medical student",
    "for a city council",
    "for a farmer",
    "for a radio programme",
    "for a sceptical reader",
    "for a debating club",
    "for a first-year student",
    "for a craftsman",
    "for a retired teacher",
    "for a journalist",
    "for a small company",
    "for a village fair",
    "for a science magazine",
    "for a night-shift worker",
    "for a book club",
    "for an apprentice",
    "for a grandparent",
    "for a software developer",
    "for a ship's crew",
    "for a photographer",
    "for an architect",
    "for a parliament committee",
    "for a chess player",
    "for a nurse",
    "for a bank clerk",
    "for a gardener",
    "for a musician",
    "for an exchange student",
    "for a lawyer",
    "for a weather service",
    "for a tour bus",
    "for a primary school",
    "for a police academy",
    "for a mountain guide",
];

/// Number of different questions before an edition number is needed.
pub const VARIED_COUNT: u64 = (SUBJECTS.len() * TASKS.len() * VIEWS.len()) as u64;

/// A question of the varied set. The subject comes first, so that prompts differ
/// from their first words on and no prefix cache can join them.
fn varied(seed: u64, index: u64) -> String {
    // A step that shares no factor with 120,000 = 2^6 · 3 · 5^4 visits every
    // question once before any comes again.
    const STEP: u64 = 76_543;
    let edition = index / VARIED_COUNT;
    let offset = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) % VARIED_COUNT;
    let place = ((index % VARIED_COUNT) * STEP + offset) % VARIED_COUNT;
    let pick = |list: &[&'static str], at: u64| {
        usize::try_from(at % list.len() as u64)
            .ok()
            .and_then(|at| list.get(at).copied())
            .unwrap_or("")
    };
    let subject = pick(&SUBJECTS, place);
    let task = pick(&TASKS, place / SUBJECTS.len() as u64);
    let view = pick(&VIEWS, place / (SUBJECTS.len() * TASKS.len()) as u64);
    let edition = if edition == 0 {
        String::new()
    } else {
        format!("({}) ", edition + 1)
    };
    format!(
        "{edition}On {subject}: please {task} this subject in detail, {view}, with examples and a conclusion."
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_varied_question_comes_twice() {
        for seed in [0, 1, u64::MAX] {
            let seen: HashSet<String> = (0..VARIED_COUNT + 10)
                .map(|index| varied(seed, index))
                .collect();
            assert_eq!(seen.len() as u64, VARIED_COUNT + 10);
        }
        assert_eq!(VARIED_COUNT, 120_000);
        assert_ne!(varied(0, 0), varied(1, 0));
    }

    #[test]
    fn founding_prompts_come_unchanged_and_then_numbered() {
        let set = PromptSet::Founding;
        assert_eq!(set.prompt(0, 1), FOUNDING[1]);
        assert_eq!(set.prompt(0, 4), format!("(2) {}", FOUNDING[1]));
    }

    #[test]
    fn files_of_text_and_of_json_lines() {
        let set = PromptSet::from_file("p.jsonl", "{\"prompt\":\"a\"}\n\n\"b\"\nplain c\n")
            .expect("prompts");
        assert_eq!(
            set,
            PromptSet::File {
                name: "p.jsonl".to_owned(),
                prompts: vec!["a".to_owned(), "b".to_owned(), "plain c".to_owned()],
            }
        );
        assert_eq!(set.prompt(9, 3), "(2) a");
    }

    #[test]
    fn unusable_files_say_where() {
        assert_eq!(
            PromptSet::from_file("p", " \n\n"),
            Err(PromptFileError::Empty("p".to_owned()))
        );
        let error = PromptSet::from_file("p", "ok\n{\"text\":1}").expect_err("a refusal");
        assert!(
            matches!(error, PromptFileError::Line { line: 2, .. }),
            "{error}"
        );
        let error = PromptSet::from_file("p", "\"  \"").expect_err("a refusal");
        assert!(
            matches!(error, PromptFileError::Line { line: 1, .. }),
            "{error}"
        );
    }
}
