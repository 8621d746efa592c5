//! What the JSON of a stream event means for a measurement.
//!
//! Only what the figures need is read; text is handed on and not kept. Shapes:
//! the OpenAI streams of `/v1/completions` and `/v1/chat/completions` as vLLM
//! and SGLang send them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// What an event told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meaning<'a> {
    /// It is a token chunk: text of any kind, or a risen running usage.
    pub(crate) token: bool,
    /// It carries answer text (content or tool call, not reasoning).
    pub(crate) answer: bool,
    /// Tokens of this chunk, where running usage told.
    pub(crate) tokens: Option<u32>,
    /// It told something that was not known before: a token, the finish reason, or
    /// another count. What tells nothing new can be sent for ever.
    pub(crate) news: bool,
    /// Its text as it stands in the JSON, escapes and all: content, or else reasoning.
    pub(crate) text: &'a str,
}

/// Why an event makes the reply a bad one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    /// No JSON object of the expected shape.
    #[error(
        "An event of the reply is not the JSON of a stream chunk ({0}). Check that the address is an OpenAI-compatible server."
    )]
    NotJson(String),
    /// The server reported an error inside the stream.
    #[error("The server reported an error within the stream: {0}")]
    Reported(String),
}

/// What the chunks of one reply told so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Prompt tokens by the server's count.
    pub(crate) prompt_tokens: Option<u32>,
    /// Completion tokens by the server's latest count.
    pub(crate) completion_tokens: Option<u32>,
    /// Cached prompt tokens, as the server says.
    cached_tokens: Option<u32>,
    /// Reasoning tokens.
    pub(crate) reasoning_tokens: Option<u32>,
    /// Why the engine stopped.
    pub(crate) finish_reason: Option<String>,
    /// Usage came on a chunk before the last ones.
    running: bool,
    /// The highest running count so far.
    counted: u32,
    /// A running count was lower than one before it.
    fell: bool,
}

impl Tally {
    /// Reads the data of one event (not `[DONE]`).
    ///
    /// # Errors
    /// [`ChunkError`]: no JSON, or an error object.
    pub(crate) fn take<'a>(&mut self, data: &'a [u8]) -> Result<Meaning<'a>, ChunkError> {
        let wire: Wire<'_> =
            serde_json::from_slice(data).map_err(|error| ChunkError::NotJson(error.to_string()))?;
        if let Some(error) = &wire.error {
            return Err(ChunkError::Reported(error_text(error)));
        }
        if wire.object.0 {
            let text = wire.message.as_ref().map(error_text);
            return Err(ChunkError::Reported(text.unwrap_or_default()));
        }
        let choices = wire.choices.unwrap_or_default();
        let (content, reasoning) = (choices.content, choices.reasoning);
        let text = content.filled || choices.tool || reasoning.filled;
        let finished = choices.finish_reason.is_some();
        let mut news = text || (finished && self.finish_reason.is_none());
        if finished {
            self.finish_reason = choices.finish_reason;
        }
        let count = wire
            .usage
            .as_ref()
            .and_then(|usage| usage.completion_tokens);
        if let Some(usage) = wire.usage {
            let before = self.completion_tokens;
            self.take_usage(&usage);
            // Only upwards, so that counts to and fro are no news for ever.
            news |= self.completion_tokens > before;
        }
        // Usage that first comes on the closing chunk is the total, not a running
        // count: it says nothing about when its tokens came.
        let closing = !choices.any || (finished && !text && !self.running);
        let count = count.filter(|_| !closing);
        self.running |= count.is_some();
        self.fell |= count.is_some_and(|count| count < self.counted);
        let risen = count.is_some_and(|count| count > self.counted);
        let token = text || risen;
        let tokens = count.filter(|_| token).map(|count| {
            let fresh = count.saturating_sub(self.counted);
            self.counted = self.counted.max(count);
            fresh
        });
        Ok(Meaning {
            token,
            answer: content.filled || choices.tool,
            tokens,
            news: news || token,
            text: if content.filled {
                content.text
            } else {
                reasoning.text
            },
        })
    }

    /// Are the running counts those of this reply, as far as can be told without a count
    /// for each chunk? They only rise, and not beyond the count at the end.
    pub(crate) fn running_fits(&self) -> bool {
        !self.fell && self.counted <= self.completion_tokens.unwrap_or(0)
    }

    /// Prompt tokens that the server says it had cached. More than the prompt has is no
    /// count of anything.
    pub(crate) fn cached_tokens(&self) -> Option<u32> {
        self.cached_tokens
            .filter(|cached| self.prompt_tokens.is_none_or(|prompt| *cached <= prompt))
    }

    fn take_usage(&mut self, usage: &Usage) {
        self.prompt_tokens = usage.prompt_tokens.or(self.prompt_tokens);
        self.completion_tokens = usage.completion_tokens.or(self.completion_tokens);
        let cached = usage
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens);
        self.cached_tokens = cached.or(self.cached_tokens);
        let reasoning = usage
            .completion_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens);
        self.reasoning_tokens = reasoning
            .or(usage.reasoning_tokens)
            .or(self.reasoning_tokens);
    }
}

