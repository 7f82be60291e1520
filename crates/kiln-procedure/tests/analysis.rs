//! Dependencies and footprints of small programs.

mod support;

use kiln_procedure::analysis::{DependencyKinds, Footprint};
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::types::{DataType, Value};
use support::{Compile, Tables, column, failure, procedure, tables};

const KEY: DependencyKinds = DependencyKinds::KEY;
const VALUE: DependencyKinds = DependencyKinds::VALUE;
const CONTROL: DependencyKinds = DependencyKinds::CONTROL;
const OWN_WRITE: DependencyKinds = DependencyKinds::OWN_WRITE;
const NONE: DependencyKinds = DependencyKinds::NONE;

fn start() -> (Tables, ProgramBuilder) {
    let mut b = procedure(
        "test",
        &[
            ("w", DataType::SmallInt),
            ("i", DataType::Integer),
            ("list", DataType::array(DataType::Integer)),
        ],
    );
    b.returns(vec![("value".to_owned(), DataType::Integer)]);
    (tables(), b)
}

fn kinds(program: &Program) -> Vec<OperationKind> {
    program
        .operations
        .iter()
        .map(|operation| operation.kind)
        .collect()
}

fn between(program: &Program, from: u16, to: u16) -> DependencyKinds {
    program.analysis.between(OpId(from), OpId(to))
}

fn footprint(program: &Program, op: u16) -> Footprint {
    program.analysis.operation(OpId(op)).footprint
}

fn because_of(op: u16) -> Footprint {
    Footprint::NeedsReconnaissance {
        because_of: OpId(op),
    }
}

/// Looks stock up by (w, key) and reads `columns` without asking whether it was found.
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

#[test]
fn a_read_feeds_a_key_and_a_value() {
    let (tables, mut b) = start();
    let (i, stock) = (b.parameter(1), b.table(&tables.stock));
    let (_, read) = read_stock(&mut b, &tables, i, &[2, 3]);
    let (record, _) = read_stock(&mut b, &tables, read[0], &[]);
    b.update(stock, record, &[(column(3), read[1])], None);
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(kinds(&program), [Lookup, Read, Lookup, Update]);
    assert_eq!(between(&program, 0, 1), KEY);
    assert_eq!(between(&program, 1, 2), KEY);
    assert_eq!(between(&program, 0, 2), NONE, "the read lies between");
    assert_eq!(between(&program, 1, 3), VALUE);
    assert_eq!(between(&program, 2, 3), KEY);
    assert_eq!(footprint(&program, 0), Footprint::FromArguments);
    assert_eq!(footprint(&program, 1), Footprint::FromArguments);
    assert_eq!(footprint(&program, 2), because_of(1));
    assert_eq!(footprint(&program, 3), because_of(1));
    assert_eq!(program.analysis.footprint(), because_of(1));
    assert!(!program.analysis.is_read_only());
    let facts = program.analysis.operation(OpId(3));
    assert_eq!(facts.found_by, [OpId(2)]);
    assert_eq!(facts.columns_written, [column(3)].into_iter().collect());
    assert_eq!(
        program.analysis.operation(OpId(1)).columns_read,
        [column(2), column(3)].into_iter().collect()
    );
    assert_eq!(
        program.analysis.operation(OpId(0)).key_columns,
        [column(0), column(1)].into_iter().collect()
    );
}

#[test]
fn arithmetic_on_arguments_needs_no_reconnaissance() {
    let (tables, mut b) = start();
    let (i, one) = (b.parameter(1), b.integer(1));
    let next = b.arithmetic(Arithmetic::Add, i, one);
    let (_, read) = read_stock(&mut b, &tables, next, &[2]);
    b.emit(&read);
    let program = b.finish();
    assert_eq!(program.analysis.footprint(), Footprint::FromArguments);
    assert!(program.analysis.is_read_only());
}

