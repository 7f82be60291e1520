//! What is left of a procedure when only its footprint is wanted.
//!
//! Protocols that plan want to know which records a call will touch before it runs. When its keys
//! follow from its arguments that takes no data at all; else it takes a *reconnaissance* (OLLP,
//! ORTHRUS §3.2, after Thomson et al.): the procedure is run without isolation and without effects,
//! and what it meets is noted. Here both are one thing: a program that has the look-ups and scans
//! of the procedure, and of the rest only what decides which records these meet. Of a procedure
//! whose keys follow from its arguments no read is left.
//!
//! # What is left out
//!
//! - results, notices, notifications, and checks but of what was found;
//! - inserts, unless something is done to the row that was in the way (ON CONFLICT);
//! - updates, unless a read that is left could see them;
//! - computations, reads and rows whose result no remaining step wants, those that could raise
//!   included.
//!
//! Where a key follows from a value of a sequence all values are drawn, and the run is given the
//! same ones.
//!
//! A reconnaissance of a procedure that catches errors leaves out only results, notices and
//! notifications: any step may decide which handler runs.
//!
//! Look-ups and scans keep their intents, so that the footprint says which records will be written.
//! Deletes stay: a loop may wait for its work to run out.
//!
//! A reconnaissance is a guess. It reads what may be changed before the call runs, and it may read
//! values that were never committed; the worker that runs the call guards the footprint.

use std::collections::BTreeSet;

use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::types::{DataType, Value};

use crate::analysis::Analysis;
use crate::ir::*;
use crate::names::{
    Use, for_each_step, for_each_step_mut, step_blocks_mut, step_operation, step_record,
    step_registers,
};
use crate::optimise::{self, Effects};
use crate::procedure::Procedure;
use crate::program::Program;

/// Which changes a reconnaissance keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Those that decide what is met.
    Unseen,
    /// Those that bring keys as well: inserts, of whose values those outside of all keys are NULL,
    /// and updates of indexed columns.
    OfKeys,
}

/// The reconnaissance of a procedure, `None` when what would be left breaks a rule of the IR: then
/// the procedure itself serves.
pub(crate) fn of(program: &Program, changes: Changes) -> Option<Program> {
    if program.regions > 0 {
        let mut left = copy(program);
        leave_errors(&mut left.body);
        return completed(left, program, changes);
    }
    [Checks::Found, Checks::All].into_iter().find_map(|checks| {
        let mut kept: Vec<OpId> = Vec::new();
        if changes == Changes::OfKeys {
            kept = updates_of_keys(program);
        }
        loop {
            let left = stripped(program, &kept, checks, changes);
            let missing = unseen_updates(program, &left, &kept);
            if missing.is_empty() {
                return completed(left, program, changes);
            }
            kept.extend(missing);
        }
    })
}

/// Which checks stay: a record may be used only where it was found, and what shows that to the
/// verifier is most often a check of the look-up's flag, now and then another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    Found,
    All,
}

/// The procedure, which leaves no checks to the end of the transaction.
fn copy(program: &Program) -> Procedure {
    Procedure {
        deferred: Vec::new(),
        ..program.procedure.clone()
    }
}

/// Takes out of a procedure that catches errors what raises none.
fn leave_errors(block: &mut Block) {
    block.retain_mut(|step| {
        for inner in step_blocks_mut(step).into_iter().flatten() {
            leave_errors(inner);
        }
        match step {
            Step::Emit { .. }
            | Step::Notice { .. }
            | Step::Notify { .. }
            | Step::Prefetch { .. } => false,
            Step::Scalar(instruction) => {
                set_no_sequence(instruction);
                true
            }
            _ => true,
        }
    });
}

/// A plan sets no sequence: what it has read is a guess.
fn set_no_sequence(instruction: &mut Instruction) {
    if let Instruction::Consult {
        function,
        target,
        arguments,
    } = instruction
        && let Some(argument) = function.result_argument()
    {
        let (target, source) = (*target, arguments[argument]);
        *instruction = Instruction::Move { target, source };
    }
}

