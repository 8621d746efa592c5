//! NCCL's variables and its own log.
//!
//! NCCL takes a variable from the environment, else from the user's conf file,
//! else from the system's. Its log says *set by environment* in all three cases,
//! as the real one does: conf lines are put into the environment first.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs, io,
    path::PathBuf,
};

use crate::config::{Engine, SimConfig};

/// Version that is said to be in use.
pub(crate) const VERSION: &str = "2.27.3";
/// CUDA version that it was built with.
const CUDA: &str = "12.9";
/// The system's conf file.
const SYSTEM_CONF: &str = "/etc/nccl.conf";

/// Variables as they stand in the environment after the engine's own changes.
///
/// SGLang sets `NCCL_CUMEM_ENABLE` and `NCCL_NVLS_ENABLE` to 0 unless they are
/// set, and for deterministic inference over several GPUs overwrites `NCCL_ALGO`.
pub(crate) fn in_environment(
    engine: Engine,
    env: &BTreeMap<String, String>,
    deterministic: bool,
) -> BTreeMap<String, String> {
    let mut nccl: BTreeMap<String, String> = env
        .iter()
        .filter(|(name, _)| name.starts_with("NCCL_"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if engine == Engine::Sglang {
        for name in ["NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE"] {
            nccl.entry(name.to_owned())
                .or_insert_with(|| "0".to_owned());
        }
        if deterministic {
            nccl.insert("NCCL_ALGO".to_owned(), "allreduce:tree".to_owned());
        }
    }
    nccl
}

/// The conf files for an environment, the stronger one first: that of
/// `NCCL_CONF_FILE`, or `~/.nccl.conf`; then the system's.
#[must_use]
pub fn conf_files(env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let set = |name: &str| env.get(name).filter(|value| !value.is_empty());
    let users = set("NCCL_CONF_FILE")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".nccl.conf")));
    users.into_iter().chain([SYSTEM_CONF.into()]).collect()
}

/// What the conf files for this environment set. A file that is not there or
/// cannot be read sets nothing, as with NCCL.
#[must_use]
pub fn read_conf(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for file in conf_files(env) {
        for (name, value) in parse_conf(&fs::read_to_string(file).unwrap_or_default()) {
            all.entry(name).or_insert(value);
        }
    }
    all
}

/// Lines `NAME=value`; `#` starts a comment line. The first of a name counts.
fn parse_conf(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some((name, value)) = line.split_once('=')
            && name.starts_with("NCCL_")
        {
            found
                .entry(name.trim().to_owned())
                .or_insert_with(|| value.trim().to_owned());
        }
    }
    found
}

/// NCCL's start-up log for one process, if the variables ask for one.
pub(crate) struct NcclLog {
    /// Where it is written; none means the engine's own log.
    pub(crate) file: Option<PathBuf>,
    /// Whole lines.
    pub(crate) text: String,
}

impl NcclLog {
    /// The log of a process on a host.
    pub(crate) fn of(config: &SimConfig, host: &str, pid: u32) -> Option<Self> {
        let nccl = &config.nccl;
        let level = nccl.get("NCCL_DEBUG")?.to_ascii_uppercase();
        if !matches!(level.as_str(), "INFO" | "TRACE") {
            return None;
        }
        let file = nccl
            .get("NCCL_DEBUG_FILE")
            .filter(|pattern| !pattern.is_empty())
            .map(|pattern| {
                let path = pattern.replace("%h", host).replace("%p", &pid.to_string());
                PathBuf::from(path)
            });
        let subsystems = subsystems(nccl.get("NCCL_DEBUG_SUBSYS").map(String::as_str));
        let ranks = config.tensor_parallel;
        let mut text = String::new();
        let mut say = |message: &str| {
            let _ = writeln!(text, "{host}:{pid}:{pid} [0] NCCL INFO {message}");
        };
        say("simulated: written by a stand-in engine, no GPU was used");
        say(&format!("NCCL version {VERSION}+cuda{CUDA}"));
        if subsystems.contains("ENV") {
            let own = ["NCCL_DEBUG", "NCCL_CONF_FILE"];
            for (name, value) in nccl {
                if !own.iter().any(|own| name.starts_with(own)) {
                    say(&format!("{name} set by environment to {value}"));
                }
            }
        }
        if subsystems.contains("INIT") {
            say(&format!(
                "ncclCommInitRank comm 0x51b0 rank 0 nranks {ranks} cudaDev 0 - Init START"
            ));
        }
        if subsystems.contains("TUNING") {
            for line in matrix(nccl) {
                say(&line);
            }
        }
        if subsystems.contains("INIT") {
            say(&format!(
                "ncclCommInitRank comm 0x51b0 rank 0 nranks {ranks} cudaDev 0 - Init COMPLETE"
            ));
        }
        Some(Self { file, text })
    }

