//! What `nvidia-smi` prints, read. Pure; fields that a driver or a card does not
//! know arrive as `[N/A]`, `[Not Supported]` and the like, and are none.

use tokdyno_domain::host::{Gpu, GpuProcess, GpuSample};

/// Fields that every driver knows.
pub(super) const GPU_FIELDS: &str =
    "index,uuid,name,memory.total,memory.used,clocks.sm,clocks.mem,power.limit";
/// Fields that older drivers refuse as a whole, with the labels of their values.
pub(super) const DETAIL_FIELDS: [(&str, &str); 9] = [
    ("pci.bus_id", "PCI address"),
    ("pcie.link.gen.current", "PCIe generation now"),
    ("pcie.link.gen.max", "PCIe generation at most"),
    ("pcie.link.width.current", "PCIe lanes now"),
    ("pcie.link.width.max", "PCIe lanes at most"),
    ("compute_mode", "Compute mode"),
    ("persistence_mode", "Persistence mode"),
    ("ecc.mode.current", "ECC"),
    ("mig.mode.current", "MIG mode"),
];
/// Fields of a sample, without the one for throttling, which has two names.
pub(super) const SAMPLE_FIELDS: &str =
    "index,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used";
/// Names of the mask of reasons for low clocks, the older first.
pub(super) const THROTTLE_FIELDS: [&str; 2] = [
    "clocks_throttle_reasons.active",
    "clocks_event_reasons.active",
];
/// Fields of the list of processes.
pub(super) const PROCESS_FIELDS: &str = "gpu_uuid,pid,process_name,used_memory";

fn known(field: &str) -> Option<&str> {
    let field = field.trim();
    (!field.is_empty() && !field.starts_with('[') && field != "N/A").then_some(field)
}

/// A whole number; `575.00` counts as 575.
fn whole(field: Option<&&str>) -> Option<u64> {
    let text = known(field?)?;
    text.split('.').next()?.parse().ok()
}

fn small(field: Option<&&str>) -> Option<u32> {
    whole(field).and_then(|number| u32::try_from(number).ok())
}

/// Lines of [`GPU_FIELDS`], with or without those of [`DETAIL_FIELDS`] after them.
pub(super) fn gpus(text: &str) -> Vec<Gpu> {
    text.lines().filter_map(gpu).collect()
}

fn gpu(line: &str) -> Option<Gpu> {
    let fields: Vec<&str> = line.split(", ").collect();
    let details = fields.get(8..).unwrap_or_default();
    Some(Gpu {
        index: small(fields.first())?,
        uuid: known(fields.get(1)?)?.to_owned(),
        name: known(fields.get(2)?)?.to_owned(),
        // Cards that share the machine's memory have none of their own.
        memory_mib: whole(fields.get(3)).unwrap_or(0),
        used_mib: whole(fields.get(4)).unwrap_or(0),
        clocks_mhz: small(fields.get(5)).zip(small(fields.get(6))),
        power_limit_w: small(fields.get(7)),
        details: DETAIL_FIELDS
            .iter()
            .zip(details)
            .filter_map(|((_, label), value)| Some(((*label).to_owned(), known(value)?.to_owned())))
            .collect(),
    })
}

/// Lines of [`PROCESS_FIELDS`]. A program's name may hold commas.
pub(super) fn processes(text: &str) -> Vec<GpuProcess> {
    text.lines()
        .filter_map(|line| {
            let (uuid, rest) = line.split_once(", ")?;
            let (pid, rest) = rest.split_once(", ")?;
            let (name, used) = rest.rsplit_once(", ")?;
            Some(GpuProcess {
                gpu_uuid: known(uuid)?.to_owned(),
                pid: pid.trim().parse().ok()?,
                name: known(name).unwrap_or("unknown").to_owned(),
                user: None,
                used_mib: whole(Some(&used)).unwrap_or(0),
            })
        })
        .collect()
}

/// A line of [`SAMPLE_FIELDS`] and the mask of [`THROTTLE_FIELDS`].
pub(super) fn sample(line: &str) -> Option<GpuSample> {
    let fields: Vec<&str> = line.split(", ").collect();
    Some(GpuSample {
        index: small(fields.first())?,
        sm_mhz: small(fields.get(1)),
        memory_mhz: small(fields.get(2)),
        power_w: fields
            .get(3)
            .and_then(|field| known(field)?.parse().ok())
            .filter(|power: &f64| power.is_finite()),
        temperature_c: small(fields.get(4)),
        utilisation: small(fields.get(5)),
        used_mib: whole(fields.get(6)),
        throttle: fields
            .get(7)
            .and_then(|field| throttle(known(field)?))
            .unwrap_or_default(),
    })
}