/// The program without what a reconnaissance can do without, but with these updates.
fn stripped(program: &Program, kept: &[OpId], checks: Checks, changes: Changes) -> Procedure {
    let mut left = copy(program);
    let mut needed = Needed::of(&left.body, kept, checks);
    needed.inserts = changes == Changes::OfKeys;
    needed.strip(&mut left.body);
    if needed.inserts {
        leave_keys(&mut left);
    }
    let body = left.body.clone();
    optimise::remove_unused(&mut left, false);
    if left_draws(&left) {
        // A key follows from a value that is drawn. The run is given the values of the plan in
        // their order, so that the plan draws all.
        left.body = body;
        optimise::remove_unused(&mut left, true);
    }
    left
}

/// Whether a procedure draws from a sequence.
fn left_draws(procedure: &Procedure) -> bool {
    let mut draws = false;
    for_each_step(&procedure.body, &mut |step| {
        if let Step::Scalar(Instruction::Consult { function, .. }) = step {
            draws |= function.advances();
        }
    });
    draws
}

/// What is needed although it touches no record.
struct Needed<'a> {
    /// Updates that reads see.
    updates: &'a [OpId],
    /// The records that something other than an update or a delete works on.
    records: Vec<RecordReg>,
    /// The flags of look-ups.
    flags: Vec<Reg>,
    checks: Checks,
    /// Whether all inserts are.
    inserts: bool,
}

impl Needed<'_> {
    fn of<'a>(body: &[Step], updates: &'a [OpId], checks: Checks) -> Needed<'a> {
        let (mut records, mut flags) = (Vec::new(), Vec::new());
        for_each_step(body, &mut |step| match step {
            Step::Read { record, .. } | Step::SaveRecord { record, .. } => records.push(*record),
            Step::Lookup { found, .. } => flags.push(*found),
            _ => {}
        });
        Needed {
            updates,
            records,
            flags,
            checks,
            inserts: false,
        }
    }

    fn strip(&self, block: &mut Block) {
        block.retain_mut(|step| {
            for inner in step_blocks_mut(step).into_iter().flatten() {
                self.strip(inner);
            }
            match step {
                Step::Emit { .. }
                | Step::Notice { .. }
                | Step::Notify { .. }
                | Step::Prefetch { .. } => false,
                Step::Scalar(Instruction::Require { condition, .. }) => {
                    self.checks == Checks::All || self.flags.contains(condition)
                }
                Step::Scalar(Instruction::RequireNotNull { .. }) => self.checks == Checks::All,
                Step::Scalar(instruction @ Instruction::Consult { .. }) => {
                    set_no_sequence(instruction);
                    true
                }
                Step::Insert {
                    conflict: None,
                    record,
                    ..
                } => self.inserts || self.records.contains(record),
                Step::Update { op, .. } => self.updates.contains(op),
                Step::Raise { .. } => {
                    *step = Step::Return;
                    true
                }
                _ => true,
            }
        });
    }
}

/// The updates that move records to other keys.
fn updates_of_keys(program: &Program) -> Vec<OpId> {
    let mut updates = Vec::new();
    for_each_step(&program.body, &mut |step| {
        if let Step::Update {
            op, table, columns, ..
        } = step
        {
            let indexed = program.tables[table.0 as usize].indexed_columns();
            if columns.iter().any(|(column, _)| indexed.contains(*column)) {
                updates.push(*op);
            }
        }
    });
    updates
}

