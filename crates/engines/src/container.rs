//! What a container's runtime tells of a container.

use serde_json::Value;

/// What a container was started with. Its environment is not part of it: that would
/// leave the host unfiltered. It is read from the process inside instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerFacts {
    /// Image as it was asked for.
    pub image: String,
    /// Identity of the image that runs.
    pub image_id: Option<String>,
    /// Program and arguments inside.
    pub command: Vec<String>,
    /// Number of the process inside, as the host counts; none if it does not run.
    pub pid: Option<u32>,
}

/// Why a runtime's answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerFactsError {
    /// Not the JSON that was asked for.
    #[error(
        "The container's runtime did not describe the container ({0}). Try `docker inspect` on the host by hand."
    )]
    Unreadable(String),
}

impl ContainerFacts {
    /// The value for `inspect --format`, of docker and podman alike.
    pub const FORMAT: &'static str = r#"{"image":{{json .Config.Image}},"image_id":{{json .Image}},"path":{{json .Path}},"args":{{json .Args}},"pid":{{json .State.Pid}}}"#;

    /// Reads the answer to [`Self::FORMAT`].
    ///
    /// # Errors
    /// [`ContainerFactsError::Unreadable`] if it is another one.
    pub fn read(answer: &str) -> Result<Self, ContainerFactsError> {
        let unreadable = |why: String| ContainerFactsError::Unreadable(why);
        let value: Value =
            serde_json::from_str(answer.trim()).map_err(|error| unreadable(error.to_string()))?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let path = text("path").ok_or_else(|| unreadable("it names no program".to_owned()))?;
        let arguments = value
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned);
        Ok(Self {
            image: text("image").unwrap_or_default(),
            image_id: text("image_id"),
            command: std::iter::once(path).chain(arguments).collect(),
            pid: value
                .get("pid")
                .and_then(Value::as_u64)
                .and_then(|pid| u32::try_from(pid).ok())
                .filter(|pid| *pid > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_read_and_others_are_refused() {
        let answer = r#"{"image":"lmsysorg/sglang:v0.5.9","image_id":"sha256:1f","path":"python3","args":["-m","sglang.launch_server"],"pid":0}"#;
        let facts = ContainerFacts::read(answer).expect("facts");
        assert_eq!(facts.command, ["python3", "-m", "sglang.launch_server"]);
        assert_eq!(facts.image_id.as_deref(), Some("sha256:1f"));
        assert_eq!(facts.pid, None);
        for other in ["", "no such container", "{}"] {
            let said = ContainerFacts::read(other)
                .expect_err("a refusal")
                .to_string();
            assert!(said.contains("by hand"), "{said}");
        }
    }
}
