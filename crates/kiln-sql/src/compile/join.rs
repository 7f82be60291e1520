//! Joins that are one source of rows: the side of an outer join that gives NULLs, when it is a join
//! itself, the two sides of FULL JOIN, and a join with a name of its own.
//!
//! The rows of such a source have the columns of all tables in the join. What the tables are called
//! remains: each becomes a source *within* the one, and a column of it is a column there.

use kiln_procedure::ir::{
    Arithmetic, BufferId, Class, Comparison, Instruction, MATCHES_MAX, Match, Reg, Step, Width,
};
use kiln_storage::error::{Error, Result};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::TableAlias;

use super::bound::{Bound, BoundQuery, ColumnMeta, FullJoin, ItemKind, Select, SourceId};
use super::from::FromScope;
use super::limit::Limits;
use super::path::restriction;
use super::produce::{RowSink, types_of};
use super::scope::{NamedColumn, Source};
use super::{Compiler, Position, name_of};

/// Which columns a source of several tables has.
#[derive(Default)]
struct Columns {
    outputs: Vec<Bound>,
    metas: Vec<ColumnMeta>,
}

impl Columns {
    fn add(&mut self, name: &str, bound: Bound) -> usize {
        let known = self.outputs.iter().position(|known| *known == bound);
        known.unwrap_or_else(|| {
            self.metas.push(ColumnMeta {
                name: name.to_owned(),
                data_type: bound.data_type.clone(),
                origin: None,
            });
            self.outputs.push(bound);
            self.outputs.len() - 1
        })
    }
}

impl<'a> Compiler<'a> {
    /// Makes a join one item, which keeps the names of its tables.
    pub(super) fn one_item(&mut self, mut scope: FromScope) -> FromScope {
        let names = std::mem::take(&mut scope.columns);
        let (columns, parts, named) = self.columns_of_join(&scope.sources, &names);
        let rows = query_of(&mut scope, columns.outputs);
        let kind = ItemKind::Derived(Box::new(rows));
        self.with_parts(kind, &columns.metas, &parts, &names, &named)
    }

    /// `(a JOIN b …) AS name`: the tables in it cannot be named.
    pub(super) fn named_join(
        &mut self,
        mut scope: FromScope,
        alias: &TableAlias,
        position: Position,
    ) -> Result<FromScope> {
        let metas = scope.columns.iter().map(|column| ColumnMeta {
            name: column.name.clone(),
            data_type: column.bound.data_type.clone(),
            origin: self.origin_of(&column.bound),
        });
        let metas: Vec<ColumnMeta> = metas.collect();
        let outputs = scope.columns.iter().map(|column| column.bound.clone());
        let outputs = outputs.collect();
        let rows = query_of(&mut scope, outputs);
        let kind = ItemKind::Derived(Box::new(rows));
        self.derived(kind, &metas, &name_of(&alias.name), Some(alias), position)
    }

    /// `left FULL JOIN right ON on`, of one item each.
    pub(super) fn full_join(
        &mut self,
        mut left: FromScope,
        mut right: FromScope,
        on: Vec<Bound>,
        names: Vec<NamedColumn>,
    ) -> Result<FromScope> {
        left.sources.append(&mut right.sources);
        let (columns, parts, named) = self.columns_of_join(&left.sources, &names);
        let side = |scope: FromScope| scope.items.into_iter().next();
        let sides = side(left).zip(side(right));
        let (left, right) =
            sides.ok_or_else(|| Error::internal("a side of a join without rows"))?;
        for item in [&left, &right] {
            self.source_mut(item.source).nullable = true;
            self.source_mut(item.source).may_miss = true;
        }
        let kind = ItemKind::Full(Box::new(FullJoin {
            sides: [(left.source, left.kind), (right.source, right.kind)],
            on,
            outputs: columns.outputs,
        }));
        Ok(self.with_parts(kind, &columns.metas, &parts, &names, &named))
    }

