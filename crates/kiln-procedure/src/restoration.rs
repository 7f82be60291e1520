//! What of a program runs again when a record that it has met turns out to have changed (healing
//! §4.2).
//!
//! A protocol that heals knows the operation that met the record. The steps that depend on it
//! ([`dependents`](crate::analysis) says which) are lowered once more, to code of their own,
//! without the others. It runs over the frame that the attempt has left: what is not computed anew
//! is there.
//!
//! Made when a protocol first asks, once a program and operation, and kept with the program.

use kiln_platform::sync::OnceLock;
use kiln_storage::schema::{ColumnSet, TableId};

use crate::analysis::Analysis;
use crate::analysis::dependents::{Dependents, Steps};
use crate::code::Code;
pub use crate::ir::OpSet;
use crate::ir::*;
use crate::names::{for_each_step, step_blocks_mut, step_operation, step_registers};
use crate::procedure::Procedure;

/// What has changed of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Values of columns that were read.
    Values,
    /// Whether there is a row under the key by which it was found.
    Presence,
}

/// What a restoration writes of a table.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The table.
    pub table: TableId,
    /// The columns that its updates write.
    pub updated: ColumnSet,
    /// Whether it inserts rows.
    pub inserts: bool,
    /// Whether it deletes rows.
    pub deletes: bool,
}

/// The part of a program that runs again; see the [module](self).
#[derive(Debug)]
pub struct Restoration {
    /// The operations that run again.
    pub runs: OpSet,
    /// Those of them that may find, give or do something else than they did. The others give again
    /// what they gave: what these take is not in the frame any more.
    pub changed: OpSet,
    /// What is written anew. Of a table that is here, nothing else of the program writes the same
    /// columns, or inserts or deletes rows if this does: it can be taken back first, and come
    /// again.
    pub rewritten: Vec<Rewritten>,
    /// Whether a look-up or a scan may find other records.
    pub finds: bool,
    /// Whether an update is concerned that can be deferred to the commit, or a read that is left
    /// out then: an attempt that does so has run other steps.
    pub concerns_deferred: bool,
    /// Whether all that the program emits is emitted anew, and all notices and notifications.
    pub emits: bool,
    pub(crate) notices: bool,
    /// Constants that the program puts into their registers only where its code needs them.
    pub(crate) constants: Vec<Constant>,
    pub(crate) code: Code,
}

/// The restorations of a program, by operation and change.
#[derive(Debug, Default)]
pub struct Restorations(OnceLock<Box<[[OnceLock<Restoration>; 2]]>>);

/// A program of which a part may run again.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub procedure: &'a Procedure,
    pub analysis: &'a Analysis,
    pub code: &'a Code,
}

impl Restorations {
    /// What runs again of their program when a record that `op` has met has changed.
    pub(crate) fn of(&self, program: Whole<'_>, op: OpId, change: Change) -> &Restoration {
        let all = self.0.get_or_init(|| {
            let operations = program.procedure.operations.iter();
            operations.map(|_| Default::default()).collect()
        });
        all[op.0 as usize][change as usize].get_or_init(|| Restoration::of(program, op, change))
    }
}

impl Restoration {
    fn of(program: Whole<'_>, op: OpId, change: Change) -> Restoration {
        let steps = Steps::of(program.procedure);
        let is_seed = |step: &Step| match change {
            Change::Presence => step_operation(step) == Some(op),
            Change::Values => match step {
                Step::Read { op: read, .. } => {
                    let facts = program.analysis.operation(*read);
                    facts.found_by.contains(&op)
                }
                _ => false,
            },
        };
        let seeds = steps.iter().filter(|(_, step)| is_seed(step));
        let seeds: Vec<usize> = seeds.map(|(number, _)| number).collect();
        let dependents = steps.dependents(&seeds);
        let mut restoration = Restoration {
            runs: OpSet::default(),
            changed: OpSet::default(),
            rewritten: Vec::new(),
            finds: false,
            concerns_deferred: false,
            emits: false,
            notices: false,
            constants: Vec::new(),
            code: Code::default(),
        };
        for (number, step) in steps.iter() {
            if dependents.runs[number] {
                restoration.note(program, step, dependents.has_changed[number]);
            }
        }
        restoration.note_deferred(program, op, &steps, &dependents);
        restoration.lower(program, &dependents);
        restoration
    }

