//! Outcomes remembered by the key that the caller gave, so that a call repeated after a lost
//! answer is not executed twice.

use std::collections::{BTreeMap, VecDeque};

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::Arguments;
use kiln_storage::error::{Error, Result, SqlState};

use crate::call::{IdempotencyKey, Reply};
use crate::completion::Pending;

/// What a key was first used for.
struct Entry {
    procedure: Arc<str>,
    /// As they were given, before they were bound to the procedure.
    arguments: Arguments,
    /// The outcome of the first call, once it has ended.
    pending: Arc<Pending>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<IdempotencyKey, Entry>,
    /// The keys of calls that have ended, and when, the oldest first.
    ended: VecDeque<(u64, IdempotencyKey)>,
}

/// The remembered calls. Invariant: a key is in `entries` while its call is queued or runs, and
/// then, if the call committed or was rejected, until capacity or age ends it.
pub(crate) struct Idempotency {
    table: Mutex<Table>,
    capacity: usize,
    age_ns: u64,
}

/// What to do with a call that has a key.
pub(crate) enum Admission {
    /// It is the first one: run it.
    First,
    /// It was made before: this is the outcome of that one.
    Repeated(Arc<Pending>),
}

impl Idempotency {
    pub fn new(capacity: usize, age_s: u64) -> Idempotency {
        let age_ns = age_s.saturating_mul(1_000_000_000);
        Idempotency {
            table: Mutex::default(),
            capacity,
            age_ns,
        }
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
            if known.procedure != *procedure || !known.arguments.is_same(arguments) {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!(
                        "idempotency key \"{}\" belongs to another call",
                        key.as_str()
                    ),
                )
                .with_detail(format!(
                    "It was first used for a call of {} with {}.",
                    known.procedure,
                    if known.procedure == *procedure {
                        "other arguments"
                    } else {
                        "its arguments"
                    },
                )));
            }
            return Ok(Admission::Repeated(known.pending.clone()));
        }
        let entry = Entry {
            procedure: procedure.clone(),
            arguments: arguments.clone(),
            pending: pending.clone(),
        };
        table.entries.insert(key.clone(), entry);
        Ok(Admission::First)
    }

    /// Notes how the call with `key` ended; called before the outcome is told.
    pub fn ended(&self, key: &IdempotencyKey, result: &Result<Reply>) {
        let mut table = lock(&self.table);
        match result {
            Ok(Reply::Committed(_) | Reply::Rejected(_)) => {
                table.ended.push_back((time::now_ns(), key.clone()));
                self.forget_old(&mut table);
            }
            // Nothing happened, so the key is free for another try.
            Ok(Reply::Expired) | Err(_) => {
                table.entries.remove(key);
            }
        }
    }

    fn forget_old(&self, table: &mut Table) {
        let now = time::now_ns();
        while let Some((at, _)) = table.ended.front() {
            let old = now.saturating_sub(*at) > self.age_ns;
            if !old && table.ended.len() <= self.capacity {
                break;
            }
            if let Some((_, key)) = table.ended.pop_front() {
                table.entries.remove(&key);
            }
        }
    }
}
