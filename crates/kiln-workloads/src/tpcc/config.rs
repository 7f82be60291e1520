//! TPC-C's settings: what the specification fixes, and what the papers vary.

use super::{ABOUT, ABOUT_NUMBERED, Terminal, closing_checks, populate_shared, populate_warehouse};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::clock::START;
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{choice, chosen, number, option, percent, unknown};

/// Which transactions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// All five: 45 % New-Order, 43 % Payment, 4 % each of the others (clause 5.2.3).
    Full,
    /// Half New-Order, half Payment (ORTHRUS §4, STRIFE §5).
    NewOrderPayment,
}

/// Which warehouse a terminal's next call goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarehouseChoice {
    /// One of the worker's own: the warehouses are dealt out to the workers in turn, and workers
    /// beyond the warehouses share them.
    Home,
    /// Any, uniformly.
    Uniform,
}

/// The workers that execute the deliveries which wait at a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryWorkers {
    /// Each worker that turns to the warehouse.
    Any,
    /// One worker, before anything else: two deliveries at a warehouse always conflict (STO §3.3).
    /// The others leave them to it, even when it cannot keep up, and fewer than 4 % of the calls
    /// are deliveries then.
    One,
}

/// The source of the numbers of a district's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderNumbers {
    /// The district's row, in the transaction.
    District,
    /// The terminals, by a counter that they share, before the transaction: fast order ids, which
    /// Silo and STO use (STO §3.3). An order that rolls back leaves a gap.
    Terminals,
}

/// The settings of TPC-C.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Warehouses, 1 to 32,767.
    pub warehouses: u16,
    /// Items, and stock rows per warehouse. The specification has 100,000.
    pub items: u32,
    /// Customers, and orders of the population, per district. The specification has 3,000.
    pub customers_per_district: u32,
    /// Which transactions run.
    pub mix: Mix,
    /// Which warehouse the next call goes to.
    pub warehouse_choice: WarehouseChoice,
    /// The workers that execute deliveries.
    pub delivery_workers: DeliveryWorkers,
    /// The source of the orders' numbers.
    pub order_numbers: OrderNumbers,
    /// Order lines supplied by another warehouse, in percent. The specification has 1, so that
    /// one order in ten is remote.
    pub remote_item_percent: f64,
    /// New-Orders of which one line, whichever, is supplied by another warehouse besides, in percent
    /// (VLL §3.3.3 varies the share of transactions with several partitions).
    pub remote_new_order_percent: f64,
    /// Payments of customers of another warehouse, in percent. The specification has 15.
    pub remote_payment_percent: f64,
    /// Payments and Order-Status calls that name the customer by last name, in percent. The
    /// specification has 60.
    pub by_last_name_percent: f64,
    /// New-Orders that roll back on an unused item, in percent. The specification has 1.
    pub rollback_percent: f64,
    /// The fewest lines of an order. The specification has 5.
    pub items_min: u8,
    /// The most lines of an order. The specification has 15.
    pub items_max: u8,
    /// The date of the population, in microseconds since 2000-01-01; calls follow it.
    pub start: i64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            warehouses: 1,
            items: 100_000,
            customers_per_district: 3_000,
            mix: Mix::Full,
            warehouse_choice: WarehouseChoice::Home,
            delivery_workers: DeliveryWorkers::Any,
            order_numbers: OrderNumbers::District,
            remote_item_percent: 1.0,
            remote_new_order_percent: 0.0,
            remote_payment_percent: 15.0,
            by_last_name_percent: 60.0,
            rollback_percent: 1.0,
            items_min: 5,
            items_max: 15,
            start: START,
        }
    }
}

impl Config {
    /// A database of this many warehouses with a hundredth of the rows, for tests.
    pub fn small(warehouses: u16) -> Config {
        Config {
            warehouses,
            items: 1_000,
            customers_per_district: 30,
            ..Config::default()
        }
    }

    /// Orders of the population in a district that are delivered already: seven in ten, which is
    /// 2,100 of 3,000.
    pub(super) fn delivered_per_district(&self) -> u32 {
        self.customers_per_district * 7 / 10
    }

    /// How many last names there are: a thousand, or one per customer when there are fewer.
    pub(super) fn last_names(&self) -> i64 {
        i64::from(self.customers_per_district).min(1_000)
    }
}

const MIXES: &[(&str, Mix)] = &[
    ("full", Mix::Full),
    ("new-order-payment", Mix::NewOrderPayment),
];

const WAREHOUSE_CHOICES: &[(&str, WarehouseChoice)] = &[
    ("home", WarehouseChoice::Home),
    ("uniform", WarehouseChoice::Uniform),
];

const DELIVERY_WORKERS: &[(&str, DeliveryWorkers)] =
    &[("any", DeliveryWorkers::Any), ("one", DeliveryWorkers::One)];

