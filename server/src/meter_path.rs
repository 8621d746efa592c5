//! Where the measuring program is.

use std::path::{Path, PathBuf};

const VARIABLE: &str = "TOKDYNO_METER";
const PROGRAM: &str = "tokdyno-meter";

/// The measuring program is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The measuring program `{PROGRAM}` is not at {0}. Build it with `cargo build -p tokdyno-loadgen` (`make run` does), keep it beside `tokdyno`, or name it in {VARIABLE}."
)]
pub(crate) struct NoMeter(String);

/// The measuring program: as the environment names it, or beside this program.
///
/// # Errors
/// [`NoMeter`], naming the place where it should be.
pub(crate) fn find() -> Result<PathBuf, NoMeter> {
    let own = std::env::current_exe().ok();
    among(
        std::env::var_os(VARIABLE).map(PathBuf::from),
        own.as_deref().and_then(Path::parent),
    )
}

fn among(named: Option<PathBuf>, beside: Option<&Path>) -> Result<PathBuf, NoMeter> {
    let place = named
        .or_else(|| beside.map(|folder| folder.join(PROGRAM)))
        .ok_or_else(|| NoMeter("an unknown place".to_owned()))?;
    if place.is_file() {
        Ok(std::path::absolute(&place).unwrap_or(place))
    } else {
        Err(NoMeter(place.display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let beside = folder.path().join(PROGRAM);
        std::fs::write(&beside, "").expect("written");
        let named = folder.path().join("another");
        std::fs::write(&named, "").expect("written");
        assert_eq!(among(Some(named.clone()), Some(folder.path())), Ok(named));
        assert_eq!(among(None, Some(folder.path())), Ok(beside));
    }

    #[test]
    fn a_missing_one_is_named() {
        let missing = among(Some(PathBuf::from("/nowhere/meter")), None).expect_err("missing");
        assert!(missing.to_string().contains("/nowhere/meter"), "{missing}");
    }
}
