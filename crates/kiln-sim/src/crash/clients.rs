//! Clients: threads that change the database in all the ways there are, and note what they are
//! told.

use std::time::Duration;

use kiln_engine::{Call, Completion, Completions, Reply, SubmitError};
use kiln_platform::random::Random;
use kiln_platform::sim::disk::Disk;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_sql::{Database, Error, Session, SqlState, Value};

use super::definitions;
use super::ledger::{Fact, Noted};
use super::schema::{ACCOUNTS, BADGES, BALANCE, COUNTERS, OWNERS, SLOTS, body};

/// How a client speaks to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A session with statements alone and in blocks.
    Session,
    /// Submitted calls and their tickets.
    Tickets,
    /// Submitted calls, several at a time, in a queue of completions.
    Completions,
    /// Rust closures.
    Closures,
    /// Changes of the catalog, from this step on.
    Definitions(u64),
    /// Checkpoints.
    Checkpoints,
}

/// Why a client ends before its time.
pub(super) enum End {
    /// The disk has no power, or has failed the database, where that may be.
    Disk,
    /// What must not be.
    Wrong(String),
}

/// One client.
pub(super) struct Client<'a> {
    pub(super) database: &'a Database,
    pub(super) disk: &'a Disk,
    pub(super) random: Random,
    /// The next transaction's.
    pub(super) token: i64,
    pub(super) noted: Vec<Noted>,
    /// Whether the disk may fail.
    pub(super) may_fail: bool,
    /// Whether what it is told is promised to survive.
    pub(super) is_promised: bool,
}

/// A transaction.
#[derive(Clone, Debug)]
enum Deed {
    Append {
        counter: i64,
        token: i64,
    },
    Pay {
        token: i64,
        payer: i64,
        payee: i64,
        amount: i64,
    },
    Exchange {
        one: i64,
        other: i64,
    },
    Hop {
        who: i64,
        target: i64,
    },
    Leave {
        who: i64,
    },
    Arrive {
        who: i64,
        target: i64,
    },
    Renew {
        who: i64,
    },
    Look {
        counter: i64,
    },
}

impl Deed {
    /// The function that does it, and its arguments.
    fn call(&self) -> (&'static str, Vec<Value>) {
        let number = |number: i64| Value::Integer(number as i32);
        match *self {
            Deed::Append { counter, token } => {
                let text = body(token);
                (
                    "append",
                    vec![
                        number(counter),
                        Value::BigInt(token),
                        Value::from(text.as_str()),
                    ],
                )
            }
            Deed::Pay {
                token,
                payer,
                payee,
                amount,
            } => (
                "pay",
                vec![
                    Value::BigInt(token),
                    number(payer),
                    number(payee),
                    Value::BigInt(amount),
                ],
            ),
            Deed::Exchange { one, other } => ("exchange", vec![number(one), number(other)]),
            Deed::Hop { who, target } => ("hop", vec![number(who), number(target)]),
            Deed::Leave { who } => ("leave", vec![number(who)]),
            Deed::Arrive { who, target } => ("arrive", vec![number(who), number(target)]),
            Deed::Renew { who } => ("renew", vec![number(who)]),
            Deed::Look { counter } => ("look", vec![number(counter)]),
        }
    }

    /// The query that does it, with its parameters.
    fn query(&self) -> (String, Vec<Value>) {
        let (name, arguments) = self.call();
        let places: Vec<String> = (1..=arguments.len())
            .map(|place| format!("${place}"))
            .collect();
        (format!("SELECT {name}({})", places.join(", ")), arguments)
    }

    /// What is known when it has returned `answer`.
    fn told(&self, answer: Option<i64>) -> Vec<Fact> {
        let Some(answer) = answer else {
            return Vec::new();
        };
        match *self {
            Deed::Append { counter, token } => vec![Fact::Entry(counter, answer, token)],
            Deed::Pay { token, payer, .. } => {
                vec![Fact::Transfer(token, None), Fact::Account(payer, answer)]
            }
            Deed::Exchange { one, .. } => vec![Fact::Badge(one, answer)],
            Deed::Hop { who, .. }
            | Deed::Leave { who }
            | Deed::Arrive { who, .. }
            | Deed::Renew { who } => {
                vec![Fact::Owner(who, answer)]
            }
            Deed::Look { counter } => vec![Fact::Counter(counter, answer)],
        }
    }

    /// What is known when it was rejected: which version of the account it has met.
    fn rejected(&self, error: &Error) -> Vec<Fact> {
        let met = error
            .message()
            .strip_prefix("short at ")
            .and_then(|it| it.parse().ok());
        match (self, met) {
            (Deed::Pay { payer, .. }, Some(version)) => vec![Fact::Account(*payer, version)],
            _ => Vec::new(),
        }
    }

    fn token(&self) -> Option<i64> {
        match *self {
            Deed::Append { token, .. } | Deed::Pay { token, .. } => Some(token),
            _ => None,
        }
    }
}

