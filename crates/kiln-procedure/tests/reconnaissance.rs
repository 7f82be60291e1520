//! What is left of procedures when only their footprints are wanted.

mod support;

use kiln_procedure::analysis::Footprint;
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::types::DataType;
use support::{column, procedure, tables};

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
