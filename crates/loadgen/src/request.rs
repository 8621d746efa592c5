//! The bytes of a request.

use serde::Serialize;
use serde_json::{Map, Value};
use tokdyno_domain::{
    endpoint::EndpointUrl,
    meter::ApiKey,
    prompts::Prompt,
    workload::{Api, Workload},
};
use url::Url;

/// Request fields beyond the plain protocol, and whether they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extras {
    pub(crate) ignore_eos: bool,
    pub(crate) running_usage: bool,
    pub(crate) usage: bool,
}

impl Extras {
    /// Everything the workload asks for.
    pub(crate) const fn wanted(workload: &Workload) -> Self {
        Self {
            ignore_eos: workload.ignore_eos,
            running_usage: true,
            usage: true,
        }
    }

    /// What to try, in order, when a server refuses fields: the fullest first.
    pub(crate) fn variants(self) -> Vec<Self> {
        let mut variants = vec![
            self,
            Self {
                running_usage: false,
                ..self
            },
            Self {
                ignore_eos: false,
                ..self
            },
            Self {
                running_usage: false,
                ignore_eos: false,
                ..self
            },
            Self {
                running_usage: false,
                ignore_eos: false,
                usage: false,
            },
        ];
        let mut seen = Vec::new();
        variants.retain(|variant| {
            let new = !seen.contains(variant);
            seen.push(*variant);
            new
        });
        variants
    }

    /// The names of the fields that are wanted and not in `self`.
    pub(crate) fn dropped_from(self, wanted: Self) -> Vec<String> {
        [
            (wanted.ignore_eos && !self.ignore_eos, "ignore_eos"),
            (
                wanted.running_usage && !self.running_usage,
                "stream_options.continuous_usage_stats",
            ),
            (wanted.usage && !self.usage, "stream_options"),
        ]
        .into_iter()
        .filter(|(dropped, _)| *dropped)
        .map(|(_, name)| name.to_owned())
        .collect()
    }
}

/// Makes the requests of a run.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    head: String,
    api: Api,
    model: String,
    temperature: f64,
    thinking: Option<bool>,
    extra_body: Map<String, Value>,
    pub(crate) extras: Extras,
}

impl Template {
    pub(crate) fn new(
        endpoint: &EndpointUrl,
        key: Option<&ApiKey>,
        workload: &Workload,
        model: &str,
        extras: Extras,
    ) -> Self {
        let route = endpoint.route(workload.api.path());
        let head = format!(
            "POST {}Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: ",
            common_head(&route, key)
        );
        Self {
            head,
            api: workload.api,
            model: model.to_owned(),
            temperature: workload.temperature,
            thinking: workload.thinking,
            extra_body: workload.extra_body.clone(),
            extras,
        }
    }

