//! New-Order by hand; `procedures.sql` has the statements.

use kiln_engine::Catalog;
use kiln_platform::atomic::prefetch;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{Access, Halt, Stop};
use kiln_storage::error::{Error, SqlState};
use kiln_storage::slot::Slot;
use kiln_storage::table::Found;
use kiln_storage::types::Value;
use kiln_workloads::tpcc;

use crate::store::{Columns, Keyed, Store, columns, decimal, digits, inserted, money};

/// The arguments of a call.
pub struct Call {
    warehouse: i64,
    district: i64,
    customer: i64,
    entry_date: i64,
    items: Vec<i64>,
    supply_warehouses: Vec<i64>,
    quantities: Vec<i64>,
}

impl Call {
    /// The call with these arguments.
    pub fn new(values: &[Value]) -> Call {
        let integer = |value: &Value| match value {
            Value::BigInt(number) | Value::Timestamp(number) => *number,
            other => panic!("{other} is no integer"),
        };
        let integers = |value: &Value| match value {
            Value::Array(values) => values.iter().map(integer).collect(),
            other => panic!("{other} is no array"),
        };
        Call {
            warehouse: integer(&values[0]),
            district: integer(&values[1]),
            customer: integer(&values[2]),
            entry_date: integer(&values[3]),
            items: integers(&values[4]),
            supply_warehouses: integers(&values[5]),
            quantities: integers(&values[6]),
        }
    }
}

macro_rules! registers {
    ($($name:ident)*) => { registers!(@ 0, $($name)*); };
    (@ $number:expr, $name:ident $($rest:ident)*) => {
        const $name: Reg = Reg($number);
        registers!(@ $number + 1, $($rest)*);
    };
    (@ $number:expr,) => {};
}

registers! {
    W_TAX C_LAST C_CREDIT C_DISCOUNT D_TAX D_NEXT_O_ID I_PRICE I_DATA
    S_QUANTITY S_YTD S_ORDER_CNT S_REMOTE_CNT S_DATA S_DIST
    ORDER DISTRICT WAREHOUSE LINE ITEM SUPPLY NULL QUANTITY AMOUNT
    CUSTOMER ENTRY_DATE LINES ALL_LOCAL
}

/// The columns of each operation.
pub struct ColumnLists {
    warehouse: Columns,
    customer: Columns,
    district: Columns,
    district_written: Columns,
    item: Columns,
    stock: Columns,
    stock_written: Columns,
    stock_districts: Vec<Columns>,
    /// The cache lines of an item's and a stock's record that are used.
    item_lines: usize,
    stock_lines: usize,
}

impl ColumnLists {
    pub fn new(catalog: &Catalog) -> ColumnLists {
        let of = |table: &str, pairs: &[(&str, Reg)]| {
            columns(
                catalog.table(table).expect("the workload has the table"),
                pairs,
            )
        };
        let lines = |table: &str| {
            let table = catalog.table(table).expect("the workload has the table");
            (table.slab().cell_stride()).div_ceil(64)
        };
        ColumnLists {
            warehouse: of("warehouse", &[("w_tax", W_TAX)]),
            customer: of(
                "customer",
                &[
                    ("c_last", C_LAST),
                    ("c_credit", C_CREDIT),
                    ("c_discount", C_DISCOUNT),
                ],
            ),
            district: of(
                "district",
                &[("d_tax", D_TAX), ("d_next_o_id", D_NEXT_O_ID)],
            ),
            district_written: of("district", &[("d_next_o_id", D_NEXT_O_ID)]),
            item: of("item", &[("i_price", I_PRICE), ("i_data", I_DATA)]),
            stock: of(
                "stock",
                &[
                    ("s_quantity", S_QUANTITY),
                    ("s_ytd", S_YTD),
                    ("s_order_cnt", S_ORDER_CNT),
                    ("s_remote_cnt", S_REMOTE_CNT),
                    ("s_data", S_DATA),
                ],
            ),
            stock_written: of(
                "stock",
                &[
                    ("s_quantity", S_QUANTITY),
                    ("s_ytd", S_YTD),
                    ("s_order_cnt", S_ORDER_CNT),
                    ("s_remote_cnt", S_REMOTE_CNT),
                ],
            ),
            stock_districts: (1..=tpcc::DISTRICTS)
                .map(|district| of("stock", &[(&format!("s_dist_{district:02}"), S_DIST)]))
                .collect(),
            item_lines: lines("item"),
            stock_lines: lines("stock"),
        }
    }
}

