-- Pictures and texts of files that people sent.

-- name: Attachments :many
-- Attachments lists what is known of the attachments of messages.
SELECT a.* FROM attachments a
WHERE a.session_key = @session_key AND a.event_id = ANY(@events::bigint[])
ORDER BY a.event_id, a.place;

-- name: Pictures :many
-- Pictures reads the pictures that are still kept.
SELECT p.media_id, p.type, p.body FROM pictures p
WHERE p.session_key = @session_key AND p.media_id = ANY(@ids::text[]);

-- name: DocumentPages :many
-- DocumentPages reads the pages of a document, in order.
SELECT g.page, g.title, g.body, g.withheld FROM document_pages g
WHERE g.session_key = @session_key AND g.media_id = @media_id AND g.page BETWEEN @first_page::int AND @last_page::int
ORDER BY g.page;

-- name: AttachmentSet :exec
-- AttachmentSet replaces what is known of an attachment.
INSERT INTO attachments (session_key, event_id, place, kind, name, fault, media_id, bytes, pages, tokens)
VALUES (@session_key, @event_id, @place, @kind, @name, @fault, @media_id, @bytes, @pages, @tokens)
ON CONFLICT (session_key, event_id, place) DO UPDATE SET
    kind = excluded.kind, name = excluded.name, fault = excluded.fault, media_id = excluded.media_id, bytes = excluded.bytes,
    pages = excluded.pages, tokens = excluded.tokens, created_at = excluded.created_at;

-- name: PictureSet :exec
-- PictureSet stores a picture. One that is sent again is kept from then on.
INSERT INTO pictures (session_key, media_id, type, body) VALUES (@session_key, @media_id, @type, @body)
ON CONFLICT (session_key, media_id) DO UPDATE SET created_at = excluded.created_at;

-- name: DocumentPagesSet :exec
-- DocumentPagesSet stores pages of a document: numbers, titles and texts are parallel arrays.
INSERT INTO document_pages (session_key, media_id, page, title, body)
SELECT @session_key, @media_id, unnest(@pages::int[]), unnest(@titles::text[]), unnest(@bodies::text[])
ON CONFLICT (session_key, media_id, page) DO NOTHING;

-- name: AttachmentsSweep :exec
-- AttachmentsSweep deletes the attachments that no message of a locked session has any more.
DELETE FROM attachments a
WHERE a.session_key = @session_key AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = a.event_id AND jsonb_array_length(coalesce(e.message -> 'attachments', '[]')) > a.place);

-- name: PicturesSweep :exec
-- PicturesSweep deletes the pictures of no attachment.
DELETE FROM pictures p
WHERE p.session_key = @session_key
  AND NOT EXISTS (SELECT FROM attachments a WHERE a.session_key = @session_key AND a.media_id = p.media_id);

-- name: DocumentPagesSweep :exec
-- DocumentPagesSweep deletes the pages of no attachment and no kept file.
DELETE FROM document_pages g
WHERE g.session_key = @session_key
  AND NOT EXISTS (SELECT FROM attachments a WHERE a.session_key = @session_key AND a.media_id = g.media_id)
  AND NOT EXISTS (SELECT FROM files f WHERE f.session_key = @session_key AND f.media_id = g.media_id);

-- name: PicturesExpire :execrows
-- PicturesExpire deletes pictures that were last sent before the period.
DELETE FROM pictures p USING (
    SELECT o.session_key, o.media_id FROM pictures o
    WHERE o.created_at < now() - interval '1 second' * @period_seconds::float8
    ORDER BY o.created_at LIMIT @max_rows::int
) old
WHERE p.session_key = old.session_key AND p.media_id = old.media_id;
