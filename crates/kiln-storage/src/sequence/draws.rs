//! What a call has drawn, and what a session knows of it.
//!
//! A call keeps what it has drawn until it has ended. An attempt that runs again is given the same
//! values in the same order, sequence by sequence; what it wants beyond them is drawn. `setval` has
//! its effect once in the same way. Two attempts may take different ways: then the values that the
//! later one does not want are given to no call, as those of a transaction that rolls back are.
//!
//! `currval` is what the session had before the call, until the call draws: also in an attempt that
//! runs again, and in a statement that a block replays. So a call notes what it has found of the
//! session, and finds it again.

use std::collections::BTreeMap;

use kiln_platform::sync::{Arc, Mutex, MutexGuard, lock};

use super::{Drawn, Sequence, SequenceId};
use crate::error::{Error, Result, SqlState};

/// Runs of values that a call keeps at most; a call that draws more draws new ones when it is run
/// again.
const RUNS_MAX: usize = 1 << 16;
/// Runs that are looked at for the next value of a sequence, from the first that is not used up.
const LOOKS_MAX: usize = 256;

/// What a session knows of sequences. It lasts as long as the session.
#[derive(Debug, Default)]
pub struct SessionSequences {
    state: Mutex<SessionState>,
}

#[derive(Debug, Default)]
struct SessionState {
    /// The last value of each sequence, by the number that it had first.
    last_values: BTreeMap<SequenceId, i64>,
    /// The sequence of which the last value was drawn.
    last: Option<SequenceId>,
    /// Values that were drawn ahead, as CACHE says, by the number of the sequence.
    cached: BTreeMap<SequenceId, Cached>,
}

#[derive(Clone, Copy, Debug)]
struct Cached {
    next: i64,
    left: u64,
}

impl SessionSequences {
    /// Forgets all, as DISCARD SEQUENCES does.
    pub fn forget(&self) {
        *lock(&self.state) = SessionState::default();
    }

    /// A sequence that a transaction block has tried, `tried`, is `made` now.
    pub fn follow(&self, tried: &Sequence, made: &Sequence) {
        let state = &mut *lock(&self.state);
        if let Some(value) = state.last_values.remove(&tried.origin()) {
            state.last_values.insert(made.origin(), value);
        }
        if state.last == Some(tried.origin()) {
            state.last = Some(made.origin());
        }
        if let Some(cached) = state.cached.remove(&tried.id()) {
            state.cached.insert(made.id(), cached);
        }
    }

    /// The next value: one that was drawn ahead, or the first that is drawn now.
    fn next(&self, sequence: &Sequence) -> Result<i64> {
        if sequence.definition().cache == 1 {
            return sequence.draw().map(|drawn| drawn.first);
        }
        let mut state = lock(&self.state);
        if let Some(cached) = state.cached.get_mut(&sequence.id())
            && cached.left > 0
        {
            let value = cached.next;
            *cached = after(sequence, value, cached.left);
            return Ok(value);
        }
        drop(state);
        let Drawn { first, count } = sequence.draw()?;
        let cached = after(sequence, first, count);
        lock(&self.state).cached.insert(sequence.id(), cached);
        Ok(first)
    }
}

/// What is left behind the first of `count` values.
fn after(sequence: &Sequence, value: i64, count: u64) -> Cached {
    Cached {
        next: sequence.definition().stepped(value, 1),
        left: count - 1,
    }
}

/// What a call has drawn. One call may be run by several threads, one after the other.
#[derive(Debug, Default)]
pub struct Draws {
    session: Option<Arc<SessionSequences>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    made: Vec<Made>,
    /// The first of these of which this attempt may use more.
    next: usize,
    /// The last values of this attempt.
    last_values: Vec<(SequenceId, i64)>,
    last: Option<SequenceId>,
    /// What the session had before the call, as far as it was asked for.
    before: Vec<(SequenceId, Option<i64>)>,
    last_before: Option<Option<SequenceId>>,
}

/// What attempts have done to a sequence.
#[derive(Debug)]
struct Made {
    sequence: SequenceId,
    what: What,
    /// How much of it this attempt has used.
    used: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    /// `count` values one after the other, each `step` more than the one before.
    Drawn { first: i64, step: i64, count: u64 },
    /// `setval`.
    Set { value: i64, is_called: bool },
}

impl Made {
    fn is_used_up(&self) -> bool {
        match self.what {
            What::Drawn { count, .. } => self.used >= count,
            What::Set { .. } => self.used > 0,
        }
    }
}

impl Draws {
    /// The draws of a call of this session, if a session makes it.
    pub fn of(session: Option<Arc<SessionSequences>>) -> Draws {
        Draws {
            session,
            state: Mutex::default(),
        }
    }

    /// Whether no sequence was asked for anything.
    pub fn is_unused(&self) -> bool {
        let state = lock(&self.state);
        state.made.is_empty() && state.before.is_empty() && state.last_before.is_none()
    }

