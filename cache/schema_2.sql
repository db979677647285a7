R"sql(
-- Version 2 of the schema: trials know whether they were measured here, images may be compressed (their bytes are then
-- fewer than `length`), and the index of problems is small.

-- 1: came by import or merge, or from a cache of version 1, which did not tell. No part of the identity.
ALTER TABLE trial ADD COLUMN imported INTEGER NOT NULL DEFAULT 1 CHECK (imported IN (0, 1));

-- The static fields are most of a problem's text, and are in every row already: a fifth of a cache's bytes.
DROP INDEX trial_by_problem;
CREATE INDEX trial_by_size ON trial (dynamic_fields);

DROP VIEW winner;
DROP VIEW ranked_winner;

-- What was measured here comes first, the latest by the order in which it was stored: a clock can be wrong.
CREATE VIEW ranked_winner AS
SELECT trial.*, row_number() OVER (
    PARTITION BY family, static_fields, dynamic_fields,
                 gpu_name, compute_major, compute_minor, sm_count, memory_clock_mhz, mig_profile
    ORDER BY CASE provenance WHEN 'measured' THEN 0 WHEN 'replayed' THEN 1 ELSE 2 END, imported,
             CASE imported WHEN 0 THEN trial.rowid END DESC, created_at DESC, identity
) AS place
FROM trial WHERE winner = 1 AND status = 'ok';

CREATE VIEW winner AS SELECT * FROM ranked_winner WHERE place = 1;
)sql"
