-- Lists the parts of a schema, one a line, goose's own table aside. The order of columns does not matter.
WITH tables AS (
    SELECT c.oid, c.relname AS name, c.reloptions, c.relpersistence
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'goose_db_version'
)
SELECT concat_ws(' ', 'table', t.name, t.relpersistence, t.reloptions::text) AS line FROM tables t
UNION ALL
SELECT concat_ws(' ', 'column', t.name || '.' || a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
    'default ' || pg_get_expr(d.adbin, d.adrelid), 'identity ' || nullif(a.attidentity::text, ''), 'generated ' || nullif(a.attgenerated::text, ''),
    'storage ' || a.attstorage::text, 'collation ' || nullif(a.attcollation, 0)::regcollation::text, 'statistics ' || a.attstattarget)
FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
UNION ALL
SELECT concat_ws(' ', 'constraint', t.name || '.' || r.conname, pg_get_constraintdef(r.oid)) FROM tables t JOIN pg_constraint r ON r.conrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'index', t.name || '.' || c.relname, pg_get_indexdef(i.indexrelid), CASE WHEN NOT i.indisvalid THEN 'invalid' END)
FROM tables t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid
UNION ALL
SELECT concat_ws(' ', 'sequence', c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'goose_db_version_id_seq'
UNION ALL
SELECT concat_ws(' ', 'comment', c.relname || coalesce('.' || a.attname, ''), o.description)
FROM pg_description o JOIN pg_class c ON o.classoid = 'pg_class'::regclass AND o.objoid = c.oid AND c.relnamespace = current_schema()::regnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = o.objsubid AND a.attnum > 0
UNION ALL
SELECT concat_ws(' ', c.relkind, c.relname, pg_get_viewdef(c.oid)) FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('v', 'm')
UNION ALL
SELECT concat_ws(' ', 'function', p.oid::regprocedure) FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
UNION ALL
SELECT concat_ws(' ', 'trigger', t.name || '.' || g.tgname, pg_get_triggerdef(g.oid)) FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid
ORDER BY 1
