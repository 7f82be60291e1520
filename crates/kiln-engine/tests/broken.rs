//! A panic inside a transaction: whoever waits hears of it, and nothing runs any more on records
//! whose state is unknown.

mod common;

use common::*;
use kiln_engine::{Arguments, Call, Engine, Outcome, Procedure, ProgramBuilder, Protocol};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::Instruction;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::DataType;

fn defective(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    panic!("a defect, on purpose");
}

fn engine_with_a_defect() -> Engine {
    let engine = bank(
        small(Protocol::TwoPhaseLockingNoWait).ddl_wait_ms(500),
        1,
        0,
    );
    let mut builder = ProgramBuilder::new("defective", []);
    let target = builder.register(DataType::BigInt);
    let (function, name, arguments) = (defective as _, "defective", [].into());
    builder.scalar(Instruction::Call {
        function,
        name,
        target,
        arguments,
    });
    builder.push(kiln_procedure::ir::Step::Emit {
        row: [target].into(),
    });
    builder.returns(vec![("value".to_owned(), DataType::BigInt)]);
    let program = Arc::new(builder.finish());
    let created =
        engine.change_catalog(|change| change.create_procedure(Procedure::new(program, ""), false));
    created.expect("the name is free");
    engine
}

fn nothing_runs(engine: &Engine) {
    let broken = SqlState::INTERNAL_ERROR;
    for _ in 0..4 {
        let error = engine
            .call("deposit", (0_i64, 1_i64))
            .expect_err("it is broken");
        assert_eq!(error.state(), broken, "{error}");
    }
    let error = engine.transaction(|_| Ok(())).expect_err("it is broken");
    assert_eq!(error.state(), broken, "{error}");
    engine.close();
}

#[test]
fn a_panicking_worker_answers_those_who_wait() {
    let engine = engine_with_a_defect();
    let tickets: Vec<_> = (0..20)
        .map(|at| {
            let name = if at == 3 { "defective" } else { "nothing" };
            engine.submit(Call::new(name, ())).expect("there is room")
        })
        .collect();
    let mut unknown = 0;
    for ticket in tickets {
        match ticket.wait() {
            Ok(reply) => assert!(reply.is_committed(), "{reply:?}"),
            Err(error) => {
                assert_eq!(error.state(), SqlState::INTERNAL_ERROR, "{error}");
                unknown += 1;
            }
        }
    }
    assert!(unknown >= 1);
    nothing_runs(&engine);
}

#[test]
fn a_panicking_driver_breaks_the_database() {
    let engine = engine_with_a_defect();
    let handle = engine.procedure("defective").expect("it is there");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut driver = engine.driver(0).expect("there is a seat");
        driver.call(&handle, &mut Arguments::new())
    }));
    assert!(caught.is_err());
    let mut driver = engine.driver(0).expect("there is a seat");
    let outcome = driver.call(&handle, &mut Arguments::new());
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    nothing_runs(&engine);
}

#[test]
fn a_panic_inside_a_closures_program_breaks_the_database() {
    let engine = engine_with_a_defect();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.transaction(|transaction| {
            transaction.update("account", (0_i64,), &[("balance", 1_i64.into())])?;
            transaction.call("defective", ())
        })
    }));
    assert!(caught.is_err());
    nothing_runs(&engine);
}
