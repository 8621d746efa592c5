//! NCCL on a host: its version, and files that set its variables unseen.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use tokdyno_domain::host::NcclConf;

use super::{filter, folder, process};

/// `NAME=value` lines; `#` begins a comment.
fn parse(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Files that set variables, and variables of the login environment.
pub(super) fn settings(notes: &mut Vec<String>) -> Vec<NcclConf> {
    let mut paths = vec![
        PathBuf::from("/etc/nccl.conf"),
        folder::home().join(".nccl.conf"),
    ];
    paths.extend(env::var_os("NCCL_CONF_FILE").map(PathBuf::from));
    let mut found = Vec::new();
    for path in paths {
        match super::files::read(&path, 1 << 16) {
            Ok(Some(bytes)) => found.push(NcclConf {
                path: path.display().to_string(),
                variables: shown(&bytes),
            }),
            Ok(None) => {}
            Err(failure) => notes.push(failure.sentence),
        }
    }
    let variables: Vec<(Vec<u8>, Vec<u8>)> = env::vars_os()
        .filter(|(name, _)| {
            name.to_str()
                .is_some_and(|name| name.starts_with("NCCL_") || name.starts_with("CUDA_"))
        })
        .map(|(name, value)| {
            use std::os::unix::ffi::OsStringExt;
            (name.into_vec(), value.into_vec())
        })
        .collect();
    let (shown, _) = filter::environment(&variables, &[]);
    if !shown.is_empty() {
        found.push(NcclConf {
            path: "login environment".to_owned(),
            variables: shown,
        });
    }
    found
}

/// The files that processes name in their own environments, as a wrapper may that
/// starts the engine. Each is looked up where the process sees it, in a container too.
pub(super) fn named_by(pids: impl IntoIterator<Item = u32>) -> Vec<NcclConf> {
    let mut found: Vec<NcclConf> = Vec::new();
    for pid in pids {
        let Some(named) = process::environ(pid).and_then(conf_file) else {
            continue;
        };
        if found.iter().any(|conf| Path::new(&conf.path) == named) {
            continue;
        }
        let whole = Path::new("/proc").join(pid.to_string());
        let place = match named.strip_prefix("/") {
            Ok(below) => whole.join("root").join(below),
            Err(_) => whole.join("cwd").join(&named),
        };
        if let Ok(Some(bytes)) = super::files::read(&place, 1 << 16) {
            found.push(NcclConf {
                path: named.display().to_string(),
                variables: shown(&bytes),
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn conf_file(variables: Vec<(Vec<u8>, Vec<u8>)>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;

    variables
        .into_iter()
        .rev()
        .find(|(name, value)| name == b"NCCL_CONF_FILE" && !value.is_empty())
        .map(|(_, value)| PathBuf::from(std::ffi::OsString::from_vec(value)))
}

/// What a file sets, as far as it may leave the host: whatever file is named, nothing
/// but settings of engines and libraries is told of it.
fn shown(bytes: &[u8]) -> Vec<(String, String)> {
    let variables: Vec<(Vec<u8>, Vec<u8>)> = parse(&String::from_utf8_lossy(bytes))
        .into_iter()
        .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
        .collect();
    filter::environment(&variables, &[]).0
}

/// The version that a library or a Python package has in its name. Several are
/// separated by commas.
pub(super) fn version() -> Option<String> {
    let mut places: Vec<PathBuf> = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
        "/usr/local/cuda/lib64",
        "/usr/local/nccl/lib",
    ]
    .iter()
    .map(PathBuf::from)
    .collect();
    let mut roots = vec![PathBuf::from("/usr/local"), folder::home().join(".local")];
    roots.extend(env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    roots.extend(env::var_os("CONDA_PREFIX").map(PathBuf::from));
    for root in roots {
        for entry in names_in(&root.join("lib")) {
            if entry.starts_with("python3") {
                let library = root.join("lib").join(entry);
                places.push(library.join("site-packages"));
                places.push(library.join("dist-packages"));
            }
        }
    }
    let mut versions: Vec<String> = places
        .iter()
        .flat_map(|place| names_in(place))
        .filter_map(|name| version_in(&name))
        .collect();
    versions.sort();
    versions.dedup();
    (!versions.is_empty()).then(|| versions.join(", "))
}

fn names_in(place: &Path) -> Vec<String> {
    fs::read_dir(place)
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
        .unwrap_or_default()
}

fn version_in(name: &str) -> Option<String> {
    let version = name.strip_prefix("libnccl.so.").or_else(|| {
        let (package, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
        package.starts_with("nvidia_nccl").then_some(version)
    })?;
    let whole = version.split('.').count() >= 3
        && version
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    whole.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conf_file_is_read_as_nccl_does() {
        assert_eq!(
            parse("# tuned\nNCCL_PROTO=LL\n\n NCCL_ALGO = Ring \nnonsense\n"),
            [
                ("NCCL_PROTO".to_owned(), "LL".to_owned()),
                ("NCCL_ALGO".to_owned(), "Ring".to_owned()),
            ]
        );
    }

    #[test]
    fn the_file_that_a_process_names_is_read_and_only_settings_are_told_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = folder.path().join("tuned.conf");
        fs::write(&conf, "NCCL_PROTO=LL\nHF_TOKEN=abc\nnoise\nshadow=x\n").expect("written");
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("NCCL_CONF_FILE", &conf)
            .spawn()
            .expect("a process");
        let mut found = Vec::new();
        // Until it has become the program, it shows this test's environment.
        for _ in 0..100 {
            found = named_by([child.id(), child.id()]);
            if !found.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        child.kill().expect("it lives");
        child.wait().expect("it ends");
        assert_eq!(
            found,
            [NcclConf {
                path: conf.display().to_string(),
                variables: vec![("NCCL_PROTO".to_owned(), "LL".to_owned())],
            }]
        );
    }

    #[test]
    fn only_whole_versions_count() {
        assert_eq!(version_in("libnccl.so.2.27.3").as_deref(), Some("2.27.3"));
        assert_eq!(
            version_in("nvidia_nccl_cu12-2.26.2.dist-info").as_deref(),
            Some("2.26.2")
        );
        for name in [
            "libnccl.so.2",
            "libnccl.so",
            "libnccl_static.a",
            "nccl-1.2.3.dist-info",
        ] {
            assert_eq!(version_in(name), None, "{name}");
        }
    }
}
