//! Text into tokens: words with their parts, and what stands between commands.

use super::paste::PasteError;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;` or the end of a line.
    End,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|` or `|&`
    Pipe,
    /// `&`
    Background,
    /// `>`, `2>&1`, `<` and the like: the operator; a word follows unless it is whole.
    Redirect {
        text: String,
        whole: bool,
    },
}

/// A word before variables are filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Text, and whether it stood in quotes or behind a backslash.
    Text { text: String, quoted: bool },
    /// A variable.
    Variable {
        name: String,
        /// The value if it is not set, and if it is empty too.
        fallback: Option<String>,
        quoted: bool,
    },
}

impl Word {
    /// The text, if nothing of it was quoted or is a variable.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [
                Part::Text {
                    text,
                    quoted: false,
                },
            ] => Some(text),
            _ => None,
        }
    }

    fn push(&mut self, c: char, as_quoted: bool) {
        if let Some(Part::Text { text, quoted }) = self.parts.last_mut()
            && *quoted == as_quoted
        {
            text.push(c);
        } else {
            self.parts.push(Part::Text {
                text: c.to_string(),
                quoted: as_quoted,
            });
        }
    }

    /// Quotes make a word even if nothing stands between them.
    fn push_text(&mut self, text: String) {
        if let Some(Part::Text {
            text: last,
            quoted: true,
        }) = self.parts.last_mut()
        {
            last.push_str(&text);
        } else {
            self.parts.push(Part::Text { text, quoted: true });
        }
    }
}

/// Reads text as a POSIX shell would take it apart.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, PasteError> {
    let text = text.replace("\r\n", "\n");
    Lexer {
        rest: &text,
        tokens: Vec::new(),
        word: None,
    }
    .run()
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    word: Option<Word>,
}

