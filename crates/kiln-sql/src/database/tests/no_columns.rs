//! Tables and rows without columns.

use super::check;

#[test]
fn tables_have_rows_without_columns() {
    check(
        "CREATE TABLE z ();
         INSERT INTO z DEFAULT VALUES;
         INSERT INTO z SELECT FROM generate_series(1, 3);
         SELECT count(*) FROM z;
         SELECT count(*) FROM z a LEFT JOIN z b ON true;
         SELECT EXISTS (SELECT FROM z), EXISTS (SELECT FROM z WHERE false);
         INSERT INTO z DEFAULT VALUES RETURNING *;
         DELETE FROM z;
         TRUNCATE z;
         DROP TABLE z;",
        "CREATE TABLE
         INSERT 0 1
         INSERT 0 3
         count
         4
         count
         16
         exists,exists
         t,f
         42601: RETURNING must have at least one column
         DELETE 4
         TRUNCATE TABLE
         DROP TABLE",
    );
}

#[test]
fn unions_of_rows_without_columns() {
    check(
        "SELECT count(*) FROM (SELECT FROM generate_series(1, 5) UNION ALL SELECT FROM generate_series(1, 3)) s;
         SELECT count(*) FROM (SELECT FROM generate_series(1, 5) UNION SELECT FROM generate_series(1, 3)) s;
         SELECT count(*) FROM (SELECT FROM generate_series(1, 5) x ORDER BY x) s;",
        "count
         8
         count
         1
         count
         5",
    );
}
