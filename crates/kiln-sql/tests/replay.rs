//! Replaying what commits wrote: the tables that come of it are those in which the transactions ran, whatever the order in which
//! commits of one log epoch lie in the log.

#![cfg(not(kiln_sim))]

use std::path::Path;
use std::time::Duration;

use kiln_durability::format::block::{HEADER_BYTES, bytes_of};
use kiln_durability::format::entry::{self, Entry};
use kiln_durability::format::{BlockHeader, Chain, DatabaseId, segment_name};
use kiln_durability::recovery::{Replay, Scan, Start};
use kiln_engine::{CallAnswer, Commit, Configuration, Listener, Listeners, LogEpoch};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::random::Random;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread;
use kiln_sql::{Database, Options, Session, SqlState};
use kiln_storage::restore::Mismatch;

const DATABASE: DatabaseId = DatabaseId(*b"tests of replays");
const CLIENTS: usize = 4;
const STATEMENTS: usize = 400;
/// Keys are below this, so that they are deleted and come back often.
const KEYS: usize = 30;

const SCHEMA: &str = "
CREATE TABLE keyed (id BIGINT PRIMARY KEY, holder INTEGER UNIQUE, amount INTEGER NOT NULL, short VARCHAR(8), long TEXT);
CREATE INDEX keyed_amount ON keyed (amount);
CREATE TABLE pair (a TEXT, b SMALLINT, price NUMERIC(12, 2), label TEXT, PRIMARY KEY (a, b));
CREATE UNIQUE INDEX pair_label ON pair (label);
CREATE TABLE plain (x INTEGER, text TEXT);
CREATE INDEX plain_x ON plain (x);
";

/// The log epoch of a commit, and its bytes.
type Written = (u64, Vec<u8>);

/// The commits that all workers have told of.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Written>>>);

impl Listeners for Heard {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(self.clone())
    }

    fn note(&self, _: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("no call has a key here")
    }
}

impl Listener for Heard {
    fn committed(&mut self, commit: &Commit<'_>) {
        let mut bytes = Vec::new();
        commit.append(&mut bytes);
        lock(&self.0).push((commit.epoch.0, bytes));
    }
}

/// A database that these threads recover.
fn open(configuration: Configuration, threads: usize) -> Database {
    let options = Options::new().workers(2).pin_workers(false);
    let options = options.recovery_threads(threads);
    let database = Database::open(options.protocol(configuration)).expect("the options are good");
    database.execute(SCHEMA).expect("the names are free");
    database
}

/// A statement, or a block, that some transactions of others may refuse.
fn statement(random: &mut Random) -> String {
    let (id, other) = (random.below(KEYS), random.below(KEYS));
    let number = random.below(100);
    let long = match random.below(3) {
        0 => "NULL".to_owned(),
        1 => format!("repeat('s', {})", random.below(12)),
        _ => format!("repeat('{number} ', {})", random.below(600)),
    };
    let label = match random.percent(20.0) {
        true => "NULL".to_owned(),
        false => format!("repeat('{number} ', {})", 1 + number % 70),
    };
    let new = format!("INSERT INTO keyed VALUES ({id}, {other}, {number}, 'new', {long})");
    let (a, b) = (["a", "bb", "a rather long key"][id % 3], id / 3);
    match random.below(18) {
        0..3 => new,
        3 => format!("DELETE FROM keyed WHERE id = {id}"),
        4 => format!("BEGIN; DELETE FROM keyed WHERE id = {id}; {new}; COMMIT"),
        5 => format!("UPDATE keyed SET amount = amount + {number} WHERE id = {id}"),
        6 => format!("UPDATE keyed SET holder = {other} WHERE id = {id}"),
        7 => format!(
            "BEGIN; UPDATE keyed SET holder = NULL WHERE id = {id}; \
             UPDATE keyed SET holder = {id} WHERE id = {other}; COMMIT"
        ),
        8 => format!("UPDATE keyed SET long = {long}, short = '{number}' WHERE id = {id}"),
        9 => format!("UPDATE keyed SET id = {other} WHERE id = {id}"),
        10 => format!(
            "BEGIN; UPDATE keyed SET id = {0} WHERE id = {id}; UPDATE keyed SET id = {id} WHERE id = {other}; \
             UPDATE keyed SET id = {other} WHERE id = {0}; COMMIT",
            KEYS + number
        ),
        11 | 12 => format!("INSERT INTO pair VALUES ('{a}', {b}, {number}.5, {label})"),
        13 => {
            format!(
                "UPDATE pair SET price = price + 1, label = {label} WHERE a = '{a}' AND b = {b}"
            )
        }
        14 => format!("DELETE FROM pair WHERE a = '{a}' AND b = {b}"),
        15 => format!("INSERT INTO plain VALUES ({id}, {long}), ({id}, 'twice')"),
        16 => format!("UPDATE plain SET x = {other}, text = {long} WHERE x = {id}"),
        _ => format!("DELETE FROM plain WHERE x = {id} AND text = 'twice'"),
    }
}