/// The server's own words in an error body: `{"error":{"message"}}`,
/// `{"error":"…"}`, `{"message"}` or `{"detail"}`. None where it has none.
#[must_use]
pub(crate) fn error_message(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    ["error", "message", "detail"]
        .into_iter()
        .find_map(|key| value.get(key).filter(|found| !found.is_null()))
        .map(error_text)
}

/// The answer's text in the data of an event: content of all its choices, no
/// reasoning and no tool calls. Empty where there is none.
pub(crate) fn content(data: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Event {
        #[serde(default)]
        choices: Vec<Said>,
    }
    #[derive(Deserialize)]
    struct Said {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        delta: Option<Content>,
    }
    #[derive(Deserialize)]
    struct Content {
        #[serde(default)]
        content: Option<String>,
    }
    let Ok(event) = serde_json::from_slice::<Event>(data) else {
        return String::new();
    };
    let said = event.choices.into_iter().filter_map(|choice| {
        let content = choice.delta.and_then(|delta| delta.content);
        content.or(choice.text)
    });
    said.collect()
}

fn error_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(fields) => fields
            .get("message")
            .or_else(|| fields.get("detail"))
            .map_or_else(|| value.to_string(), error_text),
        other => other.to_string(),
    }
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    choices: Option<Choices<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<serde_json::Value>,
    #[serde(default)]
    object: IsError,
    #[serde(default)]
    message: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u32>,
    #[serde(default)]
    completion_tokens: Option<u32>,
    #[serde(default)]
    reasoning_tokens: Option<u32>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    text: Filled<'a>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Filled<'a>,
    #[serde(borrow, default)]
    refusal: Filled<'a>,
    #[serde(borrow, default)]
    reasoning: Filled<'a>,
    #[serde(borrow, default)]
    reasoning_content: Filled<'a>,
    #[serde(default)]
    tool_calls: Option<ToolCalls>,
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Filled<'a>,
    #[serde(borrow, default)]
    arguments: Filled<'a>,
}

impl Function<'_> {
    const fn filled(&self) -> bool {
        self.name.filled || self.arguments.filled
    }
}

/// The choices of a chunk folded into one answer, without a list in memory. Of several
/// that say something the first speaks; only one is ever asked for.
#[derive(Default)]
struct Choices<'a> {
    any: bool,
    content: Filled<'a>,
    reasoning: Filled<'a>,
    tool: bool,
    finish_reason: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fold;
        impl<'de> Visitor<'de> for Fold {
            type Value = Choices<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Choices<'de>, A::Error> {
                let mut all = Choices::default();
                while let Some(choice) = seq.next_element::<Choice<'de>>()? {
                    all.any = true;
                    all.content = all.content.or(choice.text);
                    if let Some(delta) = choice.delta {
                        all.content = all.content.or(delta.content).or(delta.refusal);
                        all.reasoning = all
                            .reasoning
                            .or(delta.reasoning)
                            .or(delta.reasoning_content);
                        all.tool |= delta.tool_calls.is_some_and(|calls| calls.0)
                            || delta.function_call.is_some_and(|call| call.filled());
                    }
                    all.finish_reason = choice.finish_reason.or(all.finish_reason);
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(Fold)
    }
}

/// Does any tool call carry a name or arguments?
struct ToolCalls(bool);

impl<'de> Deserialize<'de> for ToolCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fold;
        impl<'de> Visitor<'de> for Fold {
            type Value = ToolCalls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tool calls")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ToolCalls, A::Error> {
                let mut filled = false;
                while let Some(call) = seq.next_element::<ToolCall<'de>>()? {
                    filled |= call.function.is_some_and(|function| function.filled());
                }
                Ok(ToolCalls(filled))
            }
        }
        deserializer.deserialize_seq(Fold)
    }
}

/// Is there text, and which? Looks at any JSON value as it stands: unescaping a string
/// would take memory for each chunk.
#[derive(Default, Clone, Copy)]
struct Filled<'a> {
    filled: bool,
    /// Of a string, what stands between its quotes.
    text: &'a str,
}

