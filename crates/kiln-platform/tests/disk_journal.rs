//! A small journal on the simulated disk: the power goes in every operation, each kind of crash
//! follows, and no record that was acknowledged may be lost. Journals with a flaw on purpose, the
//! canaries, have to be caught.
//!
//! The journal has a directory with a manifest and segments of records. The manifest says with
//! which segment the records begin and how many came before it; it is replaced by renaming. A
//! record is acknowledged when it is durable.

#![cfg(kiln_sim)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_platform::disk::{AlignedBuffer, BLOCK_BYTES, Directory, Error, File, Kind, LogFile};
use kiln_platform::sim::disk::{Crash, Disk, Fault, Options, Survivors};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::thread;

/// What a journal does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// It acknowledges a record before it syncs the segment.
    AcknowledgesFirst,
    /// It does not sync the directory in which it has made a segment.
    ForgetsDirectory,
    /// It renames a manifest that it has not synced.
    RenamesUnsynced,
    /// It syncs again after a sync has failed, and acknowledges if that succeeds.
    RetriesSync,
    /// Recovery takes what has the right length for a record.
    TrustsLengths,
}

/// How records become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// Written one after the other, with a sync after each.
    Synced,
    /// Each written durably to a block of a segment that was allocated before.
    Durable,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    flaw: Flaw,
    medium: Medium,
    /// Threads with a journal each.
    writers: usize,
}

const RECORDS: u64 = 13;
const RECORDS_PER_SEGMENT: u64 = 3;
const SEGMENTS_PER_CHECKPOINT: u64 = 2;

/// Length, number and checksum of a record.
const HEADER_BYTES: usize = 4 + 8 + 8;

fn payload(number: u64) -> Vec<u8> {
    let bytes = 100 + number * 613 % 1_400;
    (0..bytes).map(|at| (number * 31 + at) as u8 | 1).collect()
}

fn checksum(number: u64, bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ number, add)
}

