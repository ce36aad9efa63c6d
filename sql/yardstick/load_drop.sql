DROP INDEX events_terms;
