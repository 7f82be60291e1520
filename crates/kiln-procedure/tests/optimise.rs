//! Which look-ups and reads are merged, and which must not be.

mod support;

use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::types::{DataType, Value};
use support::{Compile, Tables, column, failure, procedure, table, tables};

/// The number of operations of a kind that are left.
fn count(program: &Program, kind: OperationKind) -> usize {
    program
        .operations
        .iter()
        .filter(|operation| operation.kind == kind)
        .count()
}

/// All steps, each before those in its blocks.
fn steps(block: &[Step]) -> Vec<&Step> {
    let mut all = Vec::new();
    for step in block {
        all.push(step);
        match step {
            Step::If {
                then, otherwise, ..
            } => {
                all.extend(steps(then));
                all.extend(steps(otherwise));
            }
            Step::Loop { before, body, .. } => {
                all.extend(steps(before));
                all.extend(steps(body));
            }
            Step::Scan { body, .. }
            | Step::ForRange { body, .. }
            | Step::ForEach { body, .. }
            | Step::ForBuffer { body, .. } => all.extend(steps(body)),
            _ => {}
        }
    }
    all
}

/// Looks `stock` up by (w, i) and emits s_quantity when it is found.
fn select(b: &mut ProgramBuilder, tables: &Tables, w: Reg, i: Reg) {
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| {
        let read = b.read(stock, record, &[column(2)], None);
        b.emit(&read);
    });
}

/// Looks `stock` up by (w, i) and sets a column of it to `value`.
fn update(b: &mut ProgramBuilder, tables: &Tables, w: Reg, i: Reg, set: u16, value: Reg) {
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| {
        b.update(stock, record, &[(column(set), value)], None)
    });
}

fn start() -> (Tables, ProgramBuilder, Reg, Reg) {
    let mut b = procedure(
        "test",
        &[
            ("w", DataType::SmallInt),
            ("i", DataType::Integer),
            ("n", DataType::Integer),
        ],
    );
    b.returns(vec![("value".to_owned(), DataType::Integer)]);
    let (w, i) = (b.parameter(0), b.parameter(1));
    (tables(), b, w, i)
}

fn insert(b: &mut ProgramBuilder, tables: &Tables, w: Reg, i: Reg) {
    let stock = b.table(&tables.stock);
    let zero = b.integer(0);
    b.insert(stock, &[w, i, zero, zero], None, None);
}

fn delete(b: &mut ProgramBuilder, tables: &Tables, w: Reg, i: Reg) {
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| b.delete(stock, record, None));
}

/// A loop from 1 to the parameter `n`.
fn repeat(b: &mut ProgramBuilder, body: impl FnOnce(&mut ProgramBuilder, Reg)) {
    let (variable, last, first) = (b.register(DataType::Integer), b.parameter(2), b.integer(1));
    let step = b.constant(DataType::BigInt, Value::BigInt(1));
    b.open();
    body(b, variable);
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first,
        last,
        step,
        reverse: false,
        body,
    });
}

#[test]
fn statements_on_one_key_share_a_handle() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    let n = b.parameter(2);
    update(&mut b, &tables, w, i, 2, n);
    let program = b.finish();
    assert_eq!(count(&program, OperationKind::Lookup), 1);
    let intents = steps(&program.body)
        .into_iter()
        .filter_map(|step| match step {
            Step::Lookup { intent, .. } => Some(*intent),
            _ => None,
        });
    assert_eq!(intents.collect::<Vec<_>>(), [Intent::Write]);
    // Operations are numbered in order, and the update works on the handle that is left.
    let kinds: Vec<_> = program
        .operations
        .iter()
        .map(|operation| operation.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            OperationKind::Lookup,
            OperationKind::Read,
            OperationKind::Update
        ]
    );
}

#[test]
fn a_copy_of_the_key_is_the_key() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    let copy = b.register(DataType::Integer);
    b.assign(copy, i);
    select(&mut b, &tables, w, copy);
    let program = b.finish();
    assert_eq!(count(&program, OperationKind::Lookup), 1);
    let moves = steps(&program.body)
        .into_iter()
        .filter(|step| matches!(step, Step::Scalar(Instruction::Move { .. })));
    assert_eq!(moves.count(), 0, "the copy is not needed any more");
}

