//! What is left of procedures when only their footprints are wanted.

mod support;

use kiln_procedure::analysis::Footprint;
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::types::{DataType, Value};
use support::{Compile, column, procedure, tables};

fn kinds(program: &Program) -> Vec<OperationKind> {
    let operations = program.operations.iter();
    operations.map(|operation| operation.kind).collect()
}

fn count(program: &Program, kind: OperationKind) -> usize {
    kinds(program).iter().filter(|one| **one == kind).count()
}

/// The intents of look-ups and scans, in the order of the program.
fn intents(program: &Program) -> Vec<Intent> {
    let mut intents = Vec::new();
    kiln_procedure::analysis::names::for_each_step(&program.body, &mut |step| {
        if let Step::Lookup { intent, .. } | Step::Scan { intent, .. } = step {
            intents.push(*intent);
        }
    });
    intents
}

fn start() -> (support::Tables, ProgramBuilder) {
    let b = procedure(
        "test",
        &[("w", DataType::SmallInt), ("i", DataType::Integer)],
    );
    (tables(), b)
}

#[test]
fn keys_from_arguments_leave_look_ups_alone() {
    let program = support::new_order(&tables());
    let plan = program.reconnaissance();
    assert!(!std::ptr::eq(plan, &program), "something is left out");
    for (number, operation) in program.operations.iter().enumerate() {
        if operation.kind == OperationKind::Lookup {
            let facts = program.analysis.operation(OpId(number as u16));
            assert_eq!(facts.footprint, Footprint::FromArguments);
        }
    }
    let left = kinds(plan);
    assert!(
        left.iter().all(|kind| *kind == OperationKind::Lookup),
        "{left:?}"
    );
    assert_eq!(left.len(), count(&program, OperationKind::Lookup));
    assert_eq!(intents(plan), intents(&program));
    // It is made once.
    assert!(std::ptr::eq(plan, program.reconnaissance()));
}

/// Whether the loops of a reconnaissance that are prefetched are made at once, and the ordinals of
/// their look-ups.
fn loops(program: &Program) -> Vec<(bool, Vec<Option<u16>>)> {
    let mut loops = Vec::new();
    kiln_procedure::analysis::names::for_each_step(&program.body, &mut |step| {
        if let Step::Prefetch {
            lookups, meets_all, ..
        } = step
        {
            let ordinals = lookups.iter().map(|lookup| lookup.ordinal);
            loops.push((*meets_all, ordinals.collect()));
        }
    });
    loops
}

#[test]
fn a_loop_of_look_ups_by_arguments_is_made_at_once() {
    let program = support::new_order(&tables());
    assert_eq!(loops(&program), [(false, vec![Some(0), Some(1)])]);
    let plan = program.reconnaissance();
    assert_eq!(loops(plan), [(true, vec![Some(0), Some(1)])]);
}

/// A loop over items of a warehouse, which is the second argument or comes from a row; `is_inner`
/// puts it into another loop. What it found last may be asked for behind it.
fn loop_over_items(is_read: bool, is_inner: bool, is_asked_for: bool) -> Program {
    let parameters = [
        ("w", DataType::SmallInt),
        ("items", DataType::array(DataType::Integer)),
        ("last", DataType::BigInt),
    ];
    let mut b = procedure("look", &parameters);
    let tables = tables();
    let (district, stock) = (b.table(&tables.district), b.table(&tables.stock));
    let (w, items, last) = (b.parameter(0), b.parameter(1), b.parameter(2));
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let warehouse = b.register(DataType::SmallInt);
    b.assign(warehouse, w);
    if is_read {
        let (record, found) = b.lookup(district, 0, &[w, w], None);
        b.then(found, |b| {
            let read = b.read(district, record, &[column(0)], None);
            b.assign(warehouse, read[0]);
        });
    }
    let counting = |b: &mut ProgramBuilder, body: &mut dyn FnMut(&mut ProgramBuilder, Reg)| {
        let variable = b.register(DataType::BigInt);
        b.open();
        body(b, variable);
        let body = b.close();
        b.push(Step::ForRange {
            variable,
            first: one,
            last,
            step: one,
            reverse: false,
            body,
        });
    };
    let last_found = b.register(DataType::Boolean);
    b.scalar(Instruction::SetNull { target: last_found });
    let mut look = |b: &mut ProgramBuilder, iteration: Reg| {
        let item = b.register(DataType::Integer);
        b.scalar(Instruction::Element {
            target: item,
            array: items,
            index: iteration,
        });
        let (_, found) = b.lookup(stock, 0, &[warehouse, item], None);
        b.assign(last_found, found);
    };
    match is_inner {
        true => counting(&mut b, &mut |b, _| counting(b, &mut look)),
        false => counting(&mut b, &mut look),
    }
    if is_asked_for {
        b.then(last_found, |b| {
            b.lookup(district, 0, &[w, w], None);
        });
    }
    b.finish()
}

