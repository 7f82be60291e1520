//! Look-ups of loops that are fetched, or made, before the loop.

use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::Entry;

use super::{Executor, Leave, Stopped};
use crate::access::{Access, Halt, LookupSite, Visit};
use crate::code::{
    Foreseen, Label, Lookup, PREFETCH_ITERATIONS_MAX, PREFETCH_PARTS_MAX, Prefetch,
    PrefetchedLookup,
};
use crate::frame::Frame;
use crate::ir::*;
use crate::journey::Level;

impl<'a, A: Access> Executor<'a, A> {
    /// Makes the look-ups of a loop that does nothing else, in the order of its iterations, where
    /// its prefetch has done its work.
    #[inline(never)]
    pub(super) fn meet_all(&mut self, prefetch: &Prefetch, body: Label) -> Leave {
        let (first, last) = (self.get(prefetch.first), self.get(prefetch.last));
        match Slot::either_null(first, last) {
            true => Leave::Iteration,
            false => self.meet_from(prefetch, body, first.as_i64(), 0),
        }
    }

    /// As [`Executor::meet_all`], from this look-up of this iteration on.
    pub(super) fn meet_from(
        &mut self,
        prefetch: &Prefetch,
        body: Label,
        iteration: i64,
        lookup: usize,
    ) -> Leave {
        let (first, last) = (self.get(prefetch.first), self.get(prefetch.last));
        let (first, last) = (first.as_i64(), last.as_i64());
        let mut lookup = lookup;
        for iteration in iteration..=last {
            while let Some(prefetched) = prefetch.lookups.get(lookup) {
                if self.meet_foreseen(prefetched, iteration, first).is_err() {
                    if !A::TRAVELS || !matches!(self.halt, Some(Halt::Leaves)) {
                        return Leave::Stop;
                    }
                    if (iteration, lookup) == (first, 0) {
                        // Its records are asked for where it begins.
                        return self.leave_before(body - 1);
                    }
                    self.halt = None;
                    self.away_in(Level::Foreseen {
                        body,
                        iteration,
                        lookup,
                    });
                    return Leave::Away;
                }
                if A::TRAVELS {
                    self.access.has_done();
                }
                lookup += 1;
            }
            lookup = 0;
            self.frame.iterations_until_check -= 1;
            if self.frame.iterations_until_check == 0 && !self.is_within_limits() {
                return Leave::Stop;
            }
        }
        Leave::Iteration
    }

    /// Makes a look-up of an iteration of a loop whose iterations begin with `first`.
    #[inline(always)]
    fn meet_foreseen(
        &mut self,
        prefetched: &PrefetchedLookup,
        iteration: i64,
        first: i64,
    ) -> Result<(), Stopped> {
        let Some((lookup, ordinal)) = &prefetched.met else {
            return Ok(());
        };
        let at = iteration.wrapping_sub(first) as usize;
        if let Some(site) = LookupSite::of(*ordinal, at)
            && let Some(sighting) = self.frame.sightings[prefetched.first_sighting + at]
            && let Some(payload) = sighting.payload()
        {
            // SAFETY: the payload is of an index of a living table.
            let entry = unsafe { Entry::from_payload(payload) };
            if !entry.is_moving() {
                let (table, record) = (&*lookup.table, entry.record());
                let (intent, observed) = (lookup.intent, &lookup.observed);
                let memory = &self.frame.memory;
                let value_of =
                    |position: usize| Part::of(memory, &prefetched.key[position]).at(iteration);
                (self.access).seek_ahead(site, table, lookup.index, value_of);
                let visit = self.access.visit(table, record, intent, observed);
                if let Visit::Present(_) = self.noted(visit)? {
                    return Ok(());
                }
            }
        }
        self.meet_iteration(lookup, &prefetched.key, iteration)
    }

    /// Makes the look-up of one iteration of a loop as the loop would.
    #[inline(never)]
    fn meet_iteration(
        &mut self,
        lookup: &Lookup,
        key: &[PrefetchKey],
        iteration: i64,
    ) -> Result<(), Stopped> {
        for (register, part) in lookup.key.iter().zip(key) {
            let value = Part::of(&self.frame.memory, part).at(iteration);
            if !matches!(part, PrefetchKey::Register(_)) {
                self.set(*register, value);
            }
        }
        self.lookup(lookup).map(|_| ())
    }

    /// The entry that a prefetch found for this iteration, if it is certain that a look-up would
    /// find it.
    #[inline(always)]
    pub(super) fn sighted(&self, foreseen: Foreseen) -> Option<Entry> {
        let (iteration, first) = (self.get(foreseen.iteration), self.get(foreseen.first));
        let iteration = iteration.as_i64().wrapping_sub(first.as_i64()) as usize;
        if iteration >= PREFETCH_ITERATIONS_MAX {
            return None;
        }
        let payload = self.frame.sightings[foreseen.first_sighting + iteration]?.payload()?;
        // SAFETY: the payload is of an index of a living table.
        Some(unsafe { Entry::from_payload(payload) })
    }
}

