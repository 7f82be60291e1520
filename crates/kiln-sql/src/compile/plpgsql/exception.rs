//! EXCEPTION clauses, and what their handlers ask of the error.
//!
//! The statements of the block become the body of a protected region ([`Step::Protect`]), and the
//! handlers conditionals behind it. What the default of a variable raises is not caught, as in
//! PostgreSQL: declarations come before the region.

use kiln_procedure::ir::{Class, Comparison, DiagnosticItem, Instruction, Reg, RegionId, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::super::coerce::CastContext;
use super::super::{Compiler, Position, Typed, fail};
use super::assign::Destined;
use super::body::Body;
use super::variables::{Scope, Slot, refuse, require_not_null};
use super::{at, liveness};
use crate::parse::plpgsql::{Block, Handler, Target};

impl Body {
    /// The statements of a block with handlers.
    pub(super) fn protected(
        &mut self,
        c: &mut Compiler<'_>,
        block: &Block,
        found: bool,
    ) -> Result<()> {
        let region = c.builder.region();
        let caught = c.builder.register(DataType::BigInt);
        let found_behind = found || liveness::mentions(&block.handlers, "found");
        let keeps_found = self.keeps_found;
        self.keeps_found |= found_behind;
        c.open_ir_loop();
        let result = self.region(c, &[], |this, c| {
            this.statements(c, &block.body, found_behind)
        });
        let body = c.close_ir_loop();
        self.keeps_found = keeps_found;
        result?;
        let handlers = block.handlers.iter();
        let handlers = handlers.map(|handler| handler.conditions.clone().into());
        c.builder.push(Step::Protect {
            region,
            handlers: handlers.collect(),
            caught,
            body,
        });
        self.handlers(c, &block.handlers, 1, (region, caught), found)
    }

    /// The handlers from the one with this number on, each where `caught` says so.
    fn handlers(
        &mut self,
        c: &mut Compiler<'_>,
        handlers: &[Handler],
        number: i64,
        (region, caught): (RegionId, Reg),
        found: bool,
    ) -> Result<()> {
        let Some((handler, rest)) = handlers.split_first() else {
            return Ok(());
        };
        let right = c.builder.constant(DataType::BigInt, Value::BigInt(number));
        let condition = c.builder.register(DataType::Boolean);
        c.builder.scalar(Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: condition,
            left: caught,
            right,
        });
        c.open();
        let outer = self.caught.replace(region);
        let result = self.region(c, &[], |this, c| this.handler(c, handler, region, found));
        self.caught = outer;
        let then = c.close();
        result?;
        c.open();
        let result = self.region(c, &[], |this, c| {
            this.handlers(c, rest, number + 1, (region, caught), found)
        });
        let otherwise = c.close();
        result?;
        c.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        Ok(())
    }

    /// The statements of a handler, with SQLSTATE and SQLERRM.
    fn handler(
        &mut self,
        c: &mut Compiler<'_>,
        handler: &Handler,
        region: RegionId,
        found: bool,
    ) -> Result<()> {
        c.push_variables(None);
        self.scopes.push(Scope::new(None));
        for (name, item) in [
            ("sqlstate", DiagnosticItem::ReturnedSqlState),
            ("sqlerrm", DiagnosticItem::MessageText),
        ] {
            let register = diagnosed(c, region, item);
            let slot = Slot {
                register,
                data_type: DataType::Text,
                constant: true,
                not_null: false,
                name: name.to_owned(),
            };
            self.declare_slot(c, slot, None)?;
        }
        let result = self.statements(c, &handler.body, found);
        self.scopes.pop();
        c.pop_variables();
        result
    }

    /// `GET STACKED DIAGNOSTICS`.
    pub(super) fn get_stacked(
        &mut self,
        c: &mut Compiler<'_>,
        items: &[(Target, DiagnosticItem)],
        position: Position,
    ) -> Result<()> {
        let region = self.caught;
        let region = region.ok_or_else(|| outside_handler("GET STACKED DIAGNOSTICS", position))?;
        for (target, item) in items {
            let position = at(target.position);
            let Destined::Slot(slot) = self.target(c, target)? else {
                let message = "a target of GET DIAGNOSTICS is a scalar variable";
                return Err(refuse(c, fail(SqlState::SYNTAX_ERROR, message, position)));
            };
            let typed = Typed {
                register: diagnosed(c, region, *item),
                data_type: DataType::Text,
            };
            let context = CastContext::Variable;
            c.cast_into(&typed, slot.register, &slot.data_type, context, position)?;
            require_not_null(c, &slot, position);
        }
        Ok(())
    }
}

/// A register with what a caught error says.
fn diagnosed(c: &mut Compiler<'_>, region: RegionId, item: DiagnosticItem) -> Reg {
    let target = c.builder.register(DataType::Text);
    c.builder.push(Step::Diagnose {
        region,
        item,
        target,
    });
    target
}

/// The error of a statement outside of a handler that may only stand inside one.
pub(super) fn outside_handler(statement: &str, position: Position) -> Error {
    let state = SqlState::parse("0Z002").unwrap_or(SqlState::PLPGSQL_ERROR);
    let message = format!("{statement} cannot be used outside an exception handler");
    fail(state, message, position)
}
