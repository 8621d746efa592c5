//! Records hold times of the monotonic clock alone.

use std::{fs, path::Path};

/// Files of the engine that may read the wall clock, and what for.
const MAY: [&str; 3] = [
    // The stamp of an event, for people.
    "events.rs",
    // The same, where there is no run.
    "bin/tokdyno-meter.rs",
    // Notes of the kernel, turned into monotonic time at once, and not believed
    // when the clocks move against each other: its own tests set the clock.
    "arrival.rs",
];
/// What reads the wall clock.
const WALL: [&str; 4] = [
    "SystemTime",
    "UNIX_EPOCH",
    "ClockId::Realtime",
    "OffsetDateTime",
];

fn look(folder: &Path, root: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            look(&path, root, found);
        } else {
            let text = fs::read_to_string(&path).expect("a source");
            if WALL.iter().any(|word| text.contains(word)) {
                let name = path.strip_prefix(root).expect("below");
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
}

/// A clock that is set in mid-run can only matter where it is read. Nobody can set
/// the clock of the machine that runs the tests, so this is held by construction.
#[test]
fn nothing_that_makes_records_reads_the_wall_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    look(&root, &root, &mut found);
    found.sort();
    for file in &found {
        assert!(MAY.contains(&file.as_str()), "{file} reads the wall clock");
    }
    // The search finds what is there.
    assert_eq!(found.len(), MAY.len(), "{found:?}");
}
