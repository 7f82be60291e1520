//! The simulated network: the contract under many schedules, on networks that delay, split and
//! lose; connections that break; descriptors that run out; wake-ups that are lost; and the same run
//! for the same seed.

#![cfg(kiln_sim)]

mod net_contract;

use std::collections::BTreeSet;
use std::path::Path;

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::net::{Address, Error, Events, Kind, Listener, Poller, SocketAddr, Stream};
use kiln_platform::sim::net::{AcceptFault, Network, Options, Side};
use kiln_platform::sim::{self, Cause, Config, Failure, Report, Schedule};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{thread, time};
use net_contract::{Connection, Echo, Listen, accept};

const SCHEDULES: [Schedule; 3] = [
    Schedule::Random,
    Schedule::Pct {
        depth: 3,
        steps: 300,
    },
    Schedule::LeastTime,
];

fn config(schedule: Schedule, network: &Network, seed: u64) -> Config {
    let mut config = Config::new(schedule, seed);
    config.network = Some(network.clone());
    config
}

fn on<T: Send>(network: &Network, seed: u64, body: impl FnOnce() -> T + Send) -> T {
    match sim::run(&config(Schedule::Random, network, seed), body) {
        Ok(run) => run.value,
        Err(failure) => panic!("{failure}"),
    }
}

fn calm() -> Network {
    Network::new(Options::new(1))
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn listen() -> Listener {
    Listener::tcp(address()).expect("the port is free")
}

fn listen_unix() -> Listener {
    Listener::unix(Path::new("/run/socket"), 0o600).expect("the path is free")
}

/// Calls `body` under all schedules, over TCP and on Unix sockets, on networks of both kinds if it
/// can bear it.
fn everywhere(seeds: u64, is_rough_too: bool, body: impl Fn(Listen<'_>) + Sync) {
    for seed in 0..seeds {
        for schedule in SCHEDULES {
            for listen in [listen, listen_unix] {
                let mut networks = vec![Options::new(seed)];
                if is_rough_too {
                    networks.push(Options::rough(seed));
                }
                for options in networks {
                    let network = Network::new(options.clone());
                    let run = sim::run(&config(schedule, &network, seed), || body(&listen));
                    if let Err(failure) = run {
                        panic!("{schedule:?}, {options:?}: {failure}");
                    }
                }
            }
        }
    }
}

#[test]
fn clients_get_back_what_they_sent() {
    everywhere(20, true, |listen| net_contract::echo(listen, 3, 3_000));
}

#[test]
fn a_large_transfer_goes_through_small_queues() {
    everywhere(1, false, |listen| net_contract::echo(listen, 1, 500_000));
    let mut options = Options::new(1);
    options.queue_bytes = 100;
    let network = Network::new(options);
    on(&network, 1, || net_contract::echo(&listen, 2, 50_000));
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    everywhere(3, true, net_contract::half_close);
}

#[test]
fn an_event_says_that_the_peer_is_gone() {
    everywhere(20, true, net_contract::closed);
}

#[test]
fn a_stream_dropped_with_bytes_unread_breaks_the_connection() {
    everywhere(20, false, net_contract::broken);
}

#[test]
fn no_listener_no_connection() {
    everywhere(20, true, net_contract::refused);
}

#[test]
fn the_state_at_the_registration_is_an_event() {
    everywhere(20, false, net_contract::registered_late);
}

#[test]
fn an_event_tells_of_a_change_once() {
    everywhere(20, false, net_contract::edges);
}

#[test]
fn no_wake_up_is_lost() {
    everywhere(30, true, |_| net_contract::wakers(3, 20));
}

#[test]
fn waits_end_in_time() {
    everywhere(3, true, |_| net_contract::time_outs());
}

#[test]
fn a_thousand_connections_in_one_poller() {
    for listen in [listen, listen_unix] {
        on(&calm(), 1, || net_contract::many(&listen, 1_000));
    }
    everywhere(2, false, |listen| net_contract::many(listen, 50));
}

#[test]
fn an_address_has_one_listener() {
    let at = |address: &Address| match address {
        Address::Tcp(address) => Listener::tcp(*address),
        Address::Unix(path) => Listener::unix(path, 0o600),
    };
    for asked in [Address::Tcp(address()), Address::Unix("/run/socket".into())] {
        on(&calm(), 1, || net_contract::in_use(&at, &asked));
    }
}

/// What a run with several clients gives: the schedule, the bytes, the times.
fn mixture(seed: u64, schedule: Schedule) -> (Report, u64) {
    let mut options = Options::rough(seed);
    options.reset_one_in = 500;
    let network = Network::new(options);
    let body = || {
        let mut server = Echo::new(listen());
        let address = server.address();
        thread::scope(|scope| {
            for _ in 0..3 {
                let address = &address;
                scope.spawn(move || {
                    let mut connection = Connection::to(address);
                    // It may break: then this client is done.
                    let _ = connection.write_all(&[1; 900]);
                    let _ = connection.stream.shutdown_write();
                    let _ = connection.read_all(&mut [0; 900]);
                });
            }
            server.serve(3);
        });
        time::now_ns()
    };
    let run = sim::run(&config(schedule, &network, seed), body).expect("the run ends");
    (run.report, run.value)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for schedule in SCHEDULES {
        let first: Vec<(Report, u64)> = (0..10).map(|seed| mixture(seed, schedule)).collect();
        let noise: Vec<Vec<u8>> = (0..1_000).map(|size| vec![1; size]).collect();
        for (seed, expected) in first.iter().enumerate() {
            assert_eq!(mixture(seed as u64, schedule), *expected, "seed {seed}");
        }
        drop(noise);
        let hashes: BTreeSet<u64> = first.iter().map(|(report, _)| report.trace_hash).collect();
        assert_eq!(hashes.len(), 10, "{schedule:?}");
    }
}

#[test]
fn a_connection_breaks_at_a_chosen_byte() {
    for seed in 0..20 {
        for byte in [1, 10, 1_000, 5_000] {
            let network = Network::new(Options::new(seed));
            network.reset_at(0, Side::Client, byte);
            on(&network, seed, || {
                let mut listener = listen();
                let mut client = Connection::to(listener.local_address());
                let mut server = Connection::of(accept(&mut listener));
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut read = 0;
                        let error = loop {
                            match server.read_all(&mut [0]) {
                                Ok(1) => read += 1,
                                Ok(_) => panic!("an end after {read} bytes"),
                                Err(error) => break error,
                            }
                        };
                        assert!(read <= byte, "{read}");
                        assert_eq!(error.kind(), Kind::Broken);
                    });
                    let written = client.write_all(&vec![0; 200_000]);
                    let error = written.expect_err("the connection breaks");
                    assert_eq!(error.kind(), Kind::Broken, "{error}");
                    // The second connection does not.
                    let mut client = Connection::to(listener.local_address());
                    let mut server = Connection::of(accept(&mut listener));
                    client.write_all(&[5; 6_000]).expect("it is whole");
                    assert_eq!(server.read_all(&mut [0; 6_000]), Ok(6_000));
                });
            });
        }
    }
}

