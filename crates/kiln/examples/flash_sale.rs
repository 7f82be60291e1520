//! A flash sale: thousands of buyers at once want the last pieces of one item, so that every
//! transaction writes the same row. Each order gets a definite answer, and exactly as many are
//! accepted as there are pieces.
//!
//! `cargo run --release --example flash_sale`

use std::time::Duration;

use kiln::{Call, Database, IdempotencyKey, Options, Reply, Result, SqlState, SubmitError};

const PIECES: i32 = 1_000;
const BUYERS: i32 = 5_000;

const SCHEMA: &str = "
    CREATE TABLE item (
        id     INTEGER PRIMARY KEY,
        name   VARCHAR(40) NOT NULL,
        pieces INTEGER NOT NULL CHECK (pieces >= 0)
    );
    CREATE TABLE purchase (
        buyer INTEGER PRIMARY KEY,
        item  INTEGER NOT NULL REFERENCES item (id)
    );

    -- One piece for each buyer, while there are any; returns how many are left.
    CREATE PROCEDURE buy(buyer_id INTEGER, item_id INTEGER, OUT remaining INTEGER)
    LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE item SET pieces = pieces - 1 WHERE id = item_id AND pieces > 0
            RETURNING pieces INTO remaining;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'sold out';
        END IF;
        INSERT INTO purchase VALUES (buyer_id, item_id);
    END
    $$;";

/// An order: it has two seconds, and counts once however often it is sent.
fn order(buyer: i32) -> Result<Call> {
    let key = IdempotencyKey::new(format!("buyer {buyer}"))?;
    Ok(Call::new("buy", (buyer, 1))
        .deadline(Duration::from_secs(2))
        .idempotency_key(key))
}

pub(crate) fn main() -> Result<()> {
    let database = Database::open(Options::new())?;
    database.execute(SCHEMA)?;
    database.query(
        "INSERT INTO item VALUES (1, 'the last of their kind', $1)",
        (PIECES,),
    )?;

    let (mut bought, mut sold_out, mut expired) = (0, 0, 0);
    let mut waiting = std::collections::VecDeque::new();
    let mut count = |result: Result<Reply>| -> Result<()> {
        match result? {
            Reply::Committed(_) => bought += 1,
            Reply::Rejected(error) if error.state() == SqlState::RAISE_EXCEPTION => sold_out += 1,
            Reply::Rejected(error) => return Err(error),
            Reply::Expired => expired += 1,
        }
        Ok(())
    };
    for buyer in 0..BUYERS {
        loop {
            match database.submit(order(buyer)?) {
                Ok(ticket) => {
                    waiting.push_back(ticket);
                    break;
                }
                // All inboxes are full: hear how an earlier order ended, then try again.
                Err(SubmitError::Overloaded) => {
                    if let Some(ticket) = waiting.pop_front() {
                        count(ticket.wait())?;
                    }
                }
                Err(refused) => return Err(refused.into()),
            }
        }
    }
    for ticket in waiting {
        count(ticket.wait())?;
    }
    println!("{bought} bought, {sold_out} came too late, {expired} gave up waiting");

    // An impatient buyer sends an order again: the answer is the first one's.
    let again = database.submit(order(0)?)?.wait()?;
    assert!(
        !matches!(again, Reply::Expired),
        "the first order is long over"
    );

    let (left, purchases) = database
        .query(
            "SELECT pieces, (SELECT count(*) FROM purchase) FROM item WHERE id = 1",
            (),
        )?
        .into_one::<(i32, i64)>()?;
    println!("{left} pieces left, {purchases} purchases on record");
    assert_eq!(
        i64::from(PIECES - left),
        purchases,
        "as many purchases as pieces gone"
    );
    assert_eq!(purchases, bought, "each buyer was told the truth");
    assert_eq!(bought + sold_out + expired, i64::from(BUYERS));
    Ok(())
}
