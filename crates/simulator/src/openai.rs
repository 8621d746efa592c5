//! Requests and replies of the OpenAI routes, as the two engines shape them.

use std::io::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{config::Engine, text};

/// Body of a completion or chat request, as far as the stand-in uses it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body {
    pub(crate) model: Option<String>,
    prompt: Option<Value>,
    messages: Option<Vec<Message>>,
    pub(crate) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    pub(crate) min_tokens: Option<u32>,
    pub(crate) ignore_eos: Option<bool>,
    n: Option<u32>,
    chat_template_kwargs: Option<Value>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Option<Value>,
}

impl Body {
    /// The prompt's text and its tokens, or what is wrong with the request.
    pub(crate) fn prompt(&self, chat: bool) -> Result<(String, u32), String> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(
                "The stand-in answers with one choice: leave out `n` or set it to 1.".into(),
            );
        }
        if chat {
            let messages = self.messages.as_deref().unwrap_or_default();
            if messages.is_empty() {
                return Err("`messages` is missing or empty: send at least one message.".into());
            }
            let mut text = String::new();
            for message in messages {
                push_content(&mut text, message.content.as_ref());
            }
            let tokens = text::count_tokens(&text);
            return Ok((text, tokens));
        }
        match &self.prompt {
            Some(Value::String(text)) => Ok((text.clone(), text::count_tokens(text))),
            Some(Value::Array(list)) => match list.as_slice() {
                [Value::String(text)] => Ok((text.clone(), text::count_tokens(text))),
                [Value::Array(ids)] => token_ids(ids),
                ids => token_ids(ids),
            },
            _ => {
                Err("`prompt` is missing: send a text, a list with one text, or token ids.".into())
            }
        }
    }

    /// Tokens asked for at most.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    /// Was running usage asked for, whether or not it takes effect?
    pub(crate) fn asks_running_usage(&self) -> bool {
        self.stream_options
            .is_some_and(|options| options.continuous_usage_stats == Some(true))
    }

    /// Usage at the end, and usage on each chunk, as this engine gives them.
    pub(crate) fn usage(&self, engine: Engine, forced: bool) -> (bool, bool) {
        let options = self.stream_options.unwrap_or_default();
        let last = options.include_usage == Some(true) || forced;
        let running = options.continuous_usage_stats == Some(true);
        match engine {
            Engine::Vllm => (last, (running && last) || forced),
            Engine::Sglang => (last, running),
        }
    }

    /// Was thinking switched off?
    pub(crate) fn instant(&self) -> bool {
        self.chat_template_kwargs
            .as_ref()
            .and_then(|kwargs| kwargs.get("thinking"))
            .is_some_and(|thinking| thinking == &Value::Bool(false))
    }
}

fn push_content(text: &mut String, content: Option<&Value>) {
    match content {
        Some(Value::String(part)) => {
            text.push_str(part);
            text.push('\n');
        }
        Some(Value::Array(parts)) => {
            for part in parts {
                push_content(text, part.get("text"));
            }
        }
        _ => {}
    }
}

fn token_ids(ids: &[Value]) -> Result<(String, u32), String> {
    if ids.is_empty() || !ids.iter().all(Value::is_u64) {
        return Err(
            "The stand-in takes one prompt a request: a text, a list with one text, or token ids."
                .into(),
        );
    }
    let text = serde_json::to_string(ids).unwrap_or_default();
    Ok((text, u32::try_from(ids.len()).unwrap_or(u32::MAX)))
}

/// An error's body.
pub(crate) fn error(
    engine: Engine,
    status: u16,
    kind: &str,
    param: Option<&str>,
    message: &str,
) -> Value {
    let inner = json!({ "message": message, "type": kind, "param": param, "code": status });
    match engine {
        Engine::Vllm => json!({ "error": inner }),
        Engine::Sglang => json!({
            "object": "error", "message": message, "type": kind, "param": param, "code": status
        }),
    }
}

/// What every reply to one request needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) engine: Engine,
    pub(crate) chat: bool,
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) seed: u64,
    pub(crate) ticket: u64,
    pub(crate) prompt_tokens: u32,
    /// Reported cached tokens; none where they are not reported.
    pub(crate) cached: Option<u32>,
    /// Tokens of reasoning before the answer begins.
    pub(crate) reasoning: u32,
    pub(crate) last_usage: bool,
    pub(crate) running_usage: bool,
    pub(crate) done: bool,
}

impl Shape {
    fn usage(&self, completion: u32, last: bool) -> Value {
        let (prompt, total) = (self.prompt_tokens, self.prompt_tokens + completion);
        let details = self.cached.map(|cached| json!({ "cached_tokens": cached }));
        match self.engine {
            Engine::Vllm => {
                let mut usage = json!({
                    "prompt_tokens": prompt, "total_tokens": total, "completion_tokens": completion
                });
                if let (true, Some(details)) = (last, details) {
                    usage["prompt_tokens_details"] = details;
                }
                usage
            }
            Engine::Sglang => json!({
                "prompt_tokens": prompt, "total_tokens": total, "completion_tokens": completion,
                "prompt_tokens_details": details,
                "reasoning_tokens": self.reasoning.min(completion),
                "completion_tokens_details": null
            }),
        }
    }

