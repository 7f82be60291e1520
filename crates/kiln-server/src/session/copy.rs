//! COPY: rows that the client sends or is sent, or that a file of the server has or gets, in one of
//! COPY's formats.
//!
//! Rows that come are inserted one after the other, in the transaction of the COPY, as their data
//! come: the session keeps no more of them than the one that is not whole yet.

use kiln_platform::sync::Arc;
use kiln_sql::{Column, Copying, DataType, Error, Result, SqlState, Statement, Value};
use kiln_wire::copy::{Decoder, Encoder, Layout, Options};
use kiln_wire::frontend::{Format, Message, violation};

use super::copy_file::{Source, Target};
use super::{RunsOn, Session, Step};
use crate::monitor::Ended;

/// A COPY whose rows come.
pub(super) struct CopyIn {
    copying: Arc<Copying>,
    decoder: Decoder,
    /// The row that was read last.
    values: Vec<Value>,
    /// Rows that were inserted.
    count: u64,
    /// In the simple protocol, the text and the statement of it that comes next.
    text: Option<(String, usize)>,
}

impl CopyIn {
    /// One to which no data have come.
    fn new(copying: Arc<Copying>, decoder: Decoder, text: Option<(String, usize)>) -> CopyIn {
        CopyIn {
            copying,
            decoder,
            values: Vec::new(),
            count: 0,
            text,
        }
    }
}

impl Session {
    /// Whether the client is to send rows.
    pub fn is_copying(&self) -> bool {
        self.copy_in.is_some()
    }

    /// Runs a COPY in this thread: to its end, or until rows come, with `text` in the simple
    /// protocol.
    pub(super) fn copy(
        &mut self,
        statement: &Statement,
        is_alone: bool,
        text: Option<(&str, usize)>,
    ) -> Result<()> {
        let copying = self.sql.copy(statement)?;
        let given = copying.options.iter();
        let given = given.map(|(name, values)| (name.as_str(), values.as_slice()));
        let options = Options::of(given, copying.is_in)?;
        let format = match options.layout {
            Layout::Binary => Format::Binary,
            _ => Format::Text,
        };
        let columns = &copying.columns;
        match (copying.is_in, &copying.file) {
            (false, None) => return self.copy_out(&copying, options, format, is_alone),
            (false, Some(path)) => return self.copy_to_file(&copying, options, path, is_alone),
            (true, _) => {}
        }
        // Without what the columns are declared with, which the INSERT sees to.
        let types = copying.statement.parameters();
        let names = columns.iter().map(|column| column.name.as_str());
        let described: Vec<(&str, &DataType)> = names.zip(types).collect();
        let decoder = Decoder::new(options, &described)?.in_style(self.sql.style());
        self.begin_implicitly()?;
        if let Some(path) = &copying.file {
            let path = path.clone();
            return self.copy_from_file(CopyIn::new(copying, decoder, None), &path);
        }
        // The client sends the data once, so that the statement cannot run again.
        self.is_unit = false;
        self.answers.copy_in(format, columns.len());
        let text = text.map(|(text, next)| (text.to_owned(), next));
        self.copy_in = Some(Box::new(CopyIn::new(copying, decoder, text)));
        Ok(())
    }

    fn copy_out(
        &mut self,
        copying: &Copying,
        options: Options,
        format: Format,
        is_alone: bool,
    ) -> Result<()> {
        let (names, types): (Vec<&str>, Vec<&DataType>) =
            copying.columns.iter().map(described).unzip();
        let mut encoder = Encoder::new(options, &names)?.in_style(self.sql.style());
        let mut portal = self.sql.bind(&copying.statement, &[])?;
        let portion = self.run(&mut portal, is_alone, 0)?;
        self.answer_notices(&portion.notices);
        self.answers.copy_out(format, names.len());
        // As PostgreSQL sends it, and some clients want it: a line of names is a message, and what
        // precedes binary rows is one with the first of them, or with their end.
        let mut start = Vec::new();
        encoder.start(&names, &mut start);
        if format == Format::Text && !start.is_empty() {
            let line = std::mem::take(&mut start);
            (self.answers).copy_data(|bytes| bytes.extend_from_slice(&line));
        }
        for row in &portion.rows {
            (self.answers).copy_data(|bytes| {
                bytes.append(&mut start);
                encoder.row(row, &types, bytes);
            });
        }
        encoder.end(&mut start);
        if !start.is_empty() {
            (self.answers).copy_data(|bytes| bytes.extend_from_slice(&start));
        }
        self.answers.copy_done();
        let tag = format!("COPY {}", portion.rows.len());
        self.answers.command_complete(&tag);
        Ok(())
    }

