//! Outcomes remembered by the key that the caller gave, so that a call repeated after a lost
//! answer is not executed twice.
//!
//! While the database has listeners, they keep the answers as well: of a call that wrote something
//! in the report of its commit, of one that did not in a note of its own, which is there before the
//! answer is told. From these answers a database that is opened again remembers the outcomes
//! ([`Engine::restore_answer`]).

use std::collections::{BTreeMap, VecDeque};

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_procedure::{Arguments, Frame, Program};
use kiln_protocols::{AnswerWriter, broken_down};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::journal::{CallAnswer, Listeners};
use kiln_storage::log_epoch::LogEpoch;

use super::answer::{self, Answer};
use super::call::IdempotencyKey;
use super::reply::{Reply, Rows};
use super::ticket::Pending;
use crate::observed::Observed;

/// The first call with a key.
#[derive(Debug)]
pub(crate) struct KeyedCall {
    key: IdempotencyKey,
    procedure: Arc<str>,
    /// As they were given, before they were bound to the procedure.
    arguments: Arguments,
    /// Whether a listener got the answer with what the call wrote.
    is_reported: AtomicBool,
}

impl KeyedCall {
    /// Whether it is a call of this procedure with these arguments.
    ///
    /// # Errors
    /// 22023 when it is not.
    fn check(&self, procedure: &str, arguments: &Arguments) -> Result<()> {
        let is_procedure = *self.procedure == *procedure;
        if is_procedure && self.arguments.is_same(arguments) {
            return Ok(());
        }
        let what = match is_procedure {
            true => "other arguments",
            false => "its arguments",
        };
        let message = format!(
            "idempotency key \"{}\" belongs to another call",
            self.key.as_str()
        );
        let error = Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        Err(error.with_detail(format!(
            "It was first used for a call of {} with {what}.",
            self.procedure
        )))
    }

    fn write_outcome(&self, outcome: std::result::Result<&Rows, &Error>, target: &mut Vec<u8>) {
        answer::write(&self.procedure, &self.arguments, outcome, target);
    }
}

impl AnswerWriter for KeyedCall {
    fn key(&self) -> &[u8] {
        self.key.as_str().as_bytes()
    }

    fn write(&self, program: &Program, frame: &Frame, target: &mut Vec<u8>) {
        self.write_outcome(Ok(&Rows::take(frame, program)), target);
    }

    fn reported(&self) {
        // Relaxed: the thread that tells the outcome has the call from the worker that committed
        // it.
        self.is_reported.store(true, Ordering::Relaxed);
    }
}

/// What is remembered of a key.
struct Entry {
    call: Arc<KeyedCall>,
    /// The outcome, once the call has ended.
    pending: Arc<Pending>,
    /// When it ended, in nanoseconds of the monotonic clock; below zero if that was before the
    /// clock began.
    ended_ns: Option<i64>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<IdempotencyKey, Entry>,
    /// The keys of calls that have ended, and when, the oldest first.
    ended: VecDeque<(i64, IdempotencyKey)>,
    /// What keeps answers, if something does.
    listeners: Option<Arc<dyn Listeners>>,
}

/// The remembered calls. Invariant: a key is in `entries` while its call is queued or runs, and
/// then, if the call committed or was rejected, until capacity or age ends it.
pub(crate) struct Idempotency {
    table: Mutex<Table>,
    capacity: usize,
    age_ns: i64,
    /// The same moment, in nanoseconds of the monotonic clock and in microseconds since 1970.
    made_ns: i64,
    made_us: i64,
}

/// What to do with a call that has a key.
pub(crate) enum Admission {
    /// It is the first one: run it.
    First(Arc<KeyedCall>),
    /// It was made before: this is the outcome of that one.
    Repeated(Arc<Pending>),
}

