-- Takes a key that is no setting any more out of the conversations' own settings. Oldest release that can run on it: 0.1.

-- +goose Up

-- With a key that is unknown all own settings of a conversation are refused, the others too.
UPDATE dingtalk_sessions SET settings = nullif(settings - 'cooldown_min', '{}'::jsonb) WHERE settings ? 'cooldown_min';