/// Asks for the record with this primary key.
#[inline(always)]
fn prefetch_record<const N: usize>(keyed: &Keyed, store: &Store, key: [i64; N], lines: usize) {
    if let Found::Entry(entry) = keyed
        .index()
        .get(&store.memory.heap, key.map(Slot::from_i64).into_iter())
    {
        let start = entry.record().cell().as_ptr();
        (0..lines).for_each(|line| prefetch(start.wrapping_add(line * 64)));
    }
}

const READ: Intent = Intent::Read;
const WRITE: Intent = Intent::Write;

impl Store {
    /// Asks for the entries and records of all lines, as the compiled procedure does.
    fn prefetch_lines(&self, call: &Call) {
        let heap = &self.memory.heap;
        for (item, supply) in call.items.iter().zip(&call.supply_warehouses) {
            self.item
                .index()
                .prefetch(heap, [*item].map(Slot::from_i64).into_iter());
            self.stock
                .index()
                .prefetch(heap, [*supply, *item].map(Slot::from_i64).into_iter());
        }
        for (item, supply) in call.items.iter().zip(&call.supply_warehouses) {
            let lists = &self.new_order_columns;
            prefetch_record(&self.item, self, [*item], lists.item_lines);
            prefetch_record(&self.stock, self, [*supply, *item], lists.stock_lines);
        }
    }

