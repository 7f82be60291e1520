//! Functions in FROM: `unnest`, `generate_series` and the user's own.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Value};
use sqlparser::ast::{self, Expr, Ident, TableAlias};

use super::bind::as_array;
use super::bound::Bound;
use super::coerce::{CastContext, coerce};
use super::from::FromScope;
use super::plpgsql::Callee;
use super::query::ColumnMeta;
use super::scope::{AggregatePolicy, Level};
use super::select::{FromItem, ItemKind};
use super::{Compiler, Position, fail, functions, name_of, unsupported};

impl Compiler<'_> {
    pub(super) fn bind_table_function(
        &mut self,
        name: &str,
        arguments: &[(Option<&Ident>, &Expr)],
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        let is_routine = !matches!(name, "unnest" | "generate_series") && self.knows_routine(name);
        // Arguments may name the sources before: these functions are lateral.
        self.levels.push(Level {
            sources: scope.sources.clone(),
            aggregates: AggregatePolicy::Refused("functions in FROM"),
        });
        let bounds: Result<Vec<Bound>> = arguments
            .iter()
            .map(|(_, argument)| self.bind(argument))
            .collect();
        self.levels.pop();
        let mut bounds = bounds?;
        if !is_routine {
            // The others say what an argument is whose type is open.
            let known = bounds.iter().find(|bound| !bound.is_unknown());
            let known = known.map_or(DataType::Text, |bound| bound.data_type.clone());
            for bound in bounds.iter_mut().filter(|bound| bound.is_unknown()) {
                let taken = std::mem::replace(bound, Bound::boolean(true));
                *bound = coerce(taken, &known, CastContext::Implicit)?;
            }
        }
        if is_routine {
            let given = arguments
                .iter()
                .map(|(name, _)| *name)
                .zip(bounds)
                .collect();
            return self.bind_routine_source(name, given, alias, scope, position);
        }
        if arguments.iter().any(|(name, _)| name.is_some()) {
            return Err(unsupported(
                "an argument by name of this function",
                position,
            ));
        }
        let (kind, data_type) = match (name, bounds.len()) {
            ("unnest", 1) => {
                let array = as_array(bounds.swap_remove(0))?;
                let DataType::Array(element) = array.data_type.clone() else {
                    return Err(fail(
                        SqlState::UNDEFINED_FUNCTION,
                        format!("function unnest({}) does not exist", array.type_name()),
                        position,
                    ));
                };
                (ItemKind::Unnest(array), *element)
            }
            ("pg_partition_ancestors", 1) => {
                let class = DataType::Catalog(CatalogType::RegClass);
                let relation = coerce(bounds.swap_remove(0), &class, CastContext::Implicit)?;
                let array = functions::partition_ancestors(relation, position);
                (ItemKind::Unnest(array), class)
            }
            ("generate_series", 2 | 3) => {
                let is_wide = bounds
                    .iter()
                    .any(|bound| bound.data_type == DataType::BigInt);
                let data_type = if is_wide {
                    DataType::BigInt
                } else {
                    DataType::Integer
                };
                if bounds.iter().any(|bound| !bound.data_type.is_integer()) {
                    return Err(unsupported("generate_series of this type", position));
                }
                let mut parts = Vec::with_capacity(3);
                for bound in bounds {
                    parts.push(coerce(bound, &data_type, CastContext::Implicit)?);
                }
                let step = match parts.len() {
                    3 => parts.pop(),
                    _ => None,
                };
                let step = step.unwrap_or_else(|| {
                    Bound::constant(Value::BigInt(1), DataType::BigInt, position)
                });
                let step = coerce(step, &DataType::BigInt, CastContext::Implicit)?;
                let (Some(last), Some(first)) = (parts.pop(), parts.pop()) else {
                    return Err(unsupported("this call", position));
                };
                if !matches!(step.as_constant(), Some(Value::BigInt(step)) if *step != 0) {
                    return Err(unsupported(
                        "generate_series with a step that is not a constant other than 0",
                        position,
                    ));
                }
                (ItemKind::Series(first, last, step), data_type)
            }
            _ if functions::exists(name) => {
                return Err(unsupported(format!("{name} in FROM"), position));
            }
            _ => {
                return Err(fail(
                    SqlState::UNDEFINED_FUNCTION,
                    format!(
                        "function {name}({}) does not exist",
                        bounds
                            .iter()
                            .map(Bound::type_name)
                            .collect::<Vec<_>>()
                            .join(", ")
                    ),
                    position,
                ));
            }
        };
        let alias_name = alias.map_or_else(|| name.to_owned(), |alias| name_of(&alias.name));
        self.check_alias(&alias_name, scope, position)?;
        let columns = [ColumnMeta {
            name: alias_name.clone(),
            data_type,
            origin: None,
        }];
        let source = self.add_derived_source(&alias_name, &columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        scope.items.push(FromItem {
            source,
            kind,
            left: None,
        });
        Ok(())
    }

    /// A call of a user's function in FROM.
    fn bind_routine_source(
        &mut self,
        name: &str,
        given: Vec<(Option<&Ident>, Bound)>,
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        let is_joined = !scope.sources.is_empty();
        let (callee, arguments) = Callee::bind(self, name, given, is_joined, position)?;
        let alias_name = alias.map_or_else(|| name.to_owned(), |alias| name_of(&alias.name));
        self.check_alias(&alias_name, scope, position)?;
        let columns: Vec<ColumnMeta> = callee
            .columns_in_from(&alias_name)
            .into_iter()
            .map(|(name, data_type)| ColumnMeta {
                name,
                data_type,
                origin: None,
            })
            .collect();
        let source = self.add_derived_source(&alias_name, &columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        let kind = ItemKind::Routine(Box::new(callee), arguments);
        scope.items.push(FromItem {
            source,
            kind,
            left: None,
        });
        Ok(())
    }
}

/// The arguments of a function in FROM, with the names of those that are given by name.
pub(super) fn function_arguments(
    arguments: &[ast::FunctionArg],
    position: Position,
) -> Result<Vec<(Option<&Ident>, &Expr)>> {
    use ast::{FunctionArg, FunctionArgExpr};
    let mut read = Vec::with_capacity(arguments.len());
    for argument in arguments {
        read.push(match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => (Some(name), expr),
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => (Some(name), expr),
            _ => return Err(unsupported("this argument", position)),
        });
    }
    Ok(read)
}
