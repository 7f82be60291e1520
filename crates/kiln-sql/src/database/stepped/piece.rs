//! Compiled pieces of a body, and the variables between them.

use kiln_engine::{Arguments, Catalog, SearchPath, writes_permanent_rows};
use kiln_platform::sync::{Arc, Mutex, Weak, lock};
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::Run;
use crate::catalog::View;
use crate::compile::plpgsql::{Frame, Kind, Routine, Work, compile_piece};
use crate::database::panics::caught;
use crate::database::statement::notices_of;
use crate::parse::plpgsql::{Block, Declaration, RowSource, Statement, Target};
use crate::parse::{Call, Expression};

/// What a piece is made for, in a key.
pub(super) mod of {
    pub const STATEMENT: u8 = 0;
    pub const DECLARATION: u8 = 1;
    pub const VALUES: u8 = 2;
    pub const CONDITION: u8 = 3;
    pub const ROWS: u8 = 4;
    pub const ASSIGNMENT: u8 = 5;
    pub const NO_ASSIGNMENT: u8 = 6;
    pub const RESULT: u8 = 7;
    pub const END: u8 = 8;
    pub const ARGUMENTS: u8 = 9;
    pub const STEP: u8 = 10;
}

/// Names and types of columns.
pub(super) type Columns = Vec<(String, DataType)>;

/// A piece on its way to the engine, which compiles it for the catalog at hand.
pub(super) struct Piece {
    routine: Arc<Routine>,
    frame: Frame,
    work: Work,
    role: Box<str>,
    path: SearchPath,
    /// Whether the transaction may only read.
    is_read_only: bool,
    compiled: Mutex<Option<Compiled>>,
}

struct Compiled {
    catalog: Weak<Catalog>,
    program: Arc<Program>,
    after: Option<Frame>,
}

impl Piece {
    /// Whether it is what would be made for these variables, this path and this row.
    fn fits(&self, frame: &Frame, path: &SearchPath, row: &[(String, DataType)]) -> bool {
        let is_same_row = match &self.work {
            Work::Assign { columns, .. } => columns == row,
            _ => true,
        };
        is_same_row && self.frame == *frame && self.path == *path
    }

    /// What the variables are behind it.
    fn after(&self) -> Option<Frame> {
        lock(&self.compiled).as_ref()?.after.clone()
    }
}

impl kiln_engine::Statement for Piece {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        let mut compiled = lock(&self.compiled);
        if let Some(known) = &*compiled
            && std::ptr::eq(known.catalog.as_ptr(), Arc::as_ptr(catalog))
        {
            return Ok(known.program.clone());
        }
        let view = View::along(catalog, &self.path);
        let piece = caught(|| compile_piece(&view, &self.routine, &self.frame, &self.work))?;
        let roles = catalog.roles();
        let role = roles.require(&self.role)?;
        let accesses = view.into_accesses();
        (accesses.iter()).try_for_each(|access| roles.check(role, access))?;
        let program = Arc::new(piece.function.program);
        if self.is_read_only && writes_permanent_rows(&program) {
            let message = "cannot write in a read-only transaction";
            return Err(Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message));
        }
        *compiled = Some(Compiled {
            catalog: Arc::downgrade(catalog),
            program: program.clone(),
            after: piece.after,
        });
        Ok(program)
    }

    fn text(&self) -> Option<&str> {
        Some("a statement of a body")
    }
}

