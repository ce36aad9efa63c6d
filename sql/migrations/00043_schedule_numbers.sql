-- Numbers reminders by conversation, and names those that access rules ended. Oldest release that can run on it: 0.1.

-- +goose Up

-- The highest number that a schedule of the conversation ever had. Its session_key is that of the conversation's common session.
CREATE TABLE schedule_numbers (
    session_key text   PRIMARY KEY,
    last        bigint NOT NULL
);
ALTER TABLE schedules DROP CONSTRAINT schedules_state_check;
ALTER TABLE schedules ADD CONSTRAINT schedules_state_check CHECK (state IN ('active', 'done', 'cancelled', 'refused'));

-- +goose Down

UPDATE schedules SET state = 'cancelled' WHERE state = 'refused';
ALTER TABLE schedules DROP CONSTRAINT schedules_state_check;
ALTER TABLE schedules ADD CONSTRAINT schedules_state_check CHECK (state IN ('active', 'done', 'cancelled'));
DROP TABLE schedule_numbers;
