//! The library, chapter by chapter.
//!
//! | chapter | what it is about |
//! |---|---|
//! | [`open`] | databases in memory and in directories |
//! | [`call`] | procedures, and the three ways in which a call ends |
//! | [`transaction`] | the logic of a transaction in Rust |
//! | [`session`] | transactions of several statements, and prepared ones |
//! | [`errors`] | what a program finds in an error |
//! | [`options`] | workers, the protocol, and settings by name |

/// Databases in memory and in directories.
///
/// [`Database::open`](crate::Database::open) opens an empty database that ends with the process, or
/// with [`Options::data_dir`](crate::Options::data_dir) the one that is kept in a directory, which
/// is made if it is not there. What a call or statement was answered is on disk then. The last
/// handle that goes closes the database; a handle is cheap to clone.
///
/// ```
/// use kiln::{Database, Options};
/// # fn main() -> kiln::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("kiln-guide-{}", std::process::id()));
/// let options = Options::new().workers(1).data_dir(Some(directory.clone()));
/// let database = Database::open(options.clone())?;
/// database.execute("CREATE TABLE seats (event INTEGER PRIMARY KEY, free INTEGER NOT NULL)")?;
/// database.execute("INSERT INTO seats VALUES (1, 500)")?;
/// drop(database);
///
/// let database = Database::open(options)?;
/// let free = database.query("SELECT free FROM seats WHERE event = $1", (1,))?;
/// assert_eq!(free.into_one::<(i32,)>()?, (500,));
/// # drop(database);
/// # std::fs::remove_dir_all(directory).expect("it is there");
/// # Ok(())
/// # }
/// ```
pub mod open {}

/// Procedures, and the three ways in which a call ends.
///
/// A call is a serializable transaction. The engine runs it again after a conflict, so a caller
/// never has to: it is *committed*, *rejected* by what the procedure raised, or *expired*, when its
/// deadline has passed. [`Database::submit`](crate::Database::submit) does not wait for the end, and
/// [`Call::deadline`](crate::Call::deadline) limits it.
///
/// ```
/// use std::time::Duration;
///
/// use kiln::{Call, Database, Options, Reply};
/// # fn main() -> kiln::Result<()> {
/// let database = Database::open(Options::new().workers(1))?;
/// database.execute(
///     "CREATE TABLE seats (event INTEGER PRIMARY KEY, free INTEGER NOT NULL);
///      INSERT INTO seats VALUES (1, 1);
///      CREATE PROCEDURE book(which INTEGER, OUT remaining INTEGER) LANGUAGE plpgsql AS $$
///      BEGIN
///          UPDATE seats SET free = free - 1 WHERE event = which RETURNING free INTO remaining;
///          IF remaining < 0 THEN
///              RAISE EXCEPTION 'sold out' USING ERRCODE = 'P0002';
///          END IF;
///      END $$;",
/// )?;
/// match database.call("book", (1,))? {
///     Reply::Committed(rows) => assert_eq!(rows.typed::<(i32,)>()?, [(0,)]),
///     Reply::Rejected(error) => panic!("{error}"),
///     Reply::Expired => unreachable!("it has no deadline"),
/// }
/// let call = Call::new("book", (1,)).deadline(Duration::from_secs(1));
/// let ticket = database.submit(call).expect("there is room");
/// assert!(matches!(ticket.wait()?, Reply::Rejected(error) if error.message() == "sold out"));
/// # Ok(())
/// # }
/// ```
pub mod call {}

