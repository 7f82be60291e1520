//! What the model knows about one cache line.

use crate::preset::MAX_CORES;
use crate::statistics::LineHeat;

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores([u64; MAX_CORES / 64]);

impl Cores {
    #[inline(always)]
    pub(crate) fn only(core: usize) -> Cores {
        let mut cores = Cores::default();
        cores.add(core);
        cores
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, core: usize) {
        self.0[core >> 6] |= 1 << (core & 63);
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, core: usize) {
        self.0[core >> 6] &= !(1 << (core & 63));
    }

    #[inline(always)]
    pub(crate) fn contains(&self, core: usize) -> bool {
        self.0[core >> 6] >> (core & 63) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn overlaps(&self, other: &Cores) -> bool {
        self.0[0] & other.0[0] | self.0[1] & other.0[1] != 0
    }

    /// The core, if it is a single one.
    pub(crate) fn single(&self) -> Option<u8> {
        match (self.0[0].count_ones(), self.0[1].count_ones()) {
            (1, 0) => Some(self.0[0].trailing_zeros() as u8),
            (0, 1) => Some(64 + self.0[1].trailing_zeros() as u8),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; MAX_CORES / 64]
    }
}

/// No core holds the line modified.
pub(crate) const NOBODY: u8 = u8::MAX;
/// No core has touched the line yet, so that it has no home.
pub(crate) const UNTOUCHED: u8 = u8::MAX;

/// The coherence state of a line.
///
/// Invariants: `owner` is [`NOBODY`] or the only one of `sharers`; a core is one of `sharers` only
/// while its second-level cache has the line's tag; while there is an owner, `last_level` is empty
/// (what those caches have of the line is stale).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    /// The cores whose private caches hold a valid copy.
    pub(crate) sharers: Cores,
    /// Until when the line is on its way to a core, or locked by one, in picoseconds.
    pub(crate) busy_until_ps: u64,
    /// Until when the core that last had it for itself and had to give it up can still use it, in
    /// picoseconds.
    pub(crate) lost_ps: u64,
    /// The core that holds it modified.
    pub(crate) owner: u8,
    /// The core that gave it up last.
    pub(crate) loser: u8,
    /// The socket whose memory it lies in: that of the core that touched it first.
    pub(crate) home: u8,
    /// The sockets whose last-level caches hold a valid copy, a bit each.
    pub(crate) last_level: u8,
    /// How contended it was.
    pub(crate) heat: LineHeat,
}

const _: () = assert!(
    size_of::<Line>() == 64,
    "the model itself touches one cache line for a line's state"
);

impl Line {
    pub(crate) const NEW: Line = Line {
        sharers: Cores([0; MAX_CORES / 64]),
        busy_until_ps: 0,
        lost_ps: 0,
        owner: NOBODY,
        loser: NOBODY,
        home: UNTOUCHED,
        last_level: 0,
        heat: LineHeat {
            transfers: 0,
            queued_ps: 0,
        },
    };

    /// Whether `core`'s private caches hold a valid copy.
    #[inline(always)]
    pub(crate) fn holds(&self, core: usize) -> bool {
        self.sharers.contains(core)
    }

    /// Notes that the core that has the line for itself gives it up, to a request let through at
    /// `start_ps`.
    pub(crate) fn give_up(&mut self, start_ps: u64, linger_ps: u64) {
        if let Some(holder) = self.sharers.single() {
            self.loser = holder;
            self.lost_ps = start_ps + linger_ps;
        }
    }

    /// Whether `core` had to give the line up but can still use it at `now_ps`, because the other
    /// core's request is on its way.
    #[inline(always)]
    pub(crate) fn lingers(&self, core: usize, now_ps: u64) -> bool {
        self.loser == core as u8 && now_ps < self.lost_ps
    }

    /// Whether `core` may write its copy without asking: it owns the line, or its copy is the only
    /// one besides that of its own socket's last-level cache (the exclusive state).
    #[inline(always)]
    pub(crate) fn is_exclusive(&self, core: usize, socket: usize) -> bool {
        self.owner == core as u8
            || (self.sharers == Cores::only(core) && self.last_level & !(1 << socket) == 0)
    }
}
