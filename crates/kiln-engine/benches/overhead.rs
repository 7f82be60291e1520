//! What the engine adds to a protocol: nanoseconds of an empty call through a worker alone, a
//! driver, and the inbox, one at a time and with a thousand in flight; and rows per second of the
//! loader.
//!
//! `cargo bench -p kiln-engine --bench overhead [-- silo mvcc]`: of all protocols, or of those
//! named.

#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use std::time::Duration;

use kiln_engine::{Arguments, Call, Completions, Engine, ProcedureHandle, Protocol};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_protocols::{Common, Worker};
use kiln_storage::types::Value;

/// The median of several timings of `body`, in nanoseconds for each of its `units` units.
fn median_ns(units: u64, mut body: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let start = time::now_ns();
            body();
            (time::now_ns() - start) as f64 / units as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Calls in flight where one thread submits for many clients.
const IN_FLIGHT: u64 = 1_000;

/// Makes `calls` empty calls through one queue of completions, always as many in flight as there
/// may be.
fn submit_all(engine: &Engine, nothing: &ProcedureHandle, calls: u64) {
    let completions = Completions::new(IN_FLIGHT as usize);
    let (mut submitted, mut ended, mut some) = (0, 0, Vec::new());
    while ended < calls {
        while submitted < calls {
            let call = Call::of(nothing, Arguments::new());
            if engine.submit_to(call, &completions, submitted).is_err() {
                break;
            }
            submitted += 1;
        }
        completions.wait(&mut some, Duration::from_secs(10));
        ended += some.len() as u64;
        assert!(some.iter().all(|completion| completion.result.is_ok()));
    }
}

fn main() {
    // Under `cargo test`, and with `--quick`, a benchmark only shows that it still runs.
    let is_set = |wanted: &str| std::env::args().any(|argument| argument == wanted);
    let names_any = Protocol::ALL.iter().any(|protocol| is_set(protocol.name()));
    let quick = is_set("--quick") || !is_set("--bench");
    let (calls, rows) = if quick {
        (1_000, 1_000)
    } else {
        (1_000_000, 200_000)
    };
    println!(
        "protocol      empty call: worker   driver    added    inbox  in flight | \
         deposit: worker   driver | loader"
    );
    for protocol in Protocol::serializable() {
        if names_any && !is_set(protocol.name()) {
            continue;
        }
        let engine = bank(small(protocol), 1_000, 0);
        let participant = engine.epochs().register().expect("there is room");
        let mut worker = Worker::new(
            &Arc::new(Common::new(protocol)),
            participant,
            Random::from_seed(1),
        );
        let mut driver = engine.driver(0).expect("there is a worker slot");
        let mut arguments = Arguments::new();
        let empty = Arc::new(nothing());
        let handle = engine.procedure("nothing").expect("it is there");
        let through_worker = median_ns(calls, || {
            for _ in 0..calls {
                arguments.clear();
                arguments.bind(&empty).expect("no arguments");
                std::hint::black_box(worker.call(&empty, &arguments, None));
            }
        });
        let through_driver = median_ns(calls, || {
            for _ in 0..calls {
                arguments.clear();
                std::hint::black_box(driver.call(&handle, &mut arguments));
            }
        });
        let through_inbox = median_ns(calls / 100, || {
            for _ in 0..calls / 100 {
                std::hint::black_box(engine.call("nothing", ()).expect("it runs"));
            }
        });
        let in_flight = median_ns(calls / 10, || submit_all(&engine, &handle, calls / 10));
        let program = Arc::new(deposit(&engine.table("account").expect("it is there")));
        let handle = engine.procedure("deposit").expect("it is there");
        let deposit_worker = median_ns(calls, || {
            for call in 0..calls as i64 {
                arguments.clear();
                arguments.push_i64(call % 1_000);
                arguments.push_i64(1);
                arguments.bind(&program).expect("two numbers");
                std::hint::black_box(worker.call(&program, &arguments, None));
            }
        });
        let deposit_driver = median_ns(calls, || {
            for call in 0..calls as i64 {
                arguments.clear();
                arguments.push_i64(call % 1_000);
                arguments.push_i64(1);
                std::hint::black_box(driver.call(&handle, &mut arguments));
            }
        });
        let mut next = 1_000_i64;
        let load = median_ns(rows, || {
            let mut loader = engine
                .loader("account", &["id", "owner", "balance"])
                .expect("it is there");
            let mut row = [
                Value::Null,
                Value::Text("somebody".to_owned()),
                Value::BigInt(1),
            ];
            for _ in 0..rows {
                row[0] = Value::BigInt(next);
                next += 1;
                loader.row(&row).expect("it is new");
            }
            loader.finish().expect("all are new");
        });
        println!(
            "{:13} {through_worker:15.1} ns {through_driver:5.1} ns {:5.1} ns {:6.1} µs {in_flight:7.1} ns | \
             {deposit_worker:12.1} ns {deposit_driver:5.1} ns | {:.0} rows/s",
            protocol.name(),
            through_driver - through_worker,
            through_inbox / 1e3,
            1e9 / load,
        );
    }
}
