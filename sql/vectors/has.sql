SELECT to_regtype('vector') IS NOT NULL, EXISTS (SELECT FROM pg_available_extensions a WHERE a.name = 'vector')
