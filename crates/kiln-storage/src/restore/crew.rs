//! A crew: threads that put rows back together.
//!
//! ```text
//!  batch of commits ── one thread ─► plan: shard 0, shard 1, … ── each thread takes shards ─► rows
//!                      finds keys    (changes by table and key)   and reads values
//! ```
//!
//! A batch of commits is applied in rounds. In each round one thread *plans* the next commits: it
//! reads the key of each change, passes over the values, and puts the change into the shard that
//! its table and key belong to. Meanwhile the others apply the shards of the plan before, and the
//! planner joins them when it is done. A thread takes a shard that none has taken, so that no
//! thread waits long for another one. Shards are ranges of keys, as many changes in each:
//! neighbours in an index are one thread's, so that threads seldom meet in a node.
//!
//! So each value is read by one thread, the changes of a key keep their order, and one thread at a
//! time touches a row: a parallel replay of after-images, with the order where the Thomas write
//! rule would compare versions (healing App. C). A row whose key changes was deleted under the one
//! and inserted under the other, and each of these belongs to its own key. The end of a round waits
//! for all threads.

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::thread;

use super::{Intended, Mismatch, Restorer};
use crate::bytes::Reader;
use crate::epoch::Participant;
use crate::error::Error;
use crate::redo::{self, KeyRoom};
use crate::schema::TableId;
use crate::slot::Heap;
use crate::table::{EntryKey, Table};

/// Bytes of a batch that are worth a further thread.
const BYTES_PER_THREAD: usize = 1 << 10;
/// Bytes of the commits of a plan at most, but for longer commits. A plan of several threads takes
/// some times as much memory; one that a thread makes for itself stays in its cache.
const SHARED_PLAN_BYTES: usize = 1 << 20;
const OWN_PLAN_BYTES: usize = 8 << 10;
/// Plans of a batch at least that threads share: the first one is made while no other is applied.
const SHARED_PLANS: usize = 8;
/// Shards of a plan: the more, the less the last one is waited for.
const SHARDS_PER_THREAD: usize = 8;

/// Where each commit of a batch ends, and what changes are that do not fit to the rows.
pub type Ends = [(usize, Mismatch)];

/// Threads that put rows back together, each a participant of the epochs with an arena of its own.
pub struct Crew<'p> {
    /// That of the calling thread.
    own: &'p Participant,
    others: Vec<Participant>,
}

