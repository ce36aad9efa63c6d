-- Counts the turns of a day beside their usage. Oldest release that can run on it: 0.1.

-- +goose Up

-- Turns that a model answered, in the rows of the kind "turn". An older release adds none. In model_usage a turn of several people
-- counts for one of them, so that sums stay whole.
ALTER TABLE model_spend ADD COLUMN turns bigint NOT NULL DEFAULT 0;
ALTER TABLE model_usage ADD COLUMN turns bigint NOT NULL DEFAULT 0;

-- +goose Down

ALTER TABLE model_usage DROP COLUMN turns;
ALTER TABLE model_spend DROP COLUMN turns;
