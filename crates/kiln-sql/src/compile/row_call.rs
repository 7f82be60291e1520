//! Calls that give rows, where a value is expected.

use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident};

use super::bind::as_array;
use super::bound::{Bound, Output, RowFunction, RowFunctions};
use super::expression::Call;
use super::overload;
use super::row_function::{self, gives_rows};
use super::scope::Source;
use super::{Compiler, Position, fail, name_of, position_of};

impl Compiler<'_> {
    /// Binds a call of a builtin that gives rows.
    pub(super) fn bind_row_function(&mut self, call: &Call<'_>) -> Result<Option<Bound>> {
        if !gives_rows(&call.name) {
            return Ok(None);
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.bind(argument)?);
        }
        let channels = self.bind_channels(&call.name, arguments.len(), call.position)?;
        let function = match channels {
            Some(channels) => channels,
            None => row_function::builtin(&call.name, arguments, call.position)?,
        };
        self.add_row_function(function, call.position).map(Some)
    }

    /// The fields of the rows that `information_schema._pg_expandarray(array)` gives: the elements
    /// of an array, and their numbers from
    /// 1. `None` for anything else.
    ///
    /// # Errors
    /// 42883 for other arguments.
    pub(super) fn bind_row_call(
        &mut self,
        expr: &Expr,
    ) -> Result<Option<[(&'static str, RowFunction); 2]>> {
        let mut call = expr;
        while let Expr::Nested(inner) = call {
            call = inner;
        }
        let Expr::Function(function) = call else {
            return Ok(None);
        };
        let parts = function.name.0.iter().filter_map(|part| part.as_ident());
        if !parts
            .map(name_of)
            .eq(["information_schema", "_pg_expandarray"])
        {
            return Ok(None);
        }
        let position = position_of(function);
        let argument = match &function.args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(argument),
                _ => None,
            },
            _ => None,
        };
        let Some(argument) = argument else {
            let message = "function information_schema._pg_expandarray takes one array";
            return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
        };
        let array = self.bind(argument)?;
        let elements = row_function::builtin("unnest", vec![array.clone()], position)?;
        let count = overload::bind("cardinality", vec![as_array(array)?], position)?;
        let numbers = RowFunction::Series(Bound::integer(1), count, 1);
        Ok(Some([("x", elements), ("n", numbers)]))
    }

    /// A field of the rows that a call gives; `None` for fields of anything else.
    ///
    /// # Errors
    /// 42703 when they have no such field; those of [`Compiler::bind_row_call`].
    pub(super) fn bind_field_of_call(
        &mut self,
        root: &Expr,
        field: &Ident,
    ) -> Result<Option<Bound>> {
        let Some(fields) = self.bind_row_call(root)? else {
            return Ok(None);
        };
        let (position, field) = (position_of(root), name_of(field));
        let Some((_, rows)) = fields.into_iter().find(|(name, _)| *name == field) else {
            let message = format!("column \"{field}\" not found in data type record");
            return Err(fail(SqlState::UNDEFINED_COLUMN, message, position));
        };
        self.add_row_function(rows, position).map(Some)
    }

    /// Adds a function that gives rows to the output; its value is a column of these rows.
    pub(super) fn add_row_function(
        &mut self,
        function: RowFunction,
        position: Position,
    ) -> Result<Bound> {
        let refuse = |place: &str| {
            let message = format!("set-returning functions are not allowed in {place}");
            Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position))
        };
        match &self.output {
            None => return refuse("this clause"),
            Some(output) => {
                if let Some(place) = output.refuses_rows {
                    return refuse(place);
                }
            }
        }
        let columns = function.columns("");
        let needed: Vec<_> = function
            .expressions()
            .iter()
            .flat_map(|one| one.sources())
            .collect();
        let output = self.output.take().unwrap_or_default();
        let mut functions = output.row_functions;
        // A function of a function's rows comes after it.
        let known = functions
            .iter()
            .rposition(|(source, _)| needed.contains(source));
        let place = known.map_or(0, |known| known + 1);
        if place == functions.len() {
            let source = self.add_derived_source("", &[], position);
            functions.push((source, RowFunctions::default()));
        }
        let (source, calls) = &mut functions[place];
        let source = *source;
        calls.parts.push(function);
        self.output = Some(Output {
            row_functions: functions,
            ..output
        });
        let Source { columns: known, .. } = self.source_mut(source);
        let column = known.len();
        known.extend(columns);
        Ok(self.column_of(source, column, position))
    }

    /// Binds what cannot call functions that give rows.
    pub(super) fn without_rows<T>(
        &mut self,
        place: Option<&'static str>,
        bind: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(place) = place else {
            return bind(self);
        };
        let before = self
            .output
            .as_mut()
            .map(|output| output.refuses_rows.replace(place));
        let bound = bind(self);
        if let (Some(output), Some(before)) = (&mut self.output, before) {
            output.refuses_rows = before;
        }
        bound
    }
}
