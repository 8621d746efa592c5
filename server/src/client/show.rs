//! Answers as tables and JSON.

use std::io::{self, Write};

use serde_json::Value;
use tokdyno_domain::{
    timestamp::Timestamp,
    views::{
        hosts::{GpuOwner, HostSummary},
        profiles::{BuiltinView, Caution, ProfileCard},
        servers::LaunchSummary,
    },
};

use super::ClientError;
use crate::json_text::json_text;

/// An answer as JSON on standard output.
///
/// # Errors
/// Nobody reads it.
pub(crate) fn json(answer: &Value) -> Result<(), ClientError> {
    let text = json_text(answer).map_err(|error| ClientError::Output(error.into()))?;
    io::stdout().write_all(&text).map_err(ClientError::Output)
}

/// Hosts, a line each.
pub(crate) fn hosts(hosts: &[HostSummary]) -> String {
    if hosts.is_empty() {
        return "No host yet. `tokdyno hosts add gpu1` adds one that `ssh gpu1` reaches.\n"
            .to_owned();
    }
    let rows = hosts.iter().map(|host| {
        let state = match (&host.check_error, host.checked_at) {
            (Some(error), _) => error.clone(),
            (None, Some(at)) => format!("answered {}", at.exact()),
            (None, None) => "never tried".to_owned(),
        };
        let mut owners: Vec<String> = host.owners.iter().map(owner).collect();
        if host.waiting > 0 {
            owners.push(format!("{} waiting", host.waiting));
        }
        vec![
            host.id.to_string(),
            host.name.clone(),
            host.reach.label().to_owned(),
            host.hardware.clone(),
            owners.join("; "),
            state,
        ]
    });
    table(
        &[
            "host",
            "name",
            "reached as",
            "hardware",
            "owned by",
            "connection",
        ],
        rows,
    )
}

fn owner(owner: &GpuOwner) -> String {
    let until = owner
        .until
        .map_or_else(String::new, |at| format!(" until {}", at.exact()));
    format!(
        "launch {} ({}, by {}, since {}{until})",
        owner.launch,
        owner.profile,
        owner.by,
        owner.since.exact()
    )
}

/// Profiles, a line each.
pub(crate) fn profiles(profiles: &[ProfileCard]) -> String {
    let rows = profiles.iter().filter(|card| !card.archived).map(|card| {
        vec![
            card.id.to_string(),
            card.name.clone(),
            format!("r{}", card.number),
            card.spec.engine.name().to_owned(),
            card.spec.parameters.model.clone(),
            card.spec.parameters.port.to_string(),
            badges(&card.cautions),
        ]
    });
    table(
        &[
            "profile", "name", "revision", "engine", "model", "port", "cautions",
        ],
        rows,
    )
}

/// Built-in profiles, a line each.
pub(crate) fn builtins(builtins: &[BuiltinView]) -> String {
    let rows = builtins.iter().map(|builtin| {
        vec![
            builtin.id.clone(),
            builtin.engine.name().to_owned(),
            builtin.text.clone(),
        ]
    });
    table(&["built-in", "engine", "what it is"], rows)
}

fn badges(cautions: &[Caution]) -> String {
    let mut badges: Vec<&str> = cautions
        .iter()
        .map(|caution| caution.badge.as_str())
        .collect();
    badges.dedup();
    badges.join(", ")
}

/// A profile: its command and what one should know of it.
pub(crate) fn card(card: &ProfileCard) -> String {
    let mut text = format!(
        "{} (profile {}, revision {}, {})\n\n{}\n",
        card.name,
        card.id,
        card.number,
        card.hash.short(),
        card.command
    );
    if !card.spec.notes.trim().is_empty() {
        text.push_str(&format!("\n{}\n", card.spec.notes.trim()));
    }
    text.push_str(&cautions(&card.cautions));
    text
}

/// What one should know, a line each.
fn cautions(cautions: &[Caution]) -> String {
    let lines: String = cautions
        .iter()
        .map(|caution| format!("! {}: {}\n", caution.badge, caution.text))
        .collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n{lines}")
    }
}

/// Launches, a line each.
pub(crate) fn servers(launches: &[LaunchSummary]) -> String {
    let rows = launches.iter().map(|launch| {
        let state = match &launch.failure {
            Some(failure) => format!("{}: {failure}", launch.state),
            None => launch.state.to_string(),
        };
        vec![
            launch.id.to_string(),
            format!("{} r{}", launch.profile.1, launch.profile.2),
            launch.host.1.clone(),
            launch.port.to_string(),
            state,
            launch
                .stamp
                .as_ref()
                .map_or_else(String::new, |stamp| stamp.word().to_owned()),
            launch.started_at.map_or_else(String::new, Timestamp::exact),
            launch.by.clone(),
        ]
    });
    table(
        &[
            "launch", "profile", "host", "port", "state", "stamp", "since", "by",
        ],
        rows,
    )
}

/// Columns as wide as their widest cell; the last is as long as it likes.
pub(super) fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut all = vec![
        headings
            .iter()
            .map(|heading| (*heading).to_owned())
            .collect(),
    ];
    all.extend(rows);
    let width = |column: usize| {
        all.iter()
            .filter_map(|row: &Vec<String>| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_headings() {
        let rows = [
            vec!["1".to_owned(), "gpu1".to_owned()],
            vec!["12".to_owned(), String::new()],
        ];
        assert_eq!(
            table(&["host", "name"], rows.into_iter()),
            "host  name\n1     gpu1\n12\n"
        );
    }

    #[test]
    fn an_empty_list_of_hosts_says_how_to_add_one() {
        assert!(hosts(&[]).contains("tokdyno hosts add"));
    }
}
