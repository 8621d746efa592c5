//! Where the programs are that this one starts: the meter beside it, and the two
//! that go to hosts, the agent and the meter built for them.

use std::path::{Path, PathBuf};

/// The folder beside this program for what is copied to hosts. Its programs are
/// linked statically, so that they run on any Linux of the same architecture.
const FOR_HOSTS: &str = "hosts";
const METER: &str = "tokdyno-meter";
const AGENT: &str = "tokdyno-agent";

/// A program is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The program `{program}` is not at {place}. Build it with `cargo build -p {package}` (`make run` does), keep it beside `tokdyno`, or name it in {variable}."
)]
pub(crate) struct NoProgram {
    program: &'static str,
    package: &'static str,
    variable: &'static str,
    place: String,
}

/// The programs that were found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    /// Measures from this machine.
    pub(crate) meter: PathBuf,
    /// Works on hosts, this machine among them.
    pub(crate) agent: PathBuf,
    /// Measures on hosts; none where the ordinary meter has to do.
    pub(crate) host_meter: Option<PathBuf>,
}

/// The programs: as the environment names them, or beside this one.
///
/// # Errors
/// [`NoProgram`], naming the place where it should be.
pub(crate) fn find() -> Result<Programs, NoProgram> {
    let own = std::env::current_exe().ok();
    among(
        |variable| std::env::var_os(variable).map(PathBuf::from),
        own.as_deref().and_then(Path::parent),
    )
}

fn among(
    named: impl Fn(&str) -> Option<PathBuf>,
    beside: Option<&Path>,
) -> Result<Programs, NoProgram> {
    let for_hosts = beside.map(|folder| folder.join(FOR_HOSTS));
    let built_for_hosts = |program: &str| {
        let place = for_hosts.as_deref()?.join(program);
        place.is_file().then_some(place)
    };
    let required = |program, package, variable, usual: Option<PathBuf>| {
        let no_program = |place| NoProgram {
            program,
            package,
            variable,
            place,
        };
        let place = named(variable)
            .or(usual)
            .or_else(|| beside.map(|folder| folder.join(program)))
            .ok_or_else(|| no_program("an unknown place".to_owned()))?;
        if place.is_file() {
            Ok(absolute(place))
        } else {
            Err(no_program(place.display().to_string()))
        }
    };
    let host_meter = match named("TOKDYNO_HOST_METER") {
        Some(place) => Some(required(
            METER,
            "tokdyno-loadgen",
            "TOKDYNO_HOST_METER",
            Some(place),
        )?),
        None => built_for_hosts(METER).map(absolute),
    };
    Ok(Programs {
        meter: required(METER, "tokdyno-loadgen", "TOKDYNO_METER", None)?,
        agent: required(
            AGENT,
            "tokdyno-remote",
            "TOKDYNO_AGENT",
            built_for_hosts(AGENT),
        )?,
        host_meter,
    })
}

/// Children run in other directories, so a relative path must not reach them.
fn absolute(place: PathBuf) -> PathBuf {
    std::path::absolute(&place).unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(programs: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(FOR_HOSTS)).expect("made");
        for program in programs {
            std::fs::write(folder.path().join(program), "").expect("written");
        }
        folder
    }

    #[test]
    fn the_environment_goes_before_the_folder() {
        let folder = folder_with(&[METER, AGENT, "another"]);
        let another = folder.path().join("another");
        let named = |variable: &str| (variable == "TOKDYNO_METER").then(|| another.clone());
        let found = among(named, Some(folder.path())).expect("found");
        assert_eq!(found.meter, another);
        assert_eq!(found.agent, folder.path().join(AGENT));
        assert_eq!(found.host_meter, None);
    }

    #[test]
    fn builds_for_hosts_go_before_ordinary_ones_and_never_measure_from_here() {
        let folder = folder_with(&[METER, AGENT, "hosts/tokdyno-meter", "hosts/tokdyno-agent"]);
        let found = among(|_| None, Some(folder.path())).expect("found");
        assert_eq!(found.meter, folder.path().join(METER));
        assert_eq!(found.agent, folder.path().join("hosts/tokdyno-agent"));
        assert_eq!(
            found.host_meter,
            Some(folder.path().join("hosts/tokdyno-meter"))
        );
    }

    #[test]
    fn a_missing_one_is_named_with_its_variable() {
        let folder = folder_with(&[METER]);
        let missing = among(|_| None, Some(folder.path())).expect_err("missing");
        assert!(missing.to_string().contains("TOKDYNO_AGENT"), "{missing}");
        let named =
            |variable: &str| (variable == "TOKDYNO_METER").then(|| PathBuf::from("/nowhere/meter"));
        let folder = folder_with(&[METER, AGENT]);
        let missing = among(named, Some(folder.path())).expect_err("missing");
        assert!(missing.to_string().contains("/nowhere/meter"), "{missing}");
    }
}