    /// An attempt begins: what was drawn before is given again.
    pub fn begin_attempt(&self) {
        let state = &mut *lock(&self.state);
        state.next = 0;
        state.made.iter_mut().for_each(|made| made.used = 0);
        state.last_values.clear();
        state.last = None;
    }

    /// `nextval`.
    ///
    /// # Errors
    /// Those of [`Sequence::draw`].
    pub fn next(&self, sequence: &Sequence) -> Result<i64> {
        let mut state = lock(&self.state);
        if let Some(value) = state.drawn_before(sequence) {
            sequence.repeat(value, true)?;
            self.note(&mut state, sequence, value, true);
            return Ok(value);
        }
        let value = match &self.session {
            Some(session) => {
                sequence.follow_tried()?;
                session.next(sequence)?
            }
            // A definition, which draws the same again from a sequence that it makes.
            None => sequence.draw()?.first,
        };
        state.keep_drawn(sequence, value);
        self.note(&mut state, sequence, value, true);
        self.publish(sequence, value, true);
        Ok(value)
    }

    /// `setval`.
    ///
    /// # Errors
    /// Those of [`Sequence::set`].
    pub fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        let mut state = lock(&self.state);
        let what = What::Set { value, is_called };
        let origin = sequence.origin();
        let before = state.find(|made| sequence.was_drawn_as(made.sequence) && made.what == what);
        if let Some(made) = before {
            made.used = 1;
            sequence.repeat(value, is_called)?;
            if is_called {
                self.note(&mut state, sequence, value, false);
            }
            return Ok(());
        }
        sequence.follow_tried()?;
        sequence.set(value, is_called)?;
        if let Some(session) = &self.session {
            lock(&session.state).cached.remove(&sequence.id());
        }
        state.keep(Made {
            sequence: origin,
            what,
            used: 1,
        });
        if is_called {
            self.note(&mut state, sequence, value, false);
            self.publish(sequence, value, false);
        }
        Ok(())
    }

    /// `currval`.
    ///
    /// # Errors
    /// 55000 when the session has drawn none of its values.
    pub fn current(&self, sequence: &Sequence) -> Result<i64> {
        let mut state = lock(&self.state);
        // A call that a block runs again has asked the sequence that the block has tried.
        let mut asked = state.before.iter().map(|(origin, _)| *origin);
        let asked = asked.find(|origin| sequence.was_drawn_as(*origin));
        let mut own = state.last_values.iter();
        let asked = match own.any(|(origin, _)| *origin == sequence.origin()) {
            true => None,
            false => asked,
        };
        self.last_value(&mut state, asked.unwrap_or(sequence.origin()))
            .ok_or_else(|| {
                let message = format!(
                    "currval of sequence \"{}\" is not yet defined in this session",
                    sequence.name()
                );
                Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            })
    }

    /// `lastval`; `exists` says whether there still is a sequence that had this number first.
    ///
    /// # Errors
    /// 55000 when the session has drawn no value, or the sequence is gone.
    pub fn last(&self, exists: impl FnOnce(SequenceId) -> bool) -> Result<i64> {
        let mut state = lock(&self.state);
        let last = state.last.or_else(|| self.last_before(&mut state));
        let value = last.filter(|last| exists(*last));
        let value = value.and_then(|last| self.last_value(&mut state, last));
        value.ok_or_else(|| {
            let message = "lastval is not yet defined in this session";
            Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        })
    }

    /// The last value in this attempt, or before the call.
    fn last_value(&self, state: &mut MutexGuard<'_, State>, origin: SequenceId) -> Option<i64> {
        let mut own = state.last_values.iter();
        match own.find(|(sequence, _)| *sequence == origin) {
            Some((_, value)) => Some(*value),
            None => self.value_before(state, origin),
        }
    }

    /// The session's last value before the call.
    fn value_before(&self, state: &mut MutexGuard<'_, State>, origin: SequenceId) -> Option<i64> {
        let mut before = state.before.iter();
        if let Some((_, value)) = before.find(|(sequence, _)| *sequence == origin) {
            return *value;
        }
        let session = self.session.as_ref()?;
        let value = lock(&session.state).last_values.get(&origin).copied();
        state.before.push((origin, value));
        value
    }

    fn last_before(&self, state: &mut MutexGuard<'_, State>) -> Option<SequenceId> {
        if let Some(last) = state.last_before {
            return last;
        }
        let session = self.session.as_ref()?;
        *state.last_before.insert(lock(&session.state).last)
    }

    /// The value is the session's last one from now on. One that an attempt is given again is not:
    /// the session has drawn others since.
    fn publish(&self, sequence: &Sequence, value: i64, is_drawn: bool) {
        let Some(session) = &self.session else {
            return;
        };
        let mut session = lock(&session.state);
        session.last_values.insert(sequence.origin(), value);
        if is_drawn {
            session.last = Some(sequence.origin());
        }
    }

    /// The attempt has got a value.
    fn note(
        &self,
        state: &mut MutexGuard<'_, State>,
        sequence: &Sequence,
        value: i64,
        is_drawn: bool,
    ) {
        let origin = sequence.origin();
        // What the session had is forgotten by it, and a further attempt may ask for it.
        self.value_before(state, origin);
        let mut own = state.last_values.iter_mut();
        match own.find(|(sequence, _)| *sequence == origin) {
            Some((_, last)) => *last = value,
            None => state.last_values.push((origin, value)),
        }
        if is_drawn {
            self.last_before(state);
            state.last = Some(origin);
        }
    }
}

