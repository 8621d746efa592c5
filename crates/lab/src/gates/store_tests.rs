use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    gate::Outcome,
    ids::{GateId, RunId},
    views::gates::{DecisionKind, GateForm},
};

use crate::{
    Lab, LabError,
    testing::{bytes, folder, lab, new_run, result_file},
};

const ME: &Actor = &Actor::LOCAL;

async fn run(lab: &Lab, name: &str) -> RunId {
    let mut file = result_file();
    file.configuration = Some(name.to_owned());
    lab.import(ME, &bytes(&file)).await.expect("imported").run
}

fn form(runs: &[RunId], rules: &[&str]) -> GateForm {
    GateForm {
        runs: runs.to_vec(),
        rules: rules.join("\n"),
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_gate_came_to_is_kept_as_it_was(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let tuned = run(&lab, "tuned").await;
    // One of the four requests at C = 2 failed.
    let rules = [
        "# the single stream is sound",
        "single.e2e_tps_p50 at least 1",
        "c2.output_tps >= 1",
        "failures <= 0",
    ];
    let recorded = lab
        .record_gate(ME, &form(&[tuned], &rules))
        .await
        .expect("recorded");
    let outcomes: Vec<Outcome> = recorded
        .outcome
        .judgements
        .iter()
        .map(|judgement| judgement.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [Outcome::Holds, Outcome::NotEstablished, Outcome::Broken]
    );
    assert_eq!(recorded.outcome.outcome, Outcome::Broken);
    assert_eq!(
        recorded.rules,
        [
            "single.e2e_tps_p50 >= 1",
            "c2.output_tps >= 1",
            "failures <= 0"
        ]
    );
    assert_eq!(recorded.by, "local operator");
    assert_eq!(
        (recorded.runs.clone(), recorded.decision.clone()),
        (vec![tuned], None)
    );

    // Another name of the run changes nothing in what was said.
    lab.rename_run(ME, tuned, "renamed", "")
        .await
        .expect("renamed");
    assert_eq!(lab.gate(ME, recorded.id).await.expect("read"), recorded);
    assert_eq!(recorded.outcome.judgements[0].of, "tuned");
    let tried = lab
        .try_gate(ME, &form(&[tuned], &["failures <= 1"]))
        .await
        .expect("judged");
    assert_eq!(tried.outcome, Outcome::Holds);
    assert_eq!(
        lab.gates(ME, &[tuned]).await.expect("read"),
        [recorded],
        "what is only tried is not kept"
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn gates_stand_with_the_runs_that_they_are_about(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (a, b, c) = (
        run(&lab, "a").await,
        run(&lab, "b").await,
        run(&lab, "c").await,
    );
    let mut ids = Vec::new();
    for runs in [&[a][..], &[a, b, c], &[a, c, b], &[b, a, c], &[c]] {
        let recorded = lab
            .record_gate(ME, &form(runs, &["single.e2e_tps_p50 >= 1"]))
            .await
            .expect("recorded");
        assert_eq!(recorded.runs, runs);
        ids.push(recorded.id);
    }
    let listed = async |runs: &[RunId]| -> Vec<GateId> {
        let gates = lab.gates(ME, runs).await.expect("read");
        gates.into_iter().map(|gate| gate.id).collect()
    };
    assert_eq!(listed(&[]).await.len(), 5);
    assert_eq!(listed(&[c]).await, [ids[4], ids[3], ids[2], ids[1]]);
    // The baseline is the same, whatever the order of the others.
    assert_eq!(listed(&[a, b, c]).await, [ids[2], ids[1]]);
    assert_eq!(listed(&[b, c, a]).await, [ids[3]]);
    assert!(listed(&[a, b]).await.is_empty());

    let against = lab
        .try_gate(ME, &form(&[a, b], &["single.e2e_tps not worse than 2 %"]))
        .await
        .expect("judged");
    assert_eq!(against.outcome, Outcome::NotEstablished);
    assert!(
        against.judgements[0].sentence.contains("one launch each"),
        "{against:?}"
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_person_decides_once_with_a_reason(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let tuned = run(&lab, "tuned").await;
    let gate = lab
        .record_gate(ME, &form(&[tuned], &["failures <= 0"]))
        .await
        .expect("recorded")
        .id;
    let accept = DecisionKind::Accepted;
    let error = lab
        .decide_gate(ME, gate, accept, " \n")
        .await
        .expect_err("refused");
    assert_eq!(error.status(), 422);
    assert!(error.to_string().contains("needs a reason"), "{error}");
    let long = "x".repeat(1001);
    let error = lab
        .decide_gate(ME, gate, accept, &long)
        .await
        .expect_err("refused");
    assert_eq!(error.status(), 422);
    let refused = lab.decide_gate(&Actor::NETWORK, gate, accept, "why").await;
    assert!(matches!(refused, Err(LabError::Forbidden(_))));

    let decided = lab
        .decide_gate(&Actor::SIGNED_IN, gate, accept, " the drive was\0 full ")
        .await
        .expect("decided");
    assert!(decided.is_override());
    let decision = decided.decision.expect("a decision");
    assert_eq!(decision.kind, accept);
    assert_eq!(decision.reason, "the drive was\u{fffd} full");
    assert_eq!(decision.by, "operator with the password");

    let error = lab
        .decide_gate(ME, gate, DecisionKind::Rejected, "no")
        .await
        .expect_err("decided already");
    assert_eq!(error.status(), 409);
    assert!(
        error
            .to_string()
            .contains("accepted, by operator with the password"),
        "{error}"
    );
    let nobody = lab.decide_gate(ME, GateId(99), accept, "why").await;
    assert!(matches!(nobody, Err(LabError::NoSuchGate(_))));

    let audited: Vec<String> = sqlx::query_scalar(
        "SELECT action || ' ' || subject || ': ' || detail FROM audit_log ORDER BY id",
    )
    .fetch_all(&pool)
    .await
    .expect("read");
    assert_eq!(
        audited[1..],
        [
            format!("gate gate {gate}: run {tuned}: broken"),
            format!("gate_decide gate {gate}: accepted: the drive was\u{fffd} full"),
        ]
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_judged_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let tuned = run(&lab, "tuned").await;
    let waiting = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    for (runs, rule, status, says) in [
        (
            &[tuned][..],
            "speed >= 1",
            422,
            "Line 1: There is no metric `speed`",
        ),
        (&[tuned], " \n#\n", 422, "There is no rule"),
        (
            &[tuned],
            "output_tps not worse than 2 %",
            422,
            "needs a baseline",
        ),
        (&[tuned, tuned], "failures <= 0", 422, "twice"),
        (&[], "failures <= 0", 422, "about one run"),
        (&[waiting], "failures <= 0", 409, "not over yet"),
        (&[RunId(404)], "failures <= 0", 404, "no run 404"),
    ] {
        let error = lab
            .record_gate(ME, &form(runs, &[rule]))
            .await
            .expect_err("a refusal");
        assert_eq!(error.status(), status, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let forbidden = lab
        .record_gate(&Actor::GUEST, &form(&[tuned], &["failures <= 0"]))
        .await;
    assert!(matches!(forbidden, Err(LabError::Forbidden(_))));
    assert!(lab.gates(ME, &[]).await.expect("read").is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn figures_from_notes_are_judged_as_what_they_are(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.load_founding(ME).await.expect("loaded");
    let page = lab.runs(ME, &Default::default()).await.expect("read");
    let named = |name: &str| {
        let run = page
            .runs
            .iter()
            .find(|run| run.configuration.starts_with(name));
        run.expect("a run").id
    };
    let outcome = async |run: RunId, rule: &str| {
        let form = form(&[run], &[rule]);
        lab.try_gate(ME, &form).await.expect("judged").outcome
    };
    let vllm = named("vLLM baseline");
    assert_eq!(
        outcome(vllm, "single.e2e_tps_p50 >= 80").await,
        Outcome::Holds
    );
    assert_eq!(
        outcome(vllm, "c128.output_tps >= 1600").await,
        Outcome::Broken
    );
    assert_eq!(
        outcome(vllm, "failures <= 0").await,
        Outcome::NotEstablished
    );
}
