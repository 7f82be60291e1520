//! SEARCH and CYCLE of WITH RECURSIVE: the same query with the columns that they add, as PostgreSQL
//! rewrites it.
//!
//! ```text
//! t (a) AS (first UNION ALL SELECT x FROM u, t) SEARCH DEPTH FIRST BY a SET s
//!
//! t (a, s) AS (SELECT l.a, ARRAY[ROW(l.a)] FROM (first) l (a)
//!     UNION ALL SELECT r.a, array_append(r.s, ROW(r.a)) FROM (SELECT x, t.s FROM u, t) r (a, s))
//! ```
//!
//! BREADTH FIRST keeps how deep a row is, and the columns. CYCLE keeps the way to a row, and whether
//! the row is on it already; such a row is not followed.

use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::{
    self, BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, SetOperator, TableFactor,
};

use super::query::bare_query;
use super::{Compiler, Position, fail, name_of, quote_identifier, unsupported};
use crate::parse::{self, SourceStatement, Statement, Traversal};

/// The names of the two sides' rows.
const FIRST: &str = "*first*";
const NEXT: &str = "*next*";

impl Compiler<'_> {
    /// The query of WITH RECURSIVE with the columns of its SEARCH and CYCLE.
    ///
    /// # Errors
    /// 42601 for columns that are not there or are there already; 0A000 for a recursive term that
    /// is no SELECT, or names the query in a subquery.
    pub(super) fn traversed(
        &mut self,
        cte: &ast::Cte,
        name: &str,
        traversal: &Traversal,
        position: Position,
    ) -> Result<ast::Cte> {
        let SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            right,
            set_quantifier,
        } = &*cte.query.body
        else {
            return Err(not_recursive(position));
        };
        let SetExpr::Select(select) = &**right else {
            let what =
                "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT";
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, what, position));
        };
        let mut columns = self.columns_of_first(cte, left)?;
        let refused = |message: String| fail(SqlState::SYNTAX_ERROR, message, position);
        check(traversal, &columns).map_err(refused)?;
        let Some(itself) = reference(select, name) else {
            let message = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must \
                 be at the top level of its right-hand SELECT"
            );
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        };
        let of = |side: &str, column: &str| format!("\"{side}\".{}", quote_identifier(column));
        let own = |side: &str| {
            columns
                .iter()
                .map(|column| of(side, column))
                .collect::<Vec<_>>()
        };
        let (mut first, mut next) = (own(FIRST), own(NEXT));
        let row = |side: &str, columns: &[Ident], before: Option<String>| {
            let each = columns.iter().map(|column| of(side, &name_of(column)));
            let fields: Vec<String> = before.into_iter().chain(each).collect();
            format!("ROW({})", fields.join(", "))
        };
        let mut added: Vec<String> = Vec::new();
        if let Some(search) = &traversal.search {
            let set = name_of(&search.set);
            let known = of(NEXT, &set);
            let by = search.columns.as_slice();
            if search.is_deep {
                first.push(format!("ARRAY[{}]", row(FIRST, by, None)));
                next.push(format!("array_append({known}, {})", row(NEXT, by, None)));
            } else {
                let none = "CAST(0 AS BIGINT)".to_owned();
                first.push(row(FIRST, by, Some(none)));
                next.push(row(NEXT, by, Some(format!("({known}).f1 + 1"))));
            }
            added.push(set);
        }
        let mut select = select.clone();
        if let Some(cycle) = &traversal.cycle {
            let (mark, path) = (name_of(&cycle.mark), name_of(&cycle.path));
            let (value, default) = (&cycle.value, &cycle.default);
            let by = cycle.columns.as_slice();
            first.push(format!("CASE WHEN false THEN {value} ELSE {default} END"));
            first.push(format!("ARRAY[{}]", row(FIRST, by, None)));
            let (way, own) = (of(NEXT, &path), row(NEXT, by, None));
            next.push(format!(
                "CASE WHEN {own} = ANY ({way}) THEN {value} ELSE {default} END"
            ));
            next.push(format!("array_append({way}, {own})"));
            let goes_on = Expr::BinaryOp {
                left: Box::new(column_of(&itself, &mark)),
                op: BinaryOperator::NotEq,
                right: Box::new(value.clone()),
            };
            select.selection = Some(match select.selection.take() {
                Some(condition) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(condition))),
                    op: BinaryOperator::And,
                    right: Box::new(goes_on),
                },
                None => goes_on,
            });
            added.extend([mark, path]);
        }
        let kept = added.iter().map(|column| column_of(&itself, column));
        select.projection.extend(kept.map(SelectItem::UnnamedExpr));
        let left = around(FIRST, &first, &columns, (**left).clone())?;
        columns.extend(added);
        let right = around(NEXT, &next, &columns, SetExpr::Select(select))?;
        let mut traversed = cte.clone();
        *traversed.query = Query {
            order_by: None,
            body: Box::new(SetExpr::SetOperation {
                left: Box::new(left),
                op: SetOperator::Union,
                set_quantifier: *set_quantifier,
                right: Box::new(right),
            }),
            ..(*cte.query).clone()
        };
        let names = columns.iter().map(|column| ast::TableAliasColumnDef {
            name: Ident::with_quote('"', column),
            data_type: None,
        });
        traversed.alias.columns = names.collect();
        Ok(traversed)
    }

    /// The names of the columns, which those of the first query have or the list behind the name.
    fn columns_of_first(&mut self, cte: &ast::Cte, first: &SetExpr) -> Result<Vec<String>> {
        let bound = self.bind_body(first, &bare_query())?;
        let names = bound.columns.into_iter().map(|column| column.name);
        let mut names: Vec<String> = names.collect();
        for (name, column) in names.iter_mut().zip(&cte.alias.columns) {
            *name = name_of(&column.name);
        }
        Ok(names)
    }
}

