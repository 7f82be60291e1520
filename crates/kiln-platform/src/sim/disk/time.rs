//! What operations on a simulated disk take.

/// What operations take, in virtual time. Threads that use the disk at the same time do not slow
/// each other down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Nanoseconds that each operation takes.
    pub operation_ns: u64,
    /// Nanoseconds beyond that for a sync and for a durable write.
    pub sync_ns: u64,
    /// Bytes a second, of what is read, what is written durably, and what a sync finds to be
    /// written. Not 0.
    pub bytes_per_s: u64,
}

impl Default for Timing {
    /// About those of a solid state disk: 2 µs, 50 µs, 1 GB/s.
    fn default() -> Timing {
        Timing {
            operation_ns: 2_000,
            sync_ns: 50_000,
            bytes_per_s: 1_000_000_000,
        }
    }
}

impl Timing {
    /// Nanoseconds of an operation that moves `bytes` bytes from or to the medium.
    pub(super) fn takes_ns(&self, bytes: u64, is_sync: bool) -> u64 {
        let transfer = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s.max(1));
        let sync_ns = if is_sync { self.sync_ns } else { 0 };
        (self.operation_ns.saturating_add(sync_ns))
            .saturating_add(u64::try_from(transfer).unwrap_or(u64::MAX))
    }
}
