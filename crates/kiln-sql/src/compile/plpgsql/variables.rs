//! Variables: their scopes, and the shapes of records.

use kiln_procedure::ir::{Failure, Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Expr;

use super::super::bound::Shape;
use super::super::scope::{Field, Variable};
use super::super::{Compiler, Position, fail, name_of, unsupported};
use super::body::Body;
use super::liveness;
use crate::parse::plpgsql::Statement;

/// The variables of one block, as the compiler's scope of the same block has them.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub label: Option<String>,
    pub entries: Vec<Entry>,
}

/// A variable.
#[derive(Debug)]
pub(super) struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Clone, Debug)]
pub(super) enum EntryKind {
    /// A variable with one value.
    Scalar(Slot),
    /// A variable of a table's row type.
    Row { fields: Vec<Field>, constant: bool },
    /// A variable of type RECORD.
    Record(Record),
}

/// Where a value goes.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub register: Reg,
    pub data_type: DataType,
    pub constant: bool,
    pub not_null: bool,
    pub name: String,
}

/// A variable of type RECORD.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// By which [`super::Inference::shapes`] knows it.
    key: usize,
    /// The registers of each shape that it takes.
    pub shapes: Vec<Vec<Field>>,
    /// The shape at this point of the text; `None` where it depends on the path taken.
    pub current: Option<usize>,
    /// TRUE once it was assigned to.
    pub assigned: Reg,
    /// The number of conditionals and loops around its declaration.
    regions: usize,
}

impl Scope {
    pub(super) fn new(label: Option<String>) -> Scope {
        Scope {
            label,
            entries: Vec::new(),
        }
    }
}

impl Body {
    /// Declares a variable in the innermost scope, here and in the compiler.
    ///
    /// # Errors
    /// 42601 when the block has one of that name.
    pub(super) fn declare_slot(
        &mut self,
        c: &mut Compiler<'_>,
        slot: Slot,
        position: Position,
    ) -> Result<()> {
        let variable = Variable::Scalar {
            register: slot.register,
            data_type: slot.data_type.clone(),
            constant: slot.constant,
            not_null: slot.not_null,
        };
        self.declare(
            c,
            slot.name.clone(),
            EntryKind::Scalar(slot),
            variable,
            position,
        )
    }

    /// Declares a variable of a row type; its fields begin as NULL.
    pub(super) fn declare_row(
        &mut self,
        c: &mut Compiler<'_>,
        name: &str,
        shape: &Shape,
        constant: bool,
        position: Position,
    ) -> Result<Vec<Field>> {
        let fields = new_fields(c, shape);
        let variable = Variable::Record {
            fields: fields.clone(),
            of: None,
            is_there: false,
        };
        let kind = EntryKind::Row {
            fields: fields.clone(),
            constant,
        };
        self.declare(c, name.to_owned(), kind, variable, position)?;
        Ok(fields)
    }

    /// Declares a row that is not there, to which nothing is assigned: its fields are NULL, which
    /// is known.
    pub(super) fn declare_absent_row(
        &mut self,
        c: &mut Compiler<'_>,
        name: &str,
        shape: &Shape,
    ) -> Result<()> {
        let fields: Vec<Field> = (shape.iter())
            .map(|(name, data_type)| Field {
                name: name.clone(),
                register: c.builder.constant(data_type.clone(), Value::Null),
                data_type: data_type.clone(),
            })
            .collect();
        let variable = Variable::Record {
            fields: fields.clone(),
            of: None,
            is_there: false,
        };
        let kind = EntryKind::Row {
            fields,
            constant: false,
        };
        self.declare(c, name.to_owned(), kind, variable, None)
    }

    /// Declares a variable of type RECORD, known by `key`.
    pub(super) fn declare_record(
        &mut self,
        c: &mut Compiler<'_>,
        name: &str,
        key: usize,
        position: Position,
    ) -> Result<()> {
        let shapes = c.routines.shapes.get(&key).cloned().unwrap_or_default();
        let shapes: Vec<Vec<Field>> = shapes.iter().map(|shape| new_fields(c, shape)).collect();
        let assigned = c.builder.register(DataType::Boolean);
        set_boolean(c, assigned, false);
        // With one shape, the fields can be named before the first assignment in the text.
        let current = if shapes.len() == 1 { Some(0) } else { None };
        for fields in &shapes {
            let registers = fields.iter().map(|field| field.register).collect();
            self.guards.push((assigned, registers));
        }
        let fields = current
            .map(|shape| shapes[shape].clone())
            .unwrap_or_default();
        let record = Record {
            key,
            shapes,
            current,
            assigned,
            regions: self.regions,
        };
        let variable = Variable::Record {
            fields,
            of: None,
            is_there: false,
        };
        self.declare(
            c,
            name.to_owned(),
            EntryKind::Record(record),
            variable,
            position,
        )
    }

    fn declare(
        &mut self,
        c: &mut Compiler<'_>,
        name: String,
        kind: EntryKind,
        variable: Variable,
        position: Position,
    ) -> Result<()> {
        if let Err(error) = c.declare(&name, variable, position) {
            return Err(refuse(c, error));
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.entries.push(Entry { name, kind });
        }
        Ok(())
    }

