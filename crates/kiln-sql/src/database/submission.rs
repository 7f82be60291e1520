//! Statements that one thread submits for many sessions, and their outcomes.

use kiln_engine::{Arguments, Completions, Reply};
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;

use super::call::{CallPart, Part};
use super::panics::of_statement;
use super::portal::Portal;
use super::prepared::{Plan, cannot_submit};
use super::session::Session;
use crate::parse::Statement as Tree;

impl Session {
    /// Submits a portal to the database's workers, without waiting for its end, for a thread that
    /// serves many sessions. Its outcome arrives in `completions` under `token`;
    /// [`Session::complete`] takes it, and until then the session runs nothing else. The
    /// statement's time is bounded, and it can be cancelled, as one that is executed.
    ///
    /// Queries, INSERT, UPDATE, DELETE, and CALL whose arguments need no query can be submitted,
    /// outside of transaction blocks ([`Session::can_submit`]). Others are executed in a thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kiln_engine::Completions;
    /// use kiln_sql::{Database, Options, Value};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// let database = Database::open(Options::new().workers(1))?;
    /// database.execute("CREATE TABLE seat (id INTEGER PRIMARY KEY, taken BOOLEAN NOT NULL)")?;
    /// database.execute("INSERT INTO seat SELECT i, FALSE FROM generate_series(1, 100) AS g(i)")?;
    /// let completions = Completions::new(1_000);
    /// let mut clients = Vec::new();
    /// for client in 0..100 {
    ///     let mut session = database.session()?;
    ///     let take = session.parse("UPDATE seat SET taken = TRUE WHERE id = $1", &[])?;
    ///     let portal = session.bind(&take, &[Value::Integer(client + 1)])?;
    ///     let portal = session.submit(portal, &completions, client as u64)?;
    ///     clients.push((session, Some(portal)));
    /// }
    /// let (mut ended, mut left) = (Vec::new(), clients.len());
    /// while left > 0 {
    ///     completions.wait(&mut ended, Duration::from_secs(1));
    ///     for completion in ended.drain(..) {
    ///         let (session, portal) = &mut clients[completion.token as usize];
    ///         let mut portal = portal.take().expect("it was submitted");
    ///         session.complete(&mut portal, completion.result)?;
    ///         assert_eq!(portal.fetch(0)?.tag, "UPDATE 1");
    ///         left -= 1;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 54000 when too many calls wait, so that the portal may be submitted again; 0A000 and 25001
    /// for what cannot be submitted; 55000 while another statement is on its way, and for a portal
    /// that was executed; PostgreSQL's when the statement cannot be compiled any more. The portal
    /// is lost then; clone it to submit it again.
    pub fn submit(
        &mut self,
        portal: Portal,
        completions: &Arc<Completions>,
        token: u64,
    ) -> Result<Portal> {
        self.submit_as(portal, (completions, token), false)
    }

    /// [`Session::submit`] of a statement behind which others wait in this session: its outcome
    /// arrives as soon as it has ended, perhaps before it is durable. The caller keeps its result
    /// from the client until all that the [completion](kiln_engine::Completion::observed) rests on
    /// is on disk ([`kiln_engine::Engine::is_durable`]).
    ///
    /// # Errors
    /// As there.
    pub fn submit_early(
        &mut self,
        portal: Portal,
        completions: &Arc<Completions>,
        token: u64,
    ) -> Result<Portal> {
        self.submit_as(portal, (completions, token), true)
    }

    /// Whether what this session's transactions rest on is on disk before they are acknowledged.
    pub fn is_synchronous(&self) -> bool {
        self.session.is_synchronous()
    }

    fn submit_as(
        &mut self,
        portal: Portal,
        told: (&Arc<Completions>, u64),
        is_early: bool,
    ) -> Result<Portal> {
        self.check_idle()?;
        portal.check_bound()?;
        self.session.begin_statement();
        let submitted = self.offer(&portal, told, is_early);
        if let Err(error) = submitted {
            self.session.end_statement();
            let statement = portal.statement();
            return Err(of_statement(error, statement.text()).or_at(statement.position()));
        }
        self.is_submitted = true;
        Ok(portal)
    }

    fn offer(&self, portal: &Portal, told: (&Arc<Completions>, u64), is_early: bool) -> Result<()> {
        let statement = portal.statement();
        self.authorize(statement)?;
        self.check_writable(statement)?;
        let (arguments, program) = match statement.plan(&self.session.catalog())? {
            Plan::Data(_) => (Arguments::from_values(portal.values()), statement.to_run()),
            Plan::Call(call) if call.computing().is_none() => (
                call.direct(portal.values()),
                CallPart::of(statement, &call, Part::Direct),
            ),
            _ => return Err(cannot_submit()),
        };
        let submitted = self.session.submit(program, arguments, told, is_early);
        Ok(submitted?)
    }

    /// Whether a portal can be submitted now: its kind, and that no block is open.
    pub fn can_submit(&self, portal: &Portal) -> bool {
        let statement = portal.statement();
        let plan = || statement.plan(&self.session.catalog());
        let is_of_session = !statement.session_values().is_empty()
            || matches!(
                statement.tree().map(|tree| &**tree),
                Some(Tree::Declare(_) | Tree::Execute(_))
            );
        let ends_temporary = self.temporary.is_some() && self.session.ends_temporary();
        if self.session.in_transaction() || is_of_session || ends_temporary {
            return false;
        }
        match plan() {
            Ok(Plan::Data(_)) => true,
            Ok(Plan::Call(call)) => call.computing().is_none() && call.stepped.is_none(),
            _ => false,
        }
    }

    /// Takes the outcome of the portal that was submitted, which can be fetched from then.
    ///
    /// # Errors
    /// What the statement raised; 57014 when it was cancelled or its time was over.
    pub fn complete(&mut self, portal: &mut Portal, outcome: Result<Reply>) -> Result<()> {
        let rows = self.session.submitted(outcome);
        self.session.end_statement();
        self.is_submitted = false;
        let statement = portal.statement();
        let result = rows.and_then(|rows| statement.result_of(rows));
        let result = result.map(|result| self.audible(result));
        let result = result
            .map_err(|error| of_statement(error, statement.text()).or_at(statement.position()));
        portal.end(result)
    }
}
