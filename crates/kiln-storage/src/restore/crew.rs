//! A crew: threads that put rows back together.
//!
//! A batch of commits is applied in two steps. First each thread reads a part of the batch, and notes where the changes are, by the
//! thread that their key belongs to. Then each thread applies the changes of its own keys, in the order of the batch. So the changes of a
//! key keep their order, and one thread alone touches a row: a parallel replay of after-images, with the order where the Thomas write
//! rule would compare versions (healing App. C). A row whose key changes was deleted under the one and inserted under the other, and each of these
//! belongs to its own key. The end of a batch waits for all threads.

use kiln_platform::thread;

use super::{Mismatch, Restorer};
use crate::bytes::Reader;
use crate::epoch::Participant;
use crate::error::Result;
use crate::redo::{self, ReadChange};
use crate::schema::TableId;
use crate::slot::Heap;
use crate::table::{EntryKey, Table};

/// Bytes of a batch that are worth a further thread.
const BYTES_PER_THREAD: usize = 16 << 10;
/// Threads that share a batch at least: noting and applying together are 1.7 times the work of applying alone, so that two gain little on
/// two idle cores and lose on one.
const SHARING_THREADS_MIN: usize = 3;

/// Where each commit of a batch ends, and what changes are that do not fit to the rows.
pub type Ends = [(usize, Mismatch)];

/// Threads that put rows back together, each a participant of the epochs with memory of its own.
pub struct Crew<'p> {
    /// That of the calling thread.
    own: &'p Participant,
    others: Vec<Participant>,
}

impl<'p> Crew<'p> {
    /// The calling thread, which is the participant `own`, and others up to `threads` in all, as far as the epochs have room for them.
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

    /// Has each thread run `body` with its number, and returns what came of it in the order of these.
    ///
    /// # Errors
    /// That of the first thread that has one.
    pub fn run<T: Send>(
        &mut self,
        body: impl Fn(usize, &Restorer<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.run_with(self.threads(), body)
    }

    /// As [`Crew::run`], with this many of its threads.
    fn run_with<T: Send>(
        &mut self,
        threads: usize,
        body: impl Fn(usize, &Restorer<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (own, body) = (self.own, &body);
        let others = &mut self.others[..threads - 1];
        if others.is_empty() {
            return Ok(vec![at_work(own, |restorer| body(0, restorer))?]);
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
            results.into_iter().collect()
        })
    }

    /// Has the calling thread run `body`.
    ///
    /// # Errors
    /// That of `body`.
    pub fn alone<T>(&mut self, body: impl FnOnce(&Restorer<'_>) -> Result<T>) -> Result<T> {
        at_work(self.own, body)
    }

    /// Applies the commits of a batch, as [`kiln_storage::redo`](crate::redo) has them one after the other in `bytes`, to the tables with these
    /// numbers.
    ///
    /// # Errors
    /// XX001 for bytes that are no commits of these tables, or that do not fit to the rows where that is refused; 53200 when memory is
    /// short. Then some of the changes are made.
    pub fn commits<'t>(
        &mut self,
        tables: impl Fn(TableId) -> Option<&'t Table> + Sync,
        bytes: &[u8],
        ends: &Ends,
    ) -> Result<()> {
        let threads = (bytes.len() / BYTES_PER_THREAD).clamp(1, self.threads());
        if threads < SHARING_THREADS_MIN {
            return at_work(self.own, |restorer| {
                let mut heap = Heap::new();
                each_change(
                    &tables,
                    bytes,
                    (0, ends),
                    &mut heap,
                    |change, heap, place| restorer.change(change, heap, place.mismatch),
                )
            });
        }
        let noted = self.run_with(threads, |number, _| {
            let (start, part) = part_of(ends, number, threads);
            let mut places: Vec<Vec<Place>> = vec![Vec::new(); threads];
            let mut heap = Heap::new();
            each_change(
                &tables,
                bytes,
                (start, part),
                &mut heap,
                |change, _, place| {
                    places[owner(change.table.id(), &change.key, threads)].push(place);
                    Ok(())
                },
            )?;
            Ok(places)
        })?;
        self.run_with(threads, |number, restorer| {
            let (mut heap, mut values) = (Heap::new(), Vec::new());
            for place in noted.iter().flat_map(|places| &places[number]) {
                let mut reader = Reader::new(&bytes[place.start..]);
                redo::read_one(
                    &mut reader,
                    &tables,
                    &mut heap,
                    &mut values,
                    |change, heap| restorer.change(change, heap, place.mismatch),
                )?;
            }
            Ok(())
        })
        .map(drop)
    }
}

/// Where a change is in a batch.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    mismatch: Mismatch,
}

