//! A bank transfer, written three ways: as a stored procedure, as a Rust closure, and as a
//! transaction block of SQL statements.
//!
//! `cargo run --release --example bank_transfer`

use kiln::{Database, Decimal, Error, Options, Reply, Result, SqlState};

const SCHEMA: &str = "
    CREATE TABLE account (
        id      INTEGER PRIMARY KEY,
        owner   VARCHAR(40) NOT NULL,
        balance NUMERIC(12, 2) NOT NULL CHECK (balance >= 0)
    );
    INSERT INTO account VALUES (1, 'Ada', 100), (2, 'Grace', 50), (3, 'Edsger', 0);

    CREATE PROCEDURE transfer(source INTEGER, target INTEGER, amount NUMERIC)
    LANGUAGE plpgsql AS $$
    BEGIN
        IF amount <= 0 THEN
            RAISE EXCEPTION 'an amount must be positive, not %', amount;
        END IF;
        UPDATE account SET balance = balance - amount WHERE id = source;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no account %', source USING ERRCODE = 'no_data_found';
        END IF;
        UPDATE account SET balance = balance + amount WHERE id = target;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no account %', target USING ERRCODE = 'no_data_found';
        END IF;
    END
    $$;";

fn money(text: &str) -> Result<Decimal> {
    text.parse()
}

/// Prints the accounts, and checks that no money was made or lost.
fn show(database: &Database) -> Result<()> {
    let accounts = database.query("SELECT owner, balance FROM account ORDER BY id", ())?;
    let accounts = accounts.into_rows::<(String, Decimal)>()?;
    let line: Vec<String> = accounts
        .iter()
        .map(|(owner, balance)| format!("{owner} has {balance}"))
        .collect();
    println!("  {}", line.join(", "));
    let sum = database
        .query("SELECT sum(balance) FROM account", ())?
        .into_one::<(Decimal,)>()?;
    assert_eq!(sum.0, money("150.00")?, "money was made or lost");
    Ok(())
}

/// The transfer as a closure. After a conflict with another transaction it runs again, so it does
/// nothing but through `transaction`.
fn transfer_in_rust(database: &Database, source: i32, target: i32, amount: &str) -> Result<()> {
    let amount = money(amount)?;
    database.transaction(|transaction| {
        let mut change = |id: i32, amount: Decimal| {
            let row = transaction.get("account", (id,))?.ok_or_else(|| {
                Error::new(SqlState::NO_DATA_FOUND, format!("there is no account {id}"))
            })?;
            let balance = row.get::<Decimal>("balance")?.try_add(amount)?;
            transaction.update("account", (id,), &[("balance", balance.into())])
        };
        change(source, -amount)?;
        change(target, amount)?;
        Ok(())
    })
}

pub(crate) fn main() -> Result<()> {
    let database = Database::open(Options::new())?;
    database.execute(SCHEMA)?;
    show(&database)?;

    println!("Ada pays Grace 30 by a procedure:");
    let reply = database.call("transfer", (1, 2, money("30")?))?;
    assert!(reply.is_committed(), "{reply:?}");
    show(&database)?;

    println!("Ada cannot pay 500:");
    match database.call("transfer", (1, 2, money("500")?))? {
        Reply::Rejected(error) => {
            println!("  {error}");
            assert_eq!(error.state(), SqlState::CHECK_VIOLATION);
        }
        reply => panic!("a call without cover ended as {reply:?}"),
    }
    show(&database)?;

    println!("Grace pays Edsger 25.50 by a closure:");
    transfer_in_rust(&database, 2, 3, "25.50")?;
    show(&database)?;
    let error = transfer_in_rust(&database, 2, 9, "1").expect_err("there is no account 9");
    println!("  {error}");
    show(&database)?;

    println!("Edsger gives 5 back, statement by statement:");
    let mut session = database.session()?;
    session.execute(
        "BEGIN;
         UPDATE account SET balance = balance - 5 WHERE owner = 'Edsger';
         UPDATE account SET balance = balance + 5 WHERE owner = 'Grace';
         COMMIT;",
    )?;
    show(&database)
}