#[test]
fn a_condition_decides_what_runs_and_what_was_assigned() {
    let (tables, mut b) = start();
    let (i, one, stock) = (b.parameter(1), b.integer(1), b.table(&tables.stock));
    let (record, read) = read_stock(&mut b, &tables, i, &[2]);
    let some = b.compare(Comparison::Greater, Class::Integer, read[0], one);
    let key = b.register(DataType::Integer);
    b.assign(key, i);
    b.then(some, |b| {
        b.update(stock, record, &[(column(3), i)], None);
        b.assign(key, one);
    });
    read_stock(&mut b, &tables, key, &[]);
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(kinds(&program), [Lookup, Read, Update, Lookup]);
    assert_eq!(between(&program, 1, 2), CONTROL);
    let dependency = program
        .analysis
        .dependencies_of(OpId(2))
        .iter()
        .find(|edge| edge.from.0 == 1);
    assert!(dependency.is_some_and(|edge| edge.is_key() && !edge.is_value()));
    // The record is the one of the arguments, whether or not it is written.
    assert_eq!(footprint(&program, 2), Footprint::FromArguments);
    assert_eq!(
        program.analysis.conditions(OpId(2)).collect::<Vec<_>>(),
        [OpId(1)]
    );
    // Which of two arguments' keys it is takes the data.
    assert_eq!(between(&program, 1, 3), KEY);
    assert_eq!(footprint(&program, 3), because_of(1));
}

#[test]
fn what_follows_a_conditional_return_depends_on_it_and_what_follows_a_raise_does_not() {
    for (step, expected) in [
        (Step::Return, CONTROL),
        (
            Step::Raise {
                error: failure("no"),
            },
            NONE,
        ),
    ] {
        let (tables, mut b) = start();
        let (i, one) = (b.parameter(1), b.integer(1));
        let (_, read) = read_stock(&mut b, &tables, i, &[2]);
        let some = b.compare(Comparison::Greater, Class::Integer, read[0], one);
        b.then(some, |b| b.push(step));
        let (_, read) = read_stock(&mut b, &tables, one, &[2]);
        b.emit(&read);
        let program = b.finish();
        assert_eq!(between(&program, 1, 2), expected);
        assert_eq!(program.analysis.footprint(), Footprint::FromArguments);
    }
}

#[test]
fn a_loop_carries_a_key_to_its_next_iteration() {
    let (tables, mut b) = start();
    let (i, array) = (b.parameter(1), b.parameter(2));
    let (key, element) = (b.register(DataType::Integer), b.register(DataType::Integer));
    b.assign(key, i);
    b.open();
    let (_, read) = read_stock(&mut b, &tables, key, &[2]);
    b.assign(key, read[0]);
    let (_, other) = read_stock(&mut b, &tables, element, &[3]);
    b.emit(&other);
    let body = b.close();
    b.push(Step::ForEach {
        variable: element,
        array,
        body,
    });
    let program = b.finish();
    assert_eq!(between(&program, 1, 0), KEY);
    let carried = program.analysis.dependencies_of(OpId(0));
    assert!(carried.len() == 1 && carried[0].is_loop_carried());
    assert_eq!(footprint(&program, 0), because_of(1));
    assert_eq!(footprint(&program, 2), Footprint::FromArguments);
    assert!(program.analysis.operation(OpId(2)).repeats);
}

#[test]
fn bounds_and_exits_decide_the_iterations() {
    let (tables, mut b) = start();
    let (i, one) = (b.parameter(1), b.integer(1));
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let variable = b.register(DataType::Integer);
    let step = b.constant(DataType::BigInt, Value::BigInt(1));
    b.open();
    let (_, inner) = read_stock(&mut b, &tables, i, &[3]);
    let enough = b.compare(Comparison::Greater, Class::Integer, inner[0], one);
    b.then(enough, |b| b.push(Step::Exit { depth: 0 }));
    let (_, by_iteration) = read_stock(&mut b, &tables, variable, &[2]);
    b.emit(&by_iteration);
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first: one,
        last: read[0],
        step,
        reverse: false,
        body,
    });
    let program = b.finish();
    use OperationKind::*;
    // The look-up in the loop is of the same key as the one before it.
    assert_eq!(kinds(&program), [Lookup, Read, Read, Lookup, Read]);
    assert_eq!(between(&program, 1, 2), CONTROL);
    assert_eq!(
        between(&program, 2, 2),
        CONTROL,
        "whether there is another iteration"
    );
    assert_eq!(between(&program, 2, 3), CONTROL);
    assert_eq!(
        between(&program, 1, 3),
        KEY.union(CONTROL),
        "how far the variable counts"
    );
    assert_eq!(footprint(&program, 2), Footprint::FromArguments);
    assert_eq!(footprint(&program, 3), because_of(1));
}

