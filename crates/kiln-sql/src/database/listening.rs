//! LISTEN, UNLISTEN and NOTIFY, and what comes for a session that listens.

use std::time::Duration;

use kiln_engine::{Listening, Mailbox, Notification};
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Value};

use super::result::StatementResult;
use super::session::Session;
use crate::parse::{Notify, SourceStatement};

impl Session {
    /// LISTEN.
    pub(super) fn listen(&mut self, channel: &str) -> Result<StatementResult> {
        self.own_mailbox();
        self.session.listen(Listening::To(channel.into()))?;
        Ok(StatementResult::of_tag("LISTEN"))
    }

    /// UNLISTEN of a channel, or of all.
    pub(super) fn unlisten(&mut self, channel: Option<&str>) -> Result<StatementResult> {
        // One without a mailbox has never listened.
        if self.mailbox().is_some() {
            self.session.listen(match channel {
                Some(channel) => Listening::NotTo(channel.into()),
                None => Listening::ToNone,
            })?;
        }
        Ok(StatementResult::of_tag("UNLISTEN"))
    }

    /// NOTIFY.
    pub(super) fn notify(&mut self, notify: &Notify) -> Result<StatementResult> {
        let source = SourceStatement::from("SELECT pg_catalog.pg_notify($1, $2)");
        let statement = self.analyse(&source, vec![Some(DataType::Text); 2])?;
        let values = [&notify.channel, &notify.payload].map(|text| Value::Text(text.clone()));
        self.run_data(&statement, &values)?;
        Ok(StatementResult::of_tag("NOTIFY"))
    }

    /// What comes for the session, if it has listened.
    pub(super) fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        self.rare.as_ref()?.mailbox.as_ref()
    }

    fn own_mailbox(&mut self) -> &Arc<Mailbox> {
        let session = &self.session;
        let rare = self.rare.get_or_insert_default();
        rare.mailbox.get_or_insert_with(|| session.mailbox())
    }

    /// The channels to which it listens.
    pub(super) fn listening_channels(&self) -> Vec<String> {
        let channels = self.session.channels();
        channels.iter().map(ToString::to_string).collect()
    }

    /// Takes the notifications that have come on the channels to which the session listens, in the
    /// order of their delivery; none while a transaction block is open, as in PostgreSQL. Those of
    /// one transaction come together. What the session's own transactions have told is there when
    /// they have committed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kiln_sql::{Database, Options};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// let database = Database::open(Options::new().workers(1))?;
    /// database.execute(
    ///     "CREATE TABLE job (id INTEGER PRIMARY KEY);
    ///      CREATE FUNCTION tell() RETURNS TRIGGER LANGUAGE plpgsql AS $$
    ///      BEGIN PERFORM pg_notify('jobs', NEW.id::text); RETURN NEW; END $$;
    ///      CREATE TRIGGER tells AFTER INSERT ON job FOR EACH ROW EXECUTE FUNCTION tell();",
    /// )?;
    /// let mut session = database.session()?;
    /// session.execute("LISTEN jobs")?;
    /// database.execute("INSERT INTO job VALUES (7)")?;
    /// let told = session.await_notifications(Duration::from_secs(10))?;
    /// assert_eq!((told[0].channel.as_str(), told[0].payload.as_str()), ("jobs", "7"));
    /// assert!(session.notifications().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn notifications(&mut self) -> Vec<Notification> {
        self.notifications_within(usize::MAX)
    }

    /// [`Session::notifications`] of about so many bytes: the first one whatever its length.
    pub fn notifications_within(&mut self, bytes_max: usize) -> Vec<Notification> {
        match self.mailbox() {
            Some(mailbox) if !self.in_transaction() => {
                self.session.take_notifications(mailbox, bytes_max)
            }
            _ => Vec::new(),
        }
    }

    /// [`Session::notifications`] that waits up to `timeout` until some have come. A session that
    /// has never listened, or whose transaction block is open, waits for none.
    ///
    /// # Errors
    /// 57P01 when another session has ended this one; 54000 when it has not taken what has come, so
    /// that there was no room for more.
    pub fn await_notifications(&mut self, timeout: Duration) -> Result<Vec<Notification>> {
        if let Some(mailbox) = self.mailbox()
            && !self.in_transaction()
        {
            self.session.await_notification(mailbox, timeout);
        }
        self.check_terminated()?;
        Ok(self.notifications())
    }

    /// Has `wake` called when notifications have come for the session that were not taken yet, for
    /// a thread that sleeps elsewhere: on the thread of the transaction that has sent them, or on
    /// that of the log. It must not block.
    pub fn wake_by(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.own_mailbox().wake_by(wake);
    }

    /// Whether the session has listened, and nothing wakes its owner yet ([`Session::wake_by`]).
    pub fn wants_wake(&self) -> bool {
        self.mailbox().is_some_and(|mailbox| !mailbox.has_wake())
    }

    /// Whether notifications have come that were not taken, or the session is to end because there
    /// was no room for them.
    pub fn has_notifications(&self) -> bool {
        self.mailbox().is_some_and(|mailbox| mailbox.has_news())
    }
}
