//! What a session gives names to: prepared statements and portals, which SQL calls cursors.

use kiln_platform::time::wall_clock_us;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::names::{Kept, Named, Names};
use super::portal::Portal;
use super::prepared::{Column, Statement, StatementKind};
use super::result::{ResultSet, StatementResult};
use super::session::Session;
use super::values;
use crate::catalog::{View, oid_of};
use crate::compile::data_type;
use crate::parse::{Declare, Direction, Execute, Fetch, Prepare, Statement as Tree};

/// Prepared statements, and portals, that a session may have at a time.
pub const NAMES_MAX: usize = 10_000;
/// Bytes of rows that its cursors, and portals with a row limit, may keep.
const KEPT_BYTES_MAX: usize = 1 << 30;

impl Names {
    /// The prepared statements, for `pg_prepared_statements`: five texts for each.
    pub fn listed_statements(&self) -> Vec<String> {
        let named = self.statements.iter().filter(|(name, _)| !name.is_empty());
        let mut rows: Vec<[String; 5]> = named
            .map(|(name, kept)| {
                let types = kept.statement.parameters().iter();
                let types: Vec<String> = types.map(|it| oid_of(it).to_string()).collect();
                let text = kept.prepare.as_deref();
                [
                    name.clone(),
                    text.unwrap_or(kept.statement.text()).to_owned(),
                    kept.since_us.to_string(),
                    types.join(" "),
                    kept.prepare.is_some().to_string(),
                ]
            })
            .collect();
        rows.sort();
        rows.into_iter().flatten().collect()
    }

    /// The cursors and the portals with names, for `pg_cursors`: five texts for each.
    pub fn listed_portals(&self) -> Vec<String> {
        let named = self.portals.iter().filter(|(name, _)| !name.is_empty());
        let mut rows: Vec<[String; 5]> = named
            .filter_map(|(name, named)| {
                let portal = named.portal.as_ref()?;
                Some([
                    name.clone(),
                    portal.statement().text().to_owned(),
                    named.is_held.to_string(),
                    portal.is_backward().to_string(),
                    named.since_us.to_string(),
                ])
            })
            .collect();
        rows.sort();
        rows.into_iter().flatten().collect()
    }

    /// Whether nothing has a name.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.portals.is_empty()
    }

    /// Whether the rows of another cursor or portal may be kept.
    ///
    /// # Errors
    /// 53200.
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        let kept: usize = self.portals.values().map(|named| named.bytes).sum();
        if kept.saturating_add(bytes) <= KEPT_BYTES_MAX {
            return Ok(());
        }
        let message = format!("the cursors of a session keep at most {KEPT_BYTES_MAX} bytes");
        let error = Error::new(SqlState::OUT_OF_MEMORY, message);
        Err(error.with_hint("Close some, or select less."))
    }

    /// The block is over, and with it cursors that do not outlive it.
    pub fn end_block(&mut self, is_committed: bool) {
        self.portals.retain(|_, named| match is_committed {
            true => !named.is_declared || named.is_held,
            false => !named.is_declared || !named.is_of_block,
        });
        for named in self.portals.values_mut() {
            named.is_of_block = false;
            named.savepoints = 0;
        }
    }

    /// The block has only so many savepoints from now on: what was made under a later one belongs
    /// to the last of them, or is forgotten, if it was rolled back.
    pub fn end_savepoints(&mut self, left: usize, is_rolled_back: bool) {
        (self.portals).retain(|_, named| !is_rolled_back || named.savepoints <= left);
        for named in self.portals.values_mut() {
            named.savepoints = named.savepoints.min(left);
        }
    }

    /// What a statement returns that is about something with a name.
    pub fn described(&self, statement: Statement) -> Statement {
        match statement.tree().map(|tree| &**tree) {
            Some(Tree::Fetch(fetch)) if !fetch.is_move => {
                let named = self.portals.get(&fetch.cursor);
                let portal = named.and_then(|named| named.portal.as_ref());
                let columns = portal.and_then(|portal| portal.statement().columns());
                statement.with_description(columns.map(<[Column]>::to_vec), StatementKind::Utility)
            }
            Some(Tree::Execute(execute)) => match self.statements.get(&execute.name) {
                Some(Kept {
                    statement: prepared,
                    ..
                }) => {
                    let columns = prepared.columns().map(<[Column]>::to_vec);
                    statement.with_description(columns, prepared.kind())
                }
                None => statement,
            },
            _ => statement,
        }
    }
}

