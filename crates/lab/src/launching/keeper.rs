//! Those who keep a process besides us: systemd and container runtimes. They are
//! asked in their own words; everything is a plain command on the host.

use std::time::Duration;

use tokdyno_domain::host::Keeper;
use tokdyno_engines::ContainerFacts;
use tokdyno_remote::{ExitKind, Host, RawCommand, RemoteError};

/// Seconds that a container gets between being asked to end and being killed.
const CONTAINER_GRACE_S: &str = "30";

/// How long a keeper may take to answer a question.
const QUESTION: Duration = Duration::from_secs(30);
/// How much longer than what it keeps may take to end, a keeper may take to end it.
const ORDER: Duration = Duration::from_secs(60);

/// What a keeper answered: its output, or a sentence about what went wrong.
pub(super) type Answer = Result<String, String>;

/// How it is stopped, in words, for the question before.
pub(super) fn how(keeper: &Keeper, launched: bool) -> String {
    match keeper {
        Keeper::Unit { name, user: false } => format!("By systemd: systemctl stop {name}."),
        Keeper::Unit { name, user: true } => {
            format!("By the user's systemd: systemctl --user stop {name}.")
        }
        Keeper::Container { runtime, id, name } => format!(
            "By its container runtime: {runtime} stop {}.",
            reference(id, name)
        ),
        Keeper::Process if launched => {
            "With SIGTERM; what still lives of its processes after a minute is killed.".to_owned()
        }
        Keeper::Process => {
            "With SIGTERM to its first process, and SIGKILL if it has not ended after a minute."
                .to_owned()
        }
    }
}

/// Stops it its own way; none if it is a plain process.
pub(super) async fn stop(
    host: &Host,
    keeper: &Keeper,
    grace: Duration,
) -> Result<Option<Answer>, RemoteError> {
    order(host, keeper, "stop", grace).await
}

/// Starts it again its own way; none if it is a plain process.
pub(super) async fn start(
    host: &Host,
    keeper: &Keeper,
    grace: Duration,
) -> Result<Option<Answer>, RemoteError> {
    order(host, keeper, "start", grace).await
}

async fn order(
    host: &Host,
    keeper: &Keeper,
    verb: &str,
    grace: Duration,
) -> Result<Option<Answer>, RemoteError> {
    let words: Vec<&str> = match keeper {
        Keeper::Process => return Ok(None),
        Keeper::Unit { name, user } => systemctl(*user)
            .chain([verb, "--", name.as_str()])
            .collect(),
        Keeper::Container { runtime, id, name } => {
            let mut words = vec![runtime.as_str(), verb];
            if verb == "stop" {
                words.extend(["-t", CONTAINER_GRACE_S]);
            }
            words.push(reference(id, name));
            words
        }
    };
    let limit = grace + ORDER;
    match within(host.label(), limit, run(host, &words)).await {
        // What it was told may yet come to pass; the process is looked at afterwards.
        Err(RemoteError::TimedOut { .. }) => Ok(Some(Err(format!(
            "`{}` did not answer within {} s.",
            shown(&words),
            limit.as_secs()
        )))),
        other => other.map(Some),
    }
}

/// Number of the process that it keeps now, on the host; none if none runs.
pub(super) async fn main_process(host: &Host, keeper: &Keeper) -> Result<Option<u32>, RemoteError> {
    let answer = match keeper {
        Keeper::Process => return Ok(None),
        Keeper::Unit { name, user } => {
            let words: Vec<&str> = systemctl(*user)
                .chain(["show", "--property=MainPID", "--value", "--", name.as_str()])
                .collect();
            let answer = ask(host, &words).await?;
            answer.ok().and_then(|text| text.trim().parse().ok())
        }
        Keeper::Container { .. } => container(host, keeper).await?.and_then(|facts| facts.pid),
    };
    Ok(answer.filter(|pid| *pid > 0))
}

