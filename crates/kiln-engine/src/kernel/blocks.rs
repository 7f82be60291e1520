//! Which tables the open blocks use, so that a change of the catalog waits for those blocks alone.
//!
//! A block notes the tables of each statement before it runs. A change of the catalog looks at the
//! notes while the gate is shut, when no statement runs. If an open block uses a table that it
//! changes, the change gives way: it opens the gate, bars the table to blocks that have not used it
//! yet, and begins anew when those that have used it are over.

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_procedure::Interrupt;
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;

use super::slot_user::SlotUser;
use crate::wait::wait_unless;

/// The tables that open blocks use, and those that changes of the catalog wait for.
pub(crate) struct Blocks {
    /// By worker slot.
    used: Box<[Mutex<Used>]>,
    barred: Mutex<Vec<TableId>>,
    /// The length of `barred`.
    barred_count: AtomicUsize,
    unbarred: Condvar,
}

#[derive(Default)]
struct Used {
    /// There while the list below has entries.
    user: Option<SlotUser>,
    tables: Vec<TableId>,
}

/// How often a change of the catalog looks whether the blocks that it waits for are over.
const LOOK_NS: u64 = 500_000;

impl Blocks {
    /// For worker slots with numbers below this one.
    pub fn new(worker_slots: usize) -> Blocks {
        Blocks {
            used: (0..worker_slots).map(|_| Mutex::default()).collect(),
            barred: Mutex::default(),
            barred_count: AtomicUsize::new(0),
            unbarred: Condvar::new(),
        }
    }

    /// Notes that the block on a worker slot uses these tables; false, and nothing is noted, if one
    /// of them is barred that it has not used before.
    pub fn use_tables(&self, worker_slot: usize, user: SlotUser, tables: &[Arc<Table>]) -> bool {
        let mut used = lock(&self.used[worker_slot]);
        let is_new = |table: &&Arc<Table>| !used.tables.contains(&table.id());
        let new: Vec<TableId> = tables
            .iter()
            .filter(is_new)
            .map(|table| table.id())
            .collect();
        if new.is_empty() {
            return true;
        }
        if new.iter().any(|table| self.is_barred(*table)) {
            return false;
        }
        used.user = Some(user);
        used.tables.extend(new);
        true
    }

    /// Notes that a call, which has begun already, uses these tables, barred or not.
    pub fn hold_tables(&self, worker_slot: usize, user: SlotUser, tables: &[Arc<Table>]) {
        let mut used = lock(&self.used[worker_slot]);
        used.user = Some(user);
        used.tables = tables.iter().map(|table| table.id()).collect();
    }

    /// Whether the block on a worker slot has used a table.
    pub fn uses_tables(&self, worker_slot: usize) -> bool {
        lock(&self.used[worker_slot]).user.is_some()
    }

    /// The block on a worker slot is over.
    pub fn forget(&self, worker_slot: usize) {
        *lock(&self.used[worker_slot]) = Used::default();
    }

    /// An open block that uses one of these tables, but for that on worker slot `except`: which of
    /// them, and whose block it is.
    pub fn user_of(
        &self,
        tables: &[TableId],
        except: Option<usize>,
    ) -> Option<(TableId, SlotUser)> {
        self.used
            .iter()
            .enumerate()
            .find_map(|(worker_slot, used)| {
                if Some(worker_slot) == except {
                    return None;
                }
                let used = lock(used);
                let table = tables.iter().find(|table| used.tables.contains(table))?;
                Some((*table, used.user?))
            })
    }

    /// Whether a change of the catalog waits for the blocks that use a table.
    pub fn is_barred(&self, table: TableId) -> bool {
        // Acquire pairs with the release in `bar`, though the gate orders the two already.
        self.barred_count.load(Ordering::Acquire) > 0 && lock(&self.barred).contains(&table)
    }

    /// Waits until none of these tables is barred; false when `deadline_ns` has passed or
    /// `interrupt` has asked for the end before.
    pub fn wait_unbarred(
        &self,
        tables: &[Arc<Table>],
        deadline_ns: Option<u64>,
        interrupt: &Interrupt,
    ) -> bool {
        let mut barred = lock(&self.barred);
        while tables.iter().any(|table| barred.contains(&table.id())) {
            barred = match wait_unless(&self.unbarred, barred, deadline_ns, Some(interrupt)) {
                Some(barred) => barred,
                None => return false,
            };
        }
        true
    }

    /// Bars tables to blocks that have not used them yet, until the result is dropped.
    pub fn bar(&self, tables: Vec<TableId>) -> Bar<'_> {
        let mut barred = lock(&self.barred);
        barred.extend(&tables);
        self.barred_count.store(barred.len(), Ordering::Release);
        drop(barred);
        Bar {
            blocks: self,
            tables,
        }
    }
}

/// Tables that a change of the catalog waits for.
pub(crate) struct Bar<'a> {
    blocks: &'a Blocks,
    tables: Vec<TableId>,
}

impl Bar<'_> {
    /// Waits until no open block uses the tables, but for that on worker slot `except`; false when
    /// `deadline_ns` has passed before.
    pub fn wait(&self, except: Option<usize>, deadline_ns: u64) -> bool {
        while self.blocks.user_of(&self.tables, except).is_some() {
            let remaining_ns = deadline_ns.saturating_sub(time::now_ns());
            if remaining_ns == 0 {
                return false;
            }
            thread::park_for(LOOK_NS.min(remaining_ns));
        }
        true
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        let mut barred = lock(&self.blocks.barred);
        for table in &self.tables {
            if let Some(position) = barred.iter().position(|other| other == table) {
                barred.swap_remove(position);
            }
        }
        self.blocks
            .barred_count
            .store(barred.len(), Ordering::Release);
        self.blocks.unbarred.notify_all();
    }
}
