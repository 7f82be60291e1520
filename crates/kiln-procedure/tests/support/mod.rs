//! Tables and hand-built procedures shaped like TPC-C's Payment and NewOrder, statement by
//! statement as a front end compiles them: each statement looks its row up itself.

#![allow(dead_code, reason = "each test file uses a part")]

use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::SqlState;
use kiln_storage::schema::{
    Column, ColumnId, IndexDefinition, IndexKind, IndexMethod, TableId, TableSchema,
};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

/// A table with these columns (name, type); the first `key` of them are its primary key. All are
/// NOT NULL but those whose names end in `?`.
pub fn table(
    id: u32,
    name: &str,
    columns: &[(&str, DataType)],
    key: usize,
    secondary: &[(&str, &[u16], bool)],
) -> Arc<Table> {
    let columns = columns
        .iter()
        .map(|(name, data_type)| Column {
            name: name.trim_end_matches('?').to_owned(),
            data_type: data_type.clone(),
            not_null: !name.ends_with('?'),
            default: None,
            domain: None,
            generated: None,
        })
        .collect();
    let schema = TableSchema {
        name: name.to_owned(),
        columns,
        primary_key: (0..key).map(|column| ColumnId(column as u16)).collect(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let secondary = secondary
        .iter()
        .map(|(name, columns, unique)| IndexDefinition {
            name: (*name).to_owned(),
            columns: columns.iter().map(|column| ColumnId(*column)).collect(),
            unique: *unique,
            constraint: false,
            partial: false,
            nulls_equal: false,
            deferral: Default::default(),
            method: IndexMethod::BTree,
            kind: IndexKind::Ordered {
                partition_columns: 0,
            },
        })
        .collect();
    Arc::new(Table::new(TableId(id), schema, 0, secondary).expect("the table is well formed"))
}

/// TPC-C's tables, shortened to what the procedures here use.
pub struct Tables {
    pub warehouse: Arc<Table>,
    pub district: Arc<Table>,
    pub customer: Arc<Table>,
    pub history: Arc<Table>,
    pub item: Arc<Table>,
    pub stock: Arc<Table>,
    pub orders: Arc<Table>,
    pub order_line: Arc<Table>,
}

pub fn money() -> DataType {
    DataType::numeric(12, 2)
}

pub fn tables() -> Tables {
    use DataType::{Integer, SmallInt, VarChar};
    let name = || VarChar(Some(16));
    Tables {
        warehouse: table(
            1,
            "warehouse",
            &[("w_id", SmallInt), ("w_name", name()), ("w_ytd", money())],
            1,
            &[],
        ),
        district: table(
            2,
            "district",
            &[
                ("d_w_id", SmallInt),
                ("d_id", SmallInt),
                ("d_name", name()),
                ("d_ytd", money()),
                ("d_next_o_id", Integer),
            ],
            2,
            &[],
        ),
        customer: table(
            3,
            "customer",
            &[
                ("c_w_id", SmallInt),
                ("c_d_id", SmallInt),
                ("c_id", Integer),
                ("c_last", name()),
                ("c_first", name()),
                ("c_credit", DataType::Char(2)),
                ("c_balance", money()),
                ("c_data", VarChar(Some(500))),
            ],
            3,
            &[("customer_name", &[0, 1, 3], false)],
        ),
        history: table(
            4,
            "history",
            &[
                ("h_c_id", Integer),
                ("h_w_id", SmallInt),
                ("h_amount", money()),
                ("h_data", name()),
            ],
            0,
            &[],
        ),
        item: table(
            5,
            "item",
            &[("i_id", Integer), ("i_price", money())],
            1,
            &[],
        ),
        stock: table(
            6,
            "stock",
            &[
                ("s_w_id", SmallInt),
                ("s_i_id", Integer),
                ("s_quantity", Integer),
                ("s_ytd", Integer),
            ],
            2,
            &[],
        ),
        orders: table(
            7,
            "orders",
            &[
                ("o_w_id", SmallInt),
                ("o_d_id", SmallInt),
                ("o_id", Integer),
                ("o_c_id", Integer),
                ("o_carrier_id?", SmallInt),
            ],
            3,
            &[("orders_customer", &[0, 1, 3, 2], true)],
        ),
        order_line: table(
            8,
            "order_line",
            &[
                ("ol_w_id", SmallInt),
                ("ol_d_id", SmallInt),
                ("ol_o_id", Integer),
                ("ol_number", Integer),
                ("ol_i_id", Integer),
                ("ol_amount", money()),
            ],
            4,
            &[],
        ),
    }
}

/// A builder for a procedure with these parameters.
pub fn procedure(name: &str, parameters: &[(&str, DataType)]) -> ProgramBuilder {
    let parameters = parameters
        .iter()
        .map(|(name, data_type)| ((*name).to_owned(), data_type.clone()));
    ProgramBuilder::new(name, parameters)
}

/// Shorthands for what front ends do with the builder.
pub trait Compile {
    fn then(&mut self, condition: Reg, body: impl FnOnce(&mut Self));
    fn then_else(
        &mut self,
        condition: Reg,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    );
    fn assign(&mut self, target: Reg, source: Reg);
    fn integer(&mut self, value: i32) -> Reg;
    fn arithmetic(&mut self, op: Arithmetic, left: Reg, right: Reg) -> Reg;
    fn add_money(&mut self, left: Reg, right: Reg) -> Reg;
    fn compare(&mut self, op: Comparison, class: Class, left: Reg, right: Reg) -> Reg;
    fn emit(&mut self, row: &[Reg]);
}

impl Compile for ProgramBuilder {
    fn then(&mut self, condition: Reg, body: impl FnOnce(&mut Self)) {
        self.then_else(condition, body, |_| {});
    }

    fn then_else(
        &mut self,
        condition: Reg,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        self.open();
        then(self);
        let then = self.close();
        self.open();
        otherwise(self);
        let otherwise = self.close();
        self.push(Step::If {
            condition,
            then,
            otherwise,
        });
    }

    fn assign(&mut self, target: Reg, source: Reg) {
        self.scalar(Instruction::Move { target, source });
    }

    fn integer(&mut self, value: i32) -> Reg {
        self.constant(DataType::Integer, Value::Integer(value))
    }

    fn arithmetic(&mut self, op: Arithmetic, left: Reg, right: Reg) -> Reg {
        let target = self.register(DataType::Integer);
        self.scalar(Instruction::Integer {
            op,
            width: Width::Four,
            target,
            left,
            right,
        });
        target
    }

    fn add_money(&mut self, left: Reg, right: Reg) -> Reg {
        let (sum, target) = (self.register(DataType::NUMERIC), self.register(money()));
        self.scalar(Instruction::Decimal {
            op: Arithmetic::Add,
            target: sum,
            left,
            right,
        });
        self.scalar(Instruction::Rescale {
            target,
            source: sum,
            precision: 12,
            scale: 2,
        });
        target
    }

    fn compare(&mut self, op: Comparison, class: Class, left: Reg, right: Reg) -> Reg {
        let target = self.register(DataType::Boolean);
        self.scalar(Instruction::Compare {
            op,
            class,
            target,
            left,
            right,
        });
        target
    }

    fn emit(&mut self, row: &[Reg]) {
        self.push(Step::Emit { row: row.into() });
    }
}

pub fn column(position: u16) -> ColumnId {
    ColumnId(position)
}

pub fn failure(message: &str) -> Box<Failure> {
    Box::new(Failure {
        state: SqlState::RAISE_EXCEPTION,
        message: message.to_owned(),
        arguments: Box::new([]),
        detail: None,
        hint: None,
        subject: None,
        position: None,
    })
}

/// Payment: the customer by number, or the middle one of those with a last name.
pub fn payment(tables: &Tables) -> Program {
    use DataType::{BigInt, Boolean, Integer, SmallInt, VarChar};
    let name = VarChar(Some(16));
    let mut b = procedure(
        "payment",
        &[
            ("warehouse_id", SmallInt),
            ("district_id", SmallInt),
            ("by_id", Integer),
            ("by_last", name.clone()),
            ("amount", money()),
        ],
    );
    let [w_id, d_id, by_id, by_last, amount] = [0, 1, 2, 3, 4].map(|at| b.parameter(at));
    let warehouse = b.table(&tables.warehouse);
    let district = b.table(&tables.district);
    let customer = b.table(&tables.customer);
    let history = b.table(&tables.history);
    let at = |line: u32| Some((line, 5));

    // customer_id := by_id; IF by_id IS NULL THEN the middle namesake.
    let customer_id = b.register(Integer);
    b.assign(customer_id, by_id);
    let by_name = b.register(Boolean);
    b.scalar(Instruction::IsNull {
        target: by_name,
        source: by_id,
        negated: false,
    });
    b.then(by_name, |b| {
        let buffer = b.buffer(2);
        b.push(Step::BufferClear { buffer });
        let record = b.record();
        b.open();
        let columns = b.read(customer, record, &[column(2), column(4)], at(3));
        b.push(Step::BufferPush {
            buffer,
            row: columns.into(),
        });
        let body = b.close();
        let range = Range {
            prefix: [w_id, d_id, by_last].into(),
            ..Range::default()
        };
        b.scan(customer, 1, range, false, record, body, at(3));
        let by_first = SortKey {
            column: 1,
            class: Class::Bytes,
            descending: false,
            nulls_first: false,
        };
        b.push(Step::BufferSort {
            buffer,
            by: [by_first].into(),
        });
        let (count, skip, two) = (
            b.register(BigInt),
            b.register(BigInt),
            b.constant(BigInt, Value::BigInt(2)),
        );
        b.push(Step::BufferCount {
            buffer,
            target: count,
        });
        b.scalar(Instruction::Integer {
            op: Arithmetic::Divide,
            width: Width::Eight,
            target: skip,
            left: count,
            right: two,
        });
        let (c_id, c_first) = (b.register(Integer), b.register(VarChar(Some(16))));
        b.open();
        let (zero, one) = (
            b.constant(BigInt, Value::BigInt(0)),
            b.constant(BigInt, Value::BigInt(1)),
        );
        let reached = b.compare(Comparison::LessOrEqual, Class::Integer, skip, zero);
        b.then(reached, |b| {
            b.assign(customer_id, c_id);
            b.push(Step::Exit { depth: 0 });
        });
        b.scalar(Instruction::Integer {
            op: Arithmetic::Subtract,
            width: Width::Eight,
            target: skip,
            left: skip,
            right: one,
        });
        let body = b.close();
        b.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: [c_id, c_first].into(),
            body,
        });
    });

    // UPDATE warehouse SET w_ytd = w_ytd + amount RETURNING w_name.
    let w_name = b.register(name.clone());
    b.scalar(Instruction::SetNull { target: w_name });
    let (record, found) = b.lookup(warehouse, 0, &[w_id], at(6));
    b.then(found, |b| {
        let ytd = b.read(warehouse, record, &[column(2)], at(6))[0];
        let sum = b.add_money(ytd, amount);
        b.update(warehouse, record, &[(column(2), sum)], at(6));
        let read = b.read(warehouse, record, &[column(1)], at(6))[0];
        b.assign(w_name, read);
    });

    // UPDATE district SET d_ytd = d_ytd + amount.
    let (record, found) = b.lookup(district, 0, &[w_id, d_id], at(8));
    b.then(found, |b| {
        let ytd = b.read(district, record, &[column(3)], at(8))[0];
        let sum = b.add_money(ytd, amount);
        b.update(district, record, &[(column(3), sum)], at(8));
    });

    // UPDATE customer SET c_balance = c_balance - amount RETURNING c_credit.
    let credit = b.register(DataType::Char(2));
    b.scalar(Instruction::SetNull { target: credit });
    let found_variable = b.register(Boolean);
    let (record, found) = b.lookup(customer, 0, &[w_id, d_id, customer_id], at(10));
    b.assign(found_variable, found);
    b.then(found, |b| {
        let balance = b.read(customer, record, &[column(6)], at(10))[0];
        let sum = b.add_money(balance, amount);
        b.update(customer, record, &[(column(6), sum)], at(10));
        let read = b.read(customer, record, &[column(5)], at(10))[0];
        b.assign(credit, read);
    });
    let missing = b.register(Boolean);
    b.scalar(Instruction::Not {
        target: missing,
        source: found_variable,
    });
    b.then(missing, |b| {
        b.push(Step::Raise {
            error: failure("no such customer"),
        })
    });

    // IF credit = 'BC' THEN UPDATE customer SET c_data = by_last || c_data.
    let bad = b.constant(DataType::Char(2), Value::Text("BC".to_owned()));
    let is_bad = b.compare(Comparison::Equal, Class::Bytes, credit, bad);
    b.then(is_bad, |b| {
        let (record, found) = b.lookup(customer, 0, &[w_id, d_id, customer_id], at(14));
        b.then(found, |b| {
            let data = b.read(customer, record, &[column(7)], at(14))[0];
            let longer = b.register(VarChar(Some(500)));
            b.scalar(Instruction::Concat {
                target: longer,
                left: by_last,
                right: data,
            });
            b.update(customer, record, &[(column(7), longer)], at(14));
        });
    });

    b.insert(history, &[customer_id, w_id, amount, w_name], None, at(17));
    b.finish()
}

