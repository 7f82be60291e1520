//! Rows kept within a run: to sort, to group, to leave out duplicates, to join.
//!
//! A loop over the rows that have certain values builds a hash index over these columns first, and
//! keeps it until the rows change. The index is a list of the rows a bucket, linked in the order of
//! the buffer: `heads` has the first row of each bucket, `next` the row after each row (both count
//! from 1, 0 is the end). A join over two buffers of n rows so takes n steps and not n².

use kiln_storage::slot::{Heap, Slot};

use crate::ir::{Class, Match};
use crate::values::{compare, hash};

/// Rows kept within a run.
#[derive(Default, Debug)]
pub struct Buffer {
    /// The rows, one after the other.
    pub rows: Vec<Slot>,
    /// The rows' hashes and positions, sorted or not, for distinct pushes.
    pub distinct: DistinctRows,
    /// The rows by the values of some columns, for loops over matching rows.
    index: RowIndex,
}

/// Rows by the hash of some of their columns.
#[derive(Default, Debug)]
struct RowIndex {
    columns: Vec<(u16, Class)>,
    heads: Vec<u32>,
    next: Vec<u32>,
    /// Whether rows were removed or moved since it was built.
    is_stale: bool,
    /// The number of times that it was built.
    generation: u64,
}

/// A walk over the rows that match; see [`Buffer::matches`].
#[derive(Clone, Copy, Debug)]
pub struct Matches {
    generation: u64,
    /// The row to look at next, from 1, or 0 at the end.
    candidate: u32,
    /// The row visited last, from 1, or 0.
    visited: u32,
}

impl Buffer {
    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.distinct.clear();
        self.index.is_stale = true;
    }

    /// Puts other rows, or the same in another order, in the place of all.
    pub fn replace(&mut self, rows: Vec<Slot>) {
        self.rows = rows;
        self.index.is_stale = true;
    }

    /// Starts a walk over the rows of `width` columns that equal `values`, none of them NULL, in
    /// the columns of `matching`.
    pub fn matches(
        &mut self,
        width: usize,
        matching: &[Match],
        values: &[Slot],
        heap: &Heap,
    ) -> Matches {
        let Buffer { rows, index, .. } = self;
        if !index.is_current(rows.len() / width) || !index.is_over(matching) {
            index.build(rows, width, matching, heap);
        }
        let hashes = matching.iter().zip(values);
        let hash = hashes.fold(0, |state, (one, value)| {
            combine(state, hash(heap, one.class, *value))
        });
        Matches {
            generation: index.generation,
            candidate: index.heads[bucket(hash, index.heads.len())],
            visited: 0,
        }
    }

    /// The next row of a walk, from 0. Rows appended since it began are visited too; when rows
    /// were removed or moved meanwhile, it goes on with whatever is behind the last position.
    pub fn next_match(
        &self,
        walk: &mut Matches,
        width: usize,
        matching: &[Match],
        values: &[Slot],
        heap: &Heap,
    ) -> Option<usize> {
        let count = self.rows.len() / width;
        let is_match = |at: usize| {
            let row = &self.rows[at * width..(at + 1) * width];
            matching.iter().zip(values).all(|(one, value)| {
                let slot = row[one.column as usize];
                !slot.is_null() && compare(heap, one.class, slot, *value).is_eq()
            })
        };
        if self.index.generation != walk.generation || !self.index.is_current(count) {
            let at = (walk.visited as usize..count).find(|at| is_match(*at))?;
            walk.visited = at as u32 + 1;
            return Some(at);
        }
        while walk.candidate != 0 {
            let at = walk.candidate as usize - 1;
            walk.candidate = self.index.next[at];
            if is_match(at) {
                walk.visited = at as u32 + 1;
                return Some(at);
            }
        }
        None
    }
}

impl RowIndex {
    /// Whether nothing happened to the rows since it was built; there are `count` now.
    fn is_current(&self, count: usize) -> bool {
        !self.is_stale && self.next.len() == count && !self.heads.is_empty()
    }