    /// Takes a step that runs again into account.
    fn note(&mut self, program: Whole<'_>, step: &Step, has_changed: bool) {
        if let Some(op) = step_operation(step) {
            self.runs.insert(op);
            if has_changed {
                self.changed.insert(op);
            }
        }
        match step {
            Step::Lookup { .. } | Step::Scan { .. } => self.finds |= has_changed,
            Step::Emit { .. } => self.emits = true,
            Step::Notice { .. } | Step::Notify { .. } => self.notices = true,
            Step::Update { table, columns, .. } => {
                let updated: ColumnSet = columns.iter().map(|(column, _)| *column).collect();
                let rewritten = self.rewritten_of(program, *table);
                rewritten.updated = rewritten.updated.union(updated);
            }
            Step::Insert { table, .. } => self.rewritten_of(program, *table).inserts = true,
            Step::Delete { table, .. } => self.rewritten_of(program, *table).deletes = true,
            _ => {}
        }
    }

    fn rewritten_of(&mut self, program: Whole<'_>, table: TableRef) -> &mut Rewritten {
        let table = program.procedure.tables[table.0 as usize].id();
        let mut known = self.rewritten.iter();
        let known = known.position(|rewritten| rewritten.table == table);
        let position = known.unwrap_or_else(|| {
            self.rewritten.push(Rewritten {
                table,
                updated: ColumnSet::EMPTY,
                inserts: false,
                deletes: false,
            });
            self.rewritten.len() - 1
        });
        &mut self.rewritten[position]
    }

    fn note_deferred(
        &mut self,
        program: Whole<'_>,
        op: OpId,
        steps: &Steps<'_>,
        dependents: &Dependents,
    ) {
        let analysis = program.analysis;
        let finds = |update: OpId| analysis.operation(update).found_by.contains(&op);
        for deferred in analysis.deferrable() {
            let mut numbered = steps.iter();
            let update = numbered.find(|(_, step)| step_operation(step) == Some(deferred.op));
            let (update, _) = update.expect("every operation has a step");
            let region = steps.before(update, deferred.elided.len())..update + 1;
            self.concerns_deferred |= finds(deferred.op) || dependents.runs[region].contains(&true);
        }
    }

    fn lower(&mut self, program: Whole<'_>, dependents: &Dependents) {
        let mut part = Procedure {
            given: Vec::new(),
            given_scans: Vec::new(),
            ..program.procedure.clone()
        };
        strip(&mut part.body, &mut dependents.runs.iter());
        let analysis = program.analysis.without_deferral();
        let rare = program.code.rare_constants.iter().flatten();
        let mut rare: Vec<Constant> = rare.cloned().collect();
        rare.dedup_by_key(|constant| constant.register);
        for_each_step(&part.body, &mut |step| {
            step_registers(step, &mut |register, _| {
                let of = |constant: &&Constant| constant.register == *register;
                let known = self.constants.iter().any(|constant| of(&constant));
                if let Some(constant) = rare.iter().find(of)
                    && !known
                {
                    self.constants.push(constant.clone());
                }
            });
        });
        self.code = Code::part_of(&part, &analysis, &self.changed);
    }
}

/// Takes the steps out that do not run again; `runs` says of each in the order of the program
/// whether it does.
fn strip<'a>(block: &mut Block, runs: &mut impl Iterator<Item = &'a bool>) {
    block.retain_mut(|step| {
        let stays = *runs.next().expect("a flag for each step");
        for inner in step_blocks_mut(step).into_iter().flatten() {
            strip(inner, runs);
        }
        // What it asks for is in the frame, or was for other keys.
        stays && !matches!(step, Step::Prefetch { .. })
    });
}
