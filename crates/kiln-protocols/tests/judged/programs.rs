//! The programs of trials: some random operations each.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::rows::{
    BY_CODE, BY_CODE_HASHED, BY_ID, BY_ID_HASHED, BY_LEFT, CODE, ID, LEFT, NOTE, RIGHT,
};
use super::{Extras, Mix};

/// The most operations of a program; each has a key, a value and a code as parameters.
pub const OPERATIONS_MAX: usize = 5;

/// What programs raise.
pub(super) const REJECTIONS: [SqlState; 3] = [
    SqlState::RAISE_EXCEPTION,
    SqlState::UNIQUE_VIOLATION,
    SqlState::CHECK_VIOLATION,
];

/// A program of some random operations.
pub fn program(table: &Arc<Table>, number: usize, extras: Extras, random: &mut Random) -> Program {
    let parameters = (0..OPERATIONS_MAX).flat_map(|at| {
        [
            (format!("key{at}"), DataType::Integer),
            (format!("value{at}"), DataType::BigInt),
            (format!("code{at}"), DataType::Integer),
        ]
    });
    let keys = ("keys".to_owned(), DataType::array(DataType::Integer));
    let parameters = parameters
        .chain([("note".to_owned(), DataType::Text)])
        .chain(extras.loops.then_some(keys));
    let mut b = ProgramBuilder::new(&format!("program{number}"), parameters);
    let items = b.table(table);
    // Some only read.
    let kinds = match (extras.mix, number % 4) {
        (_, 0) | (Mix::Moves, 2) => Kinds::Reads,
        _ => Kinds::All,
    };
    let operations = match (extras.mix, kinds) {
        // Whatever moves is met.
        (Mix::Moves, Kinds::Reads) => OPERATIONS_MAX,
        _ => 1 + random.below(OPERATIONS_MAX),
    };
    let loop_at = extras.loops.then(|| random.below(4 * OPERATIONS_MAX));
    for at in 0..operations {
        if Some(at) == loop_at {
            for_each_key(&mut b, items, kinds, random);
        }
        let parameters = [3 * at, 3 * at + 1, 3 * at + 2].map(|at| b.parameter(at));
        operation(&mut b, items, parameters, (kinds, extras), random);
    }
    if random.below(6) == 0 {
        b.push(raise());
    }
    let columns = [("seen", DataType::BigInt), ("note", DataType::Text)];
    b.returns(
        columns
            .map(|(name, data_type)| (name.to_owned(), data_type))
            .into(),
    );
    b.finish()
}

/// The step that ends a program with an error, so that all of it is taken back.
pub fn raise() -> Step {
    let failure = Failure {
        state: SqlState::RAISE_EXCEPTION,
        message: "not this time".to_owned(),
        arguments: [].into(),
        detail: None,
        hint: None,
        subject: None,
        position: None,
    };
    Step::Raise {
        error: Box::new(failure),
    }
}

/// What the operations of a program may do.
#[derive(Clone, Copy)]
enum Kinds {
    All,
    Reads,
}

fn operation(
    b: &mut ProgramBuilder,
    items: TableRef,
    [key, value, code]: [Reg; 3],
    (kinds, extras): (Kinds, Extras),
    random: &mut Random,
) {
    let note = b.parameter(3 * OPERATIONS_MAX);
    let column = [LEFT, RIGHT][random.below(2)];
    let reverse = random.below(2) == 0;
    let by_id = [BY_ID, BY_ID_HASHED][random.below(2)];
    let by_code = [BY_CODE, BY_CODE_HASHED][random.below(2)];
    let kind = match (kinds, extras.mix) {
        (Kinds::All, Mix::Everything) if extras.chains => random.below(20),
        (Kinds::All, Mix::Everything) => random.below(14),
        // Look-ups by either key, and scans.
        (Kinds::Reads, Mix::Everything) => [0, 1, 2, 12][random.below(4)],
        (Kinds::All, Mix::Moves) => [3, 5, 7, 7][random.below(4)],
        (Kinds::Reads, Mix::Moves) => 0,
        (Kinds::All, Mix::Values) => [1, 1, 3, 5][random.below(4)],
        (Kinds::Reads, Mix::Values) => 1,
    };
    match kind {
        kind @ 0..10 => {
            let (index, key) = match kind {
                0 => (by_code, code),
                _ => (by_id, key),
            };
            let (item, found) = b.lookup(items, index, &[key], None);
            b.open();
            match kind {
                0..3 => look(b, items, item, column),
                3..5 => modify(b, items, item, column, value, random.below(6) == 0),
                5 => b.update(items, item, &[(column, value)], None),
                6 if extras.texts => {
                    let seen = b.read(items, item, &[NOTE], None)[0];
                    let row = [value, seen].into();
                    b.push(Step::Emit { row });
                    b.update(items, item, &[(NOTE, note)], None);
                }
                6 => b.update(items, item, &[(LEFT, value), (RIGHT, value)], None),
                7 => {
                    b.update(items, item, &[(CODE, code)], None);
                    if extras.through_keys {
                        b.update(items, item, &[(CODE, key)], None);
                    }
                }
                8 if extras.primary_keys => b.update(items, item, &[(ID, code)], None),
                8 => b.update(items, item, &[(CODE, code), (RIGHT, value)], None),
                _ if extras.deletions => b.delete(items, item, None),
                _ => look(b, items, item, column),
            }
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
        }
        10 | 11 => {
            let inserted = b.register(DataType::Boolean);
            let conflict = Conflict {
                index: None,
                inserted,
            };
            let values = [key, code, value, value, note];
            let item = b.insert(items, &values, Some(conflict), None);
            b.open();
            // As an upsert does: the row in the way is changed instead.
            b.update(items, item, &[(column, value)], None);
            let otherwise = b.close();
            b.push(Step::If {
                condition: inserted,
                then: Vec::new(),
                otherwise,
            });
        }
        14.. => {
            let (item, found) = b.lookup(items, by_id, &[key], None);
            b.open();
            chain(b, items, (item, column), value, random);
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
        }
        kind => {
            let record = b.record();
            let (index, range) = match random.below(3) {
                0 => (BY_LEFT, Range::default()),
                1 => (BY_CODE, range_from(code, random)),
                _ => (BY_ID, range_from(key, random)),
            };
            b.open();
            match kind {
                12 => look(b, items, record, column),
                // The column that the scan does not go by.
                _ => modify(b, items, record, RIGHT, value, false),
            }
            if random.below(2) == 0 {
                b.push(Step::Exit { depth: 0 });
            }
            let body = b.close();
            b.scan(items, index, range, reverse, record, body, None);
        }
    }
}