impl State {
    /// The first that is not used up of those that `is_wanted`.
    fn find(&mut self, is_wanted: impl Fn(&Made) -> bool) -> Option<&mut Made> {
        while self.made.get(self.next).is_some_and(Made::is_used_up) {
            self.next += 1;
        }
        let mut rest = self.made.iter_mut().skip(self.next).take(LOOKS_MAX);
        rest.find(|made| !made.is_used_up() && is_wanted(made))
    }

    /// The next value that an earlier attempt has drawn.
    fn drawn_before(&mut self, sequence: &Sequence) -> Option<i64> {
        let is_drawn = |made: &Made| matches!(made.what, What::Drawn { .. });
        let made = self.find(|made| sequence.was_drawn_as(made.sequence) && is_drawn(made))?;
        let What::Drawn { first, step, .. } = made.what else {
            return None;
        };
        let value = first.wrapping_add(step.wrapping_mul(made.used as i64));
        made.used += 1;
        Some(value)
    }

    fn keep_drawn(&mut self, sequence: &Sequence, value: i64) {
        let origin = sequence.origin();
        if let Some(made) = self.made.last_mut()
            && made.sequence == origin
            && let What::Drawn { first, step, count } = &mut made.what
            && made.used == *count
            && first.checked_add(step.wrapping_mul(*count as i64)) == Some(value)
        {
            (*count, made.used) = (*count + 1, made.used + 1);
            return;
        }
        self.keep(Made {
            sequence: origin,
            what: What::Drawn {
                first: value,
                step: sequence.definition().increment,
                count: 1,
            },
            used: 1,
        });
    }

    fn keep(&mut self, made: Made) {
        if self.made.len() < RUNS_MAX {
            self.made.push(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::{SequenceDefinition, SequenceLogs};
    use crate::types::DataType;

    fn sequence(id: u32, cache: i64) -> Sequence {
        let definition = SequenceDefinition {
            name: format!("s{id}"),
            data_type: DataType::BigInt,
            start: 1,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache,
            cycle: false,
            owner: None,
        };
        Sequence::new(SequenceId(id), definition, SequenceLogs::default())
    }

    fn next(draws: &Draws, sequence: &Sequence) -> i64 {
        draws.next(sequence).expect("there is a value")
    }

    #[test]
    fn a_further_attempt_is_given_the_same_values() {
        let (a, b) = (sequence(1, 1), sequence(2, 1));
        let session = Arc::new(SessionSequences::default());
        let before = Draws::of(Some(session.clone()));
        assert!(before.current(&a).is_err() && before.last(|_| true).is_err());
        assert_eq!(next(&before, &a), 1);
        let draws = Draws::of(Some(session.clone()));
        for _ in 0..3 {
            draws.begin_attempt();
            assert_eq!(draws.current(&a), Ok(1));
            assert_eq!(draws.last(|_| true), Ok(1));
            let values = [&a, &b, &a, &a].map(|sequence| next(&draws, sequence));
            assert_eq!(values, [2, 1, 3, 4]);
            assert_eq!((draws.current(&a), draws.current(&b)), (Ok(4), Ok(1)));
            draws.set(&b, 7, true).expect("it is in bounds");
            assert_eq!(draws.current(&b), Ok(7));
        }
        // Another way: the values are those of the sequence, in their order, and then new ones.
        draws.begin_attempt();
        let values = [&a, &a, &a, &a, &b, &b].map(|sequence| next(&draws, sequence));
        assert_eq!(values, [2, 3, 4, 5, 1, 8]);
        let later = Draws::of(Some(session.clone()));
        assert_eq!((later.current(&a), later.last(|_| true)), (Ok(5), Ok(8)));
        assert!(later.last(|_| false).is_err());
        session.forget();
        assert!(Draws::of(Some(session)).current(&a).is_err());
    }

    #[test]
    fn a_session_takes_values_ahead() {
        let cached = sequence(1, 3);
        let sessions = [(); 2].map(|()| Draws::of(Some(Arc::default())));
        let [one, other] = &sessions;
        assert_eq!(
            [one, one, other, one, one].map(|it| next(it, &cached)),
            [1, 2, 4, 3, 7]
        );
        one.set(&cached, 20, true).expect("it is in bounds");
        assert_eq!([one, other, other].map(|it| next(it, &cached)), [21, 5, 6]);
    }
}
