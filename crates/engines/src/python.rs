//! Values as Python prints them, which is how vLLM logs its arguments.

use serde_json::{Map, Number, Value};

/// Deepest nesting that is read.
const DEEPEST: u32 = 32;

/// Reads a dictionary such as `{'port': 8000, 'x': None}`. Values of kinds that JSON
/// does not know (`<Mode.X: 1>`) become null.
pub(crate) fn dictionary(text: &str) -> Option<Map<String, Value>> {
    let mut reader = Reader {
        rest: text.trim_start(),
    };
    match reader.value(0)? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '{' => self.map(depth),
            '[' => self.list(depth, ']'),
            '(' => self.list(depth, ')'),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn map(&mut self, depth: u32) -> Option<Value> {
        let mut map = Map::new();
        self.rest = &self.rest[1..];
        loop {
            self.skip_comma();
            if self.take('}') {
                return Some(Value::Object(map));
            }
            let name = match self.value(depth + 1)? {
                Value::String(name) => name,
                other => other.to_string(),
            };
            self.rest = self.rest.trim_start();
            if !self.take(':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            map.insert(name, value);
        }
    }

    fn list(&mut self, depth: u32, end: char) -> Option<Value> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        loop {
            self.skip_comma();
            if self.take(end) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
        }
    }

    fn skip_comma(&mut self) {
        self.rest = self.rest.trim_start();
        self.take(',');
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut characters = self.rest.char_indices();
        let (_, quote) = characters.next()?;
        let mut text = String::new();
        while let Some((at, c)) = characters.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(text);
                }
                '\\' => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    escape @ ('x' | 'u' | 'U') => {
                        let digits = match escape {
                            'x' => 2,
                            'u' => 4,
                            _ => 8,
                        };
                        let mut code = 0_u32;
                        for _ in 0..digits {
                            code = code
                                .checked_mul(16)?
                                .checked_add(characters.next()?.1.to_digit(16)?)?;
                        }
                        text.push(char::from_u32(code)?);
                    }
                    other => text.push(other),
                },
                c => text.push(c),
            }
        }
        None
    }

    /// A number, a name, or something that only Python knows.
    fn word(&mut self) -> Option<Value> {
        let mut depth = 0_u32;
        let end = self
            .rest
            .find(|c: char| {
                match c {
                    '(' | '<' | '[' | '{' => depth += 1,
                    ')' | '>' | ']' | '}' if depth > 0 => depth -= 1,
                    ',' | ':' | '}' | ']' | ')' if depth == 0 => return true,
                    _ => {}
                }
                false
            })
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim();
        if word.is_empty() {
            // Nothing was read, so that reading on would never end.
            return None;
        }
        Some(match word {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            _ => word
                .parse::<i64>()
                .map(Value::from)
                .ok()
                .or_else(|| Number::from_f64(word.parse().ok()?).map(Value::Number))
                .unwrap_or(Value::Null),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_vllm_logs_is_read() {
        let text = r#"{'model_tag': '/m\x20x', 'port': 8000, 'gpu_memory_utilization': 0.9, 'trust_remote_code': True, 'served_model_name': ["it's", 'b'], 'mode': <Mode.FULL: (1, 2)>, 'speculative_config': {'method': 'eagle3', 'n': None}} and more"#;
        let found = dictionary(text).expect("a dictionary");
        assert_eq!(
            Value::Object(found),
            json!({
                "model_tag": "/m x", "port": 8000, "gpu_memory_utilization": 0.9,
                "trust_remote_code": true, "served_model_name": ["it's", "b"], "mode": null,
                "speculative_config": {"method": "eagle3", "n": null},
            })
        );
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        for text in ["", "{", "{'a': 'b", "['a']", "{'a' 1}", "{'a': {'b': 1}"] {
            assert_eq!(dictionary(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in r#"[\{\}\[\]\(\)<>'":,a-zé0-9 \\]{0,60}"#) {
            let opens = text.trim_start().starts_with('{');
            prop_assert!(opens || dictionary(&text).is_none());
        }
    }
}
