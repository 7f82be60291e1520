//! WITH RECURSIVE.
//!
//! The rows are kept in one buffer, which grows while it is visited: the first query puts rows in,
//! and for each row that is visited the recursive term, over that row alone, puts in what follows
//! from it. That gives PostgreSQL's rows in PostgreSQL's order, as the term is linear in the rows:
//! it may name them once, and neither aggregate them nor subtract them. Rows are handed out as they
//! come, so that LIMIT ends an endless recursion.

use kiln_procedure::ir::{BufferId, Class, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::bound::{
    Body, Bound, BoundQuery, ItemKind, Kind, Recursive, SetOperation, WithReference,
};
use super::order::{Needs, class_in};
use super::query::QueryOptions;
use super::{Compiler, Position, fail, unsupported};

/// A recursion that is being emitted.
#[derive(Debug)]
pub(super) struct Recursion {
    /// How many loops are around the recursive term.
    depth: usize,
    /// The sources that are copied once: whether that was done, and where to.
    copies: Vec<(Reg, BufferId)>,
}

impl Compiler<'_> {
    /// Binds a query of WITH RECURSIVE called `name`, if it names itself.
    pub(super) fn bind_recursive(
        &mut self,
        cte: &ast::Cte,
        name: &str,
        position: Position,
    ) -> Result<Option<BoundQuery>> {
        let query = &cte.query;
        let invalid = |message: String| fail(SqlState::INVALID_RECURSION, message, position);
        let SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier: quantifier,
            right,
        } = &*query.body
        else {
            return Ok(None);
        };
        if query.with.is_some() || !mentions(&right.to_string(), name) {
            return Ok(None);
        }
        let has_order = query.order_by.is_some();
        if has_order || query.limit_clause.is_some() || query.fetch.is_some() {
            let what = "ORDER BY, LIMIT and OFFSET in a recursive query";
            return Err(unsupported(what, position));
        }
        if !query.locks.is_empty() {
            let message = "FOR UPDATE/SHARE in a recursive query is not implemented";
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        }
        let bare = super::query::bare_query();
        let mut first = self.bind_body(left, &bare)?;
        first.decide_outputs()?;
        let columns = cte.alias.columns.iter();
        let columns: Vec<String> = columns.map(|column| super::name_of(&column.name)).collect();
        super::from::rename(&mut first.columns, &columns, name, position)?;
        let number = self.new_slot();
        let known = self.with_names.len();
        self.name_recursion(name, number, &first.columns);
        let next = self.bind_body(right, &bare);
        let uses = self.uses_since(known);
        self.with_names.truncate(known);
        let mut next = next?;
        if uses == 0 {
            return Ok(None);
        }
        if uses > 1 {
            return Err(invalid(format!(
                "recursive reference to query \"{name}\" must not appear more than once"
            )));
        }
        match misplaced(&next, number) {
            None => {}
            Some(Misplaced::Within(place)) => {
                return Err(invalid(format!(
                    "recursive reference to query \"{name}\" must not appear within {place}"
                )));
            }
            Some(Misplaced::Aggregates) => {
                let message = "aggregate functions are not allowed in a recursive query's \
                               recursive term";
                return Err(invalid(message.to_owned()));
            }
            Some(Misplaced::Unsupported(what)) => {
                let what = format!("{what} in the recursive term of WITH RECURSIVE");
                return Err(unsupported(what, position));
            }
        }
        if first.columns.len() != next.columns.len() {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
                position,
            ));
        }
        self.match_columns(&first, &mut next, name, position)?;
        let columns = first.columns.clone();
        let recursive = Recursive {
            number,
            first,
            next,
            all: *quantifier == SetQuantifier::All,
        };
        Ok(Some(BoundQuery {
            with: Vec::new(),
            body: Body::Recursive(Box::new(recursive)),
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
        }))
    }

    /// The recursive term's columns have the types of the other's.
    fn match_columns(
        &self,
        first: &BoundQuery,
        next: &mut BoundQuery,
        name: &str,
        position: Position,
    ) -> Result<()> {
        for index in 0..first.columns.len() {
            let wanted = first.columns[index].data_type.clone();
            let open = match &next.body {
                Body::Select(select) if select.open_outputs.contains(&index) => {
                    super::set::reopened(select.outputs[index].clone())
                }
                _ => Bound::new(
                    Kind::Slot(index),
                    next.columns[index].data_type.clone(),
                    position,
                ),
            };
            let known = Bound::new(Kind::Slot(index), wanted.clone(), position);
            let common = super::category::common_type("UNION", &[&known, &open], position)?;
            if !super::types::same_base(&common, &wanted) {
                return Err(fail(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {} in non-recursive term \
                         but type {} overall",
                        index + 1,
                        wanted.base_name(),
                        common.base_name()
                    ),
                    position,
                )
                .with_hint("Cast the output of the non-recursive term to the correct type."));
            }
            next.cast_column(index, open, &wanted)?;
        }
        Ok(())
    }

    /// Emits the rows of a recursion.
    pub(super) fn emit_recursive(
        &mut self,
        recursive: &Recursive,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let types: Vec<DataType> = recursive
            .first
            .columns
            .iter()
            .map(|column| column.data_type.clone())
            .collect();
        let class = |data_type| class_in("UNION", Needs::Equality, data_type, None);
        let classes: Option<Vec<Class>> = match recursive.all {
            true => None,
            false => Some(types.iter().map(class).collect::<Result<_>>()?),
        };
        let buffer = self.builder.buffer(types.len());
        self.builder.push(Step::BufferClear { buffer });
        let push = |compiler: &mut Self, row: &[Reg]| {
            compiler.push_found(buffer, row, classes.as_deref());
            Ok(())
        };
        let options = QueryOptions::default();
        self.emit_query(&recursive.first, options, &mut { push })?;
        self.builder.open();
        let copies = self.emit_iterations(recursive, buffer, &types, &push, sink);
        let steps = self.builder.close();
        // Copies are made in the first iteration of each recursion.
        let copies = copies?;
        for (copied, buffer) in copies {
            self.set_truth(copied, false);
            self.builder.push(Step::BufferClear { buffer });
        }
        for step in steps {
            self.builder.push(step);
        }
        Ok(())
    }

    /// The loop over the rows, which the recursive term makes more; gives what was copied once.
    fn emit_iterations(
        &mut self,
        recursive: &Recursive,
        buffer: BufferId,
        types: &[DataType],
        push: &dyn Fn(&mut Self, &[Reg]) -> Result<()>,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<Vec<(Reg, BufferId)>> {
        let row: Vec<Reg> = types
            .iter()
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        self.open_ir_loop();
        let around = self.recursion.replace(Recursion {
            depth: self.depth,
            copies: Vec::new(),
        });
        let known = self.open_with.len();
        self.open_recursion(recursive.number, &row);
        let options = QueryOptions::default();
        let result = self.emit_query(&recursive.next, options, &mut |compiler, row| {
            push(compiler, row)
        });
        self.open_with.truncate(known);
        let own = std::mem::replace(&mut self.recursion, around);
        let result = result.and_then(|()| sink(self, &row));
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        result.map(|()| own.map(|own| own.copies).unwrap_or_default())
    }

    pub(super) fn push_found(&mut self, buffer: BufferId, row: &[Reg], classes: Option<&[Class]>) {
        match classes {
            Some(classes) => {
                self.push_distinct(buffer, classes, row);
            }
            None => {
                let row = row.into();
                self.builder.push(Step::BufferPush { buffer, row });
            }
        }
    }

    /// Copies a source of the recursive term in the first iteration only: it is the same in all.
    pub(super) fn copied_once(
        &mut self,
        copy: impl FnOnce(&mut Self) -> Result<(BufferId, Vec<u16>)>,
    ) -> Result<(BufferId, Vec<u16>)> {
        let depth = self.depth;
        let is_outermost = matches!(&self.recursion, Some(one) if one.depth == depth);
        if !is_outermost {
            return copy(self);
        }
        let copied = self.builder.register(DataType::Boolean);
        self.open();
        let result = copy(self);
        self.set_truth(copied, true);
        self.close_unless(copied);
        let (buffer, columns) = result?;
        if let Some(recursion) = &mut self.recursion {
            recursion.copies.push((copied, buffer));
        }
        Ok((buffer, columns))
    }
}

