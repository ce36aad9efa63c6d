SELECT i.indexdef FROM pg_indexes i WHERE i.indexname = 'events_terms' AND i.schemaname = current_schema();
