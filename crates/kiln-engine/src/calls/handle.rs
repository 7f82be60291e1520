//! Handles of procedures, for callers that make many calls.

use kiln_platform::sync::Arc;

/// A procedure's name, looked up once; see [`Engine::procedure`](crate::Engine::procedure). It
/// stays good when the procedure is replaced.
#[derive(Clone, Debug)]
pub struct ProcedureHandle {
    /// Its number among the names that handles were made for.
    pub(crate) number: usize,
    /// Its name; the same allocation in all handles of a database to that name.
    pub(crate) name: Arc<str>,
}

impl ProcedureHandle {
    /// The procedure's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
