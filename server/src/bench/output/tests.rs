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
fn a_pipe_is_written_into_and_stays_a_pipe() {
    use std::os::unix::fs::FileTypeExt;

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
    // Nobody reads yet, and this must not wait for anybody.
    Destination::named(Some(&pipe)).check().expect("writable");
    // Open in both directions, so that a writer that never comes ends in a
    // failed assertion rather than in a wait.
    let mut reader = fs::File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("opened");
    let target = Target::of(&pipe).expect("a target");
    target.write(b"{}\n").expect("written");
    let kind = fs::symlink_metadata(&pipe).expect("there").file_type();
    assert!(kind.is_fifo(), "{kind:?}");
    let mut text = [0; 3];
    io::Read::read_exact(&mut reader, &mut text).expect("read");
    assert_eq!(&text, b"{}\n");
}
