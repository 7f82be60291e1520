//! Updates deferred to the commit (STO §6.1), as an attempt keeps them: updaters and their
//! operands, in the order of the procedure.

use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Updater};
use kiln_storage::error::Error;
use kiln_storage::slot::{Memory, Slot};

/// An update deferred to the commit.
struct Pending {
    /// The position of its write.
    write: u32,
    updater: *const Updater,
    /// The position of its first operand.
    operands: u32,
    is_done: bool,
}

/// The updates that an attempt leaves to its commit, in order.
#[derive(Default)]
pub struct Updates {
    pending: Vec<Pending>,
    operands: Vec<Slot>,
    /// The updaters' registers, and the bytes of the operands.
    memory: Memory,
    /// An error that an updater raised, until it is asked for.
    raised: Option<Error>,
    /// Whether that was at the commit, with everything validated.
    is_confirmed: bool,
}

/// An updater that is being run.
pub struct Running<'a> {
    /// The position of its write.
    pub write: usize,
    /// What is run.
    pub updater: &'a Updater,
    /// Its registers, with the operands; given back by [`Updates::end`].
    pub memory: Memory,
}

// SAFETY: only the thread that runs the attempt follows the pointers to updaters, while their
// program is kept.
unsafe impl Send for Updates {}

impl Updates {
    /// Whether nothing was deferred to the commit so far.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many were.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.operands.clear();
            self.memory.heap.clear();
        }
        self.raised = None;
        self.is_confirmed = false;
    }

    /// Keeps an update of the record of the write at a position, with what is in the registers now.
    pub fn keep(&mut self, write: usize, updater: &Updater, operands: &[Reg], memory: &Memory) {
        self.pending.push(Pending {
            write: write as u32,
            updater,
            operands: self.operands.len() as u32,
            is_done: false,
        });
        for (at, register) in operands.iter().enumerate() {
            let slot = memory.slots[register.0 as usize];
            let has_bytes = slot.has_bytes(updater.is_byte_string(at));
            self.operands.push(match has_bytes {
                true => self.memory.heap.push_copy(slot, &memory.heap),
                false => slot,
            });
        }
    }

    /// The position of the write that the update at this position is for, unless it was run
    /// already.
    #[inline(always)]
    pub fn waiting(&self, at: usize) -> Option<usize> {
        let pending = &self.pending[at];
        (!pending.is_done).then_some(pending.write as usize)
    }

    /// Starts to run an update.
    pub fn begin<'a>(&mut self, at: usize) -> Running<'a> {
        let pending = &self.pending[at];
        // SAFETY: the program is kept until the attempt has ended.
        let updater: &'a Updater = unsafe { &*pending.updater };
        let first = pending.operands as usize;
        let mut memory = std::mem::take(&mut self.memory);
        updater.prepare(
            &self.operands[first..first + updater.operand_count()],
            &mut memory,
        );
        Running {
            write: pending.write as usize,
            updater,
            memory,
        }
    }

    /// Notes that an update was run, or not.
    pub fn end(&mut self, at: usize, memory: Memory, is_done: bool) {
        self.memory = memory;
        self.pending[at].is_done = is_done;
    }

    /// Forgets the updates from a position on: what comes behind one that raised would not have
    /// come to run.
    pub fn truncate(&mut self, at: usize) {
        self.pending.truncate(at);
    }

    /// Notes an error that an updater raised at the commit, with everything validated, and gives
    /// the abort that stands for it.
    #[cold]
    pub fn raise_confirmed(&mut self, error: Error) -> AbortCause {
        self.is_confirmed = true;
        self.raised = Some(error);
        AbortCause::ReadValidation
    }

    /// Whether the error was raised at the commit: then there is nothing more to be confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// The error that stands behind the abort that was just returned, if one does.
    #[inline]
    pub fn take_raised(&mut self) -> Option<Error> {
        self.raised.take()
    }
}
