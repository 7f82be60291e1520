//! Blocks, open loops, EXIT and CONTINUE.
//!
//! One loop of the language may be several loops of the IR (a query over a join), or none (a query
//! that finds one row by its key). A [`LoopFrame`] says how to leave it and how to go on with it.

use kiln_procedure::ir::{Block, Step};
use kiln_storage::error::{Result, SqlState};

use super::{Compiler, Position, fail};

/// A loop of the language that is open.
#[derive(Clone, Debug)]
pub(super) struct LoopFrame {
    label: Option<String>,
    /// A labelled block: it can be left by name but is no loop.
    is_block: bool,
    /// The number of IR loops around its outermost IR loop.
    outside: usize,
    /// CONTINUE does what to which IR loop, by the number of IR loops around it.
    on_continue: OnContinue,
}

#[derive(Clone, Copy, Debug)]
enum OnContinue {
    /// `Step::Continue` of the loop with that many loops around it.
    Continue(usize),
    /// `Step::Exit` of it: it is a loop of one iteration within the real one.
    Exit(usize),
}

/// Says which loop to close; returned by [`Compiler::open_loop`].
#[derive(Debug)]
#[must_use]
pub struct LoopHandle(usize);

impl Compiler<'_> {
    /// Opens a block. Columns that are read inside are forgotten when it is closed.
    pub fn open(&mut self) {
        self.builder.open();
        self.marks.push(self.available.len());
    }

    /// Closes the innermost block and returns its steps.
    pub fn close(&mut self) -> Block {
        if let Some(mark) = self.marks.pop() {
            self.available.truncate(mark);
        }
        self.builder.close()
    }

    /// Opens the body of a loop of the language that is one loop of the IR.
    pub fn open_loop(&mut self, label: Option<&str>) -> LoopHandle {
        let outside = self.depth;
        self.push_frame(label, outside, OnContinue::Continue(outside));
        self.open_ir_loop();
        LoopHandle(outside)
    }

    /// Closes the body that [`Compiler::open_loop`] opened; the caller makes the step of it.
    pub fn close_loop(&mut self, handle: LoopHandle) -> Block {
        self.loops.pop();
        let body = self.close_ir_loop();
        debug_assert_eq!(
            self.depth, handle.0,
            "loops are closed in the order of opening"
        );
        body
    }

    /// Opens a labelled block, which EXIT can leave by name. It becomes a loop of one iteration.
    pub fn open_labelled_block(&mut self, label: &str) -> LoopHandle {
        let handle = self.open_loop(Some(label));
        if let Some(frame) = self.loops.last_mut() {
            frame.is_block = true;
        }
        handle
    }

    /// Closes a labelled block and appends it.
    pub fn close_labelled_block(&mut self, handle: LoopHandle) {
        self.builder.push(Step::Exit { depth: 0 });
        let body = self.close_loop(handle);
        self.builder.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
    }

    /// The number of IR loops that are open.
    pub fn loop_depth(&self) -> usize {
        self.depth
    }

    /// Appends an EXIT of the innermost loop, or of the loop or block called `label`.
    ///
    /// # Errors
    /// 42601 when there is no such loop.
    pub fn exit_loop(&mut self, label: Option<&str>, position: Position) -> Result<()> {
        let frame = self.find_frame(label, "EXIT", position)?;
        let step = Step::Exit {
            depth: self.relative(frame.outside),
        };
        self.builder.push(step);
        Ok(())
    }

    /// Appends a CONTINUE of the innermost loop, or of the loop called `label`.
    ///
    /// # Errors
    /// 42601 when there is no such loop.
    pub fn continue_loop(&mut self, label: Option<&str>, position: Position) -> Result<()> {
        let frame = self.find_frame(label, "CONTINUE", position)?;
        let step = match frame.on_continue {
            OnContinue::Continue(outside) => Step::Continue {
                depth: self.relative(outside),
            },
            OnContinue::Exit(outside) => Step::Exit {
                depth: self.relative(outside),
            },
        };
        self.builder.push(step);
        Ok(())
    }

    fn find_frame(
        &self,
        label: Option<&str>,
        statement: &str,
        position: Position,
    ) -> Result<LoopFrame> {
        let found = match label {
            None => self.loops.iter().rev().find(|frame| !frame.is_block),
            Some(label) => self
                .loops
                .iter()
                .rev()
                .find(|frame| frame.label.as_deref() == Some(label)),
        };
        match (found, label) {
            (Some(frame), Some(label)) if frame.is_block && statement == "CONTINUE" => Err(fail(
                SqlState::SYNTAX_ERROR,
                format!("block label \"{label}\" cannot be used in CONTINUE"),
                position,
            )),
            (Some(frame), _) => Ok(frame.clone()),
            (None, Some(label)) => Err(fail(
                SqlState::SYNTAX_ERROR,
                format!(
                    "there is no label \"{label}\" attached to any block or loop enclosing this statement"
                ),
                position,
            )),
            (None, None) => Err(fail(
                SqlState::SYNTAX_ERROR,
                format!("{statement} cannot be used outside a loop, unless it has a label"),
                position,
            )),
        }
    }

    fn push_frame(&mut self, label: Option<&str>, outside: usize, on_continue: OnContinue) {
        let label = label.map(str::to_owned);
        self.loops.push(LoopFrame {
            label,
            is_block: false,
            outside,
            on_continue,
        });
    }

    /// The `depth` of the open IR loop with `outside` loops around it.
    pub(super) fn relative(&self, outside: usize) -> u16 {
        u16::try_from(self.depth - outside - 1).unwrap_or(u16::MAX)
    }

    /// Opens the body of an IR loop that the language does not see.
    pub(super) fn open_ir_loop(&mut self) {
        self.depth += 1;
        self.open();
    }

    pub(super) fn close_ir_loop(&mut self) -> Block {
        self.depth -= 1;
        self.close()
    }

    /// Closes the body of a loop that runs once: it is there to be left.
    pub(super) fn close_ir_loop_of_one(&mut self) {
        self.builder.push(Step::Exit { depth: 0 });
        let body = self.close_ir_loop();
        self.builder.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
    }

    /// Runs `body` as the body of a language loop whose outermost IR loop has `outside` loops
    /// around it. It is wrapped in a loop of one iteration, so that what follows it in the
    /// innermost IR loop (counting for a LIMIT) is not jumped over, when `epilogue` says that
    /// something does.
    pub(super) fn language_loop_body(
        &mut self,
        label: Option<&str>,
        outside: usize,
        epilogue: bool,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if epilogue || self.depth == outside {
            let inner = self.depth;
            self.open_ir_loop();
            self.push_frame(label, outside.min(inner), OnContinue::Exit(inner));
            let result = body(self);
            self.loops.pop();
            self.close_ir_loop_of_one();
            return result;
        }
        self.push_frame(label, outside, OnContinue::Continue(self.depth - 1));
        let result = body(self);
        self.loops.pop();
        result
    }
}
