//! Chats as they stand in files.

use serde_json::Value;

use super::ChatMessage;

/// What a JSON entry of a prompt file says.
pub(super) enum Said {
    /// A plain prompt.
    Text(String),
    /// Messages as the chat route takes them.
    Messages(Vec<ChatMessage>),
    /// Turns in the form of ShareGPT's files, told as messages.
    Turns(Vec<ChatMessage>),
}

/// Reads an entry. The error ends the sentence "… is not usable: " and says what to
/// do.
pub(super) fn read(text: &str) -> Result<Said, String> {
    match serde_json::from_str(text).map_err(|error| no_json(&error))? {
        Value::String(prompt) => plain(prompt),
        Value::Object(entry) => {
            if let Some(prompt) = entry.get("prompt") {
                match prompt {
                    Value::String(prompt) => plain(prompt.clone()),
                    other => Err(format!(
                        "its \"prompt\" is {} and no text. Put the prompt there as a string.",
                        kind(other)
                    )),
                }
            } else if let Some(messages) = entry.get("messages") {
                list(messages, "messages", "role", "content").map(Said::Messages)
            } else if let Some(turns) = entry.get("conversations") {
                let mut turns = list(turns, "conversations", "from", "value")?;
                for turn in &mut turns {
                    turn.role = sharegpt_role(&turn.role)?.to_owned();
                }
                Ok(Said::Turns(turns))
            } else {
                Err("it has no \"prompt\", \"messages\" or \"conversations\". Name what is to be sent by one of these.".to_owned())
            }
        }
        other => Err(format!(
            "it is {}. Write a string, or an object with a \"prompt\", \"messages\" or \"conversations\".",
            kind(&other)
        )),
    }
}

/// A chat to be sent: its answers at the end are left out, since they are what is
/// asked for.
pub(super) fn chat(mut messages: Vec<ChatMessage>) -> Result<Vec<ChatMessage>, String> {
    while messages.pop_if(|last| last.role == "assistant").is_some() {}
    check_chat(&messages)?;
    Ok(messages)
}

/// Can this chat be sent?
pub(super) fn check_chat(messages: &[ChatMessage]) -> Result<(), String> {
    let odd = messages
        .iter()
        .find(|message| !ROLES.contains(&message.role.as_str()));
    if let Some(message) = odd {
        return Err(format!(
            "the role `{}` cannot be sent. Use {}.",
            message.role,
            ROLES.join(", ")
        ));
    }
    match messages.iter().find(|message| message.role == "user") {
        None => Err("nobody asks anything. Give a message of the role `user`.".to_owned()),
        Some(_) if is_blank_question(messages) => Err(
            "the last message is blank. Say what is asked there, or leave the entry out."
                .to_owned(),
        ),
        Some(_) => Ok(()),
    }
}

/// The first question with the system message before it; none where nobody asks.
pub(super) fn first_question(turns: Vec<ChatMessage>) -> Option<Vec<ChatMessage>> {
    let mut chat: Vec<ChatMessage> = Vec::new();
    for turn in turns {
        match turn.role.as_str() {
            "system" if chat.is_empty() => chat.push(turn),
            "user" if !turn.content.trim().is_empty() => {
                chat.push(turn);
                return Some(chat);
            }
            _ => {}
        }
    }
    None
}

/// What the user says, turn by turn; blank turns are left out.
pub(super) fn questions(turns: Vec<ChatMessage>) -> Vec<String> {
    turns
        .into_iter()
        .filter(|turn| turn.role == "user" && !turn.content.trim().is_empty())
        .map(|turn| turn.content)
        .collect()
}

/// Those that stand for themselves; a tool's message answers a call that is not kept.
const ROLES: [&str; 4] = ["system", "developer", "user", "assistant"];

fn is_blank_question(messages: &[ChatMessage]) -> bool {
    messages
        .last()
        .is_some_and(|last| last.content.trim().is_empty())
}

fn plain(prompt: String) -> Result<Said, String> {
    if prompt.trim().is_empty() {
        return Err(blank());
    }
    Ok(Said::Text(prompt))
}

pub(super) fn blank() -> String {
    "the prompt is blank. Say what is asked, or leave the line out.".to_owned()
}

fn list(value: &Value, name: &str, who: &str, what: &str) -> Result<Vec<ChatMessage>, String> {
    let Value::Array(messages) = value else {
        return Err(format!(
            "its \"{name}\" is {} and no list. Put the messages in square brackets.",
            kind(value)
        ));
    };
    messages
        .iter()
        .zip(1_usize..)
        .map(|(message, number)| {
            let Some(Value::String(role)) = message.get(who) else {
                return Err(format!(
                    "message {number} does not say by a \"{who}\" whose it is. Name the speaker there."
                ));
            };
            let content = content(message.get(what), what)
                .map_err(|reason| format!("message {number} {reason}"))?;
            Ok(ChatMessage {
                role: role.clone(),
                content,
            })
        })
        .collect()
}

fn content(value: Option<&Value>, what: &str) -> Result<String, String> {
    match value {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        None | Some(Value::Null) => Err(format!(
            "has no \"{what}\". Give its text there; calls of tools cannot be sent."
        )),
        Some(other) => Err(format!(
            "has {} as its \"{what}\". Give its text there.",
            kind(other)
        )),
    }
}

fn part(part: &Value) -> Result<String, String> {
    match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("text"), Some(Value::String(text))) => Ok(text.clone()),
        (Some(other), _) if other != "text" => Err(format!(
            "holds a part of the type `{other}`, and only text can be measured. Leave such entries out."
        )),
        _ => Err(
            "holds a part without text. Write parts as {\"type\": \"text\", \"text\": …}."
                .to_owned(),
        ),
    }
}

fn sharegpt_role(from: &str) -> Result<&'static str, String> {
    match from {
        "human" | "user" => Ok("user"),
        "gpt" | "chatgpt" | "assistant" | "bing" | "bard" => Ok("assistant"),
        "system" => Ok("system"),
        other => Err(format!(
            "the speaker `{other}` is not known. Use human, gpt or system."
        )),
    }
}

/// serde_json counts lines within the entry; the file's line is said elsewhere.
fn no_json(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    format!(
        "it begins like JSON and is none ({said}). Mend it, or write plain text that does not begin with a brace or a quotation mark."
    )
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