    fn is_over(&self, matching: &[Match]) -> bool {
        let wanted = matching.iter().map(|one| (one.column, one.class));
        self.columns.iter().copied().eq(wanted)
    }

    fn build(&mut self, rows: &[Slot], width: usize, matching: &[Match], heap: &Heap) {
        let count = rows.len() / width;
        self.columns.clear();
        self.columns
            .extend(matching.iter().map(|one| (one.column, one.class)));
        self.heads.clear();
        self.heads.resize((count * 2).next_power_of_two(), 0);
        self.next.clear();
        self.next.resize(count, 0);
        // From the last row to the first, so that each list is in the order of the rows.
        for (at, row) in rows.chunks_exact(width).enumerate().rev() {
            let slots = || self.columns.iter().map(|(column, _)| row[*column as usize]);
            if slots().any(|slot| slot.is_null()) {
                continue;
            }
            let hashes = self.columns.iter().zip(slots());
            let hash = hashes.fold(0, |state, ((_, class), slot)| {
                combine(state, hash(heap, *class, slot))
            });
            let head = &mut self.heads[bucket(hash, (count * 2).next_power_of_two())];
            self.next[at] = *head;
            *head = at as u32 + 1;
        }
        self.is_stale = false;
        self.generation += 1;
    }
}

/// The hash of several columns, from those before and the next one's.
pub(crate) fn combine(state: u64, hash: u64) -> u64 {
    state.rotate_left(23).wrapping_mul(31) ^ hash
}

/// The bucket of a hash among `count`, a power of two.
fn bucket(hash: u64, count: usize) -> usize {
    // Sums of small numbers differ in few bits; the product spreads them to the upper ones.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)) as usize & (count - 1)
}

/// Positions of rows by hash: open addressing, at most half full.
#[derive(Default, Debug)]
pub struct DistinctRows {
    table: Vec<u32>,
    used: usize,
}

