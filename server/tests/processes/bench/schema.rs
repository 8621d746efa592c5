//! What is written holds to the schema that is published.

use std::path::Path;

use serde_json::{Value, json};

use super::{json, measure};
use crate::support::{DataDir, Simulator};

fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/result-file.schema.json");
    jsonschema::validator_for(&json(&path)).expect("a schema")
}

/// What the schema says against a value, none if nothing.
fn objection(schema: &jsonschema::Validator, value: &Value) -> Option<String> {
    schema
        .iter_errors(value)
        .next()
        .map(|error| format!("{}: {error}", error.instance_path()))
}

#[test]
fn a_result_holds_to_the_published_schema() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let path = folder.path().join("r.json");
    let file = path.to_str().expect("a path");
    let finished = measure(
        &simulator,
        &[
            "--concurrency",
            "2",
            "--rate",
            "20",
            "--requests",
            "6",
            "--output-tokens",
            "4",
            "--goodput",
            "ttft:200,tpot:50",
            "--reset-cache",
            "--name",
            "tuned",
            "--json",
            file,
        ],
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let schema = schema();
    let result = json(&path);
    assert_eq!(objection(&schema, &result), None);

    // A schema that takes anything would take these as well.
    let mut refused = 0;
    for pointer in [
        "",
        "/endpoint",
        "/client",
        "/workload",
        "/stages/0",
        "/stages/0/ttft_ms",
        "/stages/0/records/0/record",
    ] {
        let object = result.pointer(pointer).expect(pointer);
        let fields: Vec<&String> = object.as_object().expect("an object").keys().collect();
        for field in fields {
            let mut wrong = result.clone();
            let place = wrong.pointer_mut(pointer).expect("the object");
            let value = &mut place[field.as_str()];
            *value = if value.is_array() {
                "no list".into()
            } else {
                json!(["no such type"])
            };
            refused += 1;
            let said = objection(&schema, &wrong);
            assert!(said.is_some(), "{pointer}/{field} may be anything");
        }
    }
    assert!(refused > 60, "{refused} fields of another type are refused");
    for missing in [
        "/schema_version",
        "/tool",
        "/metric_version",
        "/endpoint/url",
        "/endpoint/model",
        "/workload/levels",
        "/workload/output_tokens",
        "/outcome",
        "/stages",
        "/stages/0/kind",
        "/stages/0/requests",
        "/stages/0/ttft_ms",
        "/stages/0/records/0/record/sent_ns",
        "/stages/0/records/0/record/end_ns",
    ] {
        let (parent, field) = missing.rsplit_once('/').expect("a pointer");
        let mut wrong = result.clone();
        let parent = wrong.pointer_mut(parent).expect("the object");
        let gone = parent.as_object_mut().expect("an object").remove(field);
        assert!(gone.is_some(), "{missing} was there");
        assert!(
            objection(&schema, &wrong).is_some(),
            "{missing} may be missing"
        );
    }
}
