//! Draws the calls of one worker (clauses 2.4 to 2.8).

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_storage::types::Value;

use super::config::{DeliveryWorkers, Mix, OrderNumbers, WarehouseChoice};
use super::delivery::{DeliveryLog, DeliveryQueues, DeliveryRecord};
use super::numbers::NextNumbers;
use super::{
    Config, DELIVERY, DISTRICTS, NEW_ORDER, ORDER_STATUS, PAYMENT, PROCEDURES, STOCK_LEVEL,
};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::DeliveryRequest;
use crate::definition::{Call, DrawCalls, ProcedureIndex};
use crate::population::decimal;
use crate::random::{Constants, push_last_name};

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    config: Config,
    constants: Constants,
    random: Random,
    homes: Homes,
    /// The warehouses whose deliveries it executes, where one worker does that.
    delivers: Option<Homes>,
    queues: Arc<DeliveryQueues>,
    /// The numbers of the next orders, where terminals give them.
    numbers: Option<Arc<NextNumbers>>,
    log: DeliveryLog,
    totals: Totals,
    /// The logical clock, in microseconds since 2000-01-01: a millisecond a call.
    clock: i64,
    // Buffers for the arguments of one call.
    items: Vec<i64>,
    supply_warehouses: Vec<i64>,
    quantities: Vec<i64>,
    last_name: String,
}

/// The warehouses `first, first + step, …` up to the last.
#[derive(Clone, Copy, Debug)]
struct Homes {
    first: i64,
    step: i64,
    count: i64,
}

impl Homes {
    fn of_worker(config: &Config, worker: usize, workers: usize) -> Homes {
        let warehouses = i64::from(config.warehouses);
        let (worker, workers) = (worker as i64, workers as i64);
        match config.warehouse_choice {
            WarehouseChoice::Home if workers >= warehouses => Homes {
                first: worker % warehouses + 1,
                step: 1,
                count: 1,
            },
            WarehouseChoice::Home => Homes::dealt(warehouses, worker, workers),
            WarehouseChoice::Uniform => Homes {
                first: 1,
                step: 1,
                count: warehouses,
            },
        }
    }

    /// The part of a worker when each warehouse belongs to one: none for those beyond the last
    /// warehouse.
    fn dealt(warehouses: i64, worker: i64, workers: i64) -> Homes {
        Homes {
            first: worker + 1,
            step: workers,
            count: (warehouses - worker + workers - 1) / workers,
        }
    }

    #[inline]
    fn draw(self, random: &mut Random) -> i64 {
        if self.count == 1 {
            return self.first;
        }
        self.first + self.step * random.below(self.count as usize) as i64
    }
}

impl Terminal {
    /// The terminals of all workers of a run, which share the delivery queues; `before` is what
    /// earlier runs on the same database did.
    pub fn for_workers(
        config: &Config,
        seed: u64,
        workers: usize,
        before: &Totals,
    ) -> Vec<Terminal> {
        let queues = Arc::new(DeliveryQueues::new(
            config.warehouses,
            config.delivery_workers,
        ));
        let numbers = match config.order_numbers {
            OrderNumbers::District => None,
            OrderNumbers::Terminals => Some(Arc::new(NextNumbers::new(config, before.last_order))),
        };
        let dealt = |worker: usize| {
            let warehouses = i64::from(config.warehouses);
            Homes::dealt(warehouses, worker as i64, workers as i64)
        };
        (0..workers)
            .map(|worker| Terminal {
                config: config.clone(),
                constants: Constants::from_seed(seed),
                // Streams of their own: the population has those from 0.
                random: Random::stream(seed, (1 << 32) + worker as u64),
                homes: Homes::of_worker(config, worker, workers),
                delivers: match config.delivery_workers {
                    DeliveryWorkers::Any => None,
                    DeliveryWorkers::One => Some(dealt(worker)),
                },
                queues: queues.clone(),
                numbers: numbers.clone(),
                log: DeliveryLog::new(),
                totals: Totals::new(PROCEDURES.len()),
                clock: config.start,
                items: Vec::with_capacity(config.items_max.into()),
                supply_warehouses: Vec::with_capacity(config.items_max.into()),
                quantities: Vec::with_capacity(config.items_max.into()),
                last_name: String::with_capacity(16),
            })
            .collect()
    }

