R"sql(
-- Version 3 of the schema: a trial says at which clock its times were taken, and how they compare with the incumbent's,
-- which ran beside it; and winners may have been chosen by what they do in a model's step, and then hold their place
-- against winners that were measured alone.

-- 0: not known, as in all rows from before. Part of the identity where one of both is not 0.
ALTER TABLE trial ADD COLUMN sm_clock_mhz INTEGER NOT NULL DEFAULT 0 CHECK (sm_clock_mhz >= 0);
ALTER TABLE trial ADD COLUMN incumbent_ratio REAL NOT NULL DEFAULT 0 CHECK (incumbent_ratio >= 0);

-- In which step: "llama-3-8b tokens=8 kv=1024"; empty: alone. Part of the identity where it is not empty.
ALTER TABLE trial ADD COLUMN chain TEXT NOT NULL DEFAULT '';

DROP VIEW winner;
DROP VIEW ranked_winner;

CREATE VIEW ranked_winner AS
SELECT trial.*, row_number() OVER (
    PARTITION BY family, static_fields, dynamic_fields,
                 gpu_name, compute_major, compute_minor, sm_count, memory_clock_mhz, mig_profile
    ORDER BY CASE provenance WHEN 'measured' THEN 0 WHEN 'replayed' THEN 1 ELSE 2 END, chain = '', imported,
             CASE imported WHEN 0 THEN trial.rowid END DESC, created_at DESC, identity
) AS place
FROM trial WHERE winner = 1 AND status = 'ok';

CREATE VIEW winner AS SELECT * FROM ranked_winner WHERE place = 1;
)sql"