    /// The reply to a request that asked for no stream.
    pub(crate) fn whole(&self, tokens: u32, finish: &str, usage: bool) -> Value {
        let words = |from: u32, to: u32| {
            let mut bytes = Vec::new();
            for index in from..to {
                text::push_token(&mut bytes, self.seed, self.ticket, index);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let reasoning = self.reasoning.min(tokens);
        let mut choice = json!({ "index": 0, "logprobs": null, "finish_reason": finish });
        match self.engine {
            Engine::Vllm => choice["stop_reason"] = Value::Null,
            Engine::Sglang => choice["matched_stop"] = Value::Null,
        }
        if self.chat {
            let thought = (reasoning > 0).then(|| words(0, reasoning));
            let answer = words(reasoning, tokens);
            let mut message = json!({ "role": "assistant", "content": answer });
            match self.engine {
                Engine::Vllm => {
                    message["tool_calls"] = json!([]);
                    message["reasoning"] = json!(thought);
                }
                Engine::Sglang => {
                    message["tool_calls"] = Value::Null;
                    message["reasoning_content"] = json!(thought);
                }
            }
            choice["message"] = message;
        } else {
            choice["text"] = json!(words(0, tokens));
        }
        let object = if self.chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        let mut reply = json!({
            "id": self.id, "object": object, "created": self.created, "model": self.model,
            "choices": [choice]
        });
        if usage {
            reply["usage"] = self.usage(tokens, true);
        }
        if self.engine == Engine::Sglang {
            reply["metadata"] = json!({ "weight_version": "default" });
        }
        reply
    }
}

/// Writes the events of one stream. All but words and numbers is made once.
#[derive(Debug)]
pub(crate) struct Encoder {
    shape: Shape,
    /// Up to the value of `choices`.
    head: Vec<u8>,
    tokens: u32,
    begun: bool,
}

impl Encoder {
    pub(crate) fn new(shape: Shape) -> Self {
        let object = if shape.chat {
            "chat.completion.chunk"
        } else {
            "text_completion"
        };
        let head = format!(
            "data: {{\"id\":{},\"object\":\"{object}\",\"created\":{},\"model\":{},\"choices\":[",
            json!(shape.id),
            shape.created,
            json!(shape.model),
        );
        Self {
            shape,
            head: head.into_bytes(),
            tokens: 0,
            begun: false,
        }
    }

    /// The first chat chunk: a role and no text, sent with the first token.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) || !self.shape.chat {
            return;
        }
        out.extend_from_slice(&self.head);
        out.extend_from_slice(match self.shape.engine {
            Engine::Vllm => {
                b"{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null,\"prompt_text\":null" as &[u8]
            }
            Engine::Sglang => {
                b"{\"index\":0,\"delta\":{\"reasoning_content\":null,\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null,\"matched_stop\":null}]"
            }
        });
        if self.shape.engine == Engine::Vllm {
            self.push_running_usage(out);
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// A chunk of `count` tokens; with `finish` it is the last with text.
    pub(crate) fn tokens(&mut self, count: u32, finish: Option<&str>, out: &mut Vec<u8>) {
        self.begin(out);
        let first = self.tokens;
        self.tokens += count;
        out.extend_from_slice(&self.head);
        let thinking = first < self.shape.reasoning;
        out.extend_from_slice(match (self.shape.chat, self.shape.engine, thinking) {
            (false, _, _) => b"{\"index\":0,\"text\":\"" as &[u8],
            (true, Engine::Vllm, false) => b"{\"index\":0,\"delta\":{\"content\":\"",
            (true, Engine::Vllm, true) => b"{\"index\":0,\"delta\":{\"reasoning\":\"",
            (true, Engine::Sglang, false) => {
                b"{\"index\":0,\"delta\":{\"reasoning_content\":null,\"content\":\""
            }
            (true, Engine::Sglang, true) => b"{\"index\":0,\"delta\":{\"reasoning_content\":\"",
        });
        for index in first..self.tokens {
            text::push_token(out, self.shape.seed, self.shape.ticket, index);
        }
        out.push(b'"');
        if self.shape.chat {
            out.push(b'}');
        }
        // SGLang's chat ends with a chunk of its own.
        let own_end = self.shape.chat && self.shape.engine == Engine::Sglang;
        push_finish(out, self.shape.engine, finish.filter(|_| !own_end));
        self.push_running_usage(out);
        out.extend_from_slice(b"}\n\n");
        if let Some(finish) = finish.filter(|_| own_end) {
            self.end_chunk(finish, out);
        }
    }

    /// An end without a token: for a reply that has none at all.
    pub(crate) fn nothing(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        if self.shape.chat {
            self.end_chunk("stop", out);
        } else {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"{\"index\":0,\"text\":\"\"");
            push_finish(out, self.shape.engine, Some("stop"));
            out.extend_from_slice(b"}\n\n");
        }
    }

    fn end_chunk(&self, finish: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(match self.shape.engine {
            Engine::Vllm => b"{\"index\":0,\"delta\":{}" as &[u8],
            Engine::Sglang => b"{\"index\":0,\"delta\":{\"reasoning_content\":null}",
        });
        push_finish(out, self.shape.engine, Some(finish));
        out.extend_from_slice(b"}\n\n");
    }

    /// What follows the last token: usage and `[DONE]`, where they are sent.
    pub(crate) fn close(&self, out: &mut Vec<u8>) {
        if self.shape.last_usage {
            out.extend_from_slice(&self.head);
            let _ = write!(out, "],\"usage\":{}", self.shape.usage(self.tokens, true));
            if self.shape.engine == Engine::Vllm && self.shape.chat {
                out.extend_from_slice(b",\"system_fingerprint\":\"vllm-stand-in-simulated\"");
            }
            out.extend_from_slice(b"}\n\n");
        }
        if self.shape.done {
            out.extend_from_slice(b"data: [DONE]\n\n");
        }
    }

    /// An error object in mid-stream.
    pub(crate) fn error(&self, message: &str, out: &mut Vec<u8>) {
        let inner = match self.shape.engine {
            Engine::Vllm => {
                json!({ "message": message, "type": "InternalServerError", "param": null, "code": 500 })
            }
            Engine::Sglang => json!({
                "object": "error", "message": message, "type": "InternalServerError",
                "param": null, "code": 500
            }),
        };
        let _ = write!(
            out,
            "data: {}\n\ndata: [DONE]\n\n",
            json!({ "error": inner })
        );
    }

    /// An event whose JSON is cut off.
    pub(crate) fn broken(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b"{\"index\":0,\"te\n\n");
    }

