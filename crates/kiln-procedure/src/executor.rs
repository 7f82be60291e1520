//! Runs a program over an access.
//!
//! The executor is generic over [`Access`], so that each protocol gets its own copy of this loop
//! with the access's methods inlined: no virtual call per record. It walks the step tree; a step
//! that leaves its block says so by a small `Flow` value, and details of a stop are kept aside.
//!
//! Registers, record registers and buffers are indexed without a check where it is hot: a
//! [`Program`] can only be made by [`ProgramBuilder::finish`](crate::ProgramBuilder::finish),
//! which verifies that every number is in range, and `Frame::prepare` makes room for all.

use kiln_storage::error::{Error, SqlState};
use kiln_storage::index::LeafBatch;
use kiln_storage::record::RecordRef;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, Found, RangeValues, Table};
use kiln_storage::types::Decimal;

use crate::access::{AbortCause, Access, Handle, Inserted, Stop, Visit};
use crate::arguments::Arguments;
use crate::buffer::combine;
use crate::frame::{self, Frame, Notice};
use crate::ir::*;
use crate::program::Program;

/// Where control goes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// To the next step.
    Next,
    /// Behind the loop this many levels out.
    Exit(u16),
    /// To the next turn of the loop this many levels out.
    Continue(u16),
    /// To the end of the procedure.
    Return,
    /// Out: [`Executor::stop`] says why.
    Stop,
}

/// Turns of a loop that are prefetched at most: more would push each other out of the cache.
const PREFETCH_TURNS_MAX: i64 = 24;

/// Look-ups repeated because the record found was leaving the index, before giving up.
const DEAD_RETRIES_MAX: u32 = 100;

/// One attempt of one call.
pub struct Executor<'a, A: Access> {
    program: &'a Program,
    access: &'a mut A,
    frame: &'a mut Frame,
    stop: Option<Stop>,
}

/// Ends the step with a stop when `result` is an error.
macro_rules! attempt {
    ($self:ident, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(stop) => {
                $self.stop = Some(Stop::from(stop));
                return Flow::Stop;
            }
        }
    };
}

/// What a loop does after its body: goes on, or leaves with a flow.
macro_rules! after_body {
    ($self:ident, $flow:expr) => {
        match $flow {
            Flow::Next | Flow::Continue(0) => {
                if $self.tick() == Flow::Stop {
                    return Flow::Stop;
                }
            }
            Flow::Exit(0) => break,
            Flow::Exit(depth) => return Flow::Exit(depth - 1),
            Flow::Continue(depth) => return Flow::Continue(depth - 1),
            out => return out,
        }
    };
}