/// What the runtime tells of a container; none if there is no such container.
pub(super) async fn container(
    host: &Host,
    keeper: &Keeper,
) -> Result<Option<ContainerFacts>, RemoteError> {
    let Keeper::Container { runtime, id, name } = keeper else {
        return Ok(None);
    };
    let words = [
        runtime.as_str(),
        "inspect",
        "--type",
        "container",
        "--format",
        ContainerFacts::FORMAT,
        reference(id, name),
    ];
    let answer = ask(host, &words).await?;
    Ok(answer
        .ok()
        .and_then(|text| ContainerFacts::read(&text).ok()))
}

/// Identity of the container of this name; none if there is none.
pub(super) async fn container_id(
    host: &Host,
    runtime: &str,
    name: &str,
) -> Result<Option<String>, RemoteError> {
    let words = [
        runtime,
        "inspect",
        "--type",
        "container",
        "--format",
        "{{.Id}}",
        name,
    ];
    let answer = ask(host, &words).await?;
    Ok(answer
        .ok()
        .map(|id| id.trim().to_owned())
        .filter(|id| !id.is_empty()))
}

fn systemctl<'a>(user: bool) -> impl Iterator<Item = &'a str> {
    std::iter::once("systemctl")
        .chain(user.then_some("--user"))
        .chain(std::iter::once("--no-ask-password"))
}

fn reference<'a>(id: &'a str, name: &'a str) -> &'a str {
    if id.is_empty() { name } else { id }
}

/// A question that is not answered in time is no answer of "none".
async fn ask(host: &Host, words: &[&str]) -> Result<Answer, RemoteError> {
    within(host.label(), QUESTION, run(host, words)).await
}

async fn within<T>(
    host: &str,
    limit: Duration,
    asked: impl Future<Output = Result<T, RemoteError>>,
) -> Result<T, RemoteError> {
    tokio::time::timeout(limit, asked)
        .await
        .unwrap_or_else(|_| {
            Err(RemoteError::TimedOut {
                host: host.to_owned(),
                seconds: limit.as_secs(),
            })
        })
}

fn shown(words: &[&str]) -> String {
    words.iter().take(4).copied().collect::<Vec<_>>().join(" ")
}

async fn run(host: &Host, words: &[&str]) -> Result<Answer, RemoteError> {
    let output = host.run(&RawCommand::new(words), &[]).await?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let how = match output.status {
        ExitKind::Code(code) => format!("exit code {code}"),
        ExitKind::Signal(signal) => format!("signal {signal}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(300)
        .collect();
    let command = shown(words);
    Ok(Err(if said.is_empty() {
        format!("`{command}` ended with {how}.")
    } else {
        format!("`{command}` ended with {how}: {said}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_how_each_is_stopped() {
        let unit = Keeper::Unit {
            name: "vllm.service".to_owned(),
            user: true,
        };
        assert!(how(&unit, false).contains("--user stop vllm.service"));
        let container = Keeper::Container {
            runtime: "podman".to_owned(),
            id: String::new(),
            name: "tokdyno-1".to_owned(),
        };
        assert!(how(&container, true).contains("podman stop tokdyno-1"));
        assert!(how(&Keeper::Process, false).contains("SIGTERM"));
    }

    #[tokio::test]
    async fn a_keeper_that_does_not_answer_is_not_waited_for_without_end() {
        let never = std::future::pending::<Result<(), RemoteError>>();
        let error = within("gpu1", Duration::from_millis(20), never)
            .await
            .expect_err("no answer");
        assert!(matches!(error, RemoteError::TimedOut { .. }), "{error}");
        assert!(error.to_string().contains("gpu1 did not answer"), "{error}");
        let soon = async { Ok(7) };
        let answer = within("gpu1", Duration::from_secs(5), soon).await;
        assert_eq!(answer.expect("an answer"), 7);
    }

    #[test]
    fn systemd_is_never_left_waiting_for_a_password() {
        assert_eq!(
            systemctl(true).collect::<Vec<_>>(),
            ["systemctl", "--user", "--no-ask-password"]
        );
    }
}
