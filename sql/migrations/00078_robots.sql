-- Records the robots of an installation, so that a process with another robot alone does not speak for a former one. Oldest release that can run on it: 0.1.

-- +goose Up

CREATE TABLE robots (
    robot_code text NOT NULL PRIMARY KEY,
    name       text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);

-- The counts of calls are by the client id of an application.
INSERT INTO robots (robot_code, name)
SELECT DISTINCT m.robot_code, m.robot_code FROM api_months m WHERE m.robot_code <> '';
