-- Counts the calls to DingTalk's open API by robot. No older release can run on it.

-- +goose Up

ALTER TABLE api_calls ADD COLUMN robot_code text NOT NULL DEFAULT '';
ALTER TABLE api_days ADD COLUMN robot_code text NOT NULL DEFAULT '';
ALTER TABLE api_months ADD COLUMN robot_code text NOT NULL DEFAULT '';

-- The counts so far are those of the only robot. Those of several can't be told apart.
UPDATE api_calls SET robot_code = r.code FROM (SELECT min(robot_code) AS code FROM dingtalk_sessions HAVING count(DISTINCT robot_code) = 1) r;
UPDATE api_days SET robot_code = r.code FROM (SELECT min(robot_code) AS code FROM dingtalk_sessions HAVING count(DISTINCT robot_code) = 1) r;
UPDATE api_months SET robot_code = r.code FROM (SELECT min(robot_code) AS code FROM dingtalk_sessions HAVING count(DISTINCT robot_code) = 1) r;

ALTER TABLE api_calls DROP CONSTRAINT api_calls_pkey, ADD PRIMARY KEY (robot_code, month, api);
ALTER TABLE api_days DROP CONSTRAINT api_days_pkey, ADD PRIMARY KEY (robot_code, day, api);
ALTER TABLE api_months DROP CONSTRAINT api_months_pkey, ADD PRIMARY KEY (robot_code, month);
