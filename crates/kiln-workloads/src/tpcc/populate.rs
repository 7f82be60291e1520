//! The population (clause 4.3.3.1).
//!
//! Each warehouse has a random stream of its own, so that loaders may make warehouses in any
//! order and in parallel and always get the same rows.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, DISTRICTS};
use crate::population::{RowSink, decimal, fixed_text, money, text};
use crate::random::{
    Constants, permutation, push_alphanumeric, push_capitals, push_digits, push_last_name,
    push_original_data, push_zip,
};

/// The tables that all warehouses share: item.
pub fn populate_shared(config: &Config, seed: u64, sink: &mut dyn RowSink) {
    let random = &mut Random::stream(seed, 0);
    sink.table(
        "item",
        &["i_id", "i_im_id", "i_name", "i_price", "i_data"],
        u64::from(config.items),
    );
    let mut row = vec![Value::Null; 5];
    for item in 1..=config.items {
        row[0] = Value::Integer(item as i32);
        row[1] = Value::Integer(random.between(1, 10_000) as i32);
        push_alphanumeric(text(&mut row[2]), random, 14, 24);
        row[3] = money(random.between(100, 10_000));
        push_original_data(text(&mut row[4]), random);
        sink.row(&row);
    }
}

/// The rows of one warehouse, `1..=config.warehouses`, in all tables but item.
pub fn populate_warehouse(config: &Config, seed: u64, warehouse: u16, sink: &mut dyn RowSink) {
    let mut population = Population {
        config,
        constants: Constants::from_seed(seed),
        random: Random::stream(seed, u64::from(warehouse)),
        warehouse: Value::SmallInt(warehouse as i16),
        sink,
    };
    population.warehouse();
    population.districts();
    population.customers();
    population.history();
    population.stock();
    let line_counts = population.orders();
    population.order_lines(&line_counts);
    population.new_orders();
}

struct Population<'a> {
    config: &'a Config,
    constants: Constants,
    random: Random,
    /// The warehouse's w_id.
    warehouse: Value,
    sink: &'a mut dyn RowSink,
}

/// Money that every customer of the population has paid, in cents.
const PAID_CENTS: i64 = 10_00;