/// Where a recursive term names its rows, but may not, and what it does with them, but may not.
enum Misplaced {
    Within(&'static str),
    Aggregates,
    Unsupported(&'static str),
}

/// Whether the text of a query has a name in it.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    let text = text.to_lowercase();
    let is_part = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
    };
    text.match_indices(&name.to_lowercase()).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        !is_part(before) && !is_part(text[at + found.len()..].chars().next())
    })
}

/// Where the rows of a recursion are named in its recursive term, if they may not be named there.
fn misplaced(next: &BoundQuery, number: usize) -> Option<Misplaced> {
    let mut in_subquery = false;
    next.visit(&mut |bound| {
        if let Kind::Subquery(subquery) = &bound.kind {
            in_subquery |= names(&subquery.query, number);
        }
    });
    if in_subquery {
        return Some(Misplaced::Within("a subquery"));
    }
    misplaced_in(next, number)
}

fn names(query: &BoundQuery, number: usize) -> bool {
    let mut found = false;
    query.visit_own_references(&mut |reference: WithReference| {
        found |= reference.is_number(number);
    });
    found
}

fn misplaced_in(query: &BoundQuery, number: usize) -> Option<Misplaced> {
    if !names(query, number) {
        return None;
    }
    match &query.body {
        Body::Select(select) => {
            if select.grouping.is_some() {
                return Some(Misplaced::Aggregates);
            }
            if select.distinct || !select.distinct_on.is_empty() {
                return Some(Misplaced::Unsupported("DISTINCT"));
            }
            for item in &select.items {
                let mut here = false;
                item.kind.visit_from(&mut |kind| {
                    here |= matches!(kind, ItemKind::With(one) if one.is_number(number));
                });
                if here && (item.left.is_some() || matches!(item.kind, ItemKind::Full(_))) {
                    return Some(Misplaced::Within("an outer join"));
                }
                if let (true, ItemKind::Derived(query)) = (here, &item.kind) {
                    let inner = misplaced_in(query, number);
                    if inner.is_some() {
                        return inner;
                    }
                }
            }
            let is_limited = query.limit.is_some() || query.offset.is_some();
            is_limited.then_some(Misplaced::Unsupported("LIMIT"))
        }
        Body::Set {
            operation,
            left,
            right,
            all,
        } => match (operation, all) {
            (SetOperation::Union, true) => {
                misplaced_in(left, number).or_else(|| misplaced_in(right, number))
            }
            (SetOperation::Union, false) => Some(Misplaced::Unsupported("UNION without ALL")),
            (SetOperation::Except, _) if names(right, number) => Some(Misplaced::Within("EXCEPT")),
            (operation, _) => Some(Misplaced::Unsupported(operation.name())),
        },
        Body::Windowed(_) => Some(Misplaced::Unsupported("a window function")),
        Body::Values(_) | Body::Recursive(_) => None,
    }
}