    /// Handles a message while rows come.
    pub(super) fn take_copy(&mut self, message: Result<Message<'_>>, runs_on: RunsOn<'_>) -> Step {
        let is_end = match &message {
            Ok(Message::Terminate) => return Step::End,
            // Clients may have sent these before they knew that the statement is a COPY.
            Ok(Message::Flush | Message::Sync) => return Step::Next,
            Ok(Message::CopyData(_) | Message::CopyDone) => {
                if matches!(runs_on, RunsOn::Poller(..)) {
                    return Step::Thread;
                }
                matches!(&message, Ok(Message::CopyDone))
            }
            _ => false,
        };
        let Some(mut copy) = self.copy_in.take() else {
            return Step::Next;
        };
        let taken = match message {
            Ok(Message::CopyData(data)) => {
                copy.decoder.feed(data);
                self.insert(&mut copy)
            }
            Ok(Message::CopyDone) => {
                copy.decoder.finish();
                self.insert(&mut copy)
            }
            Ok(Message::CopyFail(reason)) => {
                let message = format!("COPY from stdin failed: {reason}");
                Err(at_line(
                    Error::new(SqlState::QUERY_CANCELED, message),
                    &copy,
                ))
            }
            Ok(_) => Err(violation(
                "unexpected message during COPY from stdin".to_owned(),
            )),
            Err(error) => Err(error),
        };
        if is_end || taken.is_err() {
            self.end_copy(&copy, taken.as_ref().err());
        }
        match (taken, copy.text.take()) {
            (Ok(()), text) if !is_end => {
                copy.text = text;
                self.copy_in = Some(copy);
                Step::Next
            }
            (Ok(()), text) => {
                (self.answers).command_complete(&format!("COPY {}", copy.count));
                match text {
                    Some((text, next)) => self.go_on(&text, next),
                    None => Step::Next,
                }
            }
            (Err(error), None) => {
                self.fail(&error);
                Step::SkipToSync
            }
            (Err(error), Some(_)) => {
                self.fail(&error);
                self.abandon_implicitly();
                self.ready();
                Step::Next
            }
        }
    }

    /// Takes all data of a file.
    fn copy_from_file(&mut self, mut copy: CopyIn, path: &str) -> Result<()> {
        let copied = self.insert_from(&mut copy, path);
        self.end_copy(&copy, copied.as_ref().err());
        copied?;
        (self.answers).command_complete(&format!("COPY {}", copy.count));
        Ok(())
    }

    fn insert_from(&mut self, copy: &mut CopyIn, path: &str) -> Result<()> {
        let mut source = Source::open(path)?;
        while let Some(data) = source.read()? {
            self.check_terminated()?;
            copy.decoder.feed(data);
            self.insert(copy)?;
        }
        copy.decoder.finish();
        self.insert(copy)
    }

    /// Writes all rows into a file.
    fn copy_to_file(
        &mut self,
        copying: &Copying,
        options: Options,
        path: &str,
        is_alone: bool,
    ) -> Result<()> {
        let (names, types): (Vec<&str>, Vec<&DataType>) =
            copying.columns.iter().map(described).unzip();
        let mut encoder = Encoder::new(options, &names)?.in_style(self.sql.style());
        let mut target = Target::create(path)?;
        let mut portal = self.sql.bind(&copying.statement, &[])?;
        let portion = self.run(&mut portal, is_alone, 0)?;
        self.answer_notices(&portion.notices);
        encoder.start(&names, target.bytes());
        for row in &portion.rows {
            encoder.row(row, &types, target.bytes());
            target.write_much()?;
        }
        encoder.end(target.bytes());
        target.write()?;
        let tag = format!("COPY {}", portion.rows.len());
        self.answers.command_complete(&tag);
        Ok(())
    }

    /// A COPY has ended, as far as it gets.
    fn end_copy(&mut self, copy: &CopyIn, error: Option<&Error>) {
        let Some(began_ns) = self.began_ns else {
            return;
        };
        let ended = Ended {
            command: "COPY",
            procedure: None,
            text: &format!("COPY {} FROM STDIN", copy.copying.name),
            values: &[],
        };
        let number = self.sql.number();
        let ended_ns = (self.monitor).end_statement(number, &ended, began_ns, error);
        self.began_ns = Some(ended_ns);
    }

    /// Inserts the rows that are whole.
    fn insert(&mut self, copy: &mut CopyIn) -> Result<()> {
        loop {
            let mut values = std::mem::take(&mut copy.values);
            let read = copy.decoder.next(&mut values);
            let inserted = match read {
                Ok(false) => {
                    copy.values = values;
                    return Ok(());
                }
                Ok(true) => (self.sql.bind(&copy.copying.statement, &values))
                    .and_then(|mut portal| self.sql.execute_portal(&mut portal, 0)),
                Err(error) => Err(error),
            };
            copy.values = values;
            let inserted = inserted.map_err(|error| at_line(error, copy))?;
            // A trigger may have kept the row away.
            copy.count += u64::from(inserted.tag == INSERTED);
        }
    }
}

/// The tag of an INSERT that has inserted its row.
const INSERTED: &str = "INSERT 0 1";

fn described(column: &Column) -> (&str, &DataType) {
    (column.name.as_str(), &column.data_type)
}

/// An error with the line of the data that it is about, as PostgreSQL tells it.
fn at_line(error: Error, copy: &CopyIn) -> Error {
    let place = format!("COPY {}, line {}", copy.copying.name, copy.decoder.line());
    let context = match error.context() {
        Some(within) => format!("{place}, {within}"),
        None => place,
    };
    error.without_position().with_context(context)
}