/// Looks two keys up, each `i` plus a number, computed anew for each; between the two `i`'s copy
/// may change.
fn look_sums_up(numbers: [i32; 2], changes: bool) -> Program {
    let (tables, mut b, w, i) = start();
    let base = b.register(DataType::Integer);
    b.assign(base, i);
    for number in numbers {
        let number = b.integer(number);
        let key = b.arithmetic(Arithmetic::Add, base, number);
        select(&mut b, &tables, w, key);
        if changes {
            let n = b.parameter(2);
            b.assign(base, n);
        }
    }
    b.finish()
}

#[test]
fn a_key_computed_twice_alike_is_one_key() {
    let program = look_sums_up([1, 1], false);
    assert_eq!(count(&program, OperationKind::Lookup), 1);
    let sums = steps(&program.body)
        .into_iter()
        .filter(|step| matches!(step, Step::Scalar(Instruction::Integer { .. })));
    assert_eq!(sums.count(), 1);
    for other in [look_sums_up([1, 2], false), look_sums_up([1, 1], true)] {
        assert_eq!(count(&other, OperationKind::Lookup), 2);
    }
}

#[test]
fn a_key_computed_in_one_branch_only_is_computed_again() {
    let (tables, mut b, w, i) = start();
    let (one, n) = (b.integer(1), b.parameter(2));
    let is_less = b.compare(Comparison::Less, Class::Integer, i, n);
    b.then(is_less, |b| {
        let key = b.arithmetic(Arithmetic::Add, i, one);
        select(b, &tables, w, key);
    });
    let key = b.arithmetic(Arithmetic::Add, i, one);
    select(&mut b, &tables, w, key);
    let program = b.finish();
    assert_eq!(count(&program, OperationKind::Lookup), 2);
    let sums = steps(&program.body)
        .into_iter()
        .filter(|step| matches!(step, Step::Scalar(Instruction::Integer { .. })));
    assert_eq!(sums.count(), 2);
}

#[test]
fn another_key_is_looked_up() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    let n = b.parameter(2);
    select(&mut b, &tables, w, n);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_key_register_that_was_assigned_between_is_another_key() {
    let (tables, mut b, w, i) = start();
    let key = b.register(DataType::Integer);
    b.assign(key, i);
    select(&mut b, &tables, w, key);
    let one = b.integer(1);
    b.scalar(Instruction::Integer {
        op: Arithmetic::Add,
        width: Width::Four,
        target: key,
        left: key,
        right: one,
    });
    select(&mut b, &tables, w, key);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_key_register_that_one_branch_assigned_is_another_key() {
    let (tables, mut b, w, i) = start();
    let (key, n) = (b.register(DataType::Integer), b.parameter(2));
    b.assign(key, i);
    select(&mut b, &tables, w, key);
    let some = b.compare(Comparison::Greater, Class::Integer, n, i);
    b.then(some, |b| b.assign(key, n));
    select(&mut b, &tables, w, key);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_lookup_in_one_branch_says_nothing_behind_it() {
    let (tables, mut b, w, i) = start();
    let n = b.parameter(2);
    let some = b.compare(Comparison::Greater, Class::Integer, n, i);
    b.then(some, |b| select(b, &tables, w, i));
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn behind_a_branch_that_raises_the_lookup_is_known() {
    let (tables, mut b, w, i) = start();
    let stock = b.table(&tables.stock);
    let (_, found) = b.lookup(stock, 0, &[w, i], None);
    b.then_else(
        found,
        |_| {},
        |b| {
            b.push(Step::Raise {
                error: failure("missing"),
            })
        },
    );
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 1);
}

#[test]
fn an_insert_or_a_delete_between_may_change_what_is_found() {
    type Write = fn(&mut ProgramBuilder, &Tables, Reg, Reg);
    let writes: [(Write, bool); 4] = [
        (insert, false),
        (insert, true),
        (delete, false),
        (delete, true),
    ];
    for (write, otherwise) in writes {
        let (tables, mut b, w, i) = start();
        let n = b.parameter(2);
        select(&mut b, &tables, w, i);
        let some = b.compare(Comparison::Greater, Class::Integer, n, i);
        // In a branch, and of another key: both are as bad as the plain case.
        if otherwise {
            b.then_else(some, |_| {}, |b| write(b, &tables, w, n));
        } else {
            b.then(some, |b| write(b, &tables, w, n));
        }
        select(&mut b, &tables, w, i);
        let program = b.finish();
        let own = count(&program, OperationKind::Delete);
        assert_eq!(count(&program, OperationKind::Lookup), 2 + own);
    }
}

#[test]
fn an_insert_into_another_table_changes_nothing() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    let item = b.table(&tables.item);
    let price = b.constant(support::money(), Value::Null);
    b.insert(item, &[i, price], None, None);
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 1);
}

