-- Notes the turn that saved a memory. Oldest release that can run on it: 0.1.

-- +goose Up

-- A memory that a turn saved before its commit has no places yet. Its turn was guessed from the times.
ALTER TABLE memories ADD COLUMN turn bigint;
