//! Launches as people name them.

use tokdyno_domain::{
    ids::LaunchId,
    views::servers::{LaunchSummary, ServerList},
};

use super::{ClientError, Connection};

/// The launch that is meant: by its number, or by its profile's name where one
/// launch of it lives.
///
/// # Errors
/// There is none, or more than one.
pub(crate) async fn living_launch(
    connection: &Connection,
    named: &str,
) -> Result<LaunchId, ClientError> {
    if let Ok(launch) = named.trim().parse() {
        return Ok(launch);
    }
    let list: ServerList = connection.read(&["launches"]).await?;
    chosen(named.trim(), &list.alive)
}

fn chosen(named: &str, alive: &[LaunchSummary]) -> Result<LaunchId, ClientError> {
    let of_profile: Vec<&LaunchSummary> = alive
        .iter()
        .filter(|launch| launch.profile.1.eq_ignore_ascii_case(named))
        .collect();
    match of_profile.as_slice() {
        [one] => Ok(one.id),
        [] => Err(ClientError::Launch(format!(
            "No launch of a profile `{named}` lives. Give the number of a launch; the page of servers shows them."
        ))),
        several => {
            let shown: Vec<String> = several
                .iter()
                .map(|launch| format!("{} on {}", launch.id, launch.host.1))
                .collect();
            Err(ClientError::Launch(format!(
                "More than one launch of `{named}` lives: {}. Give the number of one.",
                shown.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::launch::LaunchState;

    use super::{super::samples::summary, *};

    #[test]
    fn a_name_means_the_one_launch_that_lives() {
        let alive = [
            summary(3, "tuned", LaunchState::Ready),
            summary(4, "plain", LaunchState::Loading),
            summary(5, "plain", LaunchState::Queued),
        ];
        assert_eq!(chosen("Tuned", &alive).expect("one"), LaunchId(3));
        let several = chosen("plain", &alive).expect_err("two").to_string();
        assert!(several.contains("4 on gpu1, 5 on gpu1"), "{several}");
        let none = chosen("other", &alive).expect_err("none").to_string();
        assert!(none.contains("`other`"), "{none}");
    }
}
