-- Room on the page for the next version of a row: nothing but the row and its commit is written.
CREATE TABLE IF NOT EXISTS yardstick (
    worker integer PRIMARY KEY,
    n      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
