use super::*;

#[test]
fn a_folder_that_is_not_there_is_noticed_before_measuring() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = Destination::named(Some(&folder.path().join("r.json")));
    good.check().expect("writable");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("listed").count(),
        0,
        "nothing is left behind"
    );
    let missing = Destination::named(Some(&folder.path().join("no/r.json")));
    let error = missing.check().expect_err("not writable").to_string();
    assert!(error.contains("Check the folder"), "{error}");
    assert!(Destination::named(Some(folder.path())).check().is_err());
}

#[test]
fn a_dash_is_standard_output() {
    assert_eq!(
        Destination::named(Some(Path::new("-"))),
        Destination::StandardOutput
    );
    assert_eq!(Destination::named(None), Destination::Table);
}

#[test]
fn links_are_followed_and_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("far")).expect("a folder");
    fs::write(at("far/old.json"), "old").expect("written");
    for (link, leads_to) in [
        ("to_old", "far/old.json"),
        ("to_new", "far/new.json"),
        ("to_link", "to_new"),
    ] {
        std::os::unix::fs::symlink(leads_to, at(link)).expect("a link");
    }
    for (link, file) in [
        ("to_old", "far/old.json"),
        ("to_link", "far/new.json"),
        ("to_new", "far/new.json"),
    ] {
        let target = Target::of(&at(link)).expect("a target");
        target.check().expect("writable");
        target.write(link.as_bytes()).expect("written");
        assert!(at(link).is_symlink(), "{link} stays a link");
        assert!(!at(file).is_symlink(), "{file} is the file");
        assert_eq!(fs::read_to_string(at(file)).expect("read"), link);
    }
    let left = fs::read_dir(at("far")).expect("listed").count();
    assert_eq!(left, 2, "nothing else is left behind");
}

#[test]
fn a_circle_of_links_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("b", at("a")).expect("a link");
    std::os::unix::fs::symlink("a", at("b")).expect("a link");
    assert!(Destination::named(Some(&at("a"))).check().is_err());
}

#[test]
fn what_would_wait_for_ever_or_be_destroyed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    let socket = folder.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    for (path, kind) in [(pipe, "a named pipe"), (socket, "a socket")] {
        let destination = Destination::named(Some(&path));
        for refused in [destination.check(), destination.write(&1)] {
            let error = refused.expect_err("refused").to_string();
            assert!(
                error.contains(kind) && error.contains("--json -"),
                "{error}"
            );
        }
        assert_eq!(destination.regular_file(), None);
    }
}

#[test]
fn a_pipe_of_the_shell_and_a_device_are_written_into() {
    use std::os::fd::AsRawFd as _;

    let (mut reader, writer) = io::pipe().expect("a pipe");
    let named = format!("/dev/fd/{}", writer.as_raw_fd());
    let destination = Destination::named(Some(Path::new(&named)));
    destination.check().expect("writable");
    destination.write(&1).expect("written");
    let mut text = [0; 2];
    io::Read::read_exact(&mut reader, &mut text).expect("read");
    assert_eq!(&text, b"1\n");
    // Nobody will ever read what is written now.
    drop(reader);
    assert!(destination.write(&1).is_err());

    let null = Destination::named(Some(Path::new("/dev/null")));
    null.check().expect("writable");
    null.write(&1).expect("written");
    let full = Destination::named(Some(Path::new("/dev/full")));
    full.check().expect("looks writable");
    assert!(matches!(full.write(&1), Err(OutputError::File { .. })));
}
