//! LIMIT and OFFSET.

use kiln_procedure::ir::{Arithmetic, Class, Comparison, Failure, Instruction, Reg, Step, Width};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, LimitClause, Query};

use super::bound::{Bound, BoundQuery};
use super::coerce::CastContext;
use super::scope::{AggregatePolicy, Level};
use super::{Compiler, fail, position_of, unsupported};

/// LIMIT and OFFSET in registers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// How many rows to skip, and how many were skipped.
    pub offset: Option<(Reg, Reg)>,
    pub limit: Option<Limit>,
    /// FALSE when nothing shall be read at all.
    pub guard: Option<Reg>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// One row.
    One,
    /// As many as the first register says; the second counts.
    Count(Reg, Reg),
}

impl Compiler<'_> {
    pub(super) fn bind_limit(&mut self, query: &Query, bound: &mut BoundQuery) -> Result<()> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit: count,
                offset: skip,
                limit_by,
            }) => {
                if !limit_by.is_empty() {
                    return Err(unsupported("LIMIT BY", position_of(query)));
                }
                limit = count.as_ref();
                offset = skip.as_ref().map(|skip| &skip.value);
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                return Err(fail(
                    SqlState::SYNTAX_ERROR,
                    "LIMIT #,# syntax is not supported",
                    position_of(query),
                )
                .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        if let Some(fetch) = &query.fetch {
            bound.limit = match &fetch.quantity {
                Some(quantity) => self.bind_count(quantity, "LIMIT")?,
                None => Some(Bound::constant(Value::BigInt(1), DataType::BigInt, None)),
            };
        }
        if let Some(limit) = limit {
            bound.limit = self.bind_count(limit, "LIMIT")?;
        }
        if let Some(offset) = offset {
            bound.offset = self.bind_count(offset, "OFFSET")?;
        }
        Ok(())
    }

    /// The operand of LIMIT or OFFSET; `None` for NULL, which limits nothing.
    fn bind_count(&mut self, expr: &Expr, clause: &'static str) -> Result<Option<Bound>> {
        self.levels
            .push(Level::empty(AggregatePolicy::Refused(clause)));
        let bound = self.bind_as(expr, &DataType::BigInt, CastContext::Assignment);
        self.levels.pop();
        let bound = bound.map_err(|error| {
            if error.state() == SqlState::DATATYPE_MISMATCH {
                return fail(
                    SqlState::DATATYPE_MISMATCH,
                    format!("argument of {clause} must be type bigint"),
                    position_of(expr),
                );
            }
            error
        })?;
        Ok((!bound.is_null_literal()).then_some(bound))
    }

    /// Computes LIMIT and OFFSET, and checks them.
    pub(super) fn emit_limits(&mut self, query: &BoundQuery) -> Result<Limits> {
        let mut limits = Limits::default();
        let zero = |compiler: &mut Self| {
            compiler
                .builder
                .constant(DataType::BigInt, Value::BigInt(0))
        };
        let parts = [
            (
                &query.offset,
                SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE,
                "OFFSET must not be negative",
            ),
            (
                &query.limit,
                SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                "LIMIT must not be negative",
            ),
        ];
        for (index, (bound, state, message)) in parts.into_iter().enumerate() {
            let Some(bound) = bound else { continue };
            let known = match bound.as_constant() {
                Some(Value::BigInt(value)) => Some(*value),
                _ => None,
            };
            if index == 0 && known == Some(0) {
                continue;
            }
            let register = self.emit(bound)?;
            if known.is_none_or(|value| value < 0) {
                let condition = self.builder.register(DataType::Boolean);
                let right = zero(self);
                self.builder.scalar(Instruction::Compare {
                    op: Comparison::GreaterOrEqual,
                    class: Class::Integer,
                    target: condition,
                    left: register,
                    right,
                });
                self.builder.scalar(Instruction::Require {
                    condition,
                    null_fails: false,
                    error: Box::new(Failure {
                        state,
                        message: message.to_owned(),
                        arguments: Box::default(),
                        detail: None,
                        hint: None,
                        subject: None,
                        position: None,
                    }),
                });
            }
            if index == 0 {
                limits.offset = Some((register, self.builder.register(DataType::BigInt)));
                continue;
            }
            limits.limit = Some(match known {
                Some(1) => Limit::One,
                _ => Limit::Count(register, self.builder.register(DataType::BigInt)),
            });
            if known.is_none_or(|value| value == 0) {
                // `LIMIT 0` reads nothing; a NULL limits nothing.
                let condition = self.builder.register(DataType::Boolean);
                let right = zero(self);
                self.builder.scalar(Instruction::Compare {
                    op: Comparison::Distinct,
                    class: Class::Integer,
                    target: condition,
                    left: register,
                    right,
                });
                limits.guard = Some(condition);
            }
        }
        Ok(limits)
    }

    /// Sets the counters of the limits to zero: before the loops whose rows they count.
    pub(super) fn start_limits(&mut self, limits: &Limits) {
        let source = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        if let Some((_, skipped)) = limits.offset {
            self.builder.scalar(Instruction::Move {
                target: skipped,
                source,
            });
        }
        if let Some(Limit::Count(_, count)) = limits.limit {
            self.builder.scalar(Instruction::Move {
                target: count,
                source,
            });
        }
    }

    /// Runs `body` for the rows that OFFSET and LIMIT let through, and leaves the loops inside
    /// `outside` after the last of them. [`Compiler::start_limits`] came before the loops.
    pub(super) fn within_limits(
        &mut self,
        limits: &Limits,
        outside: usize,
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        let increment = |target: Reg| Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Eight,
            target,
            left: target,
            right: one,
        };
        let mut skipping = None;
        if let Some((offset, skipped)) = limits.offset {
            let condition = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::Compare {
                op: Comparison::Less,
                class: Class::Integer,
                target: condition,
                left: skipped,
                right: offset,
            });
            self.open();
            self.builder.scalar(increment(skipped));
            let then = self.close();
            skipping = Some((condition, then));
            self.open();
        }
        let result = body(self);
        if self.depth > outside {
            match limits.limit {
                Some(Limit::One) => self.leave(outside),
                Some(Limit::Count(limit, count)) => {
                    self.builder.scalar(increment(count));
                    let condition = self.builder.register(DataType::Boolean);
                    self.builder.scalar(Instruction::Compare {
                        op: Comparison::GreaterOrEqual,
                        class: Class::Integer,
                        target: condition,
                        left: count,
                        right: limit,
                    });
                    self.open();
                    self.leave(outside);
                    let then = self.close();
                    self.builder.push(Step::If {
                        condition,
                        then,
                        otherwise: Vec::new(),
                    });
                }
                None => {}
            }
        }
        if let Some((condition, then)) = skipping {
            let otherwise = self.close();
            self.builder.push(Step::If {
                condition,
                then,
                otherwise,
            });
        }
        result
    }
}
