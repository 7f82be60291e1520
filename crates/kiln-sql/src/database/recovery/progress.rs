//! Progress: how far an opening has come, for users who wait for it.

use kiln_durability::RecoveryRates;

/// Nanoseconds between two calls of an observer at least.
const STEP_NS: u64 = 100_000_000;

/// What a recovery is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStage {
    /// It puts the rows of the checkpoint back.
    Checkpoint,
    /// It applies the log.
    Log,
    /// It builds the indexes besides the first of each table.
    Indexes,
}

/// How far a recovery has come
/// ([`Database::open_with_progress`](crate::Database::open_with_progress)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryProgress {
    /// What it is at.
    pub stage: RecoveryStage,
    /// Bytes of the checkpoint that were restored.
    pub checkpoint_bytes: u64,
    /// Bytes of the checkpoint; 0 without one.
    pub checkpoint_bytes_all: u64,
    /// Bytes of the log that were applied.
    pub log_bytes: u64,
    /// Bytes of the log that are to be applied.
    pub log_bytes_all: u64,
    /// How long the database has been opening, in nanoseconds.
    pub elapsed_ns: u64,
    /// How fast it reads in this stage, in bytes a second; 0 as long as it has read nothing in it,
    /// and while it builds indexes.
    pub bytes_per_s: f64,
    /// The seconds that reading the rest will take, as estimated; 0 while it builds indexes, which
    /// are not counted.
    pub remaining_s: f64,
}

/// Tells an observer how far a recovery has come.
pub(super) struct Observed<'a> {
    observer: &'a mut dyn FnMut(&RecoveryProgress),
    progress: RecoveryProgress,
    /// How fast recoveries have been before.
    rates: RecoveryRates,
    began_ns: u64,
    /// When the files were begun that are read: an older checkpoint may take the place of a damaged
    /// one.
    reading_since_ns: u64,
    stage_since_ns: u64,
    /// When the observer is called again.
    next_ns: u64,
}

impl<'a> Observed<'a> {
    /// For an opening that began then, on a machine where recoveries have these rates.
    pub fn new(
        observer: &'a mut dyn FnMut(&RecoveryProgress),
        rates: RecoveryRates,
        began_ns: u64,
    ) -> Observed<'a> {
        Observed {
            observer,
            progress: RecoveryProgress {
                stage: RecoveryStage::Checkpoint,
                checkpoint_bytes: 0,
                checkpoint_bytes_all: 0,
                log_bytes: 0,
                log_bytes_all: 0,
                elapsed_ns: 0,
                bytes_per_s: 0.0,
                remaining_s: 0.0,
            },
            rates,
            began_ns,
            reading_since_ns: began_ns,
            stage_since_ns: began_ns,
            next_ns: began_ns + STEP_NS,
        }
    }

    /// Reading begins, or begins anew from an older checkpoint, with these bytes of a checkpoint
    /// and of the log.
    pub fn begin(&mut self, now_ns: u64, checkpoint_bytes: u64, log_bytes: u64) {
        self.reading_since_ns = now_ns;
        self.progress = RecoveryProgress {
            checkpoint_bytes: 0,
            checkpoint_bytes_all: checkpoint_bytes,
            log_bytes: 0,
            log_bytes_all: log_bytes,
            ..self.progress
        };
        self.enter(now_ns, RecoveryStage::Checkpoint);
    }

    /// Notes that `bytes` bytes of the checkpoint are restored in all.
    pub fn restored(&mut self, now_ns: u64, bytes: u64) {
        self.progress.checkpoint_bytes = bytes;
        self.look(now_ns);
    }

    /// All of the checkpoint is restored, and the log is next.
    pub fn replays(&mut self, now_ns: u64) {
        self.progress.checkpoint_bytes = self.progress.checkpoint_bytes_all;
        self.enter(now_ns, RecoveryStage::Log);
    }

    /// Notes that `bytes` bytes of the log are applied in all.
    pub fn replayed(&mut self, now_ns: u64, bytes: u64) {
        self.progress.log_bytes = bytes;
        self.look(now_ns);
    }

    /// All is read, and the indexes are next. An observer that is called at all is told at once:
    /// they may take long.
    pub fn builds_indexes(&mut self, now_ns: u64) {
        self.progress.log_bytes = self.progress.log_bytes_all;
        self.enter(now_ns, RecoveryStage::Indexes);
        if now_ns >= self.began_ns + STEP_NS {
            self.tell(now_ns);
        }
    }

    fn enter(&mut self, now_ns: u64, stage: RecoveryStage) {
        self.progress.stage = stage;
        self.stage_since_ns = now_ns;
    }

    fn look(&mut self, now_ns: u64) {
        if now_ns >= self.next_ns {
            self.tell(now_ns);
        }
    }

    fn tell(&mut self, now_ns: u64) {
        self.next_ns = now_ns + STEP_NS;
        let reading_ns = now_ns - self.reading_since_ns;
        let progress = &mut self.progress;
        progress.elapsed_ns = now_ns - self.began_ns;
        let read = match progress.stage {
            RecoveryStage::Checkpoint => progress.checkpoint_bytes,
            RecoveryStage::Log => progress.log_bytes,
            RecoveryStage::Indexes => 0,
        };
        progress.bytes_per_s = read as f64 * 1e9 / (now_ns - self.stage_since_ns).max(1) as f64;
        progress.remaining_s = remaining_s(progress, &self.rates, reading_ns);
        (self.observer)(progress);
    }
}