#[test]
fn a_broken_connection_says_so_once_and_then_ends() {
    let network = calm();
    on(&network, 1, || {
        let mut listener = listen();
        let mut client = Connection::to(listener.local_address());
        let server = accept(&mut listener);
        client.write_all(b"x").expect("it is whole");
        network.cut_all();
        let event = client.wait().expect("the break is an event");
        assert!(event.readable && event.writable && event.closed);
        let words = |error: Error| error.to_string();
        let reset = client.stream.read(&mut [0]).expect_err("it is broken");
        assert!(words(reset).contains("reset"));
        assert_eq!(client.stream.read(&mut [0]), Ok(Some(0)));
        let pipe = client.stream.write(b"x").expect_err("it is broken");
        assert!(words(pipe).contains("pipe"));
        let reset = server.write(b"x").expect_err("it is broken");
        assert!(words(reset).contains("reset"));
        // The listener stays.
        let _next = Connection::to(listener.local_address());
        accept(&mut listener);
    });
    assert_eq!(network.connections(), 2);
}

#[test]
fn a_server_lives_through_descriptors_that_run_out_and_clients_that_give_up() {
    for seed in 0..20 {
        let network = Network::new(Options::new(seed));
        network.fail_accepts(3, AcceptFault::ProcessOutOfDescriptors);
        network.fail_accepts(1, AcceptFault::SystemOutOfDescriptors);
        network.fail_accepts(2, AcceptFault::Aborted);
        on(&network, seed, || {
            let mut server = Echo::new(listen());
            let address = server.address();
            let broken: usize = thread::scope(|scope| {
                let clients: Vec<_> = (0..6)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut connection = Connection::to(&address);
                            let echoed = connection.write_all(&[7; 100]).and_then(|()| {
                                connection.stream.shutdown_write()?;
                                connection.read_all(&mut [0; 101])
                            });
                            match echoed {
                                Ok(bytes) => assert_eq!(bytes, 100),
                                Err(ref error) => assert_eq!(error.kind(), Kind::Broken, "{error}"),
                            }
                            usize::from(echoed.is_err())
                        })
                    })
                    .collect();
                server.serve(4);
                let joined = clients.into_iter().map(|client| client.join());
                joined.map(|broken| broken.expect("nothing panics")).sum()
            });
            assert_eq!(broken, 2, "seed {seed}");
        });
    }
}

