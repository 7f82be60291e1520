//! What a procedure does, known before it runs: which operation feeds which, which columns each
//! reads and writes, and whether its records can be named from the arguments alone.
//!
//! # Dependencies
//!
//! Operation *A* feeds operation *B* (THEDB's program dependency graph, healing §3) when what *A*
//! gives reaches *B* through registers, record handles, found flags and row buffers, and no
//! other operation lies between:
//!
//! - by [`KEY`](DependencyKinds::KEY), when it decides which record *B* touches: it reaches *B*'s
//!   key, its range, the handle that *B* works on, or a column of an index that *B* writes;
//! - by [`VALUE`](DependencyKinds::VALUE), when it reaches what *B* writes into other columns;
//! - by [`CONTROL`](DependencyKinds::CONTROL), when it decides whether, or how often, *B* runs:
//!   *B* is in a branch, a loop or a scan that *A* decides, or behind an EXIT, CONTINUE or RETURN
//!   that *A* decides. It counts as a key dependency ([`Dependency::is_key`]): the set of records
//!   touched changes with it. The paper leaves conditionals to its extended version; this is
//!   how they are treated here. A value assigned in a branch depends on what chose the branch.
//!   Steps that raise make no control dependency: what is behind them either runs as if they
//!   were not there, or nothing of the transaction remains. A protocol that repairs a transaction
//!   must evaluate them again all the same;
//! - by [`OWN_WRITE`](DependencyKinds::OWN_WRITE), when *A* writes columns, or inserts or deletes
//!   records, that *B* reads from the same table and *A* may run first. No register is involved,
//!   and whether it is the same record is known only at run time.
//!
//! Flow around loops is included; since operations are numbered in the order of the program, a
//! dependency on an operation with the same or a higher number is carried by a loop.
//!
//! # Footprint
//!
//! A footprint is the set of records and ranges that a call touches. An operation's part of it is
//! computable [`FromArguments`](Footprint::FromArguments) when the registers of its key (or, for
//! an operation on a record found before, of that look-up's key or that scan's range) depend on
//! no operation. Otherwise the values must be fetched first, by a *reconnaissance* (OLLP). Such a
//! footprint covers what the call may touch: operations in branches that are not taken are in
//! it, and [`Analysis::conditions`] says what decides them. A builtin whose result differs from
//! call to call counts as computable, so a guard at run time stays necessary.
//!
//! # What is observed
//!
//! | module | finds |
//! |---|---|
//! | [`updaters`] | updates whose old values no other step looks at: they can be deferred to the commit
//! |
//! | `determined` | whether a call that is made again on the same rows writes the same |
//! | `late` | whether the rows that it inserts can stay out of the indexes until it commits |
//! | `observed` | the columns of a record that a transaction looks at, with and without these |
//! | `dependents` | which steps run again when an operation gives something else |
//!
//! What several procedures have to do with each other is in [`workload`](crate::workload).

mod dataflow;
pub(crate) mod dependents;
mod determined;
mod late;
mod observed;
pub mod updaters;

use kiln_storage::schema::ColumnSet;

pub use crate::names;
pub use observed::Observed;
pub use updaters::{ColumnVerdict, DeferredUpdate, Observer, Reason, UpdaterSource, Verdict};

use crate::ir::*;
use crate::procedure::Procedure;

/// What is known of a procedure; see the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    operations: Vec<OperationFacts>,
    dependencies: Vec<Dependency>,
    deferrable: Vec<DeferredUpdate>,
    verdicts: Vec<ColumnVerdict>,
    observed: Vec<Observed>,
    inserts_late: bool,
    is_deterministic: bool,
    draws: bool,
    advances: bool,
}

/// What is known of one operation.
#[derive(Clone, Debug)]
pub struct OperationFacts {
    /// What it does.
    pub kind: OperationKind,
    /// The columns by which it finds its record or range, or, for an insert, a delete and an
    /// update, the indexed columns that it writes.
    pub key_columns: ColumnSet,
    /// The columns whose values it takes from the record.
    pub columns_read: ColumnSet,
    /// The columns that it writes: all of them for inserts and deletes.
    pub columns_written: ColumnSet,
    /// The look-ups, scans and inserts that found the record it works on; none for operations
    /// that find one.
    pub found_by: Vec<OpId>,
    /// Whether it lies in a loop and so may run several times.
    pub repeats: bool,
    /// Whether its records can be named before the call runs.
    pub footprint: Footprint,
}

/// Whether the records of an operation, or of a whole procedure, can be named before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// From the call's arguments and constants alone.
    FromArguments,
    /// Only with data out of the database.
    NeedsReconnaissance {
        /// The first operation whose data is needed.
        because_of: OpId,
    },
}

/// That one operation feeds another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The operation that gives.
    pub from: OpId,
    /// The operation that takes.
    pub to: OpId,
    /// In which ways; never none.
    pub kinds: DependencyKinds,
}

impl Dependency {
    /// Whether it decides which records are touched: by key or by control.
    pub fn is_key(&self) -> bool {
        self.kinds
            .intersects(DependencyKinds::KEY.union(DependencyKinds::CONTROL))
    }

    /// Whether it decides what is written.
    pub fn is_value(&self) -> bool {
        self.kinds.intersects(DependencyKinds::VALUE)
    }

    /// Whether what is taken comes from an earlier iteration of a loop around both.
    pub fn is_loop_carried(&self) -> bool {
        self.from >= self.to
    }
}

/// A set of the ways in which one operation feeds another; see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependencyKinds(u8);

