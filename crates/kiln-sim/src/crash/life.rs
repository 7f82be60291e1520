//! A life: the database is opened, clients work, and it is closed, or its disk fails it.

use std::path::PathBuf;

use kiln_engine::Configuration;
use kiln_platform::random::Random;
use kiln_platform::sim::disk::Disk;
use kiln_platform::sim::{self, Config, Failure, Schedule};
use kiln_platform::thread;
use kiln_sql::{Database, Error, Logging, Options, SqlState};

use super::clients::{Client, End, Style};
use super::ledger::{Bounds, Fact, Noted};
use super::picture::Picture;
use super::schema::STATEMENTS;

/// Where the database is on its disk.
const DIRECTORY: &str = "/data/kiln";
/// As short as they can be, so that a life fills several.
const SEGMENT_BYTES: u64 = 16 << 10;
/// What a worker may record of a life, in bytes.
const HISTORY_BYTES: usize = 1 << 20;

/// What a life is to be.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) protocol: Configuration,
    /// Determines what clients do, and the schedule.
    pub(super) seed: u64,
    /// Distinguishes its transactions from those of other lives.
    pub(super) number: i64,
    /// Transactions of each client.
    pub(super) deeds: usize,
    /// Whether one client changes the catalog; else the judge looks at what the clients have done.
    pub(super) defines: bool,
    /// Whether one writes checkpoints.
    pub(super) checkpoints: bool,
    /// Whether the disk may fail.
    pub(super) may_fail: bool,
}

/// What became of a life.
#[derive(Clone, Debug, Default)]
pub(super) struct Lived {
    /// What clients were told.
    pub(super) noted: Vec<Noted>,
    /// Why the database was not opened, where the disk may fail.
    pub(super) refused: Option<String>,
    /// Transactions judged.
    pub(super) judged: u64,
    /// What must not be.
    pub(super) wrong: Option<String>,
}

fn options(protocol: Configuration, seed: u64) -> Options {
    // Two of three lives where they can: so that both kinds come after both.
    let logging = match protocol.protocol.logs_commands() && !seed.is_multiple_of(3) {
        true => Logging::Commands,
        false => Logging::Values,
    };
    Options::new()
        .workers(2)
        .recovery_threads(1 + (seed / 2 % 3) as usize)
        .session_slots(6)
        .pin_workers(false)
        .epoch_ms(1)
        .protocol(protocol)
        .logging(logging)
        .seed(seed)
        .log_segment_bytes(SEGMENT_BYTES)
        .data_dir(Some(PathBuf::from(DIRECTORY)))
}

fn config(disk: &Disk, seed: u64) -> Config {
    let schedule = match seed % 3 {
        0 => Schedule::Pct {
            depth: 4,
            steps: 2_000,
        },
        _ => Schedule::Random,
    };
    let mut config = Config::new(schedule, seed);
    config.cores = 2 + seed as usize % 3;
    config.step_ns = 500;
    config.disk = Some(disk.clone());
    config
}

/// Runs `body` on the disk. What it returns is copied out of the run's memory.
fn on_disk<T: Clone + Send>(
    disk: &Disk,
    seed: u64,
    body: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    let run = sim::run(&config(disk, seed), body);
    let run = run.map_err(|failure: Failure| failure.to_string())?;
    Ok(run.value.clone())
}

/// Whether a disk that fails explains the error.
fn is_of_disk(error: &Error) -> bool {
    [SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&error.state())
}

/// Opens the database and reads it, where the disk does not fail.
///
/// # Errors
/// Why it cannot be opened, and what is wrong with it.
pub(super) fn recover(disk: &Disk, protocol: Configuration, seed: u64) -> Result<Picture, String> {
    let body = || {
        sim::quiet(|| {
            let database = Database::open(options(protocol, seed));
            let database = database.map_err(|error| format!("it cannot be opened: {error:#}"))?;
            let picture = Picture::read(&database).map_err(|error| format!("{error:#}"))?;
            picture.check_closed()?;
            Ok(picture)
        })
    };
    on_disk(disk, seed, body)?
}

/// Opens the database on a disk that has been damaged: it is refused as damaged, or what it has is
/// returned.
///
/// # Errors
/// What is wrong with it, or with the refusal.
pub(super) fn recover_damaged(
    disk: &Disk,
    protocol: Configuration,
    seed: u64,
) -> Result<Option<Picture>, String> {
    let body = || {
        sim::quiet(|| {
            let database = match Database::open(options(protocol, seed)) {
                Ok(database) => database,
                Err(error) => {
                    let may_be = [SqlState::DATA_CORRUPTED, SqlState::FEATURE_NOT_SUPPORTED];
                    return match may_be.contains(&error.state()) {
                        true => Ok(None),
                        false => Err(format!("it is refused with {error:#}")),
                    };
                }
            };
            let picture = Picture::read(&database).map_err(|error| format!("{error:#}"))?;
            picture.check_closed()?;
            Ok(Some(picture))
        })
    };
    on_disk(disk, seed, body)?
}

