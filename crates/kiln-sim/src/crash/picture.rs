//! What a database holds, read through all its indexes.

use std::collections::{BTreeMap, BTreeSet};

use kiln_sql::{Database, Error, FromRow, Result, SqlState};

use super::definitions::{Made, MadeTable};
use super::schema::{ACCOUNTS, BADGES, BALANCE, COUNTERS, OWNERS, STATEMENTS, body};

/// A transfer: payer and its version, payee and its version, amount.
pub(super) type Transfer = (i64, i64, i64, i64, i64);

/// All rows of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Picture {
    /// How many of the statements of the schema have been run.
    pub(super) statements: usize,
    /// Counters by id.
    pub(super) counters: BTreeMap<i64, i64>,
    /// Tokens of entries by counter and number.
    pub(super) entries: BTreeMap<(i64, i64), i64>,
    /// Lines: token, counter, number.
    pub(super) lines: Vec<(i64, i64, i64)>,
    /// Accounts by id: balance and version.
    pub(super) accounts: BTreeMap<i64, (i64, i64)>,
    /// Transfers by token.
    pub(super) transfers: BTreeMap<i64, Transfer>,
    /// Badges by id: name and version.
    pub(super) badges: BTreeMap<i64, (String, i64)>,
    /// Movers by owner: slot, 0 for one that is coming, and hops.
    pub(super) owners: BTreeMap<i64, (i64, i64)>,
    /// What the client has made that changes the catalog.
    pub(super) made: Made,
}

fn rows<T: FromRow>(database: &Database, query: &str) -> Result<Vec<T>> {
    database.query(query, ())?.into_rows()
}

fn wrong(message: String) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, message)
}

/// The words `CREATE TABLE name` and `CREATE FUNCTION name` of a statement, as kind and name.
fn created(statement: &str) -> Option<(&str, &str)> {
    let mut words = statement.split([' ', '(']);
    match words.next()? {
        "CREATE" => Some((words.next()?, words.next()?)),
        _ => None,
    }
}

/// How many statements of the schema have been run; some first ones have, and no others.
fn statements_run(database: &Database) -> Result<usize> {
    let catalog = database.engine().catalog();
    let mut run = 0;
    for (position, statement) in STATEMENTS.iter().enumerate() {
        let is_there = match created(statement) {
            Some(("TABLE", name)) => catalog.table(name).is_some(),
            Some(("FUNCTION", name)) => catalog.require_procedure(name).is_ok(),
            Some((_, name)) => catalog.tables().any(|(_, table)| {
                let mut indexes = table.indexes().iter();
                indexes.any(|index| index.definition().name == name)
            }),
            None => {
                let table = statement.split(' ').nth(2).unwrap_or_default();
                catalog.table(table).is_some()
                    && !database
                        .query(&format!("SELECT * FROM {table}"), ())?
                        .is_empty()
            }
        };
        match is_there {
            // Owners may all have left the table of movers.
            false
                if statement.starts_with("INSERT INTO mover")
                    && catalog.table("coming").is_some() => {}
            false => continue,
            true => {}
        }
        if run != position {
            return Err(wrong(format!(
                "there is what statement {position} has made, but not statement {run}"
            )));
        }
        run += 1;
    }
    Ok(run)
}

