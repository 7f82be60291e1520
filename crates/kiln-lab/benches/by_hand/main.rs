//! What the procedure IR costs: TPC-C's New-Order and Payment, compiled from `procedures.sql` and
//! run by the executor, against the same two transactions written by hand in Rust.
//!
//! Both run on the same loaded database, through an access of the same protocol (Silo), with the
//! same arguments, in turns of a few thousand transactions; begin and commit are included on both
//! sides, and what surrounds a call (queues, worker slots, binding of arguments) on neither. The
//! versions by hand make the same look-ups, reads of columns, updates and inserts, and prefetch the
//! same records; between them they are what a Rust programmer would write: cents in integers, no
//! NULLs where there are none.
//!
//! `cargo bench -p kiln-lab --bench by_hand [-- --quick]`
//!
//! With `--only <procedure> <compiled|by-hand> <turns> [serial]` it runs one side of one
//! transaction and prints nothing, for profilers that count instructions; with `serial` through the
//! access without concurrency control, which shows what Silo's takes:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*Bench*compiled*' \
//!     target/release/deps/by_hand-* --quick --only new_order compiled 4
//! ```
//!
//! With the name of a protocol in the place of `compiled` it serves the calls with a whole worker
//! of that protocol, scheduler included: `--only new_order lock-sorted 4`, to be counted with
//! `--toggle-collect='*by_hand*serve_turn*'`. That and `compiled` take any of the five procedures;
//! that takes `mix`, too, which is all of them as often as TPC-C has them. With `listen` at the end
//! the worker's commits are reported to a listener that copies them into a buffer of its own.

mod listener;
mod new_order;
mod payment;
mod store;

use kiln_engine::{Arguments, Catalog, Program};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::{Access, Executor, Frame, Halt, Stop};
use kiln_protocols::access::serial::Serial;
use kiln_protocols::access::silo::Silo;
use kiln_protocols::{Call, Calls, Common, Configuration, Next, Outcome, Worker};
use kiln_workloads::tpcc::{self, Mix};
use kiln_workloads::{ArgumentValues, ProcedureIndex, Workload};

use store::Store;

/// Seeds of the population and, for each turn, of its calls.
const SEED: u64 = 42;

/// The calls of one turn, in the form of both sides.
struct Turn {
    compiled: Vec<(Arc<Program>, Arguments)>,
    new_orders: Vec<new_order::Call>,
    payments: Vec<payment::Call>,
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let only = Only::from_arguments();
    let (turns, calls) = if quick { (6, 500) } else { (41, 4_000) };
    thread::pin_to_core(0);
    let config = tpcc::Config {
        mix: match &only {
            Some(only) if !matches!(only.procedure, Some(tpcc::NEW_ORDER | tpcc::PAYMENT)) => {
                Mix::Full
            }
            _ => Mix::NewOrderPayment,
        },
        ..if quick {
            tpcc::Config::small(1)
        } else {
            tpcc::Config::default()
        }
    };
    let workload = Workload::Tpcc(config);
    let database = kiln_lab::loaded(&workload, SEED, if quick { 64 } else { 1_024 })
        .expect("the workload loads");
    let engine = database.engine();
    let participant = engine
        .epochs()
        .register()
        .expect("a place among the epochs is free");
    if let Some(only) = only {
        let catalog = engine.catalog();
        match only.side {
            Side::Worker(configuration) => {
                let common = Arc::new(Common::new(configuration));
                let mut worker = Worker::new(&common, participant, Random::from_seed(SEED));
                if only.listens {
                    worker.attach(Some(&listener::journal()));
                }
                only.run_worker(worker, &workload, &catalog, calls);
            }
            _ if only.is_serial => only.run(Serial::new(participant), &workload, &catalog, calls),
            _ => only.run(Silo::new(participant), &workload, &catalog, calls),
        }
        return;
    }
    let mut bench = Bench::new(Silo::new(participant), &engine.catalog());
    println!(
        "ns per transaction, medians of {turns} turns of {calls} calls, one thread, one warehouse"
    );
    println!(
        "{:<10} {:>9} {:>9} {:>7}",
        "", "compiled", "by hand", "ratio"
    );
    for procedure in [tpcc::NEW_ORDER, tpcc::PAYMENT] {
        let name = tpcc::PROCEDURES[procedure.0].name;
        let program = program(&engine.catalog(), procedure);
        let (mut compiled, mut by_hand) = (Vec::new(), Vec::new());
        for number in 0..turns {
            let programs = [(procedure, program.clone())];
            let turn = turn(&workload, &programs, number, calls);
            // Who goes first changes, so that neither always finds the other's cache lines.
            for side in [number % 2, 1 - number % 2] {
                match side {
                    0 => compiled.push(bench.compiled(&turn)),
                    _ => by_hand.push(bench.by_hand(&turn)),
                }
            }
        }
        let (compiled, by_hand) = (median(&mut compiled), median(&mut by_hand));
        println!(
            "{name:<10} {compiled:>9.0} {by_hand:>9.0} {:>7.3}",
            compiled / by_hand
        );
    }
    drop(bench);
    let audit = kiln_lab::audit::conditions(&database, &workload).expect("the audit runs");
    assert!(audit.passed(), "the audit failed: {:?}", audit.violations);
}

