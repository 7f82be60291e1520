//! Restoring what depends on a record that has changed, and nothing else (§4.2.2, Algorithm 2).
//!
//! The item whose record has changed names the operation that met it, the paper's *bookmark*. What
//! depends on that is a part of the program ([`Restoration`]), which runs over the frame that the
//! attempt has left. Before it does:
//!
//! - the item names the present version, of which the columns that were read are copied anew; or,
//!   if the row has gone or come, the operation itself runs again;
//! - what the part writes is taken back: columns from the images, deletions, rows that wait;
//! - items of look-ups and scans that may lead elsewhere are given up, as is what they led to in
//!   the access cache. Those that lead where they led are not made again.
//!
//! All else stays, so that the commit goes on where it was if the sets have the same members
//! afterwards. Nothing but that one item changes its version: what else has changed meanwhile is
//! found in its turn.
//!
//! # When all of the program runs again
//!
//! [`Rerun`] has the reasons, and they are counted. What they have in common: the frame or the sets
//! are not those of a run that came to its end, or what has to be taken back can be seen by others
//! already.

use kiln_procedure::access::Deferring;
use kiln_procedure::ir::OpId;
use kiln_procedure::restoration::{Change, Rewritten};
use kiln_procedure::{AbortCause, Access, Program, Restoration, Stop};
use kiln_storage::record::Tid;
use kiln_storage::schema::ColumnSet;

use super::{Healing, installed_tid};
use crate::canary::Canary;
use crate::factors::RestorationKind;
use crate::shared::optimistic::{Write, WriteKind};
use crate::shared::recorder::Recorded;

/// Why all of a program runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rerun {
    /// So it was chosen.
    Chosen,
    /// The attempt has kept nothing, as its procedure is left alone.
    NothingKept,
    /// The last run stopped before its end, or raised.
    Stopped,
    /// An index node has changed that a gap or a range was found in.
    Range,
    /// A row that waited was refused.
    Refused,
    /// Others can find rows or entries of the attempt.
    Linked,
    /// Several operations rely on what one of them has met.
    Shared,
    /// Updates that are deferred to the commit, or that were, are concerned.
    Deferred,
    /// It is not known which operation has met the record.
    Unknown,
    /// Another worker goes on changing the record.
    Changing,
    /// The program draws from sequences: its runs draw the same values in their order.
    Draws,
    /// The program catches errors: what its steps do depends on how far those before them got.
    Catches,
}

impl Rerun {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Rerun; 12] = [
        Rerun::Chosen,
        Rerun::NothingKept,
        Rerun::Stopped,
        Rerun::Range,
        Rerun::Refused,
        Rerun::Linked,
        Rerun::Shared,
        Rerun::Deferred,
        Rerun::Unknown,
        Rerun::Changing,
        Rerun::Draws,
        Rerun::Catches,
    ];

    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Rerun::Chosen => "chosen",
            Rerun::NothingKept => "nothing kept",
            Rerun::Stopped => "run stopped",
            Rerun::Range => "range changed",
            Rerun::Refused => "row refused",
            Rerun::Linked => "entries linked",
            Rerun::Shared => "record shared",
            Rerun::Deferred => "update deferred",
            Rerun::Unknown => "operation unknown",
            Rerun::Changing => "record changing",
            Rerun::Draws => "draws",
            Rerun::Catches => "catches errors",
        }
    }
}

/// A restoration of a part that is under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    /// Whether one is: the last run was that of a part.
    pub is_on: bool,
    /// How many items and writes the attempt had before.
    items: usize,
    writes: usize,
    /// Whether columns were taken back of writes that have no others.
    empties: bool,
    /// Whether items were given up, or may have been.
    finds: bool,
}

