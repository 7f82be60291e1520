//! Answers of a trial's calls: a call that wrote something is reported with the rows of the attempt
//! that committed, and with no others.

use std::collections::BTreeMap;

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::{Frame, Program};
use kiln_protocols::{AnswerWriter, Outcome};
use kiln_storage::journal::CallAnswer;

use super::quietly;

/// What the listeners of a trial got as answers, and what they should have got.
#[derive(Default)]
pub struct Answers {
    next: AtomicU64,
    /// By keys; of a call with two answers the second one, and then `has_twice`.
    told: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    has_twice: AtomicBool,
    /// Of the calls that committed and say that they were reported, their rows.
    expected: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Whether a call was reported and did not commit.
    has_uncommitted: AtomicBool,
}

/// A call that has an answer.
#[derive(Debug)]
pub struct Keyed {
    key: [u8; 8],
    is_reported: AtomicBool,
}

fn rows_of(program: &Program, frame: &Frame) -> Vec<u8> {
    format!("{:?}", frame.result_values(program)).into_bytes()
}

impl AnswerWriter for Keyed {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn write(&self, program: &Program, frame: &Frame, target: &mut Vec<u8>) {
        quietly(|| target.extend_from_slice(&rows_of(program, frame)));
    }

    fn reported(&self) {
        quietly(|| self.is_reported.store(true, Ordering::Relaxed));
    }
}

impl Answers {
    /// The next call.
    pub fn keyed(&self) -> Arc<Keyed> {
        quietly(|| {
            Arc::new(Keyed {
                key: self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes(),
                is_reported: AtomicBool::new(false),
            })
        })
    }

    /// A listener got an answer.
    pub fn tell(&self, answer: &CallAnswer<'_>) {
        let former = lock(&self.told).insert(answer.key.to_vec(), answer.bytes.to_vec());
        self.has_twice.fetch_or(former.is_some(), Ordering::Relaxed);
    }

    /// A call has ended, with its rows in `frame`.
    pub fn ended(&self, call: &Keyed, outcome: &Outcome, program: &Program, frame: &Frame) {
        quietly(|| {
            if call.is_reported.load(Ordering::Relaxed) {
                let is_committed = matches!(outcome, Outcome::Committed);
                self.has_uncommitted
                    .fetch_or(!is_committed, Ordering::Relaxed);
                let rows = rows_of(program, frame);
                lock(&self.expected).insert(call.key.to_vec(), rows);
            }
        });
    }

    /// What is wrong with the answers, if anything is.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.has_twice.load(Ordering::Relaxed) {
            return Err("a call was reported with two answers");
        }
        if self.has_uncommitted.load(Ordering::Relaxed) {
            return Err("a call was reported and did not commit");
        }
        match *lock(&self.told) == *lock(&self.expected) {
            true => Ok(()),
            false => Err("calls were reported with other answers than they gave"),
        }
    }
}
