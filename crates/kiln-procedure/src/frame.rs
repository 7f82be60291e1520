//! The memory of a running procedure, reused from call to call.

use std::mem::offset_of;

use kiln_platform::plain;
use kiln_platform::time;
use kiln_storage::deferral::PendingCheck;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::index::Sighting;
use kiln_storage::slot::{Heap, Memory, Slot};
use kiln_storage::table::SightKey;
use kiln_storage::types::{OutOfLine, Value};

use crate::access::Handle;
use crate::arguments::Arguments;
use crate::buffer::Buffer;
use crate::interrupt::{self, Interrupt};
use crate::ir::{Constant, RecordReg};
use crate::journey::Journey;
use crate::notification::Notifications;
use crate::program::Program;
use crate::restoration::Restoration;
use crate::undo::UndoList;
pub use crate::values::{compare, hash, push_value, to_value};

/// A message that a procedure raised below the level of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// PostgreSQL's name of the level.
    pub level: &'static str,
    /// The text.
    pub message: String,
}

/// The memory of a running procedure. A worker has one and runs every call in it, so that calls
/// allocate nothing once it has grown.
#[derive(Default)]
#[repr(C)]
pub struct Frame {
    /// The rows emitted, one after the other.
    pub(crate) result: Vec<Slot>,
    /// The number of rows emitted.
    pub(crate) result_rows: usize,
    /// Notices raised in this attempt.
    pub notices: Vec<Notice>,
    /// Notifications sent in it.
    pub notifications: Notifications,
    /// Registers and heap.
    pub memory: Memory,
    /// Record handles, by record register.
    pub(crate) records: Vec<Option<Handle>>,
    /// Row buffers.
    pub(crate) buffers: Vec<Buffer>,
    /// The keys of a prefetch: a look-up after the other, and within these an iteration after the
    /// other.
    pub(crate) prefetch_keys: Vec<SightKey>,
    /// What prefetches found: a look-up after the other, and within these an iteration after the
    /// other. A sighting is read only where the prefetch before the loop has written it.
    pub(crate) sightings: Vec<Option<Sighting>>,
    /// When the call must end, in nanoseconds of [`time::now_ns`].
    pub deadline_ns: Option<u64>,
    /// How long it may go on from the next look at the limits.
    within_ns: Option<u64>,
    /// Iterations of loops left until the heap's size and the deadline are looked at again.
    pub(crate) iterations_until_check: u32,
    /// Where a run that has left off goes on.
    pub(crate) journey: Journey,
    /// Asks the call to end before its time, where a client can.
    pub interrupt: Option<Interrupt>,
    /// What the open protected regions have changed.
    pub(crate) undo: UndoList,
    /// The last error that each protected region has caught.
    pub(crate) raised: Vec<Option<Error>>,
}

/// Iterations of loops between two looks at the limits.
pub(crate) const ITERATIONS_PER_CHECK: u32 = 256;

impl Frame {
    /// Bytes of a frame in which there is its result; they come first.
    pub const RESULT_BYTES: usize = offset_of!(Frame, memory);

    /// An empty frame.
    pub fn new() -> Frame {
        Frame::default()
    }

    /// Tells virtual cores that the calling thread has run `program` in this frame, in which
    /// another one may run next. Each register is written before it is read.
    #[inline(always)]
    pub fn note_run(&self, program: &Program) {
        plain::writes(self.used(program));
        self.memory.heap.note_writes();
    }

    /// Tells virtual cores that the calling thread goes on with a run of `program` where another
    /// one has left it.
    #[inline(always)]
    pub fn note_reads(&self, program: &Program) {
        plain::reads(self.used(program));
        self.memory.heap.note_reads();
    }

    /// The registers that `program` uses.
    #[inline(always)]
    fn used(&self, program: &Program) -> &[Slot] {
        let slots = &self.memory.slots;
        &slots[..slots.len().min(program.code.registers)]
    }

    /// A transaction begins that ends at `deadline_ns` if ever, or when it is asked to.
    pub fn begin(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) {
        (self.deadline_ns, self.within_ns) = (deadline_ns, None);
        self.interrupt = interrupt.cloned();
        self.memory.heap.transaction_began_us = None;
    }

