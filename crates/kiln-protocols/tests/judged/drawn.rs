//! The calls that a trial's workers draw.

use std::collections::HashMap;

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{Arguments, Frame, Program};
use kiln_protocols::{AnswerWriter, Call, Calls, Next, Outcome, Worker};
use kiln_storage::types::Value;

use super::answers::{Answers, Keyed};
use super::{LONG_NS, OPERATIONS_MAX, PROGRAMS, REJECTIONS, Trial};

/// The calls of one worker.
pub struct Drawn<'a> {
    trial: Trial,
    programs: &'a [Arc<Program>],
    pub random: Random,
    /// Calls to draw.
    pub left: u64,
    tickets: u64,
    /// Whether the worker was told to pause since it serves.
    has_paused: bool,
    /// Calls that wait for a block, to be drawn anew.
    handed_back: Vec<(Option<Arc<Program>>, Arguments)>,
    /// Where calls leave their answers, every other one.
    answers: Option<&'a Answers>,
    /// Those in flight that have one, by their tickets.
    keyed: HashMap<u64, Arc<Keyed>>,
}

impl<'a> Drawn<'a> {
    pub fn new(
        trial: Trial,
        programs: &'a [Arc<Program>],
        random: Random,
        answers: Option<&'a Answers>,
    ) -> Drawn<'a> {
        Drawn {
            trial,
            programs,
            random,
            left: trial.calls,
            tickets: 0,
            has_paused: false,
            handed_back: Vec::new(),
            answers,
            keyed: HashMap::new(),
        }
    }

    /// Has a worker serve the calls, again each time that it has paused.
    pub fn serve_on(&mut self, worker: &mut Worker) {
        while self.left > 0 || !self.handed_back.is_empty() {
            self.has_paused = false;
            worker.serve(self);
        }
    }

    /// Makes the calls on a worker, one after the other.
    pub fn call_on(&mut self, worker: &mut Worker) {
        let mut arguments = Arguments::new();
        while self.left > 0 {
            let program = self.draw(&mut arguments);
            let (deadline_ns, answer) = (Some(self.deadline()), self.answer());
            let outcome = worker.try_call(program, &arguments, deadline_ns, None, answer.as_ref());
            let outcome = outcome.expect("a call without a limit to its patience is not given up");
            self.answered(self.tickets, &outcome, program, worker.frame());
            self.check(outcome);
        }
    }

    /// What is reported with the next call, which gets the next ticket.
    fn answer(&mut self) -> Option<Arc<dyn AnswerWriter>> {
        self.tickets += 1;
        let answers = self.answers.filter(|_| self.tickets.is_multiple_of(2))?;
        let keyed = answers.keyed();
        self.keyed.insert(self.tickets, keyed.clone());
        Some(keyed)
    }

    fn answered(&mut self, ticket: u64, outcome: &Outcome, program: &Program, frame: &Frame) {
        if let (Some(answers), Some(call)) = (self.answers, self.keyed.remove(&ticket)) {
            answers.ended(&call, outcome, program, frame);
        }
    }

    /// Draws more calls, whose time is not limited.
    pub fn go_on_without_limit(&mut self, calls: u64) {
        self.trial.limit_ns = None;
        self.left = calls;
    }

    fn draw(&mut self, arguments: &mut Arguments) -> &'a Arc<Program> {
        self.left -= 1;
        self.draw_again(arguments)
    }

    /// As [`Drawn::draw`], of what is not counted as another call.
    pub fn draw_again(&mut self, arguments: &mut Arguments) -> &'a Arc<Program> {
        let (trial, random) = (self.trial, &mut self.random);
        let program = &self.programs[random.below(PROGRAMS)];
        arguments.clear();
        for _ in 0..OPERATIONS_MAX {
            arguments.push(&Value::Integer(random.below(trial.keys) as i32));
            arguments.push(&Value::BigInt(random.between(1, 1 << 40)));
            arguments.push(&Value::Integer(random.below(trial.keys * 2) as i32));
        }
        let length = match trial.extras.texts {
            true => random.below(80),
            false => 3,
        };
        let letter = char::from(b'a' + random.below(26) as u8);
        arguments.push(&Value::Text(letter.to_string().repeat(length)));
        if trial.extras.loops {
            // Now and then more than are fetched, and planned, together.
            let keys = match random.below(20) {
                0 => 27,
                _ => random.below(4),
            };
            let keys = (0..keys).map(|_| Value::Integer(random.below(trial.keys) as i32));
            arguments.push(&Value::Array(keys.collect()));
        }
        arguments
            .bind(program)
            .expect("the arguments suit the program");
        program
    }

    fn deadline(&self) -> u64 {
        time::now_ns() + self.trial.limit_ns.unwrap_or(LONG_NS)
    }

    pub fn check(&self, outcome: Outcome) {
        match outcome {
            Outcome::Committed => {}
            Outcome::Expired => assert!(
                self.trial.limit_ns.is_some(),
                "a call did not get through in {LONG_NS} ns"
            ),
            Outcome::Rejected(error) => assert!(REJECTIONS.contains(&error.state()), "{error}"),
        }
    }
}

impl Calls for Drawn<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        // With blocks it pauses now and then, as if the catalog were to be changed.
        let pauses = self.trial.blocks && self.random.below(8) == 0;
        if let Some((program, arguments)) = self.handed_back.pop() {
            (call.program, call.arguments) = (program, arguments);
        } else if self.left == 0 || pauses {
            self.has_paused = true;
            return Next::Pause;
        } else {
            let program = self.draw(&mut call.arguments);
            call.set_program(program);
        }
        call.deadline_ns = Some(self.deadline());
        call.answer = self.answer();
        call.ticket = self.tickets;
        Next::Call
    }

    fn is_over(&mut self) -> bool {
        self.has_paused |= self.left == 0 && self.handed_back.is_empty();
        self.has_paused
    }

    fn takes_back(&mut self) -> bool {
        self.trial.blocks
    }

    fn take_back(&mut self, call: &mut Call) {
        let arguments = std::mem::take(&mut call.arguments);
        self.handed_back.push((call.program.clone(), arguments));
    }

    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame) {
        let program = call.program.as_ref().expect("it was drawn");
        self.answered(call.ticket, &outcome, program, frame);
        self.check(outcome);
    }
}