    /// The columns of a source that stands for `sources`; where each of these begins in it, and
    /// which column each of `names` is.
    fn columns_of_join(
        &self,
        sources: &[SourceId],
        names: &[NamedColumn],
    ) -> (Columns, Vec<(SourceId, u16)>, Vec<usize>) {
        let mut columns = Columns::default();
        let mut parts = Vec::with_capacity(sources.len());
        for source in sources {
            parts.push((*source, columns.outputs.len() as u16));
            for column in 0..self.source(*source).columns.len() {
                let name = self.source(*source).columns[column].0.clone();
                let bound = self.column_of(*source, column, None);
                columns.metas.push(ColumnMeta {
                    name,
                    data_type: bound.data_type.clone(),
                    origin: None,
                });
                columns.outputs.push(bound);
            }
        }
        let named = names
            .iter()
            .map(|column| columns.add(&column.name, column.bound.clone()));
        let named = named.collect();
        (columns, parts, named)
    }

    /// The scope of an item of several tables.
    fn with_parts(
        &mut self,
        kind: ItemKind,
        metas: &[ColumnMeta],
        parts: &[(SourceId, u16)],
        names: &[NamedColumn],
        named: &[usize],
    ) -> FromScope {
        let whole = self.add_derived_source("", metas, None);
        let mut scope = self.scope_of(whole, kind);
        scope.sources.clear();
        for (part, first) in parts {
            let Source {
                name,
                columns,
                position,
                visible,
                ..
            } = self.source(*part);
            let part = Source {
                name: name.clone(),
                columns: columns.clone(),
                table: None,
                record: None,
                position: *position,
                within: Some((whole, *first)),
                shown: None,
                visible: *visible,
                nullable: true,
                may_miss: true,
                is_value: false,
            };
            let part = self.add_source(part);
            scope.sources.push(part);
        }
        scope.columns = names
            .iter()
            .zip(named)
            .map(|(column, place)| NamedColumn {
                name: column.name.clone(),
                bound: self.column_of(whole, *place, None),
            })
            .collect();
        scope
    }

