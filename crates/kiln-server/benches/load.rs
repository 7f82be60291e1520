//! A closed loop of clients on one row: how many statements a second a server ends, and in what
//! time.
//!
//! `cargo bench -p kiln-server --bench load -- [--connect ADDRESS] [--connections N] [--pipeline N]
//! [--seconds S] [--user ROLE] [--setup SQL] [--statement SQL]`
//!
//! Without an address a server of a database in memory runs in this process. With one, any server
//! that speaks PostgreSQL's protocol and trusts this machine can be measured. One thread drives all
//! connections. Each prepares the statement, which has no parameters, and keeps `--pipeline`
//! executions in flight, each with a Sync of its own. `--setup` runs once before.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kiln_platform::net::{Address, Events, Poller, Stream, Token};
use kiln_platform::time;
use kiln_server::{Server, ServerOptions};
use kiln_sql::{Database, Options};
use kiln_wire::client::{Answer, Requests};
use kiln_wire::frontend::Format;

const SETUP: &str = "DROP TABLE IF EXISTS item;
    CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL);
    INSERT INTO item VALUES (1, 2000000000)";
const STATEMENT: &str = "UPDATE item SET stock = stock - 1 WHERE id = 1 AND stock > 0";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value_of = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let number_of = |name: &str, default: usize| match value_of(name) {
        Some(value) => value.parse().expect("a number"),
        None => default,
    };
    // Under `cargo test`, and with `--quick`, a benchmark only shows that it still runs.
    let is_set = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let is_quick = is_set("--quick") || !is_set("--bench");
    let connections = number_of("--connections", 64);
    let seconds = if is_quick {
        0.2
    } else {
        number_of("--seconds", 3) as f64
    };
    kiln_platform::net::allow_descriptors(connections + 100).expect("the limit can be read");
    let (_server, address) = match value_of("--connect") {
        Some(address) if address.starts_with('/') => (None, Address::Unix(address.into())),
        Some(address) => (None, Address::Tcp(address.parse().expect("an address"))),
        None => {
            let database = Database::open(Options::default()).expect("there is memory");
            let mut options = ServerOptions::default();
            options
                .listen
                .push(Address::Tcp(([127, 0, 0, 1], 0).into()));
            let server = Server::start(database, options).expect("a port is free");
            let address = server.addresses()[0].clone();
            (Some(server), address)
        }
    };
    let mut load = Load {
        poller: Poller::new().expect("the system has pollers"),
        address,
        user: value_of("--user").unwrap_or_else(|| "kiln".to_owned()),
        statement: value_of("--statement").unwrap_or_else(|| STATEMENT.to_owned()),
        pipeline: number_of("--pipeline", 1),
        clients: Vec::new(),
        latency_ns: Histogram::new_with_bounds(1_000, 600_000_000_000, 3).expect("bounds are good"),
        errors: BTreeMap::new(),
    };
    load.run_once(&value_of("--setup").unwrap_or_else(|| SETUP.to_owned()));
    load.connect(connections);
    load.drive(0.3_f64.min(seconds));
    load.latency_ns.clear();
    load.errors.clear();
    let took_s = load.drive(seconds);
    let latency_us = |quantile: f64| load.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    println!(
        "{connections} connections, {} in flight each: {:.0} a second; p50 {:.0} µs, p99 {:.0} µs, p99.9 {:.0} µs, at most {:.0} µs",
        load.pipeline,
        load.latency_ns.len() as f64 / took_s,
        latency_us(0.5),
        latency_us(0.99),
        latency_us(0.999),
        load.latency_ns.max() as f64 / 1e3,
    );
    for (state, count) in &load.errors {
        println!("  {count} errors {state}");
    }
}

/// One connection.
struct Client {
    stream: Stream,
    received: Vec<u8>,
    to_send: Vec<u8>,
    /// When those in flight were asked for, the oldest first.
    asked_ns: std::collections::VecDeque<u64>,
    /// Syncs that are answered before the loop begins.
    preparing: usize,
}

struct Load {
    poller: Poller,
    address: Address,
    user: String,
    statement: String,
    pipeline: usize,
    clients: Vec<Client>,
    latency_ns: Histogram<u64>,
    /// How often each SQLSTATE was answered.
    errors: BTreeMap<String, u64>,
}

impl Load {
    fn client(&mut self, requests: &mut Requests, preparing: usize) {
        let mut stream = Stream::connect(&self.address).expect("the server listens");
        let token = Token(self.clients.len());
        stream.register(&self.poller, token).expect("there is room");
        self.clients.push(Client {
            stream,
            received: Vec::new(),
            to_send: requests.take(),
            asked_ns: Default::default(),
            preparing,
        });
    }