impl DependencyKinds {
    /// No way at all.
    pub const NONE: DependencyKinds = DependencyKinds(0);
    /// It decides which record is touched.
    pub const KEY: DependencyKinds = DependencyKinds(1);
    /// It decides what is written.
    pub const VALUE: DependencyKinds = DependencyKinds(2);
    /// It decides whether or how often the operation runs.
    pub const CONTROL: DependencyKinds = DependencyKinds(4);
    /// It writes what is read, through the table.
    pub const OWN_WRITE: DependencyKinds = DependencyKinds(8);

    /// The ways of either set.
    pub const fn union(self, other: DependencyKinds) -> DependencyKinds {
        DependencyKinds(self.0 | other.0)
    }

    /// Whether a way is in both sets.
    pub const fn intersects(self, other: DependencyKinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl Analysis {
    /// Analyses a verified program.
    pub fn of(procedure: &Procedure) -> Analysis {
        let mut analysis = dataflow::analyse(procedure);
        (analysis.deferrable, analysis.verdicts) = updaters::derive(procedure);
        analysis.observed = observed::derive(procedure, &analysis);
        analysis.inserts_late = late::inserts_late(procedure, &analysis);
        analysis.is_deterministic = determined::is_deterministic(procedure);
        (analysis.draws, analysis.advances) = determined::draws_and_advances(procedure);
        analysis
    }

    /// The same, of a program none of whose updates are deferred to the commit.
    pub(crate) fn without_deferral(&self) -> Analysis {
        Analysis {
            deferrable: Vec::new(),
            ..self.clone()
        }
    }

    /// The updates that can be deferred to the commit, in order of their operations.
    pub fn deferrable(&self) -> &[DeferredUpdate] {
        &self.deferrable
    }

    /// How `op` can be deferred to the commit, if it can.
    pub fn deferral_of(&self, op: OpId) -> Option<&DeferredUpdate> {
        self.deferrable.iter().find(|update| update.op == op)
    }

    /// For every column that an update writes, whether it can be deferred to the commit, and why
    /// not.
    pub fn verdicts(&self) -> &[ColumnVerdict] {
        &self.verdicts
    }

    /// Which columns of the records that `op` finds the procedure observes; none for operations
    /// that find no record.
    pub fn observed(&self, op: OpId) -> Observed {
        self.observed
            .get(op.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Takes over what another program's operation does to the records that it finds, for the
    /// operation that is left of it in a reconnaissance, whose updates are not.
    pub(crate) fn take_over(&mut self, op: OpId, of: Observed) {
        if let Some(observed) = self.observed.get_mut(op.0 as usize) {
            (observed.is_deferred, observed.touched) = (of.is_deferred, of.touched);
        }
    }

    /// Whether the procedure inserts rows that nothing in it looks for: they need not be in an
    /// index before it commits.
    pub fn inserts_late(&self) -> bool {
        self.inserts_late
    }

    /// Whether a call that is made again with the same arguments on the same rows writes the same:
    /// it asks neither a clock nor for random numbers, and takes no row numbers. So a log may keep
    /// the call in place of what it wrote.
    pub fn is_deterministic(&self) -> bool {
        self.is_deterministic
    }

    /// Whether it draws values from sequences, or asks what its session has drawn.
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Whether it changes how far a sequence has got: it may not run where nothing may be changed,
    /// although it may change no row.
    pub fn advances(&self) -> bool {
        self.advances
    }

    /// The facts of every operation, by [`OpId`].
    pub fn operations(&self) -> &[OperationFacts] {
        &self.operations
    }

    /// The facts of one operation.
    ///
    /// # Panics
    /// When the program has no such operation.
    pub fn operation(&self, op: OpId) -> &OperationFacts {
        &self.operations[op.0 as usize]
    }

    /// All dependencies, ordered by the operation that takes, then by the one that gives.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// What feeds `op`, in order of the operations that give.
    pub fn dependencies_of(&self, op: OpId) -> &[Dependency] {
        let first = self
            .dependencies
            .partition_point(|dependency| dependency.to < op);
        let last = self
            .dependencies
            .partition_point(|dependency| dependency.to <= op);
        &self.dependencies[first..last]
    }

    /// What `op` feeds.
    pub fn dependents_of(&self, op: OpId) -> impl Iterator<Item = &Dependency> {
        self.dependencies
            .iter()
            .filter(move |dependency| dependency.from == op)
    }

    /// How `from` feeds `to`; no way when it does not.
    pub fn between(&self, from: OpId, to: OpId) -> DependencyKinds {
        let mut into = self.dependencies_of(to).iter();
        into.find(|dependency| dependency.from == from)
            .map(|found| found.kinds)
            .unwrap_or_default()
    }

    /// The operations that decide whether or how often `op` runs.
    pub fn conditions(&self, op: OpId) -> impl Iterator<Item = OpId> {
        let control =
            |dependency: &&Dependency| dependency.kinds.intersects(DependencyKinds::CONTROL);
        self.dependencies_of(op)
            .iter()
            .filter(control)
            .map(|dependency| dependency.from)
    }

    /// Whether all records that the procedure may touch can be named before it runs; healing §4.6
    /// calls it an independent transaction then.
    pub fn footprint(&self) -> Footprint {
        let needed = self
            .operations
            .iter()
            .filter_map(|facts| match facts.footprint {
                Footprint::FromArguments => None,
                Footprint::NeedsReconnaissance { because_of } => Some(because_of),
            });
        match needed.min() {
            None => Footprint::FromArguments,
            Some(because_of) => Footprint::NeedsReconnaissance { because_of },
        }
    }

    /// Whether the procedure writes nothing.
    pub fn is_read_only(&self) -> bool {
        self.operations.iter().all(|facts| {
            matches!(
                facts.kind,
                OperationKind::Lookup | OperationKind::Scan | OperationKind::Read
            )
        })
    }
}