#[test]
fn the_records_of_a_scan_are_named_by_its_range() {
    let (tables, mut b) = start();
    let (w, stock) = (b.parameter(0), b.table(&tables.stock));
    let (record, total) = (b.record(), b.register(DataType::Integer));
    let zero = b.integer(0);
    b.assign(total, zero);
    b.open();
    let read = b.read(stock, record, &[column(2)], None)[0];
    let sum = b.arithmetic(Arithmetic::Add, total, read);
    b.assign(total, sum);
    let body = b.close();
    let range = Range {
        prefix: [w].into(),
        ..Range::default()
    };
    b.scan(stock, 0, range, false, record, body, None);
    read_stock(&mut b, &tables, total, &[]);
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(kinds(&program), [Scan, Read, Lookup]);
    assert_eq!(between(&program, 0, 1), KEY.union(CONTROL));
    assert_eq!(footprint(&program, 1), Footprint::FromArguments);
    assert_eq!(
        program.analysis.operation(OpId(0)).key_columns,
        [column(0)].into_iter().collect()
    );
    // The total depends on how many rows there are and on what they hold.
    assert_eq!(between(&program, 0, 2), KEY);
    assert_eq!(between(&program, 1, 2), KEY);
    assert_eq!(footprint(&program, 2), because_of(0));
}

#[test]
fn a_record_chosen_from_a_buffer_depends_on_what_chose_it_but_lies_in_the_range() {
    let (tables, mut b) = start();
    let (w, i, stock) = (b.parameter(0), b.parameter(1), b.table(&tables.stock));
    let (buffer, record) = (b.buffer(2), b.record());
    b.push(Step::BufferClear { buffer });
    b.open();
    let quantity = b.read(stock, record, &[column(2)], None)[0];
    let saved = b.register(DataType::BigInt);
    b.push(Step::SaveRecord {
        target: saved,
        record,
    });
    b.push(Step::BufferPush {
        buffer,
        row: [saved, quantity].into(),
    });
    let body = b.close();
    let range = Range {
        prefix: [w].into(),
        ..Range::default()
    };
    b.scan(stock, 0, range, false, record, body, None);
    let by = SortKey {
        column: 1,
        class: Class::Integer,
        descending: false,
        nulls_first: false,
    };
    b.push(Step::BufferSort {
        buffer,
        by: [by].into(),
    });
    b.open();
    let (taken, least) = (b.register(DataType::BigInt), b.register(DataType::Integer));
    let restored = b.record();
    b.push(Step::RestoreRecord {
        record: restored,
        source: taken,
    });
    b.update(stock, restored, &[(column(3), i)], None);
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    b.push(Step::ForBuffer {
        buffer,
        matching: Box::default(),
        row: [taken, least].into(),
        body,
    });
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(kinds(&program), [Scan, Read, Update]);
    assert!(between(&program, 0, 2).intersects(KEY));
    assert!(
        between(&program, 1, 2).intersects(KEY),
        "the order of the rows chose it"
    );
    assert_eq!(program.analysis.operation(OpId(2)).found_by, [OpId(0)]);
    assert_eq!(footprint(&program, 2), Footprint::FromArguments);
}

#[test]
fn an_insert_takes_its_key_from_indexed_columns() {
    let (tables, mut b) = start();
    let (w, i, orders) = (b.parameter(0), b.parameter(1), b.table(&tables.orders));
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let one = b.integer(1);
    let (_, other) = read_stock(&mut b, &tables, one, &[2]);
    let none = b.constant(DataType::SmallInt, Value::Null);
    let order_line = b.table(&tables.order_line);
    let amount = b.constant(support::money(), Value::Null);
    b.insert(orders, &[w, w, read[0], other[0], none], None, None);
    b.insert(order_line, &[w, w, i, i, read[0], amount], None, None);
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(
        kinds(&program),
        [Lookup, Read, Lookup, Read, Insert, Insert]
    );
    assert_eq!(between(&program, 1, 4), KEY, "a column of the primary key");
    assert_eq!(between(&program, 3, 4), KEY, "a column of another index");
    assert_eq!(footprint(&program, 4), because_of(1));
    assert_eq!(between(&program, 1, 5), VALUE);
    assert_eq!(footprint(&program, 5), Footprint::FromArguments);
}

