SELECT undistribute_table($1::text::regclass);
