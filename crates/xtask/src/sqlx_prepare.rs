//! `.sqlx`: what PostgreSQL says about each checked query, so that a build
//! needs no database. The macros of sqlx write it themselves while they are
//! connected to one; this connects them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::commands::{self, cargo, in_root, root};
use crate::test_db::ThrowawayDb;

/// The only crate with checked queries.
const PACKAGE: &str = "tokdyno-lab";

/// Renews `.sqlx`, or with `check` only compares.
///
/// # Errors
/// A migration or a query is wrong, or, with `check`, `.sqlx` is out of date.
pub(crate) fn run(check: bool) -> Result<()> {
    let database = ThrowawayDb::start()?;
    for migration in migrations()? {
        migrate(&database, &migration)?;
    }
    let fresh = tempfile::tempdir()?;
    ask(&database, fresh.path())?;
    drop(database);

    let committed_dir = root().join(".sqlx");
    let fresh = read_answers(fresh.path())?;
    let committed = read_answers(&committed_dir)?;
    if fresh == committed {
        println!(".sqlx is up to date: {} queries.", fresh.len());
        return Ok(());
    }
    if check {
        let differing: Vec<&str> = differences(&fresh, &committed).collect();
        bail!(
            ".sqlx is out of date ({} files, {} first). Run `make sqlx` and commit the folder.",
            differing.len(),
            differing.first().copied().unwrap_or("none")
        );
    }
    write_answers(&committed_dir, &fresh, &committed)?;
    println!(".sqlx is renewed: {} queries.", fresh.len());
    Ok(())
}

/// The forward migrations, in their order.
fn migrations() -> Result<Vec<PathBuf>> {
    let directory = Path::new("migrations");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join(directory)).context("migrations/ cannot be read")? {
        let name = entry?.file_name();
        let path = directory.join(&name);
        let name = name.to_string_lossy();
        if name.ends_with(".sql") && !name.ends_with(".down.sql") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn migrate(database: &ThrowawayDb, migration: &Path) -> Result<()> {
    commands::run(
        in_root(Path::new(&database.bin_dir).join("psql"))
            .args(["--no-psqlrc", "--quiet", "--single-transaction"])
            .args(["--set", "ON_ERROR_STOP=1", "--file"])
            .arg(migration)
            // Its password opens nothing that lasts.
            .arg("--dbname")
            .arg(&database.url),
    )
    .with_context(|| format!("{} cannot be applied", migration.display()))
}

/// Compiles the crate against the database, with the macros writing to `answers`.
fn ask(database: &ThrowawayDb, answers: &Path) -> Result<()> {
    // cargo does not know that the macros depend on a database. A newer source
    // file makes it compile the crate again; the true time is put back, so that
    // nobody else has to.
    let source = root().join("crates/lab/src/lib.rs");
    let true_time = std::fs::metadata(&source)?.modified()?;
    File::open(&source)?.set_modified(SystemTime::now())?;
    let touched_time = std::fs::metadata(&source)?.modified()?;
    let outcome = commands::run(
        cargo()
            .args(["check", "--package", PACKAGE, "--all-targets"])
            .env("SQLX_OFFLINE", "false")
            .env("SQLX_OFFLINE_DIR", answers)
            .env("DATABASE_URL", &database.url),
    );
    // Unless somebody has edited it meanwhile.
    if std::fs::metadata(&source)?.modified()? == touched_time {
        File::open(&source)?.set_modified(true_time)?;
    }
    outcome.context("the queries of crates/lab do not fit migrations/")
}

/// File name → content. A folder that is not there holds nothing.
fn read_answers(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut answers = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(answers);
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("query-") {
            answers.insert(name.into_owned(), std::fs::read(&path)?);
        }
    }
    Ok(answers)
}

fn write_answers(
    directory: &Path,
    fresh: &BTreeMap<String, Vec<u8>>,
    committed: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    for (name, content) in fresh {
        if committed.get(name) != Some(content) {
            std::fs::write(directory.join(name), content)?;
        }
    }
    for name in committed.keys().filter(|name| !fresh.contains_key(*name)) {
        std::fs::remove_file(directory.join(name))?;
    }
    Ok(())
}

/// The files that are missing, left over, or changed.
fn differences<'a>(
    fresh: &'a BTreeMap<String, Vec<u8>>,
    committed: &'a BTreeMap<String, Vec<u8>>,
) -> impl Iterator<Item = &'a str> {
    let changed = fresh
        .iter()
        .filter(|(name, content)| committed.get(*name) != Some(*content))
        .map(|(name, _)| name.as_str());
    let left_over = committed
        .keys()
        .filter(|name| !fresh.contains_key(*name))
        .map(String::as_str);
    changed.chain(left_over)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn renewing_writes_what_changed_and_removes_what_is_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let committed = answers(&[("query-a.json", "1"), ("query-b.json", "1")]);
        write_answers(directory.path(), &committed, &BTreeMap::new()).unwrap();
        let fresh = answers(&[("query-a.json", "2"), ("query-c.json", "1")]);
        assert_eq!(
            differences(&fresh, &committed).collect::<Vec<_>>(),
            ["query-a.json", "query-c.json", "query-b.json"]
        );
        write_answers(directory.path(), &fresh, &committed).unwrap();
        assert_eq!(read_answers(directory.path()).unwrap(), fresh);
    }
}
