-- Remembers which encrypted ids belong to which staff ids. Oldest release that can run on it: 0.1.

-- +goose Up

-- DingTalk leaves the staff id out of some frames. A row is a pair of ids that one frame had. An encrypted id with several
-- rows for a robot belongs to none of them. There is no session_key: a person is in many sessions.
CREATE TABLE sender_ids (
    sender_id  text NOT NULL,
    robot_code text NOT NULL,
    staff_id   text NOT NULL,

    PRIMARY KEY (sender_id, robot_code, staff_id)
);
CREATE INDEX sender_ids_of_staff ON sender_ids (staff_id);

-- +goose Down

DROP TABLE sender_ids;
