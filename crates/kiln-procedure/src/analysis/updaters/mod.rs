//! Which updates can be deferred to the commit (STO §6.1), and why the others cannot.
//!
//! # What is looked for
//!
//! An update of a record whose old column values reach, through registers, only the new values of
//! that same update. Then nothing else of the transaction depends on them, and the update can be
//! kept as an [`Updater`](crate::Updater) with its operands and run when the transaction holds the record's lock.
//!
//! ```text
//!   read stock: s_ytd, s_data                      read stock: s_data
//!   x := s_ytd + quantity               ──►        defer s_ytd := s_ytd + quantity
//!   update stock: s_ytd := x
//! ```
//!
//! The steps before an update in its block, back to the last one that is neither a computation nor
//! a read, are its *region*: nothing in it writes to a table, so that reading the old value later
//! is the same as reading it there. A step of the region is *elided* when it takes an old value
//! that is deferred to the commit. Only elided steps and the update may take what such a step
//! writes. What else the updater needs is captured when the update comes: its *operands*.
//!
//! A column is *observed*, and read as ever, when its old or its new value goes anywhere else: into
//! the result (RETURNING), another operation's key or value, a branch around other steps. Its new
//! value is an operand then. So one update may be deferred to the commit in part.
//!
//! # Existence
//!
//! Whether the row is there decides `FOUND` and what follows. The look-up answers that at once, and
//! the write itself holds it: a protocol refuses to lock a record that has become absent or dead.
//!
//! # Errors, CHECK and NOT NULL
//!
//! A procedure that catches errors leaves no update to the commit. In all others an error ends the
//! call, and nothing of the transaction remains. So it makes no difference whether an updater
//! raises when the procedure gets there or when the transaction commits, as long as the same error
//! is reported. That holds because:
//!
//! - updaters run in the order of their updates, and the first that raises decides;
//! - when the procedure itself raises, the updaters that were kept before are run first
//!   ([`Deferring::confirm_raise`](crate::access::Deferring::confirm_raise));
//! - within a region, a step that may raise and follows an elided one that may raise goes into the
//!   updater too, or else the update is not deferred to the commit;
//! - a procedure that sends a NOTICE keeps its updates that may raise: PostgreSQL would not have
//!   sent what comes behind the error.
//!
//! So arithmetic errors and a CHECK *move to the commit*. NOT NULL is *proven* where it can be: a
//! sum is NULL only if an operand is, as the old value is not by its own NOT NULL. The operands are
//! looked at when the update comes ([`DeferredUpdate::guard`]), and if one is NULL the update runs
//! as ever. Else the test moves to the commit as well.
//!
//! An *indexed* column is never deferred to the commit: its entry moves when the update runs, which
//! takes the old key and the new one.

mod build;
mod region;
mod simplify;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::sync::Arc;
use kiln_storage::schema::{ColumnId, ColumnSet};

use super::names::{Use, for_each_step, step_blocks, step_registers};
use crate::ir::*;
use crate::procedure::Procedure;

pub use source::UpdaterSource;

/// An update that can be deferred to the commit.
#[derive(Clone, Debug)]
pub struct DeferredUpdate {
    /// The update.
    pub op: OpId,
    /// The columns deferred to the commit; the others are indexed and written at once.
    pub columns: ColumnSet,
    /// The columns of reads of the record that need not be read.
    pub unread: Vec<(OpId, ColumnSet)>,
    /// Registers none of which may be NULL; if one is, the update runs as ever.
    pub guard: Box<[Reg]>,
    /// The registers that hold the updater's operands when the update comes.
    pub operands: Box<[Reg]>,
    /// What it does.
    pub updater: Arc<UpdaterSource>,
    /// For each step of its region, in order, whether it is left out: those directly before the
    /// update in its block.
    pub(crate) elided: Box<[bool]>,
}

/// What was found about one column that an update writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnVerdict {
    /// The update.
    pub op: OpId,
    /// The column.
    pub column: ColumnId,
    /// The columns of the same record that its new value is computed from.
    pub from: ColumnSet,
    /// What was found.
    pub verdict: Verdict,
}

/// Whether a column of an update can be deferred to the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its new value takes no old one of the record: written without having been looked at.
    Blind,
    /// Its new value takes old ones, and is computed at commit.
    Deferred {
        /// Whether computing it may raise, at commit then.
        can_raise: bool,
        /// Whether a NOT NULL was proven from the operands.
        not_null_proven: bool,
    },
    /// Its new value takes old ones that are looked at elsewhere too.
    Observed(Vec<Observer>),
}

