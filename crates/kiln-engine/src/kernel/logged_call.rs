//! Calls as a log with commands has them.

use std::fmt;

use kiln_procedure::Arguments;
use kiln_storage::bytes::{Reader, corrupt, read_text};
use kiln_storage::error::Result;

/// A call as a log has it: the procedure's name after its length, and the arguments.
#[derive(Default)]
pub struct LoggedCall {
    procedure: String,
    arguments: Arguments,
}

impl LoggedCall {
    /// What was called.
    pub(crate) fn procedure(&self) -> &str {
        &self.procedure
    }

    /// Reads a call that was logged; this one's memory is used again.
    ///
    /// # Errors
    /// XX001 for other bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let mut reader = Reader::new(bytes);
        self.procedure.clear();
        self.procedure.push_str(read_text(&mut reader)?);
        self.arguments.read_from(&mut reader)?;
        match reader.rest().len() {
            0 => Ok(()),
            left => Err(corrupt(format!("{left} bytes come after a call"))),
        }
    }

    /// What was called, and with which arguments.
    pub(crate) fn parts(&mut self) -> (&String, &mut Arguments) {
        (&self.procedure, &mut self.arguments)
    }
}

/// As a statement calls it.
impl fmt::Display for LoggedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = (0..self.arguments.len()).map(|at| self.arguments.value(at).to_string());
        let arguments: Vec<String> = values.collect();
        write!(f, "{}({})", self.procedure, arguments.join(", "))
    }
}