/// The error of a query that does not name itself.
#[cold]
pub(super) fn not_recursive(position: Position) -> Error {
    fail(
        SqlState::SYNTAX_ERROR,
        "WITH query is not recursive",
        position,
    )
}

/// What is wrong with the columns that are named.
fn check(traversal: &Traversal, columns: &[String]) -> std::result::Result<(), String> {
    let listed = |kind: &str, named: &[Ident]| {
        for (at, column) in named.iter().map(name_of).enumerate() {
            if !columns.contains(&column) {
                return Err(format!(
                    "{kind} column \"{column}\" not in WITH query column list"
                ));
            }
            if named[..at].iter().any(|known| name_of(known) == column) {
                return Err(format!(
                    "{kind} column \"{column}\" specified more than once"
                ));
            }
        }
        Ok(())
    };
    let unused = |what: &str, name: &Ident| match columns.contains(&name_of(name)) {
        true => Err(format!(
            "{what} name \"{}\" already used in WITH query column list",
            name_of(name)
        )),
        false => Ok(()),
    };
    let same = |one: &str, other: &str| Err(format!("{one} name and {other} name are the same"));
    const SEQUENCE: &str = "search sequence column";
    const MARK: &str = "cycle mark column";
    const PATH: &str = "cycle path column";
    if let Some(search) = &traversal.search {
        listed("search", &search.columns)?;
        unused(SEQUENCE, &search.set)?;
    }
    let Some(cycle) = &traversal.cycle else {
        return Ok(());
    };
    listed("cycle", &cycle.columns)?;
    unused(MARK, &cycle.mark)?;
    unused(PATH, &cycle.path)?;
    let (mark, path) = (name_of(&cycle.mark), name_of(&cycle.path));
    if mark == path {
        return same(MARK, PATH);
    }
    match traversal.search.as_ref().map(|search| name_of(&search.set)) {
        Some(set) if set == mark => same(SEQUENCE, MARK),
        Some(set) if set == path => same(SEQUENCE, PATH),
        _ => Ok(()),
    }
}

/// What a FROM calls the query, if it names it outside of subqueries.
fn reference(select: &ast::Select, name: &str) -> Option<String> {
    let joined = select.from.iter().flat_map(|from| {
        let others = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(others)
    });
    let mut named = joined.filter_map(|factor| match factor {
        TableFactor::Table {
            name: written,
            alias,
            args: None,
            ..
        } => {
            let [part] = written.0.as_slice() else {
                return None;
            };
            let is_it = part.as_ident().is_some_and(|ident| name_of(ident) == name);
            let alias = alias.as_ref().map(|alias| name_of(&alias.name));
            is_it.then(|| alias.unwrap_or_else(|| name.to_owned()))
        }
        _ => None,
    });
    named.next()
}

fn column_of(row: &str, column: &str) -> Expr {
    let names = [row, column].map(|name| Ident::with_quote('"', name));
    Expr::CompoundIdentifier(names.to_vec())
}

/// `SELECT outputs FROM (query) AS name (columns)`.
fn around(name: &str, outputs: &[String], columns: &[String], query: SetExpr) -> Result<SetExpr> {
    let columns: Vec<String> = columns
        .iter()
        .map(|column| quote_identifier(column))
        .collect();
    let text = format!(
        "SELECT {} FROM (SELECT 1) AS \"{name}\" ({})",
        outputs.join(", "),
        columns.join(", ")
    );
    let Statement::Query(mut outer) = parse::statement(&SourceStatement::from(text.as_str()))?
    else {
        return Err(Error::internal("a query was parsed as something else"));
    };
    let SetExpr::Select(select) = &mut *outer.body else {
        return Err(Error::internal("a SELECT was parsed as something else"));
    };
    let from = select.from.first_mut().map(|from| &mut from.relation);
    let Some(TableFactor::Derived { subquery, .. }) = from else {
        return Err(unsupported("this recursive query", None));
    };
    *subquery.body = query;
    Ok(*outer.body)
}
