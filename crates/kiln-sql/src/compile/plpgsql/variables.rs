//! Variables: their scopes, and every way to assign to them.

use kiln_procedure::ir::{Failure, Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Expr;

use super::super::coerce::CastContext;
use super::super::functions;
use super::super::query::OutputColumn;
use super::super::scope::{Field, Variable};
use super::super::{Compiler, Position, Typed, fail, name_of, unsupported};
use super::body::Body;
use super::{Shape, at, liveness};
use crate::parse::Expression;
use crate::parse::plpgsql::{Statement, Target};

/// The variables of one block, as the compiler's scope of the same block has them.
#[derive(Debug, Default)]
pub(super) struct Scope {
    label: Option<String>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: EntryKind,
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
    /// By which [`super::Memory::shapes`] knows it.
    key: usize,
    /// The registers of each shape that it takes.
    shapes: Vec<Vec<Field>>,
    /// The shape at this point of the text; `None` where it depends on the path taken.
    current: Option<usize>,
    /// TRUE once it was assigned to.
    assigned: Reg,
    /// The number of conditionals and loops around its declaration.
    regions: usize,
}

/// What a target names.
#[derive(Clone, Debug)]
pub(super) enum Destined {
    /// One value.
    Slot(Slot),
    /// All fields of a row.
    Fields(Vec<Field>),
    /// A whole record; the path to its entry.
    Record(usize, usize),
    /// An element of an array variable.
    Element(Slot),
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
    ) -> Result<()> {
        let fields = new_fields(c, shape);
        let variable = Variable::Record {
            fields: fields.clone(),
        };
        let kind = EntryKind::Row { fields, constant };
        self.declare(c, name.to_owned(), kind, variable, position)
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
        let variable = Variable::Record { fields };
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
    fn find(&self, path: &[String]) -> Option<(usize, usize, usize)> {
        let first = path.first()?;
        for (number, scope) in self.scopes.iter().enumerate().rev() {
            let find = |name: &String| scope.entries.iter().position(|entry| entry.name == *name);
            let fits = |index: usize, rest: usize| {
                rest == 0 || rest == 1 && !matches!(scope.entries[index].kind, EntryKind::Scalar(_))
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

    /// What a target names.
    ///
    /// # Errors
    /// 42601 for what is no variable, 22005 for a constant, 42703 and 55000 for fields that do
    /// not exist (yet).
    pub(super) fn target(&self, c: &mut Compiler<'_>, target: &Target) -> Result<Destined> {
        let position = at(target.position);
        let path: Vec<String> = target.path.iter().map(name_of).collect();
        let Some((scope, index, used)) = self.find(&path) else {
            let message = format!("\"{}\" is not a known variable", path.join("."));
            return Err(refuse(c, fail(SqlState::SYNTAX_ERROR, message, position)));
        };
        let is_constant = match &self.scopes[scope].entries[index].kind {
            EntryKind::Scalar(slot) => slot.constant,
            EntryKind::Row { constant, .. } => *constant,
            EntryKind::Record(_) => false,
        };
        if is_constant {
            let message = format!("variable \"{}\" is declared CONSTANT", path.join("."));
            let state = SqlState::parse("22005").unwrap_or(SqlState::SYNTAX_ERROR);
            return Err(refuse(c, fail(state, message, position)));
        }
        if target.subscripts.len() > 1 {
            let error = unsupported("an array of more than one dimension", position);
            return Err(refuse(c, error));
        }
        let kind = self.scopes[scope].entries[index].kind.clone();
        let destined = match (&kind, &path[used..]) {
            (EntryKind::Scalar(slot), _) => Destined::Slot(slot.clone()),
            (EntryKind::Row { fields, .. }, []) => Destined::Fields(fields.clone()),
            (EntryKind::Record(_), []) => Destined::Record(scope, index),
            (EntryKind::Row { fields, .. }, [field, ..]) => {
                Destined::Slot(field_slot(fields, &path, field, position)?)
            }
            (EntryKind::Record(record), [field, ..]) => {
                let Some(shape) = record.current else {
                    if record.shapes.len() > 1 {
                        return Err(refuse(c, depends(position)));
                    }
                    return Err(not_assigned(&path, position));
                };
                let slot = field_slot(&record.shapes[shape], &path, field, position)?;
                let error = Box::new(failure(&not_assigned(&path, position)));
                let condition = record.assigned;
                c.builder.scalar(Instruction::Require {
                    condition,
                    null_fails: true,
                    error,
                });
                Destined::Slot(slot)
            }
        };
        match (destined, target.subscripts.is_empty()) {
            (destined, true) => Ok(destined),
            (Destined::Slot(slot), false) => Ok(Destined::Element(slot)),
            (_, false) => Err(fail(
                SqlState::DATATYPE_MISMATCH,
                "cannot subscript a record because it does not support subscripting",
                position,
            )),
        }
    }

    /// `target := value`.
    pub(super) fn assign(
        &mut self,
        c: &mut Compiler<'_>,
        target: &Target,
        value: &Expression,
    ) -> Result<()> {
        let position = at(target.position);
        match self.target(c, target)? {
            Destined::Slot(slot) => {
                c.expression_into(
                    &value.expr,
                    slot.register,
                    &slot.data_type,
                    CastContext::Variable,
                )?;
                require_not_null(c, &slot, position);
                Ok(())
            }
            Destined::Element(slot) => {
                let DataType::Array(element) = &slot.data_type else {
                    let message = format!(
                        "cannot subscript type {} because it does not support subscripting",
                        slot.data_type.base_name()
                    );
                    return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
                };
                let Some(subscript) = target.subscripts.first() else {
                    return Ok(());
                };
                let context = CastContext::Assignment;
                let index = c.expression_as(&subscript.expr, &DataType::Integer, context)?;
                let value = c.expression_as(&value.expr, element, CastContext::Variable)?;
                let (name, function) = functions::array_set();
                c.builder.scalar(Instruction::Call {
                    function,
                    name,
                    target: slot.register,
                    arguments: [slot.register, index, value].into(),
                });
                Ok(())
            }
            Destined::Fields(fields) => self.assign_row(c, &fields, value, position),
            Destined::Record(scope, index) => {
                let source = self.named_fields(c, &value.expr, position)?;
                let Some(source) = source else {
                    let error = unsupported(
                        "assigning to a record anything but a row variable",
                        at(value.position),
                    );
                    return Err(refuse(c, error));
                };
                let columns = columns_of(&source);
                self.assign_record(c, (scope, index), Some(&columns), position)
            }
        }
    }

    fn assign_row(
        &mut self,
        c: &mut Compiler<'_>,
        fields: &[Field],
        value: &Expression,
        position: Position,
    ) -> Result<()> {
        if let Expr::Value(literal) = &value.expr
            && matches!(literal.value, sqlparser::ast::Value::Null)
        {
            set_null(c, fields.iter().map(|field| field.register));
            return Ok(());
        }
        match self.named_fields(c, &value.expr, position)? {
            Some(source) => assign_fields(c, fields, &columns_of(&source), position),
            None => {
                let error = unsupported(
                    "assigning to a row variable anything but a row variable",
                    at(value.position),
                );
                Err(refuse(c, error))
            }
        }
    }

    /// Gives a record its fields and their values; without `columns`, leaves the values to the
    /// caller.
    fn assign_record(
        &mut self,
        c: &mut Compiler<'_>,
        entry: (usize, usize),
        columns: Option<&[OutputColumn]>,
        position: Position,
    ) -> Result<()> {
        let Some(columns) = columns else {
            return Ok(());
        };
        let shape: Shape = columns
            .iter()
            .map(|column| (column.name.clone(), column.data_type.clone()))
            .collect();
        let fields = self.shape_record(c, entry, &shape);
        assign_fields(c, &fields, columns, position)?;
        self.mark_assigned(c, entry);
        Ok(())
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
    fn publish_record(&self, c: &mut Compiler<'_>, scope: usize, index: usize) {
        let entry = &self.scopes[scope].entries[index];
        let EntryKind::Record(record) = &entry.kind else {
            return;
        };
        let fields = match record.current {
            Some(shape) => record.shapes[shape].clone(),
            None => Vec::new(),
        };
        let below = c.variables.len() - self.scopes.len();
        c.redeclare_in(below + scope, &entry.name, Variable::Record { fields });
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

    /// What the targets of INTO or of a loop over rows are.
    ///
    /// # Errors
    /// 42601 for a record among several targets; see [`Body::target`].
    pub(super) fn row_targets(
        &self,
        c: &mut Compiler<'_>,
        targets: &[Target],
    ) -> Result<RowTarget> {
        let mut slots = Vec::with_capacity(targets.len());
        for target in targets {
            match self.target(c, target)? {
                Destined::Slot(slot) => slots.push(slot),
                Destined::Fields(fields) if targets.len() == 1 => {
                    return Ok(RowTarget::Row(fields));
                }
                Destined::Record(scope, index) if targets.len() == 1 => {
                    return Ok(RowTarget::Record(scope, index));
                }
                Destined::Element(_) => {
                    let error = unsupported("an array's element as a target", at(target.position));
                    return Err(refuse(c, error));
                }
                Destined::Fields(_) | Destined::Record(..) => {
                    let message = "record variable cannot be part of multiple-item INTO list";
                    let error = fail(SqlState::SYNTAX_ERROR, message, at(target.position));
                    return Err(refuse(c, error));
                }
            }
        }
        Ok(RowTarget::Slots(slots))
    }

    /// Assigns a row to its targets: surplus columns are dropped, surplus targets become NULL.
    pub(super) fn assign_columns(
        &mut self,
        c: &mut Compiler<'_>,
        target: &RowTarget,
        columns: &[OutputColumn],
        position: Position,
    ) -> Result<()> {
        match target {
            RowTarget::Slots(slots) => {
                let fields: Vec<Field> = slots
                    .iter()
                    .map(|slot| Field {
                        name: slot.name.clone(),
                        register: slot.register,
                        data_type: slot.data_type.clone(),
                    })
                    .collect();
                assign_fields(c, &fields, columns, position)?;
                for slot in slots {
                    require_not_null(c, slot, position);
                }
                Ok(())
            }
            RowTarget::Row(fields) => assign_fields(c, fields, columns, position),
            RowTarget::Record(scope, index) => {
                self.assign_record(c, (*scope, *index), Some(columns), position)
            }
        }
    }

    /// Assigns NULL to all targets, where there is no row with these columns.
    pub(super) fn assign_nulls(
        &mut self,
        c: &mut Compiler<'_>,
        target: &RowTarget,
        shape: &Shape,
        position: Position,
    ) {
        match target {
            RowTarget::Slots(slots) => {
                set_null(c, slots.iter().map(|slot| slot.register));
                for slot in slots {
                    require_not_null(c, slot, position);
                }
            }
            RowTarget::Row(fields) => set_null(c, fields.iter().map(|field| field.register)),
            RowTarget::Record(scope, index) => {
                let fields = self.shape_record(c, (*scope, *index), shape);
                set_null(c, fields.iter().map(|field| field.register));
                self.mark_assigned(c, (*scope, *index));
            }
        }
    }
}

/// Where a row goes.
#[derive(Clone, Debug)]
pub(super) enum RowTarget {
    /// A variable for each column.
    Slots(Vec<Slot>),
    /// A row variable's fields.
    Row(Vec<Field>),
    /// A record, by scope and entry.
    Record(usize, usize),
}

impl RowTarget {
    /// The registers that are written, as far as they are known.
    pub(super) fn registers(&self) -> Vec<Reg> {
        match self {
            RowTarget::Slots(slots) => slots.iter().map(|slot| slot.register).collect(),
            RowTarget::Row(fields) => fields.iter().map(|field| field.register).collect(),
            RowTarget::Record(..) => Vec::new(),
        }
    }
}

fn new_fields(c: &mut Compiler<'_>, shape: &Shape) -> Vec<Field> {
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

fn field_slot(fields: &[Field], path: &[String], name: &str, position: Position) -> Result<Slot> {
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

fn columns_of(fields: &[Field]) -> Vec<OutputColumn> {
    fields
        .iter()
        .map(|field| OutputColumn {
            name: field.name.clone(),
            data_type: field.data_type.clone(),
            register: field.register,
        })
        .collect()
}

/// Assigns columns to fields by position. A value that an earlier field's assignment would
/// overwrite is saved first: all values are those from before.
fn assign_fields(
    c: &mut Compiler<'_>,
    fields: &[Field],
    columns: &[OutputColumn],
    position: Position,
) -> Result<()> {
    let mut columns: Vec<OutputColumn> = columns.iter().take(fields.len()).cloned().collect();
    for index in 1..columns.len() {
        let register = columns[index].register;
        if fields[..index]
            .iter()
            .any(|field| field.register == register)
        {
            let saved = c.builder.register(columns[index].data_type.clone());
            c.builder.scalar(Instruction::Move {
                target: saved,
                source: register,
            });
            columns[index].register = saved;
        }
    }
    for (field, column) in fields.iter().zip(&columns) {
        let typed = Typed {
            register: column.register,
            data_type: column.data_type.clone(),
        };
        let context = CastContext::Variable;
        c.cast_into(&typed, field.register, &field.data_type, context, position)?;
    }
    set_null(
        c,
        fields
            .iter()
            .skip(columns.len())
            .map(|field| field.register),
    );
    Ok(())
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
        constraint: error.constraint().map(str::to_owned),
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

fn depends(position: Position) -> Error {
    unsupported("a record whose fields depend on the path taken", position)
}

fn not_assigned(path: &[String], position: Position) -> Error {
    let record = path[..path.len().saturating_sub(1)].join(".");
    fail(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("record \"{record}\" is not assigned yet"),
        position,
    )
    .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}
