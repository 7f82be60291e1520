//! A seed: some lives, one after the other, and crashes of each of them.

use std::path::Path;

use kiln_engine::Configuration;
use kiln_platform::random::Random;
use kiln_platform::sim::disk::{Crash, DirectWrites, Disk, Fault, Options, Still, Survivors};

use super::ledger::Bounds;
use super::life::{Life, recover, recover_damaged};
use super::picture::Picture;

/// What a seed is to do.
#[derive(Clone, Debug)]
pub(super) struct Case<'a> {
    /// The protocol of the first life and of every other one.
    pub(super) protocol: Configuration,
    /// Those of which the others, and recoveries, have one.
    pub(super) protocols: &'a [Configuration],
    pub(super) seed: u64,
    /// Lives.
    pub(super) lives: u64,
    /// Crashes of each life; `None` for all moments and all kinds.
    pub(super) crashes: Option<usize>,
    /// Transactions of each client in a life.
    pub(super) deeds: usize,
    /// Where the disk goes that lost something.
    pub(super) keep: Option<&'a Path>,
}

/// What it has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Lives, those with a failing disk included.
    pub(crate) lives: u64,
    /// Lives whose disk failed.
    pub(crate) failed_disks: u64,
    /// Crashes, each with a recovery.
    pub(crate) crashes: u64,
    /// Crashes of recoveries among them.
    pub(crate) of_recoveries: u64,
    /// Damaged disks.
    pub(crate) damaged: u64,
    /// Transactions that were acknowledged in the lives.
    pub(crate) acknowledged: u64,
    /// Transactions judged.
    pub(crate) judged: u64,
}

impl Counted {
    pub(super) fn add(&mut self, other: &Counted) {
        self.lives += other.lives;
        self.failed_disks += other.failed_disks;
        self.crashes += other.crashes;
        self.of_recoveries += other.of_recoveries;
        self.damaged += other.damaged;
        self.acknowledged += other.acknowledged;
        self.judged += other.judged;
    }
}

/// How a process ends, or its machine.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The process is killed.
    Killed,
    Crash(Crash),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Killed => f.write_str("the process is killed"),
            Ending::Crash(crash) => write!(f, "the power goes; {crash}"),
        }
    }
}

impl Ending {
    fn draw(random: &mut Random, disk: &Disk) -> Ending {
        let number = random.below(Crash::KINDS.len() + 4);
        match (Crash::KINDS.get(number), disk.unsynced()) {
            (Some(kind), _) => Ending::Crash(*kind),
            (None, 1..) if number.is_multiple_of(2) => {
                Ending::Crash(Crash::new(Survivors::AllBut(random.below(disk.unsynced()))))
            }
            _ => Ending::Killed,
        }
    }

    /// All of them.
    fn all(disk: &Disk) -> Vec<Ending> {
        let each = (0..disk.unsynced()).map(|number| Crash::new(Survivors::AllBut(number)));
        let crashes = Crash::KINDS.into_iter().chain(each).map(Ending::Crash);
        std::iter::once(Ending::Killed).chain(crashes).collect()
    }

    fn of(self, disk: &Disk, seed: u64) -> Disk {
        match self {
            Ending::Killed => disk.restart(seed),
            Ending::Crash(crash) => disk.power_on(&crash, seed),
        }
    }
}

/// The end of a life: a picture of its film, or its last state.
struct Moment<'a> {
    /// Its place in the film.
    frame: usize,
    disk: &'a Disk,
    name: String,
}

fn moments<'a>(film: &'a [Still], end: &'a Disk) -> Vec<Moment<'a>> {
    let stills = film.iter().enumerate().map(|(frame, still)| Moment {
        frame,
        disk: &still.disk,
        name: format!("{:?} operation {}", still.moment, still.operation),
    });
    let end = Moment {
        frame: usize::MAX,
        disk: end,
        name: "after the last operation".to_owned(),
    };
    stills.chain(std::iter::once(end)).collect()
}