impl Run<'_> {
    /// Runs the piece that `work` makes of `node`; returns its rows. What it gives the variables
    /// back by is assigned to them.
    fn piece<T>(
        &mut self,
        node: &T,
        purpose: u8,
        row: (&[(String, DataType)], &[Value]),
        work: impl FnOnce() -> Work,
    ) -> Result<(Columns, Vec<Vec<Value>>)> {
        let (path, is_read_only) = (self.session.path(), self.session.is_read_only());
        let role = self.session.acting_role();
        let key = (std::ptr::from_ref(node) as usize, purpose);
        let known = self
            .pieces
            .get(&key)
            .filter(|it| it.is_read_only == is_read_only && &*it.role == role)
            .filter(|it| it.fits(&self.frame, &path, row.0));
        let piece = match known {
            Some(known) => known.clone(),
            None => {
                let piece = Arc::new(Piece {
                    routine: self.routine.clone(),
                    frame: self.frame.clone(),
                    work: work(),
                    role: role.into(),
                    path,
                    is_read_only,
                    compiled: Mutex::new(None),
                });
                self.pieces.insert(key, piece.clone());
                piece
            }
        };
        let mut values = vec![Value::BigInt(self.row_count), Value::Boolean(self.found)];
        values.extend(self.values.iter().cloned());
        values.extend(row.1.iter().cloned());
        let statement: Arc<dyn kiln_engine::Statement> = piece.clone();
        let mut arguments = Arguments::from_values(&values);
        let rows = self
            .session
            .session
            .run_statement(&statement, &mut arguments)?;
        self.keep(Vec::new(), notices_of(&rows))?;
        let columns = rows.columns().to_vec();
        let mut rows = rows.into_values();
        if let Some(after) = piece.after()
            && let Some(row) = rows.pop()
        {
            self.take_variables(after, row);
        }
        Ok((columns, rows))
    }

    /// Makes the variables those that a piece gave back.
    fn take_variables(&mut self, mut after: Frame, row: Vec<Value>) {
        let mut row = row.into_iter();
        if let Some(Value::BigInt(count)) = row.next() {
            self.row_count = count;
        }
        self.found = row.next() == Some(Value::Boolean(true));
        self.values.clear();
        let variables = after
            .scopes
            .iter_mut()
            .flat_map(|scope| &mut scope.variables);
        for (_, kind) in variables {
            let is_record = matches!(kind, Kind::Record(_));
            let is_assigned = !is_record || row.next() == Some(Value::Boolean(true));
            let values = row.by_ref().take(kind.types().len());
            match is_assigned {
                true => self.values.extend(values),
                false => {
                    values.for_each(drop);
                    *kind = Kind::Record(None);
                }
            }
        }
        self.frame = after;
    }

    /// Runs a statement that has no step of its own in it.
    pub(super) fn statement_as_a_piece(&mut self, statement: &Statement) -> Result<()> {
        let work = || Work::Statement(statement.clone());
        self.piece(statement, of::STATEMENT, (&[], &[]), work)
            .map(drop)
    }

    pub(super) fn declare(&mut self, declaration: &Declaration) -> Result<()> {
        let work = || Work::Declare(declaration.clone());
        self.piece(declaration, of::DECLARATION, (&[], &[]), work)
            .map(drop)
    }

    /// Whether a condition holds.
    pub(super) fn holds(&mut self, condition: &Expression) -> Result<bool> {
        self.holds_of(condition, || condition.clone())
    }

    /// Whether a condition holds that is made of an expression.
    pub(super) fn holds_of(
        &mut self,
        node: &Expression,
        condition: impl FnOnce() -> Expression,
    ) -> Result<bool> {
        let work = || Work::Condition(condition());
        let (_, rows) = self.piece(node, of::CONDITION, (&[], &[]), work)?;
        Ok(rows.first().and_then(|row| row.first()) == Some(&Value::Boolean(true)))
    }

    /// The value of an expression, as this type or its own.
    pub(super) fn value(
        &mut self,
        expression: &Expression,
        data_type: Option<DataType>,
        purpose: u8,
    ) -> Result<(DataType, Value)> {
        let work = || Work::Values(vec![(expression.clone(), data_type)]);
        let (columns, mut rows) = self.piece(expression, purpose, (&[], &[]), work)?;
        let column = columns.into_iter().next();
        let value = rows.pop().and_then(|mut row| row.pop());
        Ok((
            column.map_or(DataType::Text, |(_, data_type)| data_type),
            value.unwrap_or(Value::Null),
        ))
    }

    /// The values of several expressions, each of its own type.
    pub(super) fn values(&mut self, expressions: &[Expression]) -> Result<(Columns, Vec<Value>)> {
        let Some(first) = expressions.first() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let all = || Work::Values(expressions.iter().map(|it| (it.clone(), None)).collect());
        let (columns, mut rows) = self.piece(first, of::VALUES, (&[], &[]), all)?;
        Ok((columns, rows.pop().unwrap_or_default()))
    }

    /// The rows of a query, or of a statement with RETURNING.
    pub(super) fn rows_of(&mut self, rows: &RowSource) -> Result<(Columns, Vec<Vec<Value>>)> {
        self.piece(rows, of::ROWS, (&[], &[]), || Work::Rows(rows.clone()))
    }

    /// Assigns a row with these columns; NULL where there is none.
    pub(super) fn assign(
        &mut self,
        targets: &[Target],
        columns: &[(String, DataType)],
        row: Option<&[Value]>,
    ) -> Result<()> {
        let Some(first) = targets.first() else {
            return Ok(());
        };
        let is_there = row.is_some();
        let work = || Work::Assign {
            targets: targets.to_vec(),
            columns: columns.to_vec(),
            is_there,
        };
        let purpose = if is_there {
            of::ASSIGNMENT
        } else {
            of::NO_ASSIGNMENT
        };
        self.piece(first, purpose, (columns, row.unwrap_or_default()), work)
            .map(drop)
    }

    /// Runs a RETURN; returns the number of rows that it gave.
    pub(super) fn give(&mut self, statement: &Statement) -> Result<usize> {
        let work = || Work::Return(statement.clone());
        let (_, rows) = self.piece(statement, of::RESULT, (&[], &[]), work)?;
        let count = rows.len();
        self.keep(rows, Vec::new())?;
        Ok(count)
    }

    /// Gives what is given at the end of the body.
    pub(super) fn end(&mut self, block: &Block) -> Result<()> {
        let (_, rows) = self.piece(block, of::END, (&[], &[]), || Work::End(block.clone()))?;
        self.keep(rows, Vec::new())
    }

    /// The values of a routine's input parameters in a CALL.
    pub(super) fn arguments(&mut self, call: &Call, routine: &Arc<Routine>) -> Result<Vec<Value>> {
        let work = || Work::Arguments(call.clone(), Box::new((**routine).clone()));
        let (_, mut rows) = self.piece(call, of::ARGUMENTS, (&[], &[]), work)?;
        Ok(rows.pop().unwrap_or_default())
    }
}
