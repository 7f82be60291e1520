//! How far a sequence has got.
//!
//! # The word
//!
//! | bits | content |
//! |---|---|
//! | 24–63 | the number of the range |
//! | 0–23 | the steps that were taken in it; all ones while it is exchanged |
//!
//! A range is the value at its beginning, which was given, and how many may be given after that. A
//! draw reads the word, the value and the number, and takes its steps by comparing and exchanging
//! the word: it succeeds only if the range is still the one that was read. Who exchanges the range
//! holds the mutex, closes the word first, writes value and number, and opens the word with the
//! next number.

use kiln_platform::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, MutexGuard, OnceLock, lock};
use kiln_platform::time;

use super::SequenceDefinition;
use crate::error::{Error, Result, SqlState};
use crate::schema::TableId;

/// The number of a sequence in one shape: a change of it makes another one. Numbers of tables and
/// sequences are drawn from one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u32);

/// Values that are logged ahead of those that are given, as in PostgreSQL, while they are given
/// slowly.
const LOGGED_AHEAD: u64 = 32;
/// And at most, when they are given fast: so many may be left out after a crash.
const LOGGED_AHEAD_MAX: u64 = 8_192;
/// A range that is used up in fewer nanoseconds has a successor of twice its length.
const FAST_NS: u64 = 1_000_000;
/// Values that a session takes at a time at most, whatever CACHE says.
const CACHE_MAX: u64 = 1 << 20;

const STEP_BITS: u32 = 24;
const STEPS: u64 = (1 << STEP_BITS) - 1;

const _: () = assert!(CACHE_MAX + LOGGED_AHEAD_MAX < STEPS);

/// How far a sequence has got, as a log and a catalog keep it: after a recovery it goes on from
/// here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// Grows from state to state: of two of one sequence the later one counts.
    pub version: u64,
    /// The last value that may have been given.
    pub value: i64,
    /// Whether it was; else it is the next one.
    pub is_called: bool,
}

/// Keeps how far sequences have got.
pub trait SequenceLog: Send + Sync {
    /// Keeps the state of a sequence, before a value is given that follows from it. A client that
    /// is told such a value waits until it is on disk, as for all that is of this log epoch.
    ///
    /// # Errors
    /// Why nothing is kept any more.
    fn keep(&self, sequence: SequenceId, state: SequenceState) -> Result<()>;
}

/// Where a database's sequences are logged: nowhere, before it has a log. Clones are one.
#[derive(Clone, Default)]
pub struct SequenceLogs(Arc<OnceLock<Arc<dyn SequenceLog>>>);

impl SequenceLogs {
    /// Logs them from now on.
    pub fn set(&self, log: Arc<dyn SequenceLog>) {
        // A database has one log, and opens it once.
        let _ = self.0.set(log);
    }

    fn keep(&self, sequence: SequenceId, state: SequenceState) -> Result<()> {
        self.0.get().map_or(Ok(()), |log| log.keep(sequence, state))
    }
}

impl std::fmt::Debug for SequenceLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SequenceLogs")
            .field(&self.0.get().is_some())
            .finish()
    }
}

/// Values that were drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The first one.
    pub first: i64,
    /// How many there are; 1 or more.
    pub count: u64,
}

/// A sequence.
#[derive(Debug)]
pub struct Sequence {
    id: SequenceId,
    origin: SequenceId,
    tried: Option<Arc<Sequence>>,
    /// Whether calls that a block runs again draw from it what they have drawn from that one.
    repeats: AtomicBool,
    definition: SequenceDefinition,
    logs: SequenceLogs,
    hot: Hot,
    state: Mutex<State>,
}

/// What each draw touches, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Hot {
    word: AtomicU64,
    /// The value at the beginning of the range.
    base: AtomicI64,
    /// How many values may be given after that.
    count: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The number of the range.
    range: u64,
    /// Whether the value at its beginning was given. If not, no other is.
    is_called: bool,
    /// What the log has last.
    kept: SequenceState,
    /// The length of the range, and when it began.
    ahead: u64,
    began_ns: u64,
    /// What has taken its place; `Some(None)` when nothing has, as it was dropped.
    successor: Option<Option<Arc<Sequence>>>,
}

