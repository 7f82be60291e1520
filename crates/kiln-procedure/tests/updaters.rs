//! Which updates are deferred to the commit, and what their updaters do.

mod support;

use kiln_procedure::analysis::{Reason, Verdict};
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder, Updater};
use kiln_storage::error::SqlState;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::types::{DataType, Decimal};
use support::*;

fn set(columns: &[u16]) -> ColumnSet {
    columns.iter().map(|column| ColumnId(*column)).collect()
}

/// A procedure with the parameters `key` (SMALLINT) and `amount` (NUMERIC) that looks a warehouse
/// up and runs `body` with the record when it is there.
fn on_warehouse(body: impl FnOnce(&mut ProgramBuilder, TableRef, RecordReg, Reg)) -> Program {
    let tables = tables();
    let mut b = procedure("test", &[("key", DataType::SmallInt), ("amount", money())]);
    let warehouse = b.table(&tables.warehouse);
    let (key, amount) = (b.parameter(0), b.parameter(1));
    let (record, found) = b.lookup(warehouse, 0, &[key], None);
    b.then(found, |b| body(b, warehouse, record, amount));
    b.finish()
}

fn verdict(program: &Program, column: u16) -> &Verdict {
    let mut verdicts = program.analysis.verdicts().iter();
    let found = verdicts.find(|verdict| verdict.column == ColumnId(column));
    &found.expect("the column is updated").verdict
}

fn reasons(program: &Program, column: u16) -> Vec<Reason> {
    match verdict(program, column) {
        Verdict::Observed(observers) => observers.iter().map(|observer| observer.reason).collect(),
        other => panic!("{other:?} although it is observed"),
    }
}

#[test]
fn a_sum_that_nobody_looks_at_is_left_to_the_commit() {
    let program = on_warehouse(|b, warehouse, record, amount| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let sum = b.add_money(ytd, amount);
        b.update(warehouse, record, &[(column(2), sum)], None);
    });
    let [deferred] = program.analysis.deferrable() else {
        panic!("one update is deferred to the commit")
    };
    assert_eq!(deferred.columns, set(&[2]));
    assert_eq!(deferred.unread, [(OpId(1), set(&[2]))]);
    assert_eq!(deferred.operands.as_ref(), [Reg(1)]);
    let updater = Updater::of(&deferred.updater);
    assert!(updater.can_raise());
    let observed = program.analysis.observed(OpId(0));
    assert_eq!(observed.at_once, set(&[2]));
    assert_eq!(observed.deferring, ColumnSet::EMPTY);
    assert_eq!(observed.written, set(&[2]));
    // It adds.
    let money = |cents: i128| Slot::from_decimal(Decimal::new(cents, 2).expect("it is short"));
    let mut memory = Memory::default();
    updater.prepare(&[money(250)], &mut memory);
    let [(old, register)] = updater.inputs() else {
        panic!("one column is read")
    };
    assert_eq!(*old, column(2));
    memory.slots[register.0 as usize] = money(1000);
    updater.run(&mut memory).expect("the sum is small");
    let [(new, register)] = updater.outputs() else {
        panic!("one column is written")
    };
    assert_eq!(*new, column(2));
    assert_eq!(
        memory.slots[register.0 as usize].as_decimal().to_string(),
        "12.50"
    );
    // And overflows as the procedure would.
    let (_, register) = updater.inputs()[0];
    memory.slots[register.0 as usize] = money(999_999_999_999);
    updater.prepare(&[money(250)], &mut memory);
    let error = updater.run(&mut memory).expect_err("thirteen digits");
    assert_eq!(error.state(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
}

#[test]
fn what_is_returned_is_observed() {
    // The old value, and the new one.
    for returns_new in [false, true] {
        let tables = tables();
        let mut b = procedure("test", &[("key", DataType::SmallInt), ("amount", money())]);
        b.returns(vec![("ytd".to_owned(), money())]);
        let warehouse = b.table(&tables.warehouse);
        let (key, amount) = (b.parameter(0), b.parameter(1));
        let (record, found) = b.lookup(warehouse, 0, &[key], None);
        b.then(found, |b| {
            let ytd = b.read(warehouse, record, &[column(2)], None)[0];
            let sum = b.add_money(ytd, amount);
            b.update(warehouse, record, &[(column(2), sum)], None);
            let row = [if returns_new { sum } else { ytd }].into();
            b.push(Step::Emit { row });
        });
        let program = b.finish();
        assert_eq!(reasons(&program, 2), [Reason::Returned]);
        assert!(program.analysis.deferrable().is_empty());
    }
}

#[test]
fn what_another_operation_takes_is_observed() {
    let tables = tables();
    let mut b = procedure("test", &[("key", DataType::SmallInt), ("amount", money())]);
    let warehouse = b.table(&tables.warehouse);
    let history = b.table(&tables.history);
    let (key, amount) = (b.parameter(0), b.parameter(1));
    let (id, name) = (b.integer(7), b.register(DataType::VarChar(Some(16))));
    b.scalar(Instruction::SetNull { target: name });
    let (record, found) = b.lookup(warehouse, 0, &[key], None);
    b.then(found, |b| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let sum = b.add_money(ytd, amount);
        b.update(warehouse, record, &[(column(2), sum)], None);
        b.insert(history, &[id, key, sum, name], None, None);
    });
    let program = b.finish();
    assert_eq!(reasons(&program, 2), [Reason::Written(OpId(3))]);
}