/// Where the part of a foreseen key comes from, as far as it is the same in all iterations.
#[derive(Clone, Copy)]
enum Part<'m> {
    Fixed(Slot),
    Iteration,
    /// The element at the iteration, from 1; NULL outside.
    Elements(&'m [Slot]),
}

impl<'m> Part<'m> {
    fn of(memory: &'m Memory, part: &PrefetchKey) -> Part<'m> {
        let slot = |register: Reg| memory.slots[register.0 as usize];
        match *part {
            PrefetchKey::Register(register) => Part::Fixed(slot(register)),
            PrefetchKey::Variable => Part::Iteration,
            PrefetchKey::Element(array) => Part::Elements(match slot(array) {
                array if array.is_null() => &[],
                array => memory.heap.array(array),
            }),
        }
    }

    #[inline(always)]
    fn at(self, iteration: i64) -> Slot {
        match self {
            Part::Fixed(slot) => slot,
            Part::Iteration => Slot::from_i64(iteration),
            // What is below 1 becomes a position that no array has.
            Part::Elements(elements) => {
                let element = elements.get((iteration as usize).wrapping_sub(1));
                element.copied().unwrap_or(Slot::NULL)
            }
        }
    }
}

/// The parts of a foreseen key.
fn parts<'m>(memory: &'m Memory, lookup: &PrefetchedLookup) -> [Part<'m>; PREFETCH_PARTS_MAX] {
    let mut parts = [Part::Iteration; PREFETCH_PARTS_MAX];
    for (target, part) in parts.iter_mut().zip(&lookup.key) {
        *target = Part::of(memory, part);
    }
    parts
}

/// The values of a foreseen key in one iteration.
struct IterationValues<'p, 'm> {
    parts: std::slice::Iter<'p, Part<'m>>,
    iteration: i64,
}

impl Iterator for IterationValues<'_, '_> {
    type Item = Slot;

    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        self.parts.next().map(|part| part.at(self.iteration))
    }
}

/// The values of a foreseen key in the iterations from `first` on.
#[inline(always)]
fn iteration_values<'p, 'm>(
    parts: &'p [Part<'m>],
    first: i64,
) -> impl Fn(usize) -> IterationValues<'p, 'm> {
    move |at| IterationValues {
        parts: parts.iter(),
        iteration: first + at as i64,
    }
}

/// Asks for the index entries and records of the iterations of a loop, and notes what it finds.
/// `is_run_soon`: see [`Remembering::is_run_soon`](crate::access::Remembering::is_run_soon).
pub(super) fn prefetch(frame: &mut Frame, prefetch: &Prefetch, is_run_soon: bool) {
    let Frame {
        memory,
        prefetch_keys: keys,
        sightings,
        ..
    } = frame;
    let memory = &*memory;
    let bound = |register: Reg| memory.slots[register.0 as usize];
    let (first, last) = (bound(prefetch.first), bound(prefetch.last));
    if Slot::either_null(first, last) {
        return;
    }
    let (first, last) = (first.as_i64(), last.as_i64());
    let iterations = last.saturating_sub(first).saturating_add(1);
    let iterations = iterations.clamp(0, PREFETCH_ITERATIONS_MAX as i64) as usize;
    keys.clear();
    for lookup in &prefetch.lookups {
        let index = &lookup.table.indexes()[lookup.index];
        let parts = parts(memory, lookup);
        let parts = &parts[..lookup.key.len()];
        index.prefetch_each(
            &memory.heap,
            iterations,
            iteration_values(parts, first),
            keys,
        );
    }
    for (number, lookup) in prefetch.lookups.iter().enumerate() {
        let index = &lookup.table.indexes()[lookup.index];
        let keys = &keys[number * iterations..][..iterations];
        let sightings = &mut sightings[lookup.first_sighting..][..iterations];
        let parts = parts(memory, lookup);
        let parts = &parts[..lookup.key.len()];
        index.sight_each(
            &memory.heap,
            keys,
            iteration_values(parts, first),
            |at, sighting| {
                sightings[at] = sighting;
                let Some(sighting) = sighting else { return };
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(sighting.seen_payload()) };
                let record = entry.record();
                let touched = match is_run_soon {
                    true => lookup.touched_by_all,
                    false => lookup.touched,
                };
                record.fetch(touched.lines_at(record));
            },
        );
    }
}

/// Forgets what a prefetch found in an earlier run: its loop may look for other keys now.
pub(super) fn forget_sightings(frame: &mut Frame, prefetch: &Prefetch) {
    for lookup in &prefetch.lookups {
        frame.sightings[lookup.first_sighting..][..PREFETCH_ITERATIONS_MAX].fill(None);
    }
}
