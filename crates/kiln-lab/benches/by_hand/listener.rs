//! A listener as a log needs it: what it hears goes into a buffer of its worker.

use kiln_platform::sync::Arc;
use kiln_storage::journal::{ChangeKind, Commit, Journal, Listener, Listeners};
use kiln_storage::log_epoch::LogEpochs;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::WORKERS_MAX;

/// Bytes after which the buffer begins anew, as if it had been handed over.
const BUFFER_BYTES: usize = 1 << 20;

struct Buffer(Vec<u8>);

struct Buffers;

impl Listeners for Buffers {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(Buffer(Vec::with_capacity(2 * BUFFER_BYTES)))
    }
}

impl Listener for Buffer {
    fn committed(&mut self, commit: &Commit<'_>) {
        let buffer = &mut self.0;
        if buffer.len() > BUFFER_BYTES {
            buffer.clear();
        }
        buffer.extend_from_slice(&commit.epoch.0.to_le_bytes());
        buffer.extend_from_slice(&commit.version.to_le_bytes());
        for change in commit.changes {
            let table = change.table();
            buffer.extend_from_slice(&table.id().0.to_le_bytes());
            buffer.push(change.kind() as u8);
            let key = &table.schema().primary_key;
            if let Some(number) = change.row_number() {
                buffer.extend_from_slice(&number.to_le_bytes());
            }
            match change.kind() {
                ChangeKind::Insert if change.append_row(buffer) => {}
                ChangeKind::Insert => {
                    for column in 0..table.schema().columns.len() as u16 {
                        change.append(ColumnId(column), buffer);
                    }
                }
                ChangeKind::Update => {
                    key.iter().for_each(|column| change.append(*column, buffer));
                    let [low, high] = change.columns().to_words();
                    buffer.extend_from_slice(&low.to_le_bytes());
                    buffer.extend_from_slice(&high.to_le_bytes());
                    for column in change.columns().iter() {
                        change.append(column, buffer);
                    }
                }
                ChangeKind::Delete => key.iter().for_each(|column| change.append(*column, buffer)),
            }
        }
    }
}

/// A journal that keeps what it hears for a moment.
pub fn journal() -> Journal {
    Journal::new(LogEpochs::new(WORKERS_MAX), Arc::new(Buffers))
}
