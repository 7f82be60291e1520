//! What a core does between its accesses to memory.

/// A piece of work that touches no shared memory, or whose memory accesses are reported apart.
///
/// Each stands for the instructions of one thing the engine does again and again; what it costs is
/// in [`WorkCosts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Drawing a call and entering it in the books: what a benchmark's driver or a worker's loop
    /// does around a transaction.
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
    /// One access to shared memory: the instructions around the load or store itself.
    Access,
    /// Copying or comparing one word of a row beyond an access's first.
    Word,
    /// One spin hint.
    Spin,
    /// A wait of so many spin hints between the attempts of a transaction.
    Backoff {
        /// How many hints.
        spins: u32,
    },
    /// A full memory fence: the store buffer drains first.
    Fence,
    /// Reading the clock or the cycle counter.
    Clock,
    /// Yielding to the operating system, or waking or parking a thread.
    SystemCall,
    /// This many picoseconds, as measured by the caller.
    Picoseconds(u64),
}

/// What each kind of [`Work`] costs, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkCosts {
    /// [`Work::Call`].
    pub call_ps: u64,
    /// [`Work::Begin`].
    pub begin_ps: u64,
    /// [`Work::Step`].
    pub step_ps: u64,
    /// [`Work::Lookup`].
    pub lookup_ps: u64,
    /// [`Work::Level`].
    pub level_ps: u64,
    /// [`Work::Scan`].
    pub scan_ps: u64,
    /// [`Work::IndexChange`].
    pub index_change_ps: u64,
    /// [`Work::Record`].
    pub record_ps: u64,
    /// [`Work::Commit`].
    pub commit_ps: u64,
    /// [`Work::Abort`].
    pub abort_ps: u64,
    /// [`Work::Reject`].
    pub reject_ps: u64,
    /// [`Work::Access`].
    pub access_ps: u64,
    /// [`Work::Word`].
    pub word_ps: u64,
    /// [`Work::Spin`], and each of [`Work::Backoff`].
    pub spin_ps: u64,
    /// [`Work::Fence`], when the store buffer is empty.
    pub fence_ps: u64,
    /// [`Work::Clock`].
    pub clock_ps: u64,
    /// [`Work::SystemCall`].
    pub system_call_ps: u64,
}

impl WorkCosts {
    /// What `work` costs, in picoseconds.
    #[inline]
    pub const fn of(&self, work: Work) -> u64 {
        match work {
            Work::Call => self.call_ps,
            Work::Begin => self.begin_ps,
            Work::Step => self.step_ps,
            Work::Lookup => self.lookup_ps,
            Work::Level => self.level_ps,
            Work::Scan => self.scan_ps,
            Work::IndexChange => self.index_change_ps,
            Work::Record => self.record_ps,
            Work::Commit => self.commit_ps,
            Work::Abort => self.abort_ps,
            Work::Reject => self.reject_ps,
            Work::Access => self.access_ps,
            Work::Word => self.word_ps,
            Work::Spin => self.spin_ps,
            Work::Backoff { spins } => self.spin_ps * spins as u64,
            Work::Fence => self.fence_ps,
            Work::Clock => self.clock_ps,
            Work::SystemCall => self.system_call_ps,
            Work::Picoseconds(duration) => duration,
        }
    }

    /// These costs times `percent` / 100, for a core that is faster or slower at everything that
    /// executes instructions. The spin hint and the system call keep their time: the first is a
    /// wait of fixed length, the second mostly the operating system's.
    pub const fn scaled(&self, percent: u64) -> WorkCosts {
        WorkCosts {
            call_ps: self.call_ps * percent / 100,
            begin_ps: self.begin_ps * percent / 100,
            step_ps: self.step_ps * percent / 100,
            lookup_ps: self.lookup_ps * percent / 100,
            level_ps: self.level_ps * percent / 100,
            scan_ps: self.scan_ps * percent / 100,
            index_change_ps: self.index_change_ps * percent / 100,
            record_ps: self.record_ps * percent / 100,
            commit_ps: self.commit_ps * percent / 100,
            abort_ps: self.abort_ps * percent / 100,
            reject_ps: self.reject_ps * percent / 100,
            access_ps: self.access_ps * percent / 100,
            word_ps: self.word_ps * percent / 100,
            spin_ps: self.spin_ps,
            fence_ps: self.fence_ps * percent / 100,
            clock_ps: self.clock_ps * percent / 100,
            system_call_ps: self.system_call_ps,
        }
    }
}
