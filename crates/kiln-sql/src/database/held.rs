//! What a session holds: savepoints, warnings, and what few sessions have.

use kiln_engine::{Mailbox, Savepoint, Source};
use kiln_platform::sync::Arc;
use kiln_storage::deferral::ConstraintModes;

use super::result::Notice;
use super::settings::Saved;
use crate::parse::Statement as Tree;

/// What few sessions have.
#[derive(Default)]
pub(super) struct Rare {
    /// ANALYZE statements of the open block, which run when that has committed.
    pub analyses: Vec<(Tree, Source)>,
    /// What comes for the session, if it has listened.
    pub mailbox: Option<Arc<Mailbox>>,
}

/// Warnings for the client of the statement that runs. They are boxed where they are kept, so that
/// sessions stay small.
#[derive(Default)]
pub(super) struct Warnings(pub Vec<Notice>);

/// A savepoint, and what is to be as it was there.
pub(super) struct Named {
    pub name: String,
    pub place: Savepoint,
    pub settings: Saved,
    /// When constraints were checked.
    pub modes: Option<Arc<ConstraintModes>>,
}
