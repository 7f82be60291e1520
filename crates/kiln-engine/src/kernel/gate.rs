//! The gate: lets transactions start, and shuts them out for changes of the database.
//!
//! Each worker slot has a flag that it raises before it looks at the gate's state, and lowers when
//! its transaction has ended. A thread that wants the database alone first shuts the gate and then
//! waits until all flags are down. Of a worker slot that raises its flag and a gate that is being
//! shut, at least one sees the other, because both write before they read and all four accesses are
//! sequentially consistent.
//!
//! A worker slot whose transaction waits for its client stands aside: its flag is half down. It
//! touches nothing of the database until it has raised the flag again and found the gate open. A
//! change that leaves the transaction's tables alone goes on beside it ([`Beside::Blocks`]).
//!
//! A gate that is shut holds everyone up, so it is shut for moments only ([`MOMENT_NS`]): when
//! transactions run on, it opens again, and is tried later.

use kiln_platform::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::sync::{Condvar, Mutex, lock};
use kiln_platform::{spin, thread, time};
use kiln_procedure::Interrupt;

use super::refusal::Refusal;
use super::token::Token;
use crate::wait::{wait, wait_unless};

/// A thread has the database alone, or waits for that.
pub(crate) const SHUT: u64 = 1;
/// No new transactions but those that were accepted before.
pub(crate) const CLOSING: u64 = 2;
/// A thread panicked inside a transaction.
pub(crate) const BROKEN: u64 = 4;
/// The rest of the state counts changes of the catalog and the protocol.
const GENERATION: u64 = 8;
/// No state ever has this value: generations stay far below.
pub(crate) const NEVER: u64 = u64::MAX;

/// For how long the gate is shut at a time while transactions run on, and how many such moments
/// there are until they become longer: procedures that run for longer than a moment must end some
/// day.
const MOMENT_NS: u64 = 2_000_000;
const MOMENT_MAX_NS: u64 = 256_000_000;
const SHORT_MOMENTS: u32 = 64;
/// The gate is open for so many times as long between two moments.
const OPEN_FOR: u64 = 4;
/// How often it is asked whether an open block has ended.
const ASIDE_LOOK_NS: u64 = 500_000;

/// A worker slot's flag, on a pair of cache lines of its own.
#[repr(align(128))]
struct Flag(AtomicU8);

/// No transaction is open in the worker slot.
const OUT: u8 = 0;
/// A transaction runs.
const IN: u8 = 1;
/// A transaction is open and waits for its client.
const ASIDE: u8 = 2;

/// Which transactions may be open while the gate is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// None at all.
    Nothing,
    /// Those that stand aside.
    Blocks,
}

pub(crate) struct Gate {
    state: AtomicU64,
    /// Threads that try to shut the gate.
    wanted: AtomicU32,
    flags: Box<[Flag]>,
    free: Mutex<Vec<usize>>,
    waiting: Mutex<()>,
    opened: Condvar,
    token: Token,
    /// For how long the last call that asked to be alone in vain keeps all from asking, and until
    /// when.
    pause_ns: AtomicU64,
    not_before_ns: AtomicU64,
}

/// How long it is after the first of several in vain; it doubles with each. At most so long: a call
/// that does starve is helped in the end.
const PAUSE_NS: u64 = 50_000_000;
const PAUSE_MAX_NS: u64 = 1_600_000_000;

/// The database alone; opens the gate when dropped.
pub(crate) struct Alone<'a> {
    gate: &'a Gate,
}

impl Gate {
    pub fn new(worker_slots: usize) -> Gate {
        Gate {
            wanted: AtomicU32::new(0),
            state: AtomicU64::new(0),
            flags: (0..worker_slots)
                .map(|_| Flag(AtomicU8::new(OUT)))
                .collect(),
            free: Mutex::new((0..worker_slots).rev().collect()),
            waiting: Mutex::new(()),
            opened: Condvar::new(),
            token: Token::default(),
            pause_ns: AtomicU64::new(0),
            not_before_ns: AtomicU64::new(0),
        }
    }

    /// Names its memory in reports about cache lines; it stays where it is from now on.
    pub fn name_memory(&self) {
        let name = |address: usize, bytes: usize, name: &str| {
            name_range(address, bytes, || name.to_owned());
        };
        name(std::ptr::from_ref(&self.state).addr(), 8, "gate.state");
        let token = std::ptr::from_ref(&self.token).addr();
        name(token, size_of::<Token>(), "gate.token");
        for (worker_slot, flag) in self.flags.iter().enumerate() {
            let address = std::ptr::from_ref(flag).addr();
            name_range(address, size_of::<Flag>(), || {
                format!("gate.flag[{worker_slot}]")
            });
        }
    }

    /// Takes a free worker slot.
    pub fn take_worker_slot(&self) -> Option<usize> {
        lock(&self.free).pop()
    }

