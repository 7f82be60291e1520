//! IF, CASE, the loops that are not over rows, EXIT and CONTINUE.

use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Ident, UnaryOperator};

use super::super::coerce::CastContext;
use super::super::scope::Variable;
use super::super::{Compiler, Position, Typed, fail, name_of};
use super::assign::Destined;
use super::body::Body;
use super::variables::{EntryKind, Scope, Slot, failure, refuse, require_not_null, set_boolean};
use super::{at, liveness};
use crate::parse::Expression;
use crate::parse::plpgsql::{CaseArm, ExitKind, ForRange, Loop, Statement, Target};

/// A loop, or a block with a label, that is open.
#[derive(Clone, Debug)]
pub(super) struct OpenLoop {
    pub label: Option<String>,
    /// A loop that sets FOUND when it is left.
    pub is_for: bool,
}

impl Body {
    /// `IF … ELSIF … ELSE`.
    pub(super) fn if_statement(
        &mut self,
        c: &mut Compiler<'_>,
        branches: &[(Expression, Vec<Statement>)],
        otherwise: &[Statement],
        found: bool,
    ) -> Result<()> {
        let Some(((condition, body), rest)) = branches.split_first() else {
            return self.statements(c, otherwise, found);
        };
        // What a trigger does for other events is not compiled.
        let known = self.is_of_trigger.then(|| c.known_truth(&condition.expr));
        match known.flatten() {
            Some(true) => return self.statements(c, body, found),
            Some(false) => return self.if_statement(c, rest, otherwise, found),
            None => {}
        }
        let negated = self.is_not_found(&condition.expr);
        let condition = match negated {
            true => self.found,
            false => self.condition(c, condition)?,
        };
        c.open();
        self.region(c, &[], |this, c| this.statements(c, body, found))?;
        let then = c.close();
        c.open();
        self.region(c, &[], |this, c| {
            this.if_statement(c, rest, otherwise, found)
        })?;
        let otherwise = c.close();
        c.builder.push(match negated {
            true => Step::If {
                condition,
                then: otherwise,
                otherwise: then,
            },
            false => Step::If {
                condition,
                then,
                otherwise,
            },
        });
        Ok(())
    }

