-- Files that the people of a session asked to keep.

-- name: Files :many
-- Files lists the kept files of a session, the newest first.
SELECT f.* FROM files f WHERE f.session_key = @session_key ORDER BY f.created_at DESC, f.id DESC;

-- name: FileAdd :one
INSERT INTO files (session_key, name, kind, media_id, bytes, pages, sent_by, kept_by, event_id, kept_event)
VALUES (@session_key, @name, @kind, @media_id, @bytes, @pages, @sent_by, @kept_by, @event_id, @kept_event)
RETURNING *;

-- name: FileReplace :one
-- FileReplace makes another content the next version of a file.
UPDATE files f SET version = f.version + 1, name = @name, kind = @kind, media_id = @media_id, bytes = @bytes, pages = @pages, sent_by = @sent_by,
    kept_by = @kept_by, event_id = @event_id, kept_event = @kept_event, created_at = now()
WHERE f.session_key = @session_key AND f.id = @id
RETURNING f.*;

-- name: FileDelete :execrows
DELETE FROM files f WHERE f.session_key = @session_key AND f.id = @id;

-- name: FileTermsSet :batchexec
UPDATE document_pages g SET terms = @terms::bigint[]
WHERE g.session_key = @session_key AND g.media_id = @media_id AND g.page = @page;

-- name: FileReady :one
-- FileReady reports whether a message has a document, and whether pages of it have no terms.
SELECT
    EXISTS (SELECT FROM attachments a WHERE a.session_key = @session_key AND a.media_id = @media_id)::boolean AS attached,
    EXISTS (SELECT FROM document_pages g WHERE g.session_key = @session_key AND g.media_id = @media_id AND g.terms IS NULL)::boolean AS unindexed;

-- name: FileTermsSweep :exec
-- FileTermsSweep deletes the terms of pages of no kept file.
UPDATE document_pages g SET terms = NULL
WHERE g.session_key = @session_key AND g.terms IS NOT NULL
  AND NOT EXISTS (SELECT FROM files f WHERE f.session_key = @session_key AND f.media_id = g.media_id);

-- name: FilePagesWithTerms :many
-- FilePagesWithTerms names pages of kept files with a term of a list; its place comes back with each page.
SELECT k.place::int AS place, p.id, p.page
FROM unnest(@keys::bigint[]) WITH ORDINALITY AS k (key, place)
CROSS JOIN LATERAL (
    SELECT f.id, g.page FROM document_pages g
    JOIN files f ON f.session_key = g.session_key AND f.media_id = g.media_id
    WHERE g.session_key = @session_key AND f.session_key = @session_key AND g.terms IS NOT NULL AND g.terms @> ARRAY[k.key]
      AND NOT coalesce(jsonb_exists(g.withheld, @model::text), false)
    LIMIT @max_rows::int
) p;

-- name: FilePagesWithhold :exec
-- FilePagesWithhold marks pages that a model refuses: documents and numbers are parallel.
UPDATE document_pages g SET withheld = coalesce(g.withheld, '{}') || @mark::jsonb
FROM (SELECT unnest(@media_ids::text[]) AS media_id, unnest(@numbers::int[]) AS page) n
WHERE g.session_key = @session_key AND g.media_id = n.media_id AND g.page = n.page;

-- name: FilePages :many
-- FilePages reads pages of kept files: ids and numbers are parallel. Either terms or texts are read.
SELECT f.id, f.name, f.version, f.pages, f.media_id, f.created_at, g.page, g.title,
    (CASE WHEN @texts::boolean THEN g.body ELSE '' END)::text AS body,
    (CASE WHEN @texts::boolean THEN '{}' ELSE coalesce(g.terms, '{}') END)::bigint[] AS terms
FROM (SELECT unnest(@ids::bigint[]) AS id, unnest(@numbers::int[]) AS page) n
JOIN files f ON f.session_key = @session_key AND f.id = n.id
JOIN document_pages g ON g.session_key = @session_key AND g.media_id = f.media_id AND g.page = n.page;

-- name: FileMessagesForget :exec
-- FileMessagesForget takes a forgotten file from the messages that brought it.
DELETE FROM attachments a
WHERE a.session_key = @session_key
  AND a.media_id = (SELECT f.media_id FROM files f WHERE f.session_key = @session_key AND f.id = @id);

-- name: FilesCount :exec
-- FilesCount brings the number of kept files in the row of a session up to date.
UPDATE dingtalk_sessions s SET files = (SELECT count(*) FROM files f WHERE f.session_key = @session_key)
WHERE s.session_key = @session_key AND s.files <> (SELECT count(*) FROM files n WHERE n.session_key = @session_key);
