//! Which operations run again when one of them gives something else.

mod support;

use std::collections::BTreeSet;

use kiln_procedure::ir::*;
use kiln_procedure::restoration::Change;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::types::DataType;
use support::{Compile, Tables, column, failure, new_order, payment, procedure, tables};

fn start() -> (Tables, ProgramBuilder) {
    let b = procedure(
        "test",
        &[
            ("w", DataType::SmallInt),
            ("i", DataType::Integer),
            ("list", DataType::array(DataType::Integer)),
        ],
    );
    (tables(), b)
}

/// Looks stock up by (w, key), which has to be there, and reads `columns`.
fn read_stock(
    b: &mut ProgramBuilder,
    tables: &Tables,
    key: Reg,
    columns: &[u16],
) -> (RecordReg, Vec<Reg>) {
    let (stock, w) = (b.table(&tables.stock), b.parameter(0));
    let (record, found) = b.lookup(stock, 0, &[w, key], None);
    b.scalar(Instruction::Require {
        condition: found,
        null_fails: true,
        error: failure("none"),
    });
    let columns: Vec<_> = columns.iter().map(|position| column(*position)).collect();
    let registers = b.read(stock, record, &columns, None);
    (record, registers)
}

/// The same of items, whose price is read.
fn read_item(b: &mut ProgramBuilder, tables: &Tables, key: Reg) -> Reg {
    let item = b.table(&tables.item);
    let (record, found) = b.lookup(item, 0, &[key], None);
    b.scalar(Instruction::Require {
        condition: found,
        null_fails: true,
        error: failure("none"),
    });
    b.read(item, record, &[column(1)], None)[0]
}

/// What runs again when `op` gives something else, and what of that has changed.
fn again(program: &Program, op: u16, change: Change) -> (Vec<u16>, Vec<u16>) {
    let restoration = program.restoration(OpId(op), change);
    let all = 0..program.operations.len() as u16;
    let of = |is_in: &dyn Fn(OpId) -> bool| all.clone().filter(|op| is_in(OpId(*op))).collect();
    let runs: Vec<u16> = of(&|op| restoration.runs.contains(op));
    let changed: Vec<u16> = of(&|op| restoration.changed.contains(op));
    assert_eq!(restoration.runs.len(), runs.len());
    (runs, changed)
}

#[test]
fn a_value_reaches_what_is_computed_from_it_and_nothing_else() {
    let (tables, mut b) = start();
    let (i, one, stock) = (b.parameter(1), b.integer(1), b.table(&tables.stock));
    let price = read_item(&mut b, &tables, i);
    let (record, read) = read_stock(&mut b, &tables, i, &[2]);
    let more = b.arithmetic(Arithmetic::Add, read[0], one);
    b.update(stock, record, &[(column(3), more)], None);
    b.emit(&[price]);
    b.returns(vec![("price".to_owned(), support::money())]);
    let program = b.finish();
    // 0, 1: the item; 2, 3, 4: stock is looked up, read, updated.
    assert_eq!(again(&program, 2, Change::Values), (vec![3, 4], vec![3, 4]));
    assert_eq!(again(&program, 0, Change::Values), (vec![1], vec![1]));
    let gone = vec![2, 3, 4];
    assert_eq!(again(&program, 2, Change::Presence), (gone.clone(), gone));
    let restoration = program.restoration(OpId(2), Change::Values);
    assert!(!restoration.finds && !restoration.emits);
    assert!(program.restoration(OpId(0), Change::Values).emits);
}

#[test]
fn a_key_brings_a_look_up_and_all_that_is_done_to_its_record() {
    let (tables, mut b) = start();
    let (i, stock) = (b.parameter(1), b.table(&tables.stock));
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let (record, other) = read_stock(&mut b, &tables, read[0], &[3]);
    b.update(stock, record, &[(column(3), i)], None);
    b.emit(&other);
    b.returns(vec![("other".to_owned(), DataType::Integer)]);
    let program = b.finish();
    let all = vec![1, 2, 3, 4];
    assert_eq!(again(&program, 0, Change::Values), (all.clone(), all));
    assert!(program.restoration(OpId(0), Change::Values).finds);
}