/// One side of one transaction, to be profiled.
struct Only {
    /// Without one, all of them.
    procedure: Option<ProcedureIndex>,
    side: Side,
    turns: u64,
    is_serial: bool,
    listens: bool,
}

#[derive(Clone, Copy)]
enum Side {
    Compiled,
    ByHand,
    /// Compiled, and served by a worker of this protocol.
    Worker(Configuration),
}

impl Only {
    /// What `--only` asks for.
    fn from_arguments() -> Option<Only> {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--only");
        arguments.next()?;
        let is_set = |wanted: &str| std::env::args().any(|argument| argument == wanted);
        let usage = "--only <procedure|mix> <compiled|by-hand|protocol> <turns> [serial|listen]";
        let mut next = || arguments.next().expect(usage);
        let name = next();
        let mut names = tpcc::PROCEDURES.iter().map(|procedure| procedure.name);
        let procedure = match name.as_str() {
            "mix" => None,
            name => Some(ProcedureIndex(
                names.position(|one| one == name).expect(usage),
            )),
        };
        Some(Only {
            procedure,
            side: match next().as_str() {
                "compiled" => Side::Compiled,
                "by-hand" => Side::ByHand,
                name => Side::Worker(name.parse().expect(usage)),
            },
            turns: next().parse().expect(usage),
            is_serial: is_set("serial"),
            listens: is_set("listen"),
        })
    }

    /// The procedures whose calls are made.
    fn programs(&self, catalog: &Catalog) -> Vec<(ProcedureIndex, Arc<Program>)> {
        let all = (0..tpcc::PROCEDURES.len()).map(ProcedureIndex);
        let asked = all.filter(|one| self.procedure.is_none_or(|procedure| procedure == *one));
        asked.map(|one| (one, program(catalog, one))).collect()
    }

    fn run(&self, access: impl Access, workload: &Workload, catalog: &Catalog, calls: usize) {
        let mut bench = Bench::new(access, catalog);
        let programs = self.programs(catalog);
        for number in 0..self.turns {
            let turn = turn(workload, &programs, number, calls);
            match self.side {
                Side::ByHand => bench.by_hand(&turn),
                _ => bench.compiled(&turn),
            };
        }
    }

    fn run_worker(&self, mut worker: Worker, workload: &Workload, catalog: &Catalog, calls: usize) {
        let programs = self.programs(catalog);
        for number in 0..self.turns {
            let turn = turn(workload, &programs, number, calls);
            let mut calls = TurnCalls {
                left: turn.compiled.iter(),
            };
            serve_turn(&mut worker, &mut calls);
        }
    }
}

/// The compiled procedure.
fn program(catalog: &Catalog, procedure: ProcedureIndex) -> Arc<Program> {
    let name = tpcc::PROCEDURES[procedure.0].name;
    let procedure = catalog.procedure(name).expect("it was created");
    procedure.program().clone()
}