    /// The names of all variables in scope.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let entries = self.scopes.iter().flat_map(|scope| &scope.entries);
        entries.map(|entry| entry.name.as_str())
    }

    /// Whether a record's fields are unknown here because they depend on the path taken.
    pub(super) fn has_unsure_record(&self) -> bool {
        let mut entries = self.scopes.iter().flat_map(|scope| &scope.entries);
        entries.any(|entry| {
            matches!(&entry.kind, EntryKind::Record(record)
                if record.current.is_none() && record.shapes.len() > 1)
        })
    }

    /// The entry that a path begins with, by its scope and place, and how much of the path names
    /// it: as the compiler's own look-up does it.
    pub(super) fn find(&self, path: &[String]) -> Option<(usize, usize, usize)> {
        let first = path.first()?;
        for (number, scope) in self.scopes.iter().enumerate().rev() {
            let find = |name: &String| scope.entries.iter().position(|entry| entry.name == *name);
            let fits = |index: usize, rest: usize| match &scope.entries[index].kind {
                EntryKind::Scalar(slot) => rest == 0 || slot.data_type.row().is_some(),
                EntryKind::Row { .. } | EntryKind::Record(_) => true,
            };
            if let Some(index) = find(first)
                && fits(index, path.len() - 1)
            {
                return Some((number, index, 1));
            }
            if path.len() > 1
                && scope.label.as_ref() == Some(first)
                && let Some(index) = find(&path[1])
                && fits(index, path.len() - 2)
            {
                return Some((number, index, 2));
            }
        }
        None
    }

    /// The entry that an expression names, when it is nothing but a variable's name.
    pub(super) fn named_entry(&self, expr: &Expr) -> Option<&EntryKind> {
        let path: Vec<String> = match expr {
            Expr::Identifier(ident) => vec![name_of(ident)],
            Expr::CompoundIdentifier(idents) => idents.iter().map(name_of).collect(),
            Expr::Nested(inner) => return self.named_entry(inner),
            _ => return None,
        };
        let (scope, index, used) = self.find(&path)?;
        (used == path.len()).then(|| &self.scopes[scope].entries[index].kind)
    }

    /// The fields of the row or record variable that `expr` names; `None` when it names none.
    ///
    /// # Errors
    /// 55000 for a record without fields, 0A000 where its fields depend on the path taken.
    pub(super) fn named_fields(
        &self,
        c: &mut Compiler<'_>,
        expr: &Expr,
        position: Position,
    ) -> Result<Option<Vec<Field>>> {
        match self.named_entry(expr) {
            Some(EntryKind::Row { fields, .. }) => Ok(Some(fields.clone())),
            Some(EntryKind::Record(record)) => match record.current {
                Some(shape) => Ok(Some(record.shapes[shape].clone())),
                None if record.shapes.len() > 1 => Err(refuse(c, depends(position))),
                None => Err(fail(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("record \"{expr}\" is not assigned yet"),
                    position,
                )
                .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")),
            },
            _ => Ok(None),
        }
    }

    /// The fields that a record has after something of this shape is assigned to it.
    pub(super) fn shape_record(
        &mut self,
        c: &mut Compiler<'_>,
        (scope, index): (usize, usize),
        shape: &Shape,
    ) -> Vec<Field> {
        let EntryKind::Record(record) = &mut self.scopes[scope].entries[index].kind else {
            return Vec::new();
        };
        let known = record.shapes.iter().position(|fields| {
            fields.len() == shape.len()
                && fields.iter().zip(shape).all(|(field, (name, data_type))| {
                    field.name == *name && field.data_type == *data_type
                })
        });
        let number = known.unwrap_or_else(|| {
            c.routines
                .shapes
                .entry(record.key)
                .or_default()
                .push(shape.clone());
            c.routines.grew = true;
            c.routines.reshaped = true;
            record.shapes.push(new_fields(c, shape));
            record.shapes.len() - 1
        });
        record.current = Some(number);
        let fields = record.shapes[number].clone();
        self.publish_record(c, scope, index);
        fields
    }

    /// Tells the compiler of a record's current shape.
    pub(super) fn publish_record(&self, c: &mut Compiler<'_>, scope: usize, index: usize) {
        let entry = &self.scopes[scope].entries[index];
        let EntryKind::Record(record) = &entry.kind else {
            return;
        };
        let fields = match record.current {
            Some(shape) => record.shapes[shape].clone(),
            None => Vec::new(),
        };
        let below = c.variables.len() - self.scopes.len();
        let variable = Variable::Record {
            fields,
            of: None,
            is_there: false,
        };
        c.redeclare_in(below + scope, &entry.name, variable);
    }

    /// Notes that a record has been assigned to.
    pub(super) fn mark_assigned(&mut self, c: &mut Compiler<'_>, (scope, index): (usize, usize)) {
        if let EntryKind::Record(record) = &self.scopes[scope].entries[index].kind {
            set_boolean(c, record.assigned, true);
        }
    }

    /// Compiles what may not run, or may run again: shapes that records take inside are unsure
    /// behind it; and those of records that the body of a loop assigns to, also at its beginning.
    /// This matters only for records that take several shapes.
    pub(super) fn region<'a, T>(
        &mut self,
        c: &mut Compiler<'a>,
        repeated: &[Statement],
        compile: impl FnOnce(&mut Self, &mut Compiler<'a>) -> Result<T>,
    ) -> Result<T> {
        let before = self.current_shapes();
        for (scope, index, _) in &before {
            let name = &self.scopes[*scope].entries[*index].name;
            if liveness::assigns(repeated, name) {
                self.set_current(c, *scope, *index, None);
            }
        }
        self.regions += 1;
        let result = compile(self, c)?;
        self.regions -= 1;
        for (scope, index, shape) in before {
            let EntryKind::Record(record) = &self.scopes[scope].entries[index].kind else {
                continue;
            };
            if record.current != shape {
                self.set_current(c, scope, index, None);
            }
        }
        Ok(result)
    }

    /// The records that take several shapes, each with its shape here.
    fn current_shapes(&self) -> Vec<(usize, usize, Option<usize>)> {
        let mut found = Vec::new();
        for (number, scope) in self.scopes.iter().enumerate() {
            for (index, entry) in scope.entries.iter().enumerate() {
                if let EntryKind::Record(record) = &entry.kind
                    && record.shapes.len() > 1
                    && record.regions <= self.regions
                {
                    found.push((number, index, record.current));
                }
            }
        }
        found
    }

    fn set_current(
        &mut self,
        c: &mut Compiler<'_>,
        scope: usize,
        index: usize,
        shape: Option<usize>,
    ) {
        if let EntryKind::Record(record) = &mut self.scopes[scope].entries[index].kind {
            record.current = shape;
        }
        self.publish_record(c, scope, index);
    }
}

