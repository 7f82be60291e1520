//! What the workers of one protocol share while it is in force.

use kiln_platform::atomic::Ordering;
use kiln_storage::table::Table;

use crate::factors::Factors;
use crate::protocol::Configuration;

/// Made when a protocol is put in force, and used by all its workers until another one is. A worker
/// is known in it by its participant's slot, a number below
/// [`WORKERS_MAX`](kiln_storage::table::WORKERS_MAX).
pub struct Common {
    configuration: Configuration,
    factors: Factors,
}

impl Common {
    /// For the workers of a protocol with its options, under the recommended basis factors.
    pub fn new(configuration: impl Into<Configuration>) -> Common {
        Common::with_factors(configuration, Factors::default())
    }

    /// For the workers of a protocol with its options under some basis factors; those that the protocol
    /// does not have ([`Factors::refusal`]) change nothing.
    pub fn with_factors(configuration: impl Into<Configuration>, factors: Factors) -> Common {
        Common {
            configuration: configuration.into(),
            factors,
        }
    }

    /// The basis factors.
    pub fn factors(&self) -> Factors {
        self.factors
    }

    /// The protocol with its options.
    pub fn configuration(&self) -> Configuration {
        self.configuration
    }

    /// Takes what the protocol has left in the records of a table back out of them, so that any other
    /// one can take over. No transaction runs, and no worker of this protocol will run another.
    pub fn sweep(&self, table: &Table) {
        if self.configuration.protocol.leaves_aux() {
            table.indexes()[0].for_each(|record| {
                // Nobody else is there; whoever comes later comes through the gate's barrier.
                record.aux().store(0, Ordering::Relaxed);
            });
        }
    }
}
