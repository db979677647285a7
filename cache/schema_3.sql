R"sql(
-- Version 3 of the schema: a trial says at which clock its times were taken, and how they compare with the incumbent's,
-- which ran beside it.

-- 0: not known, as in all rows from before. Part of the identity where one of both is not 0.
ALTER TABLE trial ADD COLUMN sm_clock_mhz INTEGER NOT NULL DEFAULT 0 CHECK (sm_clock_mhz >= 0);
ALTER TABLE trial ADD COLUMN incumbent_ratio REAL NOT NULL DEFAULT 0 CHECK (incumbent_ratio >= 0);
)sql"
