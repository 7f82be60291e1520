//! What a row of the table of protocols says.
//!
//! A row stands in the folder of its protocol, in a file `registration.rs`. The rest of Kiln knows
//! a protocol by its row alone: its name, what it promises, which options and basis factors it
//! takes, and the function that makes what its workers share.

use crate::factors::Factors;
use crate::family::Family;
use crate::options::{Options, ProtocolOption};
use crate::shared::core_slots::CoreSlots;

/// A row of the table of protocols.
pub(crate) struct Registration {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the literature calls it.
    pub aliases: &'static [&'static str],
    /// One line on what it is.
    pub description: &'static str,
    /// What it promises.
    pub promises: Promises,
    /// The options that it takes.
    pub options: &'static [ProtocolOption],
    /// The basis factors that some protocols have and it has, by their names in
    /// [`Factors::choices`].
    pub factors: &'static [&'static str],
    /// Makes what its workers share, when it is put in force.
    pub family: fn(&Setting) -> Box<dyn Family>,
}

/// What a protocol promises.
#[derive(Clone, Copy)]
pub(crate) struct Promises {
    /// See [`Protocol::is_serializable`](crate::Protocol::is_serializable).
    pub serializable: bool,
    /// See [`Protocol::is_strict`](crate::Protocol::is_strict).
    pub strict: bool,
    /// See [`Protocol::is_single_worker`](crate::Protocol::is_single_worker).
    pub single_worker: bool,
    /// See [`Protocol::logs_commands`](crate::Protocol::logs_commands).
    pub logs_commands: bool,
    /// See [`Protocol::leaves_aux`](crate::Protocol::leaves_aux).
    pub leaves_aux: bool,
    /// Whether what it keeps in `aux` outlives the record: then a cell without one must have 0
    /// there when the protocol comes into force, too.
    pub aux_outlives_records: bool,
    /// See [`Protocol::holds_nothing_in_blocks`](crate::Protocol::holds_nothing_in_blocks).
    pub holds_nothing_in_blocks: bool,
    /// Whether an attempt may rely on some columns of a record and not on all, whatever its options
    /// are.
    pub looks_at_columns: bool,
    /// Whether timestamps of split columns of a table are other ones than those of the
    /// record, where the protocol has them ([`ProtocolOption::TimestampSplitting`]).
    pub orders_columns: bool,
    /// See [`Protocol::explains_batches`](crate::Protocol::explains_batches).
    pub explains_batches: bool,
}

impl Promises {
    /// Strict serializability, by any number of workers, and nothing more.
    pub const STRICT: Promises = Promises {
        serializable: true,
        strict: true,
        single_worker: false,
        logs_commands: false,
        leaves_aux: false,
        aux_outlives_records: false,
        holds_nothing_in_blocks: false,
        looks_at_columns: false,
        orders_columns: false,
        explains_batches: false,
    };

    /// Nothing: a baseline for measurements.
    pub const NOTHING: Promises = Promises {
        serializable: false,
        strict: false,
        ..Promises::STRICT
    };
}

/// What a protocol is put in force with.
#[derive(Clone)]
pub(crate) struct Setting {
    /// The options of the protocol that are on.
    pub options: Options,
    /// The basis factors; those that the protocol does not have change nothing.
    pub factors: Factors,
    /// Keeps workers out while as many as there are cores are inside of calls.
    pub core_slots: CoreSlots,
}

impl Setting {
    /// Whether an option is on.
    pub fn has(&self, option: ProtocolOption) -> bool {
        self.options.has(option)
    }
}
