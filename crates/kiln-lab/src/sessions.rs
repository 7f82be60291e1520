//! A run with sessions: many clients in a closed loop whose calls go through the workers' inboxes,
//! as those of a server's connections do.
//!
//! A few client threads play all sessions. Each submits the calls of those that are ready, and
//! takes the outcomes from one queue of completions. A session's latency counts from the moment
//! when it is ready, so it includes the time that its call waits because all inboxes are full.

use std::collections::VecDeque;
use std::ptr;
use std::time::Duration;

use kiln_engine::{Arguments, Call, Completion, Completions, Engine, Reply, SubmitError};
use kiln_platform::atomic::prefetch_plain;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_storage::error::Result;
use kiln_workloads::{self as workloads, Terminal};

use crate::figures::RunFigures;
use crate::run::{Run, RunState};

/// Cores for each client thread.
const CORES_PER_CLIENT: usize = 8;
/// How long a client waits for a completion before it looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(20);

impl Run<'_> {
    /// Makes the run with one session for each terminal. `heartbeat` is called every now and then
    /// meanwhile.
    ///
    /// # Errors
    /// The error of a call that was rejected for a reason that the workload does not know.
    pub(crate) fn make_with_sessions(
        &self,
        engine: &Engine,
        terminals: Vec<Terminal>,
        heartbeat: impl FnMut(),
    ) -> Result<RunFigures> {
        let threads = thread::available_cores().div_ceil(CORES_PER_CLIENT);
        let threads = threads.min(terminals.len());
        let mut parts: Vec<Vec<Terminal>> = (0..threads).map(|_| Vec::new()).collect();
        for (position, terminal) in terminals.into_iter().enumerate() {
            parts[position % threads].push(terminal);
        }
        let play = |shared: &RunState, _, terminals: Vec<Terminal>| {
            shared.assemble();
            let mut client = Client::new(self, shared, engine, terminals);
            client.play();
            client.figures()
        };
        self.conduct(parts, play, heartbeat)
    }
}

/// One session of a client thread. What each call needs of it comes first.
#[repr(C)]
struct Session {
    /// The call in flight, or refused.
    call: Option<workloads::Call>,
    /// Since when the session has been ready for it.
    ready_ns: u64,
    terminal: Terminal,
}

/// The memory of a session is asked for when those before it, by so many, have their calls.
const FETCHED_AHEAD: usize = 4;
/// So much of it.
const FETCHED_BYTES: usize = 320;

/// A thread that plays sessions.
struct Client<'a> {
    run: &'a Run<'a>,
    shared: &'a RunState,
    engine: &'a Engine,
    sessions: Vec<Session>,
    completions: Arc<Completions>,
    /// Sessions that may call, the longest ready first.
    ready: VecDeque<u32>,
    /// The call of the first of them, which was refused because all inboxes were full.
    refused: Option<Call>,
    figures: RunFigures,
    has_given_up: bool,
}

impl<'a> Client<'a> {
    fn new(
        run: &'a Run<'a>,
        shared: &'a RunState,
        engine: &'a Engine,
        terminals: Vec<Terminal>,
    ) -> Client<'a> {
        let ready_ns = time::now_ns();
        let sessions: Vec<Session> = terminals
            .into_iter()
            .map(|terminal| Session {
                terminal,
                call: None,
                ready_ns,
            })
            .collect();
        Client {
            run,
            shared,
            engine,
            completions: Completions::new(sessions.len()),
            ready: (0..sessions.len() as u32).collect(),
            refused: None,
            figures: RunFigures::new(run.workload.procedures().len()),
            has_given_up: false,
            sessions,
        }
    }

    /// Makes calls until the run is over and all have ended.
    fn play(&mut self) {
        let mut completions = Vec::new();
        loop {
            let is_over = self.has_given_up || self.shared.is_over();
            if !is_over {
                self.submit();
            } else if self.completions.outstanding() == 0 {
                return;
            }
            self.completions.wait(&mut completions, PATIENCE);
            completions.reverse();
            while let Some(completion) = completions.pop() {
                if let Some(later) = completions.iter().rev().nth(FETCHED_AHEAD - 1) {
                    self.fetch(later.token as u32);
                }
                self.ended(completion);
            }
        }
    }

    /// Submits the calls of the sessions that are ready, as far as the inboxes have room.
    fn submit(&mut self) {
        while let Some(&number) = self.ready.front() {
            if let Some(&later) = self.ready.get(FETCHED_AHEAD) {
                self.fetch(later);
            }
            let session = &mut self.sessions[number as usize];
            let call = self.refused.take().unwrap_or_else(|| {
                let mut arguments = Arguments::new();
                let drawn = session.terminal.next(&mut arguments);
                let handle = &self.run.handles[drawn.procedure.0];
                session.call = Some(drawn);
                Call::of(handle, arguments)
            });
            match self
                .engine
                .submit_to(call, &self.completions, number.into())
            {
                Ok(()) => {
                    self.ready.pop_front();
                }
                Err(refused) if refused.error == SubmitError::Overloaded => {
                    self.refused = Some(refused.call);
                    return;
                }
                Err(refused) => {
                    let drawn = session.call.expect("it was drawn above");
                    (self.run).is_unexpected(self.shared, drawn, refused.error.into());
                    self.has_given_up = true;
                    return;
                }
            }
        }
    }

    /// Asks for the memory of a session that has a call soon: of ten thousand it is in no cache.
    #[inline]
    fn fetch(&self, number: u32) {
        let session = &raw const self.sessions[number as usize];
        prefetch_plain(ptr::slice_from_raw_parts(session, 1), FETCHED_BYTES);
    }

    /// Counts the end of a call; its session is ready for the next.
    fn ended(&mut self, completion: Completion) {
        let end_ns = time::now_ns();
        let number = completion.token as u32;
        let session = &mut self.sessions[number as usize];
        let call = session.call.take();
        let call = call.expect("a call ends that was made, once");
        let ready_ns = std::mem::replace(&mut session.ready_ns, end_ns);
        self.ready.push_back(number);
        let figures = &mut self.figures.procedures[call.procedure.0];
        let is_measured = self.shared.is_measuring();
        let error = match completion.result {
            Ok(Reply::Committed(rows)) => {
                figures.committed += u64::from(is_measured);
                session.terminal.committed(call, rows.values());
                None
            }
            Ok(Reply::Rejected(error)) => {
                figures.rejected += u64::from(is_measured);
                Some(error)
            }
            Ok(Reply::Expired) => {
                figures.expired += u64::from(is_measured);
                return;
            }
            Err(error) => Some(error),
        };
        if is_measured {
            let asked_ns = call.queued_ns().unwrap_or(ready_ns).min(ready_ns);
            figures.latency_ns.saturating_record(end_ns - asked_ns);
        }
        if let Some(error) = error {
            self.has_given_up |= self.run.is_unexpected(self.shared, call, error);
        }
    }

    /// What the sessions measured.
    fn figures(self) -> RunFigures {
        let mut figures = self.figures;
        for session in &self.sessions {
            figures.totals.merge(session.terminal.totals());
        }
        figures.pinned = self.engine.options().pin_workers;
        figures
    }
}