    /// Writes the file, if there is one.
    pub(crate) fn write(&self) -> io::Result<()> {
        match &self.file {
            Some(path) => fs::write(path, &self.text),
            None => Ok(()),
        }
    }
}

/// The subsystems that log: `INIT,BOOTSTRAP,ENV` unless told otherwise; `^`
/// leaves out those that follow.
fn subsystems(setting: Option<&str>) -> BTreeSet<&'static str> {
    const ALL: [&str; 9] = [
        "INIT",
        "BOOTSTRAP",
        "ENV",
        "COLL",
        "P2P",
        "SHM",
        "NET",
        "GRAPH",
        "TUNING",
    ];
    const USUAL: [&str; 3] = ["INIT", "BOOTSTRAP", "ENV"];
    let Some(setting) = setting.filter(|setting| !setting.is_empty()) else {
        return USUAL.into();
    };
    let upper = setting.to_ascii_uppercase();
    let (left_out, names) = match upper.strip_prefix('^') {
        Some(names) => (true, names),
        None => (false, upper.as_str()),
    };
    let named = |subsystem: &str| {
        names
            .split(',')
            .any(|name| name.trim() == subsystem || name.trim() == "ALL")
    };
    ALL.into_iter()
        .filter(|subsystem| named(subsystem) != left_out)
        .collect()
}

