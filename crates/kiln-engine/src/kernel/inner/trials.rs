//! Tables that blocks try, and temporary ones: in no catalog in force, and given up while no
//! statement runs.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Arc, Weak, lock};
use kiln_platform::time;
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;

use super::EngineInner;
use super::ticker::LOOK_NS;
use crate::kernel::gate::Beside;

/// How long a block that no longer tries tables waits for a moment in which no statement runs, in
/// nanoseconds.
const TRIAL_ENDS_NS: u64 = 20_000_000;
/// The longest pause before the ticker tries again to let go of tables while no statement runs.
const UNTRIED_PAUSE_MAX_NS: u64 = 2_000_000_000;

/// Tables that are to be given up while no statement runs.
#[derive(Default)]
pub(super) struct Untried {
    tables: Vec<Arc<Table>>,
    /// When the ticker tries it next, and how long it has waited for that.
    next_try_ns: u64,
    pause_ns: u64,
}

/// A session that keeps how it sees the catalog in force.
pub(crate) trait SeesCatalog: Send + Sync {
    /// Another catalog is in force: what was seen may keep tables that are gone.
    fn forget_seen(&self);
}

impl EngineInner {
    /// A number for a table or sequence that is in no log.
    pub fn unlogged_table_id(&self) -> TableId {
        // Relaxed: each number is given once, until there are no others.
        let number = self.tables_tried.fetch_add(1, Ordering::Relaxed);
        TableId(number | TableId::TRIALS_FROM)
    }

    /// A session has temporary objects.
    pub fn know_session<S: SeesCatalog + 'static>(&self, session: &Arc<S>) {
        let mut known = lock(&self.temporary_of);
        if known.len() == known.capacity() {
            known.retain(|known| known.strong_count() > 0);
        }
        let session: Weak<S> = Arc::downgrade(session);
        known.push(session);
    }

    /// Sessions have these temporary tables.
    pub fn know_temporary<'a>(&self, tables: impl Iterator<Item = &'a Arc<Table>>) {
        let mut known = lock(&self.temporary);
        for table in tables {
            if known.insert(table.id(), Arc::downgrade(table)).is_none()
                && known.len().is_multiple_of(64)
            {
                known.retain(|_, table| table.strong_count() > 0);
            }
        }
    }

    /// How many temporary tables take memory.
    pub fn temporary_tables(&self) -> usize {
        let known = lock(&self.temporary);
        let tables = known.values().filter(|table| table.strong_count() > 0);
        tables.count()
    }

    /// Sessions do not have these temporary tables any more: they go as soon as no statement runs,
    /// but that is not waited for.
    pub fn give_up_temporary(&self, tables: Vec<Arc<Table>>) {
        lock(&self.untried).tables.extend(tables);
    }

    /// Lets go of tables that blocks have tried. No statement runs.
    pub(super) fn give_up_untried(&self) {
        let untried = std::mem::take(&mut *lock(&self.untried));
        self.retire_tables(untried.tables);
    }

    /// Tries to let go of them, and waits for longer each time before it tries that again.
    pub(super) fn try_to_give_up_untried(&self, now_ns: u64) {
        let mut untried = lock(&self.untried);
        if untried.tables.is_empty() || now_ns < untried.next_try_ns {
            return;
        }
        let pause_ns = (2 * untried.pause_ns).clamp(LOOK_NS, UNTRIED_PAUSE_MAX_NS);
        (untried.pause_ns, untried.next_try_ns) = (pause_ns, now_ns + pause_ns);
        drop(untried);
        drop(self.shut_gate_until(Beside::Blocks, now_ns + TRIAL_ENDS_NS));
    }

    /// Lets go of tables that are not in force any more; the gate is shut, and no open block has
    /// used them.
    pub fn retire_tables(&self, tables: Vec<Arc<Table>>) {
        for table in tables {
            self.settle_table(table.id());
            // Garbage of former transactions may still refer to the table's memory.
            self.epochs.retire_owner(Box::new(table));
        }
    }

    /// A block tries these tables no more: they go as soon as no statement runs, at the latest with
    /// the next change.
    pub fn end_trial(&self, tables: Vec<Arc<Table>>) {
        if tables.is_empty() {
            return;
        }
        for table in &tables {
            table.supersede(None);
        }
        lock(&self.untried).tables.extend(tables);
        let until_ns = time::now_ns() + TRIAL_ENDS_NS;
        drop(self.shut_gate_until(Beside::Blocks, until_ns));
    }
}
