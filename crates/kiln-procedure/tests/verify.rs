//! Each rule of the IR, broken once in a program that keeps all others.

mod support;

use kiln_procedure::ir::*;
use kiln_procedure::verify::verify;
use kiln_procedure::{Procedure, ProgramBuilder};
use kiln_storage::schema::TableId;
use kiln_storage::types::{DataType, Value};
use support::{Compile, column, failure, procedure, tables};

/// A program that keeps the rules and has one of most things: parameter 0 (integer), 1 (text) and
/// 2 (integer[]), a constant, a look-up with a read, an update and a delete, a scan that saves its
/// records in a buffer, and a loop over that buffer.
fn good() -> Procedure {
    let tables = tables();
    let mut b = procedure(
        "good",
        &[
            ("number", DataType::Integer),
            ("text", DataType::Text),
            ("list", DataType::array(DataType::Integer)),
        ],
    );
    b.returns(vec![("value".to_owned(), DataType::Integer)]);
    let number = b.parameter(0);
    let one = b.integer(1);
    let district = b.constant(DataType::SmallInt, Value::SmallInt(3));
    let sum = b.arithmetic(Arithmetic::Add, number, one);
    b.emit(&[sum]);
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[district, number], None);
    b.then(found, |b| {
        let read = b.read(stock, record, &[column(2)], None);
        b.emit(&read);
        b.update(stock, record, &[(column(2), sum)], None);
        b.delete(stock, record, None);
    });
    let (buffer, record) = (b.buffer(2), b.record());
    b.push(Step::BufferClear { buffer });
    b.open();
    let saved = b.register(DataType::BigInt);
    b.push(Step::SaveRecord {
        target: saved,
        record,
    });
    b.push(Step::BufferPush {
        buffer,
        row: [saved, number].into(),
    });
    let body = b.close();
    let range = Range {
        prefix: [district].into(),
        ..Range::default()
    };
    b.scan(stock, 0, range, false, record, body, None);
    b.push(Step::BufferSort {
        buffer,
        by: [SortKey {
            column: 1,
            class: Class::Integer,
            descending: false,
            nulls_first: false,
        }]
        .into(),
    });
    b.open();
    let (taken, value) = (b.register(DataType::BigInt), b.register(DataType::Integer));
    let restored = b.record();
    b.push(Step::RestoreRecord {
        record: restored,
        source: taken,
    });
    b.update(stock, restored, &[(column(3), value)], None);
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    b.push(Step::ForBuffer {
        buffer,
        matching: Box::default(),
        row: [taken, value].into(),
        body,
    });
    b.finish().procedure
}

/// Breaks the good program and expects the fault to be found, with these words in the message.
#[track_caller]
fn refuses(breaks: impl FnOnce(&mut Procedure), words: &str) {
    let mut program = good();
    breaks(&mut program);
    let fault = verify(&program).expect_err("the fault must be found");
    assert!(fault.contains(words), "{fault:?} does not say {words:?}");
}

/// Puts a step before all others.
fn first(step: Step) -> impl FnOnce(&mut Procedure) {
    move |program| program.body.insert(0, step)
}

/// The position in the body of the first step for which `is` holds.
fn find(program: &mut Procedure, is: impl Fn(&Step) -> bool) -> &mut Step {
    program
        .body
        .iter_mut()
        .find(|step| is(step))
        .expect("the program has such a step")
}

fn new_register(program: &mut Procedure, data_type: DataType) -> Reg {
    program.registers.push(data_type);
    Reg(program.registers.len() as u16 - 1)
}

const NUMBER: Reg = Reg(0);
const TEXT: Reg = Reg(1);
const LIST: Reg = Reg(2);
const MISSING: Reg = Reg(9999);

#[test]
fn a_good_program_passes() {
    assert_eq!(verify(&good()), Ok(()));
}

#[test]
fn numbers_are_in_range() {
    refuses(
        first(Step::Emit {
            row: [MISSING].into(),
        }),
        "register 9999 does not exist",
    );
    refuses(
        first(Step::Raise {
            error: {
                let mut error = failure("%");
                error.arguments = [MISSING].into();
                error
            },
        }),
        "register 9999 does not exist",
    );
    refuses(
        first(Step::BufferClear {
            buffer: BufferId(1),
        }),
        "buffer 1 does not exist",
    );
    refuses(|program| program.records = 0, "record 0 does not exist");
    refuses(|program| program.tables.clear(), "table 0 does not exist");
    refuses(
        |program| program.operations.truncate(1),
        "operation 1 does not exist",
    );
    refuses(
        |program| {
            let lookup = find(program, |step| matches!(step, Step::Lookup { .. }));
            let Step::Lookup { index, .. } = lookup else {
                unreachable!()
            };
            *index = 7;
        },
        "no index 7",
    );
    refuses(
        |program| {
            let branch = find(program, |step| matches!(step, Step::If { .. }));
            let Step::If { then, .. } = branch else {
                unreachable!()
            };
            let Step::Read { columns, .. } = &mut then[0] else {
                unreachable!()
            };
            columns[0].0 = column(99);
        },
        "column 99 does not exist",
    );
    refuses(
        |program| {
            let sort = find(program, |step| matches!(step, Step::BufferSort { .. }));
            let Step::BufferSort { by, .. } = sort else {
                unreachable!()
            };
            by[0].column = 2;
        },
        "the buffer has 2 columns",
    );
    refuses(
        |program| program.constants[0].register = MISSING,
        "register 9999 does not exist",
    );
}

