-- Takes hashes of ids of people out of what outlives their erasure, and notes the origin of messages of schedules. Oldest release that can run on it: 0.1.

-- +goose Up

-- These hashes have no key, so that all who know an id can compute its hash.
SELECT set_config('ebb.salt', gen_random_uuid()::text, true);
UPDATE person_erasures SET person = sha256(convert_to(current_setting('ebb.salt'), 'UTF8') || person);

-- The id of a press of "stop" had such a hash of its person and card.
UPDATE dingtalk_session_events SET msg_id = left(msg_id, 34) || md5(current_setting('ebb.salt') || msg_id)
WHERE msg_id ~ '^stop-ebb-[0-9a-f]{24}-.';

-- A schedule expires before its messages, which an erasure of the message that set it finds by this. A cluster refuses to_jsonb here.
UPDATE dingtalk_session_events f SET message = jsonb_set(f.message, '{scheduled,origin}',
    ('"' || replace(replace(t.origin, '\', '\\'), '"', '\"') || '"')::jsonb)
FROM schedules t
WHERE f.session_key = t.session_key AND starts_with(f.msg_id, 'schedule:' || t.id::text || ':') AND f.message ? 'scheduled';
