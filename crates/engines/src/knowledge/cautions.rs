//! What a reader of a profile should know.

use tokdyno_domain::{
    engine::EngineKind,
    profile::ProfileSpec,
    views::profiles::{Caution, CautionOf, Gravity},
};

use super::{is_inert, nccl, own_rows};
use crate::{
    mask::{MASK, is_secret_name},
    version::Version,
    words::Row,
};

/// What a reader should know of a profile, for an engine version if one is known.
/// The gravest first.
#[must_use]
pub fn cautions(spec: &ProfileSpec, version: Option<&str>) -> Vec<Caution> {
    let rows = own_rows(spec);
    let mut found = Found {
        spec,
        rows: &rows,
        version,
        numbers: version.and_then(Version::read),
        cautions: Vec::new(),
    };
    for row in &rows {
        found.of_row(row);
    }
    for (name, value) in &spec.environment {
        found.of_variable(name, value);
    }
    found.of_whole();
    found.of_masks();
    found.cautions.sort_by_key(|caution| caution.gravity);
    found.cautions
}

struct Found<'a> {
    spec: &'a ProfileSpec,
    rows: &'a [Row<'a>],
    version: Option<&'a str>,
    numbers: Option<Version>,
    cautions: Vec<Caution>,
}

impl Found<'_> {
    fn add(&mut self, of: CautionOf, gravity: Gravity, badge: &str, text: impl Into<String>) {
        self.cautions.push(Caution {
            of,
            gravity,
            badge: badge.to_owned(),
            text: text.into(),
        });
    }

    fn row(&self, name: &str) -> Option<&Row<'_>> {
        self.rows.iter().rev().find(|row| row.name() == name)
    }

    fn of_row(&mut self, row: &Row<'_>) {
        let Some(spelled) = row.flag else { return };
        let of = CautionOf::Argument {
            index: u32::try_from(row.start).unwrap_or(u32::MAX),
        };
        let name = row.name();
        let mut said: Vec<(Gravity, &str, String)> = Vec::new();
        let mut add = |gravity, badge, text| said.push((gravity, badge, text));
        if row.known.is_none() && self.spec.engine != EngineKind::Other {
            add(
                Gravity::Note,
                "unknown here",
                format!("{spelled} is not known here. It is passed to the engine as it stands."),
            );
        }
        if let Some(why) = is_inert(self.spec.engine, &name, self.version) {
            add(Gravity::Caution, "no effect", why.to_owned());
        }
        if is_secret_name(&name) && row.value().is_some_and(|value| !value.is_empty()) {
            add(
                Gravity::Caution,
                "secret",
                format!(
                    "Whoever may launch can read the value of {spelled} here, and every user of the host can in its process list. Keep it in a file on the host that a script reads."
                ),
            );
        }
        match name.as_str() {
            "--disable-custom-all-reduce" if self.spec.parameters.tensor_parallel > 2 => add(
                Gravity::Note,
                "off by itself",
                "On more than two GPUs that are joined by PCIe alone, the engine switches its own all-reduce off by itself. There the flag only silences the line in the log that says so.".to_owned(),
            ),
            "--attention-backend" | "--prefill-attention-backend" | "--decode-attention-backend"
                if row.value().is_some_and(|value| {
                    value.eq_ignore_ascii_case("flashinfer") || value.to_ascii_lowercase().starts_with("trtllm")
                }) =>
            {
                add(
                    Gravity::Caution,
                    "hangs on SM120",
                    "On RTX PRO 6000 Blackwell (SM120), flashinfer is known to hang with MLA models, and trtllm to stop with an unsupported architecture. triton works there.".to_owned(),
                );
            }
            "--host" if row.value().is_some_and(reachable_by_others) => add(
                Gravity::Caution,
                "open to others",
                "It listens on every network of the host: whoever reaches the host can use the engine. Tokdyno needs the loopback, 127.0.0.1, only.".to_owned(),
            ),
            "--enable-deterministic-inference"
                if self.spec.engine == EngineKind::Sglang
                    && self.spec.parameters.tensor_parallel > 1
                    && self.sets_variable(&["NCCL_ALGO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"]) =>
            {
                add(
                    Gravity::Wrong,
                    "overwrites NCCL_ALGO",
                    "Over several GPUs it overwrites NCCL_ALGO with allreduce:tree and pins the channels, so this profile's own values do not hold.".to_owned(),
                );
            }
            "--speculative-accept-threshold-single" | "--speculative-accept-threshold-acc"
                if row.value().and_then(|value| value.parse::<f64>().ok()).is_some_and(|value| value < 1.0) =>
            {
                add(
                    Gravity::Caution,
                    "lossy",
                    "Below 1, drafts are accepted that the model would not have said: the answers change.".to_owned(),
                );
            }
            _ => {}
        }
        for (gravity, badge, text) in said {
            self.add(of.clone(), gravity, badge, text);
        }
        self.of_renamed(&of, spelled, &name);
    }

    /// Flags that are renamed or removed between versions.
    fn of_renamed(&mut self, of: &CautionOf, spelled: &str, name: &str) {
        if self.spec.engine != EngineKind::Sglang {
            return;
        }
        let (gone, instead) = match (spelled, name) {
            (_, "--cuda-graph-max-bs") => (
                true,
                "--cuda-graph-max-bs-decode and --cuda-graph-max-bs-prefill",
            ),
            (_, "--cuda-graph-bs") => (true, "--cuda-graph-bs-decode and --cuda-graph-bs-prefill"),
            (_, "--disable-cuda-graph") => (
                false,
                "--cuda-graph-backend-decode disabled and --cuda-graph-backend-prefill disabled",
            ),
            ("--stream-output", _) => (false, "--incremental-streaming-output"),
            (
                _,
                "--cuda-graph-max-bs-decode"
                | "--cuda-graph-max-bs-prefill"
                | "--cuda-graph-bs-decode"
                | "--cuda-graph-bs-prefill"
                | "--cuda-graph-backend-decode"
                | "--cuda-graph-backend-prefill"
                | "--enable-return-aux-hidden-states"
                | "--return-aux-hidden-state-layer-ids",
            ) => {
                return self.of_new(of, spelled);
            }
            _ => return,
        };
        let old = self
            .numbers
            .as_ref()
            .map(|version| version.at_most(&[0, 5, 9]));
        let new = self
            .numbers
            .as_ref()
            .map(|version| version.at_least(&[0, 5, 23]));
        if old == Some(true) {
            return;
        }
        let (gravity, badge) = match (gone, new) {
            (true, Some(true)) => (Gravity::Wrong, "removed"),
            (true, _) => (Gravity::Caution, "renamed"),
            (false, _) => (Gravity::Note, "renamed"),
        };
        let text = if gone {
            format!(
                "SGLang 0.5.23 refuses {spelled} as ambiguous and ends with exit code 2; there it is {instead}. 0.5.9 and before know it."
            )
        } else {
            format!(
                "Newer versions of SGLang call it {instead}. The old name was still taken where it was read (0.5.23 for --disable-cuda-graph)."
            )
        };
        self.add(of.clone(), gravity, badge, text);
    }

    fn of_new(&mut self, of: &CautionOf, spelled: &str) {
        let old = self
            .numbers
            .as_ref()
            .map(|version| version.at_most(&[0, 5, 9]));
        match old {
            Some(true) => self.add(
                of.clone(),
                Gravity::Wrong,
                "too new",
                format!("SGLang 0.5.9 and before do not know {spelled} and end with exit code 2."),
            ),
            Some(false) => {}
            None => self.add(
                of.clone(),
                Gravity::Note,
                "newer versions",
                format!("{spelled} is known to SGLang 0.5.23; 0.5.9 and before refuse it."),
            ),
        }
    }

    fn of_variable(&mut self, name: &str, value: &str) {
        let of = CautionOf::Variable {
            name: name.to_owned(),
        };
        let set = !value.is_empty();
        let mut said: Vec<(Gravity, &str, String)> = Vec::new();
        let mut add = |gravity, badge, text| said.push((gravity, badge, text));
        if set && is_secret_name(name) {
            add(
                Gravity::Caution,
                "secret",
                format!(
                    "Whoever may launch can read the value of {name} here. Keep it in a file on the host that the engine reads, or in a script there."
                ),
            );
        }
        if let Some(refusal) = nccl::refusal(name, value) {
            add(
                Gravity::Wrong,
                "illegal value",
                format!(
                    "{refusal} Since NCCL 2.24 unknown words stop the start rather than being passed over."
                ),
            );
        }
        let lower = value.to_ascii_lowercase();
        match name {
            "NCCL_PROTO" if !lower.starts_with('^') && lower.split([',', ';', ':']).any(|word| word.trim() == "ll128") => add(
                Gravity::Caution,
                "may corrupt data",
                "Forced on hardware that does not support it, LL128 can corrupt data silently. NCCL uses it by itself where it is safe.".to_owned(),
            ),
            "NCCL_PROTO" if lower == "ll" => add(
                Gravity::Note,
                "slower prefill",
                "LL alone has about half the bandwidth: it slows long prompts and large batches. NCCL takes it for small messages by itself.".to_owned(),
            ),
            "NCCL_ALGO" if lists_without_ring(&lower) => add(
                Gravity::Note,
                "no ring",
                "A list without Ring can stop other collective operations, which NCCL no longer falls back to a ring for.".to_owned(),
            ),
            "NCCL_P2P_LEVEL" if value.trim().parse::<u32>().is_ok() => add(
                Gravity::Note,
                "use words",
                "Numbers are an old spelling that NCCL discourages. Use LOC, NVL, PIX, PXB, PHB or SYS.".to_owned(),
            ),
            "NCCL_P2P_LEVEL" if lower == "sys" => add(
                Gravity::Note,
                "may hang",
                "Direct traffic between sockets hangs or corrupts data where IOMMU or ACS is on. NCCL_P2P_DISABLE=1 tells whether that is the cause.".to_owned(),
            ),
            "NCCL_MAX_NCHANNELS" | "NCCL_MIN_NCHANNELS" => add(
                Gravity::Note,
                "deprecated",
                "Deprecated since NCCL 2.17 in favour of NCCL_MAX_CTAS and NCCL_MIN_CTAS. If both are set, the stricter one holds.".to_owned(),
            ),
            "NCCL_BUFFSIZE" if self.variable("NCCL_PROTO").is_some_and(|proto| proto.eq_ignore_ascii_case("LL")) => add(
                Gravity::Note,
                "hardly used",
                "It is the Simple protocol's buffer. With NCCL_PROTO=LL it is hardly used, and still takes memory for each channel and peer.".to_owned(),
            ),
            "NCCL_SHM_DISABLE" if value == "1" => add(
                Gravity::Caution,
                "very slow",
                "Without shared memory of the host, GPUs that cannot talk directly talk through sockets, which is very slow.".to_owned(),
            ),
            "NCCL_DEBUG" if lower == "info" || lower == "trace" => add(
                Gravity::Caution,
                "left on",
                "NCCL logs much at this level. Good for looking, not for measuring; a verifying launch sets it by itself.".to_owned(),
            ),
            "NCCL_DEBUG_FILE" if value.contains('~') => add(
                Gravity::Wrong,
                "no ~",
                "NCCL does not understand ~ in this path. Write it in full.".to_owned(),
            ),
            "CUDA_LAUNCH_BLOCKING" if value == "1" => add(
                Gravity::Caution,
                "left on",
                "Every kernel is waited for. Good for finding faults, not for measuring.".to_owned(),
            ),
            "VLLM_ATTENTION_BACKEND" => add(
                Gravity::Caution,
                "no effect",
                "vLLM 0.16 and later do not know it any more. Use --attention-backend.".to_owned(),
            ),
            "VLLM_TORCH_PROFILER_DIR" => add(
                Gravity::Caution,
                "no effect",
                "Newer versions of vLLM do not know it any more. Use --profiler-config.".to_owned(),
            ),
            "VLLM_SERVER_DEV_MODE" if value == "1" => add(
                Gravity::Caution,
                "loopback only",
                "It opens routes that run code and change weights. The settings become readable, but never let others reach the port.".to_owned(),
            ),
            _ => {}
        }
        for (gravity, badge, text) in said {
            self.add(of.clone(), gravity, badge, text);
        }
    }

    /// Where a mask stands in place of a secret: it would be given to the program.
    fn of_masks(&mut self) {
        let text = "A secret was masked here on the host. Put it into a file on the host; a launch is refused.";
        let masked = |word: &str| word.contains(MASK);
        let starts: Vec<usize> = self.rows.iter().map(|row| row.start).collect();
        let mut places: Vec<CautionOf> = Vec::new();
        for (index, _) in (0..)
            .zip(&self.spec.arguments)
            .filter(|(_, word)| masked(word))
        {
            let start = starts.iter().copied().rfind(|start| *start <= index);
            places.push(CautionOf::Argument {
                index: u32::try_from(start.unwrap_or(index)).unwrap_or(u32::MAX),
            });
        }
        for (name, value) in &self.spec.environment {
            if masked(name) || masked(value) {
                places.push(CautionOf::Variable { name: name.clone() });
            }
        }
        if places.is_empty() && self.spec.masked().is_some() {
            places.push(CautionOf::Profile);
        }
        places.dedup();
        for of in places {
            self.add(of, Gravity::Wrong, "masked", text);
        }
    }

    fn of_whole(&mut self) {
        let speculative = self.row("--speculative-algorithm").is_some();
        if self.spec.engine == EngineKind::Sglang && speculative {
            if self.row("--max-running-requests").is_none() {
                self.add(
                    CautionOf::Profile,
                    Gravity::Caution,
                    "48 requests",
                    "With speculation SGLang runs at most 48 requests at once unless --max-running-requests says otherwise. A measurement at a higher concurrency would wait in its queue.",
                );
            }
            let numbers = [
                "--speculative-num-steps",
                "--speculative-eagle-topk",
                "--speculative-num-draft-tokens",
            ];
            let given = numbers
                .iter()
                .filter(|name| self.row(name).is_some())
                .count();
            if given > 0 && self.row(numbers[0]).is_none() {
                self.add(
                    CautionOf::Profile,
                    Gravity::Wrong,
                    "steps missing",
                    "SGLang stops when topk or draft tokens are given without --speculative-num-steps. Give all three, or none.",
                );
            }
            let number = |name| {
                self.row(name)
                    .and_then(|row| row.value()?.parse::<u32>().ok())
            };
            if let (Some(steps), Some(1), Some(tokens)) =
                (number(numbers[0]), number(numbers[1]), number(numbers[2]))
                && tokens != steps.saturating_add(1)
            {
                self.add(
                    CautionOf::Profile,
                    Gravity::Caution,
                    "forced",
                    format!("With one branch, SGLang sets the draft tokens to steps + 1, here {}, whatever is asked for.", steps.saturating_add(1)),
                );
            }
            if given == numbers.len() {
                self.add(
                    CautionOf::Profile,
                    Gravity::Note,
                    "steps uncertain",
                    "Steps 3, topk 1 and 4 draft tokens come from a drafter's model card for SGLang 0.5.6. Which numbers suit this drafter and this hardware must be measured.",
                );
            }
        }
        if self.spec.engine == EngineKind::Vllm
            && self
                .variable("VLLM_SERVER_DEV_MODE")
                .is_none_or(|value| value != "1")
        {
            self.add(
                CautionOf::Profile,
                Gravity::Note,
                "settings hidden",
                "vLLM tells its resolved settings only with VLLM_SERVER_DEV_MODE=1. Without it the command line is compared, and arguments count as passed.",
            );
        }
        let sets_nccl = self
            .spec
            .environment
            .iter()
            .any(|(name, _)| name.starts_with("NCCL_"));
        if sets_nccl && self.variable("SPT_NOENV").is_none() {
            self.add(
                CautionOf::Profile,
                Gravity::Note,
                "workers hidden",
                "Worker processes overwrite their environment with their title, so only the launcher's can be read. SPT_NOENV=1 keeps it; NCCL's own log in a verifying launch proves more.",
            );
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.spec
            .environment
            .iter()
            .rev()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    fn sets_variable(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.variable(name).is_some())
    }
}

fn reachable_by_others(host: &str) -> bool {
    let host = host.trim();
    let own = host == "localhost"
        || host.starts_with("127.")
        || host == "::1"
        || host == "[::1]"
        || host.contains('{');
    !host.is_empty() && !own
}

fn lists_without_ring(lower: &str) -> bool {
    !lower.is_empty()
        && !lower.contains(':')
        && !lower.starts_with('^')
        && !lower.split(',').any(|word| word.trim() == "ring")
}
