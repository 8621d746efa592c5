//! Everything worth knowing about a machine before it measures anything.

use std::{
    collections::BTreeSet,
    fs,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokdyno_domain::{
    host::{Disk, Inventory},
    timestamp::Timestamp,
};

use super::{bounded, gpus, nccl, nvidia, process, users};

/// How long a file system may take to tell its size. One behind a dead server never
/// does.
const DISK_TIME: Duration = Duration::from_secs(2);
/// Most file systems that are listed.
const MOST_DISKS: usize = 40;

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

pub(super) fn hostname() -> String {
    line("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned())
}

/// Takes the inventory. What cannot be read is left out, with a note.
pub(super) fn take() -> Inventory {
    let mut notes = Vec::new();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut inventory = Inventory {
        at: now(),
        hostname: hostname(),
        user: users::own(),
        boot_id: process::boot_id(),
        os: line("/etc/os-release")
            .and_then(|text| pretty_name(&text))
            .unwrap_or_else(|| "Linux".to_owned()),
        kernel: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model(&processor).unwrap_or_else(|| "unknown".to_owned()),
        cpus: u32::try_from(
            processor
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
        )
        .unwrap_or(u32::MAX),
        governors: governors(),
        memory_total: meminfo(&memory, "MemTotal").unwrap_or(0),
        memory_available: meminfo(&memory, "MemAvailable").unwrap_or(0),
        shm: size_of("/dev/shm"),
        disks: disks(&mut notes),
        nccl: nccl::version(),
        nccl_conf: nccl::settings(&mut notes),
        settings: settings(),
        ..Inventory::default()
    };
    if inventory.shm.is_none() {
        notes.push(
            "/dev/shm is not mounted; NCCL needs it between the GPUs of one host.".to_owned(),
        );
    }
    match inventory.governors.as_slice() {
        [] => notes.push("The processors' frequency governor cannot be read (usual in a virtual machine).".to_owned()),
        [_] => {}
        several => notes.push(format!(
            "The processors do not share one frequency governor ({}), so figures may depend on where a process runs.",
            several.join(", ")
        )),
    }
    add_gpus(&mut inventory, &mut notes);
    inventory.notes = notes;
    inventory
}

fn add_gpus(inventory: &mut Inventory, notes: &mut Vec<String>) {
    let Some(program) = gpus::program() else {
        notes.push("There is no nvidia-smi on the PATH, so no GPU can be seen.".to_owned());
        return;
    };
    let mut noted = |result: Result<String, String>| result.map_err(|note| notes.push(note)).ok();
    if let Some(head) = noted(bounded::ask(&program, &[], bounded::LIMIT)) {
        (inventory.driver, inventory.cuda) = nvidia::versions(&head);
    }
    inventory.topology = noted(bounded::ask(&program, &["topo", "-m"], bounded::LIMIT));
    match gpus::all(&program) {
        Ok(found) => inventory.gpus = found,
        Err(note) => notes.push(note),
    }
    match gpus::ask_processes(&program) {
        Ok(found) => inventory.gpu_processes = found,
        Err(note) => notes.push(note),
    }
}

fn pretty_name(text: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

fn cpu_model(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (label, value) = line.split_once(':')?;
        matches!(label.trim(), "model name" | "Model" | "cpu model")
            .then(|| value.trim().to_owned())
    })
}

/// Bytes of a line such as `MemTotal:  65536 kB`.
fn meminfo(text: &str, label: &str) -> Option<u64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
    let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn governors() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| line(entry.path().join("cpufreq/scaling_governor").to_str()?))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn size_of(mount: &str) -> Option<Disk> {
    let (send, receive) = mpsc::sync_channel(1);
    let path = mount.to_owned();
    // A thread, since asking a dead file system cannot be broken off.
    thread::spawn(move || send.try_send(rustix::fs::statvfs(path.as_str())));
    let facts = receive.recv_timeout(DISK_TIME).ok()?.ok()?;
    Some(Disk {
        mount: mount.to_owned(),
        total: facts.f_blocks.saturating_mul(facts.f_frsize),
        free: facts.f_bavail.saturating_mul(facts.f_frsize),
    })
}

