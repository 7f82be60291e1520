//! What the log tells of the database: checkpoints, that it has become read-only, blocks that are
//! open for long.

use kiln_sql::ReadOnly;

use super::Subject;

/// What was told already.
pub(super) struct Watch {
    checkpoints: (u64, u64),
    read_only: Option<ReadOnly>,
    /// The session of the block that was told of last.
    block: Option<u64>,
}

impl Watch {
    pub fn new(subject: &Subject) -> Watch {
        let mut watch = Watch {
            checkpoints: (0, 0),
            read_only: None,
            block: None,
        };
        watch.look(subject);
        watch
    }

    /// Tells what is new.
    pub fn look(&mut self, subject: &Subject) {
        self.look_at_checkpoints(subject);
        let read_only = subject.database.engine().read_only();
        if self.read_only != read_only {
            if let Some(read_only) = &read_only {
                tracing::error!(
                    sqlstate = read_only.reason.state().as_str(),
                    lost_tables = read_only.lost_tables.join(", "),
                    "the database takes no changes any more: {}",
                    read_only.reason.message()
                );
            }
            self.read_only = read_only;
        }
        self.look_at_blocks(subject);
        subject.monitor.log_skipped();
    }

    fn look_at_checkpoints(&mut self, subject: &Subject) {
        let Some(checkpoints) = subject.database.engine().checkpoint_metrics() else {
            return;
        };
        let (written, failed) = self.checkpoints;
        if checkpoints.written > written
            && let Some(report) = &checkpoints.last
        {
            tracing::info!(
                number = report.number,
                rows = report.rows,
                bytes = report.bytes,
                duration_ms = report.elapsed_ns as f64 / 1e6,
                held_ms = report.held_ns as f64 / 1e6,
                "checkpoint written"
            );
        }
        if checkpoints.failed > failed {
            let why = checkpoints
                .last_failure
                .as_ref()
                .map(|error| error.message());
            tracing::error!(
                cause = why.unwrap_or_default(),
                "checkpoint failed: recovery will read more of the log"
            );
        }
        self.checkpoints = (checkpoints.written, checkpoints.failed);
    }

    fn look_at_blocks(&mut self, subject: &Subject) {
        let monitor = &subject.monitor;
        let Some(limit_ns) = monitor.logged.block_ns else {
            return;
        };
        let oldest = subject.database.engine().oldest_block();
        let old = oldest.filter(|block| block.age_ns >= limit_ns);
        if let Some(block) = old
            && self.block != Some(block.session)
        {
            let who = monitor.sessions.get(block.session).unwrap_or_default();
            tracing::warn!(
                session = block.session,
                role = who.role,
                application = who.application,
                client = who.client,
                age_s = block.age_ns as f64 / 1e9,
                "a transaction block has been open for long"
            );
        }
        self.block = old.map(|block| block.session);
    }
}