    /// Gives a worker slot back whose flag is down.
    pub fn give_worker_slot_back(&self, worker_slot: usize) {
        lock(&self.free).push(worker_slot);
    }

    /// Raises the worker slot's flag and returns the gate's state. If that says [`SHUT`], the flag
    /// must come down again.
    #[inline(always)]
    pub fn enter(&self, worker_slot: usize) -> u64 {
        // A swap, because it is a full barrier on x86-64 at half the price of a fence.
        self.flags[worker_slot].0.swap(IN, Ordering::SeqCst);
        self.state.load(Ordering::SeqCst)
    }

    /// Lowers the worker slot's flag.
    #[inline(always)]
    pub fn leave(&self, worker_slot: usize) {
        // Release pairs with the acquire in `shut`: what the transaction did comes before.
        self.flags[worker_slot].0.store(OUT, Ordering::Release);
    }

    /// Lowers the flag by half: a transaction stays open, and touches nothing before
    /// [`Gate::resume`].
    #[inline(always)]
    pub fn step_aside(&self, worker_slot: usize) {
        // Release: as in `leave`.
        self.flags[worker_slot].0.store(ASIDE, Ordering::Release);
    }

    /// Raises the flag of a worker slot that stands aside, once the gate is open; returns the
    /// gate's state.
    ///
    /// # Errors
    /// When `deadline_ns` passes before, or `interrupt` asks for the end: the worker slot still
    /// stands aside.
    pub fn resume(
        &self,
        worker_slot: usize,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<u64, Refusal> {
        loop {
            let state = self.enter(worker_slot);
            if state & SHUT == 0 {
                return Ok(state);
            }
            self.step_aside(worker_slot);
            self.wait_until_open(deadline_ns, interrupt)?;
        }
    }

    /// The state now.
    pub fn state(&self) -> u64 {
        self.state.load(Ordering::SeqCst)
    }

    /// Waits with a lowered flag until the gate is open, then enters.
    #[cold]
    pub fn enter_when_open(
        &self,
        worker_slot: usize,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<u64, Refusal> {
        loop {
            let state = self.enter(worker_slot);
            if state & SHUT == 0 {
                return Ok(state);
            }
            self.leave(worker_slot);
            self.wait_until_open(deadline_ns, interrupt)?;
        }
    }

    fn wait_until_open(
        &self,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), Refusal> {
        let mut guard = lock(&self.waiting);
        while self.state() & SHUT != 0 {
            guard = match wait_unless(&self.opened, guard, deadline_ns, interrupt) {
                Some(guard) => guard,
                None => return Err(Refusal::Expired),
            };
        }
        Ok(())
    }

    /// Shuts the gate when no transaction is open but those that may be; `None` when there is no
    /// such moment until `deadline_ns`. Others are held up for [`MOMENT_NS`] at a time, and after
    /// [`SHORT_MOMENTS`] of these for longer ones, but never for more than a fifth of the time.
    pub fn shut(&self, beside: Beside, deadline_ns: u64) -> Option<Alone<'_>> {
        // Relaxed, here and in `is_wanted`: a worker slot that steps aside for it may do so a
        // moment later.
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let alone = self.shut_when_possible(beside, deadline_ns);
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        alone
    }

    /// Whether a thread tries to shut the gate.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    fn shut_when_possible(&self, beside: Beside, deadline_ns: u64) -> Option<Alone<'_>> {
        let (mut moment_ns, mut moments) = (MOMENT_NS, 0);
        loop {
            let pause_ns = match beside == Beside::Nothing && self.has_aside() {
                // That transaction's client decides when it ends: there is no point in shutting the
                // gate.
                true => ASIDE_LOOK_NS,
                false => {
                    if let Some(alone) = self.shut_for(beside, moment_ns, deadline_ns) {
                        return Some(alone);
                    }
                    moments += 1;
                    if moments > SHORT_MOMENTS {
                        moment_ns = (2 * moment_ns).min(MOMENT_MAX_NS);
                    }
                    OPEN_FOR * moment_ns
                }
            };
            let remaining_ns = deadline_ns.saturating_sub(time::now_ns());
            if remaining_ns == 0 {
                return None;
            }
            thread::park_for(pause_ns.min(remaining_ns));
        }
    }

    /// Whether a transaction waits for its client. It may have ended when this returns.
    fn has_aside(&self) -> bool {
        let mut flags = self.flags.iter();
        flags.any(|flag| flag.0.load(Ordering::Relaxed) == ASIDE)
    }

    /// Whether no transaction is open, asked by the thread that has shut the gate. A worker slot
    /// that finds the gate shut has its flag up for a moment, so that this may say no for no
    /// reason.
    pub fn is_empty(&self) -> bool {
        let mut flags = self.flags.iter();
        // Acquire pairs with the release in `leave`.
        flags.all(|flag| flag.0.load(Ordering::Acquire) == OUT)
    }