/// Keeps of the rows that are inserted only what is in keys: no step reads the rest, and it need
/// not be computed.
fn leave_keys(procedure: &mut Procedure) {
    let mut nulls: Vec<(DataType, Reg)> = Vec::new();
    let Procedure {
        body,
        tables,
        registers,
        constants,
        ..
    } = procedure;
    for_each_step_mut(body, &mut |step| {
        let Step::Insert {
            table,
            values,
            conflict: None,
            ..
        } = step
        else {
            return;
        };
        let indexed = tables[table.0 as usize].indexed_columns();
        for (column, value) in values.iter_mut().enumerate() {
            if indexed.contains(ColumnId(column as u16)) {
                continue;
            }
            let data_type = registers[value.0 as usize].clone();
            let known = nulls.iter().find(|(known, _)| *known == data_type);
            *value = match known {
                Some((_, register)) => *register,
                // There is no number left.
                None if registers.len() >= usize::from(u16::MAX) => *value,
                None => {
                    let register = Reg(registers.len() as u16);
                    registers.push(data_type.clone());
                    let value = Value::Null;
                    constants.push(Constant { register, value });
                    nulls.push((data_type, register));
                    register
                }
            };
        }
    });
}

/// The updates that were left out although a read that is left could see them.
fn unseen_updates(program: &Program, left: &Procedure, kept: &[OpId]) -> Vec<OpId> {
    let mut reads = vec![ColumnSet::default(); program.tables.len()];
    for_each_step(&left.body, &mut |step| {
        if let Step::Read { table, columns, .. } = step {
            let read: ColumnSet = columns.iter().map(|(column, _)| *column).collect();
            let known = &mut reads[table.0 as usize];
            *known = known.union(read);
        }
    });
    let mut unseen = Vec::new();
    for_each_step(&program.body, &mut |step| {
        if let Step::Update {
            op, table, columns, ..
        } = step
            && !kept.contains(op)
        {
            let written: ColumnSet = columns.iter().map(|(column, _)| *column).collect();
            if reads[table.0 as usize].intersects(written) {
                unseen.push(*op);
            }
        }
    });
    unseen
}

/// Lets what is left of `whole` know all that `whole` would fetch, as the records are met there
/// first, and the numbers by which `whole` knows the look-ups and scans that arguments decide.
/// `operations` are the numbers in `whole` of the operations that are left.
fn fetch_all(left: &mut Procedure, whole: &Program, operations: &[OpId]) {
    let mut fetched = Vec::new();
    for_each_step(&whole.body, &mut |step| {
        if let Step::Prefetch { lookups, .. } = step {
            let known = lookups.iter();
            fetched.extend(known.map(|lookup| (lookup.op, lookup.touched, lookup.ordinal)));
        }
    });
    (left.given, left.given_scans) = (Vec::new(), Vec::new());
    for (number, of) in operations.iter().enumerate() {
        let op = OpId(number as u16);
        let same = whole.given.iter().find(|(known, _)| known == of);
        left.given.extend(same.map(|(_, given)| (op, *given)));
        let same = whole.given_scans.iter().find(|(known, _)| known == of);
        (left.given_scans).extend(same.map(|(_, given)| (op, *given)));
    }
    for_each_step_mut(&mut left.body, &mut |step| {
        let Step::Prefetch { lookups, .. } = step else {
            return;
        };
        for lookup in lookups {
            let op = operations.get(lookup.op.0 as usize);
            let same = fetched.iter().find(|(fetched, ..)| Some(fetched) == op);
            let of_whole = same.and_then(|(.., ordinal)| *ordinal);
            lookup.ordinal = lookup.ordinal.and(of_whole);
            if let Some((_, touched, _)) = same {
                lookup.touched_by_all = lookup.touched.union(*touched);
            }
        }
    });
}

