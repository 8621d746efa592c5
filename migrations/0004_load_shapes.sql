-- Load at a rate, ramps and replays beside the closed loop; goodput; and what went
-- on around a stage.

-- Which of the columns a kind needs stands below, so that no row says less than its
-- kind, and none says more.
ALTER TABLE stages DROP CONSTRAINT stages_kind_check;
ALTER TABLE stages ADD CONSTRAINT stages_kind_check CHECK (kind IN
    ('single_stream', 'closed_loop', 'open_loop', 'ramp', 'replay'));
ALTER TABLE stages ALTER COLUMN concurrency DROP NOT NULL;
ALTER TABLE stages
    -- Requests per second in thousandths, at the beginning and (ramps) at the end:
    -- whole numbers, so that two rates are equal or not.
    ADD COLUMN rate       bigint CHECK (rate BETWEEN 1 AND 4294967295),
    ADD COLUMN rate_to    bigint CHECK (rate_to BETWEEN 1 AND 4294967295),
    ADD COLUMN arrivals   text   CHECK (arrivals IN ('constant', 'poisson', 'gamma')),
    -- Shape of the gamma distribution, in thousandths.
    ADD COLUMN burstiness bigint CHECK (burstiness BETWEEN 1 AND 4294967295),
    -- How many times faster than recorded a trace is replayed, in thousandths.
    ADD COLUMN speed      bigint CHECK (speed BETWEEN 1 AND 4294967295),
    ADD CONSTRAINT stages_shape_check CHECK (
        (concurrency IS NOT NULL) = (kind IN ('single_stream', 'closed_loop'))
        AND (rate IS NOT NULL)     = (kind IN ('open_loop', 'ramp'))
        AND (arrivals IS NOT NULL) = (kind IN ('open_loop', 'ramp'))
        AND (rate_to IS NOT NULL)  = (kind = 'ramp')
        AND (speed IS NOT NULL)    = (kind = 'replay')
        AND (burstiness IS NOT NULL) = (arrivals IS NOT DISTINCT FROM 'gamma')
    ),

    ADD COLUMN peak_output_tps    double precision,
    ADD COLUMN request_throughput double precision,
    ADD COLUMN peak_in_flight     bigint,
    -- Token chunks; 0 for stages from before, which nobody counted.
    ADD COLUMN chunks             bigint NOT NULL DEFAULT 0,
    -- Stages from before have no value in them.
    ADD COLUMN ttft_intended_ms   distribution NOT NULL
        DEFAULT ROW(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::distribution,
    ADD COLUMN first_answer_ms    distribution NOT NULL
        DEFAULT ROW(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::distribution,
    -- Bounds and how many requests met them; none where no bound was given.
    ADD COLUMN goodput            jsonb,
    -- What the engine said meanwhile, how the measuring machine fared, what it can
    -- time truthfully. Engines differ in what they say, hence jsonb.
    ADD COLUMN conditions         jsonb NOT NULL DEFAULT '{}',
    -- Times as histograms, of stages that came without their requests; of all others
    -- they follow from these.
    ADD COLUMN histograms         jsonb;

ALTER TABLE requests
    -- When it was to be sent: open loops only.
    ADD COLUMN intended_ns  bigint,
    -- Which turn of its conversation, from 0: conversations only.
    ADD COLUMN turn         bigint,
    -- Completion tokens asked for, where the workload does not ask the same of all.
    ADD COLUMN asked_tokens bigint;

-- Stages of the plan that a rule of the workload left out. As with requests, actor
-- and team are the run's.
CREATE TABLE skipped_stages (
    run_id     bigint      NOT NULL REFERENCES runs (id),
    stage      bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- A sentence; none where a file said only which.
    reason     text,
    PRIMARY KEY (run_id, stage)
);
