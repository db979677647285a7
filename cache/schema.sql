R"sql(
-- Schema of a Hone cache, version 1. docs/cache-format.md explains every column and its invariants.
-- Never edit a released version: add the next one to the migrations in schema.cpp.

-- One row: one candidate measured on one problem. Append-only.
CREATE TABLE trial (
    identity         TEXT    NOT NULL PRIMARY KEY CHECK (length(identity) = 32),
    gpu_name         TEXT    NOT NULL,
    compute_major    INTEGER NOT NULL,
    compute_minor    INTEGER NOT NULL,
    sm_count         INTEGER NOT NULL,
    memory_clock_mhz INTEGER NOT NULL,
    mig_profile      TEXT    NOT NULL,
    family           TEXT    NOT NULL,
    static_fields    TEXT    NOT NULL,
    dynamic_fields   TEXT    NOT NULL,
    driver           TEXT    NOT NULL,
    nvrtc            TEXT    NOT NULL,
    candidate        TEXT    NOT NULL,
    template_hash    TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN ('ok', 'over_limits', 'compile_failed', 'launch_failed',
                                                        'wrong_result', 'timed_out', 'crashed')),
    stage            TEXT    NOT NULL CHECK (stage IN ('screened', 'raced', 'final_round')),
    provenance       TEXT    NOT NULL CHECK (provenance IN ('measured', 'replayed', 'predicted')),
    winner           INTEGER NOT NULL CHECK (winner IN (0, 1)),
    is_default       INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    median_us        REAL    NOT NULL,
    p10_us           REAL    NOT NULL,
    p90_us           REAL    NOT NULL,
    samples          INTEGER NOT NULL,
    registers        INTEGER NOT NULL,
    shared_bytes     INTEGER NOT NULL,
    spill_bytes      INTEGER NOT NULL,
    energy_mj        REAL    NOT NULL,
    detail           TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    tool_version     TEXT    NOT NULL
) STRICT;

CREATE INDEX trial_by_problem ON trial (family, static_fields, dynamic_fields);
CREATE INDEX trial_that_won ON trial (family, static_fields, dynamic_fields) WHERE winner = 1 AND status = 'ok';

-- Every trial that won its race, with its place among those of the same key; place 1 is the winner.
CREATE VIEW ranked_winner AS
SELECT trial.*, row_number() OVER (
    PARTITION BY family, static_fields, dynamic_fields,
                 gpu_name, compute_major, compute_minor, sm_count, memory_clock_mhz, mig_profile
    ORDER BY CASE provenance WHEN 'measured' THEN 0 WHEN 'replayed' THEN 1 ELSE 2 END, created_at DESC, identity
) AS place
FROM trial WHERE winner = 1 AND status = 'ok';

CREATE VIEW winner AS SELECT * FROM ranked_winner WHERE place = 1;

-- Candidates that are on a GPU right now, written before their first launch.
CREATE TABLE in_flight (
    gpu_name         TEXT    NOT NULL,
    compute_major    INTEGER NOT NULL,
    compute_minor    INTEGER NOT NULL,
    sm_count         INTEGER NOT NULL,
    memory_clock_mhz INTEGER NOT NULL,
    mig_profile      TEXT    NOT NULL,
    family           TEXT    NOT NULL,
    static_fields    TEXT    NOT NULL,
    dynamic_fields   TEXT    NOT NULL,
    candidate        TEXT    NOT NULL,
    pid              INTEGER NOT NULL,
    started_at       INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    host             TEXT    NOT NULL,
    boot             TEXT    NOT NULL,
    process_start    INTEGER NOT NULL,
    PRIMARY KEY (family, static_fields, dynamic_fields, candidate, gpu_name, compute_major, compute_minor, sm_count,
                 memory_clock_mhz, mig_profile, host, pid)
) STRICT, WITHOUT ROWID;

-- Compiled images.
CREATE TABLE image (
    key              TEXT    NOT NULL PRIMARY KEY CHECK (length(key) = 32),
    template_hash    TEXT    NOT NULL,
    static_fields    TEXT    NOT NULL,
    candidate        TEXT    NOT NULL,
    arch             TEXT    NOT NULL,
    nvrtc            TEXT    NOT NULL,
    options          TEXT    NOT NULL,
    registers        INTEGER NOT NULL,
    shared_bytes     INTEGER NOT NULL,
    spill_bytes      INTEGER NOT NULL,
    checksum         TEXT    NOT NULL CHECK (length(checksum) = 32),
    created_at       INTEGER NOT NULL,
    last_used        INTEGER NOT NULL,
    length           INTEGER NOT NULL CHECK (length >= 0),
    cubin            BLOB    NOT NULL
) STRICT;

CREATE INDEX image_by_use ON image (last_used, length);
)sql"