/// A use of a column's old or new value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Observer {
    /// The column whose old value it was that reached it.
    pub column: ColumnId,
    /// In which way.
    pub reason: Reason,
}

/// In which way a value is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It reaches the result.
    Returned,
    /// It decides which record an operation finds.
    Key(OpId),
    /// It is written by another operation.
    Written(OpId),
    /// It is written into an indexed column, whose entry moves at once.
    Indexed(OpId),
    /// It decides which steps run.
    Branch,
    /// It reaches a row buffer or an error message.
    Kept,
    /// Several steps use the register, in an order that the commit would change.
    Order,
    /// The update may raise, and the procedure sends notices.
    Notice,
    /// It was read by an earlier statement, this operation.
    ReadApart(OpId),
    /// The procedure catches errors, which must come where the update stands.
    Protected,
}

/// Finds the updates that can be deferred to the commit, and a verdict for every column of every
/// update, in order of the operations.
pub(super) fn derive(procedure: &Procedure) -> (Vec<DeferredUpdate>, Vec<ColumnVerdict>) {
    let mut readers: Vec<Vec<&Step>> = vec![Vec::new(); procedure.registers.len()];
    let mut notices = false;
    for_each_step(&procedure.body, &mut |step| {
        notices |= matches!(step, Step::Notice { .. });
        step_registers(step, &mut |register, usage| {
            if usage == Use::Read {
                readers[register.0 as usize].push(step);
            }
        });
    });
    let mut derivation = Derivation {
        procedure,
        readers,
        notices,
        deferred: Vec::new(),
        verdicts: Vec::new(),
    };
    derivation.block(&procedure.body);
    let Derivation {
        mut deferred,
        mut verdicts,
        ..
    } = derivation;
    if procedure.regions > 0 {
        deferred.clear();
        for ColumnVerdict {
            column, verdict, ..
        } in &mut verdicts
        {
            if matches!(verdict, Verdict::Deferred { .. }) {
                let (column, reason) = (*column, Reason::Protected);
                *verdict = Verdict::Observed(vec![Observer { column, reason }]);
            }
        }
    }
    deferred.sort_by_key(|update| update.op);
    verdicts.sort_by_key(|verdict| (verdict.op, verdict.column));
    (deferred, verdicts)
}

struct Derivation<'a> {
    procedure: &'a Procedure,
    /// The steps that read each register.
    readers: Vec<Vec<&'a Step>>,
    /// Whether the procedure sends notices.
    notices: bool,
    deferred: Vec<DeferredUpdate>,
    verdicts: Vec<ColumnVerdict>,
}

/// An update and the steps before it.
struct Candidate<'a> {
    op: OpId,
    table: TableRef,
    record: RecordReg,
    columns: &'a [(ColumnId, Reg)],
    region: &'a [Step],
    /// Columns that are indexed or not the update's business.
    indexed: ColumnSet,
}

/// The old columns that a register's value comes from.
type Taints = BTreeMap<Reg, ColumnSet>;

fn is_pure(step: &Step) -> bool {
    match step {
        Step::Scalar(_) => true,
        Step::If {
            then, otherwise, ..
        } => then.iter().all(is_pure) && otherwise.iter().all(is_pure),
        _ => false,
    }
}

/// Whether a step may lie between the reading of the old values and the update.
fn belongs_to_region(step: &Step) -> bool {
    match step {
        Step::Scalar(_) | Step::Read { .. } => true,
        Step::If {
            then, otherwise, ..
        } => then.iter().chain(otherwise).all(belongs_to_region),
        _ => false,
    }
}

/// The registers that a step and those in it read and write.
fn registers_of(step: &Step) -> (BTreeSet<Reg>, BTreeSet<Reg>) {
    let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
    for_each_step(std::slice::from_ref(step), &mut |step| {
        step_registers(step, &mut |register, usage| {
            match usage {
                Use::Read => read.insert(*register),
                Use::Write => written.insert(*register),
            };
        });
    });
    (read, written)
}

fn instruction_can_raise(instruction: &Instruction) -> bool {
    use Instruction as I;
    !matches!(
        instruction,
        I::Move { .. }
            | I::SetNull { .. }
            | I::Compare { .. }
            | I::IsNull { .. }
            | I::AnyNull { .. }
            | I::Not { .. }
            | I::And { .. }
            | I::Or { .. }
            | I::IntegerToDecimal { .. }
            | I::IntegerToDouble { .. }
            | I::Element { .. }
            | I::ArrayLength { .. }
    )
}

