//! A shop whose database is kept in a data directory: what it has answered is there when it opens
//! again, and an order that is sent once more after that is not carried out twice.
//!
//! `cargo run --release --example reopened_shop`

use std::path::Path;

use kiln::{Call, Database, IdempotencyKey, Options, Reply, Result};
use kiln_platform::disk::TemporaryDirectory;

const SCHEMA: &str = "
    CREATE TABLE seats (event INTEGER PRIMARY KEY, free INTEGER NOT NULL CHECK (free >= 0));
    INSERT INTO seats VALUES (1, 500);

    CREATE PROCEDURE book(which INTEGER, count INTEGER, OUT remaining INTEGER)
    LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE seats SET free = free - count WHERE event = which RETURNING free INTO remaining;
    END
    $$;";

/// The database in `directory`; its tables and procedures are there already unless it is new.
fn open(directory: &Path) -> Result<Database> {
    let database = Database::open(Options::new().data_dir(Some(directory.to_owned())))?;
    if let Some(recovery) = database.recovery() {
        for warning in &recovery.warnings {
            eprintln!("{warning}");
        }
        println!("{recovery}");
    }
    if database.engine().catalog().tables().next().is_none() {
        database.execute(SCHEMA)?;
    }
    Ok(database)
}

fn free(database: &Database) -> Result<i32> {
    let rows = database.query("SELECT free FROM seats WHERE event = 1", ())?;
    Ok(rows.into_one::<(i32,)>()?.0)
}

/// An order with a name of its own: however often it is sent, it is carried out once.
fn order(name: &str, count: i32) -> Result<Call> {
    Ok(Call::new("book", (1, count)).idempotency_key(IdempotencyKey::new(name)?))
}

pub(crate) fn main() -> Result<()> {
    // A program of your own names a path that stays.
    let temporary = TemporaryDirectory::new("kiln-example").expect("the system has room");
    let directory = temporary.path().join("shop");

    let database = open(&directory)?;
    // When the reply is here, the order is on disk: from now on it survives a kill and a power
    // loss.
    let reply = database.submit(order("Ada's", 2)?)?.wait()?;
    assert!(reply.is_committed());
    assert_eq!(free(&database)?, 498);
    drop(database);

    let database = open(&directory)?;
    assert_eq!(free(&database)?, 498);
    // Ada did not see the answer and sends her order again: it is the first one's.
    let again = database.submit(order("Ada's", 2)?)?.wait()?;
    assert!(matches!(again, Reply::Committed(_)));
    assert_eq!(free(&database)?, 498);
    println!("{} seats are free", free(&database)?);
    Ok(())
}
