//! Files as people have them.

use proptest::prelude::*;

use super::{
    super::{Fit, MAX_FILE_BYTES, Prompt},
    *,
};

fn refused(text: &str) -> (usize, String) {
    match PromptSet::from_file("p", text) {
        Err(PromptFileError::Line { line, reason, .. }) => (line, reason),
        other => panic!("{other:?}"),
    }
}

fn message(role: &str, content: &str) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
    }
}

fn chats(text: &str) -> Vec<Vec<ChatMessage>> {
    match PromptSet::from_file("p", text).expect("chats") {
        PromptSet::Chats { chats, .. } => chats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_text_and_of_json_lines() {
    let set =
        PromptSet::from_file("p.jsonl", "{\"prompt\":\"a\"}\n\n\"b\"\nplain c\n").expect("prompts");
    assert_eq!(
        set,
        PromptSet::File {
            name: "p.jsonl".to_owned(),
            prompts: vec!["a".to_owned(), "b".to_owned(), "plain c".to_owned()],
        }
    );
    assert_eq!(set.len(), Some(3));
    let again = set.prompt(9, 3, &Fit::default());
    assert_eq!(again, Prompt::Text("(2) a".to_owned()));
    let bracket = PromptSet::from_file("p", "\u{feff}[INST] a [/INST]").expect("a prompt");
    assert_eq!(
        bracket.prompt(0, 0, &Fit::default()),
        Prompt::Text("[INST] a [/INST]".to_owned())
    );
}

#[test]
fn unusable_files_say_where_and_what_to_do() {
    assert_eq!(
        PromptSet::from_file("p", " \n\n"),
        Err(PromptFileError::Empty("p".to_owned()))
    );
    assert_eq!(refused("ok\n{\"text\":1}").0, 2);
    assert_eq!(refused("\"  \"").0, 1);
    for (text, line, word) in [
        ("{\"prompt\":1}", 1, "a number"),
        ("a\n{\"prompt\":\"b\"", 2, "begins like JSON"),
        ("\n{\"messages\":1}", 2, "no list"),
        ("{\"messages\":[]}", 1, "nobody asks"),
        ("{\"messages\":[{\"content\":\"a\"}]}", 1, "\"role\""),
        ("{\"messages\":[{\"role\":\"user\"}]}", 1, "no \"content\""),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":\" \"}]}",
            1,
            "blank",
        ),
        (
            "{\"messages\":[{\"role\":\"tool\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"a\"}]}",
            1,
            "role `tool`",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}]}",
            1,
            "`image_url`",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
            1,
            "without text",
        ),
        (
            "[{\"prompt\":\"a\"},\n\n{\"conversations\":[{\"from\":\"dog\",\"value\":\"a\"}]}]",
            3,
            "`dog`",
        ),
        (
            "a\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}",
            2,
            "two files",
        ),
        ("[{\"prompt\":\"a\"},\n{\"prompt\":", 2, "begins like JSON"),
        ("[\"a\",\n7]", 2, "a number"),
    ] {
        let (said_line, said) = refused(text);
        assert_eq!(said_line, line, "{text}: {said}");
        assert!(said.contains(word), "{text}: {said}");
        assert!(said.ends_with('.'), "{said}");
        assert!(!said.contains("column"), "{said}");
    }
}

#[test]
fn chats_are_sent_as_they_are_up_to_the_last_question() {
    let text = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},{"role":"assistant","content":"e"}]}"#;
    assert_eq!(
        chats(text),
        [vec![
            message("system", "s"),
            message("user", "a"),
            message("assistant", "b"),
            message("user", "cd"),
        ]]
    );
}

#[test]
fn sharegpt_files_give_the_first_questions() {
    let array = r#"[
      {"id": 1, "conversations": [{"from":"system","value":"s"},{"from":"human","value":"a"},{"from":"gpt","value":"b"}]},
      {"id": 2, "conversations": []},
      {"id": 3, "conversations": [{"from":"gpt","value":"x"},{"from":"human","value":"c"},{"from":"human","value":"d"}]}
    ]"#;
    let expected = [
        vec![message("system", "s"), message("user", "a")],
        vec![message("user", "c")],
    ];
    assert_eq!(chats(array), expected);
    let lines: Vec<String> = serde_json::from_str::<Vec<serde_json::Value>>(array)
        .expect("JSON")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(chats(&lines.join("\n")), expected);
    let nobody = r#"{"conversations":[{"from":"gpt","value":"x"}]}"#;
    assert!(matches!(
        PromptSet::from_file("p", nobody),
        Err(PromptFileError::Empty(_))
    ));
}

#[test]
fn conversations_are_what_the_user_says() {
    let text = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}
{"conversations":[{"from":"human","value":"d"},{"from":"gpt","value":"e"}]}"#;
    let set = PromptSet::conversations_from_file("p", text).expect("conversations");
    assert_eq!(set.len(), Some(2));
    let turns = |index| set.conversation(index).expect("turns");
    assert_eq!(turns(0), ["a", "c"]);
    assert_eq!(turns(1), ["d"]);
    assert_eq!(
        turns(2),
        ["(2) a", "c"],
        "the later pass shares no beginning"
    );
    assert_eq!(
        set.prompt(0, 2, &Fit::default()),
        Prompt::Text("(2) a".to_owned())
    );
    assert_eq!(PromptSet::Varied.conversation(0), None);
    for text in ["plain", "{\"prompt\":\"a\"}", "\"a\""] {
        let error = PromptSet::conversations_from_file("p", text).expect_err("a refusal");
        assert!(error.to_string().contains("holds no turns"), "{error}");
    }
}

#[test]
fn every_kind_of_file_has_a_bound() {
    let long = "a".repeat(MAX_FILE_BYTES / 2);
    let chat = format!(r#"{{"messages":[{{"role":"user","content":"{long}"}}]}}"#);
    for one in [&long, &chat] {
        let two = format!("{one}\n{one}\n");
        assert!(PromptSet::from_file("p", one).is_ok());
        let error = PromptSet::from_file("p", &format!("{two}{one}")).expect_err("a refusal");
        assert!(
            matches!(error, PromptFileError::TooLarge { .. }),
            "{}",
            error.to_string().chars().take(200).collect::<String>()
        );
    }
    assert!(PromptSet::conversations_from_file("p", &format!("{chat}\n{chat}\n{chat}")).is_err());
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "[\\[\\]{}\",:a \n]{0,60}") {
        let _ = PromptSet::from_file("p", &text);
        let _ = PromptSet::conversations_from_file("p", &text);
        let _ = PromptSet::trace_from_file("p", &text);
    }
}