#[test]
fn what_decides_a_branch_is_observed() {
    let program = on_warehouse(|b, warehouse, record, amount| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let sum = b.add_money(ytd, amount);
        b.update(warehouse, record, &[(column(2), sum)], None);
        let is_less = b.compare(Comparison::Less, Class::Decimal, sum, amount);
        b.then(is_less, |b| {
            b.push(Step::Raise {
                error: failure("less"),
            })
        });
    });
    assert_eq!(reasons(&program, 2), [Reason::Branch]);
}

/// `SET w_ytd = CASE WHEN w_ytd > amount THEN w_ytd - amount ELSE w_ytd + 91 END`, as in stock.
#[test]
fn a_conditional_within_the_new_value_is_part_of_it() {
    let program = on_warehouse(|b, warehouse, record, amount| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let new = b.register(money());
        let is_less = b.compare(Comparison::Less, Class::Decimal, ytd, amount);
        b.open();
        let sum = b.add_money(ytd, amount);
        b.assign(new, sum);
        let then = b.close();
        b.open();
        b.assign(new, amount);
        let otherwise = b.close();
        b.push(Step::If {
            condition: is_less,
            then,
            otherwise,
        });
        b.update(warehouse, record, &[(column(2), new)], None);
    });
    let [deferred] = program.analysis.deferrable() else {
        panic!("it is deferred to the commit")
    };
    let money = |cents: i128| Slot::from_decimal(Decimal::new(cents, 2).expect("it is short"));
    let updater = Updater::of(&deferred.updater);
    for (old, new) in [(100, "4.00"), (400, "3.00")] {
        let mut memory = Memory::default();
        updater.prepare(&[money(300)], &mut memory);
        let (_, register) = updater.inputs()[0];
        memory.slots[register.0 as usize] = money(old);
        updater.run(&mut memory).expect("the sum is small");
        let (_, register) = updater.outputs()[0];
        assert_eq!(
            memory.slots[register.0 as usize].as_decimal().to_string(),
            new
        );
    }
}

/// The test for NULL follows from the operand, which the procedure looks at; a CHECK moves.
#[test]
fn not_null_is_proven_and_a_check_moves() {
    let program = on_warehouse(|b, warehouse, record, amount| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let sum = b.add_money(ytd, amount);
        let is_null = b.register(DataType::Boolean);
        b.scalar(Instruction::IsNull {
            target: is_null,
            source: sum,
            negated: false,
        });
        b.then(is_null, |b| {
            b.scalar(Instruction::RequireNotNull {
                source: sum,
                error: failure("is null"),
            })
        });
        let is_more = b.compare(Comparison::Greater, Class::Decimal, sum, amount);
        b.scalar(Instruction::Require {
            condition: is_more,
            null_fails: false,
            error: failure("check"),
        });
        b.update(warehouse, record, &[(column(2), sum)], None);
    });
    let [deferred] = program.analysis.deferrable() else {
        panic!("it is deferred to the commit")
    };
    assert_eq!(deferred.guard.as_ref(), [Reg(1)]);
    let expected = Verdict::Deferred {
        can_raise: true,
        not_null_proven: true,
    };
    assert_eq!(*verdict(&program, 2), expected);
    let updater = Updater::of(&deferred.updater);
    let money = |cents: i128| Slot::from_decimal(Decimal::new(cents, 2).expect("it is short"));
    let mut memory = Memory::default();
    updater.prepare(&[money(300)], &mut memory);
    let (_, register) = updater.inputs()[0];
    memory.slots[register.0 as usize] = money(-5);
    let error = updater.run(&mut memory).expect_err("the check fails");
    assert_eq!(error.message(), "check");
}

#[test]
fn an_indexed_column_is_observed() {
    let tables = tables();
    let mut b = procedure(
        "test",
        &[
            ("key", DataType::SmallInt),
            ("name", DataType::VarChar(Some(16))),
        ],
    );
    let customer = b.table(&tables.customer);
    let (key, name) = (b.parameter(0), b.parameter(1));
    let id = b.integer(1);
    let (record, found) = b.lookup(customer, 0, &[key, key, id], None);
    b.then(found, |b| {
        let last = b.read(customer, record, &[column(3)], None)[0];
        let longer = b.register(DataType::VarChar(Some(16)));
        b.scalar(Instruction::Concat {
            target: longer,
            left: name,
            right: last,
        });
        b.update(customer, record, &[(column(3), longer)], None);
    });
    let program = b.finish();
    assert!(reasons(&program, 3).contains(&Reason::Indexed(OpId(2))));
    // The entry's old key is observed, which ends with the primary key.
    assert_eq!(
        program.analysis.observed(OpId(0)).deferring,
        set(&[0, 1, 2, 3])
    );
}

