-- Experiments: plans of launches over several configurations, interrupted at any time
-- and resumed.

CREATE TABLE experiments (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id           bigint      NOT NULL REFERENCES teams (id),
    actor_id          bigint      NOT NULL REFERENCES actors (id),
    created_at        timestamptz NOT NULL DEFAULT now(),
    name              text        NOT NULL,
    host_id           bigint      NOT NULL REFERENCES hosts (id),
    -- What changes are made to, as it was when it was planned.
    base_id           bigint      NOT NULL REFERENCES profile_revisions (id),
    -- What was ordered.
    spec              jsonb       NOT NULL,
    -- Of the workload in it: the seed is no part of the hash, every run draws its own.
    workload_hash     text        NOT NULL,
    workload_text     text        NOT NULL,
    -- Takes over what earlier experiments measured, when it is queued.
    skip_measured     boolean     NOT NULL,
    -- GPUs that a launch of it holds at most.
    gpus              integer     NOT NULL CHECK (gpus >= 1),
    state             text        NOT NULL CHECK (state IN
        ('queued', 'running', 'paused', 'stopping', 'finished', 'cancelled', 'failed')),
    -- Why it failed or paused, for people.
    reason            text        NOT NULL DEFAULT '',
    -- What it becomes once the trial under way is ended; only while it is stopping.
    becomes           text        CHECK (becomes IN ('paused', 'cancelled')),
    -- The adopted launch that is put aside for it.
    restore_id        bigint      REFERENCES launches (id),
    -- It was put aside, and is owed until its restoring is queued.
    restore_due       boolean     NOT NULL DEFAULT false,
    -- GPU seconds of launches that are over, repeated ones too.
    spent_gpu_s       double precision NOT NULL DEFAULT 0,

    lease_owner       uuid,
    lease_epoch       bigint      NOT NULL DEFAULT 0,
    lease_expires_at  timestamptz,

    queued_at         timestamptz NOT NULL DEFAULT now(),
    started_at        timestamptz,
    ended_at          timestamptz,

    CHECK (state NOT IN ('running', 'stopping')
        OR (lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL)),
    CHECK ((state = 'stopping') = (becomes IS NOT NULL)),
    -- Nothing is owed by one that nobody drives.
    CHECK (state IN ('running', 'stopping') OR NOT restore_due)
);
CREATE INDEX experiments_list ON experiments (team_id, id DESC);
-- Two on one host would disturb each other's figures, also on different GPUs.
CREATE UNIQUE INDEX experiments_one_a_host ON experiments (host_id)
    WHERE state IN ('running', 'stopping');

-- The revisions of an experiment's cells stand under a profile that no list shows.
ALTER TABLE profiles ADD COLUMN experiment_id bigint UNIQUE REFERENCES experiments (id);

-- As with requests, actor and team are the experiment's.
CREATE TABLE experiment_cells (
    experiment_id bigint  NOT NULL REFERENCES experiments (id),
    place         integer NOT NULL CHECK (place >= 0),
    title         text    NOT NULL,
    -- [[factor, level], …], and other choices that come to the same command.
    levels        jsonb   NOT NULL,
    also          jsonb   NOT NULL,
    -- Which steps of an ablation it has, bit i for step i.
    steps         bigint,
    revision_id   bigint  NOT NULL REFERENCES profile_revisions (id),
    -- The revision's hash, by which what was measured before is found.
    hash          text    NOT NULL,
    PRIMARY KEY (experiment_id, place)
);
CREATE INDEX experiment_cells_hash ON experiment_cells (hash);

CREATE TABLE experiment_trials (
    experiment_id bigint  NOT NULL,
    number        integer NOT NULL CHECK (number >= 0),
    block         integer NOT NULL CHECK (block >= 0),
    cell          integer NOT NULL,
    state         text    NOT NULL CHECK (state IN
        ('planned', 'running', 'done', 'failed', 'skipped', 'settled', 'cancelled')),
    failures      integer NOT NULL DEFAULT 0,
    -- How often in a row it was interrupted by no fault of its own.
    interruptions integer NOT NULL DEFAULT 0,
    -- Why it failed last, or is not run; for people.
    reason        text    NOT NULL DEFAULT '',
    -- Its newest launch and run; of a skipped one the run that was taken over.
    launch_id     bigint  REFERENCES launches (id),
    run_id        bigint  REFERENCES runs (id),
    PRIMARY KEY (experiment_id, number),
    FOREIGN KEY (experiment_id, cell) REFERENCES experiment_cells (experiment_id, place),
    CHECK (state <> 'running' OR launch_id IS NOT NULL)
);
-- One trial at a time.
CREATE UNIQUE INDEX experiment_trials_one_runs ON experiment_trials (experiment_id)
    WHERE state = 'running';
CREATE INDEX experiment_trials_launch ON experiment_trials (launch_id)
    WHERE launch_id IS NOT NULL;

ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_action_check CHECK (action IN
    ('queue', 'cancel', 'import', 'delete', 'rename', 'share', 'founding',
     'host_add', 'host_edit', 'host_remove', 'profile_add', 'profile_edit', 'profile_archive',
     'launch', 'adopt', 'stop', 'restore', 'clean_up', 'give_back',
     'sign_in', 'sign_out', 'sign_in_refused', 'password',
     'experiment_plan', 'experiment_pause', 'experiment_resume', 'experiment_cancel'));
