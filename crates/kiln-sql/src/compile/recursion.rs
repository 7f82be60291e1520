//! WITH RECURSIVE.
//!
//! A recursion goes round by round, as in PostgreSQL: the first query finds the rows of the first
//! round, and the recursive term, over the rows of one round alone, finds those of the next, until
//! it finds none. Two buffers hold the rows of a round and those found for the next; a third one
//! knows all rows of a UNION without ALL.
//!
//! A round's rows are handed out before the next round, so that LIMIT ends an endless recursion. A
//! round that never ends, as another recursion runs in it, is another matter: where a LIMIT waits,
//! its rows are handed out as they are found, by a second copy of what is done with them.

use std::rc::Rc;

use kiln_procedure::ir::{BufferId, Class, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::bound::{
    Body, Bound, BoundQuery, ItemKind, Kind, Recursive, SetOperation, WithReference,
};
use super::limit::Limits;
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

/// Where the rows of a recursion are.
struct Rounds {
    /// Those of the round at hand.
    working: BufferId,
    /// Those found for the next one.
    found: BufferId,
    /// Whether there are any.
    more: Reg,
    /// All rows so far, where each is handed out once, and how they compare.
    known: Option<(BufferId, Vec<Class>)>,
    /// Whether rows are handed out when they are found.
    at_once: bool,
}

impl Compiler<'_> {
    /// Binds a query of WITH RECURSIVE called `name`, if it names itself.
    pub(super) fn bind_recursive(
        &mut self,
        cte: &ast::Cte,
        name: &str,
        position: Position,
    ) -> Result<Option<BoundQuery>> {
        let known = self.with_names.len();
        let bound = self.bind_recursion(cte, name, position);
        self.with_names.truncate(known);
        bound
    }

    fn bind_recursion(
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
        if !mentions(&right.to_string(), name) {
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
        let around = self.with_names.len();
        let with = match &query.with {
            Some(with) => Some((with, self.bind_with(with)?)),
            None => None,
        };
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
        }
        if first.columns.len() != next.columns.len() {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
                position,
            ));
        }
        self.match_columns(&first, &mut next, name, position)?;
        let with = with.map(|(with, queries)| self.end_with(around, with, queries));
        let columns = first.columns.clone();
        let recursive = Recursive {
            number,
            first,
            next,
            all: *quantifier == SetQuantifier::All,
        };
        Ok(Some(BoundQuery {
            with: with.unwrap_or_default(),
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
            let given = &next.columns[index].data_type;
            let is_same_length = match matches!(wanted, DataType::Numeric { .. }) {
                true => !matches!(open.kind, Kind::Slot(_)) || wanted == *given,
                false => true,
            };
            if !super::types::same_base(&common, &wanted) || !is_same_length {
                return Err(fail(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {} in non-recursive term \
                         but type {} overall",
                        index + 1,
                        wanted,
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
        let types = recursive.first.columns.iter();
        let types: Vec<DataType> = types.map(|column| column.data_type.clone()).collect();
        let rounds = Rounds {
            working: self.cleared_buffer(types.len()),
            found: self.cleared_buffer(types.len()),
            more: self.builder.register(DataType::Boolean),
            known: match recursive.all {
                true => None,
                false => {
                    let class = |data_type| class_in("UNION", Needs::Equality, data_type, None);
                    let classes = types.iter().map(class).collect::<Result<_>>()?;
                    Some((self.cleared_buffer(types.len()), classes))
                }
            },
            at_once: self.stops_early && recursive.next.has_recursion(),
        };
        if !rounds.at_once {
            return self.emit_recursion(recursive, &rounds, types.into(), sink);
        }
        // Both copies are in one loop, which the last row leaves.
        self.open_ir_loop();
        let result = self.emit_recursion(recursive, &rounds, types.into(), sink);
        self.close_ir_loop_of_one();
        result
    }

    fn emit_recursion(
        &mut self,
        recursive: &Recursive,
        rounds: &Rounds,
        types: Rc<[DataType]>,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        self.set_truth(rounds.more, false);
        let options = QueryOptions::default();
        self.emit_query(&recursive.first, options, &mut |compiler, row| {
            compiler.keep_found(rounds, row, sink)
        })?;
        self.builder.open();
        let copies = self.emit_rounds(recursive, rounds, types, sink);
        let steps = self.builder.close();
        // Copies are made in the first round of each recursion.
        for (copied, buffer) in copies? {
            self.set_truth(copied, false);
            self.builder.push(Step::BufferClear { buffer });
        }
        for step in steps {
            self.builder.push(step);
        }
        Ok(())
    }

    /// The loop over the rounds; gives what was copied once.
    fn emit_rounds(
        &mut self,
        recursive: &Recursive,
        rounds: &Rounds,
        types: Rc<[DataType]>,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<Vec<(Reg, BufferId)>> {
        self.open_ir_loop();
        let buffer = rounds.working;
        self.builder.push(Step::BufferClear { buffer });
        let all = Limits::default();
        let mut result = self.emit_buffer_rows(rounds.found, &types, &all, &mut |compiler, row| {
            let kept = row.into();
            compiler
                .builder
                .push(Step::BufferPush { buffer, row: kept });
            match rounds.at_once {
                true => Ok(()),
                false => sink(compiler, row),
            }
        });
        self.builder.push(Step::BufferClear {
            buffer: rounds.found,
        });
        self.set_truth(rounds.more, false);
        let mut own = Some(Recursion {
            depth: self.depth,
            copies: Vec::new(),
        });
        if result.is_ok() {
            std::mem::swap(&mut self.recursion, &mut own);
            let known = self.open_with.len();
            self.open_recursion(recursive.number, buffer, types);
            let options = QueryOptions::default();
            result = self.emit_query(&recursive.next, options, &mut |compiler, row| {
                // What is done with the rows is none of this recursion's.
                std::mem::swap(&mut compiler.recursion, &mut own);
                let result = compiler.keep_found(rounds, row, sink);
                std::mem::swap(&mut compiler.recursion, &mut own);
                result
            });
            self.open_with.truncate(known);
            std::mem::swap(&mut self.recursion, &mut own);
        }
        let body = self.close_ir_loop();
        self.builder.push(Step::Loop {
            before: Vec::new(),
            condition: Some(rounds.more),
            body,
        });
        result.map(|()| own.map(|own| own.copies).unwrap_or_default())
    }

    /// Keeps a row for the next round, if it is new where it must be.
    fn keep_found(
        &mut self,
        rounds: &Rounds,
        row: &[Reg],
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let added = rounds.known.as_ref().map(|(buffer, classes)| {
            let added = self.push_distinct(*buffer, classes, row);
            self.open();
            added
        });
        self.builder.push(Step::BufferPush {
            buffer: rounds.found,
            row: row.into(),
        });
        self.set_truth(rounds.more, true);
        let result = match rounds.at_once {
            true => sink(self, row),
            false => Ok(()),
        };
        if let Some(condition) = added {
            self.close_when(condition);
        }
        result
    }

    fn cleared_buffer(&mut self, width: usize) -> BufferId {
        let buffer = self.builder.buffer(width);
        self.builder.push(Step::BufferClear { buffer });
        buffer
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

    /// Copies a source of the recursive term in the first round only, if it is the same in all.
    pub(super) fn copied_once(
        &mut self,
        source: &ItemKind,
        copy: impl FnOnce(&mut Self) -> Result<(BufferId, Vec<u16>)>,
    ) -> Result<(BufferId, Vec<u16>)> {
        let depth = self.depth;
        let is_outermost = matches!(&self.recursion, Some(one) if one.depth == depth);
        let mut is_same = true;
        source.visit_from(&mut |kind| {
            is_same &= !matches!(kind, ItemKind::With(reference) if !reference.is_independent);
        });
        if !is_outermost || !is_same {
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

/// Where a recursive term names its rows, but may not.
enum Misplaced {
    Within(&'static str),
    Aggregates,
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
    let parts = query.with.iter().map(|with| &with.query);
    let mut parts: Vec<&BoundQuery> = parts.collect();
    match &query.body {
        Body::Select(select) => {
            for item in &select.items {
                let mut here = false;
                item.kind.visit_from(&mut |kind| {
                    here |= matches!(kind, ItemKind::With(one) if one.is_number(number));
                });
                if here && (item.left.is_some() || matches!(item.kind, ItemKind::Full(_))) {
                    return Some(Misplaced::Within("an outer join"));
                }
                match &item.kind {
                    ItemKind::Derived(query) => parts.push(query),
                    ItemKind::With(_) if here && select.has_aggregates() => {
                        return Some(Misplaced::Aggregates);
                    }
                    _ => {}
                }
            }
        }
        Body::Set {
            operation: SetOperation::Except,
            left,
            right,
            all,
        } => {
            if *all || names(right, number) {
                return Some(Misplaced::Within("EXCEPT"));
            }
            parts.push(left);
        }
        Body::Set {
            operation: SetOperation::Intersect,
            all: true,
            ..
        } => return Some(Misplaced::Within("INTERSECT")),
        Body::Values(_) => {}
        body => parts.extend(body.queries()),
    }
    let mut parts = parts.into_iter();
    parts.find_map(|part| misplaced_in(part, number))
}
