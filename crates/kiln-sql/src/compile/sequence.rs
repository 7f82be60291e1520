//! Functions of sequences, and sequences in FROM.
//!
//! A sequence that is named by a literal is found when the statement is compiled, and a draw looks
//! for nothing then. Any other name is looked for when the statement runs: only superusers may do
//! that, as it is not known before which sequence it will be.

use kiln_engine::{Object, Privilege};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::sequence::Sequence;
use kiln_storage::types::{CatalogType, DataType, Value};
use sqlparser::ast::TableAlias;

use super::bound::{Bound, ColumnMeta, ItemKind, Kind, Operation};
use super::coerce::{CastContext, coerce};
use super::from::FromScope;
use super::plan::PlanStep;
use super::produce::RowSink;
use super::{Compiler, Position, fail, name_of};
use crate::catalog::{SequenceCall, SequenceFunction, SequenceRow, qualified_name};

/// The columns of a sequence as a relation.
pub(crate) const COLUMNS: [(&str, DataType); 3] = [
    ("last_value", DataType::BigInt),
    ("log_cnt", DataType::BigInt),
    ("is_called", DataType::Boolean),
];

/// The function of sequences with this name and number of arguments.
fn call_named(name: &str, arguments: usize) -> Option<SequenceCall> {
    Some(match (name, arguments) {
        ("nextval", 1) => SequenceCall::Next,
        ("currval", 1) => SequenceCall::Current,
        ("lastval", 0) => SequenceCall::Last,
        ("setval", 2) => SequenceCall::Set,
        ("setval", 3) => SequenceCall::SetCalled,
        _ => return None,
    })
}

/// The text by which an operand names a sequence, if it is a literal.
fn literal(operand: &Bound) -> Option<&str> {
    match &operand.kind {
        Kind::Operation(Operation::Consult(_), operands) => match operands.as_slice() {
            [
                Bound {
                    kind: Kind::Constant(Value::Text(text)),
                    ..
                },
            ] => Some(text),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Compiler<'a> {
    /// Binds a call of a function of sequences; gives the arguments back for any other.
    ///
    /// # Errors
    /// 42P01 when a literal names no relation, 42809 when it is no sequence.
    pub(super) fn bind_sequence_call(
        &mut self,
        name: &str,
        arguments: Vec<Bound>,
        position: Position,
    ) -> Result<std::result::Result<Bound, Vec<Bound>>> {
        let Some(call) = call_named(name, arguments.len()) else {
            return Ok(Err(arguments));
        };
        let types = [
            DataType::Catalog(CatalogType::RegClass),
            DataType::BigInt,
            DataType::Boolean,
        ];
        let converts = arguments.iter().zip(&types).all(|(argument, wanted)| {
            argument.is_unknown() || coerce(argument.clone(), wanted, CastContext::Implicit).is_ok()
        });
        if !converts {
            return Ok(Err(arguments));
        }
        let operands = arguments.into_iter().zip(&types);
        let operands: Vec<Bound> = operands
            .map(|(argument, wanted)| coerce(argument, wanted, CastContext::Implicit))
            .collect::<Result<_>>()?;
        if let Some(operand) = operands.first() {
            let privilege = match call {
                SequenceCall::Set | SequenceCall::SetCalled => Privilege::Update,
                _ => Privilege::Usage,
            };
            match literal(operand) {
                Some(text) => {
                    let sequence = self.sequence_of(text, operand.position)?;
                    self.note_access(Object::sequence(sequence.name()), privilege);
                }
                None => self.note_access(Object::sequence(""), privilege),
            }
        }
        let kind = Kind::Operation(Operation::Sequence(call), operands);
        Ok(Ok(Bound::new(kind, DataType::BigInt, position)))
    }

    /// The sequence that a text names.
    fn sequence_of(&self, text: &str, position: Position) -> Result<Arc<Sequence>> {
        let name = qualified_name(text, self.catalog).map_err(|error| {
            let message = error.message().to_owned();
            fail(error.state(), message, position)
        })?;
        if let Some(sequence) = self.catalog.sequence(&name) {
            return Ok(sequence);
        }
        let (state, message) = match super::qualified::is_relation(self.catalog, &name) {
            true => (
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", name_in_schema(&name)),
            ),
            false => (
                SqlState::UNDEFINED_TABLE,
                format!(
                    "relation \"{}\" does not exist",
                    name.strip_prefix('.').unwrap_or(&name)
                ),
            ),
        };
        Err(fail(state, message, position))
    }

    /// Computes a call of a function of sequences.
    pub(super) fn emit_sequence_call(
        &mut self,
        call: SequenceCall,
        operands: &[Bound],
        target: Option<Reg>,
    ) -> Result<Reg> {
        let named = match operands.first().map(|operand| (literal(operand), operand)) {
            Some((Some(text), operand)) => Some(self.sequence_of(text, operand.position)?),
            _ => None,
        };
        let operands = match &named {
            Some(_) => &operands[1..],
            None => operands,
        };
        let mut arguments = Vec::with_capacity(operands.len());
        for operand in operands {
            arguments.push(self.emit(operand)?);
        }
        let function = SequenceFunction {
            call,
            sequence: named,
            catalog: self.current_catalog()?,
        };
        let target = target.unwrap_or_else(|| self.builder.register(DataType::BigInt));
        self.builder.scalar(Instruction::Consult {
            function: Arc::new(function),
            target,
            arguments: arguments.into(),
        });
        Ok(target)
    }

    /// A sequence in FROM: one row, which says how far it has got.
    pub(super) fn bind_sequence_relation(
        &mut self,
        sequence: Arc<Sequence>,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<FromScope> {
        self.note_access(Object::sequence(sequence.name()), Privilege::Select);
        let columns = COLUMNS.map(|(name, data_type)| ColumnMeta {
            name: name.to_owned(),
            data_type,
            origin: None,
        });
        let name = name_in_schema(sequence.name()).to_owned();
        let name = alias.map_or(name, |alias| name_of(&alias.name));
        self.derived(
            ItemKind::Sequence(sequence),
            &columns,
            &name,
            alias,
            position,
        )
    }

    /// Runs `body` for the row of a sequence.
    pub(super) fn emit_sequence_row(
        &mut self,
        step: &PlanStep,
        sequence: &Arc<Sequence>,
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let buffer = self.builder.buffer(COLUMNS.len());
        self.builder.push(Step::BufferFill {
            buffer,
            rows: Arc::new(SequenceRow(sequence.clone())),
            arguments: Box::default(),
        });
        let row = COLUMNS.map(|(_, data_type)| self.builder.register(data_type));
        self.open_ir_loop();
        for (column, register) in row.iter().enumerate() {
            self.set_column(step.source, column, *register);
        }
        let result = body(self);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        result
    }
}