    /// The deliveries that this terminal executed.
    pub fn delivery_log(&self) -> &DeliveryLog {
        &self.log
    }

    /// The queues that all terminals of the run share.
    pub fn delivery_queues(&self) -> &DeliveryQueues {
        &self.queues
    }

    fn draw_procedure(&mut self) -> ProcedureIndex {
        let percent = self.random.below(100);
        match (self.config.mix, percent) {
            (Mix::NewOrderPayment, 0..50) => NEW_ORDER,
            (Mix::NewOrderPayment, _) => PAYMENT,
            (Mix::Full, 0..45) => NEW_ORDER,
            (Mix::Full, 45..88) => PAYMENT,
            (Mix::Full, 88..92) => ORDER_STATUS,
            (Mix::Full, 92..96) => DELIVERY,
            (Mix::Full, _) => STOCK_LEVEL,
        }
    }

    fn district(&mut self) -> i64 {
        self.random.between(1, i64::from(DISTRICTS))
    }

    fn customer(&mut self) -> i64 {
        let customers = i64::from(self.config.customers_per_district);
        self.constants.customer.next(&mut self.random, 1, customers)
    }

    /// A warehouse other than `warehouse`, of which there is at least one.
    fn other_warehouse(&mut self, warehouse: i64) -> i64 {
        let drawn = self
            .random
            .between(1, i64::from(self.config.warehouses) - 1);
        if drawn < warehouse { drawn } else { drawn + 1 }
    }

    fn is_remote(&mut self, percent: f64) -> bool {
        self.config.warehouses > 1 && self.random.percent(percent)
    }

    fn new_order<A: ArgumentSink>(&mut self, warehouse: i64, arguments: &mut A) {
        let district = self.district();
        let customer = self.customer();
        let (low, high) = (
            i64::from(self.config.items_min),
            i64::from(self.config.items_max),
        );
        let lines = self.random.between(low, high);
        let items = i64::from(self.config.items);
        self.items.clear();
        self.supply_warehouses.clear();
        self.quantities.clear();
        for _ in 0..lines {
            self.items
                .push(self.constants.item.next(&mut self.random, 1, items));
            let supply = if self.is_remote(self.config.remote_item_percent) {
                self.other_warehouse(warehouse)
            } else {
                warehouse
            };
            self.supply_warehouses.push(supply);
            self.quantities.push(self.random.between(1, 10));
        }
        // No number is drawn where there is no such share: seeds go on meaning the same calls.
        let share = self.config.remote_new_order_percent;
        if share > 0.0 && self.is_remote(share) {
            let line = self.random.below(self.supply_warehouses.len());
            self.supply_warehouses[line] = self.other_warehouse(warehouse);
        }
        if self.random.percent(self.config.rollback_percent)
            && let Some(last) = self.items.last_mut()
        {
            *last = items + 1;
        }
        arguments.push_i64(warehouse);
        arguments.push_i64(district);
        arguments.push_i64(customer);
        arguments.push_timestamp(self.clock);
        arguments.push_i64_array(&self.items);
        arguments.push_i64_array(&self.supply_warehouses);
        arguments.push_i64_array(&self.quantities);
        if let Some(numbers) = &self.numbers {
            let number = numbers.take(warehouse, district);
            self.totals.last_order = self.totals.last_order.max(number);
            arguments.push_i64(number.into());
        }
    }