impl<'p> Crew<'p> {
    /// The calling thread, which is the participant `own`, and others up to `threads` in all, as
    /// far as the epochs have room for them.
    pub fn new(own: &'p Participant, threads: usize) -> Crew<'p> {
        let others = (1..threads).map_while(|_| own.epochs().register());
        Crew {
            own,
            others: others.collect(),
        }
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.others.len() + 1
    }

    /// Has each thread run `body` with its number, and returns what came of it in the order of
    /// these.
    pub fn run<T: Send>(&mut self, body: impl Fn(usize, &Restorer<'_>) -> T + Sync) -> Vec<T> {
        self.run_with(self.threads(), body)
    }

    /// As [`Crew::run`], with this many of its threads.
    fn run_with<T: Send>(
        &mut self,
        threads: usize,
        body: impl Fn(usize, &Restorer<'_>) -> T + Sync,
    ) -> Vec<T> {
        let (own, body) = (self.own, &body);
        let others = &mut self.others[..threads - 1];
        if others.is_empty() {
            return vec![at_work(own, |restorer| body(0, restorer))];
        }
        thread::scope(|scope| {
            let others: Vec<_> = (1..)
                .zip(others)
                .map(|(number, participant)| {
                    scope.spawn(move || at_work(participant, |restorer| body(number, restorer)))
                })
                .collect();
            let mut results = vec![at_work(own, |restorer| body(0, restorer))];
            results.extend(others.into_iter().map(|other| {
                (other.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }));
            results
        })
    }

    /// Has the calling thread run `body`.
    pub fn alone<T>(&mut self, body: impl FnOnce(&Restorer<'_>) -> T) -> T {
        at_work(self.own, body)
    }

    /// Applies the commits of a batch, as [`kiln_storage::redo`](crate::redo) has them one after
    /// the other in `bytes`, to the tables with these numbers.
    ///
    /// # Errors
    /// XX001 for bytes that are no commits of these tables, or that do not fit to the rows where
    /// that is refused; 53200 when memory is short; with the position in `bytes` at which the
    /// commit ends. Then some of the changes are made.
    pub fn commits<'t>(
        &mut self,
        tables: impl Fn(TableId) -> Option<&'t Table> + Send,
        bytes: &[u8],
        ends: &Ends,
    ) -> Result<(), (usize, Error)> {
        let threads = (bytes.len() / BYTES_PER_THREAD).clamp(1, self.threads());
        let (shards, plan_bytes) = match threads {
            1 => (1, OWN_PLAN_BYTES),
            _ => (
                threads * SHARDS_PER_THREAD,
                (bytes.len() / SHARED_PLANS).min(SHARED_PLAN_BYTES),
            ),
        };
        let mut planner = Planner {
            tables,
            bytes,
            start: 0,
            ends,
            plan_bytes,
            room: KeyRoom::default(),
            changes: Vec::new(),
            bounds: Vec::new(),
        };
        let (mut now, mut next) = (Plan::new(shards), Plan::new(shards));
        planner.fill(&mut now);
        while !now.is_empty {
            let planning = Mutex::new((&mut planner, &mut next));
            let results = self.run_with(threads, |number, restorer| {
                if number == 0 {
                    let (planner, next) = &mut *lock(&planning);
                    planner.fill(next);
                }
                now.apply(restorer)
            });
            // The first one of the log, as with one thread.
            let failures = results.into_iter().filter_map(Result::err);
            if let Some(failure) = failures.min_by_key(|(end, _)| *end).or(now.failure.take()) {
                return Err(failure);
            }
            std::mem::swap(&mut now, &mut next);
        }
        Ok(())
    }
}

/// Runs what a thread does while it is in an epoch: what other threads take out of the indexes is
/// not freed under it.
fn at_work<T>(participant: &Participant, body: impl FnOnce(&Restorer<'_>) -> T) -> T {
    participant.enter();
    let result = body(&Restorer::new(participant));
    participant.leave();
    result
}

/// Changes by the shard that they belong to.
struct Plan<'t, 'b> {
    shards: Vec<Vec<Intended<'t, 'b>>>,
    /// How many of them were taken by threads.
    taken: AtomicUsize,
    /// Why there are no further changes, if the bytes that follow are no commit.
    failure: Option<(usize, Error)>,
    is_empty: bool,
}

impl Plan<'_, '_> {
    fn new(shards: usize) -> Self {
        Plan {
            shards: (0..shards).map(|_| Vec::new()).collect(),
            taken: AtomicUsize::new(0),
            failure: None,
            is_empty: true,
        }
    }

    /// Applies shards until all are taken.
    fn apply(&self, restorer: &Restorer<'_>) -> Result<(), (usize, Error)> {
        let mut heap = Heap::new();
        // Relaxed: threads are started after the plan is made, and ended before the next one.
        while let Some(changes) = self.shards.get(self.taken.fetch_add(1, Ordering::Relaxed)) {
            let made = restorer.changes(changes, &mut heap);
            made.map_err(|(at, error)| (changes[at].end, error))?;
        }
        Ok(())
    }
}

/// Makes plans of a batch.
struct Planner<'t, 'b, F> {
    tables: F,
    bytes: &'b [u8],
    /// Where the next commit begins, and those that follow end.
    start: usize,
    ends: &'b Ends,
    plan_bytes: usize,
    room: KeyRoom,
    /// Changes that are not in shards yet.
    changes: Vec<Intended<'t, 'b>>,
    /// Where each shard but the first begins.
    bounds: Vec<ShardKey>,
}

impl<'t, 'b, F: Fn(TableId) -> Option<&'t Table>> Planner<'t, 'b, F> {
    /// Replaces a plan by one of the next commits; it is empty when there are none.
    fn fill(&mut self, plan: &mut Plan<'t, 'b>) {
        plan.shards.iter_mut().for_each(Vec::clear);
        plan.taken.store(0, Ordering::Relaxed);
        plan.is_empty = self.ends.is_empty();
        let full = self.start + self.plan_bytes;
        while let Some((&(end, mismatch), rest)) = self.ends.split_first()
            && self.start < full
        {
            let mut reader = Reader::new(&self.bytes[self.start..end]);
            let changes = &mut self.changes;
            let read = redo::read_keys(&mut reader, &self.tables, &mut self.room, |change| {
                changes.push(Intended {
                    change,
                    mismatch,
                    end,
                });
                Ok(())
            });
            if let Err(error) = read {
                plan.failure = Some((end, error));
                self.ends = &[];
                break;
            }
            (self.start, self.ends) = (end, rest);
        }
        match &mut plan.shards[..] {
            [all] => std::mem::swap(all, &mut self.changes),
            shards => self.divide(shards),
        }
    }

    /// Puts the changes into shards, about as many into each.
    fn divide(&mut self, shards: &mut [Vec<Intended<'t, 'b>>]) {
        let shard_keys = self.changes.iter().step_by(SAMPLED).map(shard_key_of);
        let mut shard_keys: Vec<ShardKey> = shard_keys.collect();
        shard_keys.sort_unstable();
        let count = shards.len();
        let bounds =
            (1..count).filter_map(|shard| shard_keys.get(shard * shard_keys.len() / count));
        self.bounds.clear();
        self.bounds.extend(bounds);
        for change in self.changes.drain(..) {
            let shard_key = shard_key_of(&change);
            shards[self.bounds.partition_point(|bound| *bound <= shard_key)].push(change);
        }
    }
}

/// One of this many changes of a plan is sampled to tell where shards begin.
const SAMPLED: usize = 16;

/// A table, and a number that stands for a key: in the order of the keys where they are short.
type ShardKey = (TableId, u128);

#[inline]
fn shard_key_of(intended: &Intended<'_, '_>) -> ShardKey {
    fn hash(words: &[u64]) -> u128 {
        let mix = |hash: u64, word: &u64| {
            ((hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29)
        };
        u128::from(words.iter().fold(0, mix))
    }
    let change = &intended.change;
    let key = match &change.key {
        EntryKey::Word(word) => u128::from(*word),
        EntryKey::DoubleWord(word) => *word,
        // Many long keys begin alike.
        EntryKey::Bytes64(key) => hash(&key.0),
        EntryKey::Bytes256(key) => hash(&key.0),
    };
    (change.table.id(), key)
}