#[test]
fn errors_of_accept_tell_pausing_from_going_on() {
    let network = calm();
    for (fault, kind, stays) in [
        (AcceptFault::ProcessOutOfDescriptors, Kind::Exhausted, true),
        (AcceptFault::SystemOutOfDescriptors, Kind::Exhausted, true),
        (AcceptFault::Aborted, Kind::Aborted, false),
    ] {
        network.fail_accepts(1, fault);
        on(&network, 1, || {
            let listener = listen_unix();
            let _client = Stream::connect(listener.local_address()).expect("it listens");
            assert_eq!(listener.accept().expect_err("it was told to").kind(), kind);
            assert_eq!(listener.accept().expect("it works").is_some(), stays);
        });
    }
}

#[test]
fn a_full_queue_of_a_listener_lets_clients_wait() {
    let mut options = Options::new(1);
    options.listen_queue = 2;
    on(&Network::new(options), 1, || {
        let mut listener = listen();
        let mut clients: Vec<Connection> = (0..3)
            .map(|_| Connection::to(listener.local_address()))
            .collect();
        thread::sleep(10_000_000);
        let begin = time::now_ns();
        let servers: Vec<Stream> = (0..3).map(|_| accept(&mut listener)).collect();
        assert!(
            time::now_ns() - begin > 900_000_000,
            "the third tries again"
        );
        drop(servers);
        for client in &mut clients {
            assert_eq!(client.read_all(&mut [0]), Ok(0));
        }
        let listener = listen_unix();
        let connect = || Stream::connect(listener.local_address());
        let _waiting = [(); 2].map(|()| connect().expect("there is room"));
        assert_eq!(connect().expect_err("it is full").kind(), Kind::Exhausted);
    });
}

#[test]
fn what_arrives_while_no_thread_looks_is_answered_in_its_time() {
    for seed in 0..20 {
        let latency_ns = (10_000, 200_000);
        let mut options = Options::new(seed);
        options.latency_ns = latency_ns;
        on(&Network::new(options), seed, || {
            let listener = listen();
            let client = Stream::connect(listener.local_address()).expect("it listens");
            assert_eq!(client.write(b"x"), Ok(None), "no answer can be there yet");
            // Both ways, and nothing asks the network meanwhile.
            thread::sleep(2 * latency_ns.1);
            assert_eq!(client.write(b"x"), Ok(Some(1)), "seed {seed}");
        });
    }
}

#[test]
fn a_wait_that_nothing_can_end_is_a_deadlock() {
    let network = calm();
    let wait = || {
        let mut listener = listen();
        let mut poller = Poller::new().expect("there is room");
        let mut events = Events::with_capacity(1);
        let token = kiln_platform::net::Token(1);
        listener.register(&poller, token).expect("it is open");
        poller.wait(&mut events, None).expect("it is open");
    };
    let failure = sim::run(&config(Schedule::Random, &network, 1), wait).expect_err("it blocks");
    assert!(
        failure.to_string().contains("main waits for the network"),
        "{failure}"
    );
}

/// A thread gets a message from another one, and sleeps while there is none. With `always`, the
/// sender wakes the poller always; else only if it sees that the receiver sleeps, which the
/// receiver says before it waits, but not before it looks.
fn message(always: bool, seed: u64) -> Result<(), Failure> {
    let body = move || {
        let mut poller = Poller::new().expect("there is room");
        let waker = poller.waker();
        let (inbox, sleeps) = (Mutex::new(None), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                *lock(&inbox) = Some(1);
                if always || sleeps.load(Ordering::SeqCst) {
                    waker.wake();
                }
            });
            let mut events = Events::with_capacity(1);
            while lock(&inbox).take().is_none() {
                sleeps.store(true, Ordering::SeqCst);
                poller.wait(&mut events, None).expect("it is open");
                sleeps.store(false, Ordering::SeqCst);
            }
        });
    };
    sim::run(&config(Schedule::Random, &calm(), seed), body).map(|_| ())
}

