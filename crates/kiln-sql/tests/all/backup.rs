//! Backups: what is in them, what is restored from them, and what is refused.

#![cfg(not(kiln_sim))]

use std::path::{Path, PathBuf};

use crate::files::{change, files, number, options, temporary};
use kiln_platform::atomic::{AtomicBool, AtomicI64, Ordering};
use kiln_platform::disk::{Directory, TemporaryDirectory};
use kiln_platform::{thread, time};
use kiln_sql::{Database, Error, Options, Protocol, SqlState};

/// Clients and what each has in the bank at the beginning.
const CLIENTS: i64 = 3;
const BALANCE: i64 = 1_000;

const BANK: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL);
CREATE TABLE client (id INTEGER PRIMARY KEY, calls BIGINT NOT NULL);
CREATE TABLE journal (client INTEGER, call BIGINT, PRIMARY KEY (client, call));
CREATE INDEX account_balance ON account (balance);
INSERT INTO account SELECT i, 1000 FROM generate_series(0, 99) i;
INSERT INTO client SELECT i, 0 FROM generate_series(0, 2) i;
CREATE PROCEDURE pay(client INTEGER, payer INTEGER, payee INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance - 1 WHERE id = payer;
    UPDATE account SET balance = balance + 1 WHERE id = payee;
    UPDATE client SET calls = calls + 1 WHERE id = client;
    INSERT INTO journal SELECT id, calls FROM client WHERE id = client;
END $$;
";

#[test]
fn backups_of_a_busy_database_have_all_that_was_acknowledged_and_agree_under_every_protocol() {
    let protocols = Protocol::ALL.into_iter();
    for protocol in protocols.filter(|protocol| protocol.is_serializable()) {
        let directory = temporary();
        let path = |name: &str| directory.path().join(name);
        let options = |name: &str| options(&path(name)).protocol(protocol);
        let database = Database::open(options("data")).expect("it is new");
        database.execute(BANK).expect("the script runs");
        let stop = AtomicBool::new(false);
        let [begun, acknowledged] = [(); 2].map(|()| [const { AtomicI64::new(0) }; 3]);
        let of = |counts: &[AtomicI64; 3]| -> [i64; 3] {
            [0, 1, 2].map(|client: usize| counts[client].load(Ordering::SeqCst))
        };
        let bounds = thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (database, stop) = (&database, &stop);
                let (begun, acknowledged) = (&begun, &acknowledged);
                scope.spawn(move || {
                    for call in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        begun[client as usize].fetch_add(1, Ordering::SeqCst);
                        let (payer, payee) = (call * 7 % 100, (call * 7 + 1 + client) % 100);
                        let reply = database.call("pay", (client as i32, payer, payee));
                        assert!(reply.expect("the disk works").is_committed());
                        acknowledged[client as usize].fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let bounds = ["one", "two", "three"].map(|name| {
                let before = of(&acknowledged);
                let report = database.backup(&path(name)).expect("there is room");
                assert!(report.list.checkpoint.is_some());
                (name, before, of(&begun))
            });
            stop.store(true, Ordering::Relaxed);
            bounds
        });
        drop(database);
        for (name, before, after) in bounds {
            let restored = format!("{name} again");
            Database::restore(&path(name), &path(&restored), None).expect("it is whole");
            // Twice: what is added to it is there the next time.
            for life in 0..2 {
                let database = Database::open(options(&restored)).expect("it is there");
                let sum = number(&database, "SELECT sum(balance)::bigint FROM account");
                assert_eq!(sum, 100 * BALANCE, "{protocol} {name}");
                for client in 0..CLIENTS as usize {
                    let of_client = |query: &str| number(&database, &format!("{query} = {client}"));
                    let calls = of_client("SELECT calls FROM client WHERE id");
                    let rows = of_client("SELECT count(*) FROM journal WHERE client");
                    assert_eq!(calls, rows, "{protocol} {name}");
                    let more = if client == 0 { life } else { 0 };
                    let bounds = before[client] + more..=after[client] + more;
                    assert!(
                        bounds.contains(&calls),
                        "{protocol} {name} {calls} {bounds:?}"
                    );
                }
                let reply = database.call("pay", (0, 5, 6)).expect("the disk works");
                assert!(reply.is_committed());
            }
        }
    }
}

/// A database with a checkpoint and something after it, and a backup of it.
fn small(directory: &TemporaryDirectory) -> PathBuf {
    let database = Database::open(options(&directory.path().join("data"))).expect("it is new");
    database.execute(BANK).expect("the script runs");
    let target = directory.path().join("backup");
    database.backup(&target).expect("there is room");
    target
}

/// A time that is after all that was acknowledged and before all that will begin.
fn moment() -> i64 {
    thread::sleep(2_000_000);
    let now_us = time::wall_clock_us();
    thread::sleep(2_000_000);
    now_us
}

#[test]
fn a_restoration_to_a_time_has_what_was_acknowledged_before_and_nothing_that_began_after() {
    let directory = temporary();
    let path = |name: &str| directory.path().join(name);
    let database = Database::open(options(&path("data"))).expect("it is new");
    database.execute(BANK).expect("the script runs");
    database.engine().checkpoint().expect("there is room");
    let mut moments = Vec::new();
    for step in 1..=40 {
        moments.push(moment());
        // Statements that fill more than a segment, so that times are in several of them.
        let insert =
            format!("INSERT INTO journal SELECT {step}, i FROM generate_series(1, 1500) i");
        database.execute(&insert).expect("the disk works");
    }
    moments.push(moment());
    drop(database);
    let holder = "a test";
    let report = kiln_durability::backup::back_up_closed(
        &path("data"),
        &path("backup"),
        holder,
        &mut |_, _| {},
    )
    .expect("it is closed");
    assert!(report.list.segments.len() >= 2, "{report:?}");
    for (step, to_us) in moments.iter().enumerate().step_by(8) {
        let name = format!("at {step}");
        let restore = Database::restore(&path("backup"), &path(&name), Some(*to_us));
        let report = restore.expect("the time is in the backup");
        assert!(report.last_us.is_some_and(|last_us| last_us <= *to_us));
        assert_eq!(report.groups_left_out == 0, step == 40, "{report:?}");
        // What was cut off does not come back behind what is written in its place.
        for life in 0..3 {
            let database = Database::open(options(&path(&name))).expect("it is there");
            let steps = number(
                &database,
                "SELECT count(*) FROM journal WHERE client < 1000",
            );
            assert_eq!(steps, step as i64 * 1_500, "step {step}");
            let lives = number(
                &database,
                "SELECT count(*) FROM journal WHERE client >= 1000",
            );
            assert_eq!(lives, life, "step {step}");
            let insert = format!("INSERT INTO journal VALUES (1000, {life})");
            database.execute(&insert).expect("the disk works");
        }
    }
    let refused = |to_us: i64| -> Error {
        let restored = Database::restore(&path("backup"), &path("refused"), Some(to_us));
        let error = restored.expect_err("the backup does not have that time");
        assert!(
            Directory::open(&path("refused")).is_err(),
            "nothing is left"
        );
        println!("{error}\n  {:?}", error.hint());
        error
    };
    let early = refused(moments[0] - 60_000_000);
    assert_eq!(early.state(), SqlState::INVALID_PARAMETER_VALUE);
    assert!(
        early.message().contains("the earliest possible time is 20"),
        "{early}"
    );
    let late = refused(time::wall_clock_us());
    assert!(late.message().contains("was taken at 20"), "{late}");
    // The earliest possible time is possible.
    let earliest = early.message().rsplit("is ").next().expect("it says so");
    let earliest = kiln_durability::moment_from_text(earliest).expect("it is a time");
    Database::restore(&path("backup"), &path("earliest"), Some(earliest)).expect("it is said");
    refused(earliest - 1);
    let database = Database::open(options(&path("earliest"))).expect("it is there");
    assert_eq!(number(&database, "SELECT count(*) FROM account"), 100);
}

#[test]
fn damage_of_any_file_of_a_backup_is_refused_with_its_name() {
    let directory = temporary();
    let backup = small(&directory);
    let restored = directory.path().join("restored");
    let refused = |file: &Path| {
        let error = Database::restore(&backup, &restored, None).expect_err("it is damaged");
        let name = file.file_name().and_then(|name| name.to_str());
        assert!(
            error.message().contains(name.expect("it is text")),
            "{file:?}: {error}"
        );
        assert!(error.hint().is_some(), "{error}");
        assert!(Directory::open(&restored).is_err(), "nothing is left");
        error
    };
    let files = files(&backup);
    assert!(files.len() >= 6, "{files:?}");
    for file in &files {
        let path = backup.join(file);
        let whole = change(&path, |bytes| bytes);
        for at in [0, whole.len() / 2, whole.len() - 1] {
            change(&path, |mut bytes| {
                bytes[at] ^= 4;
                bytes
            });
            assert_eq!(refused(file).state(), SqlState::DATA_CORRUPTED);
            change(&path, |_| whole.clone());
        }
        for length in [0, whole.len() - 1] {
            change(&path, |mut bytes| {
                bytes.truncate(length);
                bytes
            });
            refused(file);
        }
        change(&path, |mut bytes| {
            bytes.push(0);
            bytes
        });
        refused(file);
        let parent = Directory::open(path.parent().expect("it is a file")).expect("it is there");
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it is text");
        parent.remove_file(name).expect("it is there");
        refused(file);
        parent.create_file(name).expect("it is gone");
        change(&path, |_| whole.clone());
    }
    Database::restore(&backup, &restored, None).expect("all is as it was");
}

#[test]
fn targets_that_are_not_empty_are_refused_and_stay_as_they_are() {
    let directory = temporary();
    let backup = small(&directory);
    let data = directory.path().join("data");
    let before = [files(&backup), files(&data)];
    let database = Database::open(options(&data)).expect("it is there");
    for target in [&backup, &data] {
        for result in [
            database.backup(target).map(drop),
            Database::restore(&backup, target, None).map(drop),
        ] {
            let error = result.expect_err("it is not empty");
            assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
            assert!(error.message().contains("is not empty"), "{error}");
        }
    }
    drop(database);
    assert_eq!(files(&backup), before[0]);
    let error = Database::restore(&data, &directory.path().join("new"), None);
    let error = error.expect_err("a data directory is no backup");
    assert!(error.message().contains("is no backup"), "{error}");
    let error = Database::open(options(&backup)).expect_err("a backup is no data directory");
    assert!(error.message().contains("BACKUP"), "{error}");
    // A database in memory has nothing to copy.
    let database = Database::open(Options::new().workers(1)).expect("there is room");
    let error = database.backup(&directory.path().join("new"));
    let error = error.expect_err("it is in memory");
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(Directory::open(&directory.path().join("new")).is_err());
}