impl Idempotency {
    pub fn new(capacity: usize, age_s: u64) -> Idempotency {
        let age_ns = i64::try_from(age_s.saturating_mul(1_000_000_000)).unwrap_or(i64::MAX);
        Idempotency {
            table: Mutex::default(),
            capacity,
            age_ns,
            made_ns: now_ns(),
            made_us: time::wall_clock_us(),
        }
    }

    /// Has these listeners keep the answers of calls that end from now on, or none.
    pub fn note_to(&self, listeners: Option<Arc<dyn Listeners>>) {
        lock(&self.table).listeners = listeners;
    }

    /// Notes a call whose outcome will be in `pending`, unless its key is known. The arguments are
    /// not bound yet.
    pub fn admit(
        &self,
        key: &IdempotencyKey,
        procedure: &Arc<str>,
        arguments: &Arguments,
        pending: &Arc<Pending>,
    ) -> Result<Admission> {
        if self.capacity == 0 {
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this database remembers no idempotency keys",
            )
            .with_hint("Open it with an idempotency_capacity above 0."));
        }
        let mut table = lock(&self.table);
        self.forget_old(&mut table);
        if let Some(known) = table.entries.get(key) {
            known.call.check(procedure, arguments)?;
            return Ok(Admission::Repeated(known.pending.clone()));
        }
        let call = Arc::new(KeyedCall {
            key: key.clone(),
            procedure: procedure.clone(),
            arguments: arguments.clone(),
            is_reported: AtomicBool::new(false),
        });
        let entry = Entry {
            call: call.clone(),
            pending: pending.clone(),
            ended_ns: None,
        };
        table.entries.insert(key.clone(), entry);
        Ok(Admission::First(call))
    }

    /// Notes how the call ended; called before the outcome is told, which rests on what is noted
    /// from then on.
    pub fn ended(&self, call: &KeyedCall, outcome: &mut Observed<Reply>) {
        let is_remembered = match &outcome.result {
            Ok(Reply::Committed(rows)) => self.note(call, Ok(rows), &mut outcome.epoch),
            // That is no answer: the database ends.
            Ok(Reply::Rejected(error)) if *error == broken_down() => false,
            Ok(Reply::Rejected(error)) => self.note(call, Err(error), &mut outcome.epoch),
            Ok(Reply::Expired) | Err(_) => false,
        };
        let table = &mut *lock(&self.table);
        if is_remembered {
            let now_ns = now_ns();
            if let Some(entry) = table.entries.get_mut(&call.key) {
                entry.ended_ns = Some(now_ns);
                table.ended.push_back((now_ns, call.key.clone()));
            }
            self.forget_old(table);
        } else {
            // Nothing happened, so the key is free for another try.
            table.entries.remove(&call.key);
        }
    }

    /// Has the listeners keep the answer of a call, if there are any and they do not have it
    /// already, and raises `observed` to the log epoch in which they do. False when they refuse.
    fn note(
        &self,
        call: &KeyedCall,
        outcome: std::result::Result<&Rows, &Error>,
        observed: &mut LogEpoch,
    ) -> bool {
        // Outside of the mutex: keeping it may take a while.
        let listeners = lock(&self.table).listeners.clone();
        let Some(listeners) = listeners else {
            return true;
        };
        // Relaxed: see where it is set.
        if call.is_reported.load(Ordering::Relaxed) {
            return true;
        }
        // From here on `note_all` waits for the end of the call.
        call.reported();
        let mut bytes = Vec::new();
        call.write_outcome(outcome, &mut bytes);
        let noted = listeners.note(&CallAnswer {
            key: call.key(),
            bytes: &bytes,
        });
        *observed = noted.map_or(*observed, |epoch| epoch.max(*observed));
        noted.is_some()
    }

    /// Has the listeners keep all remembered answers once more, in log epochs from the present one
    /// on: so that those may be dropped in which they are. An answer that is not kept when this is
    /// called will be, in such a one.
    pub fn note_all(&self) {
        // In the order in which they are forgotten. Then the calls that run: their own answers may
        // come before this.
        let keys: Vec<IdempotencyKey> = {
            let table = lock(&self.table);
            let ended = table.ended.iter().map(|(_, key)| key);
            let running = table.entries.iter();
            let running = running.filter(|(_, entry)| entry.ended_ns.is_none());
            ended.chain(running.map(|(key, _)| key)).cloned().collect()
        };
        for key in keys {
            while !self.note_again(&key) {
                thread::yield_now();
            }
        }
    }

    /// As [`Idempotency::note_all`], for one key; false while its call ends.
    fn note_again(&self, key: &IdempotencyKey) -> bool {
        // Under the mutex: when the key is forgotten, another call may have it, whose answer has to
        // be the last one.
        let table = lock(&self.table);
        let (Some(entry), Some(listeners)) = (table.entries.get(key), &table.listeners) else {
            return true;
        };
        // Relaxed: a call that was reported before the present log epoch is seen, as the caller has
        // seen that epoch begin.
        if !entry.call.is_reported.load(Ordering::Relaxed) {
            return true;
        }
        let Some(outcome) = entry.pending.outcome() else {
            return false;
        };
        let mut bytes = Vec::new();
        match &outcome.result {
            Ok(Reply::Committed(rows)) => entry.call.write_outcome(Ok(rows), &mut bytes),
            Ok(Reply::Rejected(error)) => entry.call.write_outcome(Err(error), &mut bytes),
            Ok(Reply::Expired) | Err(_) => return true,
        }
        // Refused only by a log that takes nothing any more.
        let _ = listeners.note_again(&CallAnswer {
            key: key.as_str().as_bytes(),
            bytes: &bytes,
        });
        true
    }

    /// Remembers how a call ended, in microseconds since 1970. Of two calls that ended at the same
    /// time the one has ended first that is restored first. Where calls with a key were made again
    /// after their outcomes had been forgotten, that of the last one counts.
    pub fn restore(&self, key: IdempotencyKey, answer: Answer, ended_us: i64) {
        let (now_ns, since_us) = (now_ns(), ended_us.saturating_sub(self.made_us));
        let ended_ns = self.made_ns.saturating_add(since_us.saturating_mul(1_000));
        let ended_ns = ended_ns.min(now_ns);
        if self.capacity == 0 || now_ns.saturating_sub(ended_ns) > self.age_ns {
            return;
        }
        let pending = Arc::new(Pending::kept());
        pending.complete(Observed {
            result: Ok(answer.reply),
            epoch: LogEpoch::default(),
        });
        let call = KeyedCall {
            key: key.clone(),
            procedure: answer.procedure,
            arguments: answer.arguments,
            is_reported: AtomicBool::new(true),
        };
        let table = &mut *lock(&self.table);
        if let Some(known) = table.entries.get(&key) {
            let Some(known_ns) = known.ended_ns.filter(|known_ns| *known_ns <= ended_ns) else {
                return;
            };
            let from = table.ended.partition_point(|(at, _)| *at < known_ns);
            let same = table
                .ended
                .range(from..)
                .position(|(_, other)| *other == key);
            same.and_then(|position| table.ended.remove(from + position));
        }
        let position = table.ended.partition_point(|(at, _)| *at <= ended_ns);
        table.ended.insert(position, (ended_ns, key.clone()));
        let entry = Entry {
            call: Arc::new(call),
            pending,
            ended_ns: Some(ended_ns),
        };
        table.entries.insert(key, entry);
        self.forget_old(table);
    }

    fn forget_old(&self, table: &mut Table) {
        let now_ns = now_ns();
        while let Some((at, _)) = table.ended.front() {
            let old = now_ns.saturating_sub(*at) > self.age_ns;
            if !old && table.ended.len() <= self.capacity {
                break;
            }
            if let Some((_, key)) = table.ended.pop_front() {
                table.entries.remove(&key);
            }
        }
    }
}

fn now_ns() -> i64 {
    time::now_ns() as i64
}
