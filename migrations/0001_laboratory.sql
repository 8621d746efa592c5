-- The laboratory's store. Every row says who made it (actor_id), for which team
-- (team_id) and when (created_at), from the first day on: added later, the old
-- rows would have no answer.

-- Times are timestamptz; durations of a measurement are whole nanoseconds of a
-- monotonic clock. Counts of a server's making are bigint, so that a server that
-- states nonsense cannot make a row unstorable.

CREATE TABLE teams (
    id         bigint      PRIMARY KEY,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE actors (
    id         bigint      PRIMARY KEY,
    team_id    bigint      NOT NULL REFERENCES teams (id),
    name       text        NOT NULL,
    role       text        NOT NULL CHECK (role IN ('guest', 'viewer', 'operator')),
    created_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO teams (id, name) VALUES (1, 'local');
-- The two actors there are until people sign in.
INSERT INTO actors (id, team_id, name, role) VALUES
    (1, 1, 'local operator', 'operator'),
    (2, 1, 'guest', 'guest');

-- A sample in short: typed, and one column instead of eight per metric.
CREATE TYPE distribution AS (
    count bigint,
    mean  double precision,
    min   double precision,
    p50   double precision,
    p90   double precision,
    p95   double precision,
    p99   double precision,
    max   double precision
);

CREATE TABLE runs (
    id                    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id               bigint      NOT NULL REFERENCES teams (id),
    actor_id              bigint      NOT NULL REFERENCES actors (id),
    created_at            timestamptz NOT NULL DEFAULT now(),
    -- Soft: a frozen comparison pins what it was made from.
    deleted_at            timestamptz,

    metric_version        integer     NOT NULL,
    analysis_version      integer     NOT NULL,

    state                 text        NOT NULL CHECK (state IN
        ('queued', 'running', 'finished', 'failed', 'cancelled', 'interrupted')),
    reason                text,
    source                text        NOT NULL CHECK (source IN
        ('measured', 'imported', 'recorded', 'estimated', 'simulated')),

    configuration         text        NOT NULL,
    hardware              text        NOT NULL,
    endpoint_url          text,
    -- The normalised address: what "one measurement at a time" is about.
    endpoint_key          text,
    tls                   jsonb       NOT NULL DEFAULT '{"trust": "system"}',
    -- Asked for; none means the first that the server lists.
    requested_model       text,
    -- Empty until the server was asked.
    model                 text        NOT NULL,
    engine                text        NOT NULL CHECK (engine IN ('vllm', 'sglang', 'other')),
    engine_version        text,
    -- The stand-in's mark was on the probe or on a reply.
    simulated             boolean     NOT NULL DEFAULT false,
    -- What others wrote is kept as they wrote it, hence jsonb.
    settings              jsonb       NOT NULL DEFAULT '{}',

    workload              jsonb       NOT NULL,
    workload_hash         text        NOT NULL,
    workload_name         text        NOT NULL,
    workload_text         text        NOT NULL,

    client                jsonb,
    tool_version          text,
    original              jsonb,
    remarks               text[]      NOT NULL DEFAULT '{}',
    acceptance_text       text,
    acceptance_definition text,
    recorded_requests     text[]      NOT NULL DEFAULT '{}',

    -- Stored once, however often it is brought.
    import_hash           text,
    founding_id           text,

    -- Who drives it. Every write of a worker names owner and epoch; taking a run
    -- over raises the epoch, so that a worker thought dead cannot write any more.
    lease_owner           uuid,
    lease_epoch           bigint      NOT NULL DEFAULT 0,
    lease_expires_at      timestamptz,
    cancel_requested_at   timestamptz,
    -- Last line of the meter's spool file that is stored.
    ingested_seq          bigint      NOT NULL DEFAULT 0,
    -- Last number given out in run_events.
    event_seq             bigint      NOT NULL DEFAULT 0,
    progress              jsonb,

    queued_at             timestamptz,
    started_at            timestamptz,
    finished_at           timestamptz,

    CHECK (state <> 'running' OR (lease_owner IS NOT NULL
        AND lease_expires_at IS NOT NULL AND endpoint_key IS NOT NULL)),
    CHECK (state <> 'queued' OR (queued_at IS NOT NULL AND endpoint_key IS NOT NULL))
);

-- Two measurements of one server at once would measure each other.
CREATE UNIQUE INDEX runs_one_running_per_endpoint ON runs (endpoint_key) WHERE state = 'running';
CREATE UNIQUE INDEX runs_import_once ON runs (team_id, import_hash) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX runs_founding_once ON runs (team_id, founding_id) WHERE deleted_at IS NULL;
-- The list: newest first. The queue: oldest first, and few.
CREATE INDEX runs_list ON runs (team_id, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX runs_queue ON runs (id) WHERE state = 'queued';
CREATE INDEX runs_leases ON runs (lease_expires_at) WHERE state = 'running';

CREATE TABLE stages (
    run_id               bigint           NOT NULL REFERENCES runs (id),
    stage                bigint           NOT NULL,
    team_id              bigint           NOT NULL REFERENCES teams (id),
    actor_id             bigint           NOT NULL REFERENCES actors (id),
    created_at           timestamptz      NOT NULL DEFAULT now(),
    kind                 text             NOT NULL CHECK (kind IN ('single_stream', 'closed_loop')),
    concurrency          bigint           NOT NULL CHECK (concurrency >= 1),
    repeat               bigint           NOT NULL,
    complete             boolean          NOT NULL,
    source               text             NOT NULL CHECK (source IN
        ('measured', 'imported', 'recorded', 'estimated', 'simulated')),
    -- Notes disagree about it.
    disputed             boolean          NOT NULL DEFAULT false,
    remark               text,
    requests             bigint           NOT NULL,
    completed            bigint           NOT NULL,
    failed               bigint           NOT NULL,
    cancelled            bigint           NOT NULL,
    failures             jsonb            NOT NULL,
    duration_s           double precision,
    prompt_tokens        bigint,
    output_tokens        bigint           NOT NULL,
    cached_tokens        bigint,
    output_tps           double precision,
    steady_output_tps    double precision,
    achieved_concurrency double precision,
    coalesced_share      double precision,
    ttft_ms              distribution     NOT NULL,
    tpot_ms              distribution     NOT NULL,
    itl_ms               distribution     NOT NULL,
    icl_ms               distribution     NOT NULL,
    e2el_ms              distribution     NOT NULL,
    e2e_tps              distribution     NOT NULL,
    decode_tps           distribution     NOT NULL,
    flags                jsonb            NOT NULL,
    PRIMARY KEY (run_id, stage)
);

-- One row per request sent. No actor or team here: they are the run's, and this
-- is the bulk of the data.
CREATE TABLE requests (
    run_id              bigint  NOT NULL REFERENCES runs (id),
    stage               bigint  NOT NULL,
    seq                 bigint  NOT NULL,
    prompt              bigint  NOT NULL,
    sent_ns             bigint  NOT NULL,
    connect_ns          bigint,
    headers_ns          bigint,
    ttft_ns             bigint,
    first_answer_ns     bigint,
    e2el_ns             bigint,
    end_ns              bigint  NOT NULL,
    prompt_tokens       bigint,
    completion_tokens   bigint,
    first_chunk_tokens  bigint,
    cached_tokens       bigint,
    reasoning_tokens    bigint,
    chunks              bigint  NOT NULL,
    coalesced_chunks    bigint  NOT NULL,
    counted_by_chunk    boolean NOT NULL,
    done_seen           boolean NOT NULL,
    simulated           boolean NOT NULL,
    finish_reason       text,
    failure_kind        text    CHECK (failure_kind IN
        ('connect', 'status', 'broken', 'stalled', 'bad_reply', 'empty', 'cancelled')),
    failure_message     text,
    failure_http_status integer,
    CHECK ((failure_kind IS NULL) = (failure_message IS NULL)),
    PRIMARY KEY (run_id, stage, seq)
);

-- When the token chunks came. Apart from the requests, so that they can be
-- dropped after a while without touching any figure.
CREATE TABLE chunk_traces (
    run_id bigint NOT NULL,
    stage  bigint NOT NULL,
    seq    bigint NOT NULL,
    -- Microseconds since the predecessor, as unsigned LEB128 varints.
    gaps   bytea  NOT NULL,
    -- Tokens of each chunk in the same form; empty where not known.
    tokens bytea  NOT NULL,
    PRIMARY KEY (run_id, stage, seq),
    FOREIGN KEY (run_id) REFERENCES runs (id)
);
-- Varints hardly compress; trying costs time on every insert.
ALTER TABLE chunk_traces ALTER COLUMN gaps SET STORAGE EXTERNAL;

-- What pages are told. NOTIFY only wakes listeners up; who missed one reads on
-- from here.
CREATE TABLE run_events (
    run_id     bigint      NOT NULL REFERENCES runs (id),
    seq        bigint      NOT NULL,
    team_id    bigint      NOT NULL REFERENCES teams (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    kind       jsonb       NOT NULL,
    PRIMARY KEY (run_id, seq)
);
CREATE INDEX run_events_recent ON run_events (created_at);

-- Frozen comparisons: all that their page shows, so that nothing that happens to
-- their runs changes them.
CREATE TABLE comparisons (
    slug             bytea       PRIMARY KEY CHECK (octet_length(slug) = 16),
    team_id          bigint      NOT NULL REFERENCES teams (id),
    actor_id         bigint      NOT NULL REFERENCES actors (id),
    created_at       timestamptz NOT NULL DEFAULT now(),
    title            text        NOT NULL,
    hash             text        NOT NULL,
    document         bytea       NOT NULL,
    csv              text        NOT NULL,
    svg              text        NOT NULL,
    metric_version   integer     NOT NULL,
    analysis_version integer     NOT NULL
);

-- Which runs a comparison was made from: their records are kept for its sake.
CREATE TABLE comparison_runs (
    slug   bytea   NOT NULL REFERENCES comparisons (slug),
    place  integer NOT NULL,
    run_id bigint  NOT NULL REFERENCES runs (id),
    PRIMARY KEY (slug, place)
);
CREATE INDEX comparison_runs_pins ON comparison_runs (run_id);

-- Keys of endpoints, encrypted with the key file, only while their run waits or
-- runs.
CREATE TABLE secrets (
    run_id     bigint      PRIMARY KEY REFERENCES runs (id),
    team_id    bigint      NOT NULL REFERENCES teams (id),
    actor_id   bigint      NOT NULL REFERENCES actors (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    nonce      bytea       NOT NULL CHECK (octet_length(nonce) = 12),
    ciphertext bytea       NOT NULL
);

CREATE TABLE audit_log (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id    bigint      NOT NULL REFERENCES teams (id),
    actor_id   bigint      NOT NULL REFERENCES actors (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    action     text        NOT NULL CHECK (action IN
        ('queue', 'cancel', 'import', 'delete', 'rename', 'share', 'founding')),
    -- What it was done to, such as "run 7".
    subject    text        NOT NULL
);