    /// Whether the call's time is over, or it was asked to end.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_canceled() || (self.deadline_ns).is_some_and(|deadline| time::now_ns() >= deadline)
    }

    /// Whether the call was asked to end.
    #[inline]
    pub fn is_canceled(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_canceled)
    }

    /// A run begins that ends after so many nanoseconds; a short one looks at no clock.
    pub fn begin_within(&mut self, nanoseconds: u64) {
        (self.deadline_ns, self.within_ns) = (None, Some(nanoseconds));
    }

    /// Prepares for an attempt of `program`: constants and arguments are in their registers.
    #[inline]
    pub(crate) fn prepare(&mut self, program: &Program, arguments: &Arguments) {
        let Memory { slots, heap, draws } = &mut self.memory;
        heap.clear();
        arguments.hand_draws(draws);
        arguments.hand_surroundings(&mut heap.surroundings);
        // Registers are written before they are read, so what an earlier call left is harmless.
        if slots.len() < program.code.registers {
            slots.resize(program.code.registers, Slot::NULL);
        }
        if self.sightings.len() < program.code.sightings {
            self.sightings.resize(program.code.sightings, None);
        }
        // A handle left by an earlier call must not pass for one that this call found.
        if self.records.len() < program.records {
            self.records.resize(program.records, None);
        }
        self.records[..program.records].fill(None);
        if self.buffers.len() < program.buffers.len() {
            self.buffers
                .resize_with(program.buffers.len(), Buffer::default);
        }
        heap.append_image(arguments.heap());
        slots[..arguments.len()].copy_from_slice(arguments.slots());
        let code = &program.code;
        for (first, constants) in &code.constants {
            slots[*first..first + constants.len()].copy_from_slice(constants);
        }
        if !code.byte_constants.is_empty() {
            let start = heap.append_bytes_of(&code.constant_bytes);
            for (register, slot) in &code.byte_constants {
                slots[register.0 as usize] = slot.moved_by(start);
            }
        }
        for constant in &code.other_constants {
            slots[constant.register.0 as usize] = push_value(heap, &constant.value);
        }
        self.result.clear();
        self.result_rows = 0;
        self.notices.clear();
        self.notifications.clear();
        self.iterations_until_check = ITERATIONS_PER_CHECK;
        self.journey.clear();
        if program.regions > 0 {
            self.undo.clear();
            self.raised.clear();
            self.raised.resize(program.regions, None);
        }
    }

    /// Prepares for the restoration of an attempt whose last run came to its end: what that has
    /// left stays.
    pub(crate) fn prepare_restoration(&mut self, restoration: &Restoration) {
        debug_assert!(restoration.code.registers <= self.memory.slots.len());
        put_constants(&mut self.memory, &restoration.constants);
        if restoration.emits {
            self.result.clear();
            self.result_rows = 0;
        }
        if restoration.notices {
            self.notices.clear();
            self.notifications.clear();
        }
        self.iterations_until_check = ITERATIONS_PER_CHECK;
    }

    /// The handle in a record register, and the memory.
    #[inline(always)]
    pub(crate) fn record_and_memory(&mut self, record: RecordReg) -> (&mut Handle, &mut Memory) {
        let handle = self.records[record.0 as usize].as_mut();
        let handle = handle.expect("a verified program found this record");
        (handle, &mut self.memory)
    }

    /// Notes a notification of these texts.
    ///
    /// # Errors
    /// 54000 when the transaction sends too many.
    #[cold]
    pub(crate) fn notify(&mut self, channel: Slot, payload: Slot) -> Result<()> {
        let heap = &self.memory.heap;
        (self.notifications).push(heap.str(channel), heap.str(payload))
    }

    /// Looks at the limits: called every so many iterations of loops, and after functions that
    /// have taken long.
    #[cold]
    pub(crate) fn check_limits(&mut self) -> Result<()> {
        self.iterations_until_check = ITERATIONS_PER_CHECK;
        self.memory.heap.forget_work();
        if self.memory.heap.used_bytes() > Heap::LIMIT_BYTES {
            return Err(Error::new(
                SqlState::OUT_OF_MEMORY,
                format!(
                    "one statement holds more than {} MiB",
                    Heap::LIMIT_BYTES >> 20
                ),
            )
            .with_hint("Select fewer rows, or shorter values."));
        }
        if let Some(interrupt) = &self.interrupt
            && interrupt.is_canceled()
        {
            return Err(interrupt.error());
        }
        if let Some(nanoseconds) = self.within_ns.take() {
            self.deadline_ns = Some(time::now_ns() + nanoseconds);
        } else if self
            .deadline_ns
            .is_some_and(|deadline| time::now_ns() >= deadline)
        {
            return Err(interrupt::timed_out());
        }
        Ok(())
    }

    /// The rows that the last run emitted: their number, and their slots one after the other.
    pub fn rows(&self) -> (usize, &[Slot]) {
        (self.result_rows, &self.result)
    }

    /// Forgets what the last call emitted and raised.
    pub fn silence(&mut self) {
        self.result.clear();
        self.result_rows = 0;
        self.notices.clear();
        self.notifications.clear();
    }

    /// Takes what the last call of `program` in another frame emitted and raised; that one is
    /// silent afterwards.
    pub fn take_result(&mut self, other: &mut Frame, program: &Program) {
        self.silence();
        if !other.notices.is_empty() {
            std::mem::swap(&mut self.notices, &mut other.notices);
        }
        std::mem::swap(&mut self.notifications, &mut other.notifications);
        if other.result_rows == 0 {
            return;
        }
        self.result_rows = std::mem::take(&mut other.result_rows);
        if other.result.len() <= COPIED_MAX {
            // The other frame keeps its memory, which a cache has.
            self.result.extend_from_slice(&other.result);
            other.result.clear();
        } else {
            std::mem::swap(&mut self.result, &mut other.result);
        }
        let mut columns = program.result.columns.iter();
        let is_out_of_line = columns.any(|(_, data_type)| match data_type.out_of_line() {
            OutOfLine::Nothing => false,
            OutOfLine::LongNumbers => self.result.iter().any(|slot| slot.is_long_in_heap()),
            OutOfLine::Bytes | OutOfLine::Elements => true,
        });
        if is_out_of_line {
            self.memory.heap.clear();
            self.memory.heap.append_image(&other.memory.heap);
        }
    }

    /// The checks of constraints that the last run of `program` has left to the end of the
    /// transaction that it is a part of.
    pub fn pending(&self, program: &Program) -> Vec<PendingCheck> {
        if self.memory.heap.constraint_modes().is_none() {
            return Vec::new();
        }
        let left = program.deferred.iter().map(|keys| {
            let rows = self.buffers[keys.buffer.0 as usize].rows.iter();
            let rows = rows.as_slice().chunks_exact(keys.types.len());
            let keys_of = rows.map(|row| {
                let values = row.iter().zip(&keys.types);
                values
                    .map(|(slot, data_type)| to_value(&self.memory.heap, *slot, data_type))
                    .collect()
            });
            PendingCheck {
                check: keys.check.clone(),
                keys: keys_of.collect(),
            }
        });
        left.filter(|pending| !pending.keys.is_empty()).collect()
    }

    /// The heap that the emitted slots point into.
    pub fn heap(&self) -> &Heap {
        &self.memory.heap
    }

    /// The emitted rows as values of the program's result columns.
    pub fn result_values(&self, program: &Program) -> Vec<Vec<Value>> {
        let columns = &program.result.columns;
        if columns.is_empty() {
            return vec![Vec::new(); self.result_rows];
        }
        let rows = self.result.chunks_exact(columns.len());
        rows.map(|row| {
            let values = row.iter().zip(&**columns);
            values
                .map(|(slot, (_, data_type))| to_value(&self.memory.heap, *slot, data_type))
                .collect()
        })
        .collect()
    }
}

/// Slots of a result that are copied, and not handed over with their memory.
const COPIED_MAX: usize = 64;

/// Puts constants into their registers.
#[cold]
pub(crate) fn put_constants(memory: &mut Memory, constants: &[Constant]) {
    for constant in constants {
        let slot = push_value(&mut memory.heap, &constant.value);
        memory.slots[constant.register.0 as usize] = slot;
    }
}