    /// Shuts the gate, and opens it again when the transactions that run have not ended after
    /// `moment_ns`.
    fn shut_for(&self, beside: Beside, moment_ns: u64, deadline_ns: u64) -> Option<Alone<'_>> {
        {
            let mut guard = lock(&self.waiting);
            while self.state.fetch_or(SHUT, Ordering::SeqCst) & SHUT != 0 {
                guard = wait(&self.opened, guard, Some(deadline_ns))?;
            }
        }
        let alone = Alone { gate: self };
        let until = time::now_ns().saturating_add(moment_ns).min(deadline_ns);
        self.wait_for_others(None, beside, until).then_some(alone)
    }

    /// Shuts the gate for the one worker slot that calls this, whose flag is up and stays up, so
    /// that nothing changes for it; `None` when another thread shuts it already, when transactions
    /// are open for longer than `wait_ns`, or when being alone could not be had not long ago: each
    /// try holds all the others up.
    pub fn shut_around(&self, worker_slot: usize, wait_ns: u64) -> Option<Alone<'_>> {
        let now = time::now_ns();
        // Relaxed, here and below: two worker slots that try at the same time hold the others up
        // for twice as long, once.
        if now < self.not_before_ns.load(Ordering::Relaxed)
            || self.has_aside()
            || self.state.fetch_or(SHUT, Ordering::SeqCst) & SHUT != 0
        {
            return None;
        }
        let alone = Alone { gate: self };
        let until = now.saturating_add(wait_ns);
        let is_alone = self.wait_for_others(Some(worker_slot), Beside::Nothing, until);
        let pause_ns = match is_alone {
            true => 0,
            false => (self.pause_ns.load(Ordering::Relaxed) * 2).clamp(PAUSE_NS, PAUSE_MAX_NS),
        };
        self.pause_ns.store(pause_ns, Ordering::Relaxed);
        let not_before_ns = time::now_ns() + pause_ns;
        self.not_before_ns.store(not_before_ns, Ordering::Relaxed);
        is_alone.then_some(alone)
    }

    /// Waits until no flag is up but that of `worker_slot`, and none half up unless `beside` allows
    /// it; false when `deadline_ns` has passed.
    fn wait_for_others(
        &self,
        worker_slot: Option<usize>,
        beside: Beside,
        deadline_ns: u64,
    ) -> bool {
        let is_out = |flag: u8| flag == OUT || flag == ASIDE && beside == Beside::Blocks;
        let mut rounds = 0_u32;
        for (number, flag) in self.flags.iter().enumerate() {
            if Some(number) == worker_slot {
                continue;
            }
            // Acquire is part of it; see `leave`.
            while !is_out(flag.0.load(Ordering::SeqCst)) {
                rounds += 1;
                match rounds {
                    0..100 => spin::hint(),
                    100..200 => thread::yield_now(),
                    _ => thread::park_for(100_000),
                }
                if rounds > 100 && time::now_ns() >= deadline_ns {
                    return false;
                }
            }
        }
        true
    }

    /// Sets one of the flags of the state for good.
    pub fn set(&self, flag: u64) {
        self.state.fetch_or(flag, Ordering::SeqCst);
    }

    /// The token of protocols that run one transaction at a time.
    pub fn token(&self) -> &Token {
        &self.token
    }
}

impl Alone<'_> {
    /// Makes every worker slot look at the catalog and the protocol again.
    pub fn announce_change(&self) {
        self.gate.state.fetch_add(GENERATION, Ordering::SeqCst);
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // Under the mutex, so that no waiter is between looking at the state and waiting.
        let _guard = lock(&self.gate.waiting);
        self.gate.state.fetch_and(!SHUT, Ordering::SeqCst);
        self.gate.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_is_shut_in_vain_stays_open_for_twice_as_long_each_time() {
        let gate = Gate::new(3);
        assert_eq!(gate.enter(0) & SHUT, 0);
        assert_eq!(gate.enter(1) & SHUT, 0);
        let mut last_ns = 0;
        for _ in 0..8 {
            gate.not_before_ns.store(0, Ordering::Relaxed);
            assert!(gate.shut_around(0, 0).is_none(), "the other one is busy");
            let pause_ns = gate.pause_ns.load(Ordering::Relaxed);
            assert!(pause_ns == PAUSE_MAX_NS || pause_ns >= 2 * last_ns);
            last_ns = pause_ns;
        }
        gate.leave(1);
        assert!(gate.shut_around(0, 0).is_none(), "it was in vain just now");
        gate.not_before_ns.store(0, Ordering::Relaxed);
        assert!(gate.shut_around(0, 0).is_some());
        assert!(
            gate.shut_around(0, 0).is_some(),
            "the last time was not in vain"
        );
        assert_eq!(gate.state() & SHUT, 0);
    }
}