fn can_raise(steps: &[Step]) -> bool {
    let mut raises = false;
    for_each_step(steps, &mut |step| match step {
        Step::Scalar(instruction) => raises |= instruction_can_raise(instruction),
        Step::If { .. } | Step::Read { .. } => {}
        _ => raises = true,
    });
    raises
}
impl<'a> Derivation<'a> {
    fn block(&mut self, block: &'a [Step]) {
        for (position, step) in block.iter().enumerate() {
            if let Step::Update {
                op,
                table,
                record,
                columns,
            } = step
            {
                let start = block[..position]
                    .iter()
                    .rposition(|step| !belongs_to_region(step))
                    .map_or(0, |last| last + 1);
                let indexed = self.procedure.tables[table.0 as usize].indexed_columns();
                self.update(&Candidate {
                    op: *op,
                    table: *table,
                    record: *record,
                    columns,
                    region: &block[start..position],
                    indexed,
                });
            }
            for inner in step_blocks(step) {
                self.block(inner);
            }
        }
    }

    fn update(&mut self, update: &Candidate<'a>) {
        let everything = taints_of(update, ColumnSet::EMPTY);
        let mut observers: BTreeSet<Observer> = BTreeSet::new();
        // The indexed columns that it writes are read when their entries move.
        let changed: ColumnSet = update.columns.iter().map(|(column, _)| *column).collect();
        let mut observed = ColumnSet::EMPTY;
        for (column, register) in update.columns {
            if update.indexed.contains(*column) {
                observed.insert(*column);
                for from in everything.get(register).copied().unwrap_or_default().iter() {
                    observed.insert(from);
                    let reason = Reason::Indexed(update.op);
                    observers.insert(Observer {
                        column: from,
                        reason,
                    });
                }
            }
        }
        let elided = loop {
            let (elided, found) = self.elide(update, observed);
            if found.is_empty() {
                break elided;
            }
            for observer in found {
                observed.insert(observer.column);
                observers.insert(observer);
            }
        };
        let taints = taints_of(update, observed);
        let left: ColumnSet = taints_into(&taints, update);
        let built = match left.is_empty() {
            true => None,
            false => self.build(update, &taints, &elided, changed, observed),
        };
        for (column, register) in update.columns {
            let from = everything.get(register).copied().unwrap_or_default();
            let deferred = taints.get(register).copied().unwrap_or_default();
            let verdict = match &built {
                _ if from.is_empty() => match self.read_apart(update, *register) {
                    Some(op) => Verdict::Observed(vec![Observer {
                        column: *column,
                        reason: Reason::ReadApart(op),
                    }]),
                    None => Verdict::Blind,
                },
                Some((built, proven)) if !deferred.is_empty() => Verdict::Deferred {
                    can_raise: built.updater.can_raise(),
                    not_null_proven: *proven,
                },
                _ => {
                    let mut of_column: Vec<Observer> = observers
                        .iter()
                        .filter(|observer| from.contains(observer.column))
                        .cloned()
                        .collect();
                    if of_column.is_empty() {
                        of_column.push(Observer {
                            column: *column,
                            reason: Reason::Order,
                        });
                    }
                    Verdict::Observed(of_column)
                }
            };
            self.verdicts.push(ColumnVerdict {
                op: update.op,
                column: *column,
                from,
                verdict,
            });
        }
        self.deferred.extend(built.map(|(built, _)| built));
    }
}

/// The old columns of the update's record, but for those in `observed`, that each register's value
/// may come from. What once took an old value counts so for good.
fn taints_of(update: &Candidate<'_>, observed: ColumnSet) -> Taints {
    let mut taints = Taints::new();
    for step in update.region {
        if let Step::Read {
            record, columns, ..
        } = step
        {
            for (column, register) in columns {
                if *record == update.record && !observed.contains(*column) {
                    let known = taints.entry(*register).or_default();
                    known.insert(*column);
                }
            }
            continue;
        }
        let (read, written) = registers_of(step);
        let taken = read
            .iter()
            .filter_map(|register| taints.get(register))
            .fold(ColumnSet::EMPTY, |all, set| all.union(*set));
        if !taken.is_empty() {
            for register in written {
                let known = taints.entry(register).or_default();
                *known = known.union(taken);
            }
        }
    }
    taints
}

/// The old columns that the update's new values come from.
fn taints_into(taints: &Taints, update: &Candidate<'_>) -> ColumnSet {
    let values = update.columns.iter();
    values
        .filter_map(|(_, register)| taints.get(register))
        .fold(ColumnSet::EMPTY, |all, set| all.union(*set))
}
