//! REFERENCES, checked from both sides, and unique keys that are DEFERRABLE.
//!
//! A row that refers needs its referenced row; a row that is referred to must stay. Both questions
//! are asked in SQL (`EXISTS (SELECT …)`) and planned as any query, through an index where there
//! is one. PostgreSQL asks at the end of the statement (NO ACTION). So do we where the statement
//! itself can change the answer: its keys are kept in a buffer until it has changed all rows.
//! Where rows of other tables change with those of the statement, all keys wait in the queue of
//! `actions`. A unique key that is DEFERRABLE is asked about in the same places: whether a second
//! row has it.

use std::rc::Rc;

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Failure, Reg, Step, TextSource};
use kiln_storage::error::{Result, SqlState, Subject};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{
    ColumnId, ColumnSet, ForeignKey, IndexDefinition, ReferentialAction, TriggerTime,
};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::bound::SourceId;
use super::super::{Compiler, Position, Typed, sql_name, unsupported};
use super::actions::Cascade;
use super::constraints::sentence;
use super::deferred::Waits;
use super::triggers::fired;
use super::{names, quoted, stored_expression};

/// The REFERENCES constraints that a statement may violate.
pub(super) enum References {
    /// They are checked with each row, or when the statement has changed all rows.
    Checked(Vec<ReferenceCheck>),
    /// The changed rows wait in a queue for what follows from them.
    Queued {
        cascade: Rc<Cascade>,
        /// The number of the event that a changed row is.
        event: usize,
        /// Whether the statement works the queue off at its end. Those of actions do not.
        is_first: bool,
    },
}

/// One REFERENCES constraint that a statement may violate.
#[derive(Clone)]
pub(super) struct ReferenceCheck {
    pub(super) side: Side,
    pub(super) key: ForeignKey,
    /// The other table.
    pub(super) other: Arc<Table>,
    /// The columns of the changed table.
    pub(super) columns: Vec<ColumnId>,
    /// Keys to look at when the statement has changed all its rows.
    at_end: Option<BufferId>,
    /// Where it may wait until the transaction ends.
    pub(super) waits: Option<Waits>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The changed rows refer to others.
    Child {
        /// The row may be another by now: only one that is still there needs its referenced row.
        may_change: bool,
    },
    /// The changed rows may be referred to: by the rows with the old key.
    Parent {
        /// The key may still be there: another row may have taken it.
        may_remain: bool,
    },
    /// No other row may have the key of a changed one: a unique key that is DEFERRABLE. The other
    /// table is the changed one.
    Unique {
        /// Whether NULLs are equal to each other.
        nulls_equal: bool,
    },
}

impl ReferenceCheck {
    pub(super) fn new(
        side: Side,
        key: ForeignKey,
        other: Arc<Table>,
        columns: Vec<ColumnId>,
    ) -> ReferenceCheck {
        ReferenceCheck {
            side,
            key,
            other,
            columns,
            at_end: None,
            waits: None,
        }
    }

    /// The check of a unique key that is DEFERRABLE.
    pub(super) fn of_unique_key(table: &Arc<Table>, index: &IndexDefinition) -> ReferenceCheck {
        let columns = &index.columns;
        let key = ForeignKey {
            name: index.name.clone(),
            columns: columns.clone(),
            table: table.schema().name.clone(),
            referenced: columns.clone(),
            is_valid: true,
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
            set_on_delete: Vec::new(),
            match_full: false,
            deferral: index.deferral,
        };
        let nulls_equal = index.nulls_equal;
        let side = Side::Unique { nulls_equal };
        ReferenceCheck::new(side, key, table.clone(), columns.clone())
    }

    /// Whether the row's old key counts, and not its new one.
    pub(super) fn is_of_old_key(&self) -> bool {
        matches!(self.side, Side::Parent { .. })
    }

    /// The key of a row that is removed may be there again when the statement has changed all rows.
    pub(super) fn expect_key_again(&mut self, change: Change) {
        let is_parent = matches!(self.side, Side::Parent { .. });
        if is_parent && self.action(change) == ReferentialAction::NoAction {
            self.side = Side::Parent { may_remain: true };
        }
    }

