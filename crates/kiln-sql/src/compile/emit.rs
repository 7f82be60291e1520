//! Bound expressions to instructions.

use kiln_procedure::ir::{Class, Comparison, Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::bound::{Bound, Kind, Operation, SourceId, Subquery};
use super::functions::{self, Now};
use super::row_value::pack;
use super::scope::Available;
use super::{Compiler, Typed, fail};

/// Under which shared operands are noted among the available columns.
const SHARED: SourceId = SourceId(u32::MAX);

impl Compiler<'_> {
    /// Computes `bound`; the register may be one that already held the value.
    pub(super) fn emit(&mut self, bound: &Bound) -> Result<Reg> {
        self.prefetch(&[bound])?;
        self.emit_node(bound, None)
    }

    /// Computes several, reading what they need of each record in one step.
    pub(super) fn emit_all(&mut self, bounds: &[Bound]) -> Result<Vec<Typed>> {
        let all: Vec<&Bound> = bounds.iter().collect();
        self.prefetch(&all)?;
        bounds
            .iter()
            .map(|bound| {
                let register = self.emit_node(bound, None)?;
                Ok(Typed {
                    register,
                    data_type: bound.data_type.clone(),
                })
            })
            .collect()
    }

    /// Computes `bound` into `target`.
    pub(super) fn emit_into(&mut self, bound: &Bound, target: Reg) -> Result<()> {
        self.prefetch(&[bound])?;
        self.emit_at(bound, target)
    }

    /// Computes a condition of which only the truth matters: the register is TRUE when the
    /// condition is, and FALSE or NULL otherwise.
    pub(super) fn emit_condition(&mut self, bound: &Bound) -> Result<Reg> {
        self.prefetch(&[bound])?;
        self.condition_node(bound)
    }

    /// Reads the columns that `bounds` need whatever happens.
    pub(super) fn prefetch(&mut self, bounds: &[&Bound]) -> Result<()> {
        if self.builder.is_too_large() {
            return Err(fail(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "the procedure is too large",
                None,
            ));
        }
        self.positional.tell(&mut self.builder);
        let mut columns = Vec::new();
        for bound in bounds {
            eager_columns(bound, &mut columns);
        }
        if columns.is_empty() {
            Ok(())
        } else {
            self.prefetch_columns(&columns)
        }
    }

    fn emit_at(&mut self, bound: &Bound, target: Reg) -> Result<()> {
        let register = self.emit_node(bound, Some(target))?;
        if register != target {
            self.builder.scalar(Instruction::Move {
                target,
                source: register,
            });
        }
        Ok(())
    }

    /// Computes `bound`, preferably into `target`; says where it is.
    fn emit_node(&mut self, bound: &Bound, target: Option<Reg>) -> Result<Reg> {
        let data_type = &bound.data_type;
        match &bound.kind {
            Kind::Unknown(None) | Kind::Constant(Value::Null) => match target {
                Some(target) => {
                    self.builder.scalar(Instruction::SetNull { target });
                    Ok(target)
                }
                None => Ok(self.builder.constant(data_type.clone(), Value::Null)),
            },
            Kind::Unknown(Some(text)) => Ok(self
                .builder
                .constant(DataType::Text, Value::Text(text.clone()))),
            Kind::Constant(value) => Ok(self.builder.constant(data_type.clone(), value.clone())),
            Kind::Register(register) => Ok(*register),
            Kind::Parameter(parameter) => {
                // Nothing asked for a type before: TEXT.
                let decided = parameter.decide(data_type, bound.position)?;
                self.emit_node(&decided, target)
            }
            Kind::Column { source, column } => match self.find_available(*source, *column) {
                Some(register) => Ok(register),
                None => {
                    self.prefetch_columns(&[(*source, *column)])?;
                    self.available_column(*source, *column)
                }
            },
            Kind::Slot(number) => self
                .slots
                .get(number)
                .copied()
                .ok_or_else(|| Error::internal("a value of a group is not at hand")),
            // All that say "now" say the same.
            Kind::Operation(Operation::Call(clock), operands)
                if operands.is_empty() && clock.name == functions::clock(Now::Transaction).0 =>
            {
                let now = self.now(Now::Transaction, bound.position);
                self.emit_node(&now, target)
            }
            Kind::Operation(Operation::Call(style), operands)
                if operands.is_empty() && style.name == functions::STYLE.0 =>
            {
                let style = self.style();
                self.emit_node(&style, target)
            }
            Kind::Operation(operation, operands) => {
                self.emit_operation(*operation, operands, data_type, target)
            }
            Kind::Case {
                branches,
                otherwise,
            } => {
                let result = self.result(bound, target);
                self.emit_branches(branches, otherwise.as_deref(), result)?;
                Ok(result)
            }
            Kind::Coalesce(operands) => {
                let result = self.result(bound, target);
                self.emit_coalesce(operands, result)?;
                Ok(result)
            }
            Kind::And(operands) => self.emit_connective(bound, operands, true, target),
            Kind::Or(operands) => self.emit_connective(bound, operands, false, target),
            Kind::Shared(id, inner) => {
                if let Some(register) = self.find_available(SHARED, *id) {
                    return Ok(register);
                }
                let register = self.emit_node(inner, None)?;
                self.available.push(Available {
                    source: SHARED,
                    column: *id,
                    register,
                });
                Ok(register)
            }
            Kind::Subquery(subquery) => {
                self.emit_shared_operands(subquery)?;
                if self.is_repeated(subquery) {
                    return self.emit_once(subquery, data_type);
                }
                if let Some(found) = self.emit_semi_join(subquery)? {
                    return Ok(found);
                }
                let result = self.result(bound, target);
                self.emit_subquery(subquery, data_type, result)?;
                Ok(result)
            }
            Kind::Routine(callee, operands) => {
                let mut arguments = Vec::with_capacity(operands.len());
                for operand in operands {
                    arguments.push(self.emit_node(operand, None)?);
                }
                let result = self.result(bound, target);
                callee.call_value(self, &arguments, result, bound.position)?;
                Ok(result)
            }
            Kind::OfDomain(inner, domain) => {
                let value = self.emit_node(inner, None)?;
                self.check_domain(value, domain)?;
                Ok(value)
            }
            Kind::Aggregate(_) => Err(Error::internal("an aggregate was not replaced")),
            Kind::Window(_) => Err(Error::internal("a window function was not replaced")),
            Kind::Row(items) => match data_type {
                DataType::Row(of) => {
                    let packed = pack(items.clone(), of, bound.position);
                    self.emit_node(&packed, target)
                }
                _ => Err(Error::internal("a row without the type of one")),
            },
        }
    }

    /// Computes what the test of a subquery's rows names, and no row may compute anew.
    fn emit_shared_operands(&mut self, subquery: &Subquery) -> Result<()> {
        let mut rest: Vec<&Bound> = subquery.operand.iter().collect();
        while let Some(bound) = rest.pop() {
            match &bound.kind {
                Kind::Shared(..) if bound.is_volatile() => {
                    self.emit(bound)?;
                }
                // What is inside belongs to its own rows.
                Kind::Subquery(_) => {}
                _ => rest.extend(bound.operands()),
            }
        }
        Ok(())
    }

    /// A register that several steps write: `target`, unless the expression reads it.
    fn result(&mut self, bound: &Bound, target: Option<Reg>) -> Reg {
        match target {
            Some(target) if !bound.mentions(target) => target,
            _ => self.builder.register(bound.data_type.clone()),
        }
    }

    fn emit_operation(
        &mut self,
        operation: Operation,
        operands: &[Bound],
        data_type: &DataType,
        target: Option<Reg>,
    ) -> Result<Reg> {
        if let Operation::Sequence(call) = operation {
            return self.emit_sequence_call(call, operands, target);
        }
        if let Operation::LockRow(lock) = operation {
            return self.emit_row_lock(lock, operands, target);
        }
        if let Operation::Signal(signal) = operation {
            return self.emit_signal(signal, operands, target);
        }
        if let Operation::Notify = operation {
            return self.emit_notify(operands, target);
        }
        let mut registers = Vec::with_capacity(operands.len());
        for operand in operands {
            registers.push(self.emit_node(operand, None)?);
        }
        let target = target.unwrap_or_else(|| self.builder.register(data_type.clone()));
        let first = || registers.first().copied().unwrap_or(target);
        let (source, left) = (first(), first());
        let right = registers.get(1).copied().unwrap_or(target);
        self.builder.scalar(match operation {
            Operation::Integer(op, width) => Instruction::Integer {
                op,
                width,
                target,
                left,
                right,
            },
            Operation::Decimal(op) => Instruction::Decimal {
                op,
                target,
                left,
                right,
            },
            Operation::Double(op) => Instruction::Double {
                op,
                target,
                left,
                right,
            },
            Operation::Compare(op, class) => Instruction::Compare {
                op,
                class,
                target,
                left,
                right,
            },
            Operation::IsNull { negated } => Instruction::IsNull {
                target,
                source,
                negated,
            },
            Operation::Not => Instruction::Not { target, source },
            Operation::IntegerToDecimal => Instruction::IntegerToDecimal { target, source },
            Operation::IntegerToDouble => Instruction::IntegerToDouble { target, source },
            Operation::CheckWidth(width) => Instruction::CheckWidth {
                width,
                target,
                source,
            },
            Operation::Rescale { precision, scale } => Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            },
            Operation::Concat => Instruction::Concat {
                target,
                left,
                right,
            },
            Operation::Element => Instruction::Element {
                target,
                array: left,
                index: right,
            },
            Operation::Consult(call) => Instruction::Consult {
                function: call.over(self.current_catalog()?),
                target,
                arguments: registers.into(),
            },
            Operation::Sequence(_)
            | Operation::LockRow(_)
            | Operation::Signal(_)
            | Operation::Notify => {
                return Err(Error::internal("a function of its kind is computed above"));
            }
            Operation::Call(builtin) => Instruction::Call {
                function: builtin.function,
                name: builtin.name,
                target,
                arguments: registers.into(),
            },
        });
        Ok(target)
    }

    fn emit_branches(
        &mut self,
        branches: &[(Bound, Bound)],
        otherwise: Option<&Bound>,
        result: Reg,
    ) -> Result<()> {
        let Some(((condition, value), rest)) = branches.split_first() else {
            return match otherwise {
                Some(bound) => self.emit_into(bound, result),
                None => {
                    self.builder.scalar(Instruction::SetNull { target: result });
                    Ok(())
                }
            };
        };
        let condition = self.emit_condition(condition)?;
        self.open();
        self.emit_into(value, result)?;
        let then = self.close();
        self.open();
        self.emit_branches(rest, otherwise, result)?;
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        Ok(())
    }

    fn emit_coalesce(&mut self, operands: &[Bound], result: Reg) -> Result<()> {
        let Some((first, rest)) = operands.split_first() else {
            return Ok(());
        };
        self.emit_into(first, result)?;
        if rest.is_empty() {
            return Ok(());
        }
        let condition = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::IsNull {
            target: condition,
            source: result,
            negated: false,
        });
        self.open();
        self.emit_coalesce(rest, result)?;
        let then = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
        Ok(())
    }

    /// AND or OR in three values. Operands that may raise or cost something are computed only
    /// when those before have not decided.
    fn emit_connective(
        &mut self,
        bound: &Bound,
        operands: &[Bound],
        is_and: bool,
        target: Option<Reg>,
    ) -> Result<Reg> {
        let Some((first, rest)) = operands.split_first() else {
            return Err(Error::internal("a connective without operands"));
        };
        if !rest.iter().any(Bound::is_lazy) {
            let mut left = self.emit_node(first, None)?;
            for (index, operand) in rest.iter().enumerate() {
                let right = self.emit_node(operand, None)?;
                let last = index + 1 == rest.len();
                let target = match target {
                    Some(target) if last => target,
                    _ => self.builder.register(DataType::Boolean),
                };
                self.builder.scalar(if is_and {
                    Instruction::And {
                        target,
                        left,
                        right,
                    }
                } else {
                    Instruction::Or {
                        target,
                        left,
                        right,
                    }
                });
                left = target;
            }
            return Ok(left);
        }
        let result = self.result(bound, target);
        self.emit_into(first, result)?;
        self.emit_lazily(rest, is_and, result)?;
        Ok(result)
    }

    fn emit_lazily(&mut self, operands: &[Bound], is_and: bool, result: Reg) -> Result<()> {
        let Some((first, rest)) = operands.split_first() else {
            return Ok(());
        };
        // FALSE decides an AND, TRUE an OR.
        let decided = self.builder.register(DataType::Boolean);
        let deciding = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(!is_and));
        self.builder.scalar(Instruction::Compare {
            op: Comparison::NotDistinct,
            class: Class::Integer,
            target: decided,
            left: result,
            right: deciding,
        });
        self.open();
        let right = self.emit(first)?;
        self.builder.scalar(if is_and {
            Instruction::And {
                target: result,
                left: result,
                right,
            }
        } else {
            Instruction::Or {
                target: result,
                left: result,
                right,
            }
        });
        self.emit_lazily(rest, is_and, result)?;
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: decided,
            then: Vec::new(),
            otherwise,
        });
        Ok(())
    }

    fn condition_node(&mut self, bound: &Bound) -> Result<Reg> {
        let (operands, is_and) = match &bound.kind {
            Kind::And(operands) => (operands, true),
            Kind::Or(operands) => (operands, false),
            _ => return self.emit_node(bound, None),
        };
        let Some((first, rest)) = operands.split_first() else {
            return Err(Error::internal("a connective without operands"));
        };
        if !rest.iter().any(Bound::is_lazy) {
            return self.emit_node(bound, None);
        }
        // What is not TRUE need not be told apart: one test a step.
        let result = self.builder.register(DataType::Boolean);
        let value = self.condition_node(first)?;
        self.builder.scalar(Instruction::Move {
            target: result,
            source: value,
        });
        self.condition_rest(rest, is_and, result)?;
        Ok(result)
    }

    fn condition_rest(&mut self, operands: &[Bound], is_and: bool, result: Reg) -> Result<()> {
        let Some((first, rest)) = operands.split_first() else {
            return Ok(());
        };
        self.open();
        let value = self.emit_condition(first)?;
        self.builder.scalar(Instruction::Move {
            target: result,
            source: value,
        });
        self.condition_rest(rest, is_and, result)?;
        let block = self.close();
        let (then, otherwise) = if is_and {
            (block, Vec::new())
        } else {
            (Vec::new(), block)
        };
        self.builder.push(Step::If {
            condition: result,
            then,
            otherwise,
        });
        Ok(())
    }
}

