-- Names in the audit the person whom an action concerned. No older release can run on it.

-- +goose Up

ALTER TABLE audit ADD COLUMN person text NOT NULL DEFAULT '';
CREATE INDEX audit_by_person ON audit (person) WHERE person <> '';