#[test]
fn operations_have_one_step_of_their_kind() {
    refuses(
        |program| {
            let copy = find(program, |step| matches!(step, Step::Lookup { .. })).clone();
            program.body.push(copy);
        },
        "has two steps",
    );
    refuses(
        |program| {
            program
                .body
                .retain(|step| !matches!(step, Step::ForBuffer { .. }))
        },
        "has no step",
    );
    refuses(
        |program| program.operations[0].kind = OperationKind::Scan,
        "of another kind or on another table",
    );
    refuses(
        |program| program.operations[0].table = TableId(77),
        "of another kind or on another table",
    );
}

#[test]
fn parameters_and_constants_are_not_written() {
    let set = |target| first(Step::Scalar(Instruction::SetNull { target }));
    refuses(set(NUMBER), "is a parameter or a constant");
    let constant = good().constants[0].register;
    refuses(set(constant), "is a parameter or a constant");
    refuses(
        |program| program.constants[0].register = NUMBER,
        "holds something else already",
    );
    refuses(
        |program| program.constants[0].value = Value::Text("x".to_owned()),
        "its constant text",
    );
    refuses(
        |program| program.parameters[0].data_type = DataType::BigInt,
        "is not of its type",
    );
}

#[test]
fn registers_are_written_before_they_are_read() {
    refuses(
        |program| {
            let late = new_register(program, DataType::Integer);
            program.body.insert(0, Step::Emit { row: [late].into() });
            program
                .body
                .push(Step::Scalar(Instruction::SetNull { target: late }));
        },
        "read but not written on every path",
    );
    // In one branch only.
    refuses(
        |program| {
            let sometimes = new_register(program, DataType::Integer);
            let Step::If { then, .. } = find(program, |step| matches!(step, Step::If { .. }))
            else {
                unreachable!()
            };
            then.push(Step::Scalar(Instruction::SetNull { target: sometimes }));
            program.body.push(Step::Emit {
                row: [sometimes].into(),
            });
        },
        "read but not written on every path",
    );
    // In a loop that may run no iteration.
    refuses(
        |program| {
            let sometimes = new_register(program, DataType::Integer);
            let Step::Scan { body, .. } = find(program, |step| matches!(step, Step::Scan { .. }))
            else {
                unreachable!()
            };
            body.push(Step::Scalar(Instruction::SetNull { target: sometimes }));
            program.body.push(Step::Emit {
                row: [sometimes].into(),
            });
        },
        "read but not written on every path",
    );
    // By an iteration before this one.
    refuses(
        |program| {
            let earlier = new_register(program, DataType::Integer);
            let Step::Scan { body, .. } = find(program, |step| matches!(step, Step::Scan { .. }))
            else {
                unreachable!()
            };
            body.insert(
                0,
                Step::Emit {
                    row: [earlier].into(),
                },
            );
            body.push(Step::Scalar(Instruction::SetNull { target: earlier }));
        },
        "read but not written on every path",
    );
}

#[test]
fn paths_that_end_do_not_count() {
    let mut program = good();
    let always = new_register(&mut program, DataType::Integer);
    let Step::If {
        then, otherwise, ..
    } = find(&mut program, |step| matches!(step, Step::If { .. }))
    else {
        unreachable!()
    };
    then.push(Step::Scalar(Instruction::SetNull { target: always }));
    otherwise.push(Step::Return);
    program.body.push(Step::Emit {
        row: [always].into(),
    });
    assert_eq!(verify(&program), Ok(()));
    // A loop without condition is left by its exits alone.
    let mut program = good();
    let always = new_register(&mut program, DataType::Integer);
    let body = vec![
        Step::Scalar(Instruction::SetNull { target: always }),
        Step::Exit { depth: 0 },
    ];
    program.body.push(Step::Loop {
        before: Vec::new(),
        condition: None,
        body,
    });
    program.body.push(Step::Emit {
        row: [always].into(),
    });
    assert_eq!(verify(&program), Ok(()));
}

