//! Bodies that the session runs step by step: those with EXECUTE, COMMIT, ROLLBACK, cursors or
//! definitions.
//!
//! What such a body does is known only when it runs, so it is no program that a protocol could plan
//! or a worker run. The session runs it as a client would: as statements of a transaction block,
//! between which it keeps the variables. What of the body has no such statement in it is compiled,
//! however large ([`crate::compile::plpgsql::Work`]).
//!
//! | module | holds |
//! |---|---|
//! | here | calls and DO blocks, their transactions, COMMIT |
//! | `piece` | compiled pieces, and the variables between them |
//! | `control` | blocks, handlers, conditionals, loops |
//! | `command` | EXECUTE, and what it gives |
//! | `cursor` | cursors |

mod command;
mod control;
mod cursor;
mod piece;

use std::collections::HashMap;

use kiln_engine::{Access, Ended, Object, Privilege};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::block::ATTEMPTS_MAX;
use super::call::{CallPart, CallPlan, Part};
use super::portal::bytes_of;
use super::prepared::{Plan, Statement};
use super::result::{Notice, ResultSet, StatementResult};
use super::session::Session;
use crate::catalog::View;
use crate::compile::plpgsql::{
    Frame, FrameScope, Kind, ResultKind, Routine, check_names, is_stepped,
};
use crate::compile::{CatalogView as _, routine_name};
use crate::parse::plpgsql::Block;
use crate::parse::{Body, Call, FunctionDefinition, RoutineKind};
use control::Flow;
use cursor::Known;
use piece::Piece;

/// Bytes of rows and notices that a body may have given when it ends.
const GIVEN_BYTES_MAX: usize = 1 << 30;

/// How deep statements of such bodies may nest, calls among them included.
const DEPTH_MAX: u16 = 200;

/// A routine whose body is run step by step.
#[derive(Clone)]
pub(super) struct Stepped {
    routine: Arc<Routine>,
    definition: Arc<FunctionDefinition>,
}

impl Stepped {
    /// The routine called `name`, if it is of this kind.
    pub(super) fn find(view: &View<'_>, name: &str) -> Option<Stepped> {
        let definition = view.routine(name)?;
        let Body::PlPgSql(block) = &definition.body else {
            return None;
        };
        let routine = is_stepped(block).then(|| Routine::of(view, &definition))?;
        Some(Stepped {
            routine: Arc::new(routine.ok()?),
            definition,
        })
    }

    /// Names and types of the columns that a call gives. What returns nothing gives the empty text.
    pub(super) fn columns(&self) -> Vec<(String, DataType)> {
        match (&self.routine.result, self.routine.kind) {
            (ResultKind::Void, RoutineKind::Function) => {
                vec![(self.routine.name.clone(), DataType::Text)]
            }
            _ => self.routine.result_columns(),
        }
    }
}

/// What a body has given.
struct Given {
    rows: Vec<Vec<Value>>,
    notices: Vec<Notice>,
}

impl Session {
    /// DO of a block that is run step by step.
    pub(super) fn do_stepped(&mut self, block: &Block) -> Result<StatementResult> {
        let routine = Arc::new(Routine::anonymous());
        check_names(&routine, block)?;
        let given = self.run_stepped(&routine, block, |_| Ok(Vec::new()))?;
        Ok(StatementResult {
            notices: given.notices,
            ..StatementResult::of_tag("DO")
        })
    }

    /// CALL or SELECT of a routine that is run step by step.
    pub(super) fn call_stepped(
        &mut self,
        statement: &Statement,
        plan: &Arc<CallPlan>,
        stepped: &Stepped,
        values: &[Value],
    ) -> Result<StatementResult> {
        let Body::PlPgSql(block) = &stepped.definition.body else {
            return Err(Error::internal(
                "only bodies in PL/pgSQL are run step by step",
            ));
        };
        let routine = &stepped.routine;
        let given = self.run_stepped(routine, block, |session| {
            if plan.computing().is_none() {
                return Ok(plan.direct_values(values));
            }
            let computing = CallPart::of(statement, plan, Part::Computing);
            let mut arguments = kiln_engine::Arguments::from_values(values);
            let computed = session.session.run_statement(&computing, &mut arguments)?;
            Ok(computed.into_values().pop().unwrap_or_default())
        })?;
        let columns = stepped.columns();
        let mut rows = given.rows;
        let tag = match routine.kind {
            RoutineKind::Procedure => "CALL".to_owned(),
            RoutineKind::Function => {
                if routine.result == ResultKind::Void {
                    rows = vec![vec![Value::from("")]];
                }
                format!("SELECT {}", rows.len())
            }
        };
        Ok(StatementResult {
            result: (!columns.is_empty()).then_some(ResultSet { columns, rows }),
            notices: given.notices,
            ..StatementResult::of_tag(&tag)
        })
    }