    /// What becomes of the rows that refer to a row that is changed so.
    pub(super) fn action(&self, change: Change) -> ReferentialAction {
        match (self.side, change) {
            (Side::Child { .. } | Side::Unique { .. }, _) | (_, Change::Insert) => {
                ReferentialAction::NoAction
            }
            (Side::Parent { .. }, Change::Delete) => self.key.on_delete,
            (Side::Parent { .. }, Change::Update(_)) => self.key.on_update,
        }
    }
}

impl References {
    /// The columns whose old values count.
    pub(super) fn old_columns(&self) -> Vec<ColumnId> {
        match self {
            References::Checked(checks) => {
                let checks = checks.iter().filter(|check| check.is_of_old_key());
                checks.flat_map(|check| check.columns.clone()).collect()
            }
            References::Queued { cascade, event, .. } => cascade.old_columns(*event),
        }
    }

    /// The columns whose new values count.
    pub(super) fn new_columns(&self) -> Vec<ColumnId> {
        match self {
            References::Checked(checks) => {
                let checks = checks.iter().filter(|check| !check.is_of_old_key());
                checks.flat_map(|check| check.columns.clone()).collect()
            }
            References::Queued { cascade, event, .. } => cascade.new_columns(*event),
        }
    }
}

/// What a statement does to the rows of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    /// These columns get new values.
    Update(ColumnSet),
    Delete,
}

