//! Sessions in threads of their own, led by one conductor: a statement at a time, and after each a
//! pause until every session has answered or waits for another one.
//!
//! The operating system says whether a session waits, so that a slow machine is not taken for a
//! lock: a thread waits when it has slept for a while without waking up once. Where the system does
//! not say, and for waits that wake up now and then, a long time without an answer has to do.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::{file, thread, time};

use crate::subject::{Answer, Client};

/// A thread that slept this long without waking up waits for another session.
const SLEEP_NS: u64 = 50_000_000;
/// So does one that has not answered for this long, whatever it does.
const SILENCE_NS: u64 = 3_000_000_000;
/// Nothing takes this long.
const LIMIT_NS: u64 = 60_000_000_000;

/// The sessions of one run.
pub struct Sessions {
    board: Arc<Board>,
    threads: Vec<thread::JoinHandle<()>>,
}

struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    lanes: Vec<Lane>,
    answers: Vec<Answered>,
    /// When a transaction ended last: others may go on because of that, and not only those whom it
    /// woke itself, as the engine's own threads wait in line too.
    released_ns: u64,
    closed: bool,
}

/// One session, as the conductor sees it.
#[derive(Default)]
struct Lane {
    /// The steps that it was told to run.
    queue: VecDeque<Order>,
    running: Option<usize>,
    /// Where the system tells how its thread fares.
    status: Option<PathBuf>,
    /// Its sleep as it was first seen: since when, how often it had fallen asleep by then, and
    /// whether it was long enough to be a wait.
    sleep: Option<Sleep>,
}

struct Order {
    step: usize,
    sql: String,
    /// Whether the transaction ends with it.
    is_last: bool,
}

#[derive(Clone, Copy)]
struct Sleep {
    since_ns: u64,
    count: u64,
    is_wait: bool,
}

/// The answer to a step.
pub struct Answered {
    pub session: usize,
    pub step: usize,
    pub answer: Answer,
}

impl Sessions {
    /// Starts a thread for each client.
    pub fn start(clients: Vec<Client>) -> Sessions {
        let board = Arc::new(Board {
            state: Mutex::new(State {
                lanes: clients.iter().map(|_| Lane::default()).collect(),
                answers: Vec::new(),
                released_ns: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let threads = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| {
                let board = board.clone();
                thread::spawn(&format!("session {number}"), move || {
                    board.serve(number, client);
                })
                .expect("the system has room for a few threads")
            })
            .collect();
        Sessions { board, threads }
    }

    /// Tells a session to run a statement after those that it was told before; `is_last` says that
    /// its transaction ends with it.
    pub fn issue(&self, session: usize, step: usize, sql: &str, is_last: bool) {
        let mut state = lock(&self.board.state);
        state.lanes[session].queue.push_back(Order {
            step,
            sql: sql.to_owned(),
            is_last,
        });
        self.board.changed.notify_all();
    }

    /// Waits until every session has answered all its steps or waits for another, and returns the
    /// new answers in the order of the sessions, those of `first` first.
    ///
    /// # Errors
    /// Which step neither ended nor waited in a minute.
    pub fn await_answers(&self, first: usize) -> Result<Vec<Answered>, String> {
        let start_ns = time::now_ns();
        let mut quiet_since_ns = start_ns;
        let mut known = 0;
        let mut state = lock(&self.board.state);
        loop {
            let now_ns = time::now_ns();
            if state.answers.len() > known {
                known = state.answers.len();
                quiet_since_ns = now_ns;
            }
            let silent = now_ns - quiet_since_ns > SILENCE_NS;
            let calm = now_ns - state.released_ns >= SLEEP_NS;
            // Without shortcuts: each must be looked at for its sleep to be noticed.
            let busy = state
                .lanes
                .iter_mut()
                .filter_map(|lane| lane.busy_with(now_ns, calm, silent))
                .last();
            let Some(step) = busy else {
                let mut answers = std::mem::take(&mut state.answers);
                answers.sort_by_key(|answered| (answered.session != first, answered.session));
                return Ok(answers);
            };
            if now_ns - start_ns > LIMIT_NS {
                return Err(format!("step {step} neither ended nor waited"));
            }
            state = self
                .board
                .changed
                .wait_timeout(state, Duration::from_millis(1))
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .0;
        }
    }

    /// Whether a session has steps that it has not answered.
    pub fn is_behind(&self, session: usize) -> bool {
        lock(&self.board.state).lanes[session].is_behind()
    }

    /// The step that a session runs.
    pub fn running(&self, session: usize) -> Option<usize> {
        lock(&self.board.state).lanes[session].running
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let stuck = {
            let mut state = lock(&self.board.state);
            state.closed = true;
            self.board.changed.notify_all();
            state.lanes.iter().any(Lane::is_behind)
        };
        // A test that fails because a session is stuck must not get stuck itself.
        for thread in self.threads.drain(..).filter(|_| !stuck) {
            let _ = thread.join();
        }
    }
}

impl Board {
    /// What the thread of a session does.
    fn serve(&self, number: usize, mut client: Client) {
        lock(&self.state).lanes[number].status = own_status();
        loop {
            let mut state = lock(&self.state);
            let order = loop {
                if state.closed {
                    return;
                }
                if let Some(next) = state.lanes[number].queue.pop_front() {
                    break next;
                }
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
            };
            state.lanes[number].running = Some(order.step);
            state.lanes[number].sleep = None;
            drop(state);
            let answer = client.run(&order.sql);
            let mut state = lock(&self.state);
            state.lanes[number].running = None;
            if order.is_last || matches!(answer, Answer::Refused { .. }) {
                state.released_ns = time::now_ns();
            }
            state.answers.push(Answered {
                session: number,
                step: order.step,
                answer,
            });
            self.changed.notify_all();
        }
    }
}

impl Lane {
    fn is_behind(&self) -> bool {
        self.running.is_some() || !self.queue.is_empty()
    }

    /// The step that the session has not answered, unless it waits for another session. It is
    /// `calm` when no transaction has ended for a while, and `silent` when nothing has happened for
    /// long.
    fn busy_with(&mut self, now_ns: u64, calm: bool, silent: bool) -> Option<usize> {
        let Some(step) = self.running else {
            return self.queue.front().map(|order| order.step);
        };
        // The board's mutex is held: an answer that was given is seen, and a session that this
        // statement woke is awake by then.
        let count = self.status.as_deref().and_then(sleeps);
        self.sleep = match (count, self.sleep) {
            (Some(count), Some(sleep)) if count == sleep.count => Some(Sleep {
                is_wait: sleep.is_wait || now_ns - sleep.since_ns >= SLEEP_NS,
                ..sleep
            }),
            (Some(count), _) => Some(Sleep {
                since_ns: now_ns,
                count,
                is_wait: false,
            }),
            (None, _) => None,
        };
        let waits = silent || (calm && self.sleep.is_some_and(|sleep| sleep.is_wait));
        (!waits).then_some(step)
    }
}

/// Where the system tells how the calling thread fares.
fn own_status() -> Option<PathBuf> {
    let status = file::read_to_string(Path::new("/proc/thread-self/status")).ok()?;
    let thread = field(&status, "Pid:")?;
    Some(PathBuf::from(format!("/proc/self/task/{thread}/status")))
}

/// How often a thread has fallen asleep, if it sleeps now.
fn sleeps(status: &Path) -> Option<u64> {
    let status = file::read_to_string(status).ok()?;
    let sleeping = field(&status, "State:")?.starts_with('S');
    let count = field(&status, "voluntary_ctxt_switches:")?.parse().ok()?;
    sleeping.then_some(count)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}