    /// Runs a body in the open block, or in transactions of its own. One that has met a conflict
    /// before it has committed anything begins again.
    fn run_stepped(
        &mut self,
        routine: &Arc<Routine>,
        block: &Block,
        arguments: impl Fn(&mut Session) -> Result<Vec<Value>>,
    ) -> Result<Given> {
        if self.session.in_transaction() {
            let arguments = arguments(self)?;
            return Run::new(self, routine, false).body(block, &arguments);
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.session.check_limits()?;
            self.session.begin()?;
            let mut has_committed = false;
            let ran = arguments(self).and_then(|arguments| {
                let may_commit = routine.kind == RoutineKind::Procedure;
                let mut run = Run::new(self, routine, may_commit);
                let ran = run.body(block, &arguments);
                has_committed = run.has_committed;
                ran
            });
            let ended = match ran {
                Ok(given) => self.commit_own().map(|()| given),
                Err(error) => {
                    self.roll_back();
                    Err(error)
                }
            };
            match ended {
                Err(error)
                    if error.state() == SqlState::SERIALIZATION_FAILURE
                        && !has_committed
                        && attempts < ATTEMPTS_MAX => {}
                ended => return ended,
            }
        }
    }

    /// Commits the block that a body has open.
    fn commit_own(&mut self) -> Result<()> {
        let ended = self.commit_block();
        self.end_block(matches!(ended, Ok(Ended::Committed)));
        match ended? {
            Ended::Committed => Ok(()),
            Ended::RolledBack => Err(Error::internal("a body went on after an error")),
        }
    }
}

/// A body that runs.
struct Run<'s> {
    session: &'s mut Session,
    routine: Arc<Routine>,
    /// The variables, and their values in the same order.
    frame: Frame,
    values: Vec<Value>,
    row_count: i64,
    found: bool,
    /// The errors that are being handled, the last one last.
    caught: Vec<Error>,
    rows: Vec<Vec<Value>>,
    notices: Vec<Notice>,
    /// Bytes of both.
    given_bytes: usize,
    /// Whether its transactions are its own.
    may_commit: bool,
    /// The blocks with handlers around the statement.
    protected: usize,
    has_committed: bool,
    /// By the address of what they were made from, and a number for what is done with it.
    pieces: HashMap<(usize, u8), Arc<Piece>>,
    /// The cursors with queries that open blocks have declared.
    cursors: Vec<Known>,
    /// The routines that CALL names in the body, if they are run step by step.
    callees: HashMap<String, Option<Stepped>>,
}