#[test]
fn records_are_found_before_they_are_used() {
    refuses(
        |program| {
            let Step::If { then, .. } = find(program, |step| matches!(step, Step::If { .. }))
            else {
                unreachable!()
            };
            let read = then.remove(0);
            then.remove(0);
            program.body.insert(0, read);
        },
        "used but not found on every path",
    );
    // The record of a scan, behind it.
    refuses(
        |program| {
            let Step::Scan { record, .. } = find(program, |step| matches!(step, Step::Scan { .. }))
            else {
                unreachable!()
            };
            let (record, target) = (*record, new_register(program, DataType::BigInt));
            program.body.push(Step::SaveRecord { target, record });
        },
        "used but not found on every path",
    );
}

#[test]
fn buffers_are_emptied_before_they_are_filled() {
    refuses(
        |program| {
            program
                .body
                .retain(|step| !matches!(step, Step::BufferClear { .. }))
        },
        "used but not emptied",
    );
}

#[test]
fn a_record_is_of_one_table() {
    let tables = tables();
    refuses(
        |program| {
            program.tables.push(tables.item.clone());
            let Step::If { then, .. } = find(program, |step| matches!(step, Step::If { .. }))
            else {
                unreachable!()
            };
            let Step::Delete { op, table, .. } = &mut then[3] else {
                unreachable!()
            };
            *table = TableRef(1);
            let op = op.0 as usize;
            program.operations[op].table = tables.item.id();
        },
        "is of two tables",
    );
    // Through a saved handle.
    refuses(
        |program| {
            program.tables.push(tables.warehouse.clone());
            let Step::ForBuffer { body, .. } =
                find(program, |step| matches!(step, Step::ForBuffer { .. }))
            else {
                unreachable!()
            };
            let Step::Update {
                op, table, columns, ..
            } = &mut body[1]
            else {
                unreachable!()
            };
            *table = TableRef(1);
            columns[0].0 = column(0);
            let op = op.0 as usize;
            program.operations[op].table = tables.warehouse.id();
        },
        "is of two tables",
    );
}

#[test]
fn handles_are_not_computed() {
    // A number restored as a record.
    refuses(
        |program| {
            let Step::ForBuffer { body, .. } =
                find(program, |step| matches!(step, Step::ForBuffer { .. }))
            else {
                unreachable!()
            };
            let Step::RestoreRecord { source, .. } = &mut body[0] else {
                unreachable!()
            };
            *source = NUMBER;
        },
        "holds no saved record",
    );
    // A handle overwritten by a number.
    refuses(
        |program| {
            let Step::Scan { body, .. } = find(program, |step| matches!(step, Step::Scan { .. }))
            else {
                unreachable!()
            };
            let Step::SaveRecord { target, .. } = body[0] else {
                unreachable!()
            };
            body.insert(
                1,
                Step::Scalar(Instruction::Move {
                    target,
                    source: NUMBER,
                }),
            );
        },
        "holds a handle here",
    );
    // A number pushed where handles are.
    refuses(
        |program| {
            program.body.push(Step::BufferPush {
                buffer: BufferId(0),
                row: [NUMBER, NUMBER].into(),
            });
        },
        "two kinds of things",
    );
}

#[test]
fn loops_are_left_from_within() {
    refuses(first(Step::Exit { depth: 0 }), "depth 0 within 0 loops");
    refuses(
        |program| {
            let Step::ForBuffer { body, .. } =
                find(program, |step| matches!(step, Step::ForBuffer { .. }))
            else {
                unreachable!()
            };
            body.push(Step::Continue { depth: 1 });
        },
        "depth 1 within 1 loops",
    );
    refuses(
        first(Step::Loop {
            before: vec![Step::Exit { depth: 0 }],
            condition: None,
            body: vec![Step::Exit { depth: 0 }],
        }),
        "within 0 loops",
    );
}

#[test]
fn a_row_at_a_position_has_values() {
    let at_position = |columns: usize, position: DataType| {
        move |program: &mut Procedure| {
            let at = new_register(program, position);
            let row = (0..columns).map(|_| new_register(program, DataType::Integer));
            let row = row.collect();
            let buffer = BufferId(0);
            program
                .body
                .push(Step::Scalar(Instruction::SetNull { target: at }));
            program.body.push(Step::BufferRow { buffer, at, row });
        }
    };
    refuses(
        at_position(1, DataType::BigInt),
        "buffer 0 has 2 columns, the row 1",
    );
    refuses(
        at_position(2, DataType::BigInt),
        "a row of buffer 0 has a handle",
    );
    refuses(at_position(2, DataType::Text), "");
}

