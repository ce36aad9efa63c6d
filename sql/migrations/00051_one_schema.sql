-- Removes the table of usage that older releases wrote, and the history before version 45. No older release can run on it.

-- +goose Up

-- model_usage has the same usage.
DROP TABLE model_spend;

-- The files of these steps are gone. A release that has them would take the schema for its own: it ends at its start instead.
DELETE FROM goose_db_version WHERE version_id BETWEEN 1 AND 44;
