//! What is sent next: a prompt as a request, or a turn of a conversation.

use std::time::Instant;

use tokdyno_domain::{
    prompts::{ChatMessage, Prompt, PromptSet},
    workload::StageKind,
};

use super::{LoadPlan, Shared, unwritten::Unwritten};
use crate::schedule;

/// Where the prompts of replays begin, above those of other stages, of warm-ups and of
/// trial requests.
const REPLAYS_FROM: u64 = 1 << 50;

/// A request before it is sent.
pub(super) struct Job {
    /// Which prompt of the set.
    pub(super) prompt: u64,
    pub(super) turn: Option<u32>,
    /// Completion tokens, where each request asks for its own number.
    pub(super) asked_tokens: Option<u32>,
    pub(super) max_tokens: u32,
    pub(super) bytes: Unwritten,
    /// When it is to be sent: open loops only.
    pub(super) due: Option<Instant>,
}

/// A conversation under way.
pub(super) struct Conversation {
    prompt: u64,
    turn: u32,
    /// Questions to come.
    questions: std::vec::IntoIter<String>,
    /// All that was said so far, the next question included.
    said: Vec<ChatMessage>,
}

impl Job {
    /// The request with this number in its load.
    pub(super) fn new(shared: &Shared, plan: &LoadPlan, number: u64) -> Self {
        let prompt = prompt_of(shared, plan, number);
        let asked_tokens = match &shared.prompts {
            // Warm-up requests are short whatever follows.
            PromptSet::Trace { requests, .. } if !plan.warming => {
                let (place, _) = schedule::entry(requests, prompt);
                let request = usize::try_from(place)
                    .ok()
                    .and_then(|place| requests.get(place));
                // None is asked for nothing.
                request.map(|request| request.output_tokens.max(1))
            }
            _ => None,
        };
        let max_tokens = asked_tokens.unwrap_or(plan.max_tokens);
        let text = shared.prompts.prompt(shared.seed, prompt, &shared.fit);
        Self {
            prompt,
            turn: None,
            asked_tokens,
            max_tokens,
            bytes: shared.template.request(&text, max_tokens).into(),
            due: None,
        }
    }
}

/// The prompt of the request with this number. A replay sends each entry of its
/// trace at that entry's time, wherever the stage's prompts begin.
fn prompt_of(shared: &Shared, plan: &LoadPlan, number: u64) -> u64 {
    let prompt = plan.first_prompt.saturating_add(number);
    match (&shared.prompts, plan.kind) {
        (PromptSet::Trace { requests, .. }, StageKind::Replay { .. }) if !plan.warming => {
            replayed(requests.len() as u64, plan, number)
        }
        _ => prompt,
    }
}

/// An index whose remainder by the length of the trace is the entry, and which no
/// other request of the run has. Each stage begins at a multiple of the length, which
/// may be almost a whole length later than its prompts do; so those of later stages
/// are moved by one length more.
fn replayed(length: u64, plan: &LoadPlan, number: u64) -> u64 {
    let length = length.max(1);
    let first = plan.first_prompt.saturating_add(REPLAYS_FROM);
    let rounds = first.div_ceil(length).saturating_add(u64::from(plan.stage));
    rounds.saturating_mul(length).saturating_add(number)
}

impl Conversation {
    /// The conversation with this number in its load.
    pub(super) fn new(prompts: &PromptSet, plan: &LoadPlan, number: u64) -> Self {
        Self::of(prompts, plan.first_prompt.saturating_add(number))
    }

    fn of(prompts: &PromptSet, prompt: u64) -> Self {
        let questions = prompts.conversation(prompt).unwrap_or_default();
        let mut questions = questions.into_iter();
        Self {
            prompt,
            turn: 0,
            said: vec![message("user", questions.next().unwrap_or_default())],
            questions,
        }
    }

    /// The request for its present turn.
    pub(super) fn job(&self, shared: &Shared, plan: &LoadPlan) -> Job {
        let chat = Prompt::Chat(self.said.clone());
        Job {
            prompt: self.prompt,
            turn: Some(self.turn),
            asked_tokens: None,
            max_tokens: plan.max_tokens,
            bytes: shared.template.request(&chat, plan.max_tokens).into(),
            due: None,
        }
    }

    /// Takes the answer to the present turn, and goes on to the next, if there is
    /// one.
    pub(super) fn go_on(&mut self, answer: String) -> bool {
        let Some(question) = self.questions.next() else {
            return false;
        };
        self.turn = self.turn.saturating_add(1);
        self.said.push(message("assistant", answer));
        self.said.push(message("user", question));
        true
    }
}

fn message(role: &str, content: String) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Shape, Until},
        *,
    };

    #[test]
    fn replays_share_no_prompt() {
        const LONG: u64 = 1 << 20;
        for length in [1, 3, 7, 100, LONG] {
            let mut next = REPLAYS_FROM;
            let mut first_prompt = 0;
            for (stage, sent) in (0..).zip([5, 1, 40, 3, LONG, 2]) {
                let plan = LoadPlan {
                    stage,
                    kind: StageKind::SingleStream,
                    warming: false,
                    slots: 1,
                    shape: Shape::Closed(Until::Requests(1)),
                    first_prompt,
                    max_tokens: 1,
                };
                let first = replayed(length, &plan, 0);
                assert!(first >= next, "stage {stage} of a trace of {length}");
                assert_eq!(first % length, 0);
                let last = replayed(length, &plan, sent - 1);
                assert_eq!(last, first + sent - 1);
                assert!(last < 1 << 60);
                next = last + 1;
                first_prompt += sent;
            }
        }
    }

    #[test]
    fn a_conversation_goes_on_until_its_last_turn() {
        let prompts = PromptSet::Conversations {
            name: "c".to_owned(),
            conversations: vec![
                vec!["one".to_owned()],
                vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
            ],
        };
        let mut talk = Conversation::of(&prompts, 1);
        assert!(talk.go_on("A".to_owned()));
        assert!(talk.go_on("B".to_owned()));
        let said: Vec<(&str, &str)> = talk
            .said
            .iter()
            .map(|message| (message.role.as_str(), message.content.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("user", "a"),
                ("assistant", "A"),
                ("user", "b"),
                ("assistant", "B"),
                ("user", "c"),
            ]
        );
        assert_eq!(talk.turn, 2);
        assert!(!talk.go_on("C".to_owned()));
    }
}