impl<'a, A: Access> Executor<'a, A> {
    /// Runs `program` with `arguments` (bound to it) up to, but not including, the commit. What
    /// it emitted is in `frame`.
    ///
    /// # Errors
    /// [`Stop::Abort`] when the attempt must be repeated, [`Stop::Raise`] when the procedure
    /// raised. The caller rolls back.
    pub fn run(
        program: &'a Program,
        access: &'a mut A,
        frame: &'a mut Frame,
        arguments: &Arguments,
    ) -> Result<(), Stop> {
        frame.prepare(program, arguments);
        let mut executor = Executor {
            program,
            access,
            frame,
            stop: None,
        };
        match executor.block(&program.body) {
            Flow::Stop => Err(executor.stop.take().expect("a stop has a reason")),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn get(&self, register: Reg) -> Slot {
        debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
        // SAFETY: verified programs name registers below their number, and `prepare` made room.
        unsafe { *self.frame.memory.slots.get_unchecked(register.0 as usize) }
    }

    #[inline(always)]
    fn set(&mut self, register: Reg, slot: Slot) {
        debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
        // SAFETY: as in `get`.
        unsafe {
            *self
                .frame
                .memory
                .slots
                .get_unchecked_mut(register.0 as usize) = slot
        }
    }

    #[inline(always)]
    fn table(&self, table: TableRef) -> &'a Table {
        &self.program.tables[table.0 as usize]
    }

    #[inline(always)]
    fn handle(&self, record: RecordReg) -> Handle {
        self.frame.records[record.0 as usize].expect("a verified program found this record")
    }

    /// Counts a loop turn, and now and then looks at the limits.
    #[inline(always)]
    fn tick(&mut self) -> Flow {
        self.frame.turns_until_check -= 1;
        if self.frame.turns_until_check == 0 {
            attempt!(self, self.frame.check_limits());
        }
        Flow::Next
    }

    fn block(&mut self, steps: &'a [Step]) -> Flow {
        for step in steps {
            let flow = self.step(step);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    #[inline(always)]
    fn step(&mut self, step: &'a Step) -> Flow {
        match step {
            Step::Scalar(instruction) => return self.scalar(instruction),
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let block = if self.get(*condition).is_true() {
                    then
                } else {
                    otherwise
                };
                return self.block(block);
            }
            Step::Lookup {
                table,
                index,
                key,
                record,
                found,
                intent,
                ..
            } => {
                return self.lookup(*table, *index, key, *record, *found, *intent);
            }
            Step::Prefetch {
                first,
                last,
                lookups,
            } => self.prefetch(*first, *last, lookups),
            Step::Read {
                table,
                record,
                columns,
                ..
            } => {
                let table = self.table(*table);
                let handle = &mut self.frame.records[record.0 as usize];
                let handle = handle
                    .as_mut()
                    .expect("a verified program found this record");
                attempt!(
                    self,
                    self.access
                        .read(table, handle, columns, &mut self.frame.memory)
                );
            }
            Step::Update {
                table,
                record,
                columns,
                ..
            } => {
                let table = self.table(*table);
                let handle = &mut self.frame.records[record.0 as usize];
                let handle = handle
                    .as_mut()
                    .expect("a verified program found this record");
                attempt!(
                    self,
                    self.access
                        .update(table, handle, columns, &mut self.frame.memory)
                );
            }
            Step::Insert {
                table,
                values,
                record,
                conflict,
                ..
            } => {
                return self.insert(*table, values, *record, *conflict);
            }
            Step::Delete { table, record, .. } => {
                let table = self.table(*table);
                let handle = &mut self.frame.records[record.0 as usize];
                let handle = handle
                    .as_mut()
                    .expect("a verified program found this record");
                attempt!(
                    self,
                    self.access.delete(table, handle, &mut self.frame.memory)
                );
            }
            Step::Scan {
                table,
                index,
                range,
                reverse,
                record,
                intent,
                body,
                ..
            } => {
                return self.scan(*table, *index, range, *reverse, *record, *intent, body);
            }
            Step::Loop {
                before,
                condition,
                body,
            } => return self.repeat(before, *condition, body),
            Step::ForRange {
                variable,
                first,
                last,
                step,
                reverse,
                body,
            } => {
                return self.for_range(*variable, *first, *last, *step, *reverse, body);
            }
            Step::ForEach {
                variable,
                array,
                body,
            } => {
                let array = self.get(*array);
                if array.is_null() {
                    let message = "FOREACH expression must not be null";
                    attempt!(
                        self,
                        Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                    );
                }
                for position in 0..self.frame.memory.heap.array(array).len() {
                    let element = self.frame.memory.heap.array(array)[position];
                    self.set(*variable, element);
                    after_body!(self, self.block(body));
                }
            }
            Step::Exit { depth } => return Flow::Exit(*depth),
            Step::Continue { depth } => return Flow::Continue(*depth),
            Step::Return => return Flow::Return,
            Step::Raise { error } => return self.raise(error),
            Step::Notice { level, error } => {
                let message = self.message(error);
                self.frame.notices.push(Notice { level, message });
            }
            Step::SaveRecord { target, record } => {
                let handle = self.handle(*record);
                // The record's address in the lower word; the note, shifted past the NULL flag.
                let note = (handle.note as u64) << 8;
                self.set(*target, Slot::from_words(handle.record.address(), note));
            }
            Step::RestoreRecord { record, source } => {
                let (address, note) = self.get(*source).words();
                let handle = Handle {
                    // SAFETY: verified programs restore only what `SaveRecord` wrote in this run.
                    record: unsafe { RecordRef::from_address(address) },
                    note: (note >> 8) as u32,
                };
                self.frame.records[record.0 as usize] = Some(handle);
            }
            Step::BufferClear { buffer } => {
                self.frame.buffers[buffer.0 as usize].clear();
            }
            Step::BufferPush { buffer, row } => {
                let Frame {
                    buffers, memory, ..
                } = &mut *self.frame;
                let rows = &mut buffers[buffer.0 as usize].rows;
                rows.extend(row.iter().map(|register| memory.slots[register.0 as usize]));
            }
            Step::BufferPushDistinct {
                buffer,
                row,
                classes,
                added,
            } => {
                let is_new = self.push_distinct(*buffer, row, classes);
                self.set(*added, Slot::from_bool(is_new));
            }
            Step::BufferSort { buffer, by } => self.sort(*buffer, by),
            Step::BufferCount { buffer, target } => {
                let width = self.program.buffers[buffer.0 as usize].max(1);
                let rows = self.frame.buffers[buffer.0 as usize].rows.len() / width;
                self.set(*target, Slot::from_i64(rows as i64));
            }
            Step::ForBuffer {
                buffer,
                matching,
                row,
                body,
            } => {
                if !matching.is_empty() {
                    return self.for_matching(*buffer, matching, row, body);
                }
                let width = self.program.buffers[buffer.0 as usize];
                let mut position = 0;
                // The body may append; rows appended meanwhile are visited too.
                while position + width <= self.frame.buffers[buffer.0 as usize].rows.len() {
                    for (column, register) in row.iter().enumerate() {
                        let slot = self.frame.buffers[buffer.0 as usize].rows[position + column];
                        self.set(*register, slot);
                    }
                    position += width;
                    after_body!(self, self.block(body));
                }
            }
            Step::Emit { row } => {
                let Frame {
                    result,
                    result_rows,
                    memory,
                    ..
                } = &mut *self.frame;
                result.extend(row.iter().map(|register| memory.slots[register.0 as usize]));
                *result_rows += 1;
            }
        }
        Flow::Next
    }

    /// Asks for the index entries and records of the turns of a loop.
    #[inline(never)]
    fn prefetch(&mut self, first: Reg, last: Reg, lookups: &'a [PrefetchLookup]) {
        let (first, last) = (self.get(first), self.get(last));
        if Slot::either_null(first, last) {
            return;
        }
        let first = first.as_i64();
        let last = last
            .as_i64()
            .min(first.saturating_add(PREFETCH_TURNS_MAX - 1));
        let Memory { slots, heap } = &self.frame.memory;
        let value = |part: &PrefetchKey, turn: i64| match *part {
            PrefetchKey::Register(register) => slots[register.0 as usize],
            PrefetchKey::Variable => Slot::from_i64(turn),
            PrefetchKey::Element(array) => {
                let array = slots[array.0 as usize];
                let at = usize::try_from(turn - 1).unwrap_or(usize::MAX);
                let elements = if array.is_null() {
                    &[]
                } else {
                    heap.array(array)
                };
                elements.get(at).copied().unwrap_or(Slot::NULL)
            }
        };
        for turn in first..=last {
            for lookup in lookups {
                let table = &*self.program.tables[lookup.table.0 as usize];
                let key = lookup.key.iter().map(|part| value(part, turn));
                table.indexes()[lookup.index as usize].prefetch(heap, key);
            }
        }
        for turn in first..=last {
            for lookup in lookups {
                let table = &*self.program.tables[lookup.table.0 as usize];
                let key = lookup.key.iter().map(|part| value(part, turn));
                let index = &table.indexes()[lookup.index as usize];
                if let Found::Entry(entry) = index.get(heap, key) {
                    let start = entry.record().cell().as_ptr();
                    let mut lines = lookup.lines;
                    while lines != 0 {
                        let line = lines.trailing_zeros() as usize;
                        kiln_platform::atomic::prefetch(start.wrapping_add(line * 64));
                        lines &= lines - 1;
                    }
                }
            }
        }
    }

    /// Meets the record of an index entry, if the entry is the one that counts.
    #[inline(always)]
    fn meet(
        &mut self,
        table: &Table,
        index: usize,
        entry: Entry,
        intent: Intent,
    ) -> Result<Visit, AbortCause> {
        let record = if entry.is_moving() || self.access.moves_entries() {
            match self.access.resolve(table, index, entry)? {
                Some(record) => record,
                None => return Ok(Visit::Absent),
            }
        } else {
            entry.record()
        };
        self.access.visit(table, record, intent)
    }

    /// Meets the record that an index look-up found, or guards its absence.
    #[inline(always)]
    fn lookup(
        &mut self,
        table: TableRef,
        index: u16,
        key: &[Reg],
        record: RecordReg,
        found: Reg,
        intent: Intent,
    ) -> Flow {
        let table = self.table(table);
        let index_number = index;
        let index = &table.indexes()[index as usize];
        for _ in 0..DEAD_RETRIES_MAX {
            let Memory { slots, heap } = &self.frame.memory;
            let values = key.iter().map(|register| slots[register.0 as usize]);
            let is_there = match index.get(heap, values) {
                Found::Entry(entry) => {
                    match attempt!(self, self.meet(table, index_number as usize, entry, intent)) {
                        Visit::Present(handle) => {
                            self.frame.records[record.0 as usize] = Some(handle);
                            true
                        }
                        Visit::Absent => false,
                        Visit::Dead => {
                            kiln_platform::spin::hint();
                            continue;
                        }
                    }
                }
                Found::Missing(node) => {
                    attempt!(self, self.access.guard(node));
                    false
                }
                Found::Never => false,
            };
            self.set(found, Slot::from_bool(is_there));
            return Flow::Next;
        }
        attempt!(self, Err(AbortCause::KeyInTransit))
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the step")]
    fn scan(
        &mut self,
        table: TableRef,
        index: u16,
        range: &Range,
        reverse: bool,
        record: RecordReg,
        intent: Intent,
        body: &'a [Step],
    ) -> Flow {
        let table = self.table(table);
        let index_number = index;
        let index = &table.indexes()[index as usize];
        let mut prefix = [Slot::NULL; kiln_storage::schema::KEY_COLUMNS_MAX];
        let prefix = &mut prefix[..range.prefix.len()];
        for (slot, register) in prefix.iter_mut().zip(&range.prefix) {
            *slot = self.get(*register);
        }
        let bound =
            |bound: &Option<Bound>| bound.map(|bound| (self.get(bound.value), bound.inclusive));
        let values = RangeValues {
            prefix,
            lower: bound(&range.lower),
            upper: bound(&range.upper),
        };
        let scan = attempt!(self, index.scan(&self.frame.memory.heap, values, reverse));
        let Some(mut scan) = scan else {
            return Flow::Next;
        };
        let mut batch = LeafBatch::default();
        'leaves: while scan.next_leaf(&mut batch) {
            attempt!(self, self.access.guard(batch.version));
            if batch.count > 1 {
                // The records' cache misses overlap instead of following each other.
                for payload in batch.payloads() {
                    let address = *payload as *const u8;
                    kiln_platform::atomic::prefetch(address);
                    kiln_platform::atomic::prefetch(address.wrapping_add(64));
                }
            }
            for position in 0..batch.count {
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(batch.payloads[position]) };
                // A dead record's key is guarded by the leaf's version, as any gap is.
                let visit = attempt!(self, self.meet(table, index_number as usize, entry, intent));
                let Visit::Present(handle) = visit else {
                    continue;
                };
                self.frame.records[record.0 as usize] = Some(handle);
                match self.block(body) {
                    Flow::Next | Flow::Continue(0) => {
                        if self.tick() == Flow::Stop {
                            return Flow::Stop;
                        }
                    }
                    Flow::Exit(0) => break 'leaves,
                    Flow::Exit(depth) => return Flow::Exit(depth - 1),
                    Flow::Continue(depth) => return Flow::Continue(depth - 1),
                    out => return out,
                }
            }
        }
        Flow::Next
    }

    fn insert(
        &mut self,
        reference: TableRef,
        values: &[Reg],
        record: RecordReg,
        conflict: Option<Conflict>,
    ) -> Flow {
        let table = self.table(reference);
        let inserted = self.access.insert(table, values, &mut self.frame.memory);
        match attempt!(self, inserted) {
            Inserted::New(handle) => {
                self.frame.records[record.0 as usize] = Some(handle);
                if let Some(conflict) = conflict {
                    self.set(conflict.inserted, Slot::TRUE);
                }
            }
            Inserted::Exists { index, handle } => match conflict {
                Some(conflict) if conflict.index.is_none_or(|only| only as usize == index) => {
                    self.frame.records[record.0 as usize] = Some(handle);
                    self.set(conflict.inserted, Slot::FALSE);
                }
                _ => {
                    if let Some(Conflict {
                        index: Some(only),
                        inserted,
                    }) = conflict
                    {
                        // The row is in the way of two others: as PostgreSQL, which looks at the
                        // index of ON CONFLICT first, go on with the one that is caught.
                        let columns = &table.indexes()[only as usize].definition().columns;
                        let key: Vec<Reg> = columns
                            .iter()
                            .map(|column| values[column.index()])
                            .collect();
                        let flow =
                            self.lookup(reference, only, &key, record, inserted, Intent::Write);
                        if flow != Flow::Next {
                            return flow;
                        }
                        if self.get(inserted).is_true() {
                            self.set(inserted, Slot::FALSE);
                            return Flow::Next;
                        }
                    }
                    let slots = &self.frame.memory.slots;
                    let error = unique_violation(table, index, &self.frame.memory, |column| {
                        slots[values[column].0 as usize]
                    });
                    attempt!(self, Err(error));
                }
            },
        }
        Flow::Next
    }

    fn repeat(&mut self, before: &'a [Step], condition: Option<Reg>, body: &'a [Step]) -> Flow {
        loop {
            let flow = self.block(before);
            if flow != Flow::Next {
                return flow;
            }
            if condition.is_some_and(|condition| !self.get(condition).is_true()) {
                break;
            }
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    fn for_range(
        &mut self,
        variable: Reg,
        first: Reg,
        last: Reg,
        step: Reg,
        reverse: bool,
        body: &'a [Step],
    ) -> Flow {
        let (first, last, step) = (self.get(first), self.get(last), self.get(step));
        for (slot, name) in [
            (first, "lower bound"),
            (last, "upper bound"),
            (step, "BY value"),
        ] {
            if slot.is_null() {
                let message = format!("{name} of FOR loop cannot be null");
                attempt!(
                    self,
                    Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                );
            }
        }
        let (mut at, last, step) = (first.as_i64(), last.as_i64(), step.as_i64());
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            attempt!(
                self,
                Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
            );
        }
        while if reverse { at >= last } else { at <= last } {
            self.set(variable, Slot::from_i64(at));
            after_body!(self, self.block(body));
            let next = if reverse {
                at.checked_sub(step)
            } else {
                at.checked_add(step)
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Flow::Next
    }

    fn for_matching(
        &mut self,
        buffer: BufferId,
        matching: &[Match],
        row: &[Reg],
        body: &'a [Step],
    ) -> Flow {
        let width = self.program.buffers[buffer.0 as usize];
        let mut values = [Slot::NULL; MATCHES_MAX];
        let values = &mut values[..matching.len()];
        for (value, one) in values.iter_mut().zip(matching) {
            *value = self.get(one.value);
            if value.is_null() {
                return Flow::Next;
            }
        }
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let mut walk = buffers[buffer.0 as usize].matches(width, matching, values, &memory.heap);
        loop {
            let Frame {
                buffers, memory, ..
            } = &mut *self.frame;
            let rows = &buffers[buffer.0 as usize];
            let next = rows.next_match(&mut walk, width, matching, values, &memory.heap);
            let Some(at) = next else { break };
            for (column, register) in row.iter().enumerate() {
                memory.slots[register.0 as usize] = rows.rows[at * width + column];
            }
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    fn push_distinct(&mut self, buffer: BufferId, row: &[Reg], classes: &[Class]) -> bool {
        let Frame {
            buffers,
            memory: Memory { slots, heap },
            ..
        } = &mut *self.frame;
        let buffer = &mut buffers[buffer.0 as usize];
        let width = row.len();
        let rows = &mut buffer.rows;
        let position = rows.len() / width.max(1);
        rows.extend(row.iter().map(|register| slots[register.0 as usize]));
        let (old, new) = rows.split_at(position * width);
        let hash_row = |row: &[Slot]| {
            row.iter().zip(classes).fold(0_u64, |state, (slot, class)| {
                combine(state, frame::hash(heap, *class, *slot))
            })
        };
        let old_row = |at: usize| &old[at * width..(at + 1) * width];
        let equals = |at: usize| {
            old_row(at)
                .iter()
                .zip(new)
                .zip(classes)
                .all(|((a, b), class)| match (a.is_null(), b.is_null()) {
                    (false, false) => frame::compare(heap, *class, *a, *b).is_eq(),
                    (a, b) => a == b,
                })
        };
        let known = buffer
            .distinct
            .find_or_note(hash_row(new), position, equals, |at| hash_row(old_row(at)));
        if known.is_some() {
            rows.truncate(position * width);
        }
        known.is_none()
    }

    fn sort(&mut self, buffer: BufferId, by: &[SortKey]) {
        let width = self.program.buffers[buffer.0 as usize];
        let Frame {
            buffers, memory, ..
        } = &mut *self.frame;
        let buffer = &mut buffers[buffer.0 as usize];
        let rows = &buffer.rows;
        if width == 0 || rows.len() <= width {
            return;
        }
        let mut order: Vec<u32> = (0..(rows.len() / width) as u32).collect();
        order.sort_by(|&a, &b| {
            for key in by {
                let column = key.column as usize;
                let (a, b) = (
                    rows[a as usize * width + column],
                    rows[b as usize * width + column],
                );
                let ordering = match (a.is_null(), b.is_null()) {
                    (false, false) => {
                        let ordering = frame::compare(&memory.heap, key.class, a, b);
                        if key.descending {
                            ordering.reverse()
                        } else {
                            ordering
                        }
                    }
                    (a, b) if key.nulls_first => b.cmp(&a),
                    (a, b) => a.cmp(&b),
                };
                if ordering.is_ne() {
                    return ordering;
                }
            }
            std::cmp::Ordering::Equal
        });
        let sorted: Vec<Slot> = order
            .iter()
            .flat_map(|&row| &rows[row as usize * width..(row as usize + 1) * width])
            .copied()
            .collect();
        buffer.replace(sorted);
    }

    #[cold]
    fn raise(&mut self, error: &Failure) -> Flow {
        let error = self.error(error);
        attempt!(self, Err(error))
    }

    #[cold]
    fn error(&self, failure: &Failure) -> Error {
        let mut error = Error::new(failure.state, self.message(failure));
        let text = |source: &TextSource| match source {
            TextSource::Literal(text) => Some(text.clone()),
            TextSource::Register(register) => {
                let slot = self.get(*register);
                (!slot.is_null()).then(|| self.frame.memory.heap.str(slot).to_owned())
            }
        };
        if let Some(detail) = failure.detail.as_ref().and_then(text) {
            error = error.with_detail(detail);
        }
        if let Some(hint) = failure.hint.as_ref().and_then(text) {
            error = error.with_hint(hint);
        }
        if let Some(constraint) = &failure.constraint {
            error = error.with_constraint(constraint);
        }
        if let Some((line, column)) = failure.position {
            error = error.at(line, column);
        }
        error
    }

    fn message(&self, failure: &Failure) -> String {
        if failure.arguments.is_empty() {
            return failure.message.clone();
        }
        let mut arguments = failure.arguments.iter();
        let mut message = String::new();
        let mut characters = failure.message.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' {
                message.push(character);
            } else if characters.next_if_eq(&'%').is_some() {
                message.push('%');
            } else if let Some(register) = arguments.next() {
                let slot = self.get(*register);
                let heap = &self.frame.memory.heap;
                message.push_str(if slot.is_null() {
                    "<NULL>"
                } else {
                    heap.str(slot)
                });
            }
        }
        message
    }

    #[inline(always)]
    fn scalar(&mut self, instruction: &'a Instruction) -> Flow {
        match instruction {
            Instruction::Move { target, source } => self.set(*target, self.get(*source)),
            Instruction::SetNull { target } => self.set(*target, Slot::NULL),
            Instruction::Integer {
                op,
                width,
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    attempt!(self, integer(*op, *width, a.as_i64(), b.as_i64()))
                };
                self.set(*target, slot);
            }
            Instruction::Decimal {
                op,
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    let (a, b) = (a.as_decimal(), b.as_decimal());
                    let result = match op {
                        Arithmetic::Add => a.try_add(b),
                        Arithmetic::Subtract => a.try_sub(b),
                        Arithmetic::Multiply => a.try_mul(b),
                        Arithmetic::Divide => a.try_div(b),
                        Arithmetic::Remainder => a.try_rem(b),
                    };
                    Slot::from_decimal(attempt!(self, result))
                };
                self.set(*target, slot);
            }
            Instruction::Double {
                op,
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    Slot::from_f64(attempt!(self, double(*op, a.as_f64(), b.as_f64())))
                };
                self.set(*target, slot);
            }
            Instruction::Compare {
                op,
                class,
                target,
                left,
                right,
            } => {
                let slot = self.compare(*op, *class, self.get(*left), self.get(*right));
                self.set(*target, slot);
            }
            Instruction::IsNull {
                target,
                source,
                negated,
            } => {
                let null = self.get(*source).is_null();
                self.set(*target, Slot::from_bool(null != *negated));
            }
            Instruction::Not { target, source } => {
                let slot = self.get(*source);
                let slot = if slot.is_null() {
                    slot
                } else {
                    Slot::from_bool(!slot.as_bool())
                };
                self.set(*target, slot);
            }
            Instruction::And {
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let false_ = |slot: Slot| !slot.is_null() && !slot.as_bool();
                let slot = if false_(a) || false_(b) {
                    Slot::FALSE
                } else if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    Slot::TRUE
                };
                self.set(*target, slot);
            }
            Instruction::Or {
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if a.is_true() || b.is_true() {
                    Slot::TRUE
                } else if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    Slot::FALSE
                };
                self.set(*target, slot);
            }
            Instruction::IntegerToDecimal { target, source } => {
                let slot = self.get(*source);
                let slot = if slot.is_null() {
                    slot
                } else {
                    Slot::from_decimal(Decimal::from_i64(slot.as_i64()))
                };
                self.set(*target, slot);
            }
            Instruction::IntegerToDouble { target, source } => {
                let slot = self.get(*source);
                let slot = if slot.is_null() {
                    slot
                } else {
                    Slot::from_f64(slot.as_i64() as f64)
                };
                self.set(*target, slot);
            }
            Instruction::CheckWidth {
                width,
                target,
                source,
            } => {
                let slot = self.get(*source);
                if !slot.is_null() {
                    attempt!(self, fit(*width, slot.as_i64()));
                }
                self.set(*target, slot);
            }
            Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            } => {
                let slot = self.get(*source);
                let slot = if slot.is_null() {
                    slot
                } else {
                    let rescaled = slot.as_decimal().rescale(*precision, *scale);
                    Slot::from_decimal(attempt!(self, rescaled))
                };
                self.set(*target, slot);
            }
            Instruction::Concat {
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    self.frame.memory.heap.concat(a, b)
                };
                self.set(*target, slot);
            }
            Instruction::Element {
                target,
                array,
                index,
            } => {
                let (array, index) = (self.get(*array), self.get(*index));
                let slot = if Slot::either_null(array, index) {
                    Slot::NULL
                } else {
                    let position = index.as_i64().checked_sub(1);
                    let position = position.and_then(|position| usize::try_from(position).ok());
                    let elements = self.frame.memory.heap.array(array);
                    position
                        .and_then(|at| elements.get(at))
                        .copied()
                        .unwrap_or(Slot::NULL)
                };
                self.set(*target, slot);
            }
            Instruction::ArrayLength { target, array } => {
                let array = self.get(*array);
                let slot = if array.is_null() {
                    array
                } else {
                    Slot::from_i64(array.span().1 as i64)
                };
                self.set(*target, slot);
            }
            Instruction::Call {
                function,
                target,
                arguments,
                ..
            } => {
                let mut values = [Slot::NULL; ARGUMENTS_MAX];
                let values = &mut values[..arguments.len()];
                for (value, register) in values.iter_mut().zip(arguments) {
                    *value = self.get(*register);
                }
                let slot = attempt!(self, function(&mut self.frame.memory.heap, values));
                self.set(*target, slot);
            }
            Instruction::Require {
                condition,
                null_fails,
                error,
            } => {
                let slot = self.get(*condition);
                let fails = if slot.is_null() {
                    *null_fails
                } else {
                    !slot.as_bool()
                };
                if fails {
                    return self.raise(error);
                }
            }
            Instruction::RequireNotNull { source, error } => {
                if self.get(*source).is_null() {
                    return self.raise(error);
                }
            }
        }
        Flow::Next
    }

    #[inline(always)]
    fn compare(&self, op: Comparison, class: Class, left: Slot, right: Slot) -> Slot {
        if Slot::either_null(left, right) {
            let both = left.is_null() && right.is_null();
            return match op {
                Comparison::Distinct => Slot::from_bool(!both),
                Comparison::NotDistinct => Slot::from_bool(both),
                _ => Slot::NULL,
            };
        }
        let ordering = frame::compare(&self.frame.memory.heap, class, left, right);
        Slot::from_bool(match op {
            Comparison::Equal | Comparison::NotDistinct => ordering.is_eq(),
            Comparison::NotEqual | Comparison::Distinct => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        })
    }
}

