//! The access cache: which look-ups the run before this one made, in its order, and what they led
//! to (§4.1).

use kiln_procedure::access::Sought;
use kiln_procedure::ir::OpId;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::RecordRef;
use kiln_storage::slot::Memory;

use crate::canary::Canary;

/// What a look-up led to.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// Nothing that is known: no key is NULL, for example.
    Nothing,
    /// A record, with the position of its item, and whether it has a row.
    Record(RecordRef, u32, bool),
    /// A gap, with the version of its node.
    Gap(NodeVersion),
}

/// A look-up that was made.
#[derive(Clone, Copy)]
struct LookUp {
    op: OpId,
    /// Where in the words of its run the key is.
    key: (u32, u32),
    outcome: Outcome,
    /// Whether the present run has come to it again.
    is_found: bool,
}

/// The look-ups of one run.
#[derive(Default)]
struct Run {
    look_ups: Vec<LookUp>,
    words: Vec<u64>,
}

impl Run {
    fn clear(&mut self) {
        self.look_ups.clear();
        self.words.clear();
    }

    /// Appends a look-up of another run.
    fn push(&mut self, of: &Run, look_up: &LookUp) {
        let start = self.words.len() as u32;
        self.words.extend_from_slice(of.key(look_up));
        self.look_ups.push(LookUp {
            key: (start, self.words.len() as u32),
            is_found: false,
            ..*look_up
        });
    }

    fn key(&self, look_up: &LookUp) -> &[u64] {
        &self.words[look_up.key.0 as usize..look_up.key.1 as usize]
    }

    /// Appends the values of a key. Equal words mean equal values.
    fn push_key(&mut self, sought: &Sought<'_>, memory: &Memory) {
        let strings = sought.table.layout().byte_strings();
        let columns = &sought.table.indexes()[sought.index].definition().columns;
        for (register, column) in sought.key.iter().zip(columns) {
            let slot = memory.slots[register.0 as usize];
            if !slot.has_bytes(strings.contains(*column)) {
                let (low, high) = slot.words();
                self.words.extend([low, high]);
                continue;
            }
            let bytes = memory.heap.bytes(slot);
            self.words.push(bytes.len() as u64);
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                self.words.push(u64::from_le_bytes(word));
            }
        }
    }
}

/// The access cache of an attempt.
#[derive(Default)]
pub(super) struct Cache {
    now: Run,
    before: Run,
    /// The look-up of the run before at which the search for the next one begins.
    cursor: usize,
    /// The same for operations that the present run repeats, each for itself: in which order the
    /// look-ups of several were made is lost when one of them runs again without another.
    repeated: Vec<(OpId, usize)>,
    /// Whether the last look-up is under way.
    is_open: bool,
}

impl Cache {
    /// A look-up is searched for among so many that followed the last one that was found: others
    /// lie between when the program goes another way now.
    const SEARCHED: usize = 24;

    /// A look-up begins.
    #[inline]
    pub fn begin(&mut self, sought: &Sought<'_>, memory: &Memory) {
        let start = self.now.words.len() as u32;
        self.now.push_key(sought, memory);
        self.now.look_ups.push(LookUp {
            op: sought.op,
            key: (start, self.now.words.len() as u32),
            outcome: Outcome::Nothing,
            is_found: false,
        });
        self.is_open = true;
    }

    /// What the look-up that has begun led to in the run before: the same operation with the same
    /// key.
    pub fn recall(&mut self) -> Option<Outcome> {
        let sought = self.now.look_ups.last()?;
        let key = self.now.key(sought);
        let rest = self.before.look_ups.iter().enumerate().skip(self.cursor);
        let (position, _) = rest.take(Self::SEARCHED).find(|(_, look_up)| {
            look_up.op == sought.op
                && !look_up.is_found
                && (self.before.key(look_up) == key || Canary::StaleHandleKept.sings())
        })?;
        self.cursor = position + 1;
        let found = &mut self.before.look_ups[position];
        found.is_found = true;
        Some(found.outcome)
    }

    /// Makes a look-up of the run before again that leads where it led: the next one of this
    /// operation, which the present run makes as often.
    pub fn repeat(&mut self, op: OpId) -> Option<Outcome> {
        let Cache {
            now,
            before,
            repeated,
            ..
        } = self;
        let known = repeated.iter().position(|(known, _)| *known == op);
        let known = known.unwrap_or_else(|| {
            repeated.push((op, 0));
            repeated.len() - 1
        });
        let cursor = &mut repeated[known].1;
        let mut rest = before.look_ups[*cursor..].iter();
        *cursor += 1 + rest.position(|look_up| look_up.op == op)?;
        let found = &before.look_ups[*cursor - 1];
        now.push(before, found);
        Some(found.outcome)
    }

    /// The look-up under way led to a record.
    #[inline(always)]
    pub fn met(&mut self, record: RecordRef, item: u32, is_there: bool) {
        self.note(Outcome::Record(record, item, is_there));
    }

    /// The look-up under way led to a gap.
    #[inline(always)]
    pub fn missed(&mut self, node: NodeVersion) {
        self.note(Outcome::Gap(node));
    }

    #[inline(always)]
    fn note(&mut self, outcome: Outcome) {
        if self.is_open
            && let Some(look_up) = self.now.look_ups.last_mut()
        {
            look_up.outcome = outcome;
        }
    }

    /// The look-up under way is over.
    #[inline(always)]
    pub fn end(&mut self) {
        self.is_open = false;
    }

    /// Whether the run before this one made no look-ups that are known.
    pub fn knows_nothing(&self) -> bool {
        self.before.look_ups.is_empty()
    }

    /// The program runs again.
    pub fn begin_again(&mut self) {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
        self.begin_run();
    }

    /// A part of the program runs again, with these operations.
    pub fn restore(&mut self, runs: impl Fn(OpId) -> bool) {
        self.before.clear();
        std::mem::swap(&mut self.now, &mut self.before);
        let mut place = 0;
        for at in 0..self.before.look_ups.len() {
            match runs(self.before.look_ups[at].op) {
                // Its key stays where it is.
                true => {
                    self.before.look_ups.swap(place, at);
                    place += 1;
                }
                false => self.now.push(&self.before, &self.before.look_ups[at]),
            }
        }
        self.before.look_ups.truncate(place);
        self.begin_run();
    }

    fn begin_run(&mut self) {
        self.cursor = 0;
        self.repeated.clear();
        self.end();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.now.clear();
        self.before.clear();
        self.end();
    }
}