impl Picture {
    /// Reads all.
    ///
    /// # Errors
    /// Those of the queries; XX001 for rows that cannot be.
    pub(super) fn read(database: &Database) -> Result<Picture> {
        let mut picture = Picture {
            statements: statements_run(database)?,
            made: made(database)?,
            ..Picture::default()
        };
        if picture.statements < STATEMENTS.len() {
            return Ok(picture);
        }
        picture.counters = rows(database, "SELECT id, n FROM counter")?
            .into_iter()
            .collect();
        let entries: Vec<(i64, i64, i64, String)> =
            rows(database, "SELECT counter, n, token, body FROM entry")?;
        for (counter, n, token, text) in entries {
            if text != body(token) {
                return Err(wrong(format!(
                    "entry {n} of counter {counter} has another text than token {token}"
                )));
            }
            picture.entries.insert((counter, n), token);
        }
        picture.lines = rows(database, "SELECT token, counter, n FROM line")?;
        picture.lines.sort_unstable();
        let accounts: Vec<(i64, i64, i64)> =
            rows(database, "SELECT id, balance, version FROM account")?;
        picture.accounts = accounts
            .into_iter()
            .map(|(id, b, v)| (id, (b, v)))
            .collect();
        let transfers: Vec<(i64, i64, i64, i64, i64, i64)> = rows(
            database,
            "SELECT token, payer, payer_version, payee, payee_version, amount FROM transfer",
        )?;
        picture.transfers = transfers
            .into_iter()
            .map(|(t, a, b, c, d, e)| (t, (a, b, c, d, e)))
            .collect();
        let badges: Vec<(i64, Option<String>, i64)> =
            rows(database, "SELECT id, name, version FROM badge")?;
        for (id, name, version) in badges {
            let name = name.ok_or_else(|| wrong(format!("badge {id} has no name")))?;
            picture.badges.insert(id, (name, version));
        }
        let movers: Vec<(i64, i64, i64)> = rows(database, "SELECT owner, slot, hops FROM mover")?;
        let coming: Vec<(i64, i64)> = rows(database, "SELECT owner, hops FROM coming")?;
        let coming = coming.into_iter().map(|(owner, hops)| (owner, 0, hops));
        for (owner, slot, hops) in movers.into_iter().chain(coming) {
            if picture.owners.insert(owner, (slot, hops)).is_some() {
                return Err(wrong(format!("owner {owner} is there twice")));
            }
        }
        // The same number with another row means that a sequence has given it twice.
        let stamps: Vec<(i64, i64, i64)> = rows(database, "SELECT number, owner, hops FROM stamp")?;
        let mut numbers = BTreeSet::new();
        for (number, owner, hops) in stamps {
            if number < 1 || !numbers.insert(number) {
                return Err(wrong(format!(
                    "stamp {number} of owner {owner} at hop {hops} has a number that was given before"
                )));
            }
        }
        picture.check_indexes(database)?;
        Ok(picture)
    }

    /// Each row is found by each of its keys, and nothing else is.
    fn check_indexes(&self, database: &Database) -> Result<()> {
        database.transaction(|transaction| {
            let mut find = |table: &str,
                            index: Option<&str>,
                            columns: &[&str]|
             -> Result<BTreeSet<Vec<String>>> {
                let found = transaction.scan(table, index, &kiln_engine::ScanRange::all())?;
                let text = |row: &kiln_engine::Row| {
                    let values = columns.iter().map(|column| {
                        row.get::<String>(column)
                            .or_else(|_| row.get::<i64>(column).map(|it| it.to_string()))
                    });
                    values.collect::<Result<Vec<String>>>()
                };
                found.iter().map(text).collect()
            };
            let mut compare = |table: &str, indexes: &[&str], columns: &[&str]| -> Result<()> {
                let first = find(table, None, columns)?;
                for index in indexes {
                    if find(table, Some(index), columns)? != first {
                        return Err(wrong(format!(
                            "index {index} and table {table} have not the same rows"
                        )));
                    }
                }
                Ok(())
            };
            compare("entry", &["entry_token_key"], &["counter", "n", "token"])?;
            compare(
                "account",
                &["account_balance"],
                &["id", "balance", "version"],
            )?;
            compare("badge", &["badge_name_key"], &["id", "name", "version"])?;
            compare("mover", &["mover_owner_key"], &["slot", "owner", "hops"])?;
            for (table, made) in &self.made.tables {
                let indexes: Vec<&str> = made.indexes.iter().map(String::as_str).collect();
                if !indexes.is_empty() && table.ends_with(['0', '2', '4', '6', '8']) {
                    compare(table, &indexes, &["id", "v", "t"])?;
                }
            }
            Ok(())
        })?;
        // Through the index that has no unique keys, and through equality: look-ups may take hash
        // indexes.
        for (token, counter, n) in &self.lines {
            let found: Vec<(i64, i64)> = database
                .query("SELECT counter, n FROM line WHERE token = $1", (*token,))?
                .into_rows()?;
            if found != [(*counter, *n)] {
                return Err(wrong(format!("line {token} is found as {found:?}")));
            }
            let found: Vec<(i64,)> = database
                .query(
                    "SELECT token FROM entry WHERE counter = $1 AND n = $2",
                    (*counter, *n),
                )?
                .into_rows()?;
            if found != [(*token,)] {
                return Err(wrong(format!(
                    "entry {n} of {counter} is found as {found:?}"
                )));
            }
        }
        for (id, (name, _)) in &self.badges {
            let found: Vec<(i64,)> = database
                .query("SELECT id FROM badge WHERE name = $1", (name.as_str(),))?
                .into_rows()?;
            if found != [(*id,)] {
                return Err(wrong(format!(
                    "{name} is found as badge {found:?}, and is {id}"
                )));
            }
        }
        Ok(())
    }