#[test]
fn a_condition_brings_both_branches_and_what_they_assign() {
    let (tables, mut b) = start();
    let (i, one, stock) = (b.parameter(1), b.integer(1), b.table(&tables.stock));
    let (record, read) = read_stock(&mut b, &tables, i, &[2]);
    let some = b.compare(Comparison::Greater, Class::Integer, read[0], one);
    let chosen = b.register(DataType::Integer);
    b.assign(chosen, i);
    b.then_else(
        some,
        |b| {
            b.update(stock, record, &[(column(3), i)], None);
            b.assign(chosen, one);
        },
        |b| {
            read_item(b, &tables, one);
        },
    );
    read_item(&mut b, &tables, chosen);
    let program = b.finish();
    let (runs, changed) = again(&program, 0, Change::Values);
    assert_eq!(runs, changed);
    let all = 1..program.operations.len() as u16;
    assert_eq!(runs, all.collect::<Vec<_>>());
}

#[test]
fn what_a_loop_has_overwritten_is_brought_back_without_having_changed() {
    let (tables, mut b) = start();
    let (i, array) = (b.parameter(1), b.parameter(2));
    let element = b.register(DataType::Integer);
    let price = read_item(&mut b, &tables, i);
    b.open();
    let (_, read) = read_stock(&mut b, &tables, element, &[2]);
    b.emit(&[read[0], price]);
    let body = b.close();
    b.push(Step::ForEach {
        variable: element,
        array,
        body,
    });
    b.returns(vec![
        ("quantity".to_owned(), DataType::Integer),
        ("price".to_owned(), support::money()),
    ]);
    let program = b.finish();
    // The item's price is emitted beside what is read of the stock, which is as it was.
    assert_eq!(again(&program, 0, Change::Values), (vec![1, 2, 3], vec![1]));
    assert!(!program.restoration(OpId(0), Change::Values).finds);
}

#[test]
fn what_comes_after_a_return_depends_on_it() {
    let (tables, mut b) = start();
    let (i, one) = (b.parameter(1), b.integer(1));
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let some = b.compare(Comparison::Greater, Class::Integer, read[0], one);
    b.then(some, |b| b.push(Step::Return));
    let price = read_item(&mut b, &tables, one);
    b.emit(&[price]);
    b.returns(vec![("price".to_owned(), support::money())]);
    let program = b.finish();
    let all = vec![1, 2, 3];
    assert_eq!(again(&program, 0, Change::Values), (all.clone(), all));
    // The return is asked again, and what it was asked of is known.
    assert_eq!(again(&program, 2, Change::Values), (vec![3], vec![3]));
}

#[test]
fn writes_of_one_column_are_taken_back_together() {
    let (tables, mut b) = start();
    let (i, one, two) = (b.parameter(1), b.integer(1), b.integer(2));
    let stock = b.table(&tables.stock);
    let (record, read) = read_stock(&mut b, &tables, i, &[2]);
    b.update(stock, record, &[(column(3), read[0])], None);
    let (other, _) = read_stock(&mut b, &tables, one, &[]);
    b.update(stock, other, &[(column(3), two)], None);
    let (third, _) = read_stock(&mut b, &tables, two, &[]);
    b.update(stock, third, &[(column(2), one)], None);
    let program = b.finish();
    let kinds: Vec<_> = program.operations.iter().map(|one| one.kind).collect();
    use OperationKind::{Lookup, Read, Update};
    assert_eq!(
        kinds,
        [Lookup, Read, Update, Lookup, Update, Lookup, Update]
    );
    // It may be the same record, and so may that which is read.
    let (runs, _) = again(&program, 0, Change::Values);
    assert_eq!(runs, [1, 2, 4, 6]);
    let rewritten = &program.restoration(OpId(0), Change::Values).rewritten;
    assert_eq!(rewritten.len(), 1);
    let columns = [column(2), column(3)].into_iter().collect();
    assert_eq!(rewritten[0].updated, columns);
    assert!(!rewritten[0].inserts && !rewritten[0].deletes);
}

