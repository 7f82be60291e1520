//! What the open protected regions of a run have changed, and how each change is taken back.
//!
//! The list is a frame's own, and used again from run to run: it costs a program without regions
//! nothing. A region that begins notes how long the list is; one that catches an error takes back
//! what came after, the last change first. What a region has done that ended well stays in the list
//! until the outermost one has ended.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

use crate::access::Handle;

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// How it is taken back: a position in the code's list of undos.
    pub undo: u32,
    /// The record.
    pub handle: Handle,
    /// Where its old values begin.
    values: usize,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct UndoList {
    changes: Vec<Change>,
    values: Vec<Slot>,
    /// The number of open regions.
    open: u32,
}

impl UndoList {
    /// The number of changes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// A run begins.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.values.clear();
        self.open = 0;
    }

    /// A region begins; returns the number of those around it.
    pub fn begin(&mut self) -> u32 {
        self.open += 1;
        self.open - 1
    }

    /// The region with so many around it has ended, and those within it: the changes of the
    /// outermost one stay for good.
    pub fn end(&mut self, around: u32) {
        match around {
            0 => self.clear(),
            _ => self.open = around,
        }
    }

    /// Notes a change with the record's old values.
    ///
    /// # Errors
    /// 53200 when the changes noted take more memory than a statement may.
    pub fn push(
        &mut self,
        undo: u32,
        handle: Handle,
        values: impl Iterator<Item = Slot>,
    ) -> Result<()> {
        let bytes = self.changes.len() * size_of::<Change>() + size_of_val(&*self.values);
        if bytes > Heap::LIMIT_BYTES {
            let limit = Heap::LIMIT_BYTES >> 20;
            let message =
                format!("the changes under an EXCEPTION clause take more than {limit} MiB");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message));
        }
        self.changes.push(Change {
            undo,
            handle,
            values: self.values.len(),
        });
        self.values.extend(values);
        Ok(())
    }

    /// The last change and the old values, unless only `before` are left.
    pub fn last(&self, before: usize) -> Option<(Change, &[Slot])> {
        let change = *self.changes[before..].last()?;
        Some((change, &self.values[change.values..]))
    }

    /// The last change was taken back.
    pub fn pop(&mut self) {
        if let Some(change) = self.changes.pop() {
            self.values.truncate(change.values);
        }
    }
}