    /// The two arguments that choose a customer: the number or NULL, the last name or NULL.
    fn choose_customer<A: ArgumentSink>(&mut self, arguments: &mut A) {
        if self.random.percent(self.config.by_last_name_percent) {
            let names = self.config.last_names();
            let name = self
                .constants
                .last_name
                .next(&mut self.random, 0, names - 1);
            self.last_name.clear();
            push_last_name(&mut self.last_name, name);
            arguments.push_null();
            arguments.push_text(&self.last_name);
        } else {
            let customer = self.customer();
            arguments.push_i64(customer);
            arguments.push_null();
        }
    }

    fn payment<A: ArgumentSink>(&mut self, warehouse: i64, arguments: &mut A) {
        let district = self.district();
        let (customer_warehouse, customer_district) =
            if self.is_remote(self.config.remote_payment_percent) {
                (self.other_warehouse(warehouse), self.district())
            } else {
                (warehouse, district)
            };
        arguments.push_i64(warehouse);
        arguments.push_i64(district);
        arguments.push_i64(customer_warehouse);
        arguments.push_i64(customer_district);
        self.choose_customer(arguments);
        arguments.push_decimal(decimal(self.random.between(100, 500_000), 2));
        arguments.push_timestamp(self.clock);
    }

    fn order_status<A: ArgumentSink>(&mut self, warehouse: i64, arguments: &mut A) {
        let district = self.district();
        arguments.push_i64(warehouse);
        arguments.push_i64(district);
        self.choose_customer(arguments);
    }

    fn stock_level<A: ArgumentSink>(&mut self, warehouse: i64, arguments: &mut A) {
        let district = self.district();
        arguments.push_i64(warehouse);
        arguments.push_i64(district);
        arguments.push_i64(self.random.between(10, 20));
        if let Some(numbers) = &self.numbers {
            arguments.push_i64(numbers.next(warehouse, district).into());
        }
    }

    fn deliver<A: ArgumentSink>(&mut self, request: DeliveryRequest, arguments: &mut A) -> Call {
        arguments.push_i64(request.warehouse.into());
        arguments.push_i64(request.carrier.into());
        arguments.push_timestamp(request.date);
        Call {
            procedure: DELIVERY,
            delivery: Some(request),
        }
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        loop {
            self.clock += 1_000;
            let warehouse = self.homes.draw(&mut self.random);
            let delivers_at = match self.delivers {
                None => Some(warehouse),
                Some(own) if own.count > 0 => Some(own.draw(&mut self.random)),
                Some(_) => None,
            };
            if let Some(request) = delivers_at.and_then(|at| self.queues.pop(at as i16)) {
                return self.deliver(request, arguments);
            }
            let procedure = self.draw_procedure();
            match procedure {
                NEW_ORDER => self.new_order(warehouse, arguments),
                PAYMENT => self.payment(warehouse, arguments),
                ORDER_STATUS => self.order_status(warehouse, arguments),
                STOCK_LEVEL => self.stock_level(warehouse, arguments),
                _ => {
                    let request = DeliveryRequest {
                        warehouse: warehouse as i16,
                        carrier: self.random.between(1, 10) as i16,
                        date: self.clock,
                        queued_ns: time::now_ns(),
                    };
                    if self.queues.push(request) || self.delivers.is_some() {
                        continue;
                    }
                    return self.deliver(request, arguments);
                }
            }
            return Call::immediate(procedure);
        }
    }

    /// A delivery's rows are (district, order).
    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
        let Some(request) = call.delivery else {
            return;
        };
        let mut orders = [0; DISTRICTS as usize];
        for row in rows {
            if let [Value::Integer(district @ 1..=10), Value::Integer(order), ..] = row.as_ref() {
                orders[*district as usize - 1] = *order;
            }
        }
        let record = DeliveryRecord {
            request,
            completed_ns: time::now_ns(),
            orders,
        };
        let skipped = record.skipped() as u64;
        self.totals.skipped += skipped;
        self.totals.delivered += DISTRICTS as u64 - skipped;
        self.log.push(record);
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