/// The number in the only row.
fn answer(rows: &[Vec<Value>]) -> Result<Option<i64>, End> {
    match rows {
        [row] => match row.as_slice() {
            [Value::BigInt(number)] => Ok(Some(*number)),
            [Value::Null] => Ok(None),
            other => Err(End::Wrong(format!("a function returned {other:?}"))),
        },
        other => Err(End::Wrong(format!(
            "a function returned {} rows",
            other.len()
        ))),
    }
}

/// Errors that procedures raise, or that constraints do.
fn is_rejection(error: &Error) -> bool {
    [SqlState::RAISE_EXCEPTION, SqlState::UNIQUE_VIOLATION].contains(&error.state())
}

impl Client<'_> {
    fn note(&mut self, facts: impl IntoIterator<Item = Fact>) {
        // What comes after the power has gone was not told to anybody.
        if self.disk.is_off() {
            return;
        }
        let at = self.disk.filmed();
        for fact in facts {
            if self.is_promised || matches!(fact, Fact::Begun(_)) {
                self.noted.push(Noted { at, fact });
            }
        }
    }

    /// Makes so many transactions.
    pub(super) fn work(mut self, style: Style, deeds: usize) -> (Vec<Noted>, Result<(), End>) {
        let result = match style {
            Style::Session => self.in_session(deeds),
            Style::Tickets => self.with_tickets(deeds),
            Style::Completions => self.with_completions(deeds),
            Style::Closures => self.in_closures(deeds),
            Style::Definitions(step) => self.define(step, deeds),
            Style::Checkpoints => self.checkpoint(deeds),
        };
        (self.noted, result)
    }

    fn draw(&mut self) -> Deed {
        let random = &mut self.random;
        let counter = random.between(1, COUNTERS);
        let who = random.between(1, OWNERS);
        let target = random.between(1, SLOTS);
        let token = self.token;
        self.token += 1;
        let deed = match random.below(16) {
            0..5 => Deed::Append { counter, token },
            5..9 => {
                let payer = random.between(1, ACCOUNTS);
                let payee = (payer + random.between(0, ACCOUNTS - 2)) % ACCOUNTS + 1;
                Deed::Pay {
                    token,
                    payer,
                    payee,
                    amount: random.between(1, 70),
                }
            }
            9 => {
                let one = random.between(1, BADGES);
                Deed::Exchange {
                    one,
                    other: one % BADGES + 1,
                }
            }
            10 | 11 => Deed::Hop { who, target },
            12 => Deed::Leave { who },
            13 => Deed::Arrive { who, target },
            14 => Deed::Renew { who },
            _ => Deed::Look { counter },
        };
        if let Some(token) = deed.token() {
            self.note([Fact::Begun(token)]);
        }
        deed
    }

    /// An error that ends the client, or none for what may be.
    fn end_unless_rejected(&mut self, deed: &Deed, error: Error) -> Result<(), End> {
        if is_rejection(&error) {
            self.note(deed.rejected(&error));
            return Ok(());
        }
        self.end(error)
    }

    fn end(&self, error: Error) -> Result<(), End> {
        let is_of_disk = [SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&error.state());
        match is_of_disk && (self.may_fail || self.disk.is_off()) {
            true => Err(End::Disk),
            false => Err(End::Wrong(format!("a client got the error {error:#}"))),
        }
    }

    fn in_session(&mut self, deeds: usize) -> Result<(), End> {
        let mut session = match self.database.session() {
            Ok(session) => session,
            Err(error) => return self.end(error),
        };
        if self.random.below(4) == 0 {
            match session.execute("SET synchronous_commit = off") {
                Ok(_) => self.is_promised = false,
                Err(error) => return self.end(error),
            }
        }
        for _ in 0..deeds {
            match self.random.below(6) {
                0..3 => {
                    let deed = self.draw();
                    let (query, parameters) = deed.query();
                    match session.query(&query, parameters) {
                        Ok(found) => {
                            let facts = deed.told(answer(&found.rows)?);
                            self.note(facts);
                        }
                        Err(error) => self.end_unless_rejected(&deed, error)?,
                    }
                }
                3 => self.audit(&mut session)?,
                _ => self.in_block(&mut session)?,
            }
        }
        Ok(())
    }

    /// Reads all accounts in one statement: all is paid from one to another.
    fn audit(&mut self, session: &mut Session) -> Result<(), End> {
        let found = session.query("SELECT id, balance, version FROM account", ());
        let found = found.and_then(|found| found.into_rows::<(i64, i64, i64)>());
        match found {
            Ok(rows) => {
                let sum: i64 = rows.iter().map(|(_, balance, _)| balance).sum();
                if sum != ACCOUNTS * BALANCE {
                    return Err(End::Wrong(format!(
                        "accounts have {sum} together: {rows:?}"
                    )));
                }
                self.note(
                    rows.iter()
                        .map(|(id, _, version)| Fact::Account(*id, *version)),
                );
                Ok(())
            }
            Err(error) => self.end(error),
        }
    }

    /// Two transactions in a block, with what they say known when the block has committed.
    fn in_block(&mut self, session: &mut Session) -> Result<(), End> {
        let (first, second) = (self.draw(), self.draw());
        let mut facts = Vec::new();
        let run = |session: &mut Session, facts: &mut Vec<Fact>| {
            session.execute("BEGIN")?;
            for deed in [&first, &second] {
                let (query, parameters) = deed.query();
                let found = session.query(&query, parameters)?;
                facts.extend(deed.told(answer(&found.rows).unwrap_or(None)));
            }
            session.execute("COMMIT")
        };
        match run(session, &mut facts) {
            Ok(results) => {
                if results.iter().all(|result| result.tag == "COMMIT") {
                    self.note(facts);
                }
                Ok(())
            }
            Err(error) => {
                session.roll_back();
                let may_be = [SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED];
                match may_be.contains(&error.state()) || is_rejection(&error) {
                    true => Ok(()),
                    false => self.end(error),
                }
            }
        }
    }

    fn with_tickets(&mut self, deeds: usize) -> Result<(), End> {
        for _ in 0..deeds {
            let deed = match self.random.below(3) {
                // Readers are told what others have done.
                0 => Deed::Look {
                    counter: self.random.between(1, COUNTERS),
                },
                _ => self.draw(),
            };
            let (name, arguments) = deed.call();
            let reply = match self.database.submit(Call::new(name, arguments)) {
                Ok(ticket) => ticket.wait(),
                Err(SubmitError::Overloaded) => continue,
                Err(error) => Err(Error::from(error)),
            };
            self.told(&deed, reply)?;
        }
        Ok(())
    }

    fn told(&mut self, deed: &Deed, reply: kiln_sql::Result<Reply>) -> Result<(), End> {
        match reply {
            Ok(Reply::Committed(rows)) => {
                let facts = deed.told(answer(rows.values())?);
                self.note(facts);
                Ok(())
            }
            Ok(Reply::Rejected(error)) | Err(error) => self.end_unless_rejected(deed, error),
            Ok(Reply::Expired) => Err(End::Wrong("a call without deadline has expired".to_owned())),
        }
    }

    fn with_completions(&mut self, deeds: usize) -> Result<(), End> {
        let completions: Arc<Completions> = Completions::new(8);
        let mut under_way: Vec<Option<Deed>> = Vec::new();
        let mut arrived: Vec<Completion> = Vec::new();
        let mut result = Ok(());
        loop {
            while result.is_ok() && under_way.len() < deeds && completions.outstanding() < 3 {
                let deed = self.draw();
                let (name, arguments) = deed.call();
                let token = under_way.len() as u64;
                match self
                    .database
                    .submit_to(Call::new(name, arguments), &completions, token)
                {
                    Ok(()) => under_way.push(Some(deed)),
                    Err(refused) => {
                        under_way.push(None);
                        if !matches!(refused.error, SubmitError::Overloaded) {
                            result = self.end(Error::from(refused.error));
                        }
                    }
                }
            }
            if completions.outstanding() == 0 {
                return result;
            }
            completions.wait(&mut arrived, Duration::from_millis(50));
            for completion in arrived.drain(..) {
                let deed = under_way[completion.token as usize].take();
                let deed = deed.expect("a call ends once");
                let told = self.told(&deed, completion.result);
                result = result.and(told);
            }
        }
    }

    fn in_closures(&mut self, deeds: usize) -> Result<(), End> {
        for _ in 0..deeds {
            let deed = self.draw();
            let (query, parameters) = deed.query();
            let other = Deed::Look {
                counter: self.random.between(1, COUNTERS),
            };
            let reads = self.random.below(2) == 0;
            let done = self.database.transaction(|transaction| {
                let mut facts = Vec::new();
                if reads {
                    let (query, parameters) = other.query();
                    let found = transaction.query(&query, parameters)?;
                    facts.extend(other.told(answer(&found.rows).unwrap_or(None)));
                }
                let found = transaction.query(&query, parameters.clone())?;
                facts.extend(deed.told(answer(&found.rows).unwrap_or(None)));
                Ok(facts)
            });
            match done {
                Ok(facts) => self.note(facts),
                Err(error) => self.end_unless_rejected(&deed, error)?,
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, deeds: usize) -> Result<(), End> {
        for _ in 0..1 + deeds / 4 {
            thread::sleep(self.random.between(1, 400) as u64 * 1_000);
            if let Err(error) = self.database.engine().checkpoint() {
                self.end(error)?;
            }
        }
        Ok(())
    }

    fn define(&mut self, from: u64, deeds: usize) -> Result<(), End> {
        let mut session = match self.database.session() {
            Ok(session) => session,
            Err(error) => return self.end(error),
        };
        for step in from..from + deeds as u64 {
            self.note([Fact::StepBegun(step)]);
            match session.execute(&definitions::statement(step)) {
                Ok(_) => self.note([Fact::Step(step)]),
                Err(error) => return self.end(error),
            }
        }
        Ok(())
    }
}