fn encode(number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    bytes.extend(checksum(number, payload).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// The number and the payload of the record at the start of `bytes`, and the record's length.
fn decode(bytes: &[u8], flaw: Flaw) -> Option<(u64, &[u8], usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (number, sum) = (u64::from_le_bytes(*number), u64::from_le_bytes(*sum));
    let payload = rest.get(..length).filter(|_| length > 0)?;
    let is_record = flaw == Flaw::TrustsLengths || checksum(number, payload) == sum;
    is_record.then_some((number, payload, HEADER_BYTES + length))
}

fn read_all(file: &File) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; file.len()? as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Why a journal ends.
#[derive(Debug)]
enum End {
    Disk(Error),
    Wrong(String),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Disk(error)
    }
}

enum Log {
    Synced(File),
    Durable(LogFile),
}

struct Journal {
    directory: Directory,
    setting: Setting,
    log: Option<Log>,
    /// The number of the segment that is written, and where its next record goes.
    segment: u64,
    offset: u64,
    last_record: u64,
}

fn number_of_segment(name: &str) -> Option<u64> {
    name.strip_prefix("segment-")?.parse().ok()
}

impl Journal {
    /// Recovers the journal in the directory, or makes a new one.
    fn open(writer: usize, setting: Setting) -> Result<Journal, End> {
        let path = PathBuf::from(format!("/journals/{writer}"));
        let directory = Directory::create(&path)?;
        let (first, mut last_record) = match directory.open_file("MANIFEST") {
            Err(error) if *error.kind() == Kind::NotFound => (1, 0),
            Err(error) => return Err(error.into()),
            Ok(manifest) => {
                let bytes = read_all(&manifest)?;
                let content = decode(&bytes, Flaw::None)
                    .and_then(|(last, first, _)| Some((first.first_chunk::<8>()?, last)));
                match content {
                    Some((first, last)) => (u64::from_le_bytes(*first), last),
                    None => return Err(End::Wrong("the manifest is damaged".to_owned())),
                }
            }
        };
        for segment in first.. {
            let file = match directory.open_file(&format!("segment-{segment}")) {
                Err(error) if *error.kind() == Kind::NotFound => break,
                other => other?,
            };
            let bytes = read_all(&file)?;
            let mut at = 0;
            while let Some((number, content, length)) = decode(&bytes[at..], setting.flaw) {
                if number != last_record + 1 || content != payload(number) {
                    return Err(End::Wrong(format!("record {number} after {last_record}")));
                }
                last_record = number;
                at += match setting.medium {
                    Medium::Synced => length,
                    Medium::Durable => BLOCK_BYTES,
                };
            }
        }
        let entries = directory.list()?.into_iter();
        let segments = entries.filter_map(|entry| number_of_segment(&entry.name));
        let mut journal = Journal {
            segment: segments.max().unwrap_or(0).max(first - 1),
            directory,
            setting,
            log: None,
            offset: 0,
            last_record,
        };
        journal.start_segment()?;
        journal.checkpoint()?;
        Ok(journal)
    }

    fn start_segment(&mut self) -> Result<(), Error> {
        self.segment += 1;
        self.offset = 0;
        let name = format!("segment-{}", self.segment);
        let file = self.directory.create_file(&name)?;
        if self.setting.medium == Medium::Durable {
            let mut allocation = file.allocate(RECORDS_PER_SEGMENT * BLOCK_BYTES as u64)?;
            while !allocation.step()? {}
            file.sync()?;
        }
        if self.setting.flaw != Flaw::ForgetsDirectory {
            self.directory.sync()?;
        }
        self.log = Some(match self.setting.medium {
            Medium::Synced => Log::Synced(file),
            Medium::Durable => Log::Durable(self.directory.open_log_file(&name)?),
        });
        Ok(())
    }

    /// The records so far count, and the present segment is the first that is needed.
    fn checkpoint(&mut self) -> Result<(), Error> {
        match self.directory.remove_file("MANIFEST.new") {
            Err(error) if *error.kind() != Kind::NotFound => return Err(error),
            _ => {}
        }
        let manifest = self.directory.create_file("MANIFEST.new")?;
        let content = encode(self.last_record, &self.segment.to_le_bytes());
        manifest.write_at(0, &content)?;
        if self.setting.flaw != Flaw::RenamesUnsynced {
            manifest.sync()?;
        }
        self.directory.rename("MANIFEST.new", "MANIFEST")?;
        self.directory.sync()?;
        for entry in self.directory.list()? {
            if number_of_segment(&entry.name).is_some_and(|number| number < self.segment) {
                self.directory.remove_file(&entry.name)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, acknowledge: impl Fn(u64)) -> Result<(), Error> {
        let number = self.last_record + 1;
        if number.is_multiple_of(RECORDS_PER_SEGMENT) {
            self.start_segment()?;
        }
        if number.is_multiple_of(RECORDS_PER_SEGMENT * SEGMENTS_PER_CHECKPOINT) {
            self.checkpoint()?;
        }
        let record = encode(number, &payload(number));
        match self.log.as_ref().expect("a segment is open") {
            Log::Synced(file) => {
                // The header is written last: not all of what is there was written in order.
                let (header, rest) = record.split_at(HEADER_BYTES);
                file.write_at(self.offset + HEADER_BYTES as u64, rest)?;
                file.write_at(self.offset, header)?;
                if self.setting.flaw == Flaw::AcknowledgesFirst {
                    acknowledge(number);
                }
                match file.sync() {
                    Err(_) if self.setting.flaw == Flaw::RetriesSync => {
                        // The file itself refuses; the flaw has to open it again.
                        let name = format!("segment-{}", self.segment);
                        let again = self.directory.open_file_to_write(&name)?;
                        again.sync()?;
                        self.log = Some(Log::Synced(again));
                    }
                    other => other?,
                }
                self.offset += record.len() as u64;
            }
            Log::Durable(file) => {
                let mut block = AlignedBuffer::new(BLOCK_BYTES);
                assert!(block.append(&record), "a record fits into a block");
                block.pad(BLOCK_BYTES);
                file.write_durably(self.offset, &block)?;
                self.offset += BLOCK_BYTES as u64;
            }
        }
        self.last_record = number;
        acknowledge(number);
        Ok(())
    }
}

/// Runs one process: each writer recovers its journal and appends records until there are enough or
/// something fails. What was recovered, and what was acknowledged before the power went, by writer.
fn process(disk: &Disk, setting: Setting, records: u64, seed: u64) -> Vec<(Result<u64, End>, u64)> {
    let mut config = Config::new(Schedule::Random, seed);
    config.disk = Some(disk.clone());
    let write = |writer| {
        let acknowledged = AtomicU64::new(0);
        let acknowledge = |number| {
            if !disk.is_off() {
                acknowledged.store(number, Ordering::Relaxed);
            }
        };
        let mut journal = match Journal::open(writer, setting) {
            Ok(journal) => journal,
            Err(end) => return (Err(end), 0),
        };
        let recovered = journal.last_record;
        // What was recovered has been read and checkpointed: from now on it is promised.
        acknowledge(recovered);
        for _ in 0..records {
            if journal.append(acknowledge).is_err() {
                break;
            }
        }
        (Ok(recovered), acknowledged.load(Ordering::Relaxed))
    };
    let body = || {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..setting.writers)
                .map(|writer| scope.spawn(move || write(writer)))
                .collect();
            let ended = writers.into_iter().map(|writer| writer.join());
            ended.map(|ended| ended.expect("no panic")).collect()
        })
    };
    match sim::run(&config, body) {
        Ok(run) => run.value,
        Err(failure) => panic!("{setting:?}: {failure}"),
    }
}