impl Population<'_> {
    /// Rows of a table that has one per customer of the warehouse.
    fn per_customer(&self) -> u64 {
        DISTRICTS as u64 * u64::from(self.config.customers_per_district)
    }

    /// Street, street, city, state, zip: five columns, the same in three tables.
    fn address(random: &mut Random, columns: &mut [Value]) {
        for column in &mut columns[..3] {
            push_alphanumeric(text(column), random, 10, 20);
        }
        push_capitals(text(&mut columns[3]), random, 2);
        push_zip(text(&mut columns[4]), random);
    }

    fn warehouse(&mut self) {
        self.sink.table(
            "warehouse",
            &[
                "w_id",
                "w_name",
                "w_street_1",
                "w_street_2",
                "w_city",
                "w_state",
                "w_zip",
                "w_tax",
                "w_ytd",
            ],
            1,
        );
        let random = &mut self.random;
        let mut row = vec![Value::Null; 9];
        row[0] = self.warehouse.clone();
        push_alphanumeric(text(&mut row[1]), random, 6, 10);
        Self::address(random, &mut row[2..7]);
        row[7] = Value::Numeric(decimal(random.between(0, 2_000), 4));
        // 300,000.00 for 30,000 customers: what they have paid, whatever their number.
        row[8] = money(self.per_customer() as i64 * PAID_CENTS);
        self.sink.row(&row);
    }

    fn districts(&mut self) {
        self.sink.table(
            "district",
            &[
                "d_id",
                "d_w_id",
                "d_name",
                "d_street_1",
                "d_street_2",
                "d_city",
                "d_state",
                "d_zip",
                "d_tax",
                "d_ytd",
                "d_next_o_id",
            ],
            DISTRICTS as u64,
        );
        let random = &mut self.random;
        let mut row = vec![Value::Null; 11];
        row[1] = self.warehouse.clone();
        row[9] = money(i64::from(self.config.customers_per_district) * PAID_CENTS);
        row[10] = Value::Integer(self.config.customers_per_district as i32 + 1);
        for district in 1..=DISTRICTS {
            row[0] = Value::SmallInt(district);
            push_alphanumeric(text(&mut row[2]), random, 6, 10);
            Self::address(random, &mut row[3..8]);
            row[8] = Value::Numeric(decimal(random.between(0, 2_000), 4));
            self.sink.row(&row);
        }
    }

    fn customers(&mut self) {
        self.sink.table(
            "customer",
            &[
                "c_id",
                "c_d_id",
                "c_w_id",
                "c_first",
                "c_middle",
                "c_last",
                "c_street_1",
                "c_street_2",
                "c_city",
                "c_state",
                "c_zip",
                "c_phone",
                "c_since",
                "c_credit",
                "c_credit_lim",
                "c_discount",
                "c_balance",
                "c_ytd_payment",
                "c_payment_cnt",
                "c_delivery_cnt",
                "c_data",
            ],
            self.per_customer(),
        );
        let random = &mut self.random;
        let mut row = vec![Value::Null; 21];
        row[2] = self.warehouse.clone();
        fixed_text(&mut row[4], "OE");
        row[12] = Value::Timestamp(self.config.start);
        row[14] = money(5_000_000);
        row[16] = money(-PAID_CENTS);
        row[17] = money(PAID_CENTS);
        row[18] = Value::Integer(1);
        row[19] = Value::Integer(0);
        for district in 1..=DISTRICTS {
            row[1] = Value::SmallInt(district);
            for customer in 1..=self.config.customers_per_district {
                row[0] = Value::Integer(customer as i32);
                push_alphanumeric(text(&mut row[3]), random, 8, 16);
                // Every last name occurs: the first thousand customers have one each.
                let names = self.config.last_names();
                let name = match i64::from(customer) - 1 {
                    number if number < names => number,
                    _ => self.constants.load_last_name.next(random, 0, names - 1),
                };
                push_last_name(text(&mut row[5]), name);
                Self::address(random, &mut row[6..11]);
                push_digits(text(&mut row[11]), random, 16);
                fixed_text(&mut row[13], if random.percent(10.0) { "BC" } else { "GC" });
                row[15] = Value::Numeric(decimal(random.between(0, 5_000), 4));
                push_alphanumeric(text(&mut row[20]), random, 300, 500);
                self.sink.row(&row);
            }
        }
    }

    fn history(&mut self) {
        self.sink.table(
            "history",
            &[
                "h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_date", "h_amount",
                "h_data",
            ],
            self.per_customer(),
        );
        let mut row = vec![Value::Null; 8];
        row[2] = self.warehouse.clone();
        row[4] = self.warehouse.clone();
        row[5] = Value::Timestamp(self.config.start);
        row[6] = money(PAID_CENTS);
        for district in 1..=DISTRICTS {
            row[1] = Value::SmallInt(district);
            row[3] = Value::SmallInt(district);
            for customer in 1..=self.config.customers_per_district {
                row[0] = Value::Integer(customer as i32);
                push_alphanumeric(text(&mut row[7]), &mut self.random, 12, 24);
                self.sink.row(&row);
            }
        }
    }

    fn stock(&mut self) {
        self.sink.table(
            "stock",
            &[
                "s_i_id",
                "s_w_id",
                "s_quantity",
                "s_dist_01",
                "s_dist_02",
                "s_dist_03",
                "s_dist_04",
                "s_dist_05",
                "s_dist_06",
                "s_dist_07",
                "s_dist_08",
                "s_dist_09",
                "s_dist_10",
                "s_ytd",
                "s_order_cnt",
                "s_remote_cnt",
                "s_data",
            ],
            u64::from(self.config.items),
        );
        let random = &mut self.random;
        let mut row = vec![Value::Null; 17];
        row[1] = self.warehouse.clone();
        row[13..16].fill(Value::Integer(0));
        for item in 1..=self.config.items {
            row[0] = Value::Integer(item as i32);
            row[2] = Value::SmallInt(random.between(10, 100) as i16);
            for district in &mut row[3..13] {
                push_alphanumeric(text(district), random, 24, 24);
            }
            push_original_data(text(&mut row[16]), random);
            self.sink.row(&row);
        }
    }

    /// Makes the orders and returns how many lines each has.
    fn orders(&mut self) -> Vec<u8> {
        self.sink.table(
            "orders",
            &[
                "o_id",
                "o_d_id",
                "o_w_id",
                "o_c_id",
                "o_entry_d",
                "o_carrier_id",
                "o_ol_cnt",
                "o_all_local",
            ],
            self.per_customer(),
        );
        let random = &mut self.random;
        let (low, high) = (
            i64::from(self.config.items_min),
            i64::from(self.config.items_max),
        );
        let mut line_counts = Vec::new();
        let mut row = vec![Value::Null; 8];
        row[2] = self.warehouse.clone();
        row[4] = Value::Timestamp(self.config.start);
        row[7] = Value::SmallInt(1);
        for district in 1..=DISTRICTS {
            row[1] = Value::SmallInt(district);
            let customers = permutation(random, self.config.customers_per_district as usize);
            for (order, customer) in (1..).zip(customers) {
                let lines = random.between(low, high);
                line_counts.push(lines as u8);
                row[0] = Value::Integer(order);
                row[3] = Value::Integer(customer as i32);
                row[5] = if order as u32 <= self.config.delivered_per_district() {
                    Value::SmallInt(random.between(1, 10) as i16)
                } else {
                    Value::Null
                };
                row[6] = Value::SmallInt(lines as i16);
                self.sink.row(&row);
            }
        }
        line_counts
    }

    fn order_lines(&mut self, line_counts: &[u8]) {
        self.sink.table(
            "order_line",
            &[
                "ol_o_id",
                "ol_d_id",
                "ol_w_id",
                "ol_number",
                "ol_i_id",
                "ol_supply_w_id",
                "ol_delivery_d",
                "ol_quantity",
                "ol_amount",
                "ol_dist_info",
            ],
            line_counts.iter().map(|count| u64::from(*count)).sum(),
        );
        let random = &mut self.random;
        let mut row = vec![Value::Null; 10];
        row[2] = self.warehouse.clone();
        row[5] = self.warehouse.clone();
        row[7] = Value::SmallInt(5);
        let per_district = self.config.customers_per_district as usize;
        for (district, counts) in (1..).zip(line_counts.chunks(per_district)) {
            row[1] = Value::SmallInt(district);
            for (order, count) in (1..).zip(counts) {
                let delivered = order as u32 <= self.config.delivered_per_district();
                row[0] = Value::Integer(order);
                row[6] = if delivered {
                    Value::Timestamp(self.config.start)
                } else {
                    Value::Null
                };
                for number in 1..=i16::from(*count) {
                    row[3] = Value::SmallInt(number);
                    row[4] = Value::Integer(random.between(1, i64::from(self.config.items)) as i32);
                    row[8] = money(if delivered {
                        0
                    } else {
                        random.between(1, 999_999)
                    });
                    push_alphanumeric(text(&mut row[9]), random, 24, 24);
                    self.sink.row(&row);
                }
            }
        }
    }

    fn new_orders(&mut self) {
        let first = self.config.delivered_per_district() + 1;
        let last = self.config.customers_per_district;
        self.sink.table(
            "new_order",
            &["no_o_id", "no_d_id", "no_w_id"],
            DISTRICTS as u64 * u64::from(last + 1 - first),
        );
        let mut row = vec![Value::Null, Value::Null, self.warehouse.clone()];
        for district in 1..=DISTRICTS {
            row[1] = Value::SmallInt(district);
            for order in first..=last {
                row[0] = Value::Integer(order as i32);
                self.sink.row(&row);
            }
        }
    }
}
