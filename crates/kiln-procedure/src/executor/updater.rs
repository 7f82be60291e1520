//! Runs updaters.

use kiln_storage::error::Error;
use kiln_storage::slot::{Memory, Slot};

use super::compute::match_op;
use crate::code::{Op, Updater};

impl Updater {
    /// Makes room for its registers and puts the operands into theirs. Their bytes are in the
    /// memory's heap.
    #[inline]
    pub fn prepare(&self, operands: &[Slot], memory: &mut Memory) {
        if memory.slots.len() < self.code.registers {
            memory.slots.resize(self.code.registers, Slot::NULL);
        }
        let first = self.inputs().len();
        memory.slots[first..first + self.operand_count()].copy_from_slice(operands);
    }

    /// Computes the new values. The old ones and the operands are in their registers.
    ///
    /// # Errors
    /// What the procedure would have raised: 22003, 22012, 23502, 23514, ….
    pub fn run(&self, memory: &mut Memory) -> Result<(), Error> {
        let code = &self.code;
        let mut next = 0;
        macro_rules! get {
            ($register:expr) => {
                memory.slots[$register.0 as usize]
            };
        }
        macro_rules! set {
            ($register:expr, $slot:expr) => {{
                let slot: Slot = $slot;
                memory.slots[$register.0 as usize] = slot;
            }};
        }
        macro_rules! jump {
            ($to:expr) => {
                next = $to as usize
            };
        }
        macro_rules! jump_if {
            ($truth:expr, $when:expr, $to:expr) => {
                if ($truth) == $when {
                    jump!($to);
                }
            };
        }
        macro_rules! entry {
            ($table:expr, $number:expr) => {
                &$table[$number as usize]
            };
        }
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(error) => return Err(error),
                }
            };
        }
        // An updater is short, and nothing ends it before its time.
        macro_rules! called {
            () => {};
        }
        macro_rules! refetch {
            () => {};
        }
        loop {
            let op = code.ops[next];
            next += 1;
            match_op! { op, code, *memory, [get, set, jump, jump_if, entry, attempt, called, refetch] {
                Op::Return => return Ok(()),
                // Only says which registers hold the result.
                Op::Emit { .. } => {}
                other => unreachable!("{other:?} is no computation"),
            } }
        }
    }
}