#[test]
fn a_loop_that_data_decide_or_that_is_asked_for_is_run() {
    let met = |program: Program| loops(program.reconnaissance());
    assert_eq!(
        met(loop_over_items(false, false, false)),
        [(true, vec![Some(0)])]
    );
    assert_eq!(
        met(loop_over_items(true, false, false)),
        [(false, vec![None])]
    );
    assert_eq!(
        met(loop_over_items(false, true, false)),
        [(false, vec![None])]
    );
    assert_eq!(
        met(loop_over_items(false, false, true)),
        [(false, vec![Some(0)])]
    );
}

#[test]
fn what_decides_keys_is_read_and_nothing_else() {
    let (tables, mut b) = start();
    let (stock, w, i) = (b.table(&tables.stock), b.parameter(0), b.parameter(1));
    let (first, found) = b.lookup(stock, 0, &[w, i], None);
    b.open();
    let read = b.read(stock, first, &[column(2), column(3)], None);
    let (second, also) = b.lookup(stock, 0, &[w, read[0]], None);
    b.open();
    b.update(stock, second, &[(column(3), read[1])], None);
    let then = b.close();
    b.push(Step::If {
        condition: also,
        then,
        otherwise: vec![],
    });
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: vec![],
    });
    let program = b.finish();
    let plan = program.reconnaissance();
    use OperationKind::{Lookup, Read};
    assert_eq!(kinds(plan), [Lookup, Read, Lookup]);
    assert_eq!(intents(plan), [Intent::Read, Intent::Write]);
    let mut columns = Vec::new();
    kiln_procedure::analysis::names::for_each_step(&plan.body, &mut |step| {
        if let Step::Read { columns: read, .. } = step {
            columns.extend(read.iter().map(|(column, _)| *column));
        }
    });
    assert_eq!(columns, [column(2)], "not what is only written");
}

#[test]
fn an_update_that_a_key_depends_on_stays() {
    let (tables, mut b) = start();
    let (stock, w, i) = (b.table(&tables.stock), b.parameter(0), b.parameter(1));
    let (first, found) = b.lookup(stock, 0, &[w, i], None);
    b.open();
    b.update(stock, first, &[(column(2), i)], None);
    let (again, there) = b.lookup(stock, 0, &[w, w], None);
    b.open();
    let read = b.read(stock, again, &[column(2)], None);
    b.lookup(stock, 0, &[w, read[0]], None);
    let then = b.close();
    b.push(Step::If {
        condition: there,
        then,
        otherwise: vec![],
    });
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: vec![],
    });
    let program = b.finish();
    use OperationKind::{Lookup, Read, Update};
    assert_eq!(
        kinds(program.reconnaissance()),
        [Lookup, Update, Lookup, Read, Lookup]
    );
}

/// Look-ups by arguments, one of which is made in a branch, and another one by what was read; scans
/// of one range, and of another one. The plan has all of them under the same numbers, though its
/// operations have others.
#[test]
fn a_plan_has_the_numbers_of_what_arguments_decide() {
    let (tables, mut b) = start();
    let (stock, w, i) = (b.table(&tables.stock), b.parameter(0), b.parameter(1));
    for prefix in [vec![w], vec![w], vec![w, i]] {
        let record = b.record();
        b.open();
        let read = b.read(stock, record, &[column(3)], None);
        b.update(stock, record, &[(column(3), read[0])], None);
        let body = b.close();
        let range = Range {
            prefix: prefix.into(),
            ..Range::default()
        };
        b.scan(stock, 0, range, false, record, body, None);
    }
    let (first, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| {
        let read = b.read(stock, first, &[column(2)], None);
        b.lookup(stock, 0, &[w, read[0]], None);
        b.lookup(stock, 0, &[w, w], None);
    });
    let program = b.finish();
    let plan = program.reconnaissance();
    let keys = |program: &Program| {
        let mut keys = Vec::new();
        kiln_procedure::analysis::names::for_each_step(&program.body, &mut |step| match step {
            Step::Lookup { op, key, .. } => {
                let given = program.given.iter().find(|(known, _)| known == op);
                let given = given.map(|(_, given)| u32::from(given.iteration));
                keys.push((key.to_vec(), given));
            }
            Step::Scan { op, range, .. } => {
                let given = program.given_scans.iter().find(|(known, _)| known == op);
                keys.push((
                    range.prefix.to_vec(),
                    given.map(|(_, number)| u32::from(*number)),
                ));
            }
            _ => {}
        });
        keys
    };
    let numbers: Vec<_> = keys(&program).iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers[..3], [Some(0), Some(0), Some(1)]);
    let mut given: Vec<_> = numbers[3..].iter().flatten().collect();
    given.sort_unstable();
    assert_eq!(given, [&0, &1], "and none by what was read: {numbers:?}");
    assert_ne!(kinds(plan), kinds(&program));
    let of_arguments = |program: &Program| {
        let mut keys = keys(program);
        keys.retain(|(_, number)| number.is_some());
        keys
    };
    assert_eq!(of_arguments(plan), of_arguments(&program));
}