/// Runs what a thread does while it is in an epoch: what other threads take out of the indexes is not freed under it.
fn at_work<T>(participant: &Participant, body: impl FnOnce(&Restorer<'_>) -> T) -> T {
    participant.enter();
    let result = body(&Restorer::new(participant));
    participant.leave();
    result
}

/// Reads the changes of the commits that end at `ends`, the first of which begins at `start`.
fn each_change<'t>(
    tables: impl Fn(TableId) -> Option<&'t Table>,
    bytes: &[u8],
    (mut start, ends): (usize, &Ends),
    heap: &mut Heap,
    mut each: impl FnMut(&ReadChange<'_>, &mut Heap, Place) -> Result<()>,
) -> Result<()> {
    let mut values = Vec::new();
    for &(end, mismatch) in ends {
        let mut reader = Reader::new(&bytes[start..end]);
        let (_, changes) = redo::read_head(&mut reader)?;
        for _ in 0..changes {
            let place = Place {
                start: end - reader.rest().len(),
                mismatch,
            };
            redo::read_one(&mut reader, &tables, heap, &mut values, |change, heap| {
                each(change, heap, place)
            })?;
        }
        start = end;
    }
    Ok(())
}

/// The part of a batch that a thread reads, and where it begins: about as many bytes for each.
fn part_of(ends: &Ends, number: usize, threads: usize) -> (usize, &Ends) {
    let bytes = ends.last().map_or(0, |(end, _)| *end);
    let until = |number: usize| ends.partition_point(|(end, _)| *end <= bytes / threads * number);
    let last = match number + 1 == threads {
        true => ends.len(),
        false => until(number + 1),
    };
    let first = until(number);
    let start = first.checked_sub(1).map_or(0, |before| ends[before].0);
    (start, &ends[first..last])
}

/// The number of the thread that the changes of a key belong to.
fn owner(table: TableId, key: &EntryKey, threads: usize) -> usize {
    let mix =
        |hash: u64, word: u64| ((hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29);
    let hash = mix(0, u64::from(table.0));
    let hash = match key {
        EntryKey::Word(word) => mix(hash, *word),
        EntryKey::DoubleWord(word) => mix(mix(hash, (word >> 64) as u64), *word as u64),
        EntryKey::Bytes64(key) => key.0.iter().fold(hash, |hash, word| mix(hash, *word)),
        EntryKey::Bytes256(key) => key.0.iter().fold(hash, |hash, word| mix(hash, *word)),
    };
    ((u128::from(mix(hash, 0)) * threads as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_commit_is_in_one_part() {
        let ends: Vec<(usize, Mismatch)> = (1..=100)
            .map(|commit| (commit * commit, Mismatch::Refused))
            .collect();
        for (count, threads) in [(0, 3), (1, 3), (2, 4), (100, 1), (100, 3), (100, 7)] {
            let ends = &ends[..count];
            let mut next = 0_usize;
            for number in 0..threads {
                let (start, part) = part_of(ends, number, threads);
                let before = next.checked_sub(1).map_or(0, |at| ends[at].0);
                assert!(part.is_empty() || start == before, "{count} {threads}");
                assert_eq!(part, &ends[next..next + part.len()]);
                next += part.len();
            }
            assert_eq!(next, count, "{threads}");
        }
    }

    #[test]
    fn keys_belong_to_all_threads_about_equally() {
        for threads in [2, 3, 8] {
            let mut counts = vec![0; threads];
            for key in 0..8_000 {
                counts[owner(TableId(1), &EntryKey::Word(key), threads)] += 1;
            }
            let fair = 8_000 / threads;
            assert!(
                counts
                    .iter()
                    .all(|count| (fair / 2..fair * 2).contains(count)),
                "{counts:?}"
            );
        }
    }
}