impl Lexer<'_> {
    fn run(mut self) -> Result<Vec<Token>, PasteError> {
        while let Some(c) = self.next() {
            match c {
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(c) => self.word().push(c, true),
                    // At the very end: a continuation whose next line was not copied.
                    None => {}
                },
                '\'' => {
                    let text = self.until('\'').ok_or(PasteError::OpenQuote('\''))?;
                    self.word().push_text(text);
                }
                '"' => self.double_quoted()?,
                '$' => self.dollar(false)?,
                '`' => return Err(PasteError::Substitution),
                '\n' | ';' => self.operator(Token::End),
                ' ' | '\t' => self.end_word(),
                '#' if self.word.is_none() => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '&' if self.take("&") => self.operator(Token::And),
                '&' if self.take(">>") => self.redirect("&>>"),
                '&' if self.take(">") => self.redirect("&>"),
                '&' => self.operator(Token::Background),
                '|' if self.take("|") => self.operator(Token::Or),
                '|' => {
                    self.take("&");
                    self.operator(Token::Pipe);
                }
                '<' | '>' => self.angle(c)?,
                '(' | ')' => return Err(PasteError::Syntax(c)),
                c => self.word().push(c, false),
            }
        }
        self.operator(Token::End);
        Ok(self.tokens)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, expected: &str) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn until(&mut self, end: char) -> Option<String> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text.to_owned())
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.tokens.push(Token::Word(word));
        }
    }

    fn operator(&mut self, token: Token) {
        self.end_word();
        self.tokens.push(token);
    }

    fn redirect(&mut self, text: &str) {
        self.operator(Token::Redirect {
            text: text.to_owned(),
            whole: false,
        });
    }

    /// `>`, `>>`, `2>&1`, `<`, `<<`.
    fn angle(&mut self, first: char) -> Result<(), PasteError> {
        if self.rest.starts_with('(') {
            return Err(PasteError::Substitution);
        }
        // A number right before it is a file's, not a word.
        let number = self
            .word
            .as_ref()
            .and_then(Word::plain)
            .filter(|text| text.chars().all(|c| c.is_ascii_digit()))
            .map(str::to_owned);
        if number.is_some() {
            self.word = None;
        }
        let mut text = number.unwrap_or_default();
        text.push(first);
        if first == '<' && self.take("<") {
            return Err(PasteError::HereDocument);
        }
        for more in [">", "|", "&"] {
            if self.take(more) {
                text.push_str(more);
                break;
            }
        }
        let whole = text.ends_with('&') && {
            let digits = self
                .rest
                .find(|c: char| !c.is_ascii_digit() && c != '-')
                .unwrap_or(self.rest.len());
            text.push_str(&self.rest[..digits]);
            self.rest = &self.rest[digits..];
            digits > 0
        };
        self.operator(Token::Redirect { text, whole });
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), PasteError> {
        self.word().push_text(String::new());
        loop {
            match self.next().ok_or(PasteError::OpenQuote('"'))? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(PasteError::OpenQuote('"'))? {
                    '\n' => {}
                    c @ ('"' | '\\' | '$' | '`') => self.word().push(c, true),
                    c => {
                        self.word().push('\\', true);
                        self.word().push(c, true);
                    }
                },
                '$' => self.dollar(true)?,
                '`' => return Err(PasteError::Substitution),
                c => self.word().push(c, true),
            }
        }
    }

    /// What follows a `$`.
    fn dollar(&mut self, quoted: bool) -> Result<(), PasteError> {
        if self.rest.starts_with('(') {
            return Err(PasteError::Substitution);
        }
        if !quoted && self.take("'") {
            let text = self.ansi_quoted()?;
            self.word().push_text(text);
            return Ok(());
        }
        if !quoted && self.rest.starts_with('"') {
            // `$"…"` is translated text: the same as `"…"` here.
            return Ok(());
        }
        if self.take("{") {
            let inside = self
                .until('}')
                .ok_or_else(|| PasteError::Expansion("${".to_owned()))?;
            let length = inside
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(inside.len());
            let (name, rest) = inside.split_at(length);
            let fallback = match rest {
                "" => None,
                rest => Some(
                    rest.strip_prefix(":-")
                        .or_else(|| rest.strip_prefix('-'))
                        .filter(|text| !text.contains(['$', '`', '\'', '"', '\\']))
                        .ok_or_else(|| PasteError::Expansion(format!("${{{inside}}}")))?
                        .to_owned(),
                ),
            };
            if !super::quote::is_name(name) {
                return Err(PasteError::Expansion(format!("${{{inside}}}")));
            }
            let name = name.to_owned();
            self.word().parts.push(Part::Variable {
                name,
                fallback,
                quoted,
            });
            return Ok(());
        }
        let length = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let name = &self.rest[..length];
        if super::quote::is_name(name) {
            let name = name.to_owned();
            self.rest = &self.rest[length..];
            self.word().parts.push(Part::Variable {
                name,
                fallback: None,
                quoted,
            });
            return Ok(());
        }
        match self.rest.chars().next() {
            Some(c) if c.is_ascii_digit() || "?@*#$!-".contains(c) => {
                Err(PasteError::Expansion(format!("${c}")))
            }
            // A dollar that begins nothing stands for itself.
            _ => {
                self.word().push('$', quoted);
                Ok(())
            }
        }
    }

    /// `$'…'`: escapes as in C.
    fn ansi_quoted(&mut self) -> Result<String, PasteError> {
        let mut bytes = Vec::new();
        loop {
            let c = self.next().ok_or(PasteError::OpenQuote('\''))?;
            if c == '\'' {
                break;
            }
            if c != '\\' {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let escape = self.next().ok_or(PasteError::OpenQuote('\''))?;
            let byte = match escape {
                'a' => 7,
                'b' => 8,
                'e' | 'E' => 0x1b,
                'f' => 12,
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                'v' => 11,
                '\\' | '\'' | '"' | '?' => escape as u8,
                'x' => self.digits(16, 2, 0).ok_or(PasteError::Bytes)? as u8,
                '0'..='7' => {
                    let first = escape.to_digit(8).unwrap_or(0);
                    self.digits(8, 2, first).unwrap_or(first) as u8
                }
                'u' | 'U' => {
                    let most = if escape == 'u' { 4 } else { 8 };
                    let code = self.digits(16, most, 0).ok_or(PasteError::Bytes)?;
                    let c = char::from_u32(code).ok_or(PasteError::Bytes)?;
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                'c' => (self.next().ok_or(PasteError::OpenQuote('\''))? as u32 & 0x1f) as u8,
                other => {
                    bytes.push(b'\\');
                    bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
            };
            bytes.push(byte);
        }
        String::from_utf8(bytes).map_err(|_| PasteError::Bytes)
    }

    /// Up to `most` digits, put behind `value`; none if there is none.
    fn digits(&mut self, radix: u32, most: usize, mut value: u32) -> Option<u32> {
        let mut any = false;
        for _ in 0..most {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.next();
            value = value.wrapping_mul(radix).wrapping_add(digit);
            any = true;
        }
        any.then_some(value)
    }
}