impl DistinctRows {
    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        if self.used > 0 {
            self.table.fill(0);
            self.used = 0;
        }
    }

    /// The row for which `equals` holds among those with `hash`, or `None` after noting that the
    /// row at `position` has it. `rehash` gives a noted row's hash.
    pub fn find_or_note(
        &mut self,
        hash: u64,
        position: usize,
        mut equals: impl FnMut(usize) -> bool,
        rehash: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        if (self.used + 1) * 2 > self.table.len() {
            let mut larger = vec![0; (self.table.len() * 2).max(64)];
            for &row in self.table.iter().filter(|&&row| row != 0) {
                let mut at = rehash(row as usize - 1) as usize & (larger.len() - 1);
                while larger[at] != 0 {
                    at = (at + 1) & (larger.len() - 1);
                }
                larger[at] = row;
            }
            self.table = larger;
        }
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        while self.table[at] != 0 {
            let row = self.table[at] as usize - 1;
            if equals(row) {
                return Some(row);
            }
            at = (at + 1) & mask;
        }
        self.table[at] = position as u32 + 1;
        self.used += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;
    use kiln_storage::types::Decimal;

    use super::*;
    use crate::ir::Reg;

    const WIDTH: usize = 3;

    fn matching(columns: &[(u16, Class)]) -> Vec<Match> {
        let one = |&(column, class)| Match {
            column,
            value: Reg(0),
            class,
        };
        columns.iter().map(one).collect()
    }

    /// A small number, its NUMERIC with one of several scales, or a text; now and then NULL.
    fn value(random: &mut Random, heap: &mut Heap, class: Class) -> Slot {
        let number = random.below(6) as i64;
        match class {
            _ if random.below(8) == 0 => Slot::NULL,
            Class::Integer => Slot::from_i64(number),
            Class::Decimal => {
                let scale = random.below(3) as u8;
                let mantissa = number as i128 * 10_i128.pow(scale as u32);
                Slot::from_decimal(Decimal::new(mantissa, scale).expect("it is small"))
            }
            _ => heap
                .push_str(["", "a", "b", "ab", "a longer text", "a longer tale"][number as usize]),
        }
    }

    fn equal(heap: &Heap, class: Class, left: Slot, right: Slot) -> bool {
        !left.is_null() && !right.is_null() && compare(heap, class, left, right).is_eq()
    }

    /// The rows that a walk visits are those that match, in order, also when it goes on over rows
    /// that came while it went.
    #[test]
    fn walks_visit_what_matches() {
        let seed = 1;
        let mut random = Random::from_seed(seed);
        let classes = [Class::Integer, Class::Decimal, Class::Bytes];
        let (mut heap, mut buffer) = (Heap::default(), Buffer::default());
        for round in 0..2_000 {
            if random.below(6) == 0 {
                buffer.clear();
            }
            if random.below(6) == 0 {
                let mut rows: Vec<_> = buffer
                    .rows
                    .chunks_exact(WIDTH)
                    .map(<[Slot]>::to_vec)
                    .collect();
                rows.reverse();
                buffer.replace(rows.concat());
            }
            for _ in 0..random.below(20) {
                let row = classes.map(|class| value(&mut random, &mut heap, class));
                buffer.rows.extend(row);
            }
            let columns: Vec<(u16, Class)> = (0..3_u16)
                .filter(|_| random.below(2) == 0)
                .map(|column| (column, classes[column as usize]))
                .collect();
            if columns.is_empty() {
                continue;
            }
            let matching = matching(&columns);
            let values: Vec<Slot> = columns
                .iter()
                .map(|(_, class)| value(&mut random, &mut heap, *class))
                .collect();
            if values.iter().any(|value| value.is_null()) {
                continue;
            }
            let grows = random.below(4) == 0;
            let (mut visited, mut iterations) = (Vec::new(), 0);
            let mut walk = buffer.matches(WIDTH, &matching, &values, &heap);
            while let Some(at) = buffer.next_match(&mut walk, WIDTH, &matching, &values, &heap) {
                visited.push(at);
                iterations += 1;
                if grows && iterations < 5 {
                    let row = classes.map(|class| value(&mut random, &mut heap, class));
                    buffer.rows.extend(row);
                }
                if grows && random.below(3) == 0 {
                    // A loop inside matches other columns and so builds the index anew.
                    let other = [matching[0]];
                    buffer.matches(WIDTH, &other, &values[..1], &heap);
                }
            }
            let rows = buffer.rows.chunks_exact(WIDTH).enumerate();
            let expected: Vec<usize> = rows
                .filter(|(_, row)| {
                    let mut pairs = columns.iter().zip(&values);
                    pairs.all(|((column, class), value)| {
                        equal(&heap, *class, row[*column as usize], *value)
                    })
                })
                .map(|(at, _)| at)
                .collect();
            assert_eq!(visited, expected, "round {round} of seed {seed}");
        }
    }

    /// Nothing is allocated for a buffer that is filled and matched again and again.
    #[test]
    fn memory_is_kept() {
        let heap = Heap::default();
        let matching = matching(&[(0, Class::Integer)]);
        let mut buffer = Buffer::default();
        let mut capacity = None;
        for _ in 0..3 {
            buffer.clear();
            for number in 0..1_000 {
                buffer
                    .rows
                    .extend([Slot::from_i64(number), Slot::NULL, Slot::NULL]);
            }
            let values = [Slot::from_i64(7)];
            let mut walk = buffer.matches(WIDTH, &matching, &values, &heap);
            let found = buffer.next_match(&mut walk, WIDTH, &matching, &values, &heap);
            assert_eq!(found, Some(7));
            let index = &buffer.index;
            let now = (
                index.heads.as_ptr(),
                index.next.as_ptr(),
                index.columns.as_ptr(),
            );
            assert_eq!(*capacity.get_or_insert(now), now);
        }
        assert_eq!(buffer.index.generation, 3);
        buffer.matches(WIDTH, &matching, &[Slot::from_i64(8)], &heap);
        assert_eq!(
            buffer.index.generation, 3,
            "nothing changed, so the index is kept"
        );
    }
}