impl Healing {
    /// The part of the program that mends an attempt whose last run ended with `stop`; the attempt
    /// is ready for it.
    pub(super) fn restored_part<'p>(
        &mut self,
        program: &'p Program,
        stop: &Stop,
        was_calm: bool,
    ) -> Result<&'p Restoration, Rerun> {
        let (failed, is_complete) = (self.failed.take(), std::mem::take(&mut self.is_complete));
        if self.factors.restoration == RestorationKind::Rerun {
            return Err(Rerun::Chosen);
        }
        if program.analysis.draws() {
            return Err(Rerun::Draws);
        }
        if program.regions > 0 {
            return Err(Rerun::Catches);
        }
        if was_calm {
            return Err(Rerun::NothingKept);
        }
        if !is_complete {
            return Err(Rerun::Stopped);
        }
        let Some(position) = failed else {
            return Err(match stop {
                Stop::Abort(AbortCause::Phantom) => Rerun::Range,
                Stop::Abort(_) => Rerun::Refused,
                Stop::Raise(_) => Rerun::Stopped,
            });
        };
        if self.has_linked || self.sets.moves_entries() {
            return Err(Rerun::Linked);
        }
        let note = self.sets.items[position as usize].note;
        let op = note.op().ok_or(Rerun::Unknown)?;
        if note.is_shared() {
            return Err(Rerun::Shared);
        }
        let part = self.part_of(program, op, position as usize)?;
        if self.sets.defers() && part.concerns_deferred {
            return Err(Rerun::Deferred);
        }
        self.give_up_found(part)?;
        self.take_back_written(part)?;
        self.counters.restored(Some(op));
        self.cache.restore(|op| part.runs.contains(op));
        if let Some(log) = self.sets.recorder().log() {
            log.take_back(|op| op != u16::MAX && part.changed.contains(OpId(op)));
        }
        Ok(part)
    }

    /// What depends on the record of an item, which names the present version afterwards if there
    /// still is a row.
    fn part_of<'p>(
        &mut self,
        program: &'p Program,
        op: OpId,
        position: usize,
    ) -> Result<&'p Restoration, Rerun> {
        let item = &self.sets.items[position];
        let was_there = !Tid(item.observed).is_absent();
        let write = self.sets.written.get(item.record);
        let write = write.map(|write| &self.sets.writes[write as usize]);
        if write.is_some_and(Write::comes_back) {
            return Err(Rerun::Linked);
        }
        // Which entries an update moves, or that it moves none, was found out from the version that
        // is no more.
        let may_move = write.is_some_and(|write| write.moves() && !write.removes());
        // A key may be among the columns that differ: then the record may not be found any more.
        if was_there && !may_move && !program.finds_by_changeable(op) {
            match self.renew(position) {
                Ok(true) => return Ok(program.restoration(op, Change::Values)),
                Ok(false) => {}
                Err(_) => return Err(Rerun::Changing),
            }
        }
        installed_tid(self.sets.items[position].record).map_err(|_| Rerun::Changing)?;
        Ok(program.restoration(op, Change::Presence))
    }

    /// Gives up what was met by operations that may find something else.
    fn give_up_found(&mut self, part: &Restoration) -> Result<(), Rerun> {
        if !part.finds {
            return Ok(());
        }
        for item in &mut self.sets.items {
            if item.note.op().is_some_and(|op| part.changed.contains(op)) && !item.note.is_void() {
                if item.note.is_shared() {
                    return Err(Rerun::Shared);
                }
                item.note.give_up();
            }
        }
        Ok(())
    }

    /// Takes back what a part writes, so that it can write again.
    fn take_back_written(&mut self, part: &Restoration) -> Result<(), Rerun> {
        self.part = Part {
            is_on: true,
            items: self.sets.items.len(),
            writes: self.sets.writes.len(),
            empties: false,
            finds: part.finds,
        };
        if Canary::DependencyForgotten.sings() {
            return Ok(());
        }
        let mut is_lost = false;
        for rewritten in &part.rewritten {
            if rewritten.inserts {
                is_lost |= self.spare_late_of(rewritten.table);
            }
            for write in &mut self.sets.writes {
                if write.kind != WriteKind::Lost && write.table().id() == rewritten.table {
                    self.part.empties |= take_back(write, rewritten)?;
                }
            }
        }
        // Those that are met anew are written anew.
        if part.finds && self.part.empties || is_lost {
            self.drop_empty_writes();
        }
        // A write of something that does not run again stays, with the item that it names.
        let is_void = |write: &Write| self.sets.items[write.item as usize].note.is_void();
        let mut writes = self.sets.writes.iter();
        match writes.any(|write| write.kind != WriteKind::Lost && is_void(write)) {
            true => Err(Rerun::Shared),
            false => Ok(()),
        }
    }

    /// Leaves writes that write nothing any more.
    fn drop_empty_writes(&mut self) {
        let has_updates = self.sets.has_deferred_updates();
        for write in &mut self.sets.writes {
            let is_empty = write.kind == WriteKind::Update && write.columns.is_empty();
            if is_empty && !(has_updates && write.is_pending()) {
                write.kind = WriteKind::Lost;
            }
        }
        self.sets.forget_lost_writes();
    }

    /// The program, or a part of it, has run to its end. Whether the commit can go on where the
    /// restoration of a part has interrupted it.
    pub(super) fn is_resumed(&mut self) -> bool {
        self.is_complete = true;
        let part = std::mem::take(&mut self.part);
        if !part.is_on {
            return false;
        }
        if part.empties {
            self.drop_empty_writes();
        }
        let is_same = |write: &Write| write.kind != WriteKind::Lost;
        !part.finds
            && part.items == self.sets.items.len()
            && part.writes == self.sets.writes.len()
            && self.sets.writes.iter().all(is_same)
    }
}

/// Takes back what a part of the program has done to a record; whether nothing is left.
fn take_back(write: &mut Write, rewritten: &Rewritten) -> Result<bool, Rerun> {
    // Rows that wait were taken back already: of the others, others can find the entries.
    if rewritten.inserts && write.inserts() || write.comes_back() {
        return Err(Rerun::Linked);
    }
    if rewritten.deletes && write.kind == WriteKind::Delete {
        write.kind = WriteKind::Update;
    }
    let columns = write.columns.intersection(rewritten.updated);
    if columns != ColumnSet::EMPTY {
        write.take_back(columns);
    }
    Ok(write.kind == WriteKind::Update && write.columns.is_empty())
}