    /// Runs a text of statements in a connection of its own.
    fn run_once(&mut self, text: &str) {
        let mut requests = Requests::default();
        requests.startup(0, &[("user", &self.user), ("database", &self.user)]);
        requests.query(text);
        self.client(&mut requests, usize::MAX);
        self.wait_until(|load| load.clients[0].preparing <= usize::MAX - 2);
        self.clients.clear();
        assert!(
            self.errors.is_empty(),
            "the setup failed: {:?}",
            self.errors
        );
    }

    /// Connects clients, a few hundred at a time, and has them prepare the statement.
    fn connect(&mut self, connections: usize) {
        while self.clients.len() < connections {
            for _ in 0..256.min(connections - self.clients.len()) {
                let mut requests = Requests::default();
                requests.startup(0, &[("user", &self.user), ("database", &self.user)]);
                requests.parse("s", &self.statement.clone(), &[]).sync();
                self.client(&mut requests, 2);
            }
            self.wait_until(|load| load.clients.iter().all(|client| client.preparing == 0));
        }
    }

    fn wait_until(&mut self, is_there: impl Fn(&Load) -> bool) {
        let mut events = Events::with_capacity(1_024);
        (0..self.clients.len()).for_each(|position| self.serve(position, &[]));
        while !is_there(self) {
            self.poller
                .wait(&mut events, Some(1_000_000_000))
                .expect("it waits");
            for event in events.iter() {
                self.serve(event.token.0, &[]);
            }
        }
    }

    /// Runs the loop for so long, and lets all that is in flight end. Returns the seconds that it
    /// took.
    fn drive(&mut self, seconds: f64) -> f64 {
        let mut requests = Requests::default();
        requests.bind("", "s", (Format::Text, &[]), Format::Text);
        let request = requests.execute("", 0).sync().take();
        let begin_ns = time::now_ns();
        let end_ns = begin_ns + (seconds * 1e9) as u64;
        for position in 0..self.clients.len() {
            for _ in 0..self.pipeline {
                let client = &mut self.clients[position];
                client.to_send.extend_from_slice(&request);
                client.asked_ns.push_back(time::now_ns());
            }
            self.serve(position, &request);
        }
        let mut events = Events::with_capacity(1_024);
        let mut now_ns = begin_ns;
        while self
            .clients
            .iter()
            .any(|client| !client.asked_ns.is_empty())
        {
            while now_ns < end_ns {
                self.turn(&mut events, &request);
                now_ns = time::now_ns();
            }
            self.turn(&mut events, &[]);
        }
        (time::now_ns() - begin_ns) as f64 / 1e9
    }

    fn turn(&mut self, events: &mut Events, request: &[u8]) {
        self.poller
            .wait(events, Some(1_000_000_000))
            .expect("it waits");
        for event in events.iter() {
            self.serve(event.token.0, request);
        }
    }

    /// Receives what there is; for each execution that has ended another one is asked for, unless
    /// the request is empty.
    fn serve(&mut self, position: usize, request: &[u8]) {
        let Some(client) = self.clients.get_mut(position) else {
            return;
        };
        let mut buffer = [0; 16 << 10];
        loop {
            match client
                .stream
                .read(&mut buffer)
                .expect("the server is there")
            {
                Some(0) => panic!("the server has closed a connection"),
                Some(count) => client.received.extend_from_slice(&buffer[..count]),
                None => break,
            }
            // A short read has emptied the socket, mostly; the next event tells of what comes.
        }
        let mut used = 0;
        while let Some(header) = client.received[used..].first_chunk::<5>() {
            let [kind, length @ ..] = *header;
            let length = 1 + u32::from_be_bytes(length) as usize;
            if client.received.len() - used < length {
                break;
            }
            if kind == b'E' {
                let answer = Answer::split(&client.received[used..]).expect("it is an answer");
                let Some((Answer::Error(fields), _)) = answer else {
                    panic!("an error is one");
                };
                let error = format!("{} {}", fields.get(b'C'), fields.get(b'M'));
                *self.errors.entry(error).or_default() += 1;
            }
            if kind == b'Z' && client.preparing > 0 {
                client.preparing -= 1;
            } else if kind == b'Z' {
                let now_ns = time::now_ns();
                let asked_ns = client.asked_ns.pop_front().expect("it was asked for");
                let _ = self.latency_ns.record(now_ns - asked_ns);
                if !request.is_empty() {
                    client.to_send.extend_from_slice(request);
                    client.asked_ns.push_back(now_ns);
                }
            }
            used += length;
        }
        client.received.drain(..used);
        let mut sent = 0;
        while sent < client.to_send.len() {
            match client
                .stream
                .write(&client.to_send[sent..])
                .expect("the server is there")
            {
                Some(count) => sent += count,
                None => break,
            }
        }
        client.to_send.drain(..sent);
    }
}
