//! Updates that an attempt leaves to its commit.

use kiln_storage::error::Error;
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{AbortCause, Access, Handle, Stop};
use crate::code::Updater;
use crate::ir::Reg;

/// Commit-time updates (STO §6.1). An access that has none runs each update where it stands.
pub trait Deferring {
    /// Whether this attempt leaves updates to its commit: then [`Deferring::defer`] is called where
    /// the program says that an update can be left, and [`Access::update`] otherwise.
    #[inline(always)]
    fn defers(&self) -> bool {
        false
    }

    /// Updates run where they stand in this attempt: it has more statements than those that are
    /// known.
    fn defer_nothing(&mut self) {}

    /// Leaves an update to the commit, where `updater` is run on the record as it is then, with the
    /// operands that are in these registers now. The program, and with it the updater, is kept
    /// until the attempt has ended.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn defer(
        &mut self,
        _table: &Table,
        _handle: &mut Handle,
        _updater: &Updater,
        _operands: &[Reg],
        _memory: &mut Memory,
    ) -> Result<(), Stop> {
        unreachable!("asked only of accesses that defer")
    }

    /// As [`Access::confirm`], when the attempt raised `error`. Gives the error to be reported: an
    /// update deferred to the commit that came before may raise one itself.
    ///
    /// # Errors
    /// Those of [`Access::confirm`].
    #[inline]
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause>
    where
        Self: Access,
    {
        self.confirm().map(|()| error)
    }
}