/// Runs a statement; returns whether it ended well.
fn run(session: &mut Session, statement: &str) -> bool {
    let Err(error) = session.execute(statement) else {
        return true;
    };
    session.roll_back();
    let is_expected = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::SERIALIZATION_FAILURE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    assert!(is_expected.contains(&error.state()), "{statement}: {error}");
    false
}

/// One client less, also when it fails.
struct Over<'a>(&'a AtomicUsize);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What concurrent clients commit, in log epochs that some commits share.
fn workload(database: &Database, seed: u64) -> Vec<Written> {
    let heard = Heard::default();
    let attached = database.engine().attach_listeners(Arc::new(heard.clone()));
    attached.expect("the protocol isolates transactions");
    let working = AtomicUsize::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let working = &working;
            scope.spawn(move || {
                let _over = Over(working);
                let mut random = Random::stream(seed, client as u64);
                let mut session = database.session().expect("there is a seat");
                let ended = (0..STATEMENTS).filter(|_| run(&mut session, &statement(&mut random)));
                let ended = ended.count();
                assert!(ended > STATEMENTS / 3, "{ended} statements ended well");
            });
        }
        while working.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(3).as_nanos() as u64);
            database.engine().log_epochs().close();
        }
    });
    database.engine().detach_listeners().expect("nothing runs");
    std::mem::take(&mut *lock(&heard.0))
}

/// Writes commits as a log, in groups of a few log epochs whose entries are in any order.
fn write(commits: &[Written], random: &mut Random) -> TemporaryDirectory {
    let mut chain = Chain::new(DATABASE);
    let (mut log, mut rest) = (Vec::new(), commits);
    while let Some((first, _)) = rest.first() {
        let last = first + random.below(4) as u64;
        let (group, later) = rest.split_at(rest.partition_point(|(epoch, _)| *epoch <= last));
        rest = later;
        let mut group: Vec<_> = group.iter().collect();
        random.shuffle(&mut group);
        let mut payload = Vec::new();
        for (epoch, commit) in group {
            let start = entry::begin_commit(&mut payload, *epoch);
            payload.extend_from_slice(commit);
            entry::end(&mut payload, start);
        }
        let pieces = payload.chunks(20_000);
        for (at, piece) in pieces.clone().enumerate() {
            let mut block = vec![0; bytes_of(piece.len())];
            block[HEADER_BYTES..HEADER_BYTES + piece.len()].copy_from_slice(piece);
            let header = BlockHeader {
                epochs: (*first, last),
                goes_on: at + 1 < pieces.len(),
                goes_back: at > 0,
                ..BlockHeader::default()
            };
            chain.seal(&mut block, piece.len(), 1, header);
            log.extend_from_slice(&block);
        }
    }
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = TemporaryDirectory::within(parent, "kiln-replay").expect("it can be made");
    let directory = Directory::open(place.path()).expect("it is there");
    let file = directory.create_file(&segment_name(1)).expect("it is new");
    file.write_at(0, &log).expect("there is room");
    place
}

/// Applies the commits of a log whose epochs are in this range.
fn replay(
    database: &Database,
    log: &TemporaryDirectory,
    (from, through): (u64, u64),
    mismatch: Mismatch,
) {
    let directory = Directory::open(log.path()).expect("it is there");
    let start = Start {
        database: DATABASE,
        segment: 1,
        chain: Some(Chain::new(DATABASE)),
    };
    let mut replay = Replay::new(Scan::open(directory, start).expect("it is there"), from);
    database.engine().begin_restoration();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut each = |entry: &Entry<'_>| {
        if let Entry::Commit { epoch, commit } = entry
            && *epoch <= through
        {
            bytes.extend_from_slice(commit);
            ends.push((bytes.len(), mismatch));
        }
        Ok(())
    };
    while replay.next_group(&mut each).expect("it is whole").is_some() {}
    let engine = database.engine();
    let restored = engine.restore(|restoration| {
        let applied = restoration.commits(&bytes, &ends);
        applied.map_err(|(_, error)| error)
    });
    restored.expect("the log fits to the tables");
    assert_eq!(replay.end().expect("the disk works").cut, None);
}