    /// Runs the transaction up to its commit; its results are in the registers and in the return
    /// value.
    pub fn new_order<A: Access>(&mut self, access: &mut A, call: &Call) -> Result<(), Halt> {
        self.memory.heap.clear();
        self.prefetch_lines(call);
        let Store {
            memory,
            new_order_columns: lists,
            ..
        } = self;
        macro_rules! slot {
            ($register:expr) => {
                memory.slots[$register.0 as usize]
            };
        }
        let (warehouse, district) = (call.warehouse, call.district);
        slot!(WAREHOUSE) = Slot::from_i64(warehouse);
        slot!(DISTRICT) = Slot::from_i64(district);
        slot!(CUSTOMER) = Slot::from_i64(call.customer);
        slot!(ENTRY_DATE) = Slot::from_i64(call.entry_date);
        slot!(LINES) = Slot::from_i64(call.items.len() as i64);
        slot!(NULL) = Slot::NULL;

        let found = self.warehouse.find(access, memory, [warehouse], READ)?;
        let mut handle = found.ok_or_else(|| missing("warehouse"))?;
        access.read(&self.warehouse.table, &mut handle, &lists.warehouse, memory)?;

        let key = [warehouse, district, call.customer];
        let found = self.customer.find(access, memory, key, READ)?;
        let mut handle = found.ok_or_else(|| missing("customer"))?;
        access.read(&self.customer.table, &mut handle, &lists.customer, memory)?;

        let found = self
            .district
            .find(access, memory, [warehouse, district], WRITE)?;
        let mut handle = found.ok_or_else(|| missing("district"))?;
        access.read(&self.district.table, &mut handle, &lists.district, memory)?;
        let order = slot!(D_NEXT_O_ID).as_i64();
        slot!(ORDER) = Slot::from_i64(order);
        slot!(D_NEXT_O_ID) = Slot::from_i64(order + 1);
        access.update(
            &self.district.table,
            &mut handle,
            &lists.district_written,
            memory,
        )?;

        let (mut total, mut all_local) = (0, 1);
        let mut brand_generic = [0_u8; 256];
        for (line, &item) in call.items.iter().enumerate() {
            let (supply, quantity) = (call.supply_warehouses[line], call.quantities[line]);
            let remote = i64::from(supply != warehouse);
            if remote == 1 {
                all_local = 0;
            }
            let Some(mut handle) = self.item.find(access, memory, [item], READ)? else {
                let state = SqlState::parse(tpcc::UNUSED_ITEM).expect("a valid state");
                return Err(Error::new(state, format!("item number {item} is not valid")).into());
            };
            access.read(&self.item.table, &mut handle, &lists.item, memory)?;

            let found = self.stock.find(access, memory, [supply, item], WRITE)?;
            let mut handle = found.ok_or_else(|| missing("stock"))?;
            access.read(&self.stock.table, &mut handle, &lists.stock, memory)?;
            let stocked = slot!(S_QUANTITY).as_i64();
            let left = if stocked >= quantity + 10 { 0 } else { 91 };
            slot!(S_QUANTITY) = Slot::from_i64(stocked - quantity + left);
            slot!(S_YTD) = Slot::from_i64(slot!(S_YTD).as_i64() + quantity);
            slot!(S_ORDER_CNT) = Slot::from_i64(slot!(S_ORDER_CNT).as_i64() + 1);
            slot!(S_REMOTE_CNT) = Slot::from_i64(slot!(S_REMOTE_CNT).as_i64() + remote);
            access.update(&self.stock.table, &mut handle, &lists.stock_written, memory)?;
            let district_columns = &lists.stock_districts[district as usize - 1];
            access.read(&self.stock.table, &mut handle, district_columns, memory)?;

            let amount = quantity * digits(slot!(I_PRICE));
            total += amount;
            let original = memory.heap.str(slot!(I_DATA)).contains("ORIGINAL")
                && memory.heap.str(slot!(S_DATA)).contains("ORIGINAL");
            brand_generic[line] = if original { b'B' } else { b'G' };

            slot!(LINE) = Slot::from_i64(line as i64 + 1);
            slot!(ITEM) = Slot::from_i64(item);
            slot!(SUPPLY) = Slot::from_i64(supply);
            slot!(QUANTITY) = Slot::from_i64(quantity);
            slot!(AMOUNT) = money(amount);
            let row = [
                ORDER, DISTRICT, WAREHOUSE, LINE, ITEM, SUPPLY, NULL, QUANTITY, AMOUNT, S_DIST,
            ];
            inserted(
                access.insert(&self.order_line, &row, memory)?,
                &self.order_line,
            )?;
        }

        slot!(ALL_LOCAL) = Slot::from_i64(all_local);
        let row = [
            ORDER, DISTRICT, WAREHOUSE, CUSTOMER, ENTRY_DATE, NULL, LINES, ALL_LOCAL,
        ];
        inserted(access.insert(&self.orders, &row, memory)?, &self.orders)?;
        let row = [ORDER, DISTRICT, WAREHOUSE];
        inserted(
            access.insert(&self.new_order, &row, memory)?,
            &self.new_order,
        )?;

        // Ten-thousandths of ten-thousandths of cents, rounded half away from zero.
        let discount = 10_000 - digits(slot!(C_DISCOUNT));
        let taxes = 10_000 + digits(slot!(W_TAX)) + digits(slot!(D_TAX));
        let product = total * discount * taxes;
        let lines = call.items.len().min(brand_generic.len());
        std::hint::black_box((
            decimal((product + 50_000_000) / 100_000_000, 2),
            &brand_generic[..lines],
        ));
        Ok(())
    }
}

/// A row that the population has is not there.
#[cold]
pub fn missing(table: &str) -> Stop {
    Error::internal(format!("{table} lacks a row of its population")).into()
}