/// The columns that `bound` needs whatever way its conditions go, and small ones that it may need:
/// reading those together with the others is cheaper than a step of their own.
pub(super) fn eager_columns(bound: &Bound, columns: &mut Vec<(SourceId, u16)>) {
    match &bound.kind {
        Kind::Case {
            branches,
            otherwise,
        } => {
            let mut first = true;
            for (condition, result) in branches {
                if first {
                    eager_columns(condition, columns);
                } else {
                    small_columns(condition, columns);
                }
                first = false;
                small_columns(result, columns);
            }
            if let Some(otherwise) = otherwise {
                small_columns(otherwise, columns);
            }
        }
        Kind::Column { source, column } => columns.push((*source, *column)),
        // Whether the rows of a subquery are ever looked at is not known, but what it takes from
        // outside cannot be read from inside without reading it for each row.
        Kind::Subquery(_) => bound.collect_columns(columns),
        _ => bound
            .operands()
            .into_iter()
            .for_each(|operand| eager_columns(operand, columns)),
    }
}

fn small_columns(bound: &Bound, columns: &mut Vec<(SourceId, u16)>) {
    let mut all = Vec::new();
    bound.visit(&mut |node| {
        if let Kind::Column { source, column } = node.kind {
            let in_heap = node.data_type.is_string()
                || matches!(
                    node.data_type,
                    DataType::Bytea | DataType::Uuid | DataType::Catalog(_)
                );
            if !in_heap {
                all.push((source, column));
            }
        }
    });
    columns.append(&mut all);
}
