//! What a protocol offers to the executor: how one attempt of a transaction touches records.
//!
//! The executor finds records in the indexes by itself and tells the access about every record
//! it meets ([`Access::visit`]) and about every gap that it relied on ([`Access::guard`]). The
//! access decides what that means: nothing (`serial`), an entry in a read set (optimistic
//! protocols), a lock (pessimistic ones).
//!
//! One attempt: `begin`, any of the middle methods, then `commit` or `roll_back`. A method that
//! cannot do what it is asked for returns a [`Halt`]. After an abort `roll_back` is called; so it
//! is when the procedure raised, after [`Access::confirm`] said that what it had read was
//! consistent.
//!
//! [`Access`] is what every protocol does. What only some do is an extension, a trait with defaults
//! that do nothing:
//!
//! | extension | for accesses that |
//! |---|---|
//! | [`Planning`] | decide something before an attempt runs |
//! | [`Remembering`] | know of look-ups and scans without asking the index |
//! | [`Scanning`] | lock the ranges of scans, or run scans again |
//! | [`Travelling`] | have operations done by other threads |
//! | [`Deferring`] | leave updates to the commit |
//! | [`Recording`] | say to histories which versions they relied on |
//! | [`Flawed`] | are wrong on purpose, to be measured or caught |

mod deferring;
mod flawed;
mod lookup_site;
mod planning;
mod recording;
mod remembering;
mod scanning;
mod stop;
mod travelling;

use kiln_storage::index::NodeVersion;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use crate::analysis::Observed;
use crate::ir::{Intent, Reg};

pub use deferring::Deferring;
pub use flawed::Flawed;
pub use lookup_site::LookupSite;
pub use planning::Planning;
pub use recording::Recording;
pub use remembering::{GoesOn, KeptScan, Recalled, Remembering, Sought, SoughtScan};
pub use scanning::Scanning;
pub use stop::{AbortCause, Halt, Stop};
pub use travelling::Travelling;

/// A record as an attempt knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The record.
    pub record: RecordRef,
    /// The access's own note about it, such as its position in the read set.
    pub note: u32,
}

/// What an access found when it met a record.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// There is a row.
    Present(Handle),
    /// There is none, and the access guards that.
    Absent,
    /// The record is leaving the indexes: look the key up again.
    Dead,
}

/// What an insert did.
#[derive(Clone, Copy, Debug)]
pub enum Inserted {
    /// The new record.
    New(Handle),
    /// Nothing: a row with the same key stands in the way.
    Exists {
        /// The unique index that has the key; its position in the table.
        index: usize,
        /// The row.
        handle: Handle,
    },
}

/// How one attempt of a transaction touches records; see the module's documentation.
pub trait Access:
    Planning + Remembering + Scanning + Travelling + Deferring + Recording + Flawed
{
    /// Starts an attempt.
    fn begin(&mut self);

    /// Meets a record found in an index, before anything else is done with it. `observed` is what
    /// the procedure does to the record through the handle: above all which columns it looks at,
    /// those whose values it reads or by which the record was found and that can change. With none
    /// it relies only on the row being there.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt>;

    /// Relies on a node of the index at this position of the table having no more entries in the
    /// searched range than it had.
    ///
    /// # Errors
    /// An [`AbortCause`] when that is known to be false already.
    fn guard(&mut self, table: &Table, index: usize, node: NodeVersion) -> Result<(), AbortCause>;

    /// Reads columns into registers, this attempt's own writes included. All columns of one call
    /// belong to one version.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met; the error of an update deferred to the commit that
    /// was run early for this, and raised.
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt>;

    /// Writes columns.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met, 23505 when a unique index refuses.
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt>;

    /// Inserts a row with `values` for all columns.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met; 54000 when a key is too long; 53200 when memory
    /// is short.
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt>;

    /// Deletes a record.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Halt>;

    /// Brings a row back that this attempt has deleted through `handle`, with `values` for all
    /// columns and the row number that it had. All handles of the row work on it again. The keys
    /// are the attempt's own still: whatever it has inserted under them since is deleted.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met; 53200 when memory is short.
    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt>;

    /// Whether this attempt has moved entries of any index: then [`Access::resolve`] is asked
    /// about every entry, else only about moving ones.
    fn moves_entries(&self) -> bool;

    /// The record that this attempt finds at an index entry; `None` when it has moved it away.
    ///
    /// # Errors
    /// [`AbortCause::KeyInTransit`] when another attempt is moving a record there.
    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause>;

    /// Makes everything visible at once, or nothing.
    ///
    /// # Errors
    /// An [`AbortCause`]; `roll_back` follows. The error of the first update deferred to the commit
    /// that raises, if one does; [`Deferring::confirm_raise`] and `roll_back` follow.
    fn commit(&mut self) -> Result<(), Stop>;

    /// Whether what was read so far is consistent and final: asked before a raised error is
    /// reported, so that no error comes from a state that never was.
    ///
    /// # Errors
    /// An [`AbortCause`] when it is not; `roll_back` follows either way.
    fn confirm(&mut self) -> Result<(), AbortCause>;

    /// Undoes everything.
    fn roll_back(&mut self);
}