const ORDER_NUMBERS: &[(&str, OrderNumbers)] = &[
    ("district", OrderNumbers::District),
    ("terminals", OrderNumbers::Terminals),
];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        match self.order_numbers {
            OrderNumbers::District => &ABOUT,
            OrderNumbers::Terminals => &ABOUT_NUMBERED,
        }
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            warehouses,
            items,
            customers_per_district,
            mix,
            warehouse_choice,
            delivery_workers,
            order_numbers,
            remote_item_percent,
            remote_new_order_percent,
            remote_payment_percent,
            by_last_name_percent,
            rollback_percent,
            items_min,
            items_max,
            start: _,
        } = *self;
        vec![
            option("warehouses", warehouses, "Warehouses."),
            option("items", items, "Items, and stock rows per warehouse."),
            option(
                "customers-per-district",
                customers_per_district,
                "Customers per district, and its orders in the population.",
            ),
            option(
                "mix",
                chosen(MIXES, mix),
                "Which transactions run: full, or new-order-payment half and half.",
            ),
            option(
                "warehouse-choice",
                chosen(WAREHOUSE_CHOICES, warehouse_choice),
                "Whether a worker keeps to its home warehouses or takes any: home, uniform.",
            ),
            option(
                "delivery-workers",
                chosen(DELIVERY_WORKERS, delivery_workers),
                "Who executes the deliveries queued at a warehouse: any of its workers, or one alone.",
            ),
            option(
                "order-numbers",
                chosen(ORDER_NUMBERS, order_numbers),
                "Who numbers orders: the district's row, or the terminals before the transaction (fast order ids).",
            ),
            option(
                "remote-item-percent",
                remote_item_percent,
                "Order lines supplied by another warehouse.",
            ),
            option(
                "remote-new-order-percent",
                remote_new_order_percent,
                "New-Orders of which one line is supplied by another warehouse besides.",
            ),
            option(
                "remote-payment-percent",
                remote_payment_percent,
                "Payments of customers of another warehouse.",
            ),
            option(
                "by-last-name-percent",
                by_last_name_percent,
                "Customers chosen by last name.",
            ),
            option(
                "rollback-percent",
                rollback_percent,
                "New-Orders that roll back on an unused item.",
            ),
            option("items-min", items_min, "The fewest lines of an order."),
            option("items-max", items_max, "The most lines of an order."),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "warehouses" => self.warehouses = number(option, value, 1, 32_767)?,
            "items" => self.items = number(option, value, 1, 10_000_000)?,
            "customers-per-district" => {
                self.customers_per_district = number(option, value, 1, 1_000_000)?;
            }
            "mix" => self.mix = choice(option, value, MIXES)?,
            "warehouse-choice" => {
                self.warehouse_choice = choice(option, value, WAREHOUSE_CHOICES)?;
            }
            "delivery-workers" => {
                self.delivery_workers = choice(option, value, DELIVERY_WORKERS)?;
            }
            "order-numbers" => self.order_numbers = choice(option, value, ORDER_NUMBERS)?,
            "remote-item-percent" => self.remote_item_percent = percent(option, value)?,
            "remote-new-order-percent" => self.remote_new_order_percent = percent(option, value)?,
            "remote-payment-percent" => self.remote_payment_percent = percent(option, value)?,
            "by-last-name-percent" => self.by_last_name_percent = percent(option, value)?,
            "rollback-percent" => self.rollback_percent = percent(option, value)?,
            "items-min" => self.items_min = number(option, value, 1, 255)?,
            "items-max" => self.items_max = number(option, value, 1, 255)?,
            _ => return Err(unknown("tpcc", option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        if self.warehouses == 0 || self.warehouses > 32_767 {
            return Err(format!(
                "warehouses is {}, but must be 1 to 32767 (w_id is a SMALLINT)",
                self.warehouses
            ));
        }
        if self.items == 0 || self.customers_per_district == 0 {
            return Err("items and customers-per-district must not be zero".to_owned());
        }
        if self.items_min == 0 || self.items_min > self.items_max {
            return Err(format!(
                "items-min is {} and items-max {}, but an order has at least one line and \
                 items-min may not exceed items-max",
                self.items_min, self.items_max
            ));
        }
        Ok(())
    }

    fn shrink(&mut self) {
        *self = Config {
            items: 20,
            customers_per_district: 3,
            ..self.clone()
        };
    }

    fn parts(&self) -> u64 {
        u64::from(self.warehouses) + 1
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        match u16::try_from(part) {
            Ok(0) => populate_shared(self, seed, sink),
            Ok(warehouse) => populate_warehouse(self, seed, warehouse, sink),
            Err(_) => {}
        }
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        Terminal::for_workers(self, seed, workers, &Totals::default())
    }

    fn terminals_after(&self, seed: u64, workers: usize, before: &Totals) -> Vec<Terminal> {
        Terminal::for_workers(self, seed, workers, before)
    }

    fn closing_checks(&self, _seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self, totals)
    }
}
