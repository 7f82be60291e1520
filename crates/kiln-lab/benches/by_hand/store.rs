//! Tables, columns and registers of the transactions by hand, and how records are found.

use kiln_engine::Catalog;
use kiln_platform::spin;
use kiln_platform::sync::Arc;
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{Access, Halt, Handle};
use kiln_storage::error::Error;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Found, Index, Table};
use kiln_storage::types::Decimal;

use crate::{new_order, payment};

/// Columns and the registers that hold them.
pub type Columns = Box<[(ColumnId, Reg)]>;

/// A table and the index by which its primary key is looked up.
pub struct Keyed {
    pub table: Arc<Table>,
    /// All columns: the transactions do not say which they look at.
    pub observed: Observed,
    primary: usize,
}

/// All that the two transactions need.
pub struct Store {
    pub memory: Memory,
    pub warehouse: Keyed,
    pub district: Keyed,
    pub customer: Keyed,
    pub item: Keyed,
    pub stock: Keyed,
    pub history: Arc<Table>,
    pub orders: Arc<Table>,
    pub new_order: Arc<Table>,
    pub order_line: Arc<Table>,
    pub customer_by_last: usize,
    pub new_order_columns: new_order::ColumnLists,
    pub payment_columns: payment::ColumnLists,
}

impl Keyed {
    fn new(catalog: &Catalog, name: &str) -> Keyed {
        let table = table(catalog, name);
        let columns = table.indexes()[0].definition().columns.clone();
        // A hash index over the same columns answers faster, as it does for compiled procedures.
        let hash = table.indexes().iter().position(|index| {
            index.definition().kind.is_hash() && index.definition().columns == columns
        });
        Keyed {
            primary: hash.unwrap_or(0),
            observed: Observed::all(table.schema().columns.len()),
            table,
        }
    }

    pub fn index(&self) -> &Index {
        &self.table.indexes()[self.primary]
    }

    /// The record with this primary key.
    #[inline(always)]
    pub fn find<A: Access, const N: usize>(
        &self,
        access: &mut A,
        memory: &Memory,
        key: [i64; N],
        intent: Intent,
    ) -> Result<Option<Handle>, Halt> {
        loop {
            return Ok(
                match self
                    .index()
                    .get(&memory.heap, key.map(Slot::from_i64).into_iter())
                {
                    Found::Entry(entry) => {
                        match access.visit(&self.table, entry.record(), intent, &self.observed)? {
                            Visit::Present(handle) => Some(handle),
                            Visit::Absent => None,
                            Visit::Dead => {
                                spin::hint();
                                continue;
                            }
                        }
                    }
                    Found::Missing(node) => {
                        access.guard(&self.table, self.primary, node)?;
                        None
                    }
                    Found::Never => None,
                },
            );
        }
    }
}

/// The table of the workload called `name`.
fn table(catalog: &Catalog, name: &str) -> Arc<Table> {
    catalog
        .table(name)
        .expect("the workload has the table")
        .clone()
}

/// The columns called so, each with its register.
pub fn columns(table: &Table, pairs: &[(&str, Reg)]) -> Columns {
    let column = |name: &str| {
        table
            .schema()
            .column(name)
            .expect("the table has the column")
    };
    pairs
        .iter()
        .map(|(name, register)| (column(name), *register))
        .collect()
}

impl Store {
    pub fn new(catalog: &Catalog) -> Store {
        let mut memory = Memory::default();
        memory.slots.resize(64, Slot::NULL);
        let customer = Keyed::new(catalog, "customer");
        let mut indexes = customer.table.indexes().iter();
        let by_last = indexes.position(|index| index.definition().name == "customer_by_last");
        Store {
            memory,
            new_order_columns: new_order::ColumnLists::new(catalog),
            payment_columns: payment::ColumnLists::new(catalog),
            customer_by_last: by_last.expect("the workload has the index"),
            warehouse: Keyed::new(catalog, "warehouse"),
            district: Keyed::new(catalog, "district"),
            item: Keyed::new(catalog, "item"),
            stock: Keyed::new(catalog, "stock"),
            history: table(catalog, "history"),
            orders: table(catalog, "orders"),
            new_order: table(catalog, "new_order"),
            order_line: table(catalog, "order_line"),
            customer,
        }
    }
}

/// What `Access::insert` of a key that no row has must give.
pub fn inserted(outcome: Inserted, table: &Table) -> Result<(), Halt> {
    match outcome {
        Inserted::New(_) => Ok(()),
        Inserted::Exists { .. } => {
            Err(Error::internal(format!("{} has the row already", table.schema().name)).into())
        }
    }
}

/// An amount of money.
#[inline(always)]
pub fn money(cents: i64) -> Slot {
    decimal(cents, 2)
}

/// The number `mantissa / 10^scale`.
#[inline(always)]
pub fn decimal(mantissa: i64, scale: u8) -> Slot {
    Slot::from_decimal(Decimal::new(mantissa.into(), scale).expect("64 bits always fit"))
}

/// The digits of a number with a fixed scale.
#[inline(always)]
pub fn digits(slot: Slot) -> i64 {
    slot.as_decimal().mantissa() as i64
}
