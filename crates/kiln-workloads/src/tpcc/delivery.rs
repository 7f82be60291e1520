//! Deferred deliveries (clause 2.7.2).
//!
//! A terminal that draws a Delivery only queues a request at its warehouse and goes on. A worker
//! that next turns to that warehouse finds the request and executes it; its latency counts from the
//! queueing. Where one worker executes all deliveries of a warehouse, it looks for requests there
//! before anything else. What each delivery did is kept in a log, as the specification's result
//! file is.

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::sync::{self, Mutex};

use super::config::DeliveryWorkers;
use crate::definition::DeliveryRequest;

/// The requests that a queue holds at most where any worker executes them. One that finds the queue
/// full is executed by its terminal at once.
const CAPACITY: usize = 64;

/// The requests that a queue holds at most where one worker executes them. What that worker is
/// behind by is left when the run ends; a request that finds the queue full is not made.
const CAPACITY_OF_ONE: usize = 1 << 16;

#[derive(Debug)]
struct Queue {
    /// The number of requests, read without the lock to see that there are none.
    length: AtomicUsize,
    requests: Mutex<std::collections::VecDeque<DeliveryRequest>>,
    capacity: usize,
}

/// One bounded first-in-first-out queue per warehouse, shared by all terminals of a run.
#[derive(Debug)]
pub struct DeliveryQueues(Box<[Queue]>);

impl DeliveryQueues {
    /// Empty queues for warehouses `1..=warehouses`.
    pub fn new(warehouses: u16, workers: DeliveryWorkers) -> DeliveryQueues {
        let capacity = match workers {
            DeliveryWorkers::Any => CAPACITY,
            DeliveryWorkers::One => CAPACITY_OF_ONE,
        };
        let queue = || Queue {
            length: AtomicUsize::new(0),
            requests: Mutex::new(std::collections::VecDeque::with_capacity(CAPACITY)),
            capacity,
        };
        let queues: Box<[Queue]> = (0..warehouses).map(|_| queue()).collect();
        for (warehouse, queue) in (1..).zip(&queues) {
            let address = std::ptr::from_ref(queue).addr();
            name_range(address, size_of::<Queue>(), || {
                format!("delivery queue of warehouse {warehouse}")
            });
        }
        DeliveryQueues(queues)
    }

    fn queue(&self, warehouse: i16) -> &Queue {
        &self.0[warehouse as usize - 1]
    }

    /// Queues a request at its warehouse; false when the queue is full.
    pub fn push(&self, request: DeliveryRequest) -> bool {
        let queue = self.queue(request.warehouse);
        let mut requests = sync::lock(&queue.requests);
        if requests.len() == queue.capacity {
            return false;
        }
        requests.push_back(request);
        // Relaxed: the length is only a hint whether to take the lock; the lock orders the rest.
        queue.length.store(requests.len(), Ordering::Relaxed);
        true
    }

    /// Takes the warehouse's oldest request.
    #[inline]
    pub fn pop(&self, warehouse: i16) -> Option<DeliveryRequest> {
        let queue = self.queue(warehouse);
        // Relaxed: a request that is missed here is found at the next call.
        if queue.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut requests = sync::lock(&queue.requests);
        let request = requests.pop_front();
        queue.length.store(requests.len(), Ordering::Relaxed);
        request
    }

    /// Requests that are queued now, over all warehouses.
    pub fn pending(&self) -> usize {
        self.0
            .iter()
            .map(|queue| sync::lock(&queue.requests).len())
            .sum()
    }
}

/// What one delivery did (clause 2.7.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The request.
    pub request: DeliveryRequest,
    /// When it was complete, in nanoseconds of the monotonic clock.
    pub completed_ns: u64,
    /// The order delivered in each district, in order; 0 where the district was skipped.
    pub orders: [i32; super::DISTRICTS as usize],
}

impl DeliveryRecord {
    /// Districts that had no order to deliver.
    pub fn skipped(&self) -> usize {
        self.orders.iter().filter(|order| **order == 0).count()
    }
}

/// The latest deliveries of one terminal, and counts of all of them.
#[derive(Debug)]
pub struct DeliveryLog {
    records: Vec<DeliveryRecord>,
    /// Where the next record goes once the log is full.
    next: usize,
    /// Deliveries logged, those that the log no longer holds included.
    deliveries: u64,
}

/// The records that a log keeps.
const LOG_CAPACITY: usize = 4_096;

impl DeliveryLog {
    pub(super) fn new() -> DeliveryLog {
        // Allocated whole, so that logging never allocates.
        DeliveryLog {
            records: Vec::with_capacity(LOG_CAPACITY),
            next: 0,
            deliveries: 0,
        }
    }

    pub(super) fn push(&mut self, record: DeliveryRecord) {
        self.deliveries += 1;
        if self.records.len() < LOG_CAPACITY {
            self.records.push(record);
        } else {
            self.records[self.next] = record;
            self.next = (self.next + 1) % LOG_CAPACITY;
        }
    }

    /// Deliveries logged since the start.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// The latest records, up to 4,096, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &DeliveryRecord> {
        let (newer, older) = self.records.split_at(self.next);
        older.iter().chain(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(warehouse: i16, queued_ns: u64) -> DeliveryRequest {
        DeliveryRequest {
            warehouse,
            carrier: 1,
            date: 0,
            queued_ns,
        }
    }

    #[test]
    fn queues_are_first_in_first_out_per_warehouse_and_bounded() {
        let queues = DeliveryQueues::new(2, DeliveryWorkers::Any);
        assert_eq!(queues.pop(1), None);
        for queued_ns in 0..CAPACITY as u64 {
            assert!(queues.push(request(1, queued_ns)));
        }
        assert!(!queues.push(request(1, 99)));
        assert!(queues.push(request(2, 7)));
        assert_eq!(queues.pending(), CAPACITY + 1);
        assert_eq!(queues.pop(1), Some(request(1, 0)));
        assert_eq!(queues.pop(1), Some(request(1, 1)));
        assert_eq!(queues.pop(2), Some(request(2, 7)));
        assert_eq!(queues.pop(2), None);
    }

    #[test]
    fn the_log_keeps_the_latest_records() {
        let mut log = DeliveryLog::new();
        let record = |number| DeliveryRecord {
            request: request(1, number),
            completed_ns: number,
            orders: [1, 2, 3, 0, 0, 6, 7, 8, 9, 10],
        };
        for number in 0..LOG_CAPACITY as u64 + 5 {
            log.push(record(number));
        }
        assert_eq!(log.deliveries(), LOG_CAPACITY as u64 + 5);
        let kept: Vec<u64> = log.records().map(|record| record.completed_ns).collect();
        assert_eq!(kept, (5..LOG_CAPACITY as u64 + 5).collect::<Vec<_>>());
        assert_eq!(record(0).skipped(), 2);
    }
}
