//! Cautions, each by the profile that earns it.

use tokdyno_domain::views::profiles::{Caution, CautionOf, Gravity};

use super::*;
use crate::shell::paste;

fn spec(text: &str) -> ProfileSpec {
    paste(text).expect(text).spec
}

fn found(text: &str, version: Option<&str>, badge: &str) -> Option<Caution> {
    cautions(&spec(text), version)
        .into_iter()
        .find(|caution| caution.badge == badge)
}

#[test]
fn each_caution_is_given_where_it_belongs_and_nowhere_else() {
    use Gravity::{Caution, Note, Wrong};
    let sglang = "sglang serve --model-path m --tp 8 ";
    let speculative = format!("{sglang}--speculative-algorithm EAGLE3 ");
    for (text, version, badge, gravity) in [
        (
            format!("{sglang}--num-continuous-decode-steps 4"),
            None,
            "no effect",
            Caution,
        ),
        (
            format!("{sglang}--num-continuous-decode-steps=4"),
            Some("0.5.8.post1"),
            "no effect",
            Caution,
        ),
        (
            format!("{sglang}--disable-custom-all-reduce"),
            None,
            "off by itself",
            Note,
        ),
        (
            format!("{sglang}--attention-backend flashinfer"),
            None,
            "hangs on SM120",
            Caution,
        ),
        (
            format!("{sglang}--attention-backend trtllm_mla"),
            None,
            "hangs on SM120",
            Caution,
        ),
        (
            format!("{sglang}--host 0.0.0.0"),
            None,
            "open to others",
            Caution,
        ),
        (format!("{sglang}--api-key abc"), None, "secret", Caution),
        (format!("{sglang}--nope 1"), None, "unknown here", Note),
        (
            format!("NCCL_ALGO=Ring {sglang}--enable-deterministic-inference"),
            None,
            "overwrites NCCL_ALGO",
            Wrong,
        ),
        (
            format!("{sglang}--speculative-accept-threshold-single 0.9"),
            None,
            "lossy",
            Caution,
        ),
        (
            format!("{sglang}--cuda-graph-max-bs 32"),
            Some("0.5.23"),
            "removed",
            Wrong,
        ),
        (
            format!("{sglang}--cuda-graph-max-bs 32"),
            None,
            "renamed",
            Caution,
        ),
        (
            format!("{sglang}--disable-cuda-graph"),
            Some("0.5.23"),
            "renamed",
            Note,
        ),
        (format!("{sglang}--stream-output"), None, "renamed", Note),
        (
            format!("{sglang}--cuda-graph-backend-decode disabled"),
            Some("0.5.9"),
            "too new",
            Wrong,
        ),
        (
            format!("{sglang}--cuda-graph-backend-decode disabled"),
            None,
            "newer versions",
            Note,
        ),
        (speculative.clone(), None, "48 requests", Caution),
        (
            format!("{speculative}--speculative-eagle-topk 1"),
            None,
            "steps missing",
            Wrong,
        ),
        (
            format!(
                "{speculative}--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8"
            ),
            None,
            "forced",
            Caution,
        ),
        (
            format!(
                "{speculative}--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
            ),
            None,
            "steps uncertain",
            Note,
        ),
        ("vllm serve m".to_owned(), None, "settings hidden", Note),
        (
            format!("NCCL_PROTO=LL {sglang}"),
            None,
            "workers hidden",
            Note,
        ),
        (
            format!("NCCL_PROTO=LL {sglang}"),
            None,
            "slower prefill",
            Note,
        ),
        (
            format!("NCCL_PROTO=LL256 {sglang}"),
            None,
            "illegal value",
            Wrong,
        ),
        (
            format!("NCCL_PROTO=LL128 {sglang}"),
            None,
            "may corrupt data",
            Caution,
        ),
        (format!("NCCL_ALGO=Tree {sglang}"), None, "no ring", Note),
        (
            format!("NCCL_P2P_LEVEL=SYS {sglang}"),
            None,
            "may hang",
            Note,
        ),
        (
            format!("NCCL_P2P_LEVEL=5 {sglang}"),
            None,
            "use words",
            Note,
        ),
        (
            format!("NCCL_MAX_NCHANNELS=16 {sglang}"),
            None,
            "deprecated",
            Note,
        ),
        (
            format!("NCCL_PROTO=LL NCCL_BUFFSIZE=16777216 {sglang}"),
            None,
            "hardly used",
            Note,
        ),
        (
            format!("NCCL_SHM_DISABLE=1 {sglang}"),
            None,
            "very slow",
            Caution,
        ),
        (
            format!("NCCL_DEBUG=INFO {sglang}"),
            None,
            "left on",
            Caution,
        ),
        (
            format!("NCCL_DEBUG_FILE='~/x' {sglang}"),
            None,
            "no ~",
            Wrong,
        ),
        (format!("HF_TOKEN=x {sglang}"), None, "secret", Caution),
        (
            "VLLM_ATTENTION_BACKEND=X vllm serve m".to_owned(),
            None,
            "no effect",
            Caution,
        ),
        (
            "VLLM_SERVER_DEV_MODE=1 vllm serve m".to_owned(),
            None,
            "loopback only",
            Caution,
        ),
    ] {
        let caution = found(&text, version, badge)
            .unwrap_or_else(|| panic!("{badge}: {text}: {:?}", cautions(&spec(&text), version)));
        assert_eq!(caution.gravity, gravity, "{text}");
        assert!(caution.text.ends_with('.'), "{}", caution.text);
    }
    for (text, version, badge) in [
        (
            format!("{sglang}--num-continuous-decode-steps 4"),
            Some("0.6.0"),
            "no effect",
        ),
        (
            "sglang serve --model-path m --tp 2 --disable-custom-all-reduce".to_owned(),
            None,
            "off by itself",
        ),
        (
            format!("{sglang}--attention-backend triton"),
            None,
            "hangs on SM120",
        ),
        (format!("{sglang}--host 127.0.0.1"), None, "open to others"),
        (
            format!("{sglang}--cuda-graph-max-bs 32"),
            Some("0.5.9"),
            "renamed",
        ),
        (
            format!("{sglang}--cuda-graph-backend-decode disabled"),
            Some("0.5.23"),
            "newer versions",
        ),
        (
            format!("{speculative}--max-running-requests 128"),
            None,
            "48 requests",
        ),
        (
            format!("NCCL_PROTO=^LL128 {sglang}"),
            None,
            "may corrupt data",
        ),
        (
            format!("NCCL_BUFFSIZE=16777216 {sglang}"),
            None,
            "hardly used",
        ),
        (
            "VLLM_SERVER_DEV_MODE=1 vllm serve m".to_owned(),
            None,
            "settings hidden",
        ),
        (format!("HF_HOME=/x {sglang}"), None, "secret"),
        ("other --nope".to_owned(), None, "unknown here"),
        (
            "tokdyno simulate sglang --model-path m --sim-seed 1".to_owned(),
            None,
            "unknown here",
        ),
    ] {
        assert_eq!(found(&text, version, badge), None, "{text}");
    }
}

