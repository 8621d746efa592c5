-- Hosts, profiles and launches: what runs where, proved, and given back.

-- Who reaches the program over the network without signing in measures as before,
-- but neither launches nor edits hosts and profiles.
ALTER TABLE actors DROP CONSTRAINT actors_role_check;
ALTER TABLE actors ADD CONSTRAINT actors_role_check
    CHECK (role IN ('guest', 'viewer', 'measurer', 'operator'));
INSERT INTO actors (id, team_id, name, role) VALUES
    (3, 1, 'somebody on the network', 'measurer'),
    (4, 1, 'operator with the password', 'operator');

-- The one password there is until people have names. Argon2id, in PHC form.
CREATE TABLE operator_password (
    the_only   boolean     PRIMARY KEY DEFAULT true CHECK (the_only),
    hash       text        NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- Only the hash of a session's token is kept.
CREATE TABLE sessions (
    token_hash bytea       PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    team_id    bigint      NOT NULL REFERENCES teams (id),
    actor_id   bigint      NOT NULL REFERENCES actors (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

-- Failed sign-ins, so that guessing is slow for any number of servers.
CREATE TABLE sign_in_failures (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address    text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_in_failures_recent ON sign_in_failures (created_at);

CREATE TABLE hosts (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id      bigint      NOT NULL REFERENCES teams (id),
    actor_id     bigint      NOT NULL REFERENCES actors (id),
    created_at   timestamptz NOT NULL DEFAULT now(),
    deleted_at   timestamptz,
    name         text        NOT NULL,
    -- {"reach": "local"} or {"reach": "ssh", "destination": "gpu1"}
    reach        jsonb       NOT NULL,
    notes        text        NOT NULL DEFAULT '',
    -- The newest inventory, and how the last attempt to connect went.
    inventory    jsonb,
    checked_at   timestamptz,
    check_error  text
);
CREATE UNIQUE INDEX hosts_name_once ON hosts (team_id, lower(name)) WHERE deleted_at IS NULL;
-- Two rows for one machine would let two launches own the same GPUs.
CREATE UNIQUE INDEX hosts_reach_once ON hosts (team_id, reach) WHERE deleted_at IS NULL;

CREATE TABLE profiles (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id     bigint      NOT NULL REFERENCES teams (id),
    actor_id    bigint      NOT NULL REFERENCES actors (id),
    created_at  timestamptz NOT NULL DEFAULT now(),
    -- Archived: kept for its launches, offered no more.
    deleted_at  timestamptz,
    name        text        NOT NULL,
    -- The built-in profile that it was made from.
    builtin     text
);
CREATE UNIQUE INDEX profiles_name_once ON profiles (team_id, lower(name)) WHERE deleted_at IS NULL;

-- Never changed.
CREATE TABLE profile_revisions (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_id  bigint      NOT NULL REFERENCES profiles (id),
    team_id     bigint      NOT NULL REFERENCES teams (id),
    actor_id    bigint      NOT NULL REFERENCES actors (id),
    created_at  timestamptz NOT NULL DEFAULT now(),
    -- 1, 2, 3 … within its profile.
    number      integer     NOT NULL,
    hash        text        NOT NULL,
    spec        jsonb       NOT NULL,
    UNIQUE (profile_id, number)
);

CREATE TABLE launches (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id           bigint      NOT NULL REFERENCES teams (id),
    actor_id          bigint      NOT NULL REFERENCES actors (id),
    created_at        timestamptz NOT NULL DEFAULT now(),
    host_id           bigint      NOT NULL REFERENCES hosts (id),
    revision_id       bigint      NOT NULL REFERENCES profile_revisions (id),
    origin            text        NOT NULL CHECK (origin IN ('launched', 'adopted', 'restored')),
    -- The adopted launch that this one brings back.
    restores_id       bigint      REFERENCES launches (id),
    state             text        NOT NULL CHECK (state IN
        ('queued', 'starting', 'loading', 'ready', 'stopping', 'stopped', 'failed', 'lost')),
    -- {"kind": …, "detail": …}
    failure           jsonb,
    -- The port on the host's loopback.
    port              integer     NOT NULL CHECK (port BETWEEN 1 AND 65535),
    -- GPUs it owns while it lives; none means all of the host's.
    gpus              integer[],
    plan              jsonb       NOT NULL,
    -- Which launch must be over first; only while it waits.
    waits_for         text,

    -- Of a process: boot id, number, start, group. Of a container or unit: its keeper.
    identity          jsonb,
    keeper            jsonb       NOT NULL DEFAULT '{"kept_by": "process"}',
    -- Its folder on the host, below the agent's state folder.
    folder            text        NOT NULL DEFAULT '',

    -- The furthest stage of loading, and a line of the log about it.
    stage             text,
    stage_text        text        NOT NULL DEFAULT '',
    -- The step that is under way, in words, and what was done after the work.
    step              text        NOT NULL DEFAULT '',
    engine            text        NOT NULL CHECK (engine IN ('vllm', 'sglang', 'other')),
    engine_version    text,
    simulated         boolean     NOT NULL DEFAULT false,
    stamp             text        CHECK (stamp IN ('verified', 'mismatched', 'unverifiable')),
    effective         jsonb,
    -- It serves only with a key that is not known here, so it cannot be measured.
    wants_key         boolean     NOT NULL DEFAULT false,
    -- Since when the host does not answer, while it does not.
    unreachable_since timestamptz,
    -- What went wrong after the launch itself: a restore, a clean-up.
    remarks           text[]      NOT NULL DEFAULT '{}',
    -- Bytes of its log on the host that are stored.
    log_size          bigint      NOT NULL DEFAULT 0,

    lease_owner       uuid,
    lease_epoch       bigint      NOT NULL DEFAULT 0,
    lease_expires_at  timestamptz,
    stop_requested_at timestamptz,
    -- Restoring: asked for when the launch is over, until it is done.
    restore_due       boolean     NOT NULL DEFAULT false,

    started_at        timestamptz,
    ready_at          timestamptz,
    ended_at          timestamptz,

    CHECK (state IN ('queued', 'stopped', 'failed', 'lost')
        OR (lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL))
);
CREATE INDEX launches_list ON launches (team_id, id DESC);
CREATE INDEX launches_alive ON launches (host_id)
    WHERE state IN ('queued', 'starting', 'loading', 'ready', 'stopping');
-- An adopted server is brought back once at a time.
CREATE UNIQUE INDEX launches_restored_once ON launches (restores_id)
    WHERE state IN ('queued', 'starting', 'loading', 'ready', 'stopping');
CREATE INDEX launches_restores ON launches (id) WHERE restore_due;

-- The log as bytes, as the host has it. One row a piece, keyed by where it begins.
CREATE TABLE launch_log (
    launch_id bigint NOT NULL REFERENCES launches (id),
    start     bigint NOT NULL,
    bytes     bytea  NOT NULL,
    PRIMARY KEY (launch_id, start)
);

-- Which launch a run measured, from where, and what the host did meanwhile.
ALTER TABLE runs ADD COLUMN launch_id bigint REFERENCES launches (id);
ALTER TABLE runs ADD COLUMN client_place text NOT NULL DEFAULT 'dashboard'
    CHECK (client_place IN ('dashboard', 'forward', 'host'));
ALTER TABLE runs ADD COLUMN round_trip_ms double precision;
-- The launch's stamp at the time: later readings do not change what a run carries.
ALTER TABLE runs ADD COLUMN stamp text
    CHECK (stamp IN ('verified', 'mismatched', 'unverifiable'));
ALTER TABLE runs ADD COLUMN effective jsonb;
CREATE INDEX runs_of_launch ON runs (launch_id) WHERE launch_id IS NOT NULL;

CREATE TABLE host_samples (
    run_id bigint NOT NULL REFERENCES runs (id),
    seq    bigint NOT NULL,
    sample jsonb  NOT NULL,
    PRIMARY KEY (run_id, seq)
);

ALTER TABLE audit_log DROP CONSTRAINT audit_log_action_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_action_check CHECK (action IN
    ('queue', 'cancel', 'import', 'delete', 'rename', 'share', 'founding',
     'host_add', 'host_edit', 'host_remove', 'profile_add', 'profile_edit', 'profile_archive',
     'launch', 'adopt', 'stop', 'restore', 'clean_up', 'give_back',
     'sign_in', 'sign_out', 'sign_in_refused', 'password'));
ALTER TABLE audit_log ADD COLUMN detail text NOT NULL DEFAULT '';
-- Where it came from: an address, or the command line.
ALTER TABLE audit_log ADD COLUMN origin text NOT NULL DEFAULT '';
CREATE INDEX audit_log_newest ON audit_log (team_id, id DESC);