/// The seconds that the rest takes: as long as at the rates of former recoveries, times how much
/// longer what was read until now has taken.
fn remaining_s(progress: &RecoveryProgress, rates: &RecoveryRates, reading_ns: u64) -> f64 {
    let all = rates.seconds(progress.checkpoint_bytes_all, progress.log_bytes_all);
    let done = rates.seconds(progress.checkpoint_bytes, progress.log_bytes);
    let slowness = match done > 0.0 {
        true => reading_ns as f64 / 1e9 / done,
        false => 1.0,
    };
    (all - done).max(0.0) * slowness
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: RecoveryRates = RecoveryRates {
        checkpoint_bytes_per_s: 100_000_000,
        log_bytes_per_s: 200_000_000,
    };

    /// What the observer is told when this is done.
    fn told(run: impl FnOnce(&mut Observed<'_>)) -> Vec<RecoveryProgress> {
        let mut told = Vec::new();
        let mut observer = |progress: &RecoveryProgress| told.push(*progress);
        run(&mut Observed::new(&mut observer, RATES, 0));
        told
    }

    #[test]
    fn the_time_left_follows_from_former_rates_and_how_fast_it_is_now() {
        let told = told(|observed| {
            observed.begin(0, 300_000_000, 400_000_000);
            observed.restored(1_000_000_000, 0);
            // Half as fast as before.
            observed.restored(2_000_000_000, 100_000_000);
            observed.replays(6_000_000_000);
            observed.replayed(8_000_000_000, 200_000_000);
            observed.builds_indexes(8_000_000_000);
        });
        let seen: Vec<_> = (told.iter())
            .map(|it| (it.elapsed_ns, it.bytes_per_s, it.remaining_s))
            .collect();
        assert_eq!(
            seen,
            [
                (1_000_000_000, 0.0, 5.0),
                (2_000_000_000, 50e6, 8.0),
                (8_000_000_000, 100e6, 2.0),
                (8_000_000_000, 0.0, 0.0)
            ]
        );
        assert_eq!(told[2].stage, RecoveryStage::Log);
        assert_eq!(told[2].checkpoint_bytes, 300_000_000);
        assert_eq!(told[3].stage, RecoveryStage::Indexes);
        assert_eq!(told[3].log_bytes, 400_000_000);
    }

    #[test]
    fn an_observer_is_called_ten_times_a_second_at_most() {
        let told = told(|observed| {
            observed.begin(0, 1_000, 0);
            for millisecond in 0..1_000 {
                observed.restored(millisecond * 1_000_000, millisecond);
            }
        });
        assert_eq!(told.len(), 9);
    }

    #[test]
    fn an_older_checkpoint_begins_anew() {
        let told = told(|observed| {
            observed.begin(0, 1_000, 100);
            observed.restored(50_000_000, 900);
            observed.begin(60_000_000, 500, 200);
            observed.restored(1_000_000_000, 100);
        });
        let [seen] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(
            (seen.checkpoint_bytes, seen.checkpoint_bytes_all),
            (100, 500)
        );
        assert_eq!((seen.log_bytes, seen.log_bytes_all), (0, 200));
    }
}