fn disks(notes: &mut Vec<String>) -> Vec<Disk> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found = Vec::new();
    for mount in mounts(&text) {
        if found.len() == MOST_DISKS {
            notes.push(format!(
                "More than {MOST_DISKS} file systems are mounted; the rest is left out."
            ));
            break;
        }
        match size_of(&mount) {
            Some(disk) if disk.total > 0 => found.push(disk),
            Some(_) => {}
            None => notes.push(format!(
                "The file system on {mount} does not tell its size; its server may be gone."
            )),
        }
    }
    found
}

/// Mount points that can hold models or logs, each device once.
fn mounts(text: &str) -> Vec<String> {
    const KINDS: [&str; 20] = [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "f2fs",
        "overlay",
        "nfs",
        "nfs4",
        "cifs",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "fuse.juicefs",
        "fuse.s3fs",
        "9p",
        "virtiofs",
        "bcachefs",
    ];
    let mut devices = BTreeSet::new();
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(mount), Some(kind)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let mount = unescaped(mount);
        let is_tmp = kind == "tmpfs" && mount == "/tmp";
        if !is_tmp && !KINDS.contains(&kind) {
            continue;
        }
        // `overlay` and the like name no device: those are told apart by place.
        let key = if device.starts_with('/') {
            device.to_owned()
        } else {
            format!("{device} {mount}")
        };
        if devices.insert(key) {
            found.push(mount);
        }
    }
    found
}

/// Blanks and the like stand in `mounts` as three octal digits.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

/// Kernel settings that matter to traffic between GPUs, as label and value.
fn settings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            found.push((label.to_owned(), value));
        }
    };
    let command_line = line("/proc/cmdline").unwrap_or_default();
    let words = iommu_words(&command_line);
    add(
        "IOMMU on the kernel's command line",
        (!words.is_empty()).then_some(words),
    );
    let units = fs::read_dir("/sys/class/iommu").map_or(0, |entries| entries.flatten().count());
    add(
        "IOMMU",
        Some(if units > 0 {
            format!("on ({units} units)")
        } else {
            "off".to_owned()
        }),
    );
    add("NUMA balancing", line("/proc/sys/kernel/numa_balancing"));
    add(
        "Transparent huge pages",
        line("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text)),
    );
    add("Swappiness", line("/proc/sys/vm/swappiness"));
    add("Locked memory at most", locked_memory());
    found
}

fn iommu_words(command_line: &str) -> String {
    command_line
        .split_ascii_whitespace()
        .filter(|word| word.contains("iommu") || word.contains("acs"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

fn locked_memory() -> Option<String> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    Some(limit.current.map_or_else(
        || "unlimited".to_owned(),
        |bytes| format!("{} KiB", bytes / 1024),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_an_inventory() {
        let inventory = take();
        assert!(!inventory.boot_id.is_empty() && !inventory.kernel.is_empty());
        assert!(inventory.cpus > 0);
        assert!(inventory.memory_total >= inventory.memory_available);
        assert!(inventory.memory_available > 0);
        assert!(inventory.at > Timestamp(1_700_000_000_000_000));
        assert!(inventory.settings.iter().any(|(label, _)| label == "IOMMU"));
    }

    #[test]
    fn files_of_the_kernel_are_read() {
        assert_eq!(
            meminfo("MemTotal:       65536 kB\n", "MemTotal"),
            Some(65536 * 1024)
        );
        assert_eq!(meminfo("MemTotalX: 1 kB\n", "MemTotal"), None);
        assert_eq!(
            pretty_name("NAME=x\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n").as_deref(),
            Some("Ubuntu 24.04.1 LTS")
        );
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9575F 64-Core Processor\n")
                .as_deref(),
            Some("AMD EPYC 9575F 64-Core Processor")
        );
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(
            iommu_words("root=/dev/sda1 amd_iommu=on iommu=pt quiet"),
            "amd_iommu=on iommu=pt"
        );
    }

    #[test]
    fn disks_are_listed_once_and_others_not_at_all() {
        let text = "proc /proc proc rw 0 0\n/dev/sda1 / ext4 rw 0 0\n/dev/sda1 /snap/x ext4 rw 0 0\nnas:/models /shared/the\\040models nfs4 rw 0 0\ntmpfs /run tmpfs rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(mounts(text), ["/", "/shared/the models", "/tmp"]);
    }
}