/// What a step of a cursor gives.
pub(super) struct Taken {
    pub columns: Vec<(String, DataType)>,
    pub rows: Vec<Vec<Value>>,
    /// How many rows it went over.
    pub count: usize,
}

impl Session {
    /// Gives a statement a name, by which EXECUTE finds it too. The empty name is taken without a
    /// question, and any other once.
    ///
    /// # Errors
    /// 42P05 when the name is taken, 54000 for too many.
    pub fn keep_statement(&mut self, name: &str, statement: Statement) -> Result<()> {
        self.keep_prepared(name, statement, None)
    }

    fn keep_prepared(
        &mut self,
        name: &str,
        statement: Statement,
        prepare: Option<String>,
    ) -> Result<()> {
        let statements = &mut self.names.statements;
        if !name.is_empty() {
            if statements.contains_key(name) {
                let message = format!("prepared statement \"{name}\" already exists");
                return Err(Error::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
            }
            check_room(statements.len(), "prepared statements")?;
        }
        let kept = Kept {
            statement,
            prepare,
            since_us: wall_clock_us(),
        };
        statements.insert(name.to_owned(), kept);
        Ok(())
    }

    /// The statement of this name.
    ///
    /// # Errors
    /// 26000 when there is none.
    pub fn kept_statement(&self, name: &str) -> Result<&Statement> {
        let kept = self.names.statements.get(name);
        kept.map(|kept| &kept.statement).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                _ => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// Forgets the statement of this name; says whether there was one.
    pub fn forget_statement(&mut self, name: &str) -> bool {
        self.names.statements.remove(name).is_some()
    }

    /// Gives a portal a name, by which FETCH finds it too. The empty name is taken without a
    /// question, and any other once.
    ///
    /// # Errors
    /// 42P03 when the name is taken, 54000 for too many.
    pub fn keep_portal(&mut self, name: &str, portal: Portal) -> Result<()> {
        if !name.is_empty() {
            self.check_portal_name(name)?;
        }
        let named = Named {
            portal: Some(portal),
            is_declared: false,
            is_held: false,
            is_of_block: self.in_transaction(),
            savepoints: self.savepoints.len(),
            bytes: 0,
            since_us: wall_clock_us(),
        };
        self.names.portals.insert(name.to_owned(), named);
        Ok(())
    }

    /// Whether a portal may get this name.
    ///
    /// # Errors
    /// 42P03 when it is taken, 54000 for too many portals.
    fn check_portal_name(&self, name: &str) -> Result<()> {
        if self.names.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, message));
        }
        check_room(self.names.portals.len(), "portals")
    }

    /// The portal of this name, which may be a cursor.
    ///
    /// # Errors
    /// 34000 when there is none.
    pub fn kept_portal(&self, name: &str) -> Result<&Portal> {
        let named = self.names.portals.get(name);
        let portal = named.and_then(|named| named.portal.as_ref());
        portal.ok_or_else(|| no_portal(name))
    }

    /// Takes the portal of this name, to run it; [`Session::put_portal`] brings it back.
    ///
    /// # Errors
    /// 34000 when there is none.
    pub fn take_portal(&mut self, name: &str) -> Result<Portal> {
        let named = self.names.portals.get_mut(name);
        let portal = named.and_then(|named| named.portal.take());
        portal.ok_or_else(|| no_portal(name))
    }

    /// Brings a portal back that was taken, unless its name was given up meanwhile.
    pub fn put_portal(&mut self, name: &str, portal: Portal) {
        if let Some(named) = self.names.portals.get_mut(name) {
            if named.bytes == 0 && portal.is_finished() {
                named.bytes = portal.bytes();
            }
            named.portal = Some(portal);
        }
    }

    /// Forgets the portal of this name; says whether there was one.
    pub fn forget_portal(&mut self, name: &str) -> bool {
        self.names.portals.remove(name).is_some()
    }

    /// Forgets all portals but cursors.
    pub fn forget_portals(&mut self) {
        self.names.portals.retain(|_, named| named.is_declared);
    }

    /// PREPARE.
    pub(super) fn prepare(&mut self, prepare: &Prepare, text: &str) -> Result<StatementResult> {
        let catalog = self.catalog();
        let view = View::of(&catalog);
        let types = prepare.types.iter().map(|declared| {
            let declared = declared.as_ref();
            let known = declared.map(|declared| data_type(declared, &view, None));
            known.transpose()
        });
        let types: Vec<Option<DataType>> = types.collect::<Result<_>>()?;
        let statement = self.parse_source(&prepare.statement.source(), &types)?;
        self.keep_prepared(&prepare.name, statement, Some(text.to_owned()))?;
        Ok(StatementResult::of_tag("PREPARE"))
    }

    /// EXECUTE: the statement and its values.
    pub(super) fn execute_as(
        &mut self,
        execute: &Execute,
        statement: &Statement,
        values: &[Value],
    ) -> Result<(Statement, Vec<Value>)> {
        let prepared = self.kept_statement(&execute.name)?.clone();
        let given = match &execute.values {
            Some(_) => self.run_data(statement, values)?.result,
            None => None,
        };
        let given = given
            .and_then(|mut result| result.rows.pop())
            .unwrap_or_default();
        let wanted = prepared.parameters().len();
        if given.len() != wanted {
            let name = &execute.name;
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            let got = given.len();
            return Err(error.with_detail(format!("Expected {wanted} parameters but got {got}.")));
        }
        let prepared = self.followed(&prepared)?.into_owned();
        let types = prepared.parameters().iter();
        let given = given.into_iter().zip(types);
        let given = given.map(|(value, wanted)| values::rounded(value, wanted));
        let given: Vec<Value> = given.collect::<Result<_>>()?;
        let values = prepared.bind_in(&given, &self.style())?.values().to_vec();
        Ok((prepared, values))
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<StatementResult> {
        let Some(name) = name else {
            self.names.statements.clear();
            return Ok(StatementResult::of_tag("DEALLOCATE ALL"));
        };
        self.kept_statement(name)?;
        self.forget_statement(name);
        Ok(StatementResult::of_tag("DEALLOCATE"))
    }

    /// DECLARE.
    pub(super) fn declare(
        &mut self,
        declare: &Declare,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        let Declare {
            name, scroll, hold, ..
        } = declare;
        let is_of_block = self.in_transaction();
        if !is_of_block && !hold {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        self.check_portal_name(name)?;
        let mut result = self.run_data(statement, values)?;
        let notices = std::mem::take(&mut result.notices);
        let columns = result.result.as_ref().map(|result| {
            let columns = result.columns.iter().cloned();
            let columns = columns.map(|(name, data_type)| Column {
                name,
                data_type,
                origin: None,
            });
            columns.collect()
        });
        let query = statement.with_description(columns, StatementKind::Utility);
        let mut portal = Portal::new(query, Vec::new());
        portal.end(Ok(result))?;
        if *scroll != Some(false) {
            portal.goes_back();
        }
        self.keep_cursor(name, portal, *hold)?;
        Ok(StatementResult {
            notices,
            ..StatementResult::of_tag("DECLARE CURSOR")
        })
    }

    /// A name for a cursor that is opened without one.
    pub(super) fn unnamed_portal(&self) -> String {
        let names = (1_u64..).map(|number| format!("<unnamed portal {number}>"));
        let mut free = names.filter(|name| !self.names.portals.contains_key(name));
        free.next().unwrap_or_default()
    }

    /// Opens a cursor of the open block over rows that are there.
    ///
    /// # Errors
    /// 42P03 when the name is taken, 54000 for too many; 53200 for too many rows.
    pub(super) fn open_rows(
        &mut self,
        name: &str,
        (columns, rows): (Vec<(String, DataType)>, Vec<Vec<Value>>),
        scroll: Option<bool>,
    ) -> Result<()> {
        self.check_portal_name(name)?;
        let of_rows = columns.iter().map(|(name, data_type)| Column {
            name: name.clone(),
            data_type: data_type.clone(),
            origin: None,
        });
        let mut portal = Portal::new(Statement::of_rows(of_rows.collect()), Vec::new());
        portal.end(Ok(StatementResult {
            result: Some(ResultSet { columns, rows }),
            ..StatementResult::of_tag("SELECT")
        }))?;
        if scroll != Some(false) {
            portal.goes_back();
        }
        self.keep_cursor(name, portal, false)
    }

    fn keep_cursor(&mut self, name: &str, portal: Portal, is_held: bool) -> Result<()> {
        let bytes = portal.bytes();
        self.names.check_bytes(bytes)?;
        let named = Named {
            portal: Some(portal),
            is_declared: true,
            is_held,
            is_of_block: self.in_transaction(),
            savepoints: self.savepoints.len(),
            bytes,
            since_us: wall_clock_us(),
        };
        self.names.portals.insert(name.to_owned(), named);
        Ok(())
    }

    /// Goes on with a cursor that a variable of a body names.
    ///
    /// # Errors
    /// 34000 when there is none; those of its direction.
    pub(super) fn step_portal(
        &mut self,
        name: &str,
        direction: Direction,
        is_move: bool,
    ) -> Result<Taken> {
        let fetch = Fetch {
            is_move,
            cursor: name.to_owned(),
            direction,
        };
        let result = self.fetch(&fetch)?;
        let count = result.tag.rsplit(' ').next().unwrap_or_default();
        let count = count.parse().unwrap_or(0);
        let ResultSet { columns, rows } = result.result.unwrap_or_default();
        Ok(Taken {
            columns,
            rows,
            count,
        })
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(&mut self, fetch: &Fetch) -> Result<StatementResult> {
        let name = &fetch.cursor;
        let mut portal = self.take_portal(name).map_err(|_| no_cursor(name))?;
        let result = self.fetch_from(&mut portal, fetch);
        self.put_portal(name, portal);
        result
    }

    fn fetch_from(&mut self, portal: &mut Portal, fetch: &Fetch) -> Result<StatementResult> {
        let mut notices = Vec::new();
        if portal.check_bound().is_ok() {
            // It was bound by a message, and not executed yet.
            let statement = portal.statement().clone();
            let mut result = self.dispatch(&statement, portal.values());
            if let Ok(result) = &mut result {
                notices = std::mem::take(&mut result.notices);
            }
            portal.end(result)?;
        }
        let (rows, count) = portal.take(fetch.direction, fetch.is_move)?;
        if fetch.is_move {
            let moved = StatementResult::of_tag(&format!("MOVE {count}"));
            return Ok(StatementResult { notices, ..moved });
        }
        let columns = portal.statement().columns().unwrap_or_default().iter();
        let columns = columns.map(|column| (column.name.clone(), column.data_type.clone()));
        Ok(StatementResult {
            result: Some(ResultSet {
                columns: columns.collect(),
                rows,
            }),
            notices,
            ..StatementResult::of_tag(&format!("FETCH {count}"))
        })
    }

    /// CLOSE.
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<StatementResult> {
        match name {
            None => {
                self.names.portals.clear();
                Ok(StatementResult::of_tag("CLOSE CURSOR ALL"))
            }
            Some(name) if self.forget_portal(name) => Ok(StatementResult::of_tag("CLOSE CURSOR")),
            Some(name) => Err(no_cursor(name)),
        }
    }
}

#[cold]
fn no_cursor(name: &str) -> Error {
    let message = format!("cursor \"{name}\" does not exist");
    Error::new(SqlState::INVALID_CURSOR_NAME, message)
}

#[cold]
fn no_portal(name: &str) -> Error {
    let message = format!("portal \"{name}\" does not exist");
    Error::new(SqlState::INVALID_CURSOR_NAME, message)
}

fn check_room(count: usize, what: &str) -> Result<()> {
    match count < NAMES_MAX {
        true => Ok(()),
        false => {
            let message = format!("a session has at most {NAMES_MAX} {what}");
            Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_all_cursors_are_bounded() {
        let mut names = Names::default();
        let named = |bytes| Named {
            portal: None,
            is_declared: true,
            is_held: true,
            is_of_block: false,
            savepoints: 0,
            bytes,
            since_us: 0,
        };
        names
            .portals
            .insert("a".to_owned(), named(KEPT_BYTES_MAX - 30));
        names.portals.insert("b".to_owned(), named(20));
        assert_eq!(names.check_bytes(10), Ok(()));
        let error = names.check_bytes(11).expect_err("that is too much");
        assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
        names.portals.remove("a");
        assert_eq!(names.check_bytes(KEPT_BYTES_MAX - 20), Ok(()));
    }
}