/// The logic of a transaction in Rust.
///
/// [`Database::transaction`](crate::Database::transaction) runs a closure as one transaction, again
/// after a conflict, with the guarantees of a procedure. So it must have no effects but its own
/// result. An error that it returns rolls the transaction back.
///
/// ```
/// use kiln::{Database, Options};
/// # fn main() -> kiln::Result<()> {
/// let database = Database::open(Options::new().workers(1))?;
/// database.execute(
///     "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL);
///      INSERT INTO account VALUES (1, 100), (2, 50);",
/// )?;
/// let moved = database.transaction(|transaction| {
///     let from = transaction.get("account", (1,))?.expect("it is there");
///     let amount = from.get::<i64>("balance")?.min(30);
///     let to = transaction.get("account", (2,))?.expect("it is there");
///     let (less, more) = (from.get::<i64>("balance")? - amount, to.get::<i64>("balance")? + amount);
///     transaction.update("account", (1,), &[("balance", less.into())])?;
///     transaction.update("account", (2,), &[("balance", more.into())])?;
///     Ok(amount)
/// })?;
/// assert_eq!(moved, 30);
/// # Ok(())
/// # }
/// ```
pub mod transaction {}

/// Transactions of several statements, and prepared ones.
///
/// A [`Session`](crate::Session) is a client's: it has settings, prepared statements, and a block
/// between BEGIN and COMMIT. The engine runs a block again after a conflict as long as that changes
/// nothing that its client has seen; else it ends with 40001, and the client begins anew.
///
/// ```
/// use kiln::{Database, Options, Value};
/// # fn main() -> kiln::Result<()> {
/// let database = Database::open(Options::new().workers(1))?;
/// let mut session = database.session()?;
/// session.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL)")?;
///
/// let insert = session.parse("INSERT INTO item VALUES ($1, $2)", &[])?;
/// session.execute("BEGIN")?;
/// for id in 1..=3 {
///     let mut portal = session.bind(&insert, &[Value::Integer(id), Value::Integer(10)])?;
///     session.execute_portal(&mut portal, 0)?;
/// }
/// session.execute("SAVEPOINT before; DELETE FROM item; ROLLBACK TO before; COMMIT")?;
/// let rows = database.query("SELECT count(*) FROM item", ())?;
/// assert_eq!(rows.into_one::<(i64,)>()?, (3,));
/// # Ok(())
/// # }
/// ```
pub mod session {}

/// What a program finds in an error.
///
/// An [`Error`](crate::Error) has PostgreSQL's [`SqlState`](crate::SqlState), which programs decide
/// by, and for people a message, often a detail and a hint.
///
/// ```
/// use kiln::{Database, Options, SqlState};
/// # fn main() -> kiln::Result<()> {
/// let database = Database::open(Options::new().workers(1))?;
/// database.execute("CREATE TABLE seats (event INTEGER PRIMARY KEY, free INTEGER CHECK (free >= 0))")?;
/// database.execute("INSERT INTO seats VALUES (1, 0)")?;
///
/// let error = database.execute("UPDATE seats SET free = free - 1").expect_err("it is sold out");
/// assert_eq!(error.state(), SqlState::CHECK_VIOLATION);
/// assert_eq!(error.state().to_string(), "23514");
///
/// let error = database.execute("SELECT fre FROM seats").expect_err("there is no such column");
/// assert_eq!(error.message(), "column \"fre\" does not exist");
/// # Ok(())
/// # }
/// ```
pub mod errors {}

/// Workers, the protocol, and settings by name.
///
/// [`Options`](crate::Options) are what a database is opened with. Settings of PostgreSQL's kind
/// (`statement_timeout`, `search_path`, …) belong to a session and are SET there.
///
/// ```
/// use kiln::{Database, Options, Protocol};
/// # fn main() -> kiln::Result<()> {
/// let options = Options::new().workers(2).pin_workers(false).protocol(Protocol::Vll);
/// let database = Database::open(options)?;
/// assert_eq!(database.engine().protocol().to_string(), "vll");
///
/// let mut session = database.session()?;
/// session.execute("SET statement_timeout = '2s'")?;
/// let shown = session.execute("SHOW statement_timeout")?;
/// assert_eq!(shown.len(), 1);
/// # Ok(())
/// # }
/// ```
pub mod options {}
