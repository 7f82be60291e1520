//! COMMENT: what is said of objects is kept, by the log and by checkpoints, and superusers say it.

#![cfg(not(kiln_sim))]

use kiln_platform::disk::TemporaryDirectory;
use kiln_sql::{Database, Options};

const SCHEMA: &str = "
    CREATE TABLE item (id INT PRIMARY KEY, price INT CHECK (price > 0));
    CREATE VIEW cheap AS SELECT id FROM item WHERE price < 10;
    CREATE ROLE clerk LOGIN;
    COMMENT ON TABLE item IS 'what is sold';
    COMMENT ON COLUMN item.price IS 'in cents';
    COMMENT ON COLUMN cheap.id IS 'of the item';
    COMMENT ON CONSTRAINT item_price_check ON item IS 'nothing is free';
    COMMENT ON ROLE clerk IS 'sells';
    COMMENT ON ROLE kiln IS 'the first';
    COMMENT ON DATABASE kiln IS 'a shop';
    COMMENT ON SCHEMA public IS 'the only one'";

/// All comments with the kinds of their objects.
fn said(database: &Database) -> String {
    let query = "SELECT classoid::regclass::text, objsubid, description FROM pg_description WHERE objoid > 2000 AND objoid <> 13559
        UNION ALL SELECT classoid::regclass::text, 0, description FROM pg_shdescription ORDER BY 1, 2, 3";
    let rows = database.query(query, ()).expect("it is right");
    rows.to_csv()
}

const SAID: &str = "classoid,objsubid,description
pg_authid,0,sells
pg_authid,0,the first
pg_class,0,what is sold
pg_class,1,of the item
pg_class,2,in cents
pg_constraint,0,nothing is free
pg_database,0,a shop
pg_namespace,0,the only one
";

#[test]
fn comments_are_kept_by_the_log_and_by_checkpoints() {
    let temporary = TemporaryDirectory::new("kiln-comments").expect("there is room");
    let open = || {
        let options = Options::new().workers(1).pin_workers(false);
        let options = options.data_dir(Some(temporary.path().join("data")));
        Database::open(options).expect("it opens")
    };
    {
        let database = open();
        database.execute(SCHEMA).expect("it is right");
        assert_eq!(said(&database), SAID);
    }
    {
        let database = open();
        assert_eq!(said(&database), SAID);
        database
            .execute(
                "COMMENT ON TABLE item IS NULL;
                 COMMENT ON SCHEMA public IS NULL;
                 DROP VIEW cheap;
                 ALTER TABLE item RENAME price TO cents;
                 DROP ROLE clerk",
            )
            .expect("it is right");
        database.engine().checkpoint().expect("it is written");
    }
    let database = open();
    let gone = [
        "pg_authid,0,sells\n",
        "pg_class,0,what is sold\n",
        "pg_class,1,of the item\n",
        "pg_namespace,0,the only one\n",
    ];
    let left = gone
        .iter()
        .fold(SAID.to_owned(), |said, gone| said.replace(gone, ""));
    assert_eq!(said(&database), left);
}

#[test]
fn superusers_comment() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    let mut session = database.session_as("clerk").expect("there is such a role");
    let refused = session.execute("COMMENT ON TABLE item IS 'mine'");
    assert_eq!(refused.expect_err("it is not").state().as_str(), "42501");
}

#[test]
fn a_renamed_view_keeps_its_number() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    let number = |view: &str| {
        let rows = database.query("SELECT $1::regclass::oid::bigint", (view,));
        rows.and_then(|rows| rows.into_one::<(i64,)>()).expect(view)
    };
    let before = number("cheap");
    database
        .execute("ALTER VIEW cheap RENAME TO bargain")
        .expect("it is right");
    assert_eq!(number("bargain"), before);
}

#[test]
fn a_block_takes_comments_along() {
    let database = Database::open(Options::new().workers(1)).expect("it opens");
    database.execute(SCHEMA).expect("it is right");
    let before = said(&database);
    database
        .execute("BEGIN; COMMENT ON TABLE item IS 'other'; DROP VIEW cheap; ROLLBACK")
        .expect("it is right");
    assert_eq!(said(&database), before);
    database
        .execute(
            "BEGIN;
             CREATE TABLE t (a INT CHECK (a > 0));
             COMMENT ON CONSTRAINT t_a_check ON t IS 'new';
             ALTER TABLE t RENAME TO u;
             COMMENT ON COLUMN u.a IS 'of u';
             COMMIT",
        )
        .expect("it is right");
    let after = said(&database);
    assert!(after.contains("pg_constraint,0,new\n") && after.contains("pg_class,1,of u\n"));
}
