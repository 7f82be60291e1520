//! What follows from changed rows at the end of a statement: referential actions (what becomes of
//! rows that refer to a row that is deleted, or whose key changes), and AFTER triggers.
//!
//! The rows that a statement changes are *events* in a queue. When the statement has changed its
//! last row the queue is worked off: each event has its actions and checks made, in the order in
//! which their constraints were created. An action is an UPDATE or DELETE of the referring rows,
//! and the rows that it changes are further events, at the end of the queue. That is PostgreSQL's
//! order. The queue is a buffer that grows while it is visited.
//!
//! ```text
//! DELETE FROM order WHERE id = 7
//!     delete the row                              queue: (order deleted, 7)
//!     for each event of the queue
//!         order deleted: DELETE FROM line WHERE order = 7
//!                                                 queue: …, (line deleted, 1), (line deleted, 2)
//!         line deleted: check that no row of delivery refers to it
//! ```
//!
//! What kinds of events there can be is known when the statement is compiled: the tables that
//! refer to its table, those that refer to these, and so on. Where that is a cycle, as in a tree
//! that refers to itself, an event is queued once for each key, so that rows that refer to each
//! other in a circle come to an end, also where nothing is deleted yet (a reconnaissance).

use std::rc::Rc;

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Class, Comparison, Instruction, Reg, Step};
use kiln_storage::error::{Error, Result};
use kiln_storage::schema::{ColumnId, ColumnSet, ReferentialAction, TriggerTime};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{FromTable, Ident, ObjectName, TableFactor, TableWithJoins};
use sqlparser::tokenizer::{Location, Span};

use super::super::bound::SourceId;
use super::super::plpgsql::Firing;
use super::super::{Compiler, Position, sql_name, unsupported};
use super::references::{Change, ReferenceCheck, References, Side, key_tests, typed_key};
use super::triggers::{Rows, fired};
use super::{quoted, shown_columns, stored_expression};
use crate::parse::{SourceStatement, Statement, statement};

/// PostgreSQL makes the checks and actions of foreign keys by triggers whose names begin so, and
/// all triggers fire in the order of their names.
const FOREIGN_KEY_TRIGGERS: &str = "RI_ConstraintTrigger_";

/// All that may follow from the changes of one statement.
pub(super) struct Cascade {
    /// The first one is the statement's own.
    events: Vec<Event>,
    queue: BufferId,
    /// The types of a row of the queue: the number of the event, where there are several, and the
    /// values that some event keeps.
    types: Vec<DataType>,
    /// How rows of the queue compare, where an event may lead to one of its own kind.
    classes: Option<Box<[Class]>>,
}

/// A kind of changed rows.
struct Event {
    table: Arc<Table>,
    change: Change,
    /// The constraint whose action makes the change, where that need not be checked itself.
    by: Option<String>,
    checks: Vec<ReferenceCheck>,
    /// The triggers that fire then.
    triggers: Vec<Firing>,
    /// For each check, the event that its action makes, if something follows from that.
    follows: Vec<Option<usize>>,
    /// The old values that are kept, and their places in a row of the queue.
    old: Vec<(ColumnId, usize)>,
    /// The new values.
    new: Vec<(ColumnId, usize)>,
}

/// The statement that is compiled next is an action.
pub(in super::super) struct Following {
    cascade: Rc<Cascade>,
    event: Option<usize>,
}

impl Cascade {
    /// The columns whose old values an event keeps.
    pub fn old_columns(&self, event: usize) -> Vec<ColumnId> {
        let columns = self.events[event].old.iter();
        columns.map(|(column, _)| *column).collect()
    }

    /// The columns whose new values an event keeps.
    pub fn new_columns(&self, event: usize) -> Vec<ColumnId> {
        let columns = self.events[event].new.iter();
        columns.map(|(column, _)| *column).collect()
    }

    /// Whether rows of the queue say which event they are.
    fn is_tagged(&self) -> bool {
        self.events.len() > 1
    }
}

