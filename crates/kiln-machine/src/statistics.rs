//! Where accesses were served, and what was waited for.

/// Totals over all cores since the machine was made, or since its statistics were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineStatistics {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Atomic read-modify-writes.
    pub read_modify_writes: u64,
    /// Prefetches.
    pub prefetches: u64,
    /// Accesses served by the core's first-level cache.
    pub first_level_hits: u64,
    /// Accesses served by the core's second-level cache.
    pub second_level_hits: u64,
    /// Accesses served by the socket's last-level cache.
    pub last_level_hits: u64,
    /// Lines that came from another core of the same socket.
    pub transfers_within: u64,
    /// Lines that came from another socket's caches.
    pub transfers_across: u64,
    /// Lines that came from the socket's own memory.
    pub memory_local: u64,
    /// Lines that came from another socket's memory.
    pub memory_remote: u64,
    /// Writes by a core that had a copy already and only had the others' copies invalidated.
    pub upgrades: u64,
    /// Times a core waited because a line was on its way to another core or locked by it.
    pub queued: u64,
    /// How long cores waited so, in picoseconds.
    pub queued_ps: u64,
    /// How long accesses took in all, waiting included, in picoseconds.
    pub memory_ps: u64,
    /// The part of it in which cores waited for room in their store buffers, or for them to drain.
    pub store_buffer_ps: u64,
    /// The part of it in which cores waited for lines that they had prefetched too late, or for a
    /// free place among the prefetches.
    pub prefetch_ps: u64,
    /// How long cores computed, in picoseconds; spinning and backoff apart.
    pub compute_ps: u64,
    /// How long cores spun or backed off, in picoseconds.
    pub spin_ps: u64,
}

impl MachineStatistics {
    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.loads + self.stores + self.read_modify_writes + self.prefetches
    }

    /// Lines that moved from one core's or socket's caches to another's.
    pub fn lines_transferred(&self) -> u64 {
        self.transfers_within + self.transfers_across
    }

    /// What happened since `earlier`, which is a copy of these statistics at an earlier time.
    pub fn since(&self, earlier: &MachineStatistics) -> MachineStatistics {
        MachineStatistics {
            loads: self.loads - earlier.loads,
            stores: self.stores - earlier.stores,
            read_modify_writes: self.read_modify_writes - earlier.read_modify_writes,
            prefetches: self.prefetches - earlier.prefetches,
            first_level_hits: self.first_level_hits - earlier.first_level_hits,
            second_level_hits: self.second_level_hits - earlier.second_level_hits,
            last_level_hits: self.last_level_hits - earlier.last_level_hits,
            transfers_within: self.transfers_within - earlier.transfers_within,
            transfers_across: self.transfers_across - earlier.transfers_across,
            memory_local: self.memory_local - earlier.memory_local,
            memory_remote: self.memory_remote - earlier.memory_remote,
            upgrades: self.upgrades - earlier.upgrades,
            queued: self.queued - earlier.queued,
            queued_ps: self.queued_ps - earlier.queued_ps,
            memory_ps: self.memory_ps - earlier.memory_ps,
            store_buffer_ps: self.store_buffer_ps - earlier.store_buffer_ps,
            prefetch_ps: self.prefetch_ps - earlier.prefetch_ps,
            compute_ps: self.compute_ps - earlier.compute_ps,
            spin_ps: self.spin_ps - earlier.spin_ps,
        }
    }
}

/// How contended one line was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineHeat {
    /// How often it moved from one core's or socket's caches to another's, or had copies
    /// invalidated.
    pub transfers: u64,
    /// How long cores waited for it while it was on its way to another core or locked by it, in
    /// picoseconds.
    pub queued_ps: u64,
}
