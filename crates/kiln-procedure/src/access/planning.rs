//! What an access hears of a transaction before an attempt of it runs.

use super::{AbortCause, Access};
use crate::arguments::Arguments;
use crate::program::Program;

/// What schedulers tell an access: when a transaction begins and ends, and what its attempts will
/// run. An access that decides beforehand takes its locks here.
pub trait Planning {
    /// A new transaction begins, a call or one of several statements, whose attempts follow: those
    /// that repeat one that failed included. It ends at `deadline_ns`, of
    /// `kiln_platform::time::now_ns`, if at all.
    #[inline(always)]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        let _ = deadline_ns;
    }

    /// The transaction that [`Planning::begin_call`] announced is over: committed, rejected,
    /// expired, given up, or abandoned by its client. What its attempts left for later attempts is
    /// forgotten here, records' addresses above all: the tables that these belong to may go next.
    #[inline(always)]
    fn end_call(&mut self) {}

    /// Hears, before an attempt starts, how many of the same transaction have failed.
    #[inline(always)]
    fn prepare(&mut self, _failures: u32) {}

    /// Starts an attempt that writes nothing, whatever its arguments; in place of
    /// [`Access::begin`].
    #[inline]
    fn begin_read_only(&mut self)
    where
        Self: Access,
    {
        self.begin();
    }

    /// Hears, after an attempt has begun, what it will run.
    ///
    /// # Errors
    /// An [`AbortCause`] when the locks that it takes beforehand are not to be had;
    /// [`Access::roll_back`] follows.
    #[inline(always)]
    fn plan(&mut self, _program: &Program, _arguments: &Arguments) -> Result<(), AbortCause> {
        Ok(())
    }

    /// Hears, after an attempt has begun, that its statements will come one by one: an access that
    /// decides beforehand takes here what the last attempt of the same transaction had.
    #[inline(always)]
    fn plan_statements(&mut self) {}
}