/// NewOrder: a counter gives the order its number; one iteration a line.
pub fn new_order(tables: &Tables) -> Program {
    use DataType::{BigInt, Boolean, Integer, SmallInt};
    let mut b = procedure(
        "new_order",
        &[
            ("warehouse_id", SmallInt),
            ("district_id", SmallInt),
            ("customer_id", Integer),
            ("item_ids", DataType::array(Integer)),
            ("quantities", DataType::array(Integer)),
        ],
    );
    let [w_id, d_id, c_id, item_ids, quantities] = [0, 1, 2, 3, 4].map(|at| b.parameter(at));
    let district = b.table(&tables.district);
    let item = b.table(&tables.item);
    let stock = b.table(&tables.stock);
    let orders = b.table(&tables.orders);
    let order_line = b.table(&tables.order_line);
    let at = |line: u32| Some((line, 5));

    // UPDATE district SET d_next_o_id = d_next_o_id + 1 RETURNING d_next_o_id - 1 INTO order_id.
    let order_id = b.register(Integer);
    b.scalar(Instruction::SetNull { target: order_id });
    let one = b.integer(1);
    let (record, found) = b.lookup(district, 0, &[w_id, d_id], at(2));
    b.then(found, |b| {
        let next = b.read(district, record, &[column(4)], at(2))[0];
        let after = b.arithmetic(Arithmetic::Add, next, one);
        b.update(district, record, &[(column(4), after)], at(2));
        let new = b.read(district, record, &[column(4)], at(2))[0];
        let old = b.arithmetic(Arithmetic::Subtract, new, one);
        b.assign(order_id, old);
    });

    let (count, line) = (b.register(Integer), b.register(Integer));
    b.scalar(Instruction::ArrayLength {
        target: count,
        array: item_ids,
    });
    b.open();
    let (item_id, quantity) = (b.register(Integer), b.register(Integer));
    b.scalar(Instruction::Element {
        target: item_id,
        array: item_ids,
        index: line,
    });
    b.scalar(Instruction::Element {
        target: quantity,
        array: quantities,
        index: line,
    });

    // SELECT i_price INTO price FROM item.
    let price = b.register(money());
    b.scalar(Instruction::SetNull { target: price });
    let (record, found) = b.lookup(item, 0, &[item_id], at(6));
    b.then(found, |b| {
        let read = b.read(item, record, &[column(1)], at(6))[0];
        b.assign(price, read);
    });
    let missing = b.register(Boolean);
    b.scalar(Instruction::Not {
        target: missing,
        source: found,
    });
    b.then(missing, |b| {
        b.push(Step::Raise {
            error: failure("no such item"),
        })
    });

    // UPDATE stock SET s_quantity = …, s_ytd = s_ytd + quantity.
    let (record, found) = b.lookup(stock, 0, &[w_id, item_id], at(9));
    b.then(found, |b| {
        let read = b.read(stock, record, &[column(2), column(3)], at(9));
        let left = b.arithmetic(Arithmetic::Subtract, read[0], quantity);
        let ytd = b.arithmetic(Arithmetic::Add, read[1], quantity);
        b.update(stock, record, &[(column(2), left), (column(3), ytd)], at(9));
    });

    let (exact, amount, decimal) = (
        b.register(DataType::NUMERIC),
        b.register(money()),
        b.register(DataType::NUMERIC),
    );
    b.scalar(Instruction::IntegerToDecimal {
        target: decimal,
        source: quantity,
    });
    b.scalar(Instruction::Decimal {
        op: Arithmetic::Multiply,
        target: exact,
        left: decimal,
        right: price,
    });
    b.scalar(Instruction::Rescale {
        target: amount,
        source: exact,
        precision: 12,
        scale: 2,
    });
    b.insert(
        order_line,
        &[w_id, d_id, order_id, line, item_id, amount],
        None,
        at(12),
    );
    let body = b.close();
    let step = b.constant(BigInt, Value::BigInt(1));
    b.push(Step::ForRange {
        variable: line,
        first: one,
        last: count,
        step,
        reverse: false,
        body,
    });

    let no_carrier = b.constant(SmallInt, Value::Null);
    b.insert(
        orders,
        &[w_id, d_id, order_id, c_id, no_carrier],
        None,
        at(15),
    );
    b.finish()
}
