-- Notes the turn that saved a memory, and takes ids of people out of ids of messages. Oldest release that can run on it: 0.1.

-- +goose Up

-- A memory that a turn saved before its commit has no places yet. Its turn was guessed from the times.
ALTER TABLE memories ADD COLUMN turn bigint;

-- The id of a press of "stop" had the id of its person in it, which an erasure of the person left there.
UPDATE dingtalk_session_events SET msg_id = left(msg_id, 34) || encode(sha256(convert_to(msg_id, 'UTF8')), 'hex')
WHERE msg_id ~ '^stop-ebb-[0-9a-f]{24}-.';