#[test]
fn a_caution_points_at_its_flag_and_the_gravest_comes_first() {
    let text = "python3 -m sglang.launch_server --model-path m --num-continuous-decode-steps 4 --cuda-graph-max-bs 1";
    let spec = spec(text);
    let all = cautions(&spec, Some("0.5.23"));
    assert_eq!(all[0].badge, "removed");
    let CautionOf::Argument { index } = all[1].of else {
        panic!("{all:?}");
    };
    assert_eq!(
        spec.arguments[index as usize],
        "--num-continuous-decode-steps"
    );
    assert!(all.is_sorted_by_key(|caution| caution.gravity));
}

#[test]
fn what_is_known_is_told_once_for_each_flag_and_variable() {
    let spec = spec(
        "NCCL_PROTO=LL ODD=1 python3 -m sglang.launch_server --model-path m --tp 8 --nope --tp 4 --sim-seed 1",
    );
    let all = known(&spec);
    let names: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "--model-path",
            "--tp",
            "--nope",
            "--sim-seed",
            "NCCL_PROTO",
            "ODD"
        ]
    );
    assert!(all[1].meaning.is_some() && all[1].default.as_deref() == Some("1"));
    assert_eq!(all[2].meaning, None);
    assert!(
        all[3]
            .meaning
            .as_ref()
            .is_some_and(|text| text.starts_with("Simulated"))
    );
    assert!(all[4].values.is_some());
    assert_eq!(all[5].meaning, None);
}

#[test]
fn the_inert_flag_is_inert_for_versions_that_were_read() {
    let flag = "--num-continuous-decode-steps";
    for version in [None, Some("0.3.6"), Some("0.5.9"), Some("0.5.23")] {
        assert!(
            is_inert(EngineKind::Sglang, flag, version).is_some(),
            "{version:?}"
        );
    }
    assert_eq!(is_inert(EngineKind::Sglang, flag, Some("0.5.24")), None);
    assert_eq!(is_inert(EngineKind::Vllm, flag, None), None);
    assert_eq!(is_inert(EngineKind::Sglang, "--tp-size", None), None);
}

#[test]
fn a_masked_secret_is_wrong_wherever_it_stands() {
    let mut spec = spec("HF_TOKEN=••• sglang serve --model-path m --api-key ••• --tp 8");
    let of = |spec: &ProfileSpec| -> Vec<CautionOf> {
        let all = cautions(spec, None);
        let masked = all.iter().filter(|caution| caution.badge == "masked");
        masked
            .map(|caution| {
                assert_eq!(caution.gravity, Gravity::Wrong);
                assert!(
                    caution.text.contains("a launch is refused"),
                    "{}",
                    caution.text
                );
                caution.of.clone()
            })
            .collect()
    };
    let variable = CautionOf::Variable {
        name: "HF_TOKEN".to_owned(),
    };
    assert_eq!(of(&spec), [CautionOf::Argument { index: 3 }, variable]);
    spec.arguments[4] = "{NAME}".to_owned();
    spec.environment.clear();
    assert!(of(&spec).is_empty());
    spec.activation = tokdyno_domain::profile::Activation::Script {
        text: "export KEY=•••".to_owned(),
    };
    assert_eq!(of(&spec), [CautionOf::Profile]);
}
