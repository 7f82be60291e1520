//! What a reconnaissance read of ordered indexes: the leaves of its scans, so that the run need not
//! search for them again.
//!
//! A scan of the run is one of the plan when it asks for the same range of the same index, or has
//! the same number, which says that without a look at ranges ([`SoughtScan::given`]). What the
//! plan read of that is still what the index has if no entry of it has ever moved and the leaves
//! are unchanged but for entries that have gone. The run that recalls a scan looks at both, with
//! the locks of its plan in hand, and guards the leaves from then on. Where the plan left a scan
//! before its end, its cursor is kept, and the run goes on with it behind the leaves that are
//! known.
//!
//! Records that leaves name are of use as long as [findings](super::findings) are, of which these
//! are a part.

use kiln_procedure::access::{KeptScan, SoughtScan};
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Index, IndexScan};

/// A leaf as a scan read it.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    version: NodeVersion,
    /// Where its payloads are among all, and how many.
    begin: u32,
    count: u16,
    /// The next leaf of the same scan.
    next: u16,
}

/// How far a scan came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extent {
    /// Unknown; it is not recalled.
    Unknown,
    /// The body left it; its cursor is at this position among those that are kept.
    Partial(u16),
    /// To the end of its range.
    Whole,
}

#[derive(Clone, Copy, Debug)]
struct Scan {
    index: *const Index,
    /// Where its range is among all, in words; none of one that is known by its number.
    range: (u32, u32),
    first: u16,
    last: u16,
    extent: Extent,
}

impl Scan {
    fn new(index: *const Index, range: (u32, u32)) -> Scan {
        Scan {
            index,
            range,
            first: NONE,
            last: NONE,
            extent: Extent::Unknown,
        }
    }

    /// Whether it is of this index, and its range among `ranges` this one.
    #[inline(always)]
    fn is_of(&self, index: *const Index, ranges: &[u64], range: &[u64]) -> bool {
        let (begin, end) = self.range;
        std::ptr::eq(self.index, index) && ranges[begin as usize..end as usize] == *range
    }
}

/// What names no leaf.
const NONE: u16 = u16::MAX;

/// The scans of one reconnaissance, in the order in which they began; see the module's
/// documentation. Its memory is used again.
#[derive(Default)]
pub struct Scans {
    all: Vec<Scan>,
    leaves: Vec<Leaf>,
    payloads: Vec<u64>,
    /// The ranges as words, one after the other.
    ranges: Vec<u64>,
    /// Where scans were left.
    cursors: Vec<Option<IndexScan<'static>>>,
    /// The scan to which the run should come next.
    next: usize,
    /// The range that is asked for.
    sought: Vec<u64>,
    /// The last scans of given ranges, by their numbers ([`SoughtScan::given`]).
    given: Vec<u16>,
}

impl Scans {
    /// Scans with more leaves, and those behind so many, are not kept.
    const LEAVES_MAX: usize = 1024;
    /// So many scans the run may have left out when it comes to the next one that it asks for.
    const SKIPPED_MAX: usize = 16;
    /// So many of its own scans a reconnaissance looks back for one of the same range.
    const LOOKED_BACK: usize = 2;

    /// Forgets everything.
    #[inline(always)]
    pub fn clear(&mut self) {
        if !self.all.is_empty() {
            self.all.clear();
            self.leaves.clear();
            self.payloads.clear();
            self.ranges.clear();
            self.cursors.clear();
            self.given.clear();
        }
        self.next = 0;
    }

    /// Takes over what another one has, before a run. Where that one was left in a scan it stays.
    pub fn copy_from(&mut self, other: &Scans) {
        self.clear();
        if other.all.is_empty() {
            return;
        }
        self.all.clone_from(&other.all);
        for scan in &mut self.all {
            if let Extent::Partial(_) = scan.extent {
                scan.extent = Extent::Unknown;
            }
        }
        self.leaves.clone_from(&other.leaves);
        self.payloads.clone_from(&other.payloads);
        self.ranges.clone_from(&other.ranges);
        self.given.clone_from(&other.given);
        self.next = other.next;
    }

    /// The reconnaissance begins a scan, of which it tells each leaf; or it has made it before, and
    /// need not read it again.
    pub fn begin(&mut self, sought: &SoughtScan<'_>, memory: &Memory) -> KeptScan {
        let (number, index) = (self.all.len(), index_of(sought));
        if number >= NONE as usize || self.leaves.len() >= Scans::LEAVES_MAX {
            return KeptScan::No;
        }
        if let Some(given) = sought.given {
            return self.begin_given(given, index, number);
        }
        let begin = self.ranges.len();
        write_range(sought, memory, &mut self.ranges);
        let (known, range) = self.ranges.split_at(begin);
        let mut before = self.all.iter().rev().take(Scans::LOOKED_BACK);
        let same = before
            .find(|scan| scan.extent == Extent::Whole && scan.is_of(index, known, range))
            .copied();
        if let Some(same) = same {
            self.ranges.truncate(begin);
            self.all.push(same);
            return KeptScan::Known {
                scan: number as u16,
                leaf: same.first,
            };
        }
        let range = (begin as u32, self.ranges.len() as u32);
        self.all.push(Scan::new(index, range));
        KeptScan::Noted(number as u16)
    }

    /// As [`Scans::begin`], where the scan's number says which range it is.
    fn begin_given(&mut self, given: u16, index: *const Index, number: usize) -> KeptScan {
        let given = usize::from(given);
        if let Some(&known) = self.given.get(given)
            && let Some(same) = self.all.get(known as usize)
            && same.extent == Extent::Whole
        {
            return KeptScan::Known {
                scan: known,
                leaf: same.first,
            };
        }
        if given >= self.given.len() {
            self.given.resize(given + 1, NONE);
        }
        self.given[given] = number as u16;
        self.all.push(Scan::new(index, (0, 0)));
        KeptScan::Noted(number as u16)
    }