    /// What is there can have come about by transactions one after the other.
    ///
    /// # Errors
    /// What cannot.
    pub(super) fn check_closed(&self) -> std::result::Result<(), String> {
        if self.statements < STATEMENTS.len() {
            return Ok(());
        }
        let check = |is_so: bool, message: &dyn Fn() -> String| match is_so {
            true => Ok(()),
            false => Err(message()),
        };
        for counter in 1..=COUNTERS {
            let numbers: Vec<i64> = self
                .entries
                .keys()
                .filter(|(of, _)| *of == counter)
                .map(|(_, n)| *n)
                .collect();
            let count = self.counters.get(&counter).copied().unwrap_or(-1);
            let expected: Vec<i64> = (1..=count).collect();
            check(numbers == expected, &|| {
                format!("counter {counter} is {count}, and its entries are {numbers:?}")
            })?;
        }
        let all = self.counters.get(&0).copied();
        check(all == Some(self.entries.len() as i64), &|| {
            format!(
                "there are {} entries, and {all:?} were counted",
                self.entries.len()
            )
        })?;
        let mut lines: Vec<_> = self
            .entries
            .iter()
            .map(|((counter, n), token)| (*token, *counter, *n))
            .collect();
        lines.sort_unstable();
        check(lines == self.lines, &|| {
            format!("entries are {lines:?}, and lines {:?}", self.lines)
        })?;
        for account in 1..=ACCOUNTS {
            let (mut versions, mut balance) = (Vec::new(), BALANCE);
            for (payer, payer_version, payee, payee_version, amount) in self.transfers.values() {
                if *payer == account {
                    versions.push(*payer_version);
                    balance -= amount;
                }
                if *payee == account {
                    versions.push(*payee_version);
                    balance += amount;
                }
            }
            versions.sort_unstable();
            let found = self.accounts.get(&account).copied().unwrap_or((-1, -1));
            let expected: Vec<i64> = (1..=found.1).collect();
            check(versions == expected && balance == found.0, &|| {
                format!(
                    "account {account} has balance {} at version {}, and its transfers give it {balance} in versions {versions:?}",
                    found.0, found.1
                )
            })?;
        }
        let names: BTreeSet<&str> = self
            .badges
            .values()
            .map(|(name, _)| name.as_str())
            .collect();
        check(
            names.len() == BADGES as usize && self.badges.len() == names.len(),
            &|| format!("badges are {:?}", self.badges),
        )?;
        check(self.owners.len() == OWNERS as usize, &|| {
            format!("owners are {:?}", self.owners)
        })
    }
}

/// What the client has made that changes the catalog.
fn made(database: &Database) -> Result<Made> {
    let catalog = database.engine().catalog();
    let mut made = Made::default();
    for (name, table) in catalog
        .tables()
        .filter(|(name, _)| name.starts_with("extra"))
    {
        let indexes = table
            .indexes()
            .iter()
            .map(|index| index.definition().name.clone());
        let indexes =
            indexes.filter(|index| index == &format!("{name}_v") || index == &format!("{name}_t"));
        let read: Vec<(i64, i64, String)> =
            rows(database, &format!("SELECT id, v, t FROM {name}"))?;
        let table = MadeTable {
            rows: read.iter().cloned().collect(),
            indexes: indexes.collect(),
        };
        if table.rows.len() != read.len() {
            return Err(wrong(format!("table {name} has rows twice")));
        }
        for (_, v, t) in read {
            for (column, value) in [("v", v.to_string()), ("t", format!("'{t}'"))] {
                let query = format!("SELECT count(*) FROM {name} WHERE {column} = {value}");
                let (found,): (i64,) = database.query(&query, ())?.into_one()?;
                if found != 1 {
                    return Err(wrong(format!("{query} finds {found}")));
                }
            }
        }
        made.tables.insert(name.to_owned(), table);
    }
    if catalog.require_procedure("extra").is_ok() {
        let (value,): (i64,) = database.query("SELECT extra()", ())?.into_one()?;
        made.function = Some(value);
    }
    Ok(made)
}