pub(super) fn new_fields(c: &mut Compiler<'_>, shape: &Shape) -> Vec<Field> {
    let fields: Vec<Field> = shape
        .iter()
        .map(|(name, data_type)| Field {
            name: name.clone(),
            register: c.builder.register(data_type.clone()),
            data_type: data_type.clone(),
        })
        .collect();
    set_null(c, fields.iter().map(|field| field.register));
    fields
}

pub(super) fn field_slot(
    fields: &[Field],
    path: &[String],
    name: &str,
    position: Position,
) -> Result<Slot> {
    let Some(field) = fields.iter().find(|field| field.name == *name) else {
        let record = path[..path.len() - 1].join(".");
        let message = format!("record \"{record}\" has no field \"{name}\"");
        return Err(fail(SqlState::UNDEFINED_COLUMN, message, position));
    };
    Ok(Slot {
        register: field.register,
        data_type: field.data_type.clone(),
        constant: false,
        not_null: false,
        name: path.join("."),
    })
}

pub(super) fn set_null(c: &mut Compiler<'_>, registers: impl Iterator<Item = Reg>) {
    for target in registers {
        c.builder.scalar(Instruction::SetNull { target });
    }
}

pub(super) fn set_boolean(c: &mut Compiler<'_>, target: Reg, value: bool) {
    let source = c.builder.constant(DataType::Boolean, Value::Boolean(value));
    c.builder.scalar(Instruction::Move { target, source });
}

/// Refuses NULL for a variable that is declared so.
pub(super) fn require_not_null(c: &mut Compiler<'_>, slot: &Slot, position: Position) {
    if slot.not_null {
        let message = format!(
            "null value cannot be assigned to variable \"{}\" declared NOT NULL",
            slot.name
        );
        let error = fail(SqlState::NULL_VALUE_NOT_ALLOWED, message, position);
        let error = Box::new(failure(&error));
        c.builder.scalar(Instruction::RequireNotNull {
            source: slot.register,
            error,
        });
    }
}

/// An error that a step raises.
pub(super) fn failure(error: &Error) -> Failure {
    let literal = |text: &str| kiln_procedure::ir::TextSource::Literal(text.to_owned());
    Failure {
        state: error.state(),
        message: error.message().to_owned(),
        arguments: Box::new([]),
        detail: error.detail().map(literal),
        hint: error.hint().map(literal),
        subject: Some(Box::new(error.subject().clone())),
        position: error
            .position()
            .map(|position| (position.line, position.column)),
    }
}

/// A step that raises `error`.
pub(super) fn raise_step(error: &Error) -> Step {
    Step::Raise {
        error: Box::new(failure(error)),
    }
}

/// Notes that `error` is one of creation, whatever its state.
pub(super) fn refuse(c: &mut Compiler<'_>, error: Error) -> Error {
    c.routines.refused = true;
    error
}

pub(super) fn depends(position: Position) -> Error {
    unsupported("a record whose fields depend on the path taken", position)
}

pub(super) fn not_assigned(path: &[String], position: Position) -> Error {
    let record = path[..path.len().saturating_sub(1)].join(".");
    fail(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("record \"{record}\" is not assigned yet"),
        position,
    )
    .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}
