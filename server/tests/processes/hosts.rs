//! The programs that go to hosts, over SSH.

use std::{fs, path::PathBuf};

use tokdyno_remote::{Host, testing::TestSshd};

use crate::support::cargo_build;

/// Rust's name for this architecture with a C library that links statically.
fn static_target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// The agent, linked statically. `setup.sh test` installs the target.
fn static_agent() -> PathBuf {
    let target = static_target();
    cargo_build(&[
        "--target",
        &target,
        "-p",
        "tokdyno-remote",
        "--bin",
        "tokdyno-agent",
    ]);
    let own = PathBuf::from(env!("CARGO_BIN_EXE_tokdyno"));
    let built = own
        .ancestors()
        .nth(2)
        .expect("cargo's folder")
        .join(target)
        .join("debug/tokdyno-agent");
    assert!(built.is_file(), "{} is there", built.display());
    built
}

/// Kinds of an ELF file's segments, and the tags of its dynamic one.
fn segments(file: &[u8]) -> (Vec<u32>, Vec<u64>) {
    let number = |at: usize, bytes: usize| {
        file[at..at + bytes]
            .iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let index = |at, bytes| usize::try_from(number(at, bytes)).expect("a place in the file");
    assert_eq!(&file[..6], b"\x7fELF\x02\x01", "64 bits, low byte first");
    // Offset, size and number of the program headers; see elf(5).
    let (headers, size, count) = (index(0x20, 8), index(0x36, 2), index(0x38, 2));
    let mut kinds = Vec::new();
    let mut tags = Vec::new();
    for header in (0..count).map(|place| headers + place * size) {
        let kind = u32::try_from(number(header, 4)).expect("a kind");
        kinds.push(kind);
        if kind == PT_DYNAMIC {
            let (offset, length) = (index(header + 8, 8), index(header + 32, 8));
            tags.extend(
                (offset..offset + length)
                    .step_by(16)
                    .map(|at| number(at, 8)),
            );
        }
    }
    (kinds, tags)
}

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;

#[tokio::test]
async fn the_static_agent_needs_nothing_of_its_host_and_runs_over_ssh() {
    let agent = static_agent();
    let (kinds, tags) = segments(&fs::read(&agent).expect("read"));
    assert!(!kinds.is_empty());
    assert!(!kinds.contains(&PT_INTERP), "it asks for no dynamic linker");
    assert!(!tags.contains(&DT_NEEDED), "it asks for no library");
    // The check itself sees what it should: the tests' own program is dynamic.
    let (own, needed) = segments(&fs::read(env!("CARGO_BIN_EXE_tokdyno")).expect("read"));
    assert!(own.contains(&PT_INTERP) && needed.contains(&DT_NEEDED));

    let sshd = TestSshd::start().expect("an sshd");
    let host = Host::open(&sshd.config(&agent), &sshd.reach());
    let checked = host.check().await.expect("it answers");
    assert!(checked.uploaded, "it was copied there");
    let again = host.check().await.expect("it answers");
    assert!(!again.uploaded, "once");
}
