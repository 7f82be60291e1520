//! What a program asks of the database around it, besides its tables: what the catalog says, for
//! instance.
//!
//! Neither is on the path of transactions that read and write tables only.

use std::fmt::Debug;

use kiln_storage::error::Result;
use kiln_storage::sequence::Draws;
use kiln_storage::slot::{Heap, Slot};

/// A function whose result depends on more than its arguments.
pub trait OutsideFunction: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Computes its result. It is called also when arguments are NULL. A function that
    /// [draws](OutsideFunction::draws) is given what its call has drawn.
    ///
    /// # Errors
    /// Those of the function.
    fn call(&self, heap: &mut Heap, draws: Option<&Draws>, arguments: &[Slot]) -> Result<Slot>;

    /// Whether it draws from sequences, or asks what was drawn.
    fn draws(&self) -> bool {
        false
    }

    /// Whether it changes how far a sequence has got.
    fn advances(&self) -> bool {
        false
    }

    /// The position of the argument that is its result, if one is.
    fn result_argument(&self) -> Option<usize> {
        None
    }
}

/// Rows that are no table's.
pub trait OutsideRows: Debug + Send + Sync {
    /// Where they come from.
    fn name(&self) -> &str;

    /// How many columns they have.
    fn width(&self) -> usize;

    /// Appends the rows that there are now, one after the other.
    fn append_to(&self, heap: &mut Heap, arguments: &[Slot], rows: &mut Vec<Slot>);
}
