//! The sample configurations of models, for tests of whoever reads such files.

use serde_json::Value;

fn sample(name: &str) -> Value {
    let path = format!("{}/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a sample");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_drafters_name_their_layers_and_fit_the_target() {
    let target = sample("target-config-61-layers.json");
    assert_eq!(target["text_config"]["num_hidden_layers"], 61);
    for (name, layers) in [
        ("drafter-config-1-29-57.json", [1, 29, 57]),
        ("drafter-config-2-30-58.json", [2, 30, 58]),
    ] {
        let drafter = sample(name);
        let listed = &drafter["eagle_config"]["eagle_aux_hidden_state_layer_ids"];
        assert_eq!(*listed, serde_json::json!(layers), "{name}");
        assert_eq!(drafter["hidden_size"], target["text_config"]["hidden_size"]);
        assert_eq!(drafter["tokdyno_simulated"], true);
    }
}
