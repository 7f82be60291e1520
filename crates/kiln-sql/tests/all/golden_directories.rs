//! Data directories that versions of Kiln have written, one for each version of the format and kind
//! of directory: this version opens each of them, finds all that was in it, and goes on with it.
//!
//! A directory that is here never changes. With a new version of the format `write_golden` writes
//! new ones beside them, and [`DIRECTORIES`] gets their names and what is in them:
//!
//! ```sh
//! cargo test -p kiln-sql --test all golden_directories -- --ignored write_golden
//! ```

#![cfg(not(kiln_sim))]

use std::path::{Path, PathBuf};

use crate::image::{Image, segment_path};
use crate::life::{LIFE, Step, calls, options, temporary};
use kiln_durability::format::FORMAT_VERSION;
use kiln_sql::{Database, IdempotencyKey, Reply};

/// A directory below `tests/golden`.
struct Golden {
    name: &'static str,
    /// The checkpoint with which a recovery begins.
    checkpoint: Option<u64>,
    /// What of the catalog a user has declared.
    catalog: &'static str,
    /// Queries, and their results as CSV.
    rows: &'static [(&'static str, &'static str)],
    /// What is answered to [`calls`], which are known by their keys.
    replies: [&'static str; 4],
}

const DIRECTORIES: [Golden; 2] = [
    Golden {
        name: "format-1/log-alone",
        checkpoint: None,
        catalog: CATALOG_1,
        rows: &ROWS_1,
        replies: REPLIES_1,
    },
    Golden {
        name: "format-1/two-checkpoints",
        checkpoint: Some(2),
        catalog: CATALOG_1,
        rows: &ROWS_1,
        replies: REPLIES_1,
    },
];

const CATALOG_1: &str = "\
table 1 7:account
  column 2:id 7:integer not-null
  column 5:owner 4:text null
  column 7:balance 13:numeric(12,2) not-null
  primary-key 0 called 12:account_pkey
  index 12:account_pkey 0 unique constraint ordered 0
  index 17:account_owner_key 1 unique constraint ordered 0
table 3 5:later
  column 2:id 6:bigint not-null
  column 5:bytes 5:bytea null
  column 3:day 4:date null
  column 5:ratio 16:double precision null
  primary-key 0 called 10:later_pkey
  index 10:later_pkey 0 unique constraint ordered 0
  index 9:later_day 2,3 unique ordered 0
table 2 4:note
  column 5:about 7:integer null
  column 4:text 4:text null
  column 2:at 27:timestamp without time zone null
  column 4:flag 7:boolean null
  index 15:note_row_number - unique constraint ordered 0
procedure line 1 column 1 563:CREATE FUNCTION pay(payer INTEGER, payee INTEGER, amount NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
            DECLARE left_over NUMERIC;
            BEGIN
                UPDATE account SET balance = balance - amount WHERE id = payer RETURNING balance INTO left_over;
                IF left_over < 0 THEN RAISE EXCEPTION 'not enough'; END IF;
                UPDATE account SET balance = balance + amount WHERE id = payee;
                INSERT INTO note VALUES (payer, 'paid ' || amount, NULL, TRUE);
                RETURN left_over;
            END $$
end
";

const ROWS_1: [(&str, &str); 6] = [
    (
        "SELECT * FROM account ORDER BY id",
        "id,owner,balance\n1,owner 1,99.99\n2,owner 2,100.00\n3,owner 3,79.50\n4,owner 4,120.50\n\
         5,owner 5,100.00\n6,owner 6,100.00\n7,,0.50\n8,owner 9,100.00\n9,x,100.01\n\
         10,owner 10,100.00\n1011,owner 11,100.00\n1012,owner 12,100.00\n",
    ),
    (
        "SELECT about, left(text, 12), length(text), at, flag FROM note ORDER BY about, text, at, flag",
        "about,left,length,at,flag\n1,wide wide wi,4505,2026-01-31 12:00:00,\n\
         1,wide wide wi,4505,,t\n1,wide wide wi,4505,,t\n3,wide wide wi,4515,,t\n",
    ),
    (
        "SELECT * FROM later ORDER BY id",
        "id,bytes,day,ratio\n-9000000000,,,-Infinity\n1,\\x00ff,2026-02-28,0.1\n",
    ),
    ("SELECT id FROM account WHERE owner = 'owner 9'", "id\n8\n"),
    (
        "SELECT id FROM later WHERE day = '2026-02-28' AND ratio = 0.1",
        "id\n1\n",
    ),
    ("SELECT sum(balance) FROM account", "sum\n1100.50\n"),
];

const REPLIES_1: [&str; 4] = [
    "[[Numeric(Decimal(79.50))]]",
    "not enough (SQLSTATE P0001) at line 5, column 39",
    "[[Numeric(Decimal(97.00))]]",
    "[[Numeric(Decimal(99.99))]]",
];

fn place(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    golden.join(name)
}

/// What of a catalog a user has declared: the text of the catalog without what follows from that,
/// and what counts.
fn declared(database: &Database) -> String {
    let written = database.engine().written_catalog();
    let written = written.expect("it can be written").to_string();
    let is_declared = |line: &&str| {
        let is_derived = line.starts_with("  index ") && line.contains(" hash");
        let is_number = line.starts_with("numbers ") || line.starts_with("  number ");
        let counts = line.starts_with("catalog ") || line.starts_with("  row-number ");
        !(is_derived || is_number || counts)
    };
    let lines = written.lines().filter(is_declared);
    lines.flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// The numbers of what a user has declared. Where a directory has none, they are given out when it
/// is opened.
fn numbers(database: &Database) -> String {
    let query = "SELECT relname, oid FROM pg_class WHERE relnamespace = 2200 \
                 UNION ALL SELECT conname, oid FROM pg_constraint \
                 UNION ALL SELECT proname, oid FROM pg_proc WHERE pronamespace = 2200 ORDER BY 1, 2";
    csv(database, query)
}

fn csv(database: &Database, query: &str) -> String {
    database.query(query, ()).expect(query).to_csv()
}

/// What is answered to the calls. They are not run again.
fn replies(database: &Database) -> [String; 4] {
    calls().map(|call| match database.engine().execute(call) {
        Ok(Reply::Committed(rows)) => format!("{:?}", rows.values()),
        Ok(Reply::Rejected(error)) => error.to_string(),
        other => panic!("{other:?}"),
    })
}

impl Golden {
    fn check(&self, database: &Database, life: usize) {
        let name = self.name;
        assert_eq!(declared(database), self.catalog, "{name}, life {life}");
        assert_eq!(replies(database), self.replies, "{name}, life {life}");
        for (query, rows) in self.rows {
            assert_eq!(csv(database, query), *rows, "{name}, life {life}: {query}");
        }
    }
}

#[test]
fn what_earlier_versions_have_written_is_all_there_and_goes_on() {
    for golden in &DIRECTORIES {
        let directory = temporary();
        let path = directory.path().join("data");
        Image::of(&place(golden.name)).put(&path);
        let mut first_numbers = None;
        for life in 0..4_usize {
            let database = Database::open(options(&path)).expect(golden.name);
            let numbers = numbers(&database);
            let first = first_numbers.get_or_insert_with(|| numbers.clone());
            assert_eq!(numbers, *first, "{}, life {life}", golden.name);
            let recovery = database.recovery().expect("it has a directory");
            assert_eq!(recovery.cut, None, "{}", golden.name);
            assert!(
                recovery.warnings.iter().all(|it| it.contains("tmpfs")),
                "{recovery:?}"
            );
            if life == 0 {
                assert_eq!(recovery.checkpoint, golden.checkpoint, "{}", golden.name);
            }
            golden.check(&database, life);
            go_on(&database, life);
        }
    }
}

/// Writes to all tables, and takes back what can be seen of it.
fn go_on(database: &Database, life: usize) {
    let run = |statement: &str| drop(database.execute(statement).expect(statement));
    run("CREATE TABLE more (id INTEGER PRIMARY KEY)");
    run("INSERT INTO more VALUES (1)");
    run("UPDATE account SET balance = balance + 1");
    run("UPDATE account SET balance = balance - 1");
    run("INSERT INTO note VALUES (77, 'new', NULL, NULL)");
    run("INSERT INTO later VALUES (77, NULL, NULL, NULL)");
    let key = IdempotencyKey::new(format!("of life {life}")).expect("it is short");
    let call = kiln_sql::Call::new("pay", (8, 8, "1")).idempotency_key(key);
    assert!(
        database
            .engine()
            .execute(call)
            .expect("it runs")
            .is_committed()
    );
    if life == 1 {
        database.engine().checkpoint().expect("there is room");
    }
    run("DELETE FROM note WHERE about = 77 OR about = 8");
    run("DELETE FROM later WHERE id = 77");
    run("DROP TABLE more");
}

/// Writes the directories of this version; those of earlier versions stay.
#[test]
#[ignore = "writes into the sources, for a new version of the format"]
fn write_golden() {
    for (name, checkpoints) in [("log-alone", 0), ("two-checkpoints", 2)] {
        let directory = temporary();
        let path = directory.path().join("data");
        live_quickly(&path, checkpoints);
        let mut image = Image::of(&path);
        // A segment that was made ahead, or is not needed any more, need not be there.
        let blocks = image.blocks();
        let needed = [blocks.first(), blocks.last()];
        let [first, last] = needed.map(|it| it.expect("the log has blocks").segment);
        let is_needed = |file: &Path| {
            !file.starts_with("log") || (first..=last).any(|it| segment_path(it) == file)
        };
        image.files.retain(|file, _| is_needed(file));
        let bytes: usize = image.files.values().map(Vec::len).sum();
        println!("{name}: {bytes} bytes");
        image.put(&place(&format!("format-{FORMAT_VERSION}/{name}")));
        let database = Database::open(options(&path)).expect("it is there");
        println!("{}\n{:#?}", declared(&database), replies(&database));
        for (query, _) in ROWS_1 {
            println!("{query}\n{}", csv(&database, query));
        }
    }
}

/// Lives a life without a group, and so a block, for each statement.
fn live_quickly(path: &Path, checkpoints: usize) {
    let database = Database::open(options(path)).expect("it is new");
    let mut session = database.session().expect("there is room");
    session
        .execute("SET synchronous_commit = off")
        .expect("it is a value");
    let (mut calls, mut skipped) = (calls().into_iter(), 2 - checkpoints);
    for step in LIFE {
        match step {
            Step::Sql(statement) => drop(session.execute(statement).expect(statement)),
            Step::Call => {
                let call = calls.next().expect("there is one for each step");
                let call = call.synchronous_commit(false);
                database.engine().execute(call).expect("it runs");
            }
            Step::Checkpoint if skipped > 0 => skipped -= 1,
            Step::Checkpoint => drop(database.engine().checkpoint().expect("there is room")),
        }
    }
}