    /// That scan has read a leaf. Says no when there is no room for it.
    pub fn read(&mut self, scan: u16, batch: &LeafBatch) -> bool {
        let number = self.leaves.len();
        if number >= Scans::LEAVES_MAX {
            return false;
        }
        self.leaves.push(Leaf {
            version: batch.version,
            begin: self.payloads.len() as u32,
            count: batch.count as u16,
            next: NONE,
        });
        self.payloads.extend_from_slice(batch.payloads());
        let scan = &mut self.all[scan as usize];
        match scan.last {
            NONE => scan.first = number as u16,
            last => self.leaves[last as usize].next = number as u16,
        }
        scan.last = number as u16;
        true
    }

    /// That scan is over: at the end of its range, or where its cursor is.
    pub fn end(&mut self, scan: u16, rest: Option<IndexScan<'_>>) {
        self.all[scan as usize].extent = match rest {
            None => Extent::Whole,
            Some(rest) => {
                // SAFETY: the index is there as long as the program of the call, and findings are
                // of use in that call alone.
                let rest =
                    unsafe { std::mem::transmute::<IndexScan<'_>, IndexScan<'static>>(rest) };
                self.cursors.push(Some(rest));
                Extent::Partial(self.cursors.len() as u16 - 1)
            }
        };
    }

    /// The scan of the plan that is the run's next one, if it was made; the run guards its leaves
    /// before it recalls them.
    pub fn recall(&mut self, sought: &SoughtScan<'_>, memory: &Memory) -> Option<u16> {
        if let Some(given) = sought.given {
            return self.recall_given(given);
        }
        if self.next >= self.all.len() {
            return None;
        }
        let index = index_of(sought);
        self.sought.clear();
        write_range(sought, memory, &mut self.sought);
        let mut left = self.all[self.next..].iter().take(Scans::SKIPPED_MAX + 1);
        let number =
            self.next + left.position(|scan| scan.is_of(index, &self.ranges, &self.sought))?;
        self.next = number + 1;
        (self.all[number].extent != Extent::Unknown).then_some(number as u16)
    }

    /// As [`Scans::recall`], where the scan's number says which range it is.
    fn recall_given(&mut self, given: u16) -> Option<u16> {
        let given = self.given.get_mut(usize::from(given))?;
        let number = *given;
        match self.all.get(number as usize)?.extent {
            Extent::Unknown => None,
            Extent::Whole => Some(number),
            Extent::Partial(_) => {
                // Its cursor goes on once.
                *given = NONE;
                Some(number)
            }
        }
    }

    /// The leaves of a scan, with its first one.
    pub fn leaves(&self, scan: u16) -> (u16, impl Iterator<Item = NodeVersion> + '_) {
        let first = self.all[scan as usize].first;
        let leaf = |number: u16| self.leaves.get(number as usize);
        let leaves = std::iter::successors(leaf(first), move |at| leaf(at.next));
        (first, leaves.map(|leaf| leaf.version))
    }

    /// The next leaf of a known scan; says no behind the last one.
    #[inline(always)]
    pub fn recall_leaf(&self, leaf: &mut u16, batch: &mut LeafBatch) -> bool {
        let Some(known) = self.leaves.get(*leaf as usize) else {
            return false;
        };
        let (begin, count) = (known.begin as usize, known.count as usize);
        batch.payloads[..count].copy_from_slice(&self.payloads[begin..begin + count]);
        (batch.version, batch.count) = (known.version, count);
        *leaf = known.next;
        true
    }

    /// Where a known scan goes on behind its leaves.
    pub fn rest(&mut self, scan: u16) -> Option<IndexScan<'static>> {
        match self.all[scan as usize].extent {
            Extent::Partial(cursor) => self.cursors[cursor as usize].take(),
            _ => None,
        }
    }
}

fn index_of(sought: &SoughtScan<'_>) -> *const Index {
    &raw const sought.table.indexes()[sought.index]
}

/// Adds a range as words: equal words are equal ranges.
fn write_range(sought: &SoughtScan<'_>, memory: &Memory, words: &mut Vec<u64>) {
    let SoughtScan {
        table,
        index,
        range,
        reverse,
        ..
    } = *sought;
    let kind = |bound: Option<(Slot, bool)>| match bound {
        None => 0,
        Some((_, inclusive)) => 1 + u64::from(inclusive),
    };
    let bounds = kind(range.lower) << 1 | kind(range.upper) << 3;
    words.push(u64::from(reverse) | bounds | (range.prefix.len() as u64) << 5);
    let columns = &table.indexes()[index].definition().columns;
    let mut write = |position: usize, slot: Slot| {
        let is_byte_string = columns
            .get(position)
            .is_some_and(|column| table.layout().byte_strings().contains(*column));
        match slot.has_bytes(is_byte_string) {
            true => write_bytes(memory.heap.bytes(slot), words),
            false => {
                let (lower, upper) = slot.words();
                words.push(lower);
                words.push(upper);
            }
        }
    };
    for (position, slot) in range.prefix.iter().enumerate() {
        write(position, *slot);
    }
    if let Some((slot, _)) = range.lower {
        write(range.prefix.len(), slot);
    }
    if let Some((slot, _)) = range.upper {
        write(range.prefix.len(), slot);
    }
}

/// Adds bytes as words, their number before them.
fn write_bytes(bytes: &[u8], words: &mut Vec<u64>) {
    words.push(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
}
