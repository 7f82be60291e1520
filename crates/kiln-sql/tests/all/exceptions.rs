//! EXCEPTION clauses under every protocol: a protected block that fails leaves its variables, and
//! no change.
//!
//! Procedures are made at random, of nested protected blocks, loops, changes of three tables and
//! errors, and run on a model as well, whose state is a copy that a failed block throws away.

#![cfg(not(kiln_sim))]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kiln_engine::{Configuration, Protocol};
use kiln_platform::random::Random;
use kiln_sql::{Database, Options, Reply};

/// Procedures of one run, each of which is called several times.
const PROCEDURES: usize = 12;
const CALLS: usize = 40;

const SCHEMA: &str = "
CREATE TABLE item (id INTEGER PRIMARY KEY, k INTEGER UNIQUE, v INTEGER CHECK (v < 60), s TEXT, u INTEGER UNIQUE);
CREATE INDEX item_v ON item (v);
CREATE TABLE part (item INTEGER, n INTEGER REFERENCES item (id));
CREATE TABLE bag (a INTEGER, v INTEGER);
CREATE TABLE outcome (number INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO item SELECT g, g, g, repeat('x', g * 30), g FROM generate_series(1, 6) AS g;
INSERT INTO bag SELECT g % 3, g FROM generate_series(1, 6) AS g;
INSERT INTO outcome VALUES (0, 0);
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Unique,
    Check,
    Foreign,
    Custom,
}

impl Failure {
    fn name(self) -> &'static str {
        match self {
            Failure::Unique => "unique_violation",
            Failure::Check => "check_violation",
            Failure::Foreign => "foreign_key_violation",
            Failure::Custom => "SQLSTATE 'KL001'",
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    /// `n := (n * 3 + amount) % 1000`.
    Count(i32),
    AddValue(i32, i32),
    SetKey(i32, i32),
    /// The keys of two unique indexes, of which the second may refuse.
    SetKeys(i32, i32, i32),
    SetText(i32, i32),
    Insert(i32, i32, i32),
    Delete(i32),
    InsertPart(i32, i32),
    DeletePart(i32),
    AddToBag(i32, i32),
    InsertIntoBag(i32, i32),
    DeleteFromBag(i32),
    /// Raises when `n % 3` is that.
    Raise(i32),
    /// Several iterations, of which the last leaves early when `n % 3` is that.
    Repeat(i32, i32, Vec<Action>),
    /// Handlers: what each catches, all if nothing is said, and does; whether it raises the error
    /// again.
    Protected(Vec<Action>, Vec<(Option<Failure>, Vec<Action>, bool)>),
}

#[derive(Clone, Debug, Default)]
struct State {
    item: BTreeMap<i32, (i32, i32, usize, i32)>,
    part: Vec<(i32, i32)>,
    bag: Vec<(i32, i32)>,
    /// Blocks that failed and whose error was caught, after they had changed something.
    undone: usize,
}

impl State {
    fn new() -> State {
        State {
            item: (1..=6).map(|g| (g, (g, g, g as usize * 30, g))).collect(),
            part: Vec::new(),
            bag: (1..=6).map(|g| (g % 3, g)).collect(),
            undone: 0,
        }
    }

    fn is_same(&self, other: &State) -> bool {
        let of = |state: &State| (state.item.clone(), state.part.clone(), state.bag.clone());
        of(self) == of(other)
    }

    fn has_key(&self, k: i32, but: i32) -> bool {
        let mut rows = self.item.iter();
        rows.any(|(id, row)| *id != but && row.0 == k)
    }

    fn has_other_key(&self, u: i32, but: i32) -> bool {
        let mut rows = self.item.iter();
        rows.any(|(id, row)| *id != but && row.3 == u)
    }