/// Has loops that do nothing but look-ups of known keys made where they are prefetched. `behind`
/// are the registers that are read behind the block; loops within loops have no ordinals.
fn meet_at_once(block: &mut Block, behind: &BTreeSet<Reg>) {
    let mut behind = behind.clone();
    for position in (0..block.len()).rev() {
        let (before, rest) = block.split_at_mut(position);
        let step = &mut rest[0];
        if let Some(Step::Prefetch {
            lookups, meets_all, ..
        }) = before.last_mut()
        {
            *meets_all = lookups.iter().all(|lookup| lookup.ordinal.is_some())
                && looks_up_only(step, lookups)
                && is_forgotten(step, &behind);
        }
        for inner in step_blocks_mut(step).into_iter().flatten() {
            meet_at_once(inner, &behind);
        }
        for_each_step(std::slice::from_ref(step), &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Read {
                    behind.insert(*register);
                }
            });
        });
    }
}

/// Whether a loop does nothing else than these look-ups, all of them in every iteration; it may end
/// when one finds nothing.
fn looks_up_only(counting: &Step, lookups: &[PrefetchLookup]) -> bool {
    let Step::ForRange { body, .. } = counting else {
        return false;
    };
    let made = body.iter();
    let made = made.filter(|step| matches!(step, Step::Lookup { .. }));
    made.count() == lookups.len()
        && body.iter().all(|step| match step {
            Step::Scalar(_) | Step::Lookup { .. } => true,
            Step::If {
                then, otherwise, ..
            } => {
                let mut inner = then.iter().chain(otherwise);
                inner.all(|step| matches!(step, Step::Scalar(_) | Step::Return))
            }
            _ => false,
        })
}

/// Whether no step behind a loop reads what the loop has computed.
fn is_forgotten(counting: &Step, behind: &BTreeSet<Reg>) -> bool {
    Effects::of(counting)
        .registers
        .iter()
        .all(|register| !behind.contains(register))
}

/// Makes what is left of `whole` a program that can be run, if it keeps the rules.
fn completed(mut left: Procedure, whole: &Program, changes: Changes) -> Option<Program> {
    // A delete or an update of a record that nothing finds any more cannot be.
    let mut found = Vec::new();
    for_each_step(&left.body, &mut |step| match step {
        Step::Lookup { record, .. }
        | Step::Scan { record, .. }
        | Step::Insert { record, .. }
        | Step::RestoreRecord { record, .. } => found.push(*record),
        _ => {}
    });
    let mut is_whole = true;
    for_each_step(&left.body, &mut |step| {
        is_whole &= step_record(step).is_none_or(|(record, _)| found.contains(&record));
    });
    if !is_whole {
        return None;
    }
    let mut operations = Vec::new();
    for_each_step(&left.body, &mut |step| {
        operations.extend(step_operation(step));
    });
    optimise::renumber_operations(&mut left);
    optimise::renumber_registers(&mut left);
    if crate::verify::verify(&left).is_err() {
        return None;
    }
    let mut analysis = Analysis::of(&left);
    for (number, of) in operations.iter().enumerate() {
        let op = OpId(number as u16);
        let observed = whole.analysis.observed(*of);
        analysis.take_over(op, observed);
    }
    optimise::add_prefetches(&mut left);
    fetch_all(&mut left, whole, &operations);
    // A planner that asks for keys needs the key of each look-up by itself.
    if changes == Changes::Unseen {
        meet_at_once(&mut left.body, &BTreeSet::new());
    }
    Some(Program::of(left, analysis))
}

impl Program {
    /// What finds out which records a call will touch, run by an access without effects; see
    /// the [module](self).
    pub fn reconnaissance(&self) -> &Program {
        let made = self
            .reconnaissance
            .get_or_init(|| of(self, Changes::Unseen).map(Box::new));
        made.as_deref().unwrap_or(self)
    }

    /// As [`Program::reconnaissance`], with the inserts and the updates of indexed columns: also
    /// finds out which keys a call will add.
    pub fn reconnaissance_with_keys(&self) -> &Program {
        let made = self
            .reconnaissance_with_keys
            .get_or_init(|| of(self, Changes::OfKeys).map(Box::new));
        made.as_deref().unwrap_or(self)
    }
}