    /// Whether an expression is `NOT FOUND`, and FOUND, which only statements set, is never NULL.
    fn is_not_found(&self, expr: &Expr) -> bool {
        let Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } = expr
        else {
            return false;
        };
        let is_found = matches!(
            self.named_entry(expr),
            Some(EntryKind::Scalar(slot)) if slot.register == self.found
        );
        is_found && !self.assigns_found
    }

    /// `CASE`.
    pub(super) fn case(
        &mut self,
        c: &mut Compiler<'_>,
        operand: Option<&Expression>,
        arms: &[CaseArm],
        otherwise: Option<&[Statement]>,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let Some(operand) = operand else {
            return self.arms(c, None, arms, otherwise, found, position);
        };
        let typed = c.expression(&operand.expr, None)?;
        // The operand is computed once; the arms name it as a variable that no text can name.
        let is_known = self.is_of_trigger && c.builder.constant_value(typed.register).is_some();
        let register = match is_known {
            true => typed.register,
            false => {
                let target = c.builder.register(typed.data_type.clone());
                let source = typed.register;
                c.builder.scalar(Instruction::Move { target, source });
                target
            }
        };
        let name = format!("__Case__Variable_{}__", self.scopes.len());
        c.push_variables(None);
        self.scopes.push(Scope::new(None));
        let variable = Variable::Scalar {
            register,
            data_type: typed.data_type,
            constant: true,
            not_null: false,
        };
        c.declare(&name, variable, position)?;
        let ident = Expr::Identifier(Ident::with_quote('"', name));
        let result = self.arms(c, Some(&ident), arms, otherwise, found, position);
        self.scopes.pop();
        c.pop_variables();
        result
    }

    fn arms(
        &mut self,
        c: &mut Compiler<'_>,
        operand: Option<&Expr>,
        arms: &[CaseArm],
        otherwise: Option<&[Statement]>,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let Some((arm, rest)) = arms.split_first() else {
            return match otherwise {
                Some(otherwise) => self.statements(c, otherwise, found),
                None => {
                    let error = fail(SqlState::CASE_NOT_FOUND, "case not found", position)
                        .with_hint("CASE statement is missing ELSE part.");
                    c.builder.push(Step::Raise {
                        error: Box::new(failure(&error)),
                    });
                    Ok(())
                }
            };
        };
        let tested = match operand {
            Some(operand) => Expr::InList {
                expr: Box::new(operand.clone()),
                list: arm.values.iter().map(|value| value.expr.clone()).collect(),
                negated: false,
            },
            None => match arm.values.first() {
                Some(value) => value.expr.clone(),
                None => return Ok(()),
            },
        };
        let known = self.is_of_trigger.then(|| c.known_truth(&tested));
        match known.flatten() {
            Some(true) => return self.statements(c, &arm.body, found),
            Some(false) => return self.arms(c, operand, rest, otherwise, found, position),
            None => {}
        }
        let condition = match operand {
            Some(_) => c.condition(&tested, "CASE")?,
            None => c.truth(&tested)?,
        };
        c.open();
        self.region(c, &[], |this, c| this.statements(c, &arm.body, found))?;
        let then = c.close();
        c.open();
        self.region(c, &[], |this, c| {
            this.arms(c, operand, rest, otherwise, found, position)
        })?;
        let otherwise = c.close();
        c.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        Ok(())
    }

    /// The statements of a loop's body.
    fn iterations(
        &mut self,
        c: &mut Compiler<'_>,
        body: &Loop,
        is_for: bool,
        found: bool,
    ) -> Result<()> {
        let label = body.label.as_ref().map(name_of);
        self.loops.push(OpenLoop { label, is_for });
        let result = self.region(c, &body.body, |this, c| {
            this.statements(c, &body.body, found)
        });
        self.loops.pop();
        result
    }

    /// `LOOP`.
    pub(super) fn endless(&mut self, c: &mut Compiler<'_>, body: &Loop, found: bool) -> Result<()> {
        let label = body.label.as_ref().map(name_of);
        let handle = c.open_loop(label.as_deref());
        let found = liveness::found_is_read_in(&body.body, found);
        let result = self.iterations(c, body, false, found);
        let body = c.close_loop(handle);
        result?;
        c.builder.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
        Ok(())
    }

    /// `WHILE`.
    pub(super) fn while_loop(
        &mut self,
        c: &mut Compiler<'_>,
        condition: &Expression,
        body: &Loop,
        found: bool,
    ) -> Result<()> {
        let label = body.label.as_ref().map(name_of);
        let found = found
            || liveness::mentions(condition, "found")
            || liveness::found_is_read_in(&body.body, false);
        c.open();
        let condition = self.condition(c, condition);
        let before = c.close();
        let condition = Some(condition?);
        let handle = c.open_loop(label.as_deref());
        let result = self.iterations(c, body, false, found);
        let body = c.close_loop(handle);
        result?;
        c.builder.push(Step::Loop {
            before,
            condition,
            body,
        });
        Ok(())
    }

    /// `FOR variable IN from..to`.
    pub(super) fn for_range(
        &mut self,
        c: &mut Compiler<'_>,
        range: &ForRange,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let context = CastContext::Variable;
        let mut bound =
            |value: &Expression| c.expression_as(&value.expr, &DataType::Integer, context);
        let (first, last) = (bound(&range.from)?, bound(&range.to)?);
        let step = match &range.step {
            Some(step) => bound(step)?,
            None => c.builder.constant(DataType::Integer, Value::Integer(1)),
        };
        let iterated = c.builder.register(DataType::Boolean);
        set_boolean(c, iterated, false);
        let variable = c.builder.register(DataType::Integer);
        let name = name_of(&range.variable);
        let label = range.body.label.as_ref().map(name_of);
        c.push_variables(label.as_deref());
        self.scopes.push(Scope::new(label.clone()));
        let slot = Slot {
            register: variable,
            data_type: DataType::Integer,
            constant: false,
            not_null: false,
            name,
        };
        self.declare_slot(c, slot, position)?;
        let handle = c.open_loop(label.as_deref());
        set_boolean(c, iterated, true);
        let again = liveness::found_is_read_in(&range.body.body, false);
        let result = self.iterations(c, &range.body, true, again);
        let body = c.close_loop(handle);
        self.scopes.pop();
        c.pop_variables();
        result?;
        let reverse = range.reverse;
        c.builder.push(Step::ForRange {
            variable,
            first,
            last,
            step,
            reverse,
            body,
        });
        self.set_found(c, found.then_some(iterated));
        Ok(())
    }

    /// `FOREACH target IN ARRAY array`.
    pub(super) fn for_each(
        &mut self,
        c: &mut Compiler<'_>,
        target: &Target,
        array: &Expression,
        body: &Loop,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let label = body.label.as_ref().map(name_of);
        let slot = match self.target(c, target)? {
            Destined::Slot(slot) => slot,
            _ => {
                let message = "loop variable of FOREACH must be a known scalar variable";
                let error = fail(SqlState::SYNTAX_ERROR, message, at(target.position));
                return Err(refuse(c, error));
            }
        };
        let typed = c.expression(&array.expr, None)?;
        let DataType::Array(element) = &typed.data_type else {
            let message = format!(
                "FOREACH expression must yield an array, not type {}",
                typed.data_type.base_name()
            );
            return Err(fail(
                SqlState::DATATYPE_MISMATCH,
                message,
                at(array.position),
            ));
        };
        let element = (**element).clone();
        let iterated = c.builder.register(DataType::Boolean);
        set_boolean(c, iterated, false);
        let variable = match element == slot.data_type {
            true => slot.register,
            false => c.builder.register(element.clone()),
        };
        let handle = c.open_loop(label.as_deref());
        set_boolean(c, iterated, true);
        let again = liveness::found_is_read_in(&body.body, false);
        let result = self.foreach_iteration(c, variable, element, &slot, position);
        let result = result.and_then(|()| self.iterations(c, body, true, again));
        let body = c.close_loop(handle);
        result?;
        c.builder.push(Step::ForEach {
            variable,
            array: typed.register,
            body,
        });
        self.set_found(c, found.then_some(iterated));
        Ok(())
    }

    fn foreach_iteration(
        &mut self,
        c: &mut Compiler<'_>,
        variable: Reg,
        element: DataType,
        slot: &Slot,
        position: Position,
    ) -> Result<()> {
        if variable != slot.register {
            let typed = Typed {
                register: variable,
                data_type: element,
            };
            let context = CastContext::Variable;
            c.cast_into(&typed, slot.register, &slot.data_type, context, position)?;
        }
        require_not_null(c, slot, position);
        Ok(())
    }

    /// `EXIT` and `CONTINUE`.
    pub(super) fn exit(
        &mut self,
        c: &mut Compiler<'_>,
        kind: ExitKind,
        label: Option<&Ident>,
        condition: Option<&Expression>,
        position: Position,
    ) -> Result<()> {
        let label = label.map(name_of);
        let negated = condition.is_some_and(|condition| self.is_not_found(&condition.expr));
        let condition = match condition {
            Some(_) if negated => Some(self.found),
            Some(condition) => Some(self.condition(c, condition)?),
            None => None,
        };
        c.open();
        // Loops that are left on the way say that they ran an iteration; the one that is meant does
        // so itself when it ends.
        let passed = self
            .loops
            .iter()
            .rev()
            .take_while(|open| open.label != label);
        if label.is_some() && passed.filter(|open| open.is_for).count() > 0 {
            set_boolean(c, self.found, true);
        }
        let result = match kind {
            ExitKind::Exit => c.exit_loop(label.as_deref(), position),
            ExitKind::Continue => c.continue_loop(label.as_deref(), position),
        };
        let then = c.close();
        if let Err(error) = result {
            return Err(refuse(c, error));
        }
        match condition {
            Some(condition) => {
                let (then, otherwise) = match negated {
                    true => (Vec::new(), then),
                    false => (then, Vec::new()),
                };
                c.builder.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
            }
            None => super::rows::append(c, then),
        }
        Ok(())
    }
}