impl Event {
    fn new(
        table: &Arc<Table>,
        change: Change,
        by: Option<String>,
        mut checks: Vec<ReferenceCheck>,
        triggers: Vec<Firing>,
    ) -> Event {
        for check in &mut checks {
            if let Side::Child { may_change } = &mut check.side {
                *may_change = true;
            }
        }
        Event {
            table: table.clone(),
            change,
            by,
            follows: vec![None; checks.len()],
            checks,
            triggers,
            old: Vec::new(),
            new: Vec::new(),
        }
    }

    /// Finds places in a row of the queue for what the event keeps: keys, and for triggers whole
    /// rows.
    fn place_values(&mut self, types: &mut Vec<DataType>, first: usize) {
        let all: Vec<ColumnId> = match self.triggers.is_empty() {
            true => Vec::new(),
            false => shown_columns(&self.table).collect(),
        };
        let (mut old, mut new) = (Vec::new(), Vec::new());
        if self.change != Change::Insert {
            let keys = self.checks.iter().filter(|check| check.is_of_old_key());
            old.extend(keys.flat_map(|check| check.columns.iter().copied()));
            old.extend(&all);
        }
        if self.change != Change::Delete {
            new.extend(
                self.checks
                    .iter()
                    .flat_map(|check| check.columns.iter().copied()),
            );
            new.extend(&all);
        }
        let mut taken = Vec::new();
        self.old = self.placed(&old, &mut taken, types, first);
        self.new = self.placed(&new, &mut taken, types, first);
    }

    fn placed(
        &self,
        columns: &[ColumnId],
        taken: &mut Vec<usize>,
        types: &mut Vec<DataType>,
        first: usize,
    ) -> Vec<(ColumnId, usize)> {
        let mut list: Vec<(ColumnId, usize)> = Vec::new();
        for column in columns {
            if list.iter().any(|(known, _)| known == column) {
                continue;
            }
            let data_type = &self.table.schema().columns[column.index()].data_type;
            let mut free = (first..types.len()).filter(|at| !taken.contains(at));
            let at = free.find(|at| types[*at] == *data_type);
            let at = at.unwrap_or(types.len());
            if at == types.len() {
                types.push(data_type.clone());
            }
            taken.push(at);
            list.push((*column, at));
        }
        list
    }

    /// The registers of some columns' values in a row of the queue.
    fn values(list: &[(ColumnId, usize)], columns: &[ColumnId], row: &[Reg]) -> Result<Vec<Reg>> {
        let place = |column: &ColumnId| {
            let known = list.iter().find(|(known, _)| known == column);
            let at = known.ok_or_else(|| Error::internal("an event lacks a column of a key"))?;
            Ok(row[at.1])
        };
        columns.iter().map(place).collect()
    }
}

