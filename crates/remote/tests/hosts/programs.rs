//! Programs of ours that run on a host.

use std::{fs, path::Path};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support;

#[tokio::test]
async fn a_program_is_copied_once_and_has_its_own_streams() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for host in support::both() {
        if let Some(sshd) = &host.sshd {
            sshd.set_banner("hello\n").expect("set");
        }
        let program = host
            .host
            .ensure_program(Path::new("/bin/sh"))
            .await
            .expect("there");
        assert_eq!(host.sshd.is_none(), program.path == "/bin/sh");
        let script = "printf '%s|%s' \"$1\" \"$2\"; cat; echo done >&2; exit 3";
        let mut child = host
            .host
            .program(&program, &["-c", script, "sh", "a 'b' $c", "d"])
            .spawn()
            .await
            .expect("starts");
        let mut stdin = child.stdin.take().expect("piped");
        let content = every_byte.clone();
        let feeding = tokio::spawn(async move {
            stdin.write_all(&content).await.expect("written");
        });
        let mut got = Vec::new();
        child
            .stdout
            .take()
            .expect("piped")
            .read_to_end(&mut got)
            .await
            .expect("read");
        feeding.await.expect("fed");
        let mut said = String::new();
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut said)
            .await
            .expect("read");
        assert_eq!(said.trim(), "done");
        assert_eq!(child.wait().await.expect("ended").code(), Some(3));
        let (arguments, rest) = got.split_at("a 'b' $c|d".len());
        assert_eq!(arguments, b"a 'b' $c|d");
        assert!(rest == every_byte);
    }
}

#[tokio::test]
async fn a_damaged_copy_is_replaced() {
    let host = support::remote("/bin/bash");
    let first = host
        .host
        .ensure_program(Path::new("/bin/true"))
        .await
        .expect("there");
    fs::write(&first.path, "damaged").expect("written");
    let second = host
        .host
        .ensure_program(Path::new("/bin/true"))
        .await
        .expect("there");
    assert_eq!(first, second);
    assert_eq!(
        fs::read(&second.path).expect("read"),
        fs::read("/bin/true").expect("read")
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_before_it_is_started() {
    let host = support::local();
    let missing = host.host.ensure_program(Path::new("/no/such/meter")).await;
    assert_eq!(missing.expect_err("missing").word(), "agent_missing");
    let gone = tokdyno_remote::RemoteProgram {
        path: "/no/such/meter".to_owned(),
        sha256: String::new(),
    };
    let error = host
        .host
        .program(&gone, &[])
        .spawn()
        .await
        .expect_err("gone");
    assert_eq!(error.word(), "no_such_program");
}
