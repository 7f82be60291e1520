//! Programs for single records, made on demand for Rust code that works without SQL.

use std::collections::BTreeMap;

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::objects::Catalog;

/// What a program does to which table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordProgram {
    Get,
    Insert {
        ignore_conflict: bool,
    },
    Update(Vec<ColumnId>),
    Delete,
    Scan(ScanShape),
    /// An insert that checks nothing but keys.
    Load,
}

/// The form of a scan; the values are arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScanShape {
    pub index: u16,
    pub prefix: usize,
    /// Whether there is a bound, and whether it is inclusive.
    pub lower: Option<bool>,
    pub upper: Option<bool>,
    pub reverse: bool,
    /// Whether hidden columns are among what it gives.
    pub whole: bool,
}

/// The programs made so far for one catalog.
#[derive(Default)]
pub(crate) struct RecordPrograms {
    made: Mutex<BTreeMap<(TableId, RecordProgram), Arc<Program>>>,
}

impl Catalog {
    /// The program that does `what` to `table`, made when it is asked for first.
    pub(crate) fn record_program(
        &self,
        table: &Arc<Table>,
        what: RecordProgram,
    ) -> Result<Arc<Program>> {
        let key = (table.id(), what);
        if let Some(program) = lock(&self.record_programs.made).get(&key) {
            return Ok(program.clone());
        }
        let program = Arc::new(self.make(table, &key.1)?);
        lock(&self.record_programs.made).insert(key, program.clone());
        Ok(program)
    }

    fn make(&self, table: &Arc<Table>, what: &RecordProgram) -> Result<Program> {
        if let Some(makers) = &self.row_programs {
            match what {
                RecordProgram::Insert { ignore_conflict } => {
                    return makers.insert(self, table, *ignore_conflict);
                }
                RecordProgram::Update(columns) => return makers.update(self, table, columns),
                RecordProgram::Delete => return makers.delete(self, table),
                RecordProgram::Get | RecordProgram::Scan(_) | RecordProgram::Load => {}
            }
        } else {
            self.refuse_constraints(table, what)?;
        }
        match what {
            RecordProgram::Get => get(table),
            RecordProgram::Insert { ignore_conflict } => Ok(insert(table, *ignore_conflict)),
            RecordProgram::Update(columns) => update(table, columns),
            RecordProgram::Delete => delete(table),
            RecordProgram::Scan(shape) => Ok(scan(table, shape)),
            RecordProgram::Load => Ok(insert(table, false)),
        }
    }

    /// The engine cannot evaluate constraints, and does not write past them.
    fn refuse_constraints(&self, table: &Table, what: &RecordProgram) -> Result<()> {
        let schema = table.schema();
        let (own, others) = match what {
            RecordProgram::Get | RecordProgram::Scan(_) | RecordProgram::Load => (false, false),
            RecordProgram::Insert { .. } => (true, false),
            RecordProgram::Update(_) => (true, true),
            RecordProgram::Delete => (false, true),
        };
        let has_generated = schema.columns.iter().any(|it| it.generated.is_some());
        let mut indexes = table.indexes().iter().map(|index| index.definition());
        let is_deferrable = indexes.any(|index| index.deferral.is_deferrable());
        let has_rules = has_generated || !schema.checks.is_empty() || is_deferrable;
        let constrained = own && (has_rules || !schema.foreign_keys.is_empty());
        let referenced = others && self.referencing(&schema.name).next().is_some();
        let fires = (own || others) && !schema.triggers.is_empty();
        if constrained || referenced || fires {
            return Err(Error::unsupported(format!(
                "rows of \"{}\" have CHECK, REFERENCES or DEFERRABLE constraints, generated columns, indexes over expressions or triggers",
                schema.name
            ))
            .with_hint("Write them with SQL or a procedure."));
        }
        Ok(())
    }
}

/// The parameters for some columns of a table.
fn parameters(table: &Table, columns: &[ColumnId]) -> Vec<(String, DataType)> {
    let columns = columns
        .iter()
        .map(|column| &table.schema().columns[column.index()]);
    columns
        .map(|column| (column.name.clone(), column.data_type.clone()))
        .collect()
}