#[test]
fn an_update_matters_when_it_changes_the_key() {
    for (set, lookups) in [(2, 2), (1, 3)] {
        let (tables, mut b, w, i) = start();
        let n = b.parameter(2);
        select(&mut b, &tables, w, i);
        update(&mut b, &tables, w, n, set, n);
        select(&mut b, &tables, w, i);
        assert_eq!(
            count(&b.finish(), OperationKind::Lookup),
            lookups,
            "column {set} is set"
        );
    }
}

#[test]
fn a_loop_uses_what_was_found_before_it() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    repeat(&mut b, |b, _| select(b, &tables, w, i));
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 1);
}

#[test]
fn a_write_at_the_end_of_an_iteration_comes_before_the_next_iteration() {
    let (tables, mut b, w, i) = start();
    select(&mut b, &tables, w, i);
    repeat(&mut b, |b, variable| {
        select(b, &tables, w, i);
        insert(b, &tables, w, variable);
    });
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 3);
}

#[test]
fn a_key_of_another_iteration_is_another_key() {
    let (tables, mut b, w, i) = start();
    let key = b.register(DataType::Integer);
    b.assign(key, i);
    repeat(&mut b, |b, variable| {
        select(b, &tables, w, key);
        b.assign(key, variable);
        select(b, &tables, w, key);
        select(b, &tables, w, variable);
    });
    // The second and third of an iteration are one; the first has the key of the iteration before.
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_lookup_in_a_loop_says_nothing_behind_it() {
    let (tables, mut b, w, i) = start();
    repeat(&mut b, |b, _| select(b, &tables, w, i));
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_labelled_block_is_followed_like_a_block() {
    let (tables, mut b, w, i) = start();
    b.open();
    select(&mut b, &tables, w, i);
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    b.push(Step::Loop {
        before: Vec::new(),
        condition: None,
        body,
    });
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 1);
}

#[test]
fn a_block_left_before_its_lookup_says_nothing() {
    let (tables, mut b, w, i) = start();
    let n = b.parameter(2);
    b.open();
    let some = b.compare(Comparison::Greater, Class::Integer, n, i);
    b.then(some, |b| b.push(Step::Exit { depth: 0 }));
    select(&mut b, &tables, w, i);
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    b.push(Step::Loop {
        before: Vec::new(),
        condition: None,
        body,
    });
    select(&mut b, &tables, w, i);
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

/// Scans the orders of (1, 2) and, for each, looks it up by its key; then sets column `set`.
fn scan_and_lookup(set: u16) -> Program {
    let (tables, mut b, w, i) = start();
    let orders = b.table(&tables.orders);
    let record = b.record();
    let district = b.constant(DataType::SmallInt, Value::SmallInt(2));
    b.open();
    let o_id = b.read(orders, record, &[column(2)], None)[0];
    let (same, found) = b.lookup(orders, 0, &[w, district, o_id], None);
    b.then(found, |b| {
        let value = if set == 2 { i } else { district };
        b.update(orders, same, &[(column(set), value)], None);
    });
    let body = b.close();
    let range = Range {
        prefix: [w, district].into(),
        ..Range::default()
    };
    b.scan(orders, 0, range, false, record, body, None);
    b.finish()
}

#[test]
fn the_row_of_a_scan_is_recognised_by_its_key() {
    let program = scan_and_lookup(4);
    assert_eq!(count(&program, OperationKind::Lookup), 0);
    // It is certainly found: the conditional is gone too.
    assert!(
        !steps(&program.body)
            .iter()
            .any(|step| matches!(step, Step::If { .. }))
    );
    let scan = steps(&program.body)
        .into_iter()
        .find_map(|step| match step {
            Step::Scan { record, intent, .. } => Some((*record, *intent)),
            _ => None,
        });
    let update = steps(&program.body)
        .into_iter()
        .find_map(|step| match step {
            Step::Update { record, .. } => Some((*record, Intent::Write)),
            _ => None,
        });
    assert_eq!(scan, update);
}

#[test]
fn a_row_whose_prefix_is_updated_somewhere_is_not_recognised() {
    // The order's number is read in each iteration; the prefix is not.
    assert_eq!(count(&scan_and_lookup(2), OperationKind::Lookup), 0);
    assert_eq!(count(&scan_and_lookup(0), OperationKind::Lookup), 1);
}

#[test]
fn a_key_that_may_be_null_is_looked_up() {
    let mail = table(
        20,
        "mail",
        &[("id", DataType::Integer), ("address?", DataType::Text)],
        1,
        &[("mail_address", &[1], true)],
    );
    let mut b = procedure("test", &[("id", DataType::Integer)]);
    b.returns(vec![("id".to_owned(), DataType::Integer)]);
    let reference = b.table(&mail);
    let id = b.parameter(0);
    let (record, found) = b.lookup(reference, 0, &[id], None);
    b.then(found, |b| {
        let address = b.read(reference, record, &[column(1)], None)[0];
        let (record, found) = b.lookup(reference, 1, &[address], None);
        b.then(found, |b| {
            let id = b.read(reference, record, &[column(0)], None);
            b.emit(&id);
        });
    });
    // With an address of NULL the second look-up finds nothing, though the record is known.
    assert_eq!(count(&b.finish(), OperationKind::Lookup), 2);
}

#[test]
fn a_column_is_read_once() {
    let (tables, mut b, w, i) = start();
    let stock = b.table(&tables.stock);
    select(&mut b, &tables, w, i);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| {
        let first = b.read(stock, record, &[column(2)], None);
        b.emit(&first);
        let again = b.read(stock, record, &[column(2), column(3)], None);
        b.emit(&again[..1]);
        b.emit(&again[1..]);
    });
    let program = b.finish();
    // The first conditional's reads are not known in the second; there, one read takes both.
    assert_eq!(count(&program, OperationKind::Read), 2);
}

/// Reads a column, writes it through `writer`'s handle, reads it again.
fn read_write_read(money: bool, other_handle: bool) -> usize {
    let (tables, mut b, w, i) = start();
    let n = b.parameter(2);
    let (reference, key, position) = if money {
        (b.table(&tables.item), vec![i], column(1))
    } else {
        (b.table(&tables.stock), vec![w, i], column(2))
    };
    let value = if money {
        let value = b.register(DataType::NUMERIC);
        b.scalar(Instruction::IntegerToDecimal {
            target: value,
            source: n,
        });
        value
    } else {
        n
    };
    let (record, found) = b.lookup(reference, 0, &key, None);
    b.then(found, |b| {
        let is_less = b.register(DataType::Boolean);
        let class = if money {
            Class::Decimal
        } else {
            Class::Integer
        };
        let emit_read = |b: &mut ProgramBuilder| {
            let read = b.read(reference, record, &[position], None)[0];
            b.scalar(Instruction::Compare {
                op: Comparison::Less,
                class,
                target: is_less,
                left: read,
                right: value,
            });
            b.then(is_less, |b| b.emit(&[n]));
        };
        emit_read(b);
        if other_handle {
            let mut key = key.clone();
            *key.last_mut().expect("keys have columns") = n;
            let (other, found) = b.lookup(reference, 0, &key, None);
            b.then(found, |b| {
                b.update(reference, other, &[(position, value)], None)
            });
        } else {
            b.update(reference, record, &[(position, value)], None);
        }
        emit_read(b);
    });
    count(&b.finish(), OperationKind::Read)
}

#[test]
fn a_column_just_written_is_known_when_it_comes_back_unchanged() {
    assert_eq!(read_write_read(false, false), 1);
}

#[test]
fn a_numeric_column_just_written_is_read_as_it_takes_its_scale() {
    assert_eq!(read_write_read(true, false), 2);
}

#[test]
fn a_column_written_through_another_handle_is_read_again() {
    assert_eq!(read_write_read(false, true), 2);
}

#[test]
fn columns_that_nobody_uses_are_not_read() {
    let (tables, mut b, w, i) = start();
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.then(found, |b| {
        let read = b.read(stock, record, &[column(0), column(1), column(2)], None);
        b.emit(&read[2..]);
    });
    let program = b.finish();
    let read = steps(&program.body)
        .into_iter()
        .find_map(|step| match step {
            Step::Read { columns, .. } => {
                Some(columns.iter().map(|(column, _)| column.0).collect())
            }
            _ => None,
        });
    assert_eq!(read, Some(vec![2]));
}

#[test]
fn what_may_raise_stays() {
    let (_, mut b, _, i) = start();
    let zero = b.integer(0);
    b.arithmetic(Arithmetic::Divide, i, zero);
    let unused = b.register(DataType::Boolean);
    b.scalar(Instruction::IsNull {
        target: unused,
        source: i,
        negated: false,
    });
    let program = b.finish();
    let kept = steps(&program.body);
    assert!(
        matches!(kept[..], [Step::Scalar(Instruction::Integer { .. })]),
        "{kept:?}"
    );
}

#[test]
fn a_handle_that_went_through_a_buffer_carries_the_intent() {
    let (tables, mut b, w, i) = start();
    let stock = b.table(&tables.stock);
    let (buffer, record) = (b.buffer(1), b.record());
    b.push(Step::BufferClear { buffer });
    b.open();
    let saved = b.register(DataType::BigInt);
    b.push(Step::SaveRecord {
        target: saved,
        record,
    });
    b.push(Step::BufferPush {
        buffer,
        row: [saved].into(),
    });
    let body = b.close();
    let range = Range {
        prefix: [w].into(),
        ..Range::default()
    };
    b.scan(stock, 0, range, false, record, body, None);
    b.open();
    let (restored, taken) = (b.record(), b.register(DataType::BigInt));
    b.push(Step::RestoreRecord {
        record: restored,
        source: taken,
    });
    b.update(stock, restored, &[(column(2), i)], None);
    let body = b.close();
    b.push(Step::ForBuffer {
        buffer,
        matching: Box::default(),
        row: [taken].into(),
        body,
    });
    let item = b.table(&tables.item);
    b.lookup(item, 0, &[i], None);
    let program = b.finish();
    let intents: Vec<Intent> = steps(&program.body)
        .into_iter()
        .filter_map(|step| match step {
            Step::Scan { intent, .. } | Step::Lookup { intent, .. } => Some(*intent),
            _ => None,
        })
        .collect();
    assert_eq!(intents, [Intent::Write, Intent::Read]);
}

/// A procedure that reads columns 2 and 3 of a stock row, lets `between` do something, and emits
/// one of them, as `choice` says.
fn choose(
    tables: &Tables,
    between: impl FnOnce(&mut ProgramBuilder, TableRef, RecordReg),
) -> Program {
    let parameters = [
        ("w", DataType::SmallInt),
        ("i", DataType::Integer),
        ("choice", DataType::Boolean),
    ];
    let mut b = procedure("choose", &parameters);
    let (w, i, choice) = (b.parameter(0), b.parameter(1), b.parameter(2));
    let stock = b.table(&tables.stock);
    let (record, found) = b.lookup(stock, 0, &[w, i], None);
    b.open();
    let read = b.read(stock, record, &[column(2), column(3)], None);
    between(&mut b, stock, record);
    let branches = read.iter().map(|register| {
        vec![Step::Emit {
            row: [*register].into(),
        }]
    });
    let mut branches: Vec<Block> = branches.collect();
    let (otherwise, then) = (branches.pop().expect("two"), branches.pop().expect("two"));
    b.push(Step::If {
        condition: choice,
        then,
        otherwise,
    });
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    let data_type = tables.stock.schema().columns[2].data_type.clone();
    b.returns(vec![("chosen".to_owned(), data_type)]);
    b.finish()
}

#[test]
fn a_column_is_read_in_the_branch_that_needs_it() {
    let tables = tables();
    let program = choose(&tables, |_, _, _| {});
    let all = steps(&program.body);
    let in_branches = all.iter().filter(|step| match step {
        Step::If { then, otherwise, .. } => [then, otherwise].iter().all(|branch| {
            matches!(&branch[..], [Step::Read { columns, .. }, Step::Emit { .. }] if columns.len() == 1)
        }),
        _ => false,
    });
    assert_eq!(in_branches.count(), 1, "{:#?}", program.body);
    assert_eq!(count(&program, OperationKind::Read), 2);
}

#[test]
fn a_column_that_is_written_in_between_is_read_before() {
    let tables = tables();
    let program = choose(&tables, |b, stock, record| {
        let data_type = tables.stock.schema().columns[2].data_type.clone();
        let null_free = b.constant(data_type, Value::SmallInt(7));
        b.update(stock, record, &[(column(2), null_free)], None);
    });
    let all = steps(&program.body);
    let position = |wanted: &dyn Fn(&Step) -> bool| all.iter().position(|step| wanted(step));
    let reads_it = position(
        &|step| matches!(step, Step::Read { columns, .. } if columns.iter().any(|(read, _)| *read == column(2))),
    );
    let update = position(&|step| matches!(step, Step::Update { .. }));
    assert!(
        reads_it < update && reads_it.is_some(),
        "{:#?}",
        program.body
    );
}

#[test]
fn a_loop_over_array_elements_is_prefetched_and_one_over_data_is_not() {
    let tables = tables();
    for from_array in [true, false] {
        let parameters = [
            ("w", DataType::SmallInt),
            ("items", DataType::array(DataType::Integer)),
            ("last", DataType::BigInt),
        ];
        let mut b = procedure("look", &parameters);
        let (w, items, last) = (b.parameter(0), b.parameter(1), b.parameter(2));
        let one = b.constant(DataType::BigInt, Value::BigInt(1));
        let (variable, item) = (b.register(DataType::BigInt), b.register(DataType::Integer));
        b.open();
        b.scalar(Instruction::Element {
            target: item,
            array: items,
            index: variable,
        });
        if !from_array {
            // Written twice: which value reaches the look-up is not followed.
            b.scalar(Instruction::Element {
                target: item,
                array: items,
                index: one,
            });
        }
        select(&mut b, &tables, w, item);
        let body = b.close();
        b.push(Step::ForRange {
            variable,
            first: one,
            last,
            step: one,
            reverse: false,
            body,
        });
        let data_type = tables.stock.schema().columns[2].data_type.clone();
        b.returns(vec![("quantity".to_owned(), data_type)]);
        let program = b.finish();
        let prefetches = program.body.iter().filter_map(|step| match step {
            Step::Prefetch { lookups, .. } => Some(lookups),
            _ => None,
        });
        let keys: Vec<&[PrefetchKey]> =
            prefetches.flatten().map(|lookup| &lookup.key[..]).collect();
        if from_array {
            assert_eq!(
                keys,
                [[PrefetchKey::Register(w), PrefetchKey::Element(items)]]
            );
        } else {
            assert!(keys.is_empty(), "{keys:?}");
        }
    }
}

/// A variable that is `i` at first and then, in a block of its own, the value of a CASE; with
/// `leaves`, the block may be left between the two. The number of moves that are left.
fn assign_case(leaves: bool) -> usize {
    let (_, mut b, _, i) = start();
    let n = b.parameter(2);
    let [variable, value] = [(); 2].map(|()| b.register(DataType::Integer));
    let is_less = b.register(DataType::Boolean);
    let moved = |target, source| Instruction::Move { target, source };
    b.scalar(moved(variable, i));
    b.scalar(Instruction::Compare {
        op: Comparison::Less,
        class: Class::Integer,
        target: is_less,
        left: i,
        right: n,
    });
    b.open();
    let mut branch = |op| {
        b.open();
        b.scalar(Instruction::Integer {
            op,
            width: Width::Four,
            target: value,
            left: i,
            right: n,
        });
        b.close()
    };
    let (then, otherwise) = (branch(Arithmetic::Add), branch(Arithmetic::Multiply));
    b.push(Step::If {
        condition: is_less,
        then,
        otherwise,
    });
    if leaves {
        b.then(is_less, |b| b.push(Step::Exit { depth: 0 }));
    }
    b.scalar(moved(variable, value));
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    b.push(Step::Loop {
        before: Vec::new(),
        condition: None,
        body,
    });
    b.emit(&[variable]);
    let program = b.finish();
    let is_move = |step: &&&Step| matches!(step, Step::Scalar(Instruction::Move { .. }));
    steps(&program.body).iter().filter(is_move).count()
}

#[test]
fn a_case_is_computed_where_it_is_assigned() {
    // The first assignment has no effect.
    assert_eq!(assign_case(false), 0);
}

#[test]
fn a_case_is_not_computed_into_a_variable_that_a_path_leaves_alone() {
    assert_eq!(assign_case(true), 2);
}