impl<'s> Run<'s> {
    fn new(session: &'s mut Session, routine: &Arc<Routine>, may_commit: bool) -> Run<'s> {
        Run {
            session,
            routine: routine.clone(),
            frame: Frame::default(),
            values: Vec::new(),
            row_count: 0,
            found: false,
            caught: Vec::new(),
            rows: Vec::new(),
            notices: Vec::new(),
            given_bytes: 0,
            may_commit,
            protected: 0,
            has_committed: false,
            pieces: HashMap::new(),
            cursors: Vec::new(),
            callees: HashMap::new(),
        }
    }

    /// Runs a body with the values of its routine's input parameters.
    fn body(&mut self, block: &Block, arguments: &[Value]) -> Result<Given> {
        self.enter(arguments);
        let is_null = self.routine.strict && arguments.iter().any(Value::is_null);
        if is_null {
            if !self.routine.result.is_set() {
                let columns = self.routine.result.types().len();
                self.rows.push(vec![Value::Null; columns]);
            }
        } else {
            let flow = self.deeper(|run| run.block(block))?;
            if flow != Flow::Return {
                self.end(block)?;
            }
        }
        Ok(Given {
            rows: std::mem::take(&mut self.rows),
            notices: std::mem::take(&mut self.notices),
        })
    }

    /// Declares the parameters and the columns of RETURNS TABLE.
    fn enter(&mut self, arguments: &[Value]) {
        let mut arguments = arguments.iter();
        let routine = self.routine.clone();
        let mut scope = FrameScope {
            label: Some(routine.name.clone()),
            variables: Vec::new(),
        };
        let parameters = routine.parameters.iter();
        let parameters = parameters.map(|it| (&it.name, &it.data_type, it.mode.is_input()));
        let table = routine.table().iter();
        let table = table.map(|(name, data_type)| (name, data_type, false));
        for (name, data_type, is_input) in parameters.chain(table) {
            let kind = Kind::Scalar {
                data_type: data_type.clone(),
                domain: None,
                constant: false,
                not_null: false,
            };
            scope.variables.push((name.clone(), kind));
            let given = is_input.then(|| arguments.next().cloned()).flatten();
            self.values.push(given.unwrap_or(Value::Null));
        }
        self.frame.scopes.push(scope);
    }

    /// Runs what is nested in something else.
    ///
    /// # Errors
    /// 54001 where it nests too deep.
    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.session.stepped_depth >= DEPTH_MAX {
            let message = "stack depth limit exceeded";
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.session.stepped_depth += 1;
        let result = run(self);
        self.session.stepped_depth -= 1;
        result
    }

    /// COMMIT or ROLLBACK.
    ///
    /// # Errors
    /// 2D000 in a block of the client, and in a block with handlers.
    fn end_transaction(&mut self, commits: bool) -> Result<()> {
        let refused = match (commits, self.may_commit, self.protected) {
            (_, false, _) => Some("invalid transaction termination"),
            (_, true, 0) => None,
            (true, true, _) => Some("cannot commit while a subtransaction is active"),
            (false, true, _) => Some("cannot roll back while a subtransaction is active"),
        };
        if let Some(message) = refused {
            let state = SqlState::INVALID_TRANSACTION_TERMINATION;
            return Err(Error::new(state, message));
        }
        match commits {
            true => self.session.commit_own()?,
            false => self.session.roll_back(),
        }
        self.has_committed = true;
        self.session.session.begin()
    }

    /// The routine that a CALL names, if it is run step by step.
    fn callee(&mut self, call: &Call) -> Option<Stepped> {
        let catalog = self.session.seen();
        let view = View::of(&catalog);
        let name = routine_name(&view, &call.name).ok()?;
        if let Some(known) = self.callees.get(&name) {
            return known.clone();
        }
        let found = Stepped::find(&view, &name);
        self.callees.insert(name, found.clone());
        found
    }

    /// Keeps rows and notices that the body gives.
    ///
    /// # Errors
    /// 53200.
    fn keep(&mut self, rows: Vec<Vec<Value>>, notices: Vec<Notice>) -> Result<()> {
        let of_rows = rows.iter().map(|row| size_of_val(row) + bytes_of(row));
        let of_notices = notices.iter().map(|it| size_of_val(it) + it.message.len());
        self.given_bytes += of_rows.chain(of_notices).sum::<usize>();
        if self.given_bytes > GIVEN_BYTES_MAX {
            let message =
                format!("a body gives at most {GIVEN_BYTES_MAX} bytes of rows and notices");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message));
        }
        self.rows.extend(rows);
        self.notices.extend(notices);
        Ok(())
    }

    /// CALL of such a routine.
    fn call(&mut self, call: &Call, callee: &Stepped) -> Result<()> {
        if callee.routine.result != ResultKind::Void {
            let message = format!(
                "CALL of {} with output parameters in a body",
                callee.routine.name
            );
            return Err(Error::unsupported(message));
        }
        let Body::PlPgSql(block) = &callee.definition.body else {
            return Err(Error::internal(
                "only bodies in PL/pgSQL are run step by step",
            ));
        };
        let catalog = self.session.session.catalog();
        let roles = catalog.roles();
        let object = Object::routine(&callee.routine.name);
        let access = Access::of_caller(object, Privilege::Execute);
        roles.check(roles.require(self.session.acting_role())?, &access)?;
        let arguments = self.arguments(call, &callee.routine)?;
        let may_commit = self.may_commit && self.protected == 0;
        let given = self.deeper(|run| {
            let mut inner = Run::new(run.session, &callee.routine, may_commit);
            let given = inner.body(block, &arguments);
            let has_committed = inner.has_committed;
            run.has_committed |= has_committed;
            given
        })?;
        self.keep(Vec::new(), given.notices)
    }
}

/// What a SELECT is that only calls a routine that is run step by step, if it is one.
pub(super) fn stepped_call(
    catalog: &kiln_engine::Catalog,
    query: &sqlparser::ast::Query,
) -> Option<Call> {
    let call = command::only_call(query)?;
    let view = View::of(catalog);
    let name = routine_name(&view, &call.name).ok()?;
    Stepped::find(&view, &name)?;
    Some(call)
}

/// Whether the plan of a statement is run step by step.
pub(super) fn stepped_of(plan: &Plan) -> Option<&Stepped> {
    match plan {
        Plan::Call(call) | Plan::Stepped(call) => call.stepped.as_ref(),
        _ => None,
    }
}
