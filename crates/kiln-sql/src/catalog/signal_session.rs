//! The function that has another session cancel what it runs, or end.

use kiln_engine::{CurrentCatalog, Signal, Signaller};
use kiln_platform::sync::Arc;
use kiln_procedure::outside::OutsideFunction;
use kiln_storage::error::{Error, Result};
use kiln_storage::sequence::Draws;
use kiln_storage::slot::{Heap, Slot};

/// Sends a signal: the arguments are the number and the role of the session that asks, and the
/// number of the other one. A call that is run again sends it again.
pub(crate) struct SignalSession {
    pub current: Arc<CurrentCatalog>,
    pub signal: Signal,
}

impl std::fmt::Debug for SignalSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SignalSession").field(&self.signal).finish()
    }
}

impl OutsideFunction for SignalSession {
    fn name(&self) -> &str {
        "signal_session"
    }

    fn call(&self, heap: &mut Heap, _: Option<&Draws>, arguments: &[Slot]) -> Result<Slot> {
        let [session, role, number] = arguments else {
            return Err(Error::internal("a signal is sent by no session"));
        };
        if number.is_null() {
            return Ok(Slot::NULL);
        }
        let gone = || Error::internal("a signal is sent within no database");
        let catalog = self.current.get().ok_or_else(gone)?;
        let role = String::from_utf8_lossy(heap.bytes(*role)).into_owned();
        let by = Signaller {
            session: session.as_i64().cast_unsigned(),
            role: &role,
        };
        let number = i32::try_from(number.as_i64()).unwrap_or_default();
        let sessions = self.current.open_sessions();
        let is_sent = sessions.signal(self.signal, number, by, catalog.roles())?;
        Ok(Slot::from_bool(is_sent))
    }
}