    /// Emits the rows of a FULL JOIN: those of the left side with their matches, or NULLs, and then
    /// those of the right side that matched none.
    pub(super) fn emit_full(
        &mut self,
        join: &FullJoin,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let types = types_of(&join.outputs);
        let rows = self.builder.buffer(types.len());
        let matched = self.builder.buffer(1);
        let [(left, left_kind), (right, right_kind)] = &join.sides;
        let (others, number) = self.keep_numbered(*right, right_kind)?;
        for buffer in [rows, matched] {
            self.builder.push(Step::BufferClear { buffer });
        }
        let push_row = |compiler: &mut Self| {
            let row = compiler.emit_row(&join.outputs)?.into();
            let step = Step::BufferPush { buffer: rows, row };
            compiler.builder.push(step);
            Ok(())
        };
        let found = self.builder.register(DataType::Boolean);
        let (hashed, rest) = self.hashed_conditions(join);
        self.emit_item(*left, left_kind, &mut |compiler| {
            compiler.set_truth(found, false);
            let values: Vec<Bound> = hashed.iter().map(|one| one.2.clone()).collect();
            let values = compiler.emit_row(&values)?;
            let matching = hashed.iter().zip(values);
            let matching: Vec<Match> = matching
                .map(|((column, class, _), value)| Match {
                    column: *column,
                    value,
                    class: *class,
                })
                .collect();
            compiler.open_ir_loop();
            let mut row = compiler.declare_columns(*right);
            let at = compiler.builder.register(DataType::BigInt);
            row.push(at);
            let result = compiler.emit_filters(&rest, &mut |compiler| {
                compiler.set_truth(found, true);
                compiler.push_distinct(matched, &[Class::Integer], &[at]);
                push_row(compiler)
            });
            let body = compiler.close_ir_loop();
            compiler.builder.push(Step::ForBuffer {
                buffer: others,
                matching: matching.into(),
                row: row.into(),
                body,
            });
            result?;
            compiler.open();
            compiler.declare_nulls(*right);
            let result = push_row(compiler);
            let otherwise = compiler.close();
            compiler.builder.push(Step::If {
                condition: found,
                then: Vec::new(),
                otherwise,
            });
            result
        })?;
        // The rows of the right side that are left.
        self.open_ir_loop();
        let mut row = self.declare_columns(*right);
        row.push(number);
        self.set_truth(found, false);
        self.open_ir_loop();
        self.set_truth(found, true);
        let at = self.builder.register(DataType::BigInt);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: matched,
            matching: [Match {
                column: 0,
                value: number,
                class: Class::Integer,
            }]
            .into(),
            row: [at].into(),
            body,
        });
        self.open();
        self.declare_nulls(*left);
        let result = push_row(self);
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: found,
            then: Vec::new(),
            otherwise,
        });
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: others,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        result?;
        self.emit_buffer_rows(rows, &types, &Limits::default(), sink)
    }

    /// The conditions of a FULL JOIN by which the rows of the right side are found, and the rest.
    fn hashed_conditions(&self, join: &FullJoin) -> (Vec<(u16, Class, Bound)>, Vec<Bound>) {
        let right = join.sides[1].0;
        let is_there = |bound: &Bound| !bound.is_volatile() && !bound.sources().contains(&right);
        let (mut hashed, mut rest) = (Vec::new(), Vec::new());
        for condition in &join.on {
            match restriction(right, 0, condition, &is_there) {
                Some(one) if one.comparison == Comparison::Equal && hashed.len() < MATCHES_MAX => {
                    hashed.push((one.column, one.class, one.value.clone()));
                }
                _ => rest.push(condition.clone()),
            }
        }
        (hashed, rest)
    }

    /// Puts all rows of a source into a buffer, each with its number behind its columns; gives the
    /// buffer and the register that counted.
    fn keep_numbered(&mut self, source: SourceId, kind: &ItemKind) -> Result<(BufferId, Reg)> {
        let columns: Vec<u16> = (0..self.source(source).columns.len() as u16).collect();
        let buffer = self.builder.buffer(columns.len() + 1);
        let number = self.builder.register(DataType::BigInt);
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        self.builder.push(Step::BufferClear { buffer });
        self.builder.scalar(Instruction::Move {
            target: number,
            source: zero,
        });
        self.emit_item(source, kind, &mut |compiler| {
            let needed: Vec<_> = columns.iter().map(|column| (source, *column)).collect();
            compiler.prefetch_columns(&needed)?;
            let mut row = Vec::with_capacity(columns.len() + 1);
            for column in &columns {
                row.push(compiler.available_column(source, *column)?);
            }
            compiler.builder.scalar(Instruction::Integer {
                op: Arithmetic::Add,
                width: Width::Eight,
                target: number,
                left: number,
                right: one,
            });
            row.push(number);
            let row = row.into();
            compiler.builder.push(Step::BufferPush { buffer, row });
            Ok(())
        })?;
        Ok((buffer, number))
    }

    /// New registers for all columns of a source.
    fn declare_columns(&mut self, source: SourceId) -> Vec<Reg> {
        let types: Vec<DataType> = self.types_of_source(source);
        let mut row = Vec::with_capacity(types.len() + 1);
        for (column, data_type) in types.into_iter().enumerate() {
            let register = self.builder.register(data_type);
            self.set_column(source, column, register);
            row.push(register);
        }
        row
    }

    fn declare_nulls(&mut self, source: SourceId) {
        for (column, data_type) in self.types_of_source(source).into_iter().enumerate() {
            let null = self.builder.constant(data_type, Value::Null);
            self.set_column(source, column, null);
        }
    }

    fn types_of_source(&self, source: SourceId) -> Vec<DataType> {
        let columns = self.source(source).columns.iter();
        columns.map(|(_, data_type)| data_type.clone()).collect()
    }

    /// Runs `body` for each row of a source, whose columns can be read there.
    fn emit_item(
        &mut self,
        source: SourceId,
        kind: &ItemKind,
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let columns = 0..self.source(source).columns.len();
        let outputs = columns.map(|column| self.column_of(source, column, None));
        let select = Select::over(source, kind.clone(), outputs.collect());
        let plan = self.plan(&select, &[], false);
        self.emit_plan(&plan, body)
    }
}

/// The query of `outputs` over the rows of a join.
fn query_of(scope: &mut FromScope, outputs: Vec<Bound>) -> BoundQuery {
    let columns = outputs.iter().map(|bound| ColumnMeta {
        name: String::new(),
        data_type: bound.data_type.clone(),
        origin: None,
    });
    BoundQuery {
        columns: columns.collect(),
        ..BoundQuery::of(Select {
            items: std::mem::take(&mut scope.items),
            filters: std::mem::take(&mut scope.filters),
            outputs,
            ..Select::default()
        })
    }
}