fn shown_columns(table: &Table) -> Vec<ColumnId> {
    let count = table.schema().shown().len() as u16;
    (0..count).map(ColumnId).collect()
}

fn name(what: &str, table: &Table) -> String {
    format!("{what} {}", table.schema().name)
}

/// The index for look-ups of the primary key, and the order of the key's columns in it.
fn key_index(table: &Table) -> Result<(u16, Vec<ColumnId>)> {
    let key = &table.schema().primary_key;
    if key.is_empty() {
        return Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("table \"{}\" has no primary key", table.schema().name),
        )
        .with_hint("Declare one, or use a scan."));
    }
    let of_key = |kind_is_hash: bool| {
        table.indexes().iter().position(|index| {
            let definition = index.definition();
            index.supports_lookup()
                && definition.columns == *key
                && definition.kind.is_hash() == kind_is_hash
        })
    };
    let position = of_key(true).or_else(|| of_key(false)).unwrap_or(0);
    Ok((position as u16, key.clone()))
}

fn get(table: &Arc<Table>) -> Result<Program> {
    let (index, key) = key_index(table)?;
    let mut builder = ProgramBuilder::new(&name("get", table), parameters(table, &key));
    let key: Vec<Reg> = (0..key.len()).map(|at| builder.parameter(at)).collect();
    let reference = builder.table(table);
    let (record, condition) = builder.lookup(reference, index, &key, None);
    builder.open();
    let row = builder.read(reference, record, &shown_columns(table), None);
    builder.push(Step::Emit { row: row.into() });
    let then = builder.close();
    builder.push(Step::If {
        condition,
        then,
        otherwise: Vec::new(),
    });
    builder.returns(parameters(table, &shown_columns(table)));
    Ok(builder.finish())
}

fn insert(table: &Arc<Table>, ignore_conflict: bool) -> Program {
    let columns = shown_columns(table);
    let mut builder = ProgramBuilder::new(&name("insert", table), parameters(table, &columns));
    let values: Vec<Reg> = (0..columns.len()).map(|at| builder.parameter(at)).collect();
    let reference = builder.table(table);
    if ignore_conflict {
        let inserted = builder.register(DataType::Boolean);
        let conflict = Conflict {
            index: None,
            inserted,
        };
        builder.insert(reference, &values, Some(conflict), None);
        emit_flag(&mut builder, inserted);
    } else {
        builder.insert(reference, &values, None, None);
    }
    builder.finish()
}

fn emit_flag(builder: &mut ProgramBuilder, flag: Reg) {
    builder.push(Step::Emit { row: [flag].into() });
    builder.returns(vec![("done".to_owned(), DataType::Boolean)]);
}

fn update(table: &Arc<Table>, columns: &[ColumnId]) -> Result<Program> {
    let (index, key) = key_index(table)?;
    let all: Vec<ColumnId> = key.iter().chain(columns).copied().collect();
    let mut builder = ProgramBuilder::new(&name("update", table), parameters(table, &all));
    let values: Vec<Reg> = (0..all.len()).map(|at| builder.parameter(at)).collect();
    let (key, values) = values.split_at(key.len());
    let changes: Vec<(ColumnId, Reg)> = columns
        .iter()
        .copied()
        .zip(values.iter().copied())
        .collect();
    let reference = builder.table(table);
    let (record, found) = builder.lookup(reference, index, key, None);
    builder.open();
    builder.update(reference, record, &changes, None);
    let then = builder.close();
    builder.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    emit_flag(&mut builder, found);
    Ok(builder.finish())
}

fn delete(table: &Arc<Table>) -> Result<Program> {
    let (index, key) = key_index(table)?;
    let mut builder = ProgramBuilder::new(&name("delete", table), parameters(table, &key));
    let key: Vec<Reg> = (0..key.len()).map(|at| builder.parameter(at)).collect();
    let reference = builder.table(table);
    let (record, found) = builder.lookup(reference, index, &key, None);
    builder.open();
    builder.delete(reference, record, None);
    let then = builder.close();
    builder.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    emit_flag(&mut builder, found);
    Ok(builder.finish())
}

