//! How much an engine takes on at once. Not among its metrics, but in its server info.

use serde_json::{Map, Value};

/// Most requests at once, over all data-parallel ranks, from a `/server_info` reply.
#[must_use]
pub fn max_running_requests(info: &Map<String, Value>) -> Option<u32> {
    let ranks = info.get("internal_states").and_then(Value::as_array);
    let effective = ranks.and_then(|ranks| {
        ranks
            .iter()
            .map(|rank| whole(rank.get("effective_max_running_requests_per_dp")))
            .try_fold(0_u32, |sum, one| sum.checked_add(one?))
            .filter(|sum| *sum > 0)
    });
    let vllm = || {
        whole(
            info.get("vllm_config")?
                .pointer("/scheduler_config/max_num_seqs"),
        )
    };
    effective
        .or_else(|| whole(info.get("max_running_requests")))
        .or_else(vllm)
}

fn whole(value: Option<&Value>) -> Option<u32> {
    value?
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn ranks_are_added_up() {
        let info = json!({"max_running_requests": 7, "internal_states": [
            {"effective_max_running_requests_per_dp": 48},
            {"effective_max_running_requests_per_dp": 48},
        ]});
        assert_eq!(
            max_running_requests(info.as_object().expect("an object")),
            Some(96)
        );
        let older = json!({"max_running_requests": 7, "internal_states": [{}]});
        assert_eq!(
            max_running_requests(older.as_object().expect("an object")),
            Some(7)
        );
    }

    proptest! {
        #[test]
        fn any_json_is_survived(text in r#"[\[\]{}",:a-z0-9\.]{0,60}"#) {
            if let Ok(Value::Object(info)) = serde_json::from_str(&text) {
                prop_assert!(max_running_requests(&info).is_none_or(|most| most < u32::MAX));
            }
        }
    }
}
