//! Assignments: to variables, fields, elements of arrays, and of rows to several of them.

use kiln_procedure::ir::{Instruction, Reg};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::Expr;

use super::super::bound::{Bound, Shape};
use super::super::coerce::CastContext;
use super::super::functions;
use super::super::part::{Step, type_of_part, with_part};
use super::super::query::OutputColumn;
use super::super::scope::{Field, Variable};
use super::super::{Compiler, Position, Typed, fail, name_of, unsupported};
use super::at;
use super::body::Body;
use super::variables::{
    EntryKind, Slot, depends, failure, field_slot, not_assigned, refuse, require_not_null, set_null,
};
use crate::parse::Expression;
use crate::parse::plpgsql::{Place, Target};

/// What a target names.
#[derive(Clone, Debug)]
pub(super) enum Destined {
    /// One value.
    Slot(Slot),
    /// All fields of a row.
    Fields(Vec<Field>),
    /// A whole record; the path to its entry.
    Record(usize, usize),
    /// A part of the value of a variable: where it is.
    Part(Slot, Vec<Place>),
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

impl Body {
    /// What a target names.
    ///
    /// # Errors
    /// 42601 for what is no variable, 22005 for a constant, 42703 and 55000 for fields that do
    /// not exist (yet).
    pub(super) fn target(&self, c: &mut Compiler<'_>, target: &Target) -> Result<Destined> {
        let position = at(target.position);
        let path: Vec<String> = target.path.iter().map(name_of).collect();
        let Some((scope, index, used)) = self.find(&path) else {
            if let Some(Variable::Scalar {
                data_type: DataType::Row(_),
                ..
            }) = c.variable(&path[..1])
            {
                let what = "assigning to a field of a parameter";
                return Err(refuse(c, unsupported(what, position)));
            }
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
        let kind = self.scopes[scope].entries[index].kind.clone();
        // What the path names; the fields behind it are a part of that.
        let mut named = used;
        let destined = match (&kind, &path[used..]) {
            (EntryKind::Scalar(slot), _) => Destined::Slot(slot.clone()),
            (EntryKind::Row { fields, .. }, []) => Destined::Fields(fields.clone()),
            (EntryKind::Record(_), []) => Destined::Record(scope, index),
            (EntryKind::Row { fields, .. }, [field, ..]) => {
                named += 1;
                Destined::Slot(field_slot(fields, &path, field, position)?)
            }
            (EntryKind::Record(record), [field, ..]) => {
                named += 1;
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
        let fields = target.path[named..].iter().cloned().map(Place::Field);
        let places: Vec<Place> = fields.chain(target.places.iter().cloned()).collect();
        match (destined, places.is_empty()) {
            (destined, true) => Ok(destined),
            (Destined::Slot(slot), false) => {
                let name = path[used - 1].clone();
                Ok(Destined::Part(Slot { name, ..slot }, places))
            }
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
            Destined::Part(slot, places) => {
                assign_part(c, &slot, &places, &value.expr, position)?;
                require_not_null(c, &slot, position);
                Ok(())
            }
            Destined::Fields(fields) => self.assign_row(c, &fields, value, position),
            Destined::Record(scope, index) => {
                let columns = match self.named_fields(c, &value.expr, position)? {
                    Some(source) => columns_of(&source),
                    None => self.columns_of_row(c, value)?,
                };
                self.assign_record(c, (scope, index), Some(&columns), position)
            }
        }
    }

    /// The fields of a row-valued expression.
    ///
    /// # Errors
    /// 42804 for any other expression.
    fn columns_of_row(
        &self,
        c: &mut Compiler<'_>,
        value: &Expression,
    ) -> Result<Vec<OutputColumn>> {
        c.row_columns(&value.expr)?.ok_or_else(|| {
            let message = "cannot assign non-composite value to a record variable";
            fail(SqlState::DATATYPE_MISMATCH, message, at(value.position))
        })
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
        if let Some(source) = self.named_fields(c, &value.expr, position)? {
            return assign_fields(c, fields, &columns_of(&source), position, true);
        }
        let columns = self.columns_of_row(c, value)?;
        assign_fields(c, fields, &columns, position, false)
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
        assign_fields(c, &fields, columns, position, true)?;
        self.mark_assigned(c, entry);
        Ok(())
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
                Destined::Slot(slot) if targets.len() == 1 && slot.data_type.row().is_some() => {
                    let what = "a parameter or field of a composite type as a target";
                    return Err(refuse(c, unsupported(what, at(target.position))));
                }
                Destined::Slot(slot) => slots.push(slot),
                Destined::Fields(fields) if targets.len() == 1 => {
                    return Ok(RowTarget::Row(fields));
                }
                Destined::Record(scope, index) if targets.len() == 1 => {
                    return Ok(RowTarget::Record(scope, index));
                }
                Destined::Part(..) => {
                    let error = unsupported("a part of a value as a target", at(target.position));
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
                assign_fields(c, &fields, columns, position, false)?;
                for slot in slots {
                    require_not_null(c, slot, position);
                }
                Ok(())
            }
            RowTarget::Row(fields) => assign_fields(c, fields, columns, position, true),
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
    ) -> Result<()> {
        match target {
            RowTarget::Slots(slots) => {
                set_null(c, slots.iter().map(|slot| slot.register));
                for slot in slots {
                    c.check_register(slot.register)?;
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
        Ok(())
    }
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

/// Assigns to a part of what is in `slot`.
fn assign_part(
    c: &mut Compiler<'_>,
    slot: &Slot,
    places: &[Place],
    value: &Expr,
    position: Position,
) -> Result<()> {
    let domain = c.domain_of_register(slot.register).cloned();
    let target = match domain {
        Some(_) => c.builder.register(slot.data_type.clone()),
        None => slot.register,
    };
    match (&slot.data_type, places) {
        // The array is changed where it is.
        (DataType::Array(element), [Place::Element(index)]) => {
            let context = CastContext::Assignment;
            let index = c.expression_as(&index.expr, &DataType::Integer, context)?;
            let value = c.expression_as(value, element, CastContext::Variable)?;
            let (name, function) = functions::array_set();
            c.builder.scalar(Instruction::Call {
                function,
                name,
                target,
                arguments: [slot.register, index, value].into(),
            });
        }
        _ => {
            let mut steps = Vec::with_capacity(places.len());
            for place in places {
                steps.push(step_of(c, place)?);
            }
            let part = type_of_part(&slot.data_type, &steps);
            let value = c.bind_as(value, part, CastContext::Variable)?;
            let whole = Bound::register(slot.register, slot.data_type.clone(), position);
            let changed = with_part(whole, &steps, value, &slot.name)?;
            c.bound_into(changed, target)?;
        }
    }
    if let Some(domain) = domain {
        c.check_domain(target, &domain)?;
        c.builder.scalar(Instruction::Move {
            target: slot.register,
            source: target,
        });
    }
    Ok(())
}

fn step_of(c: &mut Compiler<'_>, place: &Place) -> Result<Step> {
    let mut bind = |bound: &Option<Expression>| {
        let bound = bound.as_ref().map(|bound| c.bind(&bound.expr));
        bound.transpose()
    };
    Ok(match place {
        Place::Field(name) => Step::Field(name_of(name)),
        Place::Element(index) => Step::Element(c.bind(&index.expr)?),
        Place::Slice(bounds) => {
            let [lower, upper] = &**bounds;
            Step::Slice(bind(lower)?, bind(upper)?)
        }
    })
}

/// Assigns columns to fields by position. A value that an earlier field's assignment would
/// overwrite is saved first: all values are those from before. The fields of one row are given the
/// values of another, which are of their domains.
fn assign_fields(
    c: &mut Compiler<'_>,
    fields: &[Field],
    columns: &[OutputColumn],
    position: Position,
    is_row: bool,
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
        match is_row {
            true => c.cast_of_row(&typed, field.register, &field.data_type, position)?,
            false => c.cast_into(&typed, field.register, &field.data_type, context, position)?,
        }
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