/// Draws the calls of a turn.
fn turn(
    workload: &Workload,
    programs: &[(ProcedureIndex, Arc<Program>)],
    number: u64,
    calls: usize,
) -> Turn {
    let mut terminal = workload.terminals(SEED + number, 1).remove(0);
    let mut values = ArgumentValues::default();
    let mut turn = Turn {
        compiled: Vec::new(),
        new_orders: Vec::new(),
        payments: Vec::new(),
    };
    while turn.compiled.len() < calls {
        let procedure = terminal.next(&mut values).procedure;
        let mut programs = programs.iter();
        let Some((_, program)) = programs.find(|(asked, _)| *asked == procedure) else {
            continue;
        };
        let mut arguments = Arguments::from_values(values.values());
        arguments
            .bind(program)
            .expect("the workload's arguments fit its procedures");
        turn.compiled.push((program.clone(), arguments));
        match procedure {
            tpcc::NEW_ORDER => turn.new_orders.push(new_order::Call::new(values.values())),
            tpcc::PAYMENT => turn.payments.push(payment::Call::new(values.values())),
            _ => {}
        }
    }
    turn
}

/// The calls of a turn, one after the other.
struct TurnCalls<'a> {
    left: std::slice::Iter<'a, (Arc<Program>, Arguments)>,
}

impl Calls for TurnCalls<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        let Some((program, arguments)) = self.left.next() else {
            return Next::Pause;
        };
        call.set_program(program);
        call.arguments.copy_from(arguments);
        Next::Call
    }

    fn is_over(&mut self) -> bool {
        self.left.len() == 0
    }

    fn ended(&mut self, _: &Call, outcome: Outcome, _: &Frame) {
        match outcome {
            Outcome::Committed => {}
            Outcome::Rejected(error) => {
                assert_eq!(error.state().as_str(), tpcc::UNUSED_ITEM, "{error}");
            }
            Outcome::Expired => panic!("the call has no deadline"),
        }
    }
}

/// Serves a turn.
#[inline(never)]
fn serve_turn(worker: &mut Worker, calls: &mut TurnCalls<'_>) {
    worker.serve(calls);
}

struct Bench<A> {
    access: A,
    frame: Frame,
    store: Store,
}

impl<A: Access> Bench<A> {
    fn new(access: A, catalog: &Catalog) -> Bench<A> {
        Bench {
            access,
            frame: Frame::new(),
            store: Store::new(catalog),
        }
    }

    /// Runs a turn by the executor; ns per call.
    #[inline(never)]
    fn compiled(&mut self, turn: &Turn) -> f64 {
        let begin = time::now_ns();
        for (program, arguments) in &turn.compiled {
            self.access.begin();
            let run = Executor::run(program, &mut self.access, &mut self.frame, arguments);
            finish(&mut self.access, run.map_err(Halt::from));
        }
        (time::now_ns() - begin) as f64 / turn.compiled.len() as f64
    }

    /// Runs a turn by hand; ns per call.
    #[inline(never)]
    fn by_hand(&mut self, turn: &Turn) -> f64 {
        let begin = time::now_ns();
        for call in &turn.new_orders {
            self.access.begin();
            let run = self.store.new_order(&mut self.access, call);
            finish(&mut self.access, run);
        }
        for call in &turn.payments {
            self.access.begin();
            let run = self.store.payment(&mut self.access, call);
            finish(&mut self.access, run);
        }
        let calls = turn.new_orders.len() + turn.payments.len();
        (time::now_ns() - begin) as f64 / calls as f64
    }
}

/// Commits, or rolls back what the procedure rejected.
fn finish(access: &mut impl Access, run: Result<(), Halt>) {
    match run {
        Ok(()) => access.commit().expect("no other transaction runs"),
        Err(Halt::Stop(Stop::Raise(error))) => {
            assert_eq!(error.state().as_str(), tpcc::UNUSED_ITEM, "{error}");
            access.confirm().expect("no other transaction runs");
            access.roll_back();
        }
        Err(Halt::Stop(Stop::Abort(cause))) => {
            panic!("{} though no other transaction runs", cause.name())
        }
        Err(Halt::Leaves) => unreachable!("these attempts do not travel"),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
