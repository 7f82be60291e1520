//! Subqueries in expressions.

use std::ops::Range;

use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Query};

use super::bound::{
    Body, Bound, BoundQuery, ColumnMeta, ItemKind, Kind, RowFunction, RowFunctions, Select,
    Subquery, SubqueryKind,
};
use super::coerce::{CastContext, coerce};
use super::query::QueryOptions;
use super::row_value;
use super::{Compiler, Position, fail, functions, unsupported};

impl Compiler<'_> {
    pub(super) fn bind_scalar_subquery(
        &mut self,
        query: &Query,
        position: Position,
    ) -> Result<Bound> {
        let (query, own_sources, own_slots) = self.bind_inner(query)?;
        let [column] = query.columns.as_slice() else {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "subquery must return only one column",
                position,
            ));
        };
        let data_type = column.data_type.clone();
        let kind = SubqueryKind::Scalar;
        let number = self.new_slot();
        let subquery = Subquery {
            number,
            kind,
            operand: Vec::new(),
            slots: Vec::new(),
            query,
            own_sources,
            own_slots,
        };
        Ok(Bound::new(
            Kind::Subquery(Box::new(subquery)),
            data_type,
            position,
        ))
    }

    pub(super) fn bind_exists(&mut self, query: &Query, position: Position) -> Result<Bound> {
        let (mut query, own_sources, own_slots) = self.bind_inner(query)?;
        query.keep_existence();
        let kind = SubqueryKind::Exists;
        let number = self.new_slot();
        let subquery = Subquery {
            number,
            kind,
            operand: Vec::new(),
            slots: Vec::new(),
            query,
            own_sources,
            own_slots,
        };
        Ok(Bound::new(
            Kind::Subquery(Box::new(subquery)),
            DataType::Boolean,
            position,
        ))
    }

    /// `left <operator> ANY (query)`; `test` makes the test of what stands on both sides of the
    /// operator.
    pub(super) fn bind_subquery_test(
        &mut self,
        left: &Expr,
        test: &dyn Fn(Bound, Bound) -> Result<Bound>,
        query: &Query,
        position: Position,
    ) -> Result<Bound> {
        let left = self.bind(left)?;
        let rows = self.bind_inner(query)?;
        self.any_of_rows(left, test, rows, position)
    }

    /// `left <operator> ANY (array)`, as of a query of the array's elements.
    pub(super) fn bind_array_test(
        &mut self,
        left: &Expr,
        test: &dyn Fn(Bound, Bound) -> Result<Bound>,
        array: Bound,
        position: Position,
    ) -> Result<Bound> {
        let left = self.bind(left)?;
        let array = match array.is_unknown() {
            true => coerce(
                array,
                &DataType::array(DataType::Text),
                CastContext::Implicit,
            )?,
            false => array,
        };
        let DataType::Array(element) = array.data_type.clone() else {
            return Err(fail(
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires array on right side",
                position,
            ));
        };
        let (first_source, first_slot) = (self.sources.len(), self.next_slot + 1);
        let column = ColumnMeta {
            name: String::new(),
            data_type: (*element).clone(),
            origin: None,
        };
        let kind = ItemKind::Functions(Box::new(RowFunctions {
            parts: vec![RowFunction::Unnest(array, None)],
            has_ordinality: false,
        }));
        let source = self.add_derived_source("", std::slice::from_ref(&column), position);
        let outputs = vec![self.column_of(source, 0, position)];
        let query = BoundQuery {
            columns: vec![column],
            ..BoundQuery::of(Select::over(source, kind, outputs))
        };
        let sources = first_source as u32..self.sources.len() as u32;
        let rows = (query, sources, first_slot..self.next_slot + 1);
        self.any_of_rows(left, test, rows, position)
    }

    /// `ARRAY(query)`.
    pub(super) fn bind_array_subquery(
        &mut self,
        query: &Query,
        position: Position,
    ) -> Result<Bound> {
        let (query, own_sources, own_slots) = self.bind_inner(query)?;
        let [column] = query.columns.as_slice() else {
            let message = "subquery must return only one column";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        };
        if matches!(column.data_type, DataType::Array(_)) {
            return Err(unsupported("an array of more than one dimension", position));
        }
        let data_type = DataType::array(column.data_type.without_modifier());
        let subquery = Subquery {
            number: self.new_slot(),
            kind: SubqueryKind::Array,
            operand: Vec::new(),
            slots: Vec::new(),
            query,
            own_sources,
            own_slots,
        };
        let kind = Kind::Subquery(Box::new(subquery));
        Ok(Bound::new(kind, data_type, position))
    }

    fn any_of_rows(
        &mut self,
        left: Bound,
        test: &dyn Fn(Bound, Bound) -> Result<Bound>,
        (query, own_sources, own_slots): (BoundQuery, Range<u32>, Range<usize>),
        position: Position,
    ) -> Result<Bound> {
        let left = match left.is_volatile() {
            true => self.share(left),
            false => left,
        };
        let width = match &left.kind {
            Kind::Row(columns) => columns.len(),
            _ => 1,
        };
        if query.columns.len() != width {
            let many = query.columns.len() > width;
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                if many {
                    "subquery has too many columns"
                } else {
                    "subquery has too few columns"
                },
                position,
            ));
        }
        let mut slots = Vec::with_capacity(width);
        let mut right = Vec::with_capacity(width);
        for column in &query.columns {
            let slot = self.new_slot();
            slots.push(slot);
            right.push(Bound::new(
                Kind::Slot(slot),
                column.data_type.clone(),
                position,
            ));
        }
        let right = if matches!(left.kind, Kind::Row(_)) {
            row_value::written(right, position)?
        } else {
            right.swap_remove(0)
        };
        let test = test(left, right)?;
        let number = self.new_slot();
        let subquery = Subquery {
            number,
            kind: SubqueryKind::Any,
            operand: vec![test],
            slots,
            query,
            own_sources,
            own_slots,
        };
        Ok(Bound::new(
            Kind::Subquery(Box::new(subquery)),
            DataType::Boolean,
            position,
        ))
    }

    /// Binds the query of a subquery, and notes which numbers belong to it.
    pub(super) fn bind_inner(
        &mut self,
        query: &Query,
    ) -> Result<(BoundQuery, Range<u32>, Range<usize>)> {
        let (first_source, first_slot) = (self.sources.len(), self.next_slot + 1);
        let mut query = self.bind_query(query)?;
        query.decide_outputs()?;
        let sources = first_source as u32..self.sources.len() as u32;
        Ok((query, sources, first_slot..self.next_slot + 1))
    }

    /// A new number for [`Kind::Slot`].
    pub(super) fn new_slot(&mut self) -> usize {
        self.next_slot += 1;
        self.next_slot
    }

    /// Computes a subquery into `result`.
    pub(super) fn emit_subquery(
        &mut self,
        subquery: &Subquery,
        data_type: &DataType,
        result: Reg,
    ) -> Result<()> {
        let outside = self.depth;
        let truth = |compiler: &mut Self, value: bool| {
            let source = compiler
                .builder
                .constant(DataType::Boolean, Value::Boolean(value));
            compiler.builder.scalar(Instruction::Move {
                target: result,
                source,
            });
        };
        match subquery.kind {
            SubqueryKind::Scalar => {
                self.builder.scalar(Instruction::SetNull { target: result });
                let single = subquery.query.gives_one_row();
                let seen = self.builder.register(DataType::Boolean);
                if !single {
                    let source = self
                        .builder
                        .constant(DataType::Boolean, Value::Boolean(false));
                    self.builder.scalar(Instruction::Move {
                        target: seen,
                        source,
                    });
                }
                let _ = data_type;
                self.emit_query(
                    &subquery.query,
                    QueryOptions::default(),
                    &mut |compiler, row| {
                        if !single && compiler.depth > outside {
                            compiler.open();
                            compiler.builder.push(Step::Raise {
                                error: Box::new(kiln_procedure::ir::Failure {
                                    state: SqlState::CARDINALITY_VIOLATION,
                                    message: "more than one row returned by a subquery used as an \
                                          expression"
                                        .to_owned(),
                                    arguments: Box::default(),
                                    detail: None,
                                    hint: None,
                                    subject: None,
                                    position: None,
                                }),
                            });
                            let then = compiler.close();
                            compiler.builder.push(Step::If {
                                condition: seen,
                                then,
                                otherwise: Vec::new(),
                            });
                            let source = compiler
                                .builder
                                .constant(DataType::Boolean, Value::Boolean(true));
                            compiler.builder.scalar(Instruction::Move {
                                target: seen,
                                source,
                            });
                        }
                        let source = row[0];
                        compiler.builder.scalar(Instruction::Move {
                            target: result,
                            source,
                        });
                        Ok(())
                    },
                )
            }
            SubqueryKind::Array => {
                let (name, function) = functions::array_append();
                let empty = self
                    .builder
                    .constant(data_type.clone(), Value::Array(Vec::new()));
                self.builder.scalar(Instruction::Move {
                    target: result,
                    source: empty,
                });
                let options = QueryOptions::default();
                self.emit_query(&subquery.query, options, &mut |compiler, row| {
                    compiler.builder.scalar(Instruction::Call {
                        function,
                        name,
                        target: result,
                        arguments: [result, row[0]].into(),
                    });
                    Ok(())
                })
            }
            SubqueryKind::Exists => {
                truth(self, false);
                self.emit_query(
                    &subquery.query,
                    QueryOptions::default(),
                    &mut |compiler, _| {
                        truth(compiler, true);
                        compiler.leave(outside);
                        Ok(())
                    },
                )
            }
            SubqueryKind::Any => {
                truth(self, false);
                self.emit_query(
                    &subquery.query,
                    QueryOptions::default(),
                    &mut |compiler, row| compiler.test_row(subquery, row, outside, result),
                )
            }
        }
    }

    /// Gives the columns of a row the names that the test of a subquery has for them.
    pub(super) fn name_row(&mut self, subquery: &Subquery, row: &[Reg]) {
        for (slot, register) in subquery.slots.iter().zip(row) {
            self.slots.insert(*slot, *register);
        }
    }

    /// The test of one row: when it holds, `result` is TRUE and all loops but `outside` are left;
    /// when it is unknown, `result` is NULL.
    pub(super) fn test_row(
        &mut self,
        subquery: &Subquery,
        row: &[Reg],
        outside: usize,
        result: Reg,
    ) -> Result<()> {
        self.name_row(subquery, row);
        let Some(test) = subquery.operand.first() else {
            return Ok(());
        };
        let condition = self.emit(test)?;
        self.open();
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(true));
        self.builder.scalar(Instruction::Move {
            target: result,
            source,
        });
        self.leave(outside);
        let then = self.close();
        self.open();
        let unknown = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::IsNull {
            target: unknown,
            source: condition,
            negated: false,
        });
        let null = Step::Scalar(Instruction::SetNull { target: result });
        self.builder.push(Step::If {
            condition: unknown,
            then: vec![null],
            otherwise: Vec::new(),
        });
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        Ok(())
    }

    /// Leaves all IR loops but the outermost `outside` ones.
    pub(super) fn leave(&mut self, outside: usize) {
        if self.depth > outside {
            let depth = self.relative(outside);
            self.builder.push(Step::Exit { depth });
        }
    }
}

impl BoundQuery {
    /// Drops what does not matter to whether there is a row. As in PostgreSQL, EXISTS does not
    /// compute what its query puts out.
    fn keep_existence(&mut self) {
        if let Body::Select(select) = &mut self.body
            && select.grouping.is_none()
            && select.row_functions.is_empty()
            && select.distinct_on.is_empty()
            && self.offset.is_none()
        {
            select.outputs.clear();
            select.open_outputs.clear();
            select.distinct = false;
            self.columns.clear();
            self.order.clear();
        }
    }
}
