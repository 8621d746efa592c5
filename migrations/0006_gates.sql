-- Gates: rules that a run or a comparison was held to, what they came to then, and
-- what a person made of it.

CREATE TABLE gates (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id         bigint      NOT NULL REFERENCES teams (id),
    actor_id        bigint      NOT NULL REFERENCES actors (id),
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- As they read back, in their order.
    rules           text[]      NOT NULL CHECK (cardinality(rules) > 0),
    -- Frozen as it was worked out, with the versions of the rules of judgement.
    outcome         jsonb       NOT NULL,
    -- Made once: whoever thinks otherwise later records another gate.
    decision        text        CHECK (decision IN ('accepted', 'rejected')),
    decision_reason text        CHECK (decision_reason <> ''),
    decided_by      bigint      REFERENCES actors (id),
    decided_at      timestamptz,
    CONSTRAINT gates_decision_whole CHECK (
        (decision IS NULL) = (decision_reason IS NULL)
        AND (decision IS NULL) = (decided_by IS NULL)
        AND (decision IS NULL) = (decided_at IS NULL)
    )
);

-- What it is about: one run, or several that are compared, the baseline at place 0.
CREATE TABLE gate_runs (
    gate_id bigint  NOT NULL REFERENCES gates (id),
    place   integer NOT NULL,
    run_id  bigint  NOT NULL REFERENCES runs (id),
    PRIMARY KEY (gate_id, place),
    UNIQUE (gate_id, run_id)
);
CREATE INDEX gate_runs_of_run ON gate_runs (run_id);

ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_action_check CHECK (action IN
    ('queue', 'cancel', 'import', 'delete', 'rename', 'share', 'founding',
     'host_add', 'host_edit', 'host_remove', 'profile_add', 'profile_edit', 'profile_archive',
     'launch', 'adopt', 'stop', 'restore', 'clean_up', 'give_back',
     'sign_in', 'sign_out', 'sign_in_refused', 'password',
     'experiment_plan', 'experiment_pause', 'experiment_resume', 'experiment_cancel',
     'gate', 'gate_decide'));