    /// Runs actions; `n` stays what it is when they fail.
    fn run(&mut self, actions: &[Action], n: &mut i32) -> Result<(), Failure> {
        for action in actions {
            self.act(action, n)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action, n: &mut i32) -> Result<(), Failure> {
        match action {
            Action::Count(amount) => *n = (*n * 3 + amount) % 1000,
            Action::AddValue(id, amount) => {
                if let Some(row) = self.item.get_mut(id) {
                    if row.1 + amount >= 60 {
                        return Err(Failure::Check);
                    }
                    row.1 += amount;
                }
            }
            Action::SetKey(id, k) => {
                if self.item.contains_key(id) {
                    if self.has_key(*k, *id) {
                        return Err(Failure::Unique);
                    }
                    self.item.entry(*id).and_modify(|row| row.0 = *k);
                }
            }
            Action::SetKeys(id, k, u) => {
                if self.item.contains_key(id) {
                    if self.has_key(*k, *id) || self.has_other_key(*u, *id) {
                        return Err(Failure::Unique);
                    }
                    let keys = (*k, *u);
                    let set = |row: &mut (i32, i32, usize, i32)| (row.0, row.3) = keys;
                    self.item.entry(*id).and_modify(set);
                }
            }
            Action::SetText(id, length) => {
                self.item
                    .entry(*id)
                    .and_modify(|row| row.2 = *length as usize);
            }
            Action::Insert(id, k, v) => {
                let refuses = self.has_key(*k, -1) || self.has_other_key(*k, -1);
                if refuses || self.item.contains_key(id) {
                    return Err(Failure::Unique);
                }
                self.item.insert(*id, (*k, *v, 3, *k));
            }
            Action::Delete(id) => {
                if self.item.contains_key(id) && self.part.iter().any(|(_, of)| of == id) {
                    return Err(Failure::Foreign);
                }
                self.item.remove(id);
            }
            Action::InsertPart(item, of) => {
                if !self.item.contains_key(of) {
                    return Err(Failure::Foreign);
                }
                self.part.push((*item, *of));
            }
            Action::DeletePart(item) => self.part.retain(|(of, _)| of != item),
            Action::AddToBag(a, amount) => {
                for row in self.bag.iter_mut().filter(|row| row.0 == *a) {
                    row.1 += amount;
                }
            }
            Action::InsertIntoBag(a, v) => self.bag.push((*a, *v)),
            Action::DeleteFromBag(a) => self.bag.retain(|row| row.0 != *a),
            Action::Raise(rest) if *n % 3 == *rest => return Err(Failure::Custom),
            Action::Raise(_) => {}
            Action::Repeat(iterations, rest, actions) => {
                for iteration in 1..=*iterations {
                    *n = (*n + iteration) % 1000;
                    self.run(actions, n)?;
                    if *n % 3 == *rest {
                        break;
                    }
                }
            }
            Action::Protected(actions, handlers) => {
                let before = self.clone();
                let Err(failure) = self.run(actions, n) else {
                    return Ok(());
                };
                let catches = |caught: &Option<Failure>| caught.is_none_or(|one| one == failure);
                let handler = handlers.iter().find(|handler| catches(&handler.0));
                let Some((_, actions, raises_again)) = handler else {
                    return Err(failure);
                };
                let undone = self.undone + usize::from(!self.is_same(&before));
                *self = State { undone, ..before };
                self.run(actions, n)?;
                if *raises_again {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }
}

fn actions(random: &mut Random, depth: usize) -> Vec<Action> {
    (0..1 + random.below(4))
        .map(|_| action(random, depth))
        .collect()
}

/// What a procedure does: most of it in blocks that catch all errors, so that most calls commit.
fn procedure(random: &mut Random) -> Vec<Action> {
    let blocks = 1 + random.below(3);
    let blocks = (0..blocks).map(|_| match random.below(5) {
        0 => action(random, 3),
        _ => {
            let (body, handler) = (actions(random, 2), vec![Action::Count(7)]);
            Action::Protected(body, vec![(None, handler, false)])
        }
    });
    blocks.collect()
}

fn action(random: &mut Random, depth: usize) -> Action {
    let mut number = |bound: usize| random.below(bound) as i32;
    let (id, other, amount) = (1 + number(9), 1 + number(12), number(25));
    match number(if depth == 0 { 13 } else { 20 }) {
        0 => Action::Count(amount),
        1 | 2 => Action::AddValue(id, amount),
        3 => Action::SetKey(id, other),
        4 => Action::SetKeys(id, other, 1 + amount % 12),
        5 => Action::SetText(id, amount * 20),
        6 => Action::Insert(id, other, amount),
        7 => Action::Delete(id),
        8 => match amount % 2 {
            0 => Action::InsertPart(other, id),
            _ => Action::DeletePart(other),
        },
        9 => Action::AddToBag(id % 3, amount),
        10 => Action::InsertIntoBag(id % 3, amount),
        11 => Action::DeleteFromBag(id % 3),
        12 => Action::Raise(id % 3),
        13 | 14 => {
            let (iterations, rest) = (1 + amount % 3, id % 4);
            Action::Repeat(iterations, rest, actions(random, depth - 1))
        }
        _ => {
            let body = actions(random, depth - 1);
            let handlers = (0..1 + random.below(2)).map(|_| {
                let caught = match random.below(6) {
                    0 => Some(Failure::Unique),
                    1 => Some(Failure::Check),
                    2 => Some(Failure::Foreign),
                    3 => Some(Failure::Custom),
                    _ => None,
                };
                let body = match random.below(3) {
                    0 => Vec::new(),
                    _ => actions(random, depth - 1),
                };
                (caught, body, random.below(6) == 0)
            });
            Action::Protected(body, handlers.collect())
        }
    }
}

/// Writes actions in PL/pgSQL.
fn write(actions: &[Action], out: &mut String) {
    for action in actions {
        let written = match action {
            Action::Count(amount) => writeln!(out, "n := (n * 3 + {amount}) % 1000;"),
            Action::AddValue(id, amount) => {
                writeln!(out, "UPDATE item SET v = v + {amount} WHERE id = {id};")
            }
            Action::SetKey(id, k) => writeln!(out, "UPDATE item SET k = {k} WHERE id = {id};"),
            Action::SetKeys(id, k, u) => {
                writeln!(out, "UPDATE item SET k = {k}, u = {u} WHERE id = {id};")
            }
            Action::SetText(id, length) => {
                let text = format!("repeat('y', {length})");
                writeln!(out, "UPDATE item SET s = {text} WHERE id = {id};")
            }
            Action::Insert(id, k, v) => {
                writeln!(out, "INSERT INTO item VALUES ({id}, {k}, {v}, 'new', {k});")
            }
            Action::Delete(id) => writeln!(out, "DELETE FROM item WHERE id = {id};"),
            Action::InsertPart(item, of) => {
                writeln!(out, "INSERT INTO part VALUES ({item}, {of});")
            }
            Action::DeletePart(item) => writeln!(out, "DELETE FROM part WHERE item = {item};"),
            Action::AddToBag(a, amount) => {
                writeln!(out, "UPDATE bag SET v = v + {amount} WHERE a = {a};")
            }
            Action::InsertIntoBag(a, v) => writeln!(out, "INSERT INTO bag VALUES ({a}, {v});"),
            Action::DeleteFromBag(a) => writeln!(out, "DELETE FROM bag WHERE a = {a};"),
            Action::Raise(rest) => writeln!(
                out,
                "IF n % 3 = {rest} THEN RAISE EXCEPTION 'raised' USING ERRCODE = 'KL001'; END IF;"
            ),
            Action::Repeat(iterations, rest, actions) => {
                let _ = writeln!(out, "FOR i IN 1..{iterations} LOOP\nn := (n + i) % 1000;");
                write(actions, out);
                writeln!(out, "EXIT WHEN n % 3 = {rest};\nEND LOOP;")
            }
            Action::Protected(actions, handlers) => {
                let _ = writeln!(out, "BEGIN");
                write(actions, out);
                let _ = writeln!(out, "EXCEPTION");
                for (caught, actions, raises_again) in handlers {
                    let name = caught.map_or("OTHERS", Failure::name);
                    let _ = writeln!(out, "WHEN {name} THEN");
                    write(actions, out);
                    let _ = writeln!(out, "{}", if *raises_again { "RAISE;" } else { "NULL;" });
                }
                writeln!(out, "END;")
            }
        };
        written.expect("a string takes it");
    }
}

fn rows(database: &Database, query: &str) -> String {
    let rows = database.query(query, ());
    let rows = rows.unwrap_or_else(|error| panic!("{query}: {error}"));
    let csv = rows.to_csv();
    let (_, rows) = csv.split_once('\n').expect("there is a heading");
    rows.trim_end().to_owned()
}

/// What a table holds by the model, as [`rows`] writes it.
fn listed(rows: impl Iterator<Item = Vec<i32>>) -> String {
    let mut rows: Vec<Vec<i32>> = rows.collect();
    rows.sort_unstable();
    let line = |row: &Vec<i32>| {
        let fields: Vec<String> = row.iter().map(i32::to_string).collect();
        fields.join(",")
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

/// Checks that the tables hold what the model does, by all of their indexes.
fn compare(database: &Database, state: &State, n: i32, about: &str) {
    let item = state.item.iter();
    let item = item.map(|(id, row)| vec![*id, row.0, row.1, row.2 as i32, row.3]);
    let query = "SELECT id, k, v, length(s), u FROM item ORDER BY id";
    assert_eq!(rows(database, query), listed(item), "{about}");
    let by_key = state.item.iter().map(|(id, row)| vec![row.0, *id]);
    let query = "SELECT k, id FROM item WHERE k > 0 ORDER BY k";
    assert_eq!(rows(database, query), listed(by_key), "{about}: by k");
    let by_other = state.item.iter().map(|(id, row)| vec![row.3, *id]);
    let query = "SELECT u, id FROM item WHERE u > 0 ORDER BY u";
    assert_eq!(rows(database, query), listed(by_other), "{about}: by u");
    let by_value = state.item.iter().map(|(id, row)| vec![row.1, *id]);
    let query = "SELECT v, id FROM item WHERE v >= 0 ORDER BY v, id";
    assert_eq!(rows(database, query), listed(by_value), "{about}: by v");
    let part = state.part.iter().map(|row| vec![row.0, row.1]);
    let query = "SELECT item, n FROM part ORDER BY item, n";
    assert_eq!(rows(database, query), listed(part), "{about}");
    let bag = state.bag.iter().map(|row| vec![row.0, row.1]);
    let query = "SELECT a, v FROM bag ORDER BY a, v";
    assert_eq!(rows(database, query), listed(bag), "{about}");
    let query = "SELECT n FROM outcome";
    assert_eq!(rows(database, query), n.to_string(), "{about}");
}

/// Runs procedures made from a seed; returns how many blocks were undone in calls that committed.
fn run(configuration: Configuration, seed: u64) -> usize {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options.protocol(configuration)).expect("it opens");
    database.execute(SCHEMA).expect("it is SQL");
    let mut random = Random::from_seed(seed);
    let mut procedures = Vec::new();
    for number in 0..PROCEDURES {
        let actions = procedure(&mut random);
        let mut body = String::new();
        write(&actions, &mut body);
        let text = format!(
            "CREATE PROCEDURE p{number}(start INTEGER) LANGUAGE plpgsql AS $$\n\
             DECLARE n INTEGER := start; last INTEGER;\nBEGIN\n{body}\
             last := n;\nUPDATE outcome SET n = last;\nEND $$"
        );
        database
            .execute(&text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        procedures.push((actions, text));
    }
    let (mut state, mut outcome) = (State::new(), 0);
    for call in 0..CALLS {
        let (number, start) = (random.below(PROCEDURES), random.below(1000) as i32);
        let (actions, text) = &procedures[number];
        let (mut after, mut n) = (state.clone(), start);
        let expected = after.run(actions, &mut n);
        let about = format!("{configuration}, seed {seed}, call {call} with {start} of {text}");
        // Half of the calls are statements of a block, which may be rolled back.
        let (failed, stays) = match random.below(4) {
            0 | 1 => {
                let reply = database.call(&format!("p{number}"), (start,));
                let reply = reply.expect("it is called rightly");
                (matches!(reply, Reply::Rejected(_)), true)
            }
            way => {
                let mut session = database.session().expect("there is room");
                session.execute("BEGIN").expect("it is SQL");
                let done = session.execute(&format!("CALL p{number}({start})"));
                let end = if way == 2 { "COMMIT" } else { "ROLLBACK" };
                session.execute(end).expect("it ends");
                (done.is_err(), way == 2)
            }
        };
        assert_eq!(failed, expected.is_err(), "{about}: {expected:?}");
        if expected.is_ok() && stays {
            (state, outcome) = (after, n);
        }
        compare(&database, &state, outcome, &about);
    }
    state.undone
}

#[test]
fn failed_blocks_leave_no_change() {
    let with_all = Protocol::serializable().map(|protocol| {
        let mut options = protocol.options().iter();
        let configuration = Configuration::from(protocol);
        let all = options.try_fold(configuration, |all, option| all.with(*option));
        all.expect("it takes its options")
    });
    let all = Configuration::serializable().chain(with_all);
    for (seed, configuration) in (1..).zip(all) {
        let undone: usize = [seed, 1000 + seed, 2000 + seed]
            .map(|seed| run(configuration, seed))
            .iter()
            .sum();
        assert!(undone >= 10, "{configuration}: {undone} blocks were undone");
    }
}

/// What ends a call is caught by no handler.
#[test]
fn the_end_of_a_call_is_not_caught() {
    let script = "
        CREATE TABLE t (id INTEGER PRIMARY KEY);
        CREATE FUNCTION goes_on() RETURNS INTEGER LANGUAGE plpgsql AS $$
        DECLARE n INTEGER := 0;
        BEGIN
            LOOP
                BEGIN
                    LOOP n := (n + 1) % 1000; END LOOP;
                EXCEPTION WHEN OTHERS OR query_canceled THEN n := 0;
                END;
            END LOOP;
        END $$;
        CREATE FUNCTION grows() RETURNS INTEGER LANGUAGE plpgsql AS $$
        DECLARE s TEXT;
        BEGIN
            LOOP
                BEGIN
                    s := repeat('x', 1000000);
                EXCEPTION WHEN OTHERS THEN s := '';
                END;
            END LOOP;
        END $$;";
    for protocol in [Protocol::Silo, Protocol::Mvcc, Protocol::Vll] {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        database.execute(script).expect("it is SQL");
        let mut session = database.session().expect("there is room");
        session
            .execute("SET statement_timeout = 100")
            .expect("it is a setting");
        let error = session
            .execute("SELECT goes_on()")
            .expect_err("it never ends");
        assert_eq!(error.state().as_str(), "57014", "{protocol}");
        session
            .execute("SET statement_timeout = 0")
            .expect("it is a setting");
        let error = session
            .execute("SELECT grows()")
            .expect_err("it is bounded");
        assert_eq!(error.state().as_str(), "53200", "{protocol}");
    }
}