impl Life {
    /// Lives on `disk`, where all that `bounds` says has to be found, and films it.
    ///
    /// # Errors
    /// What must not be, such as a panic or a deadlock.
    pub(super) fn live(&self, disk: &Disk, bounds: &Bounds) -> Result<Lived, String> {
        disk.film();
        let lived = on_disk(disk, self.seed, || {
            let mut lived = Lived::default();
            if let Err(wrong) = self.run(disk, bounds, &mut lived) {
                lived.wrong = Some(wrong);
            }
            lived
        })?;
        match lived.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(lived),
        }
    }

    fn run(&self, disk: &Disk, bounds: &Bounds, lived: &mut Lived) -> Result<(), String> {
        // Half of the lives begin with other threads at work.
        let open = || Database::open(options(self.protocol, self.seed));
        let opened = match self.seed.is_multiple_of(2) {
            true => sim::quiet(open),
            false => open(),
        };
        let database = match opened {
            Ok(database) => database,
            Err(error) if self.may_fail && is_of_disk(&error) => {
                lived.refused = Some(format!("{error:#}"));
                return Ok(());
            }
            Err(error) => return Err(format!("it cannot be opened: {error:#}")),
        };
        let begun = match self.begin(disk, bounds, &database, lived) {
            Ok(step) => step,
            Err(End::Disk) => return Ok(()),
            Err(End::Wrong(wrong)) => return Err(wrong),
        };
        let judged = !self.defines && database.engine().record_history(HISTORY_BYTES).is_ok();
        let ended = self.clients(disk, &database, begun, lived);
        if let Err(End::Wrong(wrong)) = ended {
            return Err(wrong);
        }
        sim::quiet(|| self.end(disk, bounds, &database, judged, lived))
    }

    /// Reads what is there, and makes what is missing of the schema. Returns the step at which the
    /// client goes on that changes the catalog.
    fn begin(
        &self,
        disk: &Disk,
        bounds: &Bounds,
        database: &Database,
        lived: &mut Lived,
    ) -> Result<u64, End> {
        let note = |lived: &mut Lived, fact| {
            if !disk.is_off() {
                let at = disk.filmed();
                lived.noted.push(Noted { at, fact });
            }
        };
        let failed = |error: Error| match self.may_fail && is_of_disk(&error) {
            true => End::Disk,
            false => End::Wrong(format!("{error:#}")),
        };
        let picture = sim::quiet(|| Picture::read(database)).map_err(failed)?;
        picture
            .check_closed()
            .and_then(|()| bounds.check(&picture))
            .map_err(End::Wrong)?;
        let step = bounds.step_of(&picture).unwrap_or_default();
        let first = picture.statements;
        note(lived, Fact::Picture(Box::new(picture)));
        // The schema comes to be in the first life, and perhaps goes on coming in the second.
        for (position, statement) in STATEMENTS.iter().enumerate().skip(first) {
            note(lived, Fact::StatementBegun(position + 1));
            let run = || database.execute(statement);
            let done = match self.seed.is_multiple_of(4) {
                true => run(),
                false => sim::quiet(run),
            };
            done.map_err(failed)?;
            note(lived, Fact::Statement(position + 1));
        }
        Ok(step)
    }

    fn clients(
        &self,
        disk: &Disk,
        database: &Database,
        step: u64,
        lived: &mut Lived,
    ) -> Result<(), End> {
        let mut styles = vec![
            Style::Session,
            Style::Tickets,
            Style::Completions,
            Style::Closures,
        ];
        if self.defines {
            styles[self.seed as usize / 7 % 4] = Style::Definitions(step + 1);
        }
        if self.checkpoints {
            styles.push(Style::Checkpoints);
        }
        let ended: Vec<(Vec<Noted>, Result<(), End>)> = thread::scope(|scope| {
            let clients: Vec<_> = styles
                .into_iter()
                .enumerate()
                .map(|(position, style)| {
                    let client = Client {
                        database,
                        disk,
                        random: Random::stream(self.seed, position as u64),
                        token: self.number * 100_000 + position as i64 * 10_000,
                        noted: Vec::new(),
                        may_fail: self.may_fail,
                        is_promised: true,
                    };
                    scope.spawn(move || client.work(style, self.deeds))
                })
                .collect();
            let ended = clients.into_iter().map(|client| client.join());
            ended
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut result = Ok(());
        for (noted, ended) in ended {
            lived.noted.extend(noted);
            result = match (result, ended) {
                (Err(End::Wrong(first)), _) => Err(End::Wrong(first)),
                (_, Err(end)) => Err(end),
                (result, Ok(())) => result,
            };
        }
        lived.noted.sort_by_key(|noted| noted.at);
        result
    }

    /// What is there at the end has to be what was noted.
    fn end(
        &self,
        disk: &Disk,
        bounds: &Bounds,
        database: &Database,
        judged: bool,
        lived: &mut Lived,
    ) -> Result<(), String> {
        let refusal = database.engine().log().and_then(|log| log.refusal());
        if let Some(refusal) = refusal {
            if !self.may_fail {
                return Err(format!("the log refuses: {refusal:#}"));
            }
            let Err(error) = database.execute("INSERT INTO coming VALUES (99, 0)") else {
                return Err(format!("a change was acknowledged after {refusal:#}"));
            };
            return match is_of_disk(&error) {
                true => Ok(()),
                false => Err(format!(
                    "after {refusal:#} a change is refused with {error:#}"
                )),
            };
        }
        if judged {
            lived.judged = self.judge(database)?;
        }
        if disk.is_off() {
            return Ok(());
        }
        let picture = match Picture::read(database) {
            Ok(picture) => picture,
            Err(error) if self.may_fail && is_of_disk(&error) => return Ok(()),
            Err(error) => return Err(format!("{error:#}")),
        };
        picture.check_closed()?;
        bounds.before(usize::MAX, &lived.noted).check(&picture)
    }

    fn judge(&self, database: &Database) -> Result<u64, String> {
        let history = database
            .engine()
            .take_history()
            .map_err(|error| format!("{error:#}"))?;
        let options = kiln_checker::Options {
            order: match self.protocol.is_strict() {
                true => kiln_checker::Order::Strict,
                false => kiln_checker::Order::Serializable,
            },
            threads: 1,
            ..kiln_checker::Options::default()
        };
        let report = kiln_checker::check(&history, &options).map_err(|error| error.to_string())?;
        match report.is_serializable() {
            true => Ok(report.transactions),
            false => Err(report.to_string()),
        }
    }
}
