//! The calls of a life's clients. They follow from the number of the life, so that the test knows
//! what a process was about to do that it has killed.

use kiln::{Call, IdempotencyKey, Reply};
use kiln_engine::{Arguments, Engine};
use kiln_workloads::{Terminal, Totals, Workload};

/// Determines the population and, with the number of a life, what its clients call.
pub const SEED: u64 = 1;
/// Two of each workload.
pub const CLIENTS: usize = 6;
/// The calls that a client has on their way at most: some wait for each of their calls, the others
/// have a queue.
pub const fn in_flight(client: usize) -> usize {
    if client < CLIENTS / 2 { 1 } else { 8 }
}

/// What is in the database: orders, a hot row, money.
pub fn workloads() -> [Workload; 3] {
    ["tpcc", "hot", "smallbank"].map(|name| {
        let workload = Workload::by_name(name).expect("it is one of them");
        workload.small()
    })
}

/// The workload of a client.
pub const fn workload_of(client: usize) -> usize {
    client % 3
}

/// The calls of a client, in the order in which it begins them.
pub struct Calls<'a> {
    workload: &'a Workload,
    engine: &'a Engine,
    terminal: Terminal,
    client: (usize, usize),
    next: u64,
}

/// A call with its key.
pub struct Keyed {
    /// How many calls of the client come before it.
    pub turn: u64,
    pub call: Call,
    /// For the terminal.
    pub drawn: kiln_workloads::Call,
}

impl<'a> Calls<'a> {
    pub fn new(
        workloads: &'a [Workload; 3],
        engine: &'a Engine,
        life: usize,
        client: usize,
    ) -> Self {
        let workload = &workloads[workload_of(client)];
        let seed = SEED + (life * CLIENTS + client) as u64;
        Calls {
            workload,
            engine,
            terminal: workload.terminals(seed, 1).remove(0),
            client: (life, client),
            next: 0,
        }
    }

    pub fn draw(&mut self) -> Keyed {
        let mut arguments = Arguments::new();
        let drawn = self.terminal.next(&mut arguments);
        let name = self.workload.procedures()[drawn.procedure.0].name;
        let procedure = self.engine.procedure(name).expect("it was created");
        let (turn, (life, client)) = (self.next, self.client);
        self.next += 1;
        let key = IdempotencyKey::new(format!("{life} {client} {turn}")).expect("it is short");
        Keyed {
            turn,
            call: Call::of(&procedure, arguments).idempotency_key(key),
            drawn,
        }
    }

    /// Counts a call that has ended.
    ///
    /// # Panics
    /// If it should not have ended so.
    pub fn count(&mut self, drawn: kiln_workloads::Call, reply: &Reply) {
        match reply {
            Reply::Committed(rows) => self.terminal.committed(drawn, rows.values()),
            Reply::Rejected(error) => {
                let expected = self.workload.expected_rejections();
                assert!(expected.contains(&error.state().as_str()), "{error:#}");
            }
            Reply::Expired => panic!("a call without a deadline has expired"),
        }
    }

    /// What the counted calls add up to.
    pub fn totals(&self) -> &Totals {
        self.terminal.totals()
    }
}

/// What a client is told, on one line.
pub fn answer(reply: &Reply) -> String {
    match reply {
        Reply::Committed(rows) => format!("{:?}", rows.values()),
        Reply::Rejected(error) => format!("{} {:?}", error.state().as_str(), error.message()),
        Reply::Expired => "expired".to_owned(),
    }
}