impl Case<'_> {
    /// Lives and crashes.
    ///
    /// # Errors
    /// What was lost, or is wrong.
    pub(super) fn run(&self) -> Result<Counted, String> {
        // Each protocol has other lives.
        let name = self.protocol.to_string();
        let stream = name.bytes().fold(1, |sum: u64, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut random = Random::stream(self.seed, stream);
        let mut counted = Counted::default();
        let mut options = Options::new(self.seed);
        options.direct_writes = match self.seed % 4 {
            0 => DirectWrites::RefusedAtOpening,
            1 => DirectWrites::RefusedAtWriting,
            _ => DirectWrites::Taken,
        };
        let mut disk = Disk::new(options);
        let mut bounds = Bounds::default();
        for number in 0..self.lives {
            let life = Life {
                protocol: match number % 2 {
                    0 => self.protocol,
                    _ => self.protocols[random.below(self.protocols.len())],
                },
                seed: random.next_u64() >> 1,
                number: number as i64 * 2,
                deeds: self.deeds,
                defines: random.below(2) == 0,
                checkpoints: random.below(2) == 0,
                may_fail: false,
            };
            let start = disk.copy();
            let next = self.crash(&life, &disk, &bounds, &mut random, &mut counted)?;
            let failed = match random.below(2) {
                0 => self.fail(
                    &life,
                    &start,
                    disk.operations(),
                    &bounds,
                    &mut random,
                    &mut counted,
                )?,
                _ => None,
            };
            (disk, bounds) = failed.unwrap_or(next);
        }
        Ok(counted)
    }

    /// Lives once more with a disk that fails in one of its operations.
    fn fail(
        &self,
        life: &Life,
        start: &Disk,
        operations: u64,
        bounds: &Bounds,
        random: &mut Random,
        counted: &mut Counted,
    ) -> Result<Option<(Disk, Bounds)>, String> {
        let fault = Fault::ALL[random.below(Fault::ALL.len())];
        let operation = 1 + random.below(operations as usize) as u64;
        start.inject(operation, fault);
        let life = Life {
            number: life.number + 1,
            // What is interrupted is repeated, but for a sync.
            may_fail: fault != Fault::Short,
            ..life.clone()
        };
        counted.failed_disks += 1;
        let failed = self.crash(&life, start, bounds, random, counted);
        let failed =
            failed.map_err(|error| format!("{fault:?} in operation {operation}: {error}"))?;
        Ok((random.below(2) == 0).then_some(failed))
    }

    /// Lives, and crashes at moments of the life. Returns one of the disks that this leaves, and
    /// what has to be on it.
    fn crash(
        &self,
        life: &Life,
        disk: &Disk,
        bounds: &Bounds,
        random: &mut Random,
        counted: &mut Counted,
    ) -> Result<(Disk, Bounds), String> {
        let of_life =
            |error: String| format!("life {} under {}: {error}", life.number, life.protocol);
        let lived = life.live(disk, bounds).map_err(of_life)?;
        let film = disk.take_film();
        let moments = moments(&film, disk);
        counted.lives += 1;
        counted.judged += lived.judged;
        counted.acknowledged +=
            bounds.before(usize::MAX, &lived.noted).acknowledged() - bounds.acknowledged();
        let chosen: Vec<(usize, Ending)> = match self.crashes {
            Some(count) => {
                let draw = |position: usize| {
                    let first: usize = position * moments.len() / count;
                    let end = ((position + 1) * moments.len() / count).max(first + 1);
                    let at = first + random.below(end - first);
                    (at, Ending::draw(random, moments[at].disk))
                };
                (0..count).map(draw).collect()
            }
            None => {
                let all = moments.iter().enumerate();
                all.flat_map(|(at, moment)| {
                    Ending::all(moment.disk).into_iter().map(move |it| (at, it))
                })
                .collect()
            }
        };
        let goes_on = random.below(chosen.len());
        let mut next = None;
        for (position, (at, ending)) in chosen.into_iter().enumerate() {
            let moment = &moments[at];
            let context = |error: String| of_life(format!("{}: {ending}: {error}", moment.name));
            let bounds = bounds.before(moment.frame, &lived.noted);
            let found = ending.of(moment.disk, random.next_u64());
            if position == goes_on {
                next = Some((found.copy(), bounds.clone()));
            }
            self.recover(&found, &bounds, random, counted)
                .map_err(context)?;
        }
        next.ok_or_else(|| "no crash was asked for".to_owned())
    }

    /// Recovers what a crash has left, once and again.
    fn recover(
        &self,
        found: &Disk,
        bounds: &Bounds,
        random: &mut Random,
        counted: &mut Counted,
    ) -> Result<(), String> {
        let protocol = |random: &mut Random| self.protocols[random.below(self.protocols.len())];
        let check = |disk: &Disk, protocol: Configuration, seed: u64| -> Result<Picture, String> {
            let picture = recover(disk, protocol, seed);
            let picture = picture.and_then(|picture| bounds.check(&picture).map(|()| picture));
            if let (Err(_), Some(keep)) = (&picture, self.keep) {
                let kept = disk.export(keep);
                kept.map_err(|error| format!("{}: {error}", keep.display()))?;
            }
            picture.map_err(|error| format!("recovered under {protocol}: {error}"))
        };
        counted.crashes += 1;
        let is_filmed = random.below(8) == 0;
        if is_filmed {
            found.film();
        }
        let picture = check(found, protocol(random), random.next_u64())?;
        if is_filmed {
            let film = found.take_film();
            for _ in 0..film.len().min(2) {
                let still = &film[random.below(film.len())];
                let ending = Ending::draw(random, &still.disk);
                let again = ending.of(&still.disk, random.next_u64());
                counted.crashes += 1;
                counted.of_recoveries += 1;
                let recovered = check(&again, protocol(random), random.next_u64());
                recovered.map_err(|error| {
                    let (moment, operation) = (still.moment, still.operation);
                    format!("{moment:?} operation {operation} of its recovery: {ending}: {error}")
                })?;
            }
        }
        if random.below(4) == 0 {
            let ending = Ending::draw(random, found);
            let again = ending.of(found, random.next_u64());
            counted.crashes += 1;
            counted.of_recoveries += 1;
            let recovered = check(&again, protocol(random), random.next_u64())?;
            if recovered != picture {
                return Err(format!(
                    "recovered again, {ending}, it is {recovered:?}, and was {picture:?}"
                ));
            }
        }
        if random.below(6) == 0 {
            let damaged = found.copy();
            let damage =
                damaged.damage_at_random(random.next_u64(), |path| !path.ends_with("/LOCK"));
            if let Some(damage) = damage {
                counted.damaged += 1;
                let recovered = recover_damaged(&damaged, protocol(random), random.next_u64());
                let recovered = recovered.and_then(|it| it.map_or(Ok(()), |it| bounds.check(&it)));
                recovered.map_err(|error| {
                    format!("recovered, closed and then damaged ({damage:?}): {error}")
                })?;
            }
        }
        Ok(())
    }
}