/// Recovers what is on `disk`, where the records of `acknowledged` must be. What is wrong, if
/// something is.
fn recover(disk: &Disk, setting: Setting, acknowledged: &[u64]) -> Option<String> {
    let recovered = process(disk, setting, 0, 1);
    recovered
        .into_iter()
        .zip(acknowledged)
        .find_map(|((recovered, _), acknowledged)| match recovered {
            Ok(last) if last >= *acknowledged => None,
            Ok(last) => Some(format!("{last} of {acknowledged} records are left")),
            Err(End::Wrong(why)) => Some(why),
            Err(End::Disk(error)) => Some(error.to_string()),
        })
}

fn acknowledged(ended: &[(Result<u64, End>, u64)]) -> Vec<u64> {
    ended
        .iter()
        .map(|(_, acknowledged)| *acknowledged)
        .collect()
}

/// All kinds of crashes, and each change alone that was not synced.
fn crashes(disk: &Disk) -> impl Iterator<Item = Crash> + use<> {
    let each = (0..disk.unsynced()).map(|number| Crash::new(Survivors::AllBut(number)));
    Crash::KINDS.into_iter().chain(each)
}

/// Lets the power go in every operation of a process; with several writers, in every fifth. What is
/// lost, if something is.
fn crash_everywhere(setting: Setting) -> Option<String> {
    let whole = Disk::new(Options::new(1));
    let ended = process(&whole, setting, RECORDS, 1);
    assert_eq!(acknowledged(&ended), vec![RECORDS; setting.writers]);
    let step = if setting.writers == 1 { 1 } else { 5 };
    for operation in (1..=whole.operations()).step_by(step) {
        for seed in 0..2 {
            let disk = Disk::new(Options::new(operation * 31 + seed));
            disk.crash_at(operation);
            let acknowledged = acknowledged(&process(&disk, setting, RECORDS, 1));
            assert!(disk.is_off(), "operation {operation} is never reached");
            let context = format!("{setting:?}, ended in operation {operation}, seed {seed}");
            if let Some(lost) = recover(&disk.restart(seed), setting, &acknowledged) {
                return Some(format!("{context}, restarted: {lost}"));
            }
            for crash in crashes(&disk) {
                let found = disk.power_on(&crash, seed);
                if let Some(lost) = recover(&found, setting, &acknowledged) {
                    return Some(format!("{context}, {crash}: {lost}"));
                }
            }
        }
    }
    None
}

const RIGHT: Setting = Setting {
    flaw: Flaw::None,
    medium: Medium::Synced,
    writers: 1,
};