impl Compiler<'_> {
    /// The constraints that `change` may violate, which names the columns that the statement sets.
    /// `single` says that the statement changes one row at most.
    pub(super) fn plan_references(
        &mut self,
        table: &Arc<Table>,
        change: Change,
        single: bool,
    ) -> Result<References> {
        if let Some(references) = self.take_following() {
            return Ok(references);
        }
        let after = fired(table, TriggerTime::After, change);
        if self.is_change_apart && !after.is_empty() {
            return Err(unsupported(
                "an AFTER trigger of a change within WITH",
                None,
            ));
        }
        let changed = self.changed_by(table, change)?;
        let mut checks = self.reference_checks(table, changed, None)?;
        let needs_queue = |check: &ReferenceCheck| match check.action(change) {
            ReferentialAction::NoAction => false,
            ReferentialAction::Restrict => change != Change::Delete,
            _ => true,
        };
        if !after.is_empty() || checks.iter().any(needs_queue) {
            let cascade = self.plan_cascade(table, &[change])?;
            return Ok(References::Queued {
                cascade: Rc::new(cascade),
                event: 0,
                is_first: true,
            });
        }
        self.plan_waiting(table, change, &mut checks);
        for check in &mut checks {
            let is_same = check.other.id() == table.id();
            let may_remain = check.side == Side::Parent { may_remain: true };
            if !single && (is_same || may_remain) {
                check.at_end = Some(self.key_buffer(check.columns.len()));
            }
        }
        Ok(References::Checked(checks))
    }

    /// Has keys of removed rows checked when all rows have changed: other changes of the statement may
    /// put them back.
    pub(super) fn expect_keys_again(&mut self, references: &mut References, change: Change) {
        let References::Checked(checks) = references else {
            return;
        };
        for check in checks {
            check.expect_key_again(change);
            if check.side == (Side::Parent { may_remain: true }) && check.at_end.is_none() {
                check.at_end = Some(self.key_buffer(check.columns.len()));
            }
        }
    }

    /// The references of an INSERT whose rows update others instead: their events are in one queue
    /// where triggers fire after them.
    pub(super) fn plan_upsert(
        &mut self,
        table: &Arc<Table>,
        inserted: &mut References,
        set: ColumnSet,
        single: bool,
    ) -> Result<References> {
        let changes = [Change::Insert, Change::Update(set)];
        let is_quiet = |change: &Change| fired(table, TriggerTime::After, *change).is_empty();
        if changes.iter().all(is_quiet) {
            return self.plan_references(table, changes[1], single);
        }
        let cascade = Rc::new(self.plan_cascade(table, &changes)?);
        *inserted = References::Queued {
            cascade: cascade.clone(),
            event: 0,
            is_first: true,
        };
        Ok(References::Queued {
            cascade,
            event: 1,
            is_first: false,
        })
    }

    /// The change with all columns that may change then.
    pub(super) fn changed_by(&self, table: &Arc<Table>, change: Change) -> Result<Change> {
        Ok(match change {
            Change::Update(set) => Change::Update(self.changed_with(table, set)?),
            other => other,
        })
    }

    /// All checks that `change` calls for, but not of the key called `except` of this table. They
    /// come in the order in which PostgreSQL makes them.
    pub(super) fn reference_checks(
        &mut self,
        table: &Arc<Table>,
        change: Change,
        except: Option<&str>,
    ) -> Result<Vec<ReferenceCheck>> {
        let mut checks = Vec::new();
        let touches = |columns: &[ColumnId]| match change {
            Change::Insert | Change::Delete => true,
            Change::Update(changed) => columns.iter().any(|column| changed.contains(*column)),
        };
        let name = &table.schema().name;
        if !matches!(change, Change::Insert) {
            let mut others = self.catalog.referencing(name);
            others.sort_by_key(|other| other.id());
            for other in others {
                for key in &other.schema().foreign_keys {
                    if key.table != *name || !touches(&key.referenced) {
                        continue;
                    }
                    let is_update = matches!(change, Change::Update(_));
                    let is_restrict = key.on_update == ReferentialAction::Restrict;
                    let side = Side::Parent {
                        may_remain: is_update && !is_restrict,
                    };
                    let columns = key.referenced.clone();
                    checks.push(ReferenceCheck::new(
                        side,
                        key.clone(),
                        other.clone(),
                        columns,
                    ));
                }
            }
        }
        if !matches!(change, Change::Delete) {
            for key in &table.schema().foreign_keys {
                if touches(&key.columns) && except != Some(key.name.as_str()) {
                    let side = Side::Child { may_change: false };
                    let (other, columns) = (self.table(&key.table, None)?, key.columns.clone());
                    checks.push(ReferenceCheck::new(side, key.clone(), other, columns));
                }
            }
            let indexes = table.indexes().iter().map(|index| index.definition());
            for index in indexes.filter(|index| index.deferral.is_deferrable()) {
                if !touches(&index.columns) {
                    continue;
                }
                let check = ReferenceCheck::of_unique_key(table, index);
                let is_primary = table.schema().primary_key_name.as_ref() == Some(&index.name);
                match is_primary {
                    true => checks.insert(0, check),
                    false => checks.push(check),
                }
            }
        }
        Ok(checks)
    }

    fn key_buffer(&mut self, width: usize) -> BufferId {
        let buffer = self.builder.buffer(width);
        self.builder.push(Step::BufferClear { buffer });
        buffer
    }

    /// The values of [`References::old_columns`] in the row `source`, as they are now.
    pub(super) fn old_keys(
        &mut self,
        references: &References,
        source: SourceId,
    ) -> Result<Vec<Reg>> {
        let columns = references.old_columns().into_iter();
        columns.map(|column| self.column(source, column)).collect()
    }

    /// Checks one changed row, or keeps its keys for [`Compiler::finish_references`]. `old` has
    /// what [`Compiler::old_keys`] gave before the change.
    pub(super) fn check_references(
        &mut self,
        table: &Arc<Table>,
        references: &References,
        source: SourceId,
        old: &[Reg],
        position: Position,
    ) -> Result<()> {
        let checks = match references {
            References::Checked(checks) => checks,
            References::Queued { cascade, event, .. } => {
                return self.push_event(cascade, *event, source, old);
            }
        };
        let mut old = old.iter();
        for check in checks {
            let key: Vec<Reg> = match check.is_of_old_key() {
                true => old.by_ref().take(check.columns.len()).copied().collect(),
                false => {
                    let columns = check.columns.iter();
                    let key = columns.map(|column| self.column(source, *column));
                    key.collect::<Result<_>>()?
                }
            };
            self.keep_or(table, check, &key, position, |compiler| {
                match check.at_end {
                    Some(buffer) => {
                        let row = key.as_slice().into();
                        compiler.builder.push(Step::BufferPush { buffer, row });
                        Ok(())
                    }
                    None => compiler.emit_reference(table, check, &key, position),
                }
            })?;
        }
        Ok(())
    }

    /// Checks what was kept, after the statement's last row.
    pub(super) fn finish_references(
        &mut self,
        table: &Arc<Table>,
        references: &References,
        position: Position,
    ) -> Result<()> {
        let checks = match references {
            References::Checked(checks) => checks,
            References::Queued {
                cascade,
                is_first: true,
                ..
            } => return self.run_cascade(cascade, position),
            References::Queued { .. } => return Ok(()),
        };
        for check in checks {
            let Some(buffer) = check.at_end else {
                continue;
            };
            let columns = check.columns.iter();
            let types: Vec<DataType> = columns
                .map(|column| table.schema().columns[column.index()].data_type.clone())
                .collect();
            let row: Vec<Reg> = types
                .into_iter()
                .map(|data_type| self.builder.register(data_type))
                .collect();
            self.open_ir_loop();
            let result = self.emit_reference(table, check, &row, position);
            let body = self.close_ir_loop();
            self.builder.push(Step::ForBuffer {
                buffer,
                matching: Box::default(),
                row: row.into(),
                body,
            });
            result?;
        }
        Ok(())
    }

    /// Raises unless the key of one row, as it was or as it is now, keeps to the constraint.
    pub(super) fn emit_reference(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        key: &[Reg],
        position: Position,
    ) -> Result<()> {
        let mut holds = self.null_tests(table, &check.columns, key);
        match check.side {
            Side::Child { may_change } => {
                self.refuse_half_null(table, check, key, position)?;
                let exists = select(&check.other, &check.key.referenced);
                holds.push_str(&format!("EXISTS ({exists})"));
                if may_change {
                    let own = select(table, &check.columns);
                    holds.push_str(&format!(" OR NOT EXISTS ({own})"));
                }
            }
            Side::Parent { may_remain } => {
                let exists = select(&check.other, &check.key.columns);
                holds.push_str(&format!("NOT EXISTS ({exists})"));
                if may_remain {
                    let own = select(table, &check.columns);
                    holds.push_str(&format!(" OR EXISTS ({own})"));
                }
            }
            Side::Unique { nulls_equal } => {
                if nulls_equal {
                    holds.clear();
                }
                let same = format!(
                    "SELECT 1 FROM {} WHERE {} LIMIT 2",
                    sql_name(&table.schema().name),
                    match nulls_equal {
                        true => key_tests_by(table, &check.columns, "IS NOT DISTINCT FROM"),
                        false => key_tests(table, &check.columns),
                    }
                );
                holds.push_str(&format!("(SELECT count(*) FROM ({same}) AS same) < 2"));
            }
        }
        let expr = stored_expression(&holds)?;
        let typed = typed_key(table, &check.columns, key);
        // A constraint looks at other rows whatever the statement's role may read.
        let holds = self.isolated(|compiler| {
            compiler.set_positional(typed.clone());
            compiler.unrestricted(|compiler| compiler.condition(&expr, "REFERENCES"))
        })?;
        self.unless(holds, |compiler| {
            let mut texts = Vec::new();
            for Typed {
                register,
                data_type,
            } in &typed
            {
                texts.push(compiler.shown(*register, data_type)?);
            }
            let list = compiler.joined(texts);
            let (own_name, other_name) = (&table.schema().name, &check.other.schema().name);
            let (own, other) = (name_in_schema(own_name), name_in_schema(other_name));
            let constraint = &check.key.name;
            let columns = names(table, &check.columns);
            let (message, ending) = match check.side {
                Side::Child { .. } => (
                    format!(
                        "insert or update on table \"{own}\" violates foreign key constraint \
                         \"{constraint}\""
                    ),
                    format!(") is not present in table \"{other}\"."),
                ),
                Side::Parent { .. } => (
                    format!(
                        "update or delete on table \"{own}\" violates foreign key constraint \
                         \"{constraint}\" on table \"{other}\""
                    ),
                    format!(") is still referenced from table \"{other}\"."),
                ),
                Side::Unique { .. } => (
                    format!("duplicate key value violates unique constraint \"{constraint}\""),
                    ") already exists.".to_owned(),
                ),
            };
            let text = |compiler: &mut Self, text: String| {
                compiler.builder.constant(DataType::Text, Value::Text(text))
            };
            let (beginning, ending) = (
                text(compiler, format!("Key ({columns})=(")),
                text(compiler, ending),
            );
            let detail = compiler.builtin("sentence", sentence, vec![beginning, list, ending]);
            // The table that refers to the other one has the constraint.
            let referring = match check.side {
                Side::Child { .. } | Side::Unique { .. } => own_name,
                Side::Parent { .. } => other_name,
            };
            let state = match check.side {
                Side::Unique { .. } => SqlState::UNIQUE_VIOLATION,
                _ => SqlState::FOREIGN_KEY_VIOLATION,
            };
            let subject = Subject::table(referring).with_constraint(constraint);
            compiler.raise(Failure {
                state,
                message,
                arguments: Box::default(),
                detail: Some(TextSource::Register(detail)),
                hint: None,
                subject: Some(Box::new(subject)),
                position,
            });
            Ok(())
        })
    }

    /// MATCH FULL: a key is NULL in all columns or in none.
    pub(super) fn refuse_half_null(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        key: &[Reg],
        position: Position,
    ) -> Result<()> {
        if check.is_of_old_key() || !check.key.match_full || check.columns.len() == 1 {
            return Ok(());
        }
        let tests = |test: &str| {
            let tests = (1..=key.len()).map(|number| format!("${number} IS {test}"));
            tests.collect::<Vec<_>>().join(" AND ")
        };
        let holds = format!("({}) OR ({})", tests("NULL"), tests("NOT NULL"));
        let expr = stored_expression(&holds)?;
        let typed = typed_key(table, &check.columns, key);
        let holds = self.isolated(|compiler| {
            compiler.set_positional(typed);
            compiler.condition(&expr, "REFERENCES")
        })?;
        self.unless(holds, |compiler| {
            let qualified = &table.schema().name;
            let (name, constraint) = (name_in_schema(qualified), &check.key.name);
            let message = format!(
                "insert or update on table \"{name}\" violates foreign key constraint \
                 \"{constraint}\""
            );
            let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
            let subject = Subject::table(qualified).with_constraint(constraint);
            compiler.raise(Failure {
                state: SqlState::FOREIGN_KEY_VIOLATION,
                message,
                arguments: Box::default(),
                detail: Some(TextSource::Literal(detail.to_owned())),
                hint: None,
                subject: Some(Box::new(subject)),
                position,
            });
            Ok(())
        })
    }

    /// A key with a NULL refers to nothing: `$1 IS NULL OR ` for each column that may be NULL.
    fn null_tests(&self, table: &Table, columns: &[ColumnId], key: &[Reg]) -> String {
        let mut text = String::new();
        for (number, (column, register)) in columns.iter().zip(key).enumerate() {
            let known = self.builder.constant_value(*register);
            let nullable = !table.schema().columns[column.index()].not_null;
            if nullable && known.is_none_or(Value::is_null) {
                text.push_str(&format!("${} IS NULL OR ", number + 1));
            }
        }
        text
    }
}

/// The values of some columns, with their types.
pub(super) fn typed_key(table: &Table, columns: &[ColumnId], key: &[Reg]) -> Vec<Typed> {
    let pairs = key.iter().zip(columns);
    let typed = pairs.map(|(register, column)| Typed {
        register: *register,
        data_type: table.schema().columns[column.index()].data_type.clone(),
    });
    typed.collect()
}

/// The query for rows whose columns equal the parameters.
fn select(table: &Table, columns: &[ColumnId]) -> String {
    format!(
        "SELECT 1 FROM {} WHERE {}",
        sql_name(&table.schema().name),
        key_tests(table, columns)
    )
}

/// The condition that columns equal the parameters.
pub(super) fn key_tests(table: &Table, columns: &[ColumnId]) -> String {
    key_tests_by(table, columns, "=")
}

fn key_tests_by(table: &Table, columns: &[ColumnId], equals: &str) -> String {
    let tests = columns.iter().enumerate().map(|(number, column)| {
        let name = quoted(&table.schema().columns[column.index()].name);
        format!("{name} {equals} ${}", number + 1)
    });
    tests.collect::<Vec<_>>().join(" AND ")
}
