//! Functions in FROM.

use kiln_storage::error::Result;
use kiln_storage::types::DataType;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArguments, Ident, TableAlias};

use super::bound::{Bound, Callee, ColumnMeta, ItemKind, RowFunction, RowFunctions};
use super::coerce::{CastContext, coerce};
use super::from::{CallInFrom, FromScope, function_arguments};
use super::json_record::RecordFunction;
use super::row_function::{self, gives_rows};
use super::scope::Level;
use super::{Compiler, Position, name_of, routine_name, unsupported};

impl Compiler<'_> {
    /// Binds a call in FROM, whose arguments may name the rows of `around`: functions are LATERAL.
    pub(super) fn bind_table_function(
        &mut self,
        call: &CallInFrom<'_>,
        around: &[Level],
    ) -> Result<FromScope> {
        self.bind_functions(std::slice::from_ref(call), call, around)
    }

    /// Binds `ROWS FROM (f(…), g(…))`.
    pub(super) fn bind_rows_from(
        &mut self,
        functions: &[FunctionArg],
        alias: Option<&TableAlias>,
        has_ordinality: bool,
        around: &[Level],
        position: Position,
    ) -> Result<FromScope> {
        let mut calls = Vec::with_capacity(functions.len());
        for (_, function) in function_arguments(functions, position)? {
            let Expr::Function(function) = function else {
                let what = "anything but calls of functions in ROWS FROM";
                return Err(unsupported(what, position));
            };
            let FunctionArguments::List(list) = &function.args else {
                return Err(unsupported("this call in ROWS FROM", position));
            };
            let is_plain = list.clauses.is_empty()
                && list.duplicate_treatment.is_none()
                && function.over.is_none()
                && function.filter.is_none();
            if !is_plain {
                return Err(unsupported("this call in ROWS FROM", position));
            }
            let name = routine_name(self.catalog, &function.name)?;
            calls.push((name, function_arguments(&list.args, position)?));
        }
        let calls = calls.iter().map(|(name, arguments)| CallInFrom {
            name,
            arguments,
            // It would say what the columns of one function are.
            alias: None,
            has_ordinality,
            position,
        });
        let calls: Vec<CallInFrom<'_>> = calls.collect();
        let Some(first) = calls.first() else {
            return Err(unsupported("ROWS FROM without functions", position));
        };
        let named = CallInFrom {
            alias,
            name: first.name,
            arguments: first.arguments,
            ..*first
        };
        self.bind_functions(&calls, &named, around)
    }

    /// Binds functions whose rows stand side by side, and which `named` names.
    fn bind_functions(
        &mut self,
        calls: &[CallInFrom<'_>],
        named: &CallInFrom<'_>,
        around: &[Level],
    ) -> Result<FromScope> {
        let outside = self.levels.len();
        self.levels.extend_from_slice(around);
        let parts = calls.iter().map(|call| self.bind_calls(call, around));
        let parts: Result<Vec<Vec<RowFunction>>> = parts.collect();
        self.levels.truncate(outside);
        let parts = parts?;
        let alias = named.alias.map(|alias| name_of(&alias.name));
        let name = alias.unwrap_or_else(|| named.name.to_owned());
        let mut columns: Vec<(String, DataType)> = Vec::new();
        for (call, own) in calls.iter().zip(&parts) {
            // A single column has the alias for its name, one of several has the function's.
            let of_one = match (calls.len(), own.len()) {
                (1, 1) => name.as_str(),
                _ => call.name,
            };
            for part in own {
                columns.extend(part.columns(of_one));
            }
        }
        let parts = parts.concat();
        if named.has_ordinality {
            columns.push(("ordinality".to_owned(), DataType::BigInt));
        }
        let metas = columns.into_iter().map(|(name, data_type)| ColumnMeta {
            name,
            data_type,
            origin: None,
        });
        let metas: Vec<ColumnMeta> = metas.collect();
        let is_value = matches!(
            parts.as_slice(),
            [RowFunction::Unnest(..) | RowFunction::Series(..) | RowFunction::Value(_)]
        ) && !named.has_ordinality;
        let kind = ItemKind::Functions(Box::new(RowFunctions {
            parts,
            has_ordinality: named.has_ordinality,
        }));
        // What types its columns have was said by the call.
        let untyped = named.alias.map(|alias| TableAlias {
            columns: match RecordFunction::of(named.name).is_some_and(|it| it.has_typed_alias()) {
                true => Vec::new(),
                false => alias.columns.clone(),
            },
            ..alias.clone()
        });
        let scope = self.derived(kind, &metas, &name, untyped.as_ref(), named.position)?;
        for source in &scope.sources {
            self.source_mut(*source).is_value = is_value;
        }
        Ok(scope)
    }

    fn bind_calls(&mut self, call: &CallInFrom<'_>, around: &[Level]) -> Result<Vec<RowFunction>> {
        let CallInFrom {
            name,
            arguments,
            position,
            ..
        } = *call;
        if !gives_rows(name) && self.knows_routine(name) {
            let mut given = Vec::with_capacity(arguments.len());
            for (name, argument) in arguments {
                given.push((*name, self.bind(argument)?));
            }
            let is_joined = around.iter().any(|level| !level.sources.is_empty());
            let (callee, arguments) = Callee::bind(self, name, given, is_joined, position)?;
            return Ok(vec![RowFunction::Routine(Box::new(callee), arguments)]);
        }
        if let Some(function) = RecordFunction::of(name)
            && !self.knows_routine(name)
        {
            return self.bind_json_record(function, call);
        }
        if arguments.iter().any(|(name, _)| name.is_some()) {
            let what = "an argument by name of this function";
            return Err(unsupported(what, position));
        }
        if !gives_rows(name) {
            let value = self.bind_scalar_call(call)?;
            return Ok(vec![RowFunction::Value(value)]);
        }
        let mut bounds = Vec::with_capacity(arguments.len());
        for (_, argument) in arguments {
            bounds.push(self.bind(argument)?);
        }
        if let Some(channels) = self.bind_channels(name, bounds.len(), position)? {
            return Ok(vec![channels]);
        }
        let parts = row_function::builtins(name, bounds, position)?;
        let is_of_rows = |part: &RowFunction| match part {
            RowFunction::Unnest(array, _) => {
                matches!(array.data_type.element(), Some(DataType::Row(_)))
            }
            _ => false,
        };
        if parts.iter().any(is_of_rows) {
            let hint = "Call it in the select list of a subquery, whose column is the row.";
            return Err(unsupported("unnest of rows in FROM", position).with_hint(hint));
        }
        Ok(parts)
    }

    /// A function of one value in FROM.
    fn bind_scalar_call(&mut self, call: &CallInFrom<'_>) -> Result<Bound> {
        use ast::{FunctionArgExpr, FunctionArgumentList};
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|(_, argument)| {
            let argument = FunctionArgExpr::Expr((*argument).clone());
            FunctionArg::Unnamed(argument)
        });
        let function = ast::Function {
            name: ast::ObjectName::from(vec![Ident::with_quote('"', call.name)]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: arguments.collect(),
                clauses: Vec::new(),
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        };
        let bound = self.bind_function(&function);
        let bound = bound.map_err(|error| match call.position {
            Some((line, column)) => error.or_at(kiln_storage::error::Position { line, column }),
            None => error,
        })?;
        match bound.is_unknown() {
            true => coerce(bound, &DataType::Text, CastContext::Implicit),
            false => Ok(bound),
        }
    }
}