/// Operations that come to run when these have changed, along the edges of the dependency graph.
fn reached(program: &Program, mut seen: BTreeSet<OpId>) -> BTreeSet<OpId> {
    let mut rest: Vec<OpId> = seen.iter().copied().collect();
    while let Some(op) = rest.pop() {
        for edge in program.analysis.dependents_of(op) {
            if seen.insert(edge.to) {
                rest.push(edge.to);
            }
        }
    }
    seen
}

#[test]
fn what_the_dependency_graph_reaches_has_changed() {
    let tables = tables();
    for program in [payment(&tables), new_order(&tables)] {
        for op in (0..program.operations.len() as u16).map(OpId) {
            let kind = program.operations[op.0 as usize].kind;
            if !matches!(kind, OperationKind::Lookup | OperationKind::Scan) {
                continue;
            }
            let finds = |read: &OpId| {
                let facts = program.analysis.operation(*read);
                facts.kind == OperationKind::Read && facts.found_by.contains(&op)
            };
            let all = (0..program.operations.len() as u16).map(OpId);
            let reads: BTreeSet<OpId> = all.filter(finds).collect();
            for (change, seeds) in [
                (Change::Values, reads),
                (Change::Presence, BTreeSet::from([op])),
            ] {
                let changed = &program.restoration(op, change).changed;
                for reached in reached(&program, seeds) {
                    assert!(
                        changed.contains(reached),
                        "{}: {op:?} {change:?} {reached:?}",
                        program.name
                    );
                }
            }
        }
    }
}

#[test]
fn a_clock_that_is_asked_again_has_changed() {
    let (tables, mut b) = start();
    let (i, array) = (b.parameter(1), b.parameter(2));
    let (element, now) = (b.register(DataType::Integer), b.register(DataType::Integer));
    let stock = b.table(&tables.stock);
    let price = read_item(&mut b, &tables, i);
    b.open();
    b.scalar(Instruction::Call {
        function: |_, _| Ok(kiln_storage::slot::Slot::from_i64(7)),
        name: "now",
        target: now,
        arguments: Box::new([]),
    });
    let (record, _) = read_stock(&mut b, &tables, element, &[]);
    b.update(stock, record, &[(column(3), now)], None);
    b.emit(&[price, now]);
    let body = b.close();
    b.push(Step::ForEach {
        variable: element,
        array,
        body,
    });
    b.returns(vec![
        ("price".to_owned(), support::money()),
        ("now".to_owned(), DataType::Integer),
    ]);
    let program = b.finish();
    let (runs, changed) = again(&program, 0, Change::Values);
    assert_eq!((runs, changed), (vec![1, 2, 3], vec![1, 3]));
}

#[test]
fn what_is_kept_in_a_buffer_is_taken_from_it_by_position_too() {
    let (tables, mut b) = start();
    let (i, one) = (b.parameter(1), b.integer(1));
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let buffer = b.buffer(1);
    b.push(Step::BufferClear { buffer });
    b.push(Step::BufferPush {
        buffer,
        row: Box::new([read[0]]),
    });
    let (at, kept) = (b.register(DataType::BigInt), b.register(DataType::Integer));
    b.push(Step::BufferCount { buffer, target: at });
    b.push(Step::BufferRow {
        buffer,
        at,
        row: Box::new([kept]),
    });
    let stock = b.table(&tables.stock);
    let (record, _) = read_stock(&mut b, &tables, one, &[]);
    b.update(stock, record, &[(column(3), kept)], None);
    let program = b.finish();
    assert_eq!(again(&program, 0, Change::Values).1, vec![1, 3]);
}