    fn push_running_usage(&self, out: &mut Vec<u8>) {
        if self.shape.running_usage {
            // Written by hand: this is on the path of every token.
            let (prompt, tokens) = (self.shape.prompt_tokens, self.tokens);
            let total = prompt + tokens;
            let _ = match self.shape.engine {
                Engine::Vllm => write!(
                    out,
                    ",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{total},\"completion_tokens\":{tokens}}}"
                ),
                Engine::Sglang => write!(
                    out,
                    ",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{total},\"completion_tokens\":{tokens},\"prompt_tokens_details\":null,\"reasoning_tokens\":{},\"completion_tokens_details\":null}}",
                    self.shape.reasoning.min(tokens)
                ),
            };
        } else if self.shape.engine == Engine::Sglang && !self.shape.chat {
            out.extend_from_slice(b",\"usage\":null");
        }
    }
}

/// The rest of a choice and the end of the list.
fn push_finish(out: &mut Vec<u8>, engine: Engine, finish: Option<&str>) {
    let _ = match finish {
        None => write!(out, ",\"logprobs\":null,\"finish_reason\":null"),
        Some(finish) => write!(out, ",\"logprobs\":null,\"finish_reason\":\"{finish}\""),
    };
    out.extend_from_slice(match (engine, finish) {
        (Engine::Vllm, None) => b",\"token_ids\":null}]" as &[u8],
        (Engine::Vllm, Some(_)) => b",\"stop_reason\":null,\"token_ids\":null}]",
        (Engine::Sglang, _) => b",\"matched_stop\":null}]",
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        serde_json::from_value(value).expect("a body")
    }

    #[test]
    fn prompts_of_all_forms() {
        assert_eq!(
            body(json!({"prompt": "a b"})).prompt(false).expect("ok").1,
            3
        );
        assert_eq!(
            body(json!({"prompt": ["a b"]}))
                .prompt(false)
                .expect("ok")
                .1,
            3
        );
        assert_eq!(
            body(json!({"prompt": [1, 2, 3]}))
                .prompt(false)
                .expect("ok")
                .1,
            3
        );
        assert_eq!(
            body(json!({"prompt": [[1, 2]]}))
                .prompt(false)
                .expect("ok")
                .1,
            2
        );
        let chat =
            json!({"messages": [{"content": "a"}, {"content": [{"type": "text", "text": "b"}]}]});
        assert_eq!(body(chat).prompt(true).expect("ok").0, "a\nb\n");
        for bad in [
            json!({}),
            json!({"prompt": ["a", "b"]}),
            json!({"prompt": []}),
            json!({"prompt": "a", "n": 2}),
        ] {
            assert!(body(bad).prompt(false).is_err());
        }
        assert!(body(json!({"messages": []})).prompt(true).is_err());
    }

    #[test]
    fn running_usage_needs_include_usage_on_vllm_only() {
        let continuous = body(json!({"stream_options": {"continuous_usage_stats": true}}));
        assert_eq!(continuous.usage(Engine::Vllm, false), (false, false));
        assert_eq!(continuous.usage(Engine::Sglang, false), (false, true));
        let both = body(
            json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true}}),
        );
        assert_eq!(both.usage(Engine::Vllm, false), (true, true));
        assert_eq!(both.usage(Engine::Sglang, false), (true, true));
        assert_eq!(body(json!({})).usage(Engine::Sglang, false), (false, false));
    }
}