const DURABLE: Setting = Setting {
    medium: Medium::Durable,
    ..RIGHT
};

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_goes() {
    for medium in [Medium::Synced, Medium::Durable] {
        assert_eq!(crash_everywhere(Setting { medium, ..RIGHT }), None);
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_threads_with_a_journal_each() {
    for medium in [Medium::Synced, Medium::Durable] {
        let setting = Setting {
            medium,
            writers: 2,
            ..RIGHT
        };
        assert_eq!(crash_everywhere(setting), None);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_recovery_is_cut_off_as_well() {
    for (setting, first) in [(RIGHT, 40), (DURABLE, 45)] {
        let disk = Disk::new(Options::new(first));
        disk.crash_at(first);
        let acknowledged = acknowledged(&process(&disk, setting, RECORDS, 1));
        assert!(acknowledged[0] > 0);
        for crash in crashes(&disk) {
            let found = disk.power_on(&crash, 1);
            let whole = found.copy();
            assert_eq!(recover(&whole, setting, &acknowledged), None);
            for operation in 1..=whole.operations() {
                let found = found.copy();
                found.crash_at(operation);
                process(&found, setting, 0, 1);
                for second in [Crash::KINDS[1], crash] {
                    let again = found.power_on(&second, operation);
                    let lost = recover(&again, setting, &acknowledged);
                    assert_eq!(lost, None, "{setting:?}, {crash}, {operation}, {second}");
                }
            }
        }
    }
}

/// Lets each fault come in every operation. What a crash later on or a restart has lost, if
/// something.
fn fail_everywhere(setting: Setting) -> Option<String> {
    let whole = Disk::new(Options::new(1));
    process(&whole, setting, RECORDS, 1);
    for operation in 1..=whole.operations() {
        for fault in Fault::ALL {
            let disk = Disk::new(Options::new(operation));
            disk.inject(operation, fault);
            let acknowledged = acknowledged(&process(&disk, setting, RECORDS, 1));
            let context = format!("{setting:?}, {fault:?} in operation {operation}");
            if let Some(lost) = recover(&disk.restart(1), setting, &acknowledged) {
                return Some(format!("{context}, restarted: {lost}"));
            }
            // Nothing unsynced; any sectors; lengths and garbage.
            for crash in Crash::KINDS.into_iter().skip(1).step_by(5) {
                let found = disk.power_on(&crash, operation);
                if let Some(lost) = recover(&found, setting, &acknowledged) {
                    return Some(format!("{context}, {crash}: {lost}"));
                }
            }
        }
    }
    None
}

#[test]
fn nothing_acknowledged_is_lost_whatever_fails() {
    for medium in [Medium::Synced, Medium::Durable] {
        assert_eq!(fail_everywhere(Setting { medium, ..RIGHT }), None);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_a_restart_builds_on_what_no_sync_has_written() {
    // The sync fails, the cache takes its data to be written, and the process starts again. What
    // recovery has read and promised must survive the power's going later.
    for operation in 1..150 {
        let disk = Disk::new(Options::new(operation));
        disk.inject(operation, Fault::SyncKeepsCache);
        process(&disk, RIGHT, RECORDS, 1);
        let next = disk.restart(1);
        let acknowledged = acknowledged(&process(&next, RIGHT, 2, 1));
        for crash in crashes(&next) {
            let found = next.power_on(&crash, operation);
            let lost = recover(&found, RIGHT, &acknowledged);
            assert_eq!(lost, None, "operation {operation}, {crash}");
        }
    }
}

#[test]
fn every_canary_is_caught() {
    for flaw in [
        Flaw::AcknowledgesFirst,
        Flaw::ForgetsDirectory,
        Flaw::RenamesUnsynced,
        Flaw::TrustsLengths,
    ] {
        let caught = crash_everywhere(Setting { flaw, ..RIGHT });
        println!("{}", caught.expect("each of these loses records"));
    }
    let flaw = Flaw::RetriesSync;
    let caught = fail_everywhere(Setting { flaw, ..RIGHT });
    println!(
        "{}",
        caught.expect("a sync that is repeated proves nothing")
    );
    let flaw = Flaw::ForgetsDirectory;
    let caught = crash_everywhere(Setting { flaw, ..DURABLE });
    println!(
        "{}",
        caught.expect("durable writes do not make an entry durable")
    );
}
