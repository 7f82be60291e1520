//! What the engine computes between its accesses to shared memory, told to virtual cores so that
//! their clocks advance. On real cores it is nothing: the computation takes its own time.

/// A piece of work whose time was measured on a real core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// Drawing a call and its arguments, and entering its outcome in the books.
    Call,
    /// Beginning an attempt.
    Begin,
    /// One step of a procedure.
    Step,
    /// Looking one key up in an index: packing and hashing it, apart from the levels.
    Lookup,
    /// Searching one node of an ordered index, or one bucket of a hash index.
    Level,
    /// Going on by one entry in a scan.
    Scan,
    /// Adding an entry to an index, or taking one out.
    IndexChange,
    /// Taking one record into an attempt's read or write set.
    Record,
    /// Committing an attempt, apart from its accesses to records.
    Commit,
    /// Rolling an attempt back, apart from its accesses to records.
    Abort,
    /// Making the error that ends a call: its message, its rejection.
    Reject,
}

/// Advances a virtual core's clock by what `work` takes; nothing on a real core.
#[inline(always)]
pub fn charge(work: Work) {
    #[cfg(kiln_sim)]
    crate::backend::runtime::charge(work);
    #[cfg(not(kiln_sim))]
    let _ = work;
}
