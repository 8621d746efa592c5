//! Literal words into parameters: the model, the port and the like, where they are a
//! flag's whole value.

use tokdyno_domain::{engine::EngineKind, profile::Parameters};

use crate::words::{EngineStart, Row, rows};

/// Port of an engine that is told none.
pub(crate) const fn usual_port(engine: EngineKind) -> u16 {
    match engine {
        EngineKind::Sglang => 30000,
        EngineKind::Vllm | EngineKind::Other => 8000,
    }
}

/// What a command is found to start, and its parameters. Values that were lifted are
/// placeholders in the arguments afterwards.
pub(crate) struct Lifted {
    pub(crate) engine: EngineKind,
    pub(crate) parameters: Parameters,
    /// The port stands in the arguments.
    pub(crate) names_port: bool,
}

/// A value found in the arguments.
struct Place {
    word: usize,
    /// Bytes of the word.
    range: std::ops::Range<usize>,
    placeholder: &'static str,
}

/// Lifts model, drafter, parallelism, port and served name out of a command.
pub(crate) fn lift(program: &str, arguments: &mut [String]) -> Lifted {
    let all: Vec<&str> = std::iter::once(program)
        .chain(arguments.iter().map(String::as_str))
        .collect();
    let start = EngineStart::find(&all);
    let engine = start.map_or(EngineKind::Other, |start| start.engine);
    let mut lifted = Lifted {
        engine,
        parameters: Parameters {
            model: String::new(),
            drafter: None,
            tensor_parallel: 1,
            port: usual_port(engine),
            served_name: String::new(),
        },
        names_port: false,
    };
    let Some(start) = start else { return lifted };
    let first = start.first - 1;
    let places = {
        let rows = rows(engine, &arguments[first..]);
        find_places(&rows, &mut lifted)
    };
    for place in places {
        if let Some(word) = arguments.get_mut(first + place.word) {
            word.replace_range(place.range, place.placeholder);
        }
    }
    lifted
}

/// Of a flag given twice, the last holds; so rows are looked at from the end.
fn find_places(rows: &[Row<'_>], lifted: &mut Lifted) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut first_word_is_model: Option<Place> = None;
    for row in rows.iter().rev() {
        let Some(flag) = row.flag else {
            // vLLM's first word is the model; the first from the front counts.
            if lifted.engine == EngineKind::Vllm && !row.values[0].is_empty() {
                first_word_is_model = Some(Place {
                    word: row.start,
                    range: 0..row.values[0].len(),
                    placeholder: "{MODEL}",
                });
            }
            continue;
        };
        let Some(value) = row.values.first().copied() else {
            continue;
        };
        let mut add = |placeholder: &'static str, fits: bool| {
            let taken = places.iter().any(|place| place.placeholder == placeholder);
            if taken || !fits {
                return false;
            }
            let (word, from) = if row.joined {
                (row.start, flag.len() + 1)
            } else {
                (row.start + 1, 0)
            };
            places.push(Place {
                word,
                range: from..from + value.len(),
                placeholder,
            });
            true
        };
        let parameters = &mut lifted.parameters;
        let filled = !value.trim().is_empty();
        match row.name().as_str() {
            "--model-path" | "--model" if add("{MODEL}", filled) => {
                parameters.model = value.to_owned();
            }
            "--served-model-name" if add("{NAME}", filled) => {
                parameters.served_name = value.to_owned();
            }
            "--speculative-draft-model-path" | "--spec-model" if add("{DRAFTER}", filled) => {
                parameters.drafter = Some(value.to_owned());
            }
            "--tensor-parallel-size" | "--tp-size" => {
                let ranks = value.parse::<u32>().ok();
                let fits = |ranks: &u32| (1..=1024).contains(ranks) && ranks.to_string() == value;
                if let Some(ranks) = ranks.filter(fits)
                    && add("{TP}", true)
                {
                    parameters.tensor_parallel = ranks;
                }
            }
            "--port" => {
                let port = value.parse::<u16>().ok();
                if let Some(port) = port.filter(|port| *port > 0 && port.to_string() == value)
                    && add("{PORT}", true)
                {
                    parameters.port = port;
                    lifted.names_port = true;
                }
            }
            "--speculative-config" => {
                if let Some((range, drafter)) = drafter_in_json(value)
                    && !places.iter().any(|place| place.placeholder == "{DRAFTER}")
                {
                    let (word, from) = if row.joined {
                        (row.start, flag.len() + 1)
                    } else {
                        (row.start + 1, 0)
                    };
                    places.push(Place {
                        word,
                        range: from + range.start..from + range.end,
                        placeholder: "{DRAFTER}",
                    });
                    parameters.drafter = Some(drafter);
                }
            }
            _ => {}
        }
    }
    let has_model = places.iter().any(|place| place.placeholder == "{MODEL}");
    if let Some(place) = first_word_is_model.filter(|_| !has_model) {
        let word = rows.iter().find(|row| row.start == place.word);
        lifted.parameters.model = word.map_or_else(String::new, |row| row.values[0].to_owned());
        if lifted.parameters.model.trim().is_empty() {
            lifted.parameters.model.clear();
        } else {
            places.push(place);
        }
    }
    places
}

/// Where vLLM's JSON names the drafter, if it stands there without escapes.
fn drafter_in_json(text: &str) -> Option<(std::ops::Range<usize>, String)> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let model = value.as_object()?.get("model")?.as_str()?;
    if model.trim().is_empty() || model.contains(['"', '\\']) || model.contains(char::is_control) {
        return None;
    }
    let quoted = format!("\"{model}\"");
    let key = text.find("\"model\"")?;
    let after = key + "\"model\"".len();
    let at = after + text[after..].find(&quoted)?;
    // Nothing but the colon between key and value.
    let between = text[after..at].trim();
    (between == ":").then(|| (at + 1..at + 1 + model.len(), model.to_owned()))
}