/// Which protocols and algorithms each function may use, as a table.
fn matrix(nccl: &BTreeMap<String, String>) -> Vec<String> {
    const PROTOCOLS: [&str; 3] = ["LL", "LL128", "Simple"];
    const ALGORITHMS: [&str; 7] = [
        "Tree",
        "Ring",
        "CollNetDirect",
        "CollNetChain",
        "NVLS",
        "NVLSTree",
        "PAT",
    ];
    const FUNCTIONS: [&str; 5] = [
        "Broadcast",
        "Reduce",
        "AllGather",
        "ReduceScatter",
        "AllReduce",
    ];
    let allowed = |variable: &str, function: &str, name: &str| {
        let Some(setting) = nccl.get(variable) else {
            return true;
        };
        // "allreduce:tree;broadcast:ring" names functions, "LL,Simple" does not.
        let list = setting
            .split(';')
            .find_map(|part| match part.split_once(':') {
                Some((of, list)) => of.eq_ignore_ascii_case(function).then_some(list),
                None => Some(part),
            });
        let Some(list) = list else { return true };
        let (left_out, list) = match list.strip_prefix('^') {
            Some(list) => (true, list),
            None => (false, list),
        };
        list.split(',')
            .any(|one| one.trim().eq_ignore_ascii_case(name))
            != left_out
    };
    let row = |head: &str, cell: &dyn Fn(&str, &str) -> String| {
        let mut line = format!("{head:>13} |");
        for name in PROTOCOLS {
            let _ = write!(line, " {:>9}", cell("NCCL_PROTO", name));
        }
        line.push_str(" |");
        for name in ALGORITHMS {
            let _ = write!(line, " {:>14}", cell("NCCL_ALGO", name));
        }
        line
    };
    let mut lines = vec![
        "Enabled NCCL Func/Proto/Algo Matrix:".to_owned(),
        row("Function", &|_, name| name.to_owned()),
    ];
    for function in FUNCTIONS {
        lines.push(row(function, &|variable, name| {
            u8::from(allowed(variable, function, name)).to_string()
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::tests::parse, model::nccl_factors};

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn log(engine: Engine, args: &[&str], env: &[(&str, &str)]) -> NcclLog {
        NcclLog::of(&parse(engine, args, env), "gpu7", 42).expect("a log")
    }

    #[test]
    fn the_log_names_every_variable_in_nccls_own_words() {
        let env = [
            ("NCCL_DEBUG", "INFO"),
            ("NCCL_DEBUG_FILE", "/logs/nccl.%h.%p.log"),
            ("NCCL_PROTO", "LL"),
        ];
        let log = log(Engine::Vllm, &["-tp", "8"], &env);
        assert_eq!(log.file, Some("/logs/nccl.gpu7.42.log".into()));
        assert!(
            log.text
                .contains("gpu7:42:42 [0] NCCL INFO NCCL_PROTO set by environment to LL\n"),
            "{}",
            log.text
        );
        assert!(log.text.contains("nranks 8"));
        assert!(log.text.contains("simulated"));
        assert!(!log.text.contains("NCCL_DEBUG"));
    }

    #[test]
    fn nothing_is_logged_unless_asked() {
        for level in ["VERSION", "WARN", ""] {
            let config = parse(Engine::Vllm, &[], &[("NCCL_DEBUG", level)]);
            assert!(NcclLog::of(&config, "h", 1).is_none(), "{level}");
        }
        assert!(NcclLog::of(&parse(Engine::Vllm, &[], &[]), "h", 1).is_none());
    }

    #[test]
    fn subsystems_are_chosen_as_nccl_does() {
        let env = |subsystems| {
            let env = [
                ("NCCL_DEBUG", "INFO"),
                ("NCCL_PROTO", "LL"),
                ("NCCL_DEBUG_SUBSYS", subsystems),
            ];
            log(Engine::Vllm, &[], &env).text
        };
        assert!(!env("INIT").contains("set by environment"));
        assert!(!env("^ENV").contains("set by environment"));
        assert!(env("^NET").contains("set by environment"));
        assert!(env("INIT,ENV,TUNING").contains("Func/Proto/Algo"));
        assert!(env("ALL").contains("Func/Proto/Algo"));
        assert!(!env("").contains("Func/Proto/Algo"));
    }

    #[test]
    fn the_table_shows_what_is_left_of_each_list() {
        let lines = matrix(&map(&[
            ("NCCL_PROTO", "^LL128"),
            ("NCCL_ALGO", "allreduce:tree"),
        ]));
        let cells = |line: &str| -> Vec<String> {
            line.split_whitespace()
                .filter(|cell| matches!(*cell, "0" | "1"))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(
            cells(&lines[2]),
            ["1", "0", "1", "1", "1", "1", "1", "1", "1", "1"]
        );
        assert_eq!(
            cells(&lines[6]),
            ["1", "0", "1", "1", "0", "0", "0", "0", "0", "0"]
        );
    }

    #[test]
    fn deterministic_inference_overwrites_the_algorithm() {
        let env = [("NCCL_DEBUG", "INFO"), ("NCCL_ALGO", "Ring")];
        let flag = "--enable-deterministic-inference";
        let text = log(Engine::Sglang, &[flag, "--tp", "8"], &env).text;
        assert!(text.contains("NCCL_ALGO set by environment to allreduce:tree"));
        assert!(text.contains("NCCL_CUMEM_ENABLE set by environment to 0"));
        let text = log(Engine::Sglang, &[flag], &env).text;
        assert!(
            text.contains("NCCL_ALGO set by environment to Ring"),
            "one GPU"
        );
    }

    #[test]
    fn the_environment_wins_over_the_users_file_and_that_over_the_systems() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("nccl.conf");
        let text = "# set long ago\nNCCL_PROTO=LL\n NCCL_ALGO = Ring \n#NCCL_NTHREADS=64\nPATH=/x\nNCCL_PROTO=Simple\n";
        fs::write(&file, text).expect("written");
        let env = map(&[("NCCL_CONF_FILE", file.to_str().expect("a path"))]);
        let conf = read_conf(&env);
        assert_eq!(conf["NCCL_PROTO"], "LL");
        assert_eq!(conf["NCCL_ALGO"], "Ring");
        assert!(!conf.contains_key("NCCL_NTHREADS") && !conf.contains_key("PATH"));

        let mut config = parse(Engine::Vllm, &[], &[("NCCL_ALGO", "Tree")]);
        config.add_nccl_conf(conf);
        assert_eq!(config.nccl["NCCL_ALGO"], "Tree");
        assert_eq!(config.nccl["NCCL_PROTO"], "LL");
        let same = map(&[("NCCL_ALGO", "Tree"), ("NCCL_PROTO", "LL")]);
        assert_eq!(nccl_factors(&config.nccl), nccl_factors(&same));

        let home = map(&[("HOME", "/home/x")]);
        assert_eq!(
            conf_files(&home),
            [PathBuf::from("/home/x/.nccl.conf"), "/etc/nccl.conf".into()]
        );
    }
}