#[test]
fn own_writes_are_seen_by_what_comes_after_them() {
    let (tables, mut b) = start();
    let (i, one, stock) = (b.parameter(1), b.integer(1), b.table(&tables.stock));
    let (first, before) = read_stock(&mut b, &tables, i, &[2]);
    b.emit(&before);
    b.update(stock, first, &[(column(2), one)], None);
    let (_, after) = read_stock(&mut b, &tables, one, &[2]);
    b.emit(&after);
    let (_, other) = read_stock(&mut b, &tables, one, &[3]);
    b.emit(&other);
    let item = b.table(&tables.item);
    let (record, _) = b.lookup(item, 0, &[i], None);
    b.delete(item, record, None);
    let (_, found) = b.lookup(item, 0, &[one], None);
    b.then(found, |b| b.emit(&[one]));
    let program = b.finish();
    use OperationKind::*;
    assert_eq!(
        kinds(&program),
        [Lookup, Read, Update, Lookup, Read, Lookup, Delete, Lookup]
    );
    assert_eq!(between(&program, 2, 1), NONE, "the read comes first");
    assert_eq!(between(&program, 2, 3), NONE, "the key is not updated");
    assert_eq!(between(&program, 2, 4), OWN_WRITE);
    assert_eq!(between(&program, 6, 7), OWN_WRITE);
    assert_eq!(between(&program, 6, 5), NONE);
}

#[test]
fn dependencies_are_found_from_both_ends() {
    let program = support::payment(&tables());
    let analysis = &program.analysis;
    for dependency in analysis.dependencies() {
        assert!(analysis.dependencies_of(dependency.to).contains(dependency));
        assert!(
            analysis
                .dependents_of(dependency.from)
                .any(|edge| edge == dependency)
        );
        let between = analysis.between(dependency.from, dependency.to);
        assert_eq!(between, dependency.kinds);
    }
    assert!(
        analysis
            .dependencies()
            .is_sorted_by_key(|edge| (edge.to, edge.from))
    );
}

#[test]
fn deep_nests_of_loops_are_analysed_in_time() {
    let (tables, mut b) = start();
    let (i, one) = (b.parameter(1), b.integer(1));
    let step = b.constant(DataType::BigInt, Value::BigInt(1));
    let key = b.register(DataType::Integer);
    b.assign(key, i);
    const DEPTH: usize = 40;
    let variables: Vec<Reg> = (0..DEPTH).map(|_| b.register(DataType::Integer)).collect();
    for _ in 0..DEPTH {
        b.open();
    }
    let (_, read) = read_stock(&mut b, &tables, key, &[2]);
    b.assign(key, read[0]);
    for variable in variables {
        let body = b.close();
        b.push(Step::ForRange {
            variable,
            first: one,
            last: key,
            step,
            reverse: false,
            body,
        });
    }
    // The innermost key comes from the iteration before.
    let program = b.finish();
    assert_eq!(between(&program, 1, 0), KEY.union(CONTROL));
}

#[test]
fn a_return_in_a_loop_decides_the_next_iteration() {
    let (tables, mut b) = start();
    let (i, one, array) = (b.parameter(1), b.integer(1), b.parameter(2));
    let element = b.register(DataType::Integer);
    b.open();
    let (_, read) = read_stock(&mut b, &tables, i, &[2]);
    let enough = b.compare(Comparison::Greater, Class::Integer, read[0], one);
    b.then(enough, |b| b.push(Step::Return));
    let body = b.close();
    b.push(Step::ForEach {
        variable: element,
        array,
        body,
    });
    let program = b.finish();
    assert_eq!(between(&program, 1, 0), CONTROL);
    assert_eq!(between(&program, 1, 1), CONTROL);
}
