//! Payment by hand; `procedures.sql` has the statements.

use std::io::Write;

use kiln_engine::Catalog;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{Access, Halt};
use kiln_storage::index::LeafBatch;
use kiln_storage::slot::Slot;
use kiln_storage::table::{Entry, RangeValues};
use kiln_storage::types::Value;

use crate::new_order::missing;
use crate::store::{Columns, Keyed, Store, columns, digits, inserted, money};

/// The arguments of a call.
pub struct Call {
    warehouse: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    customer: Choice,
    amount_cents: i64,
    date: i64,
}

enum Choice {
    ById(i64),
    ByLast(String),
}

impl Call {
    /// The call with these arguments.
    pub fn new(values: &[Value]) -> Call {
        let integer = |value: &Value| match value {
            Value::BigInt(number) | Value::Timestamp(number) => *number,
            other => panic!("{other} is no integer"),
        };
        Call {
            warehouse: integer(&values[0]),
            district: integer(&values[1]),
            customer_warehouse: integer(&values[2]),
            customer_district: integer(&values[3]),
            customer: match &values[5] {
                Value::Text(name) => Choice::ByLast(name.clone()),
                _ => Choice::ById(integer(&values[4])),
            },
            amount_cents: match &values[6] {
                Value::Numeric(amount) => amount.mantissa() as i64,
                other => panic!("{other} is no amount"),
            },
            date: integer(&values[7]),
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
    W_NAME W_STREET_1 W_STREET_2 W_CITY W_STATE W_ZIP W_YTD
    D_NAME D_STREET_1 D_STREET_2 D_CITY D_STATE D_ZIP D_YTD
    C_ID C_FIRST C_MIDDLE C_LAST C_STREET_1 C_STREET_2 C_CITY C_STATE C_ZIP C_PHONE C_SINCE
    C_CREDIT C_CREDIT_LIM C_DISCOUNT C_BALANCE C_YTD_PAYMENT C_PAYMENT_CNT C_DATA
    CUSTOMER_DISTRICT CUSTOMER_WAREHOUSE DISTRICT WAREHOUSE DATE AMOUNT H_DATA
}

/// The columns of each operation.
pub struct ColumnLists {
    warehouse: Columns,
    warehouse_written: Columns,
    district: Columns,
    district_written: Columns,
    customer_id: Columns,
    customer: Columns,
    customer_written: Columns,
    customer_data: Columns,
}

impl ColumnLists {
    pub fn new(catalog: &Catalog) -> ColumnLists {
        let of = |table: &str, pairs: &[(&str, Reg)]| {
            columns(
                catalog.table(table).expect("the workload has the table"),
                pairs,
            )
        };
        ColumnLists {
            warehouse: of(
                "warehouse",
                &[
                    ("w_name", W_NAME),
                    ("w_street_1", W_STREET_1),
                    ("w_street_2", W_STREET_2),
                    ("w_city", W_CITY),
                    ("w_state", W_STATE),
                    ("w_zip", W_ZIP),
                    ("w_ytd", W_YTD),
                ],
            ),
            warehouse_written: of("warehouse", &[("w_ytd", W_YTD)]),
            district: of(
                "district",
                &[
                    ("d_name", D_NAME),
                    ("d_street_1", D_STREET_1),
                    ("d_street_2", D_STREET_2),
                    ("d_city", D_CITY),
                    ("d_state", D_STATE),
                    ("d_zip", D_ZIP),
                    ("d_ytd", D_YTD),
                ],
            ),
            district_written: of("district", &[("d_ytd", D_YTD)]),
            customer_id: of("customer", &[("c_id", C_ID)]),
            customer: of(
                "customer",
                &[
                    ("c_first", C_FIRST),
                    ("c_middle", C_MIDDLE),
                    ("c_last", C_LAST),
                    ("c_street_1", C_STREET_1),
                    ("c_street_2", C_STREET_2),
                    ("c_city", C_CITY),
                    ("c_state", C_STATE),
                    ("c_zip", C_ZIP),
                    ("c_phone", C_PHONE),
                    ("c_since", C_SINCE),
                    ("c_credit", C_CREDIT),
                    ("c_credit_lim", C_CREDIT_LIM),
                    ("c_discount", C_DISCOUNT),
                    ("c_balance", C_BALANCE),
                    ("c_ytd_payment", C_YTD_PAYMENT),
                    ("c_payment_cnt", C_PAYMENT_CNT),
                ],
            ),
            customer_written: of(
                "customer",
                &[
                    ("c_balance", C_BALANCE),
                    ("c_ytd_payment", C_YTD_PAYMENT),
                    ("c_payment_cnt", C_PAYMENT_CNT),
                ],
            ),
            customer_data: of("customer", &[("c_data", C_DATA)]),
        }
    }
}

const READ: Intent = Intent::Read;
const WRITE: Intent = Intent::Write;

impl Store {
    /// How many customers of the district have the name; with `wanted`, the number of the one at
    /// that position instead.
    fn by_last_name<A: Access>(
        &mut self,
        access: &mut A,
        call: &Call,
        name: Slot,
        wanted: Option<i64>,
    ) -> Result<i64, Halt> {
        let Store {
            memory,
            payment_columns: lists,
            ..
        } = self;
        let Keyed {
            table, observed, ..
        } = &self.customer;
        let index = &table.indexes()[self.customer_by_last];
        let prefix = [
            Slot::from_i64(call.customer_warehouse),
            Slot::from_i64(call.customer_district),
            name,
        ];
        let range = RangeValues {
            prefix: &prefix,
            lower: None,
            upper: None,
        };
        let mut met = 0;
        if let Some(mut scan) = index.scan(&memory.heap, range, false)? {
            let mut batch = LeafBatch::new();
            while scan.next_leaf(&mut batch) {
                access.guard(table, self.customer_by_last, batch.version)?;
                for payload in batch.payloads() {
                    // SAFETY: the payload is of an index of a table that the store keeps.
                    let entry = unsafe { Entry::from_payload(*payload) };
                    let Visit::Present(mut handle) =
                        access.visit(table, entry.record(), READ, observed)?
                    else {
                        continue;
                    };
                    if wanted == Some(met) {
                        access.read(table, &mut handle, &lists.customer_id, memory)?;
                        return Ok(memory.slots[C_ID.0 as usize].as_i64());
                    }
                    met += 1;
                }
            }
        }
        Ok(met)
    }

    /// Runs the transaction up to its commit; its results are in the registers.
    pub fn payment<A: Access>(&mut self, access: &mut A, call: &Call) -> Result<(), Halt> {
        self.memory.heap.clear();
        let customer = match &call.customer {
            Choice::ById(customer) => *customer,
            Choice::ByLast(name) => {
                let name = self.memory.heap.push_str(name);
                let namesakes = self.by_last_name(access, call, name, None)?;
                self.by_last_name(access, call, name, Some((namesakes - 1) / 2))?
            }
        };
        let Store {
            memory,
            payment_columns: lists,
            ..
        } = self;
        macro_rules! slot {
            ($register:expr) => {
                memory.slots[$register.0 as usize]
            };
        }
        macro_rules! add_cents {
            ($register:expr, $cents:expr) => {
                slot!($register) = money(digits(slot!($register)) + $cents)
            };
        }
        let (warehouse, district, cents) = (call.warehouse, call.district, call.amount_cents);
        slot!(WAREHOUSE) = Slot::from_i64(warehouse);
        slot!(DISTRICT) = Slot::from_i64(district);
        slot!(CUSTOMER_WAREHOUSE) = Slot::from_i64(call.customer_warehouse);
        slot!(CUSTOMER_DISTRICT) = Slot::from_i64(call.customer_district);
        slot!(DATE) = Slot::from_i64(call.date);
        slot!(AMOUNT) = money(cents);

        let found = self.warehouse.find(access, memory, [warehouse], WRITE)?;
        let mut handle = found.ok_or_else(|| missing("warehouse"))?;
        access.read(&self.warehouse.table, &mut handle, &lists.warehouse, memory)?;
        add_cents!(W_YTD, cents);
        access.update(
            &self.warehouse.table,
            &mut handle,
            &lists.warehouse_written,
            memory,
        )?;

        let found = self
            .district
            .find(access, memory, [warehouse, district], WRITE)?;
        let mut handle = found.ok_or_else(|| missing("district"))?;
        access.read(&self.district.table, &mut handle, &lists.district, memory)?;
        add_cents!(D_YTD, cents);
        access.update(
            &self.district.table,
            &mut handle,
            &lists.district_written,
            memory,
        )?;

        let key = [call.customer_warehouse, call.customer_district, customer];
        let found = self.customer.find(access, memory, key, WRITE)?;
        let mut handle = found.ok_or_else(|| missing("customer"))?;
        access.read(&self.customer.table, &mut handle, &lists.customer, memory)?;
        add_cents!(C_BALANCE, -cents);
        add_cents!(C_YTD_PAYMENT, cents);
        slot!(C_PAYMENT_CNT) = Slot::from_i64(slot!(C_PAYMENT_CNT).as_i64() + 1);
        access.update(
            &self.customer.table,
            &mut handle,
            &lists.customer_written,
            memory,
        )?;

        if memory.heap.bytes(slot!(C_CREDIT)) == b"BC" {
            access.read(
                &self.customer.table,
                &mut handle,
                &lists.customer_data,
                memory,
            )?;
            let mut data = [0_u8; 600];
            let mut free = &mut data[..];
            let written = write!(
                free,
                "{customer} {} {} {district} {warehouse} {}.{:02}|",
                call.customer_district,
                call.customer_warehouse,
                cents / 100,
                cents % 100
            );
            written.expect("six numbers fit into 600 bytes");
            let taken = 600 - free.len();
            let old = memory.heap.bytes(slot!(C_DATA));
            let length = (taken + old.len()).min(500);
            data[taken..length].copy_from_slice(&old[..length - taken]);
            slot!(C_DATA) = memory.heap.push_bytes(&data[..length]);
            access.update(
                &self.customer.table,
                &mut handle,
                &lists.customer_data,
                memory,
            )?;
            // The caller gets the first 200 characters.
            slot!(C_DATA) = memory.heap.push_bytes(&data[..length.min(200)]);
        }

        slot!(C_ID) = Slot::from_i64(customer);
        let mut data = [b' '; 24];
        let name = memory.heap.bytes(slot!(W_NAME));
        let from = name.len() + 4;
        data[..name.len()].copy_from_slice(name);
        let name = memory.heap.bytes(slot!(D_NAME));
        let length = from + name.len();
        data[from..length].copy_from_slice(name);
        slot!(H_DATA) = memory.heap.push_bytes(&data[..length]);
        let row = [
            C_ID,
            CUSTOMER_DISTRICT,
            CUSTOMER_WAREHOUSE,
            DISTRICT,
            WAREHOUSE,
            DATE,
            AMOUNT,
            H_DATA,
        ];
        inserted(access.insert(&self.history, &row, memory)?, &self.history)
    }
}