/// The most arguments of a builtin; front ends combine longer lists.
pub const ARGUMENTS_MAX: usize = 16;

#[inline(always)]
fn fit(width: Width, value: i64) -> Result<(), Error> {
    let fits = match width {
        Width::Two => value == value as i16 as i64,
        Width::Four => value == value as i32 as i64,
        Width::Eight => true,
    };
    if fits {
        Ok(())
    } else {
        Err(out_of_range(width))
    }
}

#[cold]
fn out_of_range(width: Width) -> Error {
    let name = match width {
        Width::Two => "smallint",
        Width::Four => "integer",
        Width::Eight => "bigint",
    };
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{name} out of range"),
    )
}

#[cold]
fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[inline(always)]
fn integer(op: Arithmetic, width: Width, a: i64, b: i64) -> Result<Slot, Error> {
    let value = match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide if b == 0 => return Err(division_by_zero()),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Remainder if b == 0 => return Err(division_by_zero()),
        // The least integer modulo -1 is 0, whatever the machine thinks of the quotient.
        Arithmetic::Remainder => Some(a.wrapping_rem(b)),
    };
    let value = value.ok_or_else(|| out_of_range(width))?;
    fit(width, value)?;
    Ok(Slot::from_i64(value))
}

fn double(op: Arithmetic, a: f64, b: f64) -> Result<f64, Error> {
    let range = |message: &'static str| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
    let value = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        // PostgreSQL divides NaN by anything.
        Arithmetic::Divide | Arithmetic::Remainder if b == 0.0 && !a.is_nan() => {
            return Err(division_by_zero());
        }
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder => a % b,
    };
    if value.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(range("value out of range: overflow"));
    }
    let product = matches!(op, Arithmetic::Multiply | Arithmetic::Divide);
    if value == 0.0 && product && a != 0.0 && b.is_finite() && (b != 0.0) {
        return Err(range("value out of range: underflow"));
    }
    Ok(value)
}

/// PostgreSQL's error for a key that is there already; `value` gives the new row's columns.
#[cold]
pub fn unique_violation(
    table: &Table,
    index: usize,
    memory: &Memory,
    value: impl Fn(usize) -> Slot,
) -> Error {
    let definition = table.indexes()[index].definition();
    let schema = table.schema();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in &definition.columns {
        let column_definition = &schema.columns[column.index()];
        names.push(column_definition.name.clone());
        let value = frame::to_value(
            &memory.heap,
            value(column.index()),
            &column_definition.data_type,
        );
        values.push(kiln_storage::types::format_value(
            &value,
            &column_definition.data_type,
        ));
    }
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            definition.name
        ),
    )
    .with_detail(format!(
        "Key ({})=({}) already exists.",
        names.join(", "),
        values.join(", ")
    ))
    .with_constraint(definition.name.clone())
}
