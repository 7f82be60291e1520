//! A listener as a log needs it: what it hears goes into a buffer of its worker.

use kiln_platform::sync::Arc;
use kiln_storage::journal::{CallAnswer, Commit, Journal, Listener, Listeners};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::table::WORKERS_MAX;

/// Bytes after which the buffer begins anew, as if it had been handed over.
const BUFFER_BYTES: usize = 1 << 20;

struct Buffer(Vec<u8>);

struct Buffers;

impl Listeners for Buffers {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(Buffer(Vec::with_capacity(2 * BUFFER_BYTES)))
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("no call has a key: {answer:?}")
    }
}

impl Listener for Buffer {
    fn committed(&mut self, commit: &Commit<'_>) {
        let buffer = &mut self.0;
        if buffer.len() > BUFFER_BYTES {
            buffer.clear();
        }
        buffer.extend_from_slice(&commit.epoch.0.to_le_bytes());
        commit.append(buffer);
    }
}

/// A journal that keeps what it hears for a moment.
pub fn journal() -> Journal {
    Journal::new(LogEpochs::new(WORKERS_MAX), Arc::new(Buffers))
}