/// A scan with the parameters prefix, lower bound, upper bound, and the most rows wanted.
fn scan(table: &Arc<Table>, shape: &ScanShape) -> Program {
    let indexed = &table.indexes()[shape.index as usize].definition().columns;
    let bounded = indexed.get(shape.prefix).copied();
    let mut names: Vec<ColumnId> = indexed[..shape.prefix].to_vec();
    names.extend(
        [shape.lower, shape.upper]
            .iter()
            .flatten()
            .filter_map(|_| bounded),
    );
    let mut parameters_ = parameters(table, &names);
    parameters_.push(("limit".to_owned(), DataType::BigInt));
    let mut builder = ProgramBuilder::new(&name("scan", table), parameters_);
    let mut parameter = (0..=names.len())
        .map(|at| builder.parameter(at))
        .collect::<Vec<_>>();
    let limit = parameter.pop().expect("the limit is a parameter");
    let mut rest = parameter.split_off(shape.prefix).into_iter();
    let mut bound = |inclusive: Option<bool>| {
        inclusive.map(|inclusive| Bound {
            value: rest.next().expect("each bound has a parameter"),
            inclusive,
        })
    };
    let range = Range {
        prefix: parameter.into(),
        lower: bound(shape.lower),
        upper: bound(shape.upper),
    };

    let reference = builder.table(table);
    let (one, zero) = (
        builder.constant(DataType::BigInt, Value::BigInt(1)),
        builder.constant(DataType::BigInt, Value::BigInt(0)),
    );
    let left = builder.register(DataType::BigInt);
    let done = builder.register(DataType::Boolean);
    builder.scalar(Instruction::Move {
        target: left,
        source: limit,
    });
    let record = builder.record();
    builder.open();
    let mut columns = shown_columns(table);
    if shape.whole {
        columns.extend(table.schema().hidden_columns());
    }
    let read: Vec<ColumnId> = columns.iter().copied().chain(bounded).collect();
    let mut row = builder.read(reference, record, &read, None);
    let of_bound = row.last().copied().filter(|_| bounded.is_some());
    row.truncate(columns.len());
    // Numbers that fall between two keys widen the range, so the bounds are looked at once more.
    let sides = [(range.lower, true), (range.upper, false)];
    for (bound, is_lower) in sides {
        let (Some(bound), Some(column), Some(left)) = (bound, bounded, of_bound) else {
            continue;
        };
        let op = match (is_lower, bound.inclusive) {
            (true, true) => Comparison::Less,
            (true, false) => Comparison::LessOrEqual,
            (false, true) => Comparison::Greater,
            (false, false) => Comparison::GreaterOrEqual,
        };
        let data_type = &table.schema().columns[column.index()].data_type;
        let Some(class) = Class::of(data_type) else {
            continue;
        };
        let outside = builder.register(DataType::Boolean);
        let right = bound.value;
        builder.scalar(Instruction::Compare {
            op,
            class,
            target: outside,
            left,
            right,
        });
        let then = vec![Step::Continue { depth: 0 }];
        builder.push(Step::If {
            condition: outside,
            then,
            otherwise: Vec::new(),
        });
    }
    builder.push(Step::Emit { row: row.into() });
    let (op, width) = (Arithmetic::Subtract, Width::Eight);
    builder.scalar(Instruction::Integer {
        op,
        width,
        target: left,
        left,
        right: one,
    });
    let (op, class) = (Comparison::LessOrEqual, Class::Integer);
    builder.scalar(Instruction::Compare {
        op,
        class,
        target: done,
        left,
        right: zero,
    });
    let then = vec![Step::Exit { depth: 0 }];
    builder.push(Step::If {
        condition: done,
        then,
        otherwise: Vec::new(),
    });
    let body = builder.close();
    builder.scan(
        reference,
        shape.index,
        range,
        shape.reverse,
        record,
        body,
        None,
    );
    builder.returns(parameters(table, &columns));
    builder.finish()
}
