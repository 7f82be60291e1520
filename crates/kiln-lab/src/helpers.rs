//! The threads that load and audit.

use kiln_platform::thread;

/// Sessions of the loader's threads and of the audit; the drivers have the other seats.
pub(crate) const SESSION_SLOTS: usize = 28;

/// How many threads load or audit when there is so much that one of them can do: one for each core,
/// as far as sessions go. Each has one session, and some are left for queries between.
pub(crate) fn helpers(pieces: usize) -> usize {
    thread::available_cores()
        .min(SESSION_SLOTS - 4)
        .min(pieces)
        .max(1)
}
