//! Certificates of earlier runs, in a file of the user's. That it cannot be read or
//! written is no failure: then the machine certifies itself anew.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tokdyno_domain::{conditions::Certificate, timestamp::Timestamp};

use crate::machine;

const FILE: &str = "certificates.json";
/// For how long one is believed.
const VALID_US: i64 = 7 * 24 * 3600 * 1_000_000;
/// Most that are kept; the oldest go first.
const MOST: usize = 64;
/// Most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Where they are kept.
#[derive(Debug)]
pub(super) struct Cache(PathBuf);

/// What a certificate is for. Of anything else it says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept(BTreeMap<String, Certificate>);

impl Key {
    /// This machine since its start, this meter, so many streams.
    pub(super) fn of_this_machine(streams: u32) -> Self {
        let read = |path: &str| machine::read(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let cpu = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .unwrap_or_default()
            .trim_start_matches([' ', '\t', ':']);
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        Self::new(
            &[
                &read("/proc/sys/kernel/hostname"),
                &read("/proc/sys/kernel/random/boot_id"),
                cpu,
                &cpus.to_string(),
                env!("CARGO_PKG_VERSION"),
            ],
            streams,
        )
    }

    fn new(machine: &[&str], streams: u32) -> Self {
        Self(format!("{}|{streams}", machine.join("|")))
    }
}

impl Cache {
    /// The user's own, by the rules of the XDG base directories; none without a home.
    pub(super) fn of_this_user() -> Option<Self> {
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let folder = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(Self::at(&folder.join("tokdyno")))
    }

    fn at(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// The one of this key, if it is not too old.
    pub(super) fn find(&self, key: &Key, now: Timestamp) -> Option<Certificate> {
        let found = self.read().0.remove(&key.0)?;
        is_valid(&found, now).then_some(Certificate {
            remembered: true,
            ..found
        })
    }

    /// Keeps one, in the place of an older one. The file is replaced as a whole, so
    /// that nobody reads half of it.
    pub(super) fn keep(&self, key: &Key, certificate: &Certificate) {
        let mut kept = self.read();
        kept.0.retain(|_, other| is_valid(other, certificate.at));
        kept.0.insert(key.0.clone(), certificate.clone());
        while kept.0.len() > MOST {
            let oldest = kept.0.iter().min_by_key(|(_, one)| one.at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            kept.0.remove(&oldest);
        }
        // Without it the machine certifies itself again.
        let _ = self.write(&kept);
    }

    fn read(&self) -> Kept {
        // A pipe in its place would never end.
        let small =
            fs::metadata(&self.0).is_ok_and(|about| about.is_file() && about.len() <= MOST_BYTES);
        if !small {
            return Kept::default();
        }
        fs::read(&self.0)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn write(&self, kept: &Kept) -> std::io::Result<()> {
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        let beside = self.0.with_extension(format!("{}.new", std::process::id()));
        let mut file = fs::File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(kept)?)?;
        fs::rename(&beside, &self.0)
    }
}

fn is_valid(certificate: &Certificate, now: Timestamp) -> bool {
    // One from the future was written by another clock.
    (0..VALID_US).contains(&now.0.saturating_sub(certificate.at.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_764_400_000_000_000);

    fn certificate(at: Timestamp) -> Certificate {
        Certificate {
            at,
            concurrency: 4,
            chunks_per_s: 20_000.0,
            is_limit: false,
            ttft_error_p50_ms: 0.05,
            ttft_error_p99_ms: 0.5,
            tpot_error: 0.0001,
            remembered: false,
        }
    }

    #[test]
    fn kept_ones_are_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(&folder.path().join("not/there/yet"));
        let (key, other) = (Key::new(&["host", "1"], 4), Key::new(&["host", "1"], 8));
        assert_eq!(cache.find(&key, NOW), None);
        cache.keep(&key, &certificate(NOW));
        let found = cache.find(&key, NOW).expect("the one that was kept");
        assert!(found.remembered);
        assert_eq!(found.chunks_per_s, 20_000.0);
        assert_eq!(cache.find(&other, NOW), None);
        assert_eq!(cache.find(&Key::new(&["other", "1"], 4), NOW), None);
        // Nothing is left beside the file.
        let files = fs::read_dir(folder.path().join("not/there/yet")).expect("a folder");
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn old_ones_and_those_of_the_future_are_not_believed() {
        for (age_us, valid) in [
            (0, true),
            (VALID_US - 1, true),
            (VALID_US, false),
            (-1, false),
        ] {
            assert_eq!(
                is_valid(&certificate(NOW), Timestamp(NOW.0 + age_us)),
                valid,
                "{age_us}"
            );
        }
    }

    #[test]
    fn a_broken_or_unwritable_file_is_no_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path());
        let key = Key::new(&["host"], 1);
        fs::write(folder.path().join(FILE), "{\"half").expect("written");
        assert_eq!(cache.find(&key, NOW), None);
        cache.keep(&key, &certificate(NOW));
        assert!(cache.find(&key, NOW).is_some());
        // A file where the folder should be.
        let blocked = Cache::at(&folder.path().join(FILE));
        blocked.keep(&key, &certificate(NOW));
        assert_eq!(blocked.find(&key, NOW), None);
        // What is no file is not waited for.
        let device = Cache("/dev/zero".into());
        assert_eq!(device.find(&key, NOW), None);
    }

    #[test]
    fn not_more_than_a_few_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path());
        for streams in 0..70 {
            let at = Timestamp(NOW.0 + i64::from(streams));
            cache.keep(&Key::new(&["host"], streams), &certificate(at));
        }
        assert_eq!(cache.read().0.len(), MOST);
        let now = Timestamp(NOW.0 + 100);
        assert_eq!(cache.find(&Key::new(&["host"], 0), now), None);
        assert!(cache.find(&Key::new(&["host"], 69), now).is_some());
    }

    #[test]
    fn this_machine_has_a_key_for_each_number_of_streams() {
        assert_eq!(Key::of_this_machine(4), Key::of_this_machine(4));
        assert_ne!(Key::of_this_machine(4), Key::of_this_machine(8));
    }
}
