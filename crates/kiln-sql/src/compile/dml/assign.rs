//! What SET assigns: to columns, and to parts of them: elements and slices of arrays, places in
//! JSON, fields of rows.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::ColumnId;
use kiln_storage::sequence::Identity;
use kiln_storage::table::Table;
use sqlparser::ast::{Assignment, AssignmentTarget, Expr, Ident, ObjectName};

use super::super::bound::{Bound, SourceId};
use super::super::part::{Step, with_part};
use super::super::{Compiler, fail, name_of, position_of, unsupported};
use super::insert::always_detail;
use super::target::Target;
use super::update::refuse_moving;
use super::{generated, is_default};
use crate::parse::{Subscript, subscript};

/// What a column is set to.
pub(super) enum Assigned<'e> {
    /// DEFAULT.
    Default,
    /// A value.
    Value(&'e Expr),
    /// Its own value with other parts: where they are, and their values.
    Parts(Vec<(Vec<Place<'e>>, &'e Expr)>),
}

/// A step to a part of a value.
pub(super) enum Place<'e> {
    /// A field of a row.
    Field(&'e Ident),
    /// An element or a slice.
    Subscript(Subscript<'e>),
}

impl<'e> Place<'e> {
    /// The steps of a target behind the name of its column.
    fn all(name: &'e ObjectName) -> Vec<Place<'e>> {
        let parts = name.0.iter().skip(1);
        let places = parts.filter_map(|part| match subscript(part) {
            Some(subscript) => Some(Place::Subscript(subscript)),
            None => part.as_ident().map(Place::Field),
        });
        places.collect()
    }

    fn expressions(&self) -> impl Iterator<Item = &'e Expr> {
        let bounds = match self {
            Place::Field(_) => [None, None],
            Place::Subscript(Subscript::Element(index)) => [Some(*index), None],
            Place::Subscript(Subscript::Slice(lower, upper)) => [*lower, *upper],
        };
        bounds.into_iter().flatten()
    }

    /// The step with the values of its expressions, in their order.
    fn bound(&self, values: &mut impl Iterator<Item = Bound>) -> Result<Step> {
        let mut next = || values.next().ok_or_else(|| Error::internal("no subscript"));
        Ok(match self {
            Place::Field(ident) => Step::Field(name_of(ident)),
            Place::Subscript(Subscript::Element(_)) => Step::Element(next()?),
            Place::Subscript(Subscript::Slice(lower, upper)) => {
                let lower = lower.map(|_| next()).transpose()?;
                let upper = upper.map(|_| next()).transpose()?;
                Step::Slice(lower, upper)
            }
        })
    }
}

impl<'e> Assigned<'e> {
    /// The expressions.
    pub(super) fn expressions(&self) -> Vec<&'e Expr> {
        match self {
            Assigned::Default => Vec::new(),
            Assigned::Value(value) => vec![value],
            Assigned::Parts(parts) => {
                let parts = parts.iter();
                let each = parts.map(|(places, value)| {
                    let places = places.iter().flat_map(Place::expressions);
                    places.chain([*value])
                });
                each.flatten().collect()
            }
        }
    }

    /// Whether it takes nothing but literals.
    pub(super) fn is_given(&self) -> bool {
        self.expressions()
            .iter()
            .all(|expr| matches!(expr, Expr::Value(_)))
    }
}

/// Columns, and what they are set to.
pub(super) type Assignments<'e> = Vec<(ColumnId, Assigned<'e>)>;