impl Sequence {
    /// A sequence that has given nothing yet.
    pub fn new(id: SequenceId, definition: SequenceDefinition, logs: SequenceLogs) -> Sequence {
        let state = SequenceState {
            version: 0,
            value: definition.start,
            is_called: false,
        };
        Sequence::with_state(id, id, definition, state, logs)
    }

    /// A sequence that has got this far. `origin` is the number of the first of the sequences that
    /// have taken each other's place.
    pub fn with_state(
        id: SequenceId,
        origin: SequenceId,
        definition: SequenceDefinition,
        state: SequenceState,
        logs: SequenceLogs,
    ) -> Sequence {
        Sequence {
            id,
            origin,
            tried: None,
            repeats: AtomicBool::new(false),
            definition,
            logs,
            hot: Hot {
                word: AtomicU64::new(0),
                base: AtomicI64::new(state.value),
                count: AtomicU64::new(0),
            },
            state: Mutex::new(State {
                range: 0,
                is_called: state.is_called,
                kept: state,
                ahead: 0,
                began_ns: 0,
                successor: None,
            }),
        }
    }

    /// Its number.
    pub fn id(&self) -> SequenceId {
        self.id
    }

    /// The same, of a transaction block that runs all again, and has tried it as another one
    /// before: what calls have drawn from that one they draw again from this one, and the first
    /// that draws more goes on where that one is. One that is tried once more keeps the number that
    /// it had first.
    #[must_use]
    pub fn tried_before(mut self, tried: &Arc<Sequence>, is_trial: bool) -> Sequence {
        if is_trial {
            self.origin = tried.origin;
        }
        self.tried = Some(tried.furthest().clone());
        self.repeats = AtomicBool::new(true);
        self
    }

    /// The last one that was tried from which something was drawn that is not drawn again.
    fn furthest(self: &Arc<Sequence>) -> &Arc<Sequence> {
        match (&self.tried, self.repeats.load(Ordering::Relaxed)) {
            (Some(tried), true) => tried,
            _ => self,
        }
    }

    /// Whether a call that has drawn from the sequence with this number first has drawn from this
    /// one.
    pub fn was_drawn_as(&self, origin: SequenceId) -> bool {
        let tried = self.tried.as_ref();
        origin == self.origin || tried.is_some_and(|tried| origin == tried.origin)
    }

    /// A call that runs again draws this value again, or sets it.
    pub(super) fn repeat(&self, value: i64, is_called: bool) -> Result<()> {
        // Relaxed: the block that runs again is the only one that knows the sequence.
        match self.repeats.load(Ordering::Relaxed) {
            true => self.set(value, is_called),
            false => Ok(()),
        }
    }

    /// All that was drawn before is drawn again: goes on where the one is that was tried before.
    ///
    /// # Errors
    /// Those of the log.
    pub fn follow_tried(&self) -> Result<()> {
        if !self.repeats.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let Some(tried) = &self.tried else {
            return Ok(());
        };
        let (value, _, is_called) = tried.shown();
        self.set(value, is_called)
    }

    /// The number that it had first, before it was altered.
    pub fn origin(&self) -> SequenceId {
        self.origin
    }

