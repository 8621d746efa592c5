//! Hosts and profiles by number or by name.

use http::StatusCode;
use serde::Deserialize;
use tokdyno_domain::{
    access::Actor,
    ids::{HostId, ProfileId},
};

use super::super::{Problem, Site};

/// As a script names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Named {
    /// By its number.
    Number(i64),
    /// By its name; a number in quotes counts as well where nothing has that name.
    Text(String),
}

impl Named {
    /// From a path.
    pub(super) fn of_text(text: &str) -> Self {
        Self::Text(text.trim().to_owned())
    }

    fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Chooses among things with number and name: by name first.
    fn among(&self, all: &[(i64, &str)]) -> Option<i64> {
        let by_name = match self {
            Self::Text(text) => all.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)),
            Self::Number(_) => None,
        };
        let number = self.number();
        by_name
            .or_else(|| all.iter().find(|(id, _)| Some(*id) == number))
            .map(|(id, _)| *id)
    }

    /// The host that is meant.
    ///
    /// # Errors
    /// 404, or why hosts cannot be read.
    pub(super) async fn host(&self, site: &Site, actor: &Actor) -> Result<HostId, Problem> {
        let hosts = site.lab.hosts(actor).await?;
        let all: Vec<(i64, &str)> = hosts
            .iter()
            .map(|host| (host.id.0, host.name.as_str()))
            .collect();
        self.among(&all).map(HostId).ok_or_else(|| {
            Problem::new(
                StatusCode::NOT_FOUND,
                format!(
                    "There is no host `{}`. GET /api/v1/hosts lists names and numbers.",
                    self.text()
                ),
            )
        })
    }

    /// The name of the profile that is meant, with its number.
    ///
    /// # Errors
    /// 404, or why profiles cannot be read.
    pub(super) async fn profile(
        &self,
        site: &Site,
        actor: &Actor,
    ) -> Result<(ProfileId, String), Problem> {
        let list = site.lab.profiles(actor).await?;
        let all: Vec<(i64, &str)> = list
            .profiles
            .iter()
            .map(|card| (card.id.0, card.name.as_str()))
            .collect();
        self.among(&all)
            .and_then(|id| list.profiles.iter().find(|card| card.id.0 == id))
            .map(|card| (card.id, card.name.clone()))
            .ok_or_else(|| {
                Problem::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "There is no profile `{}`. GET /api/v1/profiles lists names and numbers.",
                        self.text()
                    ),
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_numbers() {
        let all = [(1, "gpu1"), (2, "1"), (3, "Local")];
        let find = |named: Named| named.among(&all);
        assert_eq!(find(Named::Number(1)), Some(1));
        assert_eq!(find(Named::of_text("1")), Some(2));
        assert_eq!(find(Named::of_text("3")), Some(3));
        assert_eq!(find(Named::of_text(" local ")), Some(3));
        assert_eq!(find(Named::of_text("gpu2")), None);
    }
}