/// Names of the bits that NVML calls `nvmlClocksThrottleReason…`. An idle GPU's low
/// clocks (bit 0) are no reason to worry and are left out.
fn throttle(mask: &str) -> Option<Vec<String>> {
    const BITS: [(u64, &str); 8] = [
        (0x002, "clocks set by an application"),
        (0x004, "power cap"),
        (0x008, "hardware slowdown"),
        (0x010, "sync boost"),
        (0x020, "thermal slowdown"),
        (0x040, "hardware thermal slowdown"),
        (0x080, "hardware power brake"),
        (0x100, "display clocks"),
    ];
    let mask = u64::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?;
    Some(
        BITS.iter()
            .filter(|(bit, _)| mask & bit != 0)
            .map(|(_, name)| (*name).to_owned())
            .collect(),
    )
}

/// Driver's and CUDA's version from the head of plain `nvidia-smi`.
pub(super) fn versions(text: &str) -> (Option<String>, Option<String>) {
    let after = |label: &str| {
        let (_, rest) = text.split_once(label)?;
        let word = rest.split_ascii_whitespace().next()?;
        word.starts_with(|c: char| c.is_ascii_digit())
            .then(|| word.to_owned())
    };
    (after("Driver Version:"), after("CUDA Version:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eight() -> String {
        (0..8)
            .map(|index| {
                format!(
                    "{index}, GPU-0000000{index}-d33d-2b2c-524d-9e3d8d2b8a77, NVIDIA RTX PRO 6000 Blackwell Server Edition, 97887, {}, 180, 405, 600.00, 00000000:{index}1:00.0, 5, 5, 16, 16, Default, Enabled, Enabled, Disabled\n",
                    index * 3
                )
            })
            .collect()
    }

    #[test]
    fn eight_cards_are_read_with_their_details() {
        let gpus = gpus(&eight());
        assert_eq!(gpus.len(), 8);
        let last = &gpus[7];
        assert_eq!(
            (last.index, last.memory_mib, last.used_mib),
            (7, 97_887, 21)
        );
        assert_eq!(last.clocks_mhz, Some((180, 405)));
        assert_eq!(last.power_limit_w, Some(600));
        assert_eq!(last.details.len(), DETAIL_FIELDS.len());
        assert!(
            last.details
                .contains(&("PCIe lanes now".to_owned(), "16".to_owned()))
        );
    }

    #[test]
    fn an_old_driver_and_a_card_that_knows_little_are_read_too() {
        let old = "0, GPU-x, Tesla K80, 11441, 0, 324, 324, 149.00\n";
        assert_eq!(gpus(old)[0].details, []);
        let little = "0, GPU-y, NVIDIA GB10, [N/A], [Not Supported], [N/A], [N/A], [N/A]\n";
        let gpu = &gpus(little)[0];
        assert_eq!(
            (gpu.memory_mib, gpu.clocks_mhz, gpu.power_limit_w),
            (0, None, None)
        );
        assert_eq!(gpus("No devices were found\n"), []);
    }

    #[test]
    fn holders_of_memory_are_read_whatever_their_name() {
        let text = "GPU-a, 4242, /opt/env/bin/python3, 91234\nGPU-b, 4243, sglang::scheduler, TP1, [N/A]\nGPU-c, 9, [Not Found], 12\n";
        let found = processes(text);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].pid, found[0].used_mib), (4242, 91_234));
        assert_eq!(
            (found[1].name.as_str(), found[1].used_mib),
            ("sglang::scheduler, TP1", 0)
        );
        assert_eq!(found[2].name, "unknown");
        assert_eq!(processes("No running processes found\n"), []);
    }

    #[test]
    fn a_sample_tells_why_clocks_are_held_down() {
        let line = "3, 2430, 12481, 598.12, 71, 99, 91234, 0x0000000000000024";
        let sample_3 = sample(line).expect("a sample");
        assert_eq!(
            (sample_3.index, sample_3.sm_mhz, sample_3.power_w),
            (3, Some(2430), Some(598.12))
        );
        assert_eq!(sample_3.throttle, ["power cap", "thermal slowdown"]);
        let idle = sample("0, 180, 405, [N/A], 30, 0, 3, 0x0000000000000001").expect("a sample");
        assert_eq!((idle.power_w, idle.throttle), (None, Vec::<String>::new()));
        assert_eq!(sample(""), None);
    }

    #[test]
    fn versions_stand_in_the_head() {
        let head = "+-----------------------------------------------------------------------------------------+\n| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |\n";
        assert_eq!(
            versions(head),
            (Some("570.133.20".to_owned()), Some("12.8".to_owned()))
        );
        let old =
            "| NVIDIA-SMI 390.48                 Driver Version: 390.48                    |\n";
        assert_eq!(versions(old), (Some("390.48".to_owned()), None));
        let odd = "| NVIDIA-SMI 570   Driver Version: 570   CUDA Version: N/A |";
        assert_eq!(versions(odd).1, None);
    }
}
