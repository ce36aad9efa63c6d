SELECT create_distributed_table($1::text::regclass, $2::text, colocate_with => $3::text);
