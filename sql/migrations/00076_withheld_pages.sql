-- Marks the pages of kept files that a model refuses. Oldest release that can run on it: 0.1.

-- +goose Up
ALTER TABLE document_pages ADD COLUMN withheld jsonb;
