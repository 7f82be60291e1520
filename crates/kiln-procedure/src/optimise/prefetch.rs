//! Fetches the records of a loop before the loop: when its look-ups depend on arguments alone,
//! their cache misses can overlap instead of following each other.
//!
//! Found are counting loops whose body looks keys up that are made of the loop's variable, of
//! elements of arrays at that variable, and of registers that the loop does not write. For each
//! such loop a [`Step::Prefetch`] is put before it, which computes the keys of a bounded number
//! of iterations, asks for the index entries of all of them, and then for the cache lines of their
//! records that the body reads or writes. It changes nothing and relies on nothing: what it
//! finds may be outdated when the loop comes there.

use kiln_storage::record::Words;

use super::effects::Effects;
use crate::ir::*;
use crate::names::{for_each_step, step_blocks_mut};
use crate::procedure::Procedure;

/// Look-ups of a program that get ordinals at most: what is found for them is kept by these.
pub(crate) const ORDINALS_MAX: u16 = 64;

/// Puts prefetches before the loops that can use them, and numbers the look-ups that arguments
/// decide: those of the loops, and those outside of all loops.
pub fn add_prefetches(procedure: &mut Procedure) {
    let mut body = std::mem::take(&mut procedure.body);
    let mut adding = Adding {
        procedure,
        ordinals: 0,
        given: Vec::new(),
    };
    adding.block(&mut body, true);
    let (ordinal, given) = (adding.ordinals, adding.given);
    procedure.body = body;
    if ordinal < ORDINALS_MAX {
        let iterations = 0..PREFETCH_ITERATIONS_MAX as u16;
        let numbered = given.into_iter().zip(iterations);
        let numbered = numbered.map(|(op, iteration)| (op, GivenLookup { ordinal, iteration }));
        procedure.given = numbered.collect();
    }
}

struct Adding<'a> {
    procedure: &'a Procedure,
    /// Look-ups of loops that arguments decide, so far.
    ordinals: u16,
    /// Such look-ups outside of loops.
    given: Vec<OpId>,
}

impl Adding<'_> {
    /// `is_once`: whether the block is run once at most.
    fn block(&mut self, steps: &mut Block, is_once: bool) {
        for step in steps.iter_mut() {
            let is_once = is_once && matches!(step, Step::If { .. });
            for inner in step_blocks_mut(step).into_iter().flatten() {
                self.block(inner, is_once);
            }
        }
        if is_once {
            let given = steps.iter().filter_map(|step| match step {
                Step::Lookup { op, key, .. }
                    if key.iter().all(|part| self.procedure.is_given(*part)) =>
                {
                    Some(*op)
                }
                _ => None,
            });
            let given: Vec<OpId> = given.collect();
            self.given.extend(given);
        }
        let mut position = 0;
        while position < steps.len() {
            if let Some(mut prefetch) = of_loop(self.procedure, &steps[position]) {
                if is_once {
                    self.number(&mut prefetch);
                }
                steps.insert(position, prefetch);
                position += 1;
            }
            position += 1;
        }
    }

    /// Numbers the look-ups of a loop that arguments decide.
    fn number(&mut self, prefetch: &mut Step) {
        let Step::Prefetch { first, lookups, .. } = prefetch else {
            return;
        };
        for lookup in lookups {
            let mut key = lookup.key.iter();
            let is_given = key.all(|part| match part {
                PrefetchKey::Register(register) | PrefetchKey::Element(register) => {
                    self.procedure.is_given(*register)
                }
                PrefetchKey::Variable => true,
            }) && self.procedure.is_given(*first);
            if lookup.is_certain && is_given && self.ordinals < ORDINALS_MAX {
                lookup.ordinal = Some(self.ordinals);
                self.ordinals += 1;
            }
        }
    }
}

fn of_loop(procedure: &Procedure, step: &Step) -> Option<Step> {
    let Step::ForRange {
        variable,
        first,
        last,
        reverse: false,
        body,
        ..
    } = step
    else {
        return None;
    };
    let effects = Effects::of(step);
    // The loop itself writes its variable once an iteration.
    let writes = |register: &Reg| {
        effects
            .registers
            .iter()
            .filter(|one| *one == register)
            .count()
    };
    let is_certain = writes(variable) == 1 && writes(first) == 0;
    let mut lookups = Vec::new();
    for (position, step) in body.iter().enumerate() {
        let Step::Lookup {
            op,
            table,
            index,
            key,
            record,
            ..
        } = step
        else {
            continue;
        };
        let key: Option<Box<[PrefetchKey]>> = key
            .iter()
            .map(|register| key_part(&body[..position], *variable, &effects, *register, 0))
            .collect();
        if let Some(key) = key
            && key.len() <= PREFETCH_PARTS_MAX
        {
            // Without the variable in it, the key is the same in every iteration.
            if key
                .iter()
                .any(|part| !matches!(part, PrefetchKey::Register(_)))
            {
                let touched = touched(procedure, *table, *record, body);
                lookups.push(PrefetchLookup {
                    op: *op,
                    is_certain,
                    ordinal: None,
                    table: *table,
                    index: *index,
                    key,
                    touched,
                    touched_by_all: touched,
                });
            }
        }
    }
    if lookups.is_empty() {
        return None;
    }
    Some(Step::Prefetch {
        first: *first,
        last: *last,
        lookups: lookups.into(),
        meets_all: false,
    })
}

/// How the register's value follows from the loop's variable; `steps` are those of the body
/// before its use.
fn key_part(
    steps: &[Step],
    variable: Reg,
    effects: &Effects,
    register: Reg,
    depth: u32,
) -> Option<PrefetchKey> {
    if register == variable {
        return Some(PrefetchKey::Variable);
    }
    if !effects.registers.contains(&register) {
        return Some(PrefetchKey::Register(register));
    }
    // A variable of the procedure is written at one place of the body at most, or not followed.
    let writers = effects
        .registers
        .iter()
        .filter(|written| **written == register)
        .count();
    if writers != 1 || depth > 8 {
        return None;
    }
    steps.iter().find_map(|step| {
        let Step::Scalar(instruction) = step else {
            return None;
        };
        match instruction {
            Instruction::Move { target, source }
            | Instruction::CheckWidth { target, source, .. }
                if *target == register =>
            {
                key_part(steps, variable, effects, *source, depth + 1)
            }
            Instruction::Element {
                target,
                array,
                index,
            } if *target == register => {
                let index = key_part(steps, variable, effects, *index, depth + 1)?;
                let fixed = !effects.registers.contains(array);
                (fixed && index == PrefetchKey::Variable).then_some(PrefetchKey::Element(*array))
            }
            _ => None,
        }
    })
}

/// What of the record the loop touches; the header always.
fn touched(procedure: &Procedure, table: TableRef, record: RecordReg, body: &[Step]) -> Words {
    let layout = procedure.tables[table.0 as usize].layout();
    let mut touched = Words::HEADER;
    for_each_step(body, &mut |step| match step {
        Step::Read {
            record: used,
            columns,
            ..
        }
        | Step::Update {
            record: used,
            columns,
            ..
        } if *used == record => {
            for (column, _) in columns {
                touched = touched.with_bytes(layout.column(*column).byte_range());
            }
        }
        _ => {}
    });
    touched
}