/// Looks each of an array's keys up, whose records plans know beforehand, and does something to
/// those that are there.
fn for_each_key(b: &mut ProgramBuilder, items: TableRef, kinds: Kinds, random: &mut Random) {
    let keys = b.parameter(3 * OPERATIONS_MAX + 1);
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let [variable, last] = [(); 2].map(|()| b.register(DataType::BigInt));
    let key = b.register(DataType::Integer);
    b.scalar(Instruction::ArrayLength {
        target: last,
        array: keys,
    });
    let index = [BY_ID, BY_ID_HASHED, BY_CODE_HASHED][random.below(3)];
    b.open();
    b.scalar(Instruction::Element {
        target: key,
        array: keys,
        index: variable,
    });
    let (item, found) = b.lookup(items, index, &[key], None);
    b.open();
    match (kinds, random.below(2)) {
        (Kinds::All, 0) => modify(b, items, item, RIGHT, variable, false),
        _ => look(b, items, item, RIGHT),
    }
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first: one,
        last,
        step: one,
        reverse: false,
        body,
    });
}

/// Upwards from `value`, or downwards.
fn range_from(value: Reg, random: &mut Random) -> Range {
    let bound = Some(Bound {
        value,
        inclusive: random.below(2) == 0,
    });
    match random.below(2) {
        0 => Range {
            lower: bound,
            ..Range::default()
        },
        _ => Range {
            upper: bound,
            ..Range::default()
        },
    }
}

/// Follows a key that a row has, or goes one of two ways.
fn chain(
    b: &mut ProgramBuilder,
    items: TableRef,
    (item, column): (RecordReg, ColumnId),
    value: Reg,
    random: &mut Random,
) {
    let seen = b.read(items, item, &[column], None)[0];
    let three = b.constant(DataType::BigInt, Value::BigInt(3));
    let (rest, key) = (b.register(DataType::BigInt), b.register(DataType::Integer));
    b.scalar(Instruction::Integer {
        op: Arithmetic::Remainder,
        width: Width::Eight,
        target: rest,
        left: seen,
        right: three,
    });
    b.scalar(Instruction::CheckWidth {
        width: Width::Four,
        target: key,
        source: rest,
    });
    let other_column = [LEFT, RIGHT][random.below(2)];
    let follow = |b: &mut ProgramBuilder, modifies: bool| {
        let (other, found) = b.lookup(items, BY_ID, &[key], None);
        b.open();
        match modifies {
            true => modify(b, items, other, other_column, value, false),
            false => look(b, items, other, other_column),
        }
        let then = b.close();
        b.push(Step::If {
            condition: found,
            then,
            otherwise: Vec::new(),
        });
    };
    match random.below(3) {
        0 => follow(b, true),
        1 => {
            // What is read there is written here.
            follow(b, false);
            modify(b, items, item, column, seen, false);
        }
        _ => {
            let condition = b.register(DataType::Boolean);
            let one = b.constant(DataType::BigInt, Value::BigInt(1));
            b.scalar(Instruction::Compare {
                op: Comparison::Less,
                class: Class::Integer,
                target: condition,
                left: rest,
                right: one,
            });
            b.open();
            follow(b, true);
            let then = b.close();
            b.open();
            modify(b, items, item, column, value, false);
            let otherwise = b.close();
            b.push(Step::If {
                condition,
                then,
                otherwise,
            });
        }
    }
}

fn look(b: &mut ProgramBuilder, items: TableRef, record: RecordReg, column: ColumnId) {
    let seen = b.read(items, record, &[column], None)[0];
    let row = [seen, b.parameter(3 * OPERATIONS_MAX)].into();
    b.push(Step::Emit { row });
}

fn modify(
    b: &mut ProgramBuilder,
    items: TableRef,
    record: RecordReg,
    column: ColumnId,
    value: Reg,
    is_checked: bool,
) {
    let left = b.read(items, record, &[column], None)[0];
    let target = b.register(DataType::BigInt);
    b.scalar(Instruction::Integer {
        op: Arithmetic::Subtract,
        width: Width::Eight,
        target,
        left: value,
        right: left,
    });
    if is_checked {
        // About every second time this is below zero.
        let condition = b.register(DataType::Boolean);
        let zero = b.constant(DataType::BigInt, Value::BigInt(0));
        b.scalar(Instruction::Compare {
            op: Comparison::GreaterOrEqual,
            class: Class::Integer,
            target: condition,
            left: target,
            right: zero,
        });
        let failure = Failure {
            state: SqlState::CHECK_VIOLATION,
            message: format!("below zero in column {}", column.0),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        };
        b.scalar(Instruction::Require {
            condition,
            null_fails: false,
            error: Box::new(failure),
        });
    }
    b.update(items, record, &[(column, target)], None);
}