    /// What it is.
    pub fn definition(&self) -> &SequenceDefinition {
        &self.definition
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Draws the next values, as many as a session takes at a time.
    ///
    /// # Errors
    /// 2200H at its end; 42P01 when it was dropped; those of the log.
    #[inline]
    pub fn draw(&self) -> Result<Drawn> {
        let wanted = (self.definition.cache as u64).min(CACHE_MAX);
        match self.take(wanted) {
            Some(drawn) => Ok(drawn),
            None => self.reserve(wanted),
        }
    }

    /// Draws from the range; `None` when it has not as many.
    #[inline]
    fn take(&self, wanted: u64) -> Option<Drawn> {
        let Hot { word, base, count } = &self.hot;
        // Acquire pairs with the release that opened the range: its base and count, or those of a
        // later one, are read below. If they are of a later one the word is another one by now, and
        // the exchange fails.
        let mut old = word.load(Ordering::Acquire);
        loop {
            let base = base.load(Ordering::Acquire);
            let count = count.load(Ordering::Acquire);
            let taken = old & STEPS;
            if taken + wanted > count {
                return None;
            }
            // Acquire, so that a failed exchange is as good as the load above. Release, so that the
            // loads above come before it.
            let exchanged =
                word.compare_exchange_weak(old, old + wanted, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => {
                    return Some(Drawn {
                        first: self.definition.stepped(base, taken + 1),
                        count: wanted,
                    });
                }
                Err(other) => old = other,
            }
        }
    }

    /// Draws from a new range.
    #[cold]
    fn reserve(&self, wanted: u64) -> Result<Drawn> {
        let mut state = lock(&self.state);
        if let Some(successor) = &state.successor {
            let successor = successor.clone();
            drop(state);
            return match successor {
                Some(successor) => successor.draw(),
                None => Err(self.dropped()),
            };
        }
        // Another thread may have made one meanwhile.
        if let Some(drawn) = self.take(wanted) {
            return Ok(drawn);
        }
        let definition = &self.definition;
        let before = self.close(&mut state);
        let (last, left) = before;
        let first = match (state.is_called, definition.steps_after(last)) {
            (false, _) => last,
            (true, 0) if !definition.cycle => {
                self.open(&mut state, last, left, true);
                return Err(self.exhausted());
            }
            (true, 0) => definition.first_of_cycle(),
            (true, _) => definition.stepped(last, 1),
        };
        let now_ns = time::now_ns();
        let ahead = match now_ns.saturating_sub(state.began_ns) < FAST_NS && state.ahead > 0 {
            true => (state.ahead * 2).min(LOGGED_AHEAD_MAX),
            false => LOGGED_AHEAD,
        };
        let after = definition.steps_after(first);
        let count = (wanted - 1 + ahead).min(after);
        let taken = (wanted - 1).min(after);
        let kept = self.keep(&mut state, definition.stepped(first, count), true);
        if let Err(error) = kept {
            let is_called = state.is_called;
            self.open(&mut state, last, left, is_called);
            return Err(error);
        }
        (state.ahead, state.began_ns) = (ahead, now_ns);
        // What is taken is the base of the range.
        self.open(
            &mut state,
            definition.stepped(first, taken),
            count - taken,
            true,
        );
        Ok(Drawn {
            first,
            count: taken + 1,
        })
    }

    /// Sets it to a value: the last one that was given if `is_called`, else the next one.
    ///
    /// # Errors
    /// 22003 for a value that it never gives; 42P01 when it was dropped; those of the log.
    pub fn set(&self, value: i64, is_called: bool) -> Result<()> {
        let SequenceDefinition { name, min, max, .. } = &self.definition;
        if value < *min || value > *max {
            let message = format!(
                "setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})"
            );
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        let mut state = lock(&self.state);
        if let Some(successor) = &state.successor {
            let successor = successor.clone();
            drop(state);
            return match successor {
                Some(successor) => successor.set(value, is_called),
                None => Err(self.dropped()),
            };
        }
        let (last, left) = self.close(&mut state);
        match self.keep(&mut state, value, is_called) {
            Ok(()) => {
                (state.ahead, state.began_ns) = (0, 0);
                self.open(&mut state, value, 0, is_called);
                Ok(())
            }
            Err(error) => {
                let is_called = state.is_called;
                self.open(&mut state, last, left, is_called);
                Err(error)
            }
        }
    }

    /// The last value, how many more may be given before the log is asked, and whether the value
    /// was given: what PostgreSQL has in `last_value`, `log_cnt` and `is_called`.
    pub fn shown(&self) -> (i64, u64, bool) {
        let state = lock(&self.state);
        let (last, left) = self.position();
        // What a block tries again is to look the same.
        let is_tried = self.id.0 >= TableId::TRIALS_FROM;
        (last, if is_tried { 0 } else { left }, state.is_called)
    }

    /// What a log or a checkpoint has to keep of it: all values that were given are up to there.
    pub fn kept(&self) -> SequenceState {
        lock(&self.state).kept
    }

    /// Gives up the rest of the range: the log has it as it is. Returns how it is.
    ///
    /// # Errors
    /// Those of the log.
    pub fn give_up_range(&self) -> Result<SequenceState> {
        let mut state = lock(&self.state);
        let (last, left) = self.close(&mut state);
        let is_called = state.is_called;
        let mut result = Ok(());
        if (state.kept.value, state.kept.is_called) != (last, is_called) {
            result = self.keep(&mut state, last, is_called);
        }
        let left = if result.is_ok() { 0 } else { left };
        self.open(&mut state, last, left, is_called);
        result.map(|()| state.kept)
    }

    /// A recovery has found that it has got this far.
    pub fn restore(&self, kept: SequenceState) {
        let mut state = lock(&self.state);
        if kept.version > state.kept.version {
            self.close(&mut state);
            state.kept = kept;
            self.open(&mut state, kept.value, 0, kept.is_called);
        }
    }

    /// Another one has taken its place, or none: it gives nothing any more.
    pub fn supersede(&self, successor: Option<Arc<Sequence>>) {
        let mut state = lock(&self.state);
        let (last, _) = self.close(&mut state);
        state.successor = Some(successor);
        let is_called = state.is_called;
        self.open(&mut state, last, 0, is_called);
    }

    /// The last value, and how many are left of the range. The mutex is locked.
    fn position(&self) -> (i64, u64) {
        // Relaxed: the mutex orders what its holders have written, and what draws do to the word
        // means nothing but itself.
        let taken = self.hot.word.load(Ordering::Relaxed) & STEPS;
        let base = self.hot.base.load(Ordering::Relaxed);
        let count = self.hot.count.load(Ordering::Relaxed);
        (self.definition.stepped(base, taken), count - taken)
    }

    /// Keeps all from drawing; returns the last value, and how many are left of the range.
    fn close(&self, state: &mut MutexGuard<'_, State>) -> (i64, u64) {
        state.range += 1;
        let closed = state.range << STEP_BITS | STEPS;
        // AcqRel: what follows is not seen by a draw that this one overtakes, see `take`.
        let taken = self.hot.word.swap(closed, Ordering::AcqRel) & STEPS;
        let base = self.hot.base.load(Ordering::Relaxed);
        let count = self.hot.count.load(Ordering::Relaxed);
        (self.definition.stepped(base, taken), count - taken)
    }

    /// Has `count` values drawn after `base`.
    fn open(&self, state: &mut MutexGuard<'_, State>, base: i64, count: u64, is_called: bool) {
        state.is_called = is_called;
        state.range += 1;
        // Release: a draw that reads one of them sees the word closed, or the next one.
        self.hot.base.store(base, Ordering::Release);
        self.hot.count.store(count, Ordering::Release);
        // Release pairs with the acquire in `take`.
        (self.hot.word).store(state.range << STEP_BITS, Ordering::Release);
    }

    fn keep(&self, state: &mut MutexGuard<'_, State>, value: i64, is_called: bool) -> Result<()> {
        let kept = SequenceState {
            version: state.kept.version.saturating_add(1),
            value,
            is_called,
        };
        self.logs.keep(self.id, kept)?;
        state.kept = kept;
        Ok(())
    }

    #[cold]
    fn exhausted(&self) -> Error {
        let SequenceDefinition {
            name,
            increment,
            min,
            max,
            ..
        } = &self.definition;
        let (bound, value) = match *increment > 0 {
            true => ("maximum", max),
            false => ("minimum", min),
        };
        let message = format!("nextval: reached {bound} value of sequence \"{name}\" ({value})");
        Error::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message)
    }

    #[cold]
    fn dropped(&self) -> Error {
        let message = format!("relation \"{}\" does not exist", self.definition.name);
        Error::new(SqlState::UNDEFINED_TABLE, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DataType;

    fn definition() -> SequenceDefinition {
        SequenceDefinition {
            name: "s".to_owned(),
            data_type: DataType::BigInt,
            start: 1,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache: 1,
            cycle: false,
            owner: None,
        }
    }

    fn sequence(definition: SequenceDefinition) -> Sequence {
        Sequence::new(SequenceId(1), definition, SequenceLogs::default())
    }

    fn values(sequence: &Sequence, count: usize) -> Vec<i64> {
        let draw = |_| sequence.draw().expect("there is a value").first;
        (0..count).map(draw).collect()
    }

    #[test]
    fn values_come_in_order_and_the_range_is_as_postgresqls() {
        let sequence = sequence(definition());
        assert_eq!(sequence.shown(), (1, 0, false));
        assert_eq!(values(&sequence, 1), [1]);
        assert_eq!(sequence.shown(), (1, 32, true));
        assert_eq!(values(&sequence, 32), (2..=33).collect::<Vec<_>>());
        assert_eq!(sequence.shown(), (33, 0, true));
        assert_eq!(sequence.kept().value, 33);
        assert_eq!(values(&sequence, 1), [34]);
        assert!(sequence.kept().value >= 66);
        sequence.set(10, false).expect("it is in bounds");
        assert_eq!(sequence.shown(), (10, 0, false));
        assert_eq!(values(&sequence, 2), [10, 11]);
        sequence.set(10, true).expect("it is in bounds");
        assert_eq!(values(&sequence, 2), [11, 12]);
        let out = sequence.set(0, true).expect_err("it is out of bounds");
        assert_eq!(out.state(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
    }

    #[test]
    fn an_end_is_one_unless_it_cycles() {
        let short = SequenceDefinition {
            start: 2,
            max: 3,
            ..definition()
        };
        let ends = sequence(short.clone());
        assert_eq!(values(&ends, 2), [2, 3]);
        for _ in 0..2 {
            let error = ends.draw().expect_err("it is at its end");
            assert_eq!(error.state(), SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED);
        }
        assert_eq!(ends.shown(), (3, 0, true));
        let cycles = sequence(SequenceDefinition {
            cycle: true,
            ..short
        });
        assert_eq!(values(&cycles, 6), [2, 3, 1, 2, 3, 1]);
        let down = sequence(SequenceDefinition {
            start: i64::MIN + 5,
            increment: -3,
            min: i64::MIN,
            max: -1,
            cycle: true,
            ..definition()
        });
        let expected = [i64::MIN + 5, i64::MIN + 2, -1, -4];
        assert_eq!(values(&down, 4), expected);
        let wide = sequence(SequenceDefinition {
            start: i64::MIN,
            increment: i64::MAX,
            min: i64::MIN,
            ..definition()
        });
        assert_eq!(values(&wide, 3), [i64::MIN, -1, i64::MAX - 1]);
        assert!(wide.draw().is_err());
    }

    #[test]
    fn a_cache_is_taken_at_once() {
        let cached = sequence(SequenceDefinition {
            cache: 10,
            max: 25,
            ..definition()
        });
        let draw = || cached.draw().expect("there is a value");
        let drawn = |first, count| Drawn { first, count };
        assert_eq!(draw(), drawn(1, 10));
        assert_eq!(cached.shown(), (10, 15, true));
        assert_eq!(draw(), drawn(11, 10));
        assert_eq!(draw(), drawn(21, 5));
        assert!(cached.draw().is_err());
    }

    #[test]
    fn a_later_state_counts_and_a_successor_goes_on() {
        let old = sequence(definition());
        values(&old, 3);
        let given = old.give_up_range().expect("there is no log");
        assert_eq!((given.value, given.is_called), (3, true));
        let version = given.version;
        old.restore(SequenceState {
            version,
            value: 99,
            is_called: true,
        });
        assert_eq!(old.shown().0, 3);
        old.restore(SequenceState {
            version: version + 1,
            value: 50,
            is_called: true,
        });
        assert_eq!(values(&old, 1), [51]);
        let new = Arc::new(sequence(definition()));
        old.supersede(Some(new.clone()));
        assert_eq!(values(&old, 2), [1, 2]);
        assert_eq!(values(&new, 1), [3]);
        new.supersede(None);
        let error = old.draw().expect_err("it was dropped");
        assert_eq!(error.state(), SqlState::UNDEFINED_TABLE);
    }

    struct Refusing;

    impl SequenceLog for Refusing {
        fn keep(&self, _: SequenceId, _: SequenceState) -> Result<()> {
            Err(Error::new(SqlState::DISK_FULL, "no room"))
        }
    }

    #[test]
    fn what_the_log_does_not_keep_is_not_given() {
        let logs = SequenceLogs::default();
        let sequence = Sequence::new(SequenceId(1), definition(), logs.clone());
        assert_eq!(values(&sequence, 30).last(), Some(&30));
        logs.set(Arc::new(Refusing));
        assert_eq!(values(&sequence, 3), [31, 32, 33]);
        assert!(sequence.draw().is_err() && sequence.set(5, true).is_err());
        assert_eq!(sequence.shown(), (33, 0, true));
    }

    #[test]
    fn threads_draw_each_value_once() {
        let sequence = &sequence(definition());
        let drawn = kiln_platform::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| values(sequence, 5_000)))
                .collect();
            let mut all = Vec::new();
            for thread in threads {
                let own = thread.join().expect("no thread panics");
                assert!(own.is_sorted());
                all.extend(own);
            }
            all.sort_unstable();
            all
        });
        assert_eq!(drawn, (1..=20_000).collect::<Vec<_>>());
    }
}
