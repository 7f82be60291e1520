//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{
    ADD_WATCH_LIST, Config, GET_PAGE_ANONYMOUS, GET_PAGE_AUTHENTICATED, Mix, PROCEDURES,
    REMOVE_WATCH_LIST, UPDATE_PAGE, names,
};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::clock::{FreshNumbers, START};
use crate::definition::{Call, DrawCalls, ProcedureIndex};
use crate::random::{Ranks, push_alphanumeric};

/// OLTP-bench's weights, added up, in percent.
const TRACE: [(f64, ProcedureIndex); 5] = [
    (91.2656, GET_PAGE_ANONYMOUS),
    (98.9381, UPDATE_PAGE),
    (99.86, GET_PAGE_AUTHENTICATED),
    (99.93, ADD_WATCH_LIST),
    (100.0, REMOVE_WATCH_LIST),
];

/// Random characters of which articles are cut, as many as two of the longest have.
const PAPER: usize = 20;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    config: Config,
    seed: u64,
    pages: Ranks,
    /// The page that has been read to be edited.
    edited: Option<i64>,
    numbers: FreshNumbers,
    /// The logical clock, in microseconds since 2000-01-01: a millisecond a call.
    clock: i64,
    totals: Totals,
    // Buffers for the arguments of one call.
    title: String,
    name: String,
    address: String,
    comment: String,
    paper: String,
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        // Streams of their own: the population has those from 0.
        let mut random = Random::stream(seed, (1 << 32) + worker as u64);
        let length = PAPER * config.text_length as usize;
        let mut paper = String::new();
        push_alphanumeric(&mut paper, &mut random, length, length);
        Terminal {
            random,
            config: config.clone(),
            seed,
            pages: Ranks::new(config.pages.into(), config.theta),
            edited: None,
            numbers: FreshNumbers::new(worker),
            clock: START,
            totals: Totals::new(PROCEDURES.len()),
            title: String::with_capacity(64),
            name: String::with_capacity(64),
            address: String::with_capacity(16),
            comment: String::with_capacity(64),
            paper,
        }
    }

    fn draw_procedure(&mut self) -> ProcedureIndex {
        if self.config.mix == Mix::Even {
            return ProcedureIndex(self.random.below(PROCEDURES.len()));
        }
        let percent = self.random.unit() * 100.0;
        let drawn = TRACE.iter().find(|(limit, _)| percent < *limit);
        drawn.map_or(GET_PAGE_ANONYMOUS, |(_, procedure)| *procedure)
    }

    fn user(&mut self) -> i64 {
        self.random.between(1, self.config.users.into())
    }

    fn get_page_anonymous<A: ArgumentSink>(&mut self, page: i64, arguments: &mut A) -> Call {
        let namespace = names::page(self.seed, page, &mut self.title);
        names::address(&mut self.random, &mut self.address);
        arguments.push_text(&self.address);
        arguments.push_i64(namespace);
        arguments.push_text(&self.title);
        Call::immediate(GET_PAGE_ANONYMOUS)
    }

    fn get_page_authenticated<A: ArgumentSink>(&mut self, page: i64, arguments: &mut A) -> Call {
        let namespace = names::page(self.seed, page, &mut self.title);
        arguments.push_i64(self.user());
        arguments.push_i64(namespace);
        arguments.push_text(&self.title);
        Call::immediate(GET_PAGE_AUTHENTICATED)
    }

    fn watch<A: ArgumentSink>(
        &mut self,
        procedure: ProcedureIndex,
        page: i64,
        arguments: &mut A,
    ) -> Call {
        let namespace = names::page(self.seed, page, &mut self.title);
        arguments.push_i64(self.user());
        arguments.push_i64(namespace);
        arguments.push_text(&self.title);
        arguments.push_timestamp(self.clock);
        Call::immediate(procedure)
    }

    fn update_page<A: ArgumentSink>(&mut self, page: i64, arguments: &mut A) -> Call {
        let namespace = names::page(self.seed, page, &mut self.title);
        names::address(&mut self.random, &mut self.address);
        let user = match self.random.percent(self.config.anonymous_percent) {
            true => {
                self.name.clone_from(&self.address);
                0
            }
            false => {
                let user = self.user();
                names::user(self.seed, user, &mut self.name);
                user
            }
        };
        self.comment.clear();
        push_alphanumeric(&mut self.comment, &mut self.random, 0, 60);
        let length = names::text_length(&self.config, &mut self.random);
        let begin = self.random.below(self.paper.len() - length + 1);
        arguments.push_i64(page);
        arguments.push_i64(namespace);
        arguments.push_text(&self.title);
        arguments.push_i64(user);
        arguments.push_text(&self.name);
        arguments.push_text(&self.address);
        arguments.push_i64(self.numbers.next());
        arguments.push_text(&self.paper[begin..begin + length]);
        arguments.push_text(&self.comment);
        arguments.push_i64(self.random.percent(25.0).into());
        arguments.push_timestamp(self.clock);
        Call::immediate(UPDATE_PAGE)
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        self.clock += 1_000;
        if let Some(page) = self.edited.take() {
            return self.update_page(page, arguments);
        }
        let procedure = self.draw_procedure();
        let page = self.pages.next(&mut self.random);
        match procedure {
            GET_PAGE_AUTHENTICATED => self.get_page_authenticated(page, arguments),
            ADD_WATCH_LIST | REMOVE_WATCH_LIST => self.watch(procedure, page, arguments),
            _ => {
                self.edited = (procedure == UPDATE_PAGE).then_some(page);
                self.get_page_anonymous(page, arguments)
            }
        }
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