/// Builds the other indexes, and lets the protocol take the rows over.
fn finish(database: &Database) {
    let ended = database.engine().end_restoration(|_| Ok(()));
    ended.expect("unique values are unique");
}

fn rows(database: &Database, query: &str) -> String {
    database.query(query, ()).expect("the query runs").to_csv()
}

/// All rows, and what look-ups and scans of each index find.
fn all(database: &Database) -> Vec<String> {
    let mut queries = vec![
        "SELECT * FROM keyed ORDER BY id".to_owned(),
        "SELECT * FROM pair ORDER BY a, b".to_owned(),
        "SELECT * FROM plain ORDER BY x, text".to_owned(),
        "SELECT id FROM keyed WHERE amount > 20 ORDER BY amount, id".to_owned(),
        "SELECT a, b, label FROM pair WHERE label > '2' ORDER BY label".to_owned(),
        "SELECT x FROM plain WHERE x > 5 ORDER BY x".to_owned(),
    ];
    for key in 0..KEYS {
        queries.push(format!("SELECT amount FROM keyed WHERE id = {key}"));
        queries.push(format!("SELECT id FROM keyed WHERE holder = {key}"));
        queries.push(format!(
            "SELECT id FROM keyed WHERE amount = {key} ORDER BY id"
        ));
        queries.push(format!(
            "SELECT count(*), max(text) FROM plain WHERE x = {key}"
        ));
        queries.push(format!(
            "SELECT price FROM pair WHERE a = 'bb' AND b = {key}"
        ));
    }
    queries.iter().map(|query| rows(database, query)).collect()
}

/// What becomes of the tables when one client goes on.
fn go_on(database: &Database, seed: u64) -> (Vec<bool>, Vec<String>) {
    let mut random = Random::from_seed(seed);
    let mut session = database.session().expect("there is a seat");
    let ended = (0..STATEMENTS).map(|_| run(&mut session, &statement(&mut random)));
    (ended.collect(), all(database))
}

#[test]
fn tables_are_what_they_were_whatever_the_order_of_commits_in_an_epoch() {
    let names = [
        "silo+cu",
        "tictoc+cu+ts",
        "mvcc",
        "2pl-wait-die",
        "vll",
        "silo+cu+ts",
    ];
    let configurations = names.map(|name| name.parse::<Configuration>().expect(name));
    for (at, configuration) in configurations.iter().enumerate() {
        let seed = 71 + at as u64;
        let context = format!("{configuration}, seed {seed}");
        let mut random = Random::from_seed(seed);
        let original = open(*configuration, 1);
        let mut commits = workload(&original, seed);
        commits.sort_by_key(|(epoch, _)| *epoch);
        let shared = commits.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let shared = shared.count();
        assert!(
            shared * 2 > commits.len(),
            "{context}: epochs of few commits"
        );
        let before = all(&original);
        let log = write(&commits, &mut random);
        let last = commits.last().expect("there are commits").0;

        // Entries that lead nowhere, or are missing, would show.
        let expected = go_on(&original, seed);
        for threads in [1, 2, 3, 7] {
            let context = format!("{context}, {threads} threads");
            let recovered = open(*configuration, threads);
            replay(&recovered, &log, (0, last), Mismatch::Refused);
            finish(&recovered);
            assert!(all(&recovered) == before, "{context}");
            // Under another protocol, twice, and from within a time that the rows know already.
            let next = configurations[(at + 1) % configurations.len()];
            let again = open(next, threads);
            let seen = random.below(last as usize) as u64;
            let from = random.below(seen as usize + 1) as u64;
            replay(&again, &log, (0, seen), Mismatch::Refused);
            replay(&again, &log, (from, last), Mismatch::Ignored);
            finish(&again);
            assert!(all(&again) == before, "{context}: {from} after {seen}");
            replay(&again, &log, (0, last), Mismatch::Ignored);
            finish(&again);
            assert!(all(&again) == before, "{context}: twice");
            assert!(go_on(&recovered, seed) == expected, "{context}: afterwards");
            go_on(&again, seed);
        }
    }
}