#[test]
fn widths_agree() {
    refuses(
        first(Step::Emit {
            row: [NUMBER, NUMBER].into(),
        }),
        "2 values for 1 result columns",
    );
    refuses(
        |program| {
            let push = Step::BufferPush {
                buffer: BufferId(0),
                row: [NUMBER].into(),
            };
            program.body.push(push);
        },
        "buffer 0 has 2 columns, the row 1",
    );
    refuses(
        |program| {
            let Step::Lookup { key, .. } =
                find(program, |step| matches!(step, Step::Lookup { .. }))
            else {
                unreachable!()
            };
            *key = [NUMBER].into();
        },
        "1 values for the 2 columns of the key",
    );
    refuses(
        |program| {
            let Step::Scan { range, .. } = find(program, |step| matches!(step, Step::Scan { .. }))
            else {
                unreachable!()
            };
            range.prefix = [range.prefix[0], NUMBER].into();
            range.upper = Some(Bound {
                value: NUMBER,
                inclusive: true,
            });
        },
        "more columns than",
    );
    refuses(|program| program.buffers[0] = 0, "buffer 0 has no column");
}

#[test]
fn operands_have_their_types() {
    let scalar = |instruction| first(Step::Scalar(instruction));
    let with_target = |data_type: DataType, make: fn(Reg) -> Instruction| {
        move |program: &mut Procedure| {
            let target = new_register(program, data_type);
            program.body.insert(0, Step::Scalar(make(target)));
        }
    };
    refuses(
        first(Step::If {
            condition: NUMBER,
            then: Vec::new(),
            otherwise: Vec::new(),
        }),
        "expected boolean",
    );
    refuses(
        scalar(Instruction::Require {
            condition: TEXT,
            null_fails: true,
            error: failure("x"),
        }),
        "expected boolean",
    );
    refuses(
        with_target(DataType::SmallInt, |target| Instruction::Move {
            target,
            source: NUMBER,
        }),
        "expected what fits smallint",
    );
    refuses(
        with_target(DataType::Integer, |target| Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Eight,
            target,
            left: NUMBER,
            right: NUMBER,
        }),
        "expected room for Eight bytes",
    );
    refuses(
        with_target(DataType::Boolean, |target| Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Bytes,
            target,
            left: NUMBER,
            right: TEXT,
        }),
        "expected the class Bytes",
    );
    refuses(
        with_target(DataType::Text, |target| Instruction::Element {
            target,
            array: LIST,
            index: NUMBER,
        }),
        "expected an array of text",
    );
    refuses(
        with_target(DataType::Text, |target| Instruction::Concat {
            target,
            left: TEXT,
            right: NUMBER,
        }),
        "expected text",
    );
    refuses(
        |program| {
            let Step::Lookup { key, .. } =
                find(program, |step| matches!(step, Step::Lookup { .. }))
            else {
                unreachable!()
            };
            key[1] = TEXT;
        },
        "expected what compares with integer",
    );
    refuses(
        |program| {
            let Step::If { then, .. } = find(program, |step| matches!(step, Step::If { .. }))
            else {
                unreachable!()
            };
            let Step::Update { columns, .. } = &mut then[2] else {
                unreachable!()
            };
            columns[0].1 = TEXT;
        },
        "expected what fits integer",
    );
    refuses(
        |program| {
            let Step::BufferSort { by, .. } =
                find(program, |step| matches!(step, Step::BufferSort { .. }))
            else {
                unreachable!()
            };
            by[0].class = Class::Bytes;
        },
        "column 1 is not Bytes",
    );
    refuses(
        |program| {
            let (name, _) = program.result.columns[0].clone();
            program.result.columns = [(name, DataType::Text)].into();
        },
        "expected what fits text",
    );
}

#[test]
fn a_fault_names_its_step() {
    let mut program = good();
    let Step::If { then, .. } = find(&mut program, |step| matches!(step, Step::If { .. })) else {
        unreachable!()
    };
    then.push(Step::Emit {
        row: [MISSING].into(),
    });
    let position = program
        .body
        .iter()
        .position(|step| matches!(step, Step::If { .. }));
    let expected = format!(
        "body.{}.then.4 (Emit): register 9999 does not exist",
        position.expect("the program has a conditional")
    );
    assert_eq!(verify(&program), Err(expected));
}

#[test]
#[should_panic(expected = "breaks the IR's rules")]
fn the_builder_refuses_a_broken_program() {
    let mut b: ProgramBuilder = procedure("broken", &[]);
    let unwritten = b.register(DataType::Integer);
    b.returns(vec![("value".to_owned(), DataType::Integer)]);
    b.emit(&[unwritten]);
    b.finish();
}