    /// A whole request.
    pub(crate) fn request(&self, prompt: &Prompt, max_tokens: u32) -> Vec<u8> {
        let (text, messages) = match (self.api, prompt) {
            (Api::Completions, Prompt::Text(text)) => (Some(text.as_str()), None),
            // Workloads with chats over this route are refused before.
            (Api::Completions, Prompt::Chat(_)) => (Some(""), None),
            (Api::Chat, Prompt::Text(text)) => {
                let message = Message {
                    role: "user",
                    content: text,
                };
                (None, Some(vec![message]))
            }
            (Api::Chat, Prompt::Chat(chat)) => {
                let messages = chat.iter().map(|message| Message {
                    role: &message.role,
                    content: &message.content,
                });
                (None, Some(messages.collect()))
            }
        };
        let body = Body {
            model: &self.model,
            prompt: text,
            messages,
            max_tokens,
            temperature: self.temperature,
            ignore_eos: self.extras.ignore_eos.then_some(true),
            stream: true,
            stream_options: self.extras.usage.then_some(StreamOptions {
                include_usage: true,
                continuous_usage_stats: self.extras.running_usage.then_some(true),
            }),
            chat_template_kwargs: self.thinking.map(|thinking| Thinking {
                thinking,
                enable_thinking: thinking,
            }),
            extra: &self.extra_body,
        };
        // Plain strings and numbers cannot fail to serialise.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut request = Vec::with_capacity(self.head.len() + body.len() + 16);
        request.extend_from_slice(self.head.as_bytes());
        request.extend_from_slice(body.len().to_string().as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(&body);
        request
    }
}

/// A whole GET request.
pub(crate) fn get(route: &Url, key: Option<&ApiKey>) -> Vec<u8> {
    format!(
        "GET {}Accept: application/json\r\n\r\n",
        common_head(route, key)
    )
    .into_bytes()
}

/// A whole POST request without a body.
pub(crate) fn post_nothing(route: &Url, key: Option<&ApiKey>) -> Vec<u8> {
    format!(
        "POST {}Accept: application/json\r\nContent-Length: 0\r\n\r\n",
        common_head(route, key)
    )
    .into_bytes()
}

/// Can this key stand in a header?
pub(crate) fn is_usable_key(key: &ApiKey) -> bool {
    key.reveal().bytes().all(|byte| byte.is_ascii_graphic())
}

fn common_head(route: &Url, key: Option<&ApiKey>) -> String {
    let authorization = key.map_or_else(String::new, |key| {
        format!("Authorization: Bearer {}\r\n", key.reveal())
    });
    format!(
        "{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tokdyno-meter/{}\r\nAccept-Encoding: identity\r\n{authorization}",
        route.path(),
        route.authority(),
        env!("CARGO_PKG_VERSION"),
    )
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message<'a>>>,
    max_tokens: u32,
    temperature: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Thinking>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

/// Models' templates know the switch by one of two names.
#[derive(Serialize)]
struct Thinking {
    thinking: bool,
    enable_thinking: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuous_usage_stats: Option<bool>,
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::Preset;

    use super::*;

    fn body(template: &Template) -> serde_json::Value {
        let request =
            String::from_utf8(template.request(&Prompt::Text("hi \"you\"".to_owned()), 7))
                .expect("text");
        let (head, body) = request.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        serde_json::from_str(body).expect("JSON")
    }

    #[test]
    fn the_two_bodies() {
        let endpoint: EndpointUrl = "http://gw:9/team".parse().expect("an address");
        let mut workload = Preset::Quick.workload();
        workload.api = Api::Completions;
        workload.ignore_eos = true;
        let extras = Extras::wanted(&workload);
        let key = ApiKey::new("sk-1");
        let template = Template::new(&endpoint, key.as_ref(), &workload, "m", extras);
        let head =
            String::from_utf8(template.request(&Prompt::Text("x".to_owned()), 1)).expect("text");
        assert!(
            head.starts_with("POST /team/v1/completions HTTP/1.1\r\nHost: gw:9\r\n"),
            "{head}"
        );
        assert!(head.contains("Authorization: Bearer sk-1\r\n"));
        assert_eq!(
            body(&template),
            serde_json::json!({
                "model": "m", "prompt": "hi \"you\"", "max_tokens": 7, "temperature": 0.0,
                "ignore_eos": true, "stream": true,
                "stream_options": {"include_usage": true, "continuous_usage_stats": true},
            })
        );
        workload.api = Api::Chat;
        let bare = Extras {
            ignore_eos: false,
            running_usage: false,
            usage: false,
        };
        let template = Template::new(&endpoint, None, &workload, "m", bare);
        assert_eq!(
            body(&template),
            serde_json::json!({
                "model": "m", "messages": [{"role": "user", "content": "hi \"you\""}],
                "max_tokens": 7, "temperature": 0.0, "stream": true,
            })
        );
        assert!(
            !String::from_utf8(template.request(&Prompt::Text("x".to_owned()), 1))
                .expect("text")
                .contains("Authorization")
        );
    }

    #[test]
    fn variants_drop_one_field_at_a_time_first() {
        let wanted = Extras {
            ignore_eos: true,
            running_usage: true,
            usage: true,
        };
        let dropped: Vec<Vec<String>> = wanted
            .variants()
            .iter()
            .map(|variant| variant.dropped_from(wanted))
            .collect();
        let running = "stream_options.continuous_usage_stats".to_owned();
        let eos = "ignore_eos".to_owned();
        assert_eq!(dropped[0], Vec::<String>::new());
        assert_eq!(dropped[1], ["stream_options.continuous_usage_stats"]);
        assert_eq!(dropped[2], ["ignore_eos"]);
        assert_eq!(dropped[3], [eos.clone(), running.clone()]);
        assert_eq!(dropped[4], [eos, running, "stream_options".to_owned()]);
        let plain = Extras {
            ignore_eos: false,
            ..wanted
        };
        assert_eq!(plain.variants().len(), 3);
    }

    #[test]
    fn keys_that_would_break_the_head_are_refused() {
        assert!(is_usable_key(&ApiKey::new("sk-a_b.c").expect("a key")));
        assert!(!is_usable_key(&ApiKey::new("a\r\nHost: b").expect("a key")));
    }
}
