//! MERGE.
//!
//! The statement reads first and writes then, so that what it writes changes neither which rows
//! match nor which clause is theirs:
//!
//! ```text
//! for each row of the source                      by its plan
//!     for each row of the target that ON accepts  by an index, or among copies, hashed
//!         the first WHEN MATCHED that holds       its values into a buffer, with the record
//!     if there was none
//!         the first WHEN NOT MATCHED that holds   its values into another buffer
//! for each row of the first buffer                UPDATE or DELETE of the record
//! for each row of the second one                  INSERT
//! ```
//!
//! What an action does to one row is what UPDATE, DELETE and INSERT do. The events of all actions
//! are in one queue, where something follows from them at the end of the statement.

mod changes;
mod clauses;
mod matches;

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Class, Reg};
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::Merge;

use super::super::bound::{Bound, Select, SourceId};
use super::super::{Compiler, Position};
use super::generated::with_generated;
use super::insert::Plan;
use super::references::Change;
use super::target::Target;

/// The table that a MERGE changes.
struct Merged {
    target: Target,
    alias: String,
    /// Its row where conditions and values are computed.
    source: SourceId,
    position: Position,
}

impl Merged {
    fn table(&self) -> &Arc<Table> {
        &self.target.table
    }
}

/// A WHEN clause.
struct Clause<'s> {
    is_matched: bool,
    /// Its AND.
    condition: Option<Bound>,
    action: Action<'s>,
    /// What its action computes, and where that stands in a row of its buffer.
    values: Vec<Bound>,
    places: Vec<usize>,
}

/// What a WHEN clause does.
enum Action<'s> {
    Nothing,
    Delete,
    Update(Vec<ColumnId>),
    Insert(Box<Plan<'s>>),
}

impl Action<'_> {
    /// What it does to the rows of the table.
    fn change(&self, table: &Table) -> Result<Option<Change>> {
        Ok(match self {
            Action::Nothing => None,
            Action::Delete => Some(Change::Delete),
            Action::Update(columns) => {
                let set: ColumnSet = columns.iter().copied().collect();
                Some(Change::Update(with_generated(table, set)?))
            }
            Action::Insert(_) => Some(Change::Insert),
        })
    }
}

/// The rows of one of the two buffers.
struct Rows {
    buffer: BufferId,
    /// What stands before the values: the number of the clause, and for matched rows the record
    /// and what tells it from others.
    leading: Vec<DataType>,
    values: Vec<DataType>,
}

/// What is known of a matched row where its clause is chosen.
struct Found {
    record: Reg,
    key: Vec<Reg>,
}

/// Copies of the target's rows, and how they are searched.
struct Copies {
    buffer: BufferId,
    columns: Vec<u16>,
    hashed: Vec<(u16, Class, Bound)>,
    rest: Vec<Bound>,
}

impl<'a> Compiler<'a> {
    /// Compiles MERGE. `counter`, a BIGINT register, is set to the number of rows inserted, updated
    /// or deleted.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the statement; 0A000 for what is not supported.
    pub fn merge(&mut self, merge: &Merge, counter: Option<Reg>) -> Result<()> {
        self.statement(|compiler| compiler.merge_rows(merge, counter))
    }

    fn merge_rows(&mut self, merge: &Merge, counter: Option<Reg>) -> Result<()> {
        let merged = self.merge_target(merge)?;
        let (table, position) = (merged.table().clone(), merged.position);
        let mut scope = self.bind_factor(&merge.source, &[])?;
        self.check_merge_names(&merged, &scope)?;
        let on = self.bind_merge_condition(&merge.on, &merged, &scope)?;
        let mut clauses = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            clauses.push(self.bind_clause(clause, &merged, &scope, counter)?);
        }
        let all = clauses
            .iter()
            .flat_map(|clause| clause.condition.iter().chain(&clause.values));
        let all: Vec<&Bound> = on.iter().chain(all).collect();
        let mut needed: Vec<_> = all.iter().flat_map(|bound| bound.columns()).collect();
        if needed.iter().any(|(source, _)| *source == merged.source) {
            self.note_reading(&table.schema().name);
        }
        needed.sort_unstable();
        needed.dedup();
        self.start_counting(counter);
        let mut references = self.plan_merge_references(&table, &mut clauses)?;
        let own: Vec<SourceId> = scope.items.iter().map(|item| item.source).collect();
        let outputs = needed.iter().filter(|(source, _)| own.contains(source));
        let outputs = outputs.map(|(source, column)| self.column_bound(*source, *column));
        let select = Select {
            filters: std::mem::take(&mut scope.filters),
            items: std::mem::take(&mut scope.items),
            outputs: outputs.collect(),
            ..Select::default()
        };
        let plan = self.plan(&select, &[], false);
        // With one row of the source at most, no row of the target is matched twice.
        let key = match plan.single {
            true => None,
            false => Some(table.schema().primary_key.clone()),
        };
        let of_target = needed.iter().filter(|(source, _)| *source == merged.source);
        let of_target: Vec<u16> = of_target.map(|(_, column)| *column).collect();
        let (inner, is_indexed) = self.plan_merge_target(&merged, &on, &of_target);
        let is_copied = match &key {
            None => false,
            Some(key) => !is_indexed || key.is_empty(),
        };
        let key_types: Vec<DataType> = match (&key, is_copied) {
            (None, _) => Vec::new(),
            (Some(_), true) => vec![DataType::BigInt],
            (Some(key), false) => {
                let columns = key.iter();
                columns
                    .map(|column| self.column_type(merged.source, column.0))
                    .collect()
            }
        };
        let mut leading = vec![DataType::BigInt, DataType::BigInt];
        leading.extend(key_types.iter().cloned());
        let matched = self.merge_buffer(&mut clauses, true, leading);
        let unmatched = self.merge_buffer(&mut clauses, false, vec![DataType::BigInt]);
        let copies = match is_copied {
            true => Some(self.copy_merge_target(&merged, &on, &of_target)?),
            false => None,
        };
        let found = self.builder.register(DataType::Boolean);
        self.emit_plan(&plan, &mut |compiler| {
            compiler.set_truth(found, false);
            compiler.for_each_match(
                &merged,
                &inner,
                copies.as_ref(),
                key.as_deref(),
                &mut |c, it| {
                    c.set_truth(found, true);
                    let numbered = clauses.iter().enumerate();
                    let numbered = numbered.filter(|(_, clause)| clause.is_matched);
                    c.choose_clause(&numbered.collect::<Vec<_>>(), &matched, Some(it))
                },
            )?;
            let numbered = clauses.iter().enumerate();
            let numbered: Vec<_> = numbered.filter(|(_, clause)| !clause.is_matched).collect();
            match numbered.is_empty() {
                true => Ok(()),
                false => compiler.unless(found, |c| c.choose_clause(&numbered, &unmatched, None)),
            }
        })?;
        self.change_matched(
            &merged,
            &clauses,
            &references,
            (&matched, &key_types),
            counter,
        )?;
        self.insert_unmatched(&mut clauses, &unmatched)?;
        let inserts = clauses
            .into_iter()
            .filter_map(|clause| match clause.action {
                Action::Insert(plan) => Some(plan.into_references()),
                _ => None,
            });
        references.extend(inserts.map(Some));
        for references in references.iter().flatten() {
            self.finish_references(&table, references, position)?;
        }
        self.changed = Some(table.id());
        Ok(())
    }
}