impl Compiler<'_> {
    /// What SET assigns to the columns of a table.
    pub(super) fn assignments<'e>(
        &self,
        target: &Target,
        assignments: &'e [Assignment],
    ) -> Result<Assignments<'e>> {
        let mut result = Vec::new();
        for Assignment { target: to, value } in assignments {
            match to {
                AssignmentTarget::ColumnName(name) => {
                    self.assign(target, &mut result, name, value)?;
                }
                AssignmentTarget::Tuple(names) => {
                    let values = values_of(value)?;
                    if values.len() != names.len() {
                        return Err(fail(
                            SqlState::SYNTAX_ERROR,
                            "number of columns does not match number of values",
                            position_of(value),
                        ));
                    }
                    for (name, value) in names.iter().zip(values) {
                        self.assign(target, &mut result, name, value)?;
                    }
                }
            }
        }
        Ok(result)
    }

    fn assign<'e>(
        &self,
        target: &Target,
        assignments: &mut Assignments<'e>,
        name: &'e ObjectName,
        value: &'e Expr,
    ) -> Result<()> {
        let position = position_of(name);
        let column = self.target_column_of(target, name, "update")?;
        refuse_moving(&target.table, column, position)?;
        let places = Place::all(name);
        let assigned = match places.last() {
            None if is_default(value) => Assigned::Default,
            None => Assigned::Value(value),
            Some(place) if is_default(value) => {
                let what = match place {
                    Place::Field(_) => "a subfield",
                    Place::Subscript(_) => "an array element",
                };
                let message = format!("cannot set {what} to DEFAULT");
                return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
            }
            Some(_) => Assigned::Parts(vec![(places, value)]),
        };
        let known = assignments.iter_mut().find(|(known, _)| *known == column);
        match (known.map(|(_, known)| known), assigned) {
            (None, assigned) => assignments.push((column, assigned)),
            (Some(Assigned::Parts(known)), Assigned::Parts(more)) => known.extend(more),
            _ => {
                let name = &target.table.schema().columns[column.index()].name;
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(fail(SqlState::SYNTAX_ERROR, message, position));
            }
        }
        Ok(())
    }

    /// Binds the new values of the row `source`.
    pub(super) fn bind_assigned(
        &mut self,
        table: &Table,
        source: SourceId,
        assignments: &Assignments<'_>,
    ) -> Result<Vec<(ColumnId, Bound)>> {
        // All values first: then the columns decide the types of parameters.
        let mut written = Vec::with_capacity(assignments.len());
        for (_, assigned) in assignments {
            let bounds = assigned
                .expressions()
                .into_iter()
                .map(|expr| self.bind(expr));
            written.push(bounds.collect::<Result<Vec<Bound>>>()?);
        }
        let mut values = Vec::with_capacity(assignments.len());
        for ((column, assigned), bounds) in assignments.iter().zip(written) {
            let definition = &table.schema().columns[column.index()];
            if !matches!(assigned, Assigned::Default) {
                self.refuse_always(table, *column)?;
            }
            let mut bounds = bounds.into_iter();
            let bound = match assigned {
                Assigned::Default => self.bind_default(definition)?,
                Assigned::Value(_) => {
                    let value = bounds.next().ok_or_else(|| Error::internal("no value"))?;
                    self.for_column(value, definition, "expression")?
                }
                Assigned::Parts(parts) => {
                    let mut whole = self.column_of(source, column.index(), None);
                    for (places, _) in parts {
                        let steps = places.iter().map(|place| place.bound(&mut bounds));
                        let steps: Vec<Step> = steps.collect::<Result<_>>()?;
                        let value = bounds.next().ok_or_else(|| Error::internal("no value"))?;
                        whole = with_part(whole, &steps, value, &definition.name)?;
                    }
                    self.of_column(whole, definition)?
                }
            };
            values.push((*column, bound));
        }
        Ok(values)
    }

    /// Refuses a value for an identity column, or a generated column, that takes none.
    fn refuse_always(&self, table: &Table, column: ColumnId) -> Result<()> {
        let schema = table.schema();
        let name = &schema.columns[column.index()].name;
        let message = |name: &str| format!("column \"{name}\" can only be updated to DEFAULT");
        if schema.columns[column.index()].generated.is_some() {
            return Err(generated::refusal(table, column, message));
        }
        if schema.columns[column.index()].default.is_none() {
            return Ok(());
        }
        let sequence = self.catalog.identity_sequence(&schema.name, name);
        let owner = sequence.and_then(|sequence| sequence.definition().owner.clone());
        if owner.and_then(|owner| owner.identity) != Some(Identity::Always) {
            return Ok(());
        }
        let error = Error::new(SqlState::GENERATED_ALWAYS, message(name));
        Err(error.with_detail(always_detail(name)))
    }
}

/// The values that several columns are set to.
fn values_of(value: &Expr) -> Result<&[Expr]> {
    let position = position_of(value);
    match value {
        Expr::Tuple(values) => Ok(values),
        Expr::Nested(value) => Ok(std::slice::from_ref(&**value)),
        Expr::Subquery(_) => {
            let feature = "assigning a subquery to several columns";
            Err(unsupported(feature, position))
        }
        _ => Err(fail(
            SqlState::FEATURE_NOT_SUPPORTED,
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            position,
        )),
    }
}
