//! The server's log: lines on standard error, for people or as JSON.
//!
//! A reader of standard error that does not read must not hold up clients. So a thread of its own
//! writes the lines, a bounded number of bytes waits for it, and lines that find no room are
//! counted and left out.

use std::io::{self, Write};
use std::time::Duration;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::{thread, time};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::commands::settings::Format;

/// Bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How long the end of the program waits for them.
const FLUSH_NS: u64 = 2_000_000_000;

/// The log; what waits is written when this is dropped.
pub struct Log {
    lines: Lines,
}

impl Log {
    /// Collects events from now on, of all threads.
    ///
    /// # Errors
    /// A sentence, when there is no thread.
    pub fn start(format: Format, level: LevelFilter) -> Result<Log, String> {
        let lines = Lines(Arc::new(Shared {
            format,
            state: Mutex::default(),
            has_changed: Condvar::new(),
        }));
        let writer = lines.0.clone();
        thread::spawn("kiln-log-lines", move || writer.write_lines())
            .map_err(|error| format!("the system starts no further thread: {error}"))?;
        let collector = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(lines.clone())
            .with_target(false);
        let set = match format {
            Format::Text => tracing::subscriber::set_global_default(collector.finish()),
            Format::Json => {
                let json = collector.json().flatten_event(true);
                tracing::subscriber::set_global_default(json.finish())
            }
        };
        set.map_err(|error| error.to_string())?;
        std::panic::set_hook(Box::new(log_panic));
        Ok(Log { lines })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.0.flush();
    }
}

/// A panic ends a connection, or the database; never the log.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let message = (payload.downcast_ref::<&str>().copied())
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    let place = panic.location().map(ToString::to_string);
    let thread = thread::current().name().unwrap_or_default().to_owned();
    tracing::error!(thread, place, "panic: {message}");
}

/// Where events put their lines.
#[derive(Clone)]
struct Lines(Arc<Shared>);

struct Shared {
    format: Format,
    state: Mutex<State>,
    /// Lines wait, or none any more.
    has_changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Whether the thread writes some now.
    is_writing: bool,
    /// Lines that found no room.
    left_out: u64,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// An event is written at once, with its line's end.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn add(&self, line: &[u8]) {
        let mut state = lock(&self.state);
        if state.waiting.len() + line.len() > WAITING_BYTES_MAX {
            state.left_out += 1;
            return;
        }
        state.waiting.extend_from_slice(line);
        drop(state);
        self.has_changed.notify_all();
    }

    /// The thread's life, which ends with the process.
    fn write_lines(&self) {
        loop {
            let lines = self.take();
            // What cannot be written is not missed.
            let _ = io::stderr().lock().write_all(&lines);
            lock(&self.state).is_writing = false;
            self.has_changed.notify_all();
        }
    }

    /// What waits, once something does.
    fn take(&self) -> Vec<u8> {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() {
            let waited = self.has_changed.wait(state);
            state = waited.unwrap_or_else(|poison| poison.into_inner());
        }
        state.is_writing = true;
        let mut lines = std::mem::take(&mut state.waiting);
        if state.left_out > 0 {
            let left_out = std::mem::take(&mut state.left_out);
            lines.extend_from_slice(self.note(left_out).as_bytes());
        }
        lines
    }

    /// The line that says how many are missing.
    fn note(&self, left_out: u64) -> String {
        let message = "lines of the log are missing: standard error was not read in time";
        match self.format {
            Format::Text => format!("WARN {message} count={left_out}\n"),
            Format::Json => {
                let note =
                    serde_json::json!({"level": "WARN", "message": message, "count": left_out});
                format!("{note}\n")
            }
        }
    }

    /// Waits until all is written, for a time.
    fn flush(&self) {
        let until_ns = time::now_ns() + FLUSH_NS;
        let mut state = lock(&self.state);
        while !state.waiting.is_empty() || state.is_writing {
            let remaining_ns = until_ns.saturating_sub(time::now_ns());
            if remaining_ns == 0 {
                return;
            }
            let left = Duration::from_nanos(remaining_ns);
            let waited = self.has_changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(|poison| poison.into_inner());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_find_no_room_are_counted() {
        for (format, part) in [
            (Format::Text, "count=3\n"),
            (Format::Json, "\"count\":3}\n"),
        ] {
            let shared = Shared {
                format,
                state: Mutex::default(),
                has_changed: Condvar::new(),
            };
            shared.add(b"first\n");
            shared.add(&vec![b'x'; WAITING_BYTES_MAX - 6]);
            (0..3).for_each(|_| shared.add(b"no room\n"));
            let lines = String::from_utf8(shared.take()).expect("they are text");
            assert!(lines.starts_with("first\nxxx") && lines.ends_with(part));
            shared.add(b"room\n");
            assert_eq!(shared.take(), b"room\n");
        }
    }
}