#[test]
fn schedules_find_a_wake_up_that_is_lost_between_the_look_and_the_sleep() {
    let lost = (0..200).filter(|seed| match message(false, *seed) {
        Ok(()) => false,
        Err(failure) => {
            assert!(matches!(failure.cause, Cause::Deadlock { .. }), "{failure}");
            true
        }
    });
    let lost = lost.count();
    assert!((1..200).contains(&lost), "{lost} of 200 schedules");
    for seed in 0..200 {
        message(true, seed).expect("no wake-up is lost");
    }
}

#[test]
fn schedules_find_a_reader_that_stops_before_it_is_told_that_nothing_is_left() {
    let read_once = |seed| {
        let body = || {
            let (mut client, mut server) = net_contract::pair(&listen);
            client.write_all(&[1; 3_000]).expect("it is whole");
            let mut read = 0;
            while read < 3_000 {
                server.wait_without_end();
                let got = server.stream.read(&mut [0; 1_000]).expect("it is whole");
                read += got.unwrap_or(0);
            }
        };
        let network = Network::new(Options::new(seed));
        sim::run(&config(Schedule::Random, &network, seed), body).map(|_| ())
    };
    let hangs = (0..100).filter_map(|seed| read_once(seed).err());
    let causes: Vec<Cause> = hangs.map(|failure| failure.cause).collect();
    assert!(!causes.is_empty());
    for cause in causes {
        assert!(matches!(cause, Cause::Deadlock { .. }), "{cause:?}");
    }
}

#[test]
fn a_rough_network_does_what_it_says() {
    const BYTES: usize = 2_000;
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let network = Network::new(Options::rough(seed));
        let noticed = on(&network, seed, || {
            let (client, mut server) = net_contract::pair(&listen);
            let mut noticed = Vec::new();
            let (mut read, mut written) = (0, 0);
            while read < BYTES {
                let mut was_short = false;
                while written < BYTES {
                    let rest = &[1; BYTES][written..];
                    let Some(taken) = client.stream.write(rest).expect("it is whole") else {
                        noticed.push("no room");
                        break;
                    };
                    noticed.extend(was_short.then_some("short write"));
                    was_short = taken < rest.len();
                    written += taken;
                }
                let begin = time::now_ns();
                let event = server.wait_for(300_000_000);
                noticed.extend(event.is_none().then_some("no event"));
                let is_late = time::now_ns() - begin >= 150_000_000;
                noticed.extend(is_late.then_some("loss"));
                let (mut moved, mut was_short) = (false, false);
                let mut buffer = [0; 100];
                while let Some(got) = server.stream.read(&mut buffer).expect("it is whole") {
                    noticed.extend(was_short.then_some("short read"));
                    was_short = got < buffer.len();
                    moved = true;
                    read += got;
                }
                let is_outdated = !moved && event.is_some_and(|event| event.readable);
                noticed.extend(is_outdated.then_some("event without a reason"));
            }
            noticed
        });
        seen.extend(noticed);
    }
    let all = [
        "event without a reason",
        "loss",
        "no event",
        "no room",
        "short read",
        "short write",
    ];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn sockets_belong_to_their_run() {
    let network = calm();
    let outside = Listener::tcp(address()).expect("a port of the machine is free");
    let left = on(&network, 1, || {
        assert!(
            outside.accept().is_err(),
            "a run uses no socket of the machine"
        );
        listen()
    });
    assert!(left.accept().is_err(), "the run is over");
    on(&network, 1, || {
        assert!(left.accept().is_err(), "this is another run");
        listen();
    });
    let without = || Listener::tcp(address()).expect_err("there is no network");
    let run = sim::run(&Config::new(Schedule::Random, 1), without).expect("the run ends");
    assert!(run.value.to_string().contains("this run has no network"));
    let nested = || sim::run(&config(Schedule::Random, &network, 1), || ()).map(|_| ());
    let other = on(&network, 1, || {
        std::thread::scope(|scope| scope.spawn(nested).join().expect("nothing panics"))
    });
    let failure = other.expect_err("one run at a time");
    assert!(failure.to_string().contains("another run has the network"));
}