/// One column of an update may be observed and another one not.
#[test]
fn an_update_may_be_left_to_the_commit_in_part() {
    let tables = tables();
    let mut b = procedure(
        "test",
        &[("key", DataType::SmallInt), ("by", DataType::Integer)],
    );
    b.returns(vec![("quantity".to_owned(), DataType::Integer)]);
    let stock = b.table(&tables.stock);
    let (key, by) = (b.parameter(0), b.parameter(1));
    let (record, found) = b.lookup(stock, 0, &[key, by], None);
    b.then(found, |b| {
        let read = b.read(stock, record, &[column(2), column(3)], None);
        let left = b.arithmetic(Arithmetic::Subtract, read[0], by);
        let ytd = b.arithmetic(Arithmetic::Add, read[1], by);
        b.update(stock, record, &[(column(2), left), (column(3), ytd)], None);
        b.push(Step::Emit { row: [left].into() });
    });
    let program = b.finish();
    // What may raise behind the deferred sum would come before it: here it lies before.
    assert_eq!(reasons(&program, 2), [Reason::Returned]);
    assert!(matches!(verdict(&program, 3), Verdict::Deferred { .. }));
    let observed = program.analysis.observed(OpId(0));
    assert_eq!(observed.deferring, set(&[2]));
    assert_eq!(
        program.analysis.deferrable()[0].unread,
        [(OpId(1), set(&[3]))]
    );
}

/// A sum over the iterations of a loop is no operand: the elided step itself would have made it.
#[test]
fn a_value_carried_from_iteration_to_iteration_is_observed() {
    let tables = tables();
    let mut b = procedure("test", &[("key", DataType::SmallInt), ("amount", money())]);
    let warehouse = b.table(&tables.warehouse);
    let (key, amount) = (b.parameter(0), b.parameter(1));
    let (one, sum) = (b.integer(1), b.register(money()));
    let (line, step) = (
        b.register(DataType::Integer),
        b.constant(DataType::BigInt, 1_i64.into()),
    );
    b.assign(sum, amount);
    b.open();
    let (record, found) = b.lookup(warehouse, 0, &[key], None);
    b.then(found, |b| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let exact = b.register(DataType::NUMERIC);
        b.scalar(Instruction::Decimal {
            op: Arithmetic::Add,
            target: exact,
            left: sum,
            right: ytd,
        });
        b.scalar(Instruction::Rescale {
            target: sum,
            source: exact,
            precision: 12,
            scale: 2,
        });
        b.update(warehouse, record, &[(column(2), sum)], None);
    });
    let body = b.close();
    b.push(Step::ForRange {
        variable: line,
        first: one,
        last: one,
        step,
        reverse: false,
        body,
    });
    let program = b.finish();
    assert!(program.analysis.deferrable().is_empty());
}

#[test]
fn payment_and_new_order() {
    let tables = tables();
    let payment = payment(&tables);
    let deferred: Vec<ColumnSet> = payment
        .analysis
        .deferrable()
        .iter()
        .map(|update| update.columns)
        .collect();
    // The warehouse's and the district's takings, the balance, and the customer's data.
    assert_eq!(deferred, [set(&[2]), set(&[3]), set(&[6]), set(&[7])]);
    let new_order = new_order(&tables);
    let [stock] = new_order.analysis.deferrable() else {
        panic!("the stock alone is deferred to the commit")
    };
    assert_eq!(stock.columns, set(&[2, 3]));
    assert!(matches!(verdict(&new_order, 4), Verdict::Observed(_)));
}

/// What is only written, and tested for NULL together with what is computed, is looked at as well.
#[test]
fn the_guard_holds_what_is_only_written() {
    let tables = tables();
    let parameters = [
        ("key", DataType::SmallInt),
        ("amount", money()),
        ("name", DataType::Text),
    ];
    let mut b = procedure("test", &parameters);
    let warehouse = b.table(&tables.warehouse);
    let [key, amount, name] = [0, 1, 2].map(|position| b.parameter(position));
    let (record, found) = b.lookup(warehouse, 0, &[key], None);
    b.then(found, |b| {
        let ytd = b.read(warehouse, record, &[column(2)], None)[0];
        let sum = b.add_money(ytd, amount);
        let is_null = b.register(DataType::Boolean);
        b.scalar(Instruction::AnyNull {
            target: is_null,
            sources: [sum, name].into(),
        });
        b.then(is_null, |b| {
            for source in [sum, name] {
                b.scalar(Instruction::RequireNotNull {
                    source,
                    error: failure("is null"),
                });
            }
        });
        b.update(
            warehouse,
            record,
            &[(column(2), sum), (column(1), name)],
            None,
        );
    });
    let program = b.finish();
    let [deferred] = program.analysis.deferrable() else {
        panic!("it is deferred to the commit")
    };
    assert_eq!(deferred.guard.as_ref(), [amount, name]);
}