impl<'a> Filled<'a> {
    const fn or(self, other: Self) -> Self {
        if self.filled { self } else { other }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Filled<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        let text = raw
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap_or_default();
        let filled = match raw.as_bytes() {
            [b'"', ..] => !text.is_empty(),
            [b'[', inside @ .., b']'] | [b'{', inside @ .., b'}'] => {
                !inside.trim_ascii().is_empty()
            }
            [b'n' | b't' | b'f', ..] => false,
            _ => true,
        };
        Ok(Self { filled, text })
    }
}

/// Is it the word `error` (flat error objects carry it as `object`)?
#[derive(Default)]
struct IsError(bool);

impl<'de> Deserialize<'de> for IsError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Of the other kinds of value only a string can be the word.
        struct Word;
        impl<'de> Visitor<'de> for Word {
            type Value = bool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the kind of object")
            }

            fn visit_str<E>(self, text: &str) -> Result<bool, E> {
                Ok(text == "error")
            }

            fn visit_unit<E>(self) -> Result<bool, E> {
                Ok(false)
            }
        }
        deserializer.deserialize_any(Word).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// But for the news and the text, which have tests of their own.
    fn meaning(token: bool, answer: bool, tokens: Option<u32>) -> Meaning<'static> {
        Meaning {
            token,
            answer,
            tokens,
            news: false,
            text: "",
        }
    }

    fn take(tally: &mut Tally, json: &str) -> Meaning<'static> {
        Meaning {
            news: false,
            text: "",
            ..tally.take(json.as_bytes()).expect(json)
        }
    }

    #[test]
    fn what_was_known_is_no_news() {
        let mut tally = Tally::default();
        for (json, news) in [
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                false,
            ),
            (r#"{}"#, false),
            (r#"{"choices":[]}"#, false),
            (
                r#"{"choices":[{"text":"a"}],"usage":{"completion_tokens":1}}"#,
                true,
            ),
            (
                r#"{"choices":[{"text":""}],"usage":{"completion_tokens":1}}"#,
                false,
            ),
            (
                r#"{"choices":[{"text":""}],"usage":{"completion_tokens":2}}"#,
                true,
            ),
            (
                r#"{"choices":[{"text":""}],"usage":{"completion_tokens":1}}"#,
                false,
            ),
            (r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#, true),
            (r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#, false),
            (r#"{"choices":[],"usage":{"completion_tokens":9}}"#, true),
            (r#"{"choices":[],"usage":{"completion_tokens":9}}"#, false),
        ] {
            let told = tally.take(json.as_bytes()).expect(json);
            assert_eq!(told.news, news, "{json}");
        }
    }

    #[test]
    fn text_is_anything_that_is_not_empty() {
        for (value, filled) in [
            (r#""""#, false),
            (r#"" ""#, true),
            (r#""\"\n""#, true),
            (r#""\u00e9 \ud83d\ude42""#, true),
            ("null", false),
            ("false", false),
            ("true", false),
            ("0", true),
            ("-1.5", true),
            ("[]", false),
            ("[ ]", false),
            ("{ }", false),
            (r#"[{"type":"text","text":"x"}]"#, true),
            (r#"{"a":null}"#, true),
        ] {
            let json = format!(r#"{{"choices":[{{"text": {value} }}]}}"#);
            assert_eq!(take(&mut Tally::default(), &json).token, filled, "{json}");
        }
    }

    #[test]
    fn the_text_is_handed_on_as_it_stands() {
        for (json, text) in [
            (r#"{"choices":[{"text":" a\n"}]}"#, r" a\n"),
            (
                r#"{"choices":[{"delta":{"content":"","reasoning":"why"}}]}"#,
                "why",
            ),
            (
                r#"{"choices":[{"delta":{"reasoning_content":"why","content":"so"}}]}"#,
                "so",
            ),
            (r#"{"choices":[{"text":"a"},{"text":"b"}]}"#, "a"),
            (r#"{"choices":[{"text":null}]}"#, ""),
            (r#"{"choices":[{"delta":{"content":[{"text":"x"}]}}]}"#, ""),
            (r#"{"choices":[]}"#, ""),
        ] {
            let told = Tally::default().take(json.as_bytes()).map(|told| told.text);
            assert_eq!(told, Ok(text), "{json}");
        }
    }

    #[test]
    fn the_role_alone_is_no_token() {
        let mut tally = Tally::default();
        let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null},"finish_reason":null}],"usage":null}"#;
        assert_eq!(take(&mut tally, role), meaning(false, false, None));
        let text = r#"{"choices":[{"delta":{"content":" a\u00e9"}}]}"#;
        assert_eq!(take(&mut tally, text), meaning(true, true, None));
    }

    #[test]
    fn reasoning_and_tool_calls_are_tokens() {
        for (json, answer) in [
            (r#"{"choices":[{"delta":{"reasoning":"x"}}]}"#, false),
            (
                r#"{"choices":[{"delta":{"reasoning_content":"x","content":null}}]}"#,
                false,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
                true,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}"#,
                true,
            ),
            (r#"{"choices":[{"text":"x"}]}"#, true),
        ] {
            assert_eq!(
                take(&mut Tally::default(), json),
                meaning(true, answer, None),
                "{json}"
            );
        }
        let empty = r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":""}}]}}]}"#;
        assert_eq!(
            take(&mut Tally::default(), empty),
            meaning(false, false, None)
        );
    }

    #[test]
    fn running_usage_counts_each_chunk() {
        let mut tally = Tally::default();
        let chunk = |text: &str, count: u32| {
            format!(
                r#"{{"choices":[{{"text":"{text}"}}],"usage":{{"prompt_tokens":5,"completion_tokens":{count}}}}}"#
            )
        };
        assert_eq!(
            take(&mut tally, &chunk("", 0)),
            meaning(false, false, Some(0)).without_tokens()
        );
        assert_eq!(
            take(&mut tally, &chunk("ab", 3)),
            meaning(true, true, Some(3))
        );
        assert_eq!(
            take(&mut tally, &chunk("", 4)),
            meaning(true, false, Some(1))
        );
        assert_eq!(
            take(&mut tally, &chunk("x", 4)),
            meaning(true, true, Some(0))
        );
        let last =
            r#"{"choices":[{"text":"","finish_reason":"length"}],"usage":{"completion_tokens":6}}"#;
        assert_eq!(take(&mut tally, last), meaning(true, false, Some(2)));
        let total = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
        assert_eq!(take(&mut tally, total), meaning(false, false, None));
        assert_eq!(tally.completion_tokens, Some(6));
        assert_eq!(tally.prompt_tokens, Some(5));
        assert_eq!(tally.cached_tokens(), Some(4));
        let absurd = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":7}}}"#;
        assert_eq!(take(&mut tally, absurd), meaning(false, false, None));
        assert_eq!(tally.cached_tokens(), None, "more than there were");
        assert_eq!(tally.reasoning_tokens, Some(2));
        assert_eq!(tally.finish_reason.as_deref(), Some("length"));
    }

    impl Meaning<'_> {
        fn without_tokens(self) -> Self {
            Self {
                tokens: None,
                ..self
            }
        }
    }

    #[test]
    fn usage_on_the_closing_chunk_alone_is_the_total() {
        let mut tally = Tally::default();
        assert_eq!(
            take(&mut tally, r#"{"choices":[{"text":"a"}]}"#),
            meaning(true, true, None)
        );
        let closing = r#"{"choices":[{"text":"","finish_reason":"stop"}],"usage":{"completion_tokens":9,"reasoning_tokens":1,"completion_tokens_details":null}}"#;
        assert_eq!(take(&mut tally, closing), meaning(false, false, None));
        assert_eq!(tally.completion_tokens, Some(9));
        assert_eq!(tally.reasoning_tokens, Some(1));
    }

    #[test]
    fn errors_inside_the_stream() {
        for json in [
            r#"{"error":{"message":"out of memory","code":500}}"#,
            r#"{"error":"out of memory"}"#,
            r#"{"object":"error","message":"out of memory","code":400}"#,
        ] {
            assert_eq!(
                Tally::default().take(json.as_bytes()),
                Err(ChunkError::Reported("out of memory".to_owned())),
                "{json}"
            );
        }
        for data in ["{\"choices\":", "hello", "[1]", "\u{fffd}"] {
            assert!(matches!(
                Tally::default().take(data.as_bytes()),
                Err(ChunkError::NotJson(_))
            ));
        }
    }

    #[test]
    fn error_bodies_in_their_three_shapes() {
        for body in [
            r#"{"error":{"message":"no such model"}}"#,
            r#"{"object":"error","message":"no such model"}"#,
            r#"{"detail":"no such model"}"#,
            r#"{"error":"no such model"}"#,
        ] {
            assert_eq!(
                error_message(body.as_bytes()).as_deref(),
                Some("no such model"),
                "{body}"
            );
        }
        assert_eq!(error_message(b"<html>"), None);
        assert_eq!(error_message(b"{}"), None);
    }
}
