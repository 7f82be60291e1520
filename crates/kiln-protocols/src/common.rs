//! What the workers of one protocol share while it is in force.

use kiln_platform::atomic::Ordering;
use kiln_storage::epoch::Participant;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;

use crate::batches::{Chosen, Explained};
use crate::factors::Factors;
use crate::family::Family;
use crate::protocol::Configuration;
use crate::registration::Setting;
use crate::shared::core_slots::CoreSlots;
use crate::statistics::Versions;

/// Made when a protocol is put in force, and used by all its workers until another one is.
pub struct Common {
    configuration: Configuration,
    setting: Setting,
    family: Box<dyn Family>,
}

impl Common {
    /// For the workers of a protocol with its options, under the recommended basis factors.
    pub fn new(configuration: impl Into<Configuration>) -> Common {
        Common::with_factors(configuration, Factors::default())
    }

    /// For the workers of a protocol with its options under some basis factors; those that the
    /// protocol does not have ([`Factors::refusal`]) change nothing.
    pub fn with_factors(configuration: impl Into<Configuration>, factors: Factors) -> Common {
        let configuration = configuration.into();
        let setting = Setting {
            options: configuration.options(),
            factors,
            core_slots: CoreSlots::default(),
        };
        let family = (configuration.protocol.registration().family)(&setting);
        Common {
            configuration,
            setting,
            family,
        }
    }

    /// The basis factors.
    pub fn factors(&self) -> Factors {
        self.setting.factors
    }

    /// The protocol with its options.
    pub fn configuration(&self) -> Configuration {
        self.configuration
    }

    /// Keeps workers out while as many as there are cores are inside of calls.
    pub(crate) fn core_slots(&self) -> &CoreSlots {
        &self.setting.core_slots
    }

    /// What is the protocol's own.
    pub(crate) fn family(&self) -> &dyn Family {
        &*self.family
    }

    /// Asks for a batch of calls to be explained, where calls are batched: the next one that is at
    /// least half as large as batches should be, or the largest one until
    /// [`Common::explained_batch`].
    pub fn explain_batch(&self) {
        self.family.explain_batch();
    }

    /// The batch that was explained, if there was one.
    pub fn explained_batch(&self) -> Option<Explained> {
        self.family.explained_batch()
    }

    /// What the next batch of calls is analysed with, where calls are batched.
    pub fn batches_chosen(&self) -> Option<Chosen> {
        self.family.batches_chosen()
    }

    /// Versions of records that are kept outside of their rows.
    pub fn versions(&self) -> Versions {
        self.family.versions()
    }

    /// Prepares a table's memory for the protocol, which comes into force: no transaction runs.
    pub fn prepare(&self, table: &Table) {
        if self.configuration().aux_outlives_records() {
            // Cells that have no record must not have what another protocol left.
            table.slab().for_each_cell(|cell| {
                // SAFETY: the cell is of this table's slab.
                let record = unsafe { RecordRef::from_cell(cell) };
                // No worker runs; one that comes later comes through the gate's barrier.
                record.aux().store(0, Ordering::Relaxed);
            });
        }
    }

    /// Brings the rows up to date, and the indexes, where the protocol leaves that for later: asked
    /// before any thread but its workers looks at rows, and before a table is changed or goes. No
    /// transaction runs; all tables that transactions have used since the last time are still
    /// there.
    pub fn settle(&self, participant: &Participant) {
        self.family.settle(participant);
    }

    /// Whether rows and indexes are not up to date before they are [settled](Common::settle).
    pub fn settles_later(&self) -> bool {
        self.family.settles_later()
    }

    /// As [`Common::settle`] for one table, before it is changed or goes, beside open transactions
    /// between two of their statements that have not used the table. They do not read a snapshot.
    pub fn settle_table(&self, participant: &Participant, table: TableId) {
        self.family.settle_table(participant, table);
    }

    /// See [`Configuration::orders_columns`].
    pub fn orders_columns(&self) -> bool {
        self.configuration().orders_columns()
    }

    /// Tables have taken the places of others, with other indexes: no transaction runs, but blocks
    /// may be open.
    pub fn tables_changed(&self) {
        self.family.tables_changed();
    }

    /// Does for idle workers what the protocol's workers do for memory between their transactions,
    /// a portion of it; `participant` belongs to no worker. Returns whether it did all that can be
    /// done now. No other thread settles meanwhile.
    pub fn look_after_idle(&self, participant: &Participant) -> bool {
        self.family.look_after_idle(participant)
    }

    /// Takes what the protocol has left in the records of a table back out of them, so that any
    /// other one can take over. It has settled; no transaction runs, and no worker of this protocol
    /// will run another.
    pub fn clear_aux(&self, table: &Table) {
        if self.configuration().leaves_aux() {
            table.indexes()[0].for_each(|record| {
                // No worker runs; one that comes later comes through the gate's barrier.
                record.aux().store(0, Ordering::Relaxed);
            });
        }
    }
}