/// What an action does to the referring rows, and the constraint that it cannot violate.
fn effect_of(check: &ReferenceCheck, change: Change) -> Option<(Change, Option<String>)> {
    let key = &check.key;
    let set = match change {
        Change::Delete => key.columns_set_on_delete(),
        _ => key.columns.as_slice(),
    };
    let columns: ColumnSet = set.iter().copied().collect();
    let own = || Some(key.name.clone());
    match (check.action(change), change) {
        (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => None,
        (ReferentialAction::Cascade, Change::Delete) => Some((Change::Delete, None)),
        (ReferentialAction::Cascade, _) => Some((Change::Update(columns), own())),
        (ReferentialAction::SetNull, _) => {
            let holds = !key.match_full || set.len() == key.columns.len();
            Some((Change::Update(columns), own().filter(|_| holds)))
        }
        (ReferentialAction::SetDefault, _) => Some((Change::Update(columns), None)),
    }
}

impl Compiler<'_> {
    /// What may follow from these changes of rows of `table`.
    pub(super) fn plan_cascade(
        &mut self,
        table: &Arc<Table>,
        changes: &[Change],
    ) -> Result<Cascade> {
        let mut events = Vec::new();
        for change in changes {
            let mut event = self.event(table, *change, None)?;
            if changes.len() > 1 {
                let checks = event.checks.iter_mut();
                checks.for_each(|check| check.expect_key_again(*change));
            }
            events.push(event);
        }
        let mut at = 0;
        while at < events.len() {
            for number in 0..events[at].checks.len() {
                let check = events[at].checks[number].clone();
                let Some((change, by)) = effect_of(&check, events[at].change) else {
                    continue;
                };
                let known = events.iter().position(|event| {
                    event.table.id() == check.other.id() && event.change == change && event.by == by
                });
                if known.is_some() {
                    events[at].follows[number] = known;
                    continue;
                }
                let event = self.event(&check.other, change, by)?;
                if !event.checks.is_empty() || !event.triggers.is_empty() {
                    events.push(event);
                    events[at].follows[number] = Some(events.len() - 1);
                }
            }
            at += 1;
        }
        let mut types = Vec::new();
        if events.len() > 1 {
            types.push(DataType::BigInt);
        }
        let first = types.len();
        for event in &mut events {
            event.place_values(&mut types, first);
        }
        let classes = types
            .iter()
            .map(Class::of)
            .collect::<Option<Box<[Class]>>>();
        let is_cyclic = is_cyclic(&events);
        // Rows of the queue must be told from each other.
        let is_alike = |event: &Event| {
            let has_no_key = event.table.schema().primary_key.is_empty();
            !event.triggers.is_empty() && (has_no_key || classes.is_none())
        };
        if is_cyclic && events.iter().any(is_alike) {
            let feature = "an AFTER trigger of a table without a primary key, or with columns that do \
                           not compare, in a circle of foreign keys";
            return Err(unsupported(feature, None));
        }
        let classes = classes.filter(|_| is_cyclic);
        let queue = self.builder.buffer(types.len());
        self.builder.push(Step::BufferClear { buffer: queue });
        Ok(Cascade {
            events,
            queue,
            types,
            classes,
        })
    }

    /// An event with its checks and triggers.
    fn event(&mut self, table: &Arc<Table>, change: Change, by: Option<String>) -> Result<Event> {
        let changed = self.changed_by(table, change)?;
        let mut checks = self.reference_checks(table, changed, by.as_deref())?;
        self.plan_waiting(table, change, &mut checks);
        let triggers = fired(table, TriggerTime::After, change);
        Ok(Event::new(table, change, by, checks, triggers))
    }

    /// What the statement that is compiled next is a part of, if it is an action.
    pub(super) fn take_following(&mut self) -> Option<References> {
        let Following { cascade, event } = self.following.take()?;
        Some(match event {
            Some(event) => References::Queued {
                cascade,
                event,
                is_first: false,
            },
            None => References::Checked(Vec::new()),
        })
    }

    /// Puts a changed row into the queue.
    pub(super) fn push_event(
        &mut self,
        cascade: &Cascade,
        number: usize,
        source: SourceId,
        old: &[Reg],
    ) -> Result<()> {
        let event = &cascade.events[number];
        let mut row = Vec::with_capacity(cascade.types.len());
        for data_type in &cascade.types {
            row.push(self.builder.constant(data_type.clone(), Value::Null));
        }
        if cascade.is_tagged() {
            let number = Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
            row[0] = self.builder.constant(DataType::BigInt, number);
        }
        for ((_, at), value) in event.old.iter().zip(old) {
            row[*at] = *value;
        }
        for (column, at) in &event.new {
            row[*at] = self.column(source, *column)?;
        }
        self.push_found(cascade.queue, &row, cascade.classes.as_deref());
        Ok(())
    }

    /// Works the queue off.
    pub(super) fn run_cascade(&mut self, cascade: &Rc<Cascade>, position: Position) -> Result<()> {
        let types = cascade.types.iter();
        let row: Vec<Reg> = types
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        self.open_ir_loop();
        let result = self.emit_events(cascade, &row, position);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: cascade.queue,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        result
    }

    fn emit_events(
        &mut self,
        cascade: &Rc<Cascade>,
        row: &[Reg],
        position: Position,
    ) -> Result<()> {
        for number in 0..cascade.events.len() {
            if !cascade.is_tagged() {
                self.emit_event(cascade, number, row, position)?;
                continue;
            }
            let tag = Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
            let right = self.builder.constant(DataType::BigInt, tag);
            let is_it = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::Compare {
                op: Comparison::Equal,
                class: Class::Integer,
                target: is_it,
                left: row[0],
                right,
            });
            self.when(is_it, |compiler| {
                compiler.emit_event(cascade, number, row, position)
            })?;
        }
        Ok(())
    }

    /// The actions and checks of one event.
    fn emit_event(
        &mut self,
        cascade: &Rc<Cascade>,
        number: usize,
        row: &[Reg],
        position: Position,
    ) -> Result<()> {
        let event = &cascade.events[number];
        let (first, last): (Vec<&Firing>, Vec<&Firing>) = (event.triggers.iter())
            .partition(|firing| firing.trigger.name.as_str() < FOREIGN_KEY_TRIGGERS);
        self.fire_after(event, &first, row)?;
        self.emit_checks_of_event(cascade, event, row, position)?;
        self.fire_after(event, &last, row)
    }

    /// Fires triggers for a row of the queue.
    fn fire_after(&mut self, event: &Event, firings: &[&Firing], row: &[Reg]) -> Result<()> {
        if firings.is_empty() {
            return Ok(());
        }
        let columns: Vec<ColumnId> = shown_columns(&event.table).collect();
        let old = match event.change {
            Change::Insert => None,
            _ => Some(Event::values(&event.old, &columns, row)?),
        };
        let new = match event.change {
            Change::Delete => None,
            _ => Some(Event::values(&event.new, &columns, row)?),
        };
        let rows = Rows {
            old: old.as_deref(),
            new: new.as_deref(),
        };
        firings
            .iter()
            .try_for_each(|firing| self.fire(firing, rows, None))
    }

    fn emit_checks_of_event(
        &mut self,
        cascade: &Rc<Cascade>,
        event: &Event,
        row: &[Reg],
        position: Position,
    ) -> Result<()> {
        for (check, follows) in event.checks.iter().zip(&event.follows) {
            if !check.is_of_old_key() {
                let key = Event::values(&event.new, &check.columns, row)?;
                self.keep_or(&event.table, check, &key, position, |compiler| {
                    compiler.emit_reference(&event.table, check, &key, position)
                })?;
                continue;
            }
            let old = Event::values(&event.old, &check.columns, row)?;
            if event.change == Change::Delete {
                self.emit_consequence(cascade, event, check, (&old, &[]), *follows, position)?;
                continue;
            }
            let new = Event::values(&event.new, &check.columns, row)?;
            let differs = self.keys_differ(&event.table, check, &old, &new)?;
            self.when(differs, |compiler| {
                let keys = (old.as_slice(), new.as_slice());
                compiler.emit_consequence(cascade, event, check, keys, *follows, position)
            })?;
        }
        Ok(())
    }

    /// Whether a change has left a referenced key another one.
    fn keys_differ(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        old: &[Reg],
        new: &[Reg],
    ) -> Result<Reg> {
        let width = old.len();
        let tests = (1..=width).map(|at| format!("${at} IS DISTINCT FROM ${}", width + at));
        let expr = stored_expression(&tests.collect::<Vec<_>>().join(" OR "))?;
        let mut typed = typed_key(table, &check.columns, old);
        typed.extend(typed_key(table, &check.columns, new));
        self.isolated(|compiler| {
            compiler.set_positional(typed);
            compiler.condition(&expr, "REFERENCES")
        })
    }

    /// The check or action of one constraint, for a row that had the key `old` and has `new`.
    fn emit_consequence(
        &mut self,
        cascade: &Rc<Cascade>,
        event: &Event,
        check: &ReferenceCheck,
        (old, new): (&[Reg], &[Reg]),
        follows: Option<usize>,
        position: Position,
    ) -> Result<()> {
        let Some(text) = action_text(check, event.change) else {
            return self.keep_or(&event.table, check, old, position, |compiler| {
                compiler.emit_reference(&event.table, check, old, position)
            });
        };
        let mut typed = typed_key(&event.table, &check.columns, old);
        typed.extend(typed_key(&event.table, &check.columns, new));
        let mut action = statement(&SourceStatement::from(text.as_str()))?;
        set_position(&mut action, position);
        self.following = Some(Following {
            cascade: cascade.clone(),
            event: follows,
        });
        // An action changes other rows whatever the statement's role may change: as PostgreSQL has
        // it, with the privileges of their table's owner. So have the triggers that it fires.
        let referring = &check.other.schema().name;
        self.isolated(|compiler| {
            compiler.set_positional(typed);
            compiler.by_owner_of(referring, |compiler| match &action {
                Statement::Delete(delete) => compiler.delete(delete, None, None),
                Statement::Update(update) => compiler.update(update, None, None),
                _ => Err(Error::internal("an action is no UPDATE or DELETE")),
            })
        })?;
        if check.action(event.change) != ReferentialAction::SetDefault {
            return Ok(());
        }
        // The default values may be the key that is gone.
        let mut remaining = check.clone();
        remaining.side = Side::Parent { may_remain: true };
        self.emit_reference(&event.table, &remaining, old, position)
    }
}

/// Whether an event may lead to one of its own kind.
fn is_cyclic(events: &[Event]) -> bool {
    let leads_back = |start: usize| {
        let mut seen = vec![false; events.len()];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for next in events[at].follows.iter().flatten() {
                if *next == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[*next], true) {
                    open.push(*next);
                }
            }
        }
        false
    };
    (0..events.len()).any(leads_back)
}

/// The statement that changes the referring rows. `$1` and so on are the old key, and behind it
/// the new one.
fn action_text(check: &ReferenceCheck, change: Change) -> Option<String> {
    let (key, referring) = (&check.key, &check.other);
    let table = sql_name(&referring.schema().name);
    let tests = key_tests(referring, &key.columns);
    let name = |column: &ColumnId| quoted(&referring.schema().columns[column.index()].name);
    let set_to = |columns: &[ColumnId], value: &str| {
        let set = columns
            .iter()
            .map(|column| format!("{} = {value}", name(column)));
        set.collect::<Vec<_>>().join(", ")
    };
    let columns = match change {
        Change::Delete => key.columns_set_on_delete(),
        _ => key.columns.as_slice(),
    };
    let set = match check.action(change) {
        ReferentialAction::NoAction | ReferentialAction::Restrict => return None,
        ReferentialAction::Cascade if change == Change::Delete => {
            return Some(format!("DELETE FROM {table} WHERE {tests}"));
        }
        ReferentialAction::Cascade => {
            let columns = key.columns.iter().enumerate();
            let width = key.columns.len();
            let set = columns.map(|(at, column)| format!("{} = ${}", name(column), width + at + 1));
            set.collect::<Vec<_>>().join(", ")
        }
        ReferentialAction::SetNull => set_to(columns, "NULL"),
        ReferentialAction::SetDefault => set_to(columns, "DEFAULT"),
    };
    Some(format!("UPDATE {table} SET {set} WHERE {tests}"))
}

/// Errors of an action have the place of the statement that it follows from.
fn set_position(action: &mut Statement, position: Position) {
    let at = |(line, column): (u32, u32)| Location::new(line.into(), column.into());
    let span = position.map_or(Span::empty(), |place| Span::new(at(place), at(place)));
    let target: Option<&mut TableWithJoins> = match action {
        Statement::Delete(delete) => match &mut delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => {
                tables.first_mut()
            }
        },
        Statement::Update(update) => Some(&mut update.table),
        _ => None,
    };
    if let Some(TableFactor::Table { name, .. }) = target.map(|target| &mut target.relation) {
        let idents = name.0.iter().filter_map(|part| part.as_ident());
        let idents: Vec<Ident> = idents
            .map(|ident| Ident {
                span,
                ..ident.clone()
            })
            .collect();
        *name = ObjectName::from(idents);
    }
}
