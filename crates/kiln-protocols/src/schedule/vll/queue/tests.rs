//! Places, locks and blocks, without workers.

use std::collections::HashMap;

use kiln_platform::random::Random;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use super::*;
use crate::schedule::vll::CounterArray;
use crate::shared::locks::Locks;
use crate::shared::locks::counters::{BesideRecords, Counted, CounterLocks, Counters};
use crate::shared::planning::{Claim, Demand, Findings};

/// A context that asks for these records, which no test follows.
fn asking(records: &[RecordRef], exclusive: bool) -> Box<Context<CounterArray>> {
    let mut context: Box<Context<CounterArray>> = Context::new(0);
    for &record in records {
        context.plan.demand.claim(Claim {
            record,
            exclusive,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        });
    }
    context.plan.demand.arrange();
    context
}

/// A record that is never followed.
fn record(address: u64) -> RecordRef {
    // SAFETY: no test follows the address.
    unsafe { RecordRef::from_address(address) }
}

fn entered(queue: &TxnQueue<BesideRecords>, guest: Guest) -> Option<QueueEntry> {
    match queue.enter(Context::new(0), None, guest) {
        Entered::Free(context) => Some(context.entry),
        Entered::Blocked(_) => unreachable!("it asks for nothing"),
        Entered::Full(_) | Entered::Barred(_) => None,
    }
}

#[test]
fn a_full_queue_takes_others_when_one_has_left_its_middle() {
    let queue = TxnQueue::new(BesideRecords, 3, false);
    let entries: Vec<_> = (0..3).map(|_| entered(&queue, Guest::Any)).collect();
    assert!(!queue.has_room());
    assert_eq!(entered(&queue, Guest::Any), None);
    let middle = entries[1].expect("there was room");
    assert!(queue.leave(middle).is_none());
    assert!(queue.has_room());
    let again = entered(&queue, Guest::Any).expect("there is room again");
    assert_eq!(again.node, middle.node);
    assert!(queue.withdraw(middle).is_none(), "it has left");
    for entry in [entries[0], entries[2], Some(again)] {
        assert!(!queue.is_empty());
        queue.leave(entry.expect("there was room"));
    }
    assert!(queue.is_empty());
}

#[test]
fn one_that_lingers_leaves_when_the_next_one_comes() {
    let queue = TxnQueue::new(CounterArray::default(), 4, false);
    let free = |context, lingers| match queue.enter(context, lingers, Guest::Any) {
        Entered::Free(context) => context,
        _ => panic!("no request is in its way"),
    };
    let hot = [record(64)];
    let lingers = free(asking(&[], true), None);
    assert!(queue.may_linger());
    let runs = free(asking(&hot, true), None);
    let Entered::Blocked(waits) = queue.enter(asking(&hot, true), None, Guest::Any) else {
        panic!("another one has its record");
    };
    assert!(!queue.may_linger());
    queue.with_ledger(|ledger| ledger.withdraw(&runs.plan.demand));
    assert!(queue.leave(runs.entry).is_none(), "it is not the first yet");
    let before = queue.departures();
    free(asking(&[], true), Some(lingers.entry));
    assert!(queue.departures() > before && queue.head_waits());
    let head = queue.take_head().expect("all before it have left");
    assert!(head.entry == waits && queue.may_linger());
}

#[test]
fn one_that_lingers_keeps_nobody_waiting() {
    let queue = TxnQueue::new(BesideRecords, 4, false);
    let free = |lingers| match queue.enter(Context::new(0), lingers, Guest::Any) {
        Entered::Free(context) => context,
        _ => panic!("it asks for nothing"),
    };
    let lingers = free(None);
    let other = free(None);
    lingers.plan.linger();
    assert!(!queue.pass_lingering(), "no transaction waits");
    assert!(queue.claim_alone());
    assert!(queue.pass_lingering());
    queue.end_alone();
    assert!(queue.leave(other.entry).is_none() && queue.is_empty());
    // Its worker comes later, and takes no other transaction out.
    let last = free(Some(lingers.entry));
    assert!(!queue.is_empty());
    queue.forget(lingers.entry);
    assert!(!queue.is_empty());
    queue.leave(last.entry);
    assert!(queue.is_empty());
}

#[test]
fn a_reader_at_the_head_shares_a_record_with_statements() {
    let counters = CounterArray::default();
    let record = record(64);
    let queue = TxnQueue::new(counters.clone(), 4, false);
    let enter = |exclusive| match queue.enter(asking(&[record], exclusive), None, Guest::Any) {
        Entered::Blocked(entry) => entry,
        _ => panic!("the statement, or the writer, is in its way"),
    };
    let mut statement = CounterLocks::new(counters, false);
    let shared = statement.take(record, false).map(|_| Counted::Unplanned);
    let shared = shared.expect("the record is free");
    let writer = enter(true);
    let reader = enter(false);
    assert!(queue.take_head().is_none(), "the statement reads");
    assert!(queue.withdraw(writer).is_some());
    let head = queue.take_head().expect("both share the record");
    assert!(head.entry == reader);
    statement.release(record, shared, false);
}

#[test]
fn one_that_waits_for_statements_at_the_head_leaves_it_to_others() {
    let counters = CounterArray::default();
    let [block, hot] = [64, 128].map(record);
    let queue = TxnQueue::new(counters.clone(), 4, false);
    let wanting = |record| asking(&[record], true);
    let blocked = |context| match queue.enter(context, None, Guest::Any) {
        Entered::Blocked(entry) => entry,
        _ => panic!("a request is in its way"),
    };
    let mut statement = CounterLocks::new(counters.clone(), false);
    assert!(queue.open());
    assert!(statement.take(block, true).is_ok());
    let waits = blocked(wanting(block));
    let Entered::Free(runs) = queue.enter(wanting(hot), None, Guest::Any) else {
        panic!("no request is in its way");
    };
    let behind = blocked(wanting(hot));
    queue.with_ledger(|ledger| ledger.withdraw(&runs.plan.demand));
    assert!(queue.leave(runs.entry).is_none());
    let barred = loop {
        if let Some(first) = queue.take_head() {
            break first;
        }
    };
    assert!(barred.entry == waits && barred.stage == Stage::Barred);
    let next = queue.take_head().expect("no transaction is before it");
    assert!(next.entry == behind && next.stage != Stage::Barred);
    // It comes again, and stays out, as long as the statement has its record.
    let Entered::Barred(barred) = queue.enter(barred, None, Guest::Any) else {
        panic!("it would be in the way again");
    };
    statement.release(block, Counted::Unplanned, true);
    queue.close();
    assert!(matches!(
        queue.enter(barred, None, Guest::Any),
        Entered::Free(_)
    ));
}

#[test]
fn whoever_is_alone_keeps_the_others_out() {
    let queue = TxnQueue::new(BesideRecords, 3, false);
    assert!(queue.open());
    assert!(queue.claim_alone());
    assert!(!queue.claim_alone() && !queue.open() && !queue.has_room());
    assert_eq!(entered(&queue, Guest::Any), None);
    assert!(
        !queue.is_empty(),
        "a transaction of several statements is open"
    );
    queue.close();
    assert!(queue.is_empty());
    let entry = entered(&queue, Guest::Alone).expect("it is its own");
    queue.leave(entry);
    queue.end_alone();
    assert!(entered(&queue, Guest::Any).is_some() && queue.open());
}

#[test]
fn whoever_is_alone_is_not_in_its_own_way() {
    let counters = CounterArray::default();
    let mut random = Random::from_seed(1);
    let mut met = HashMap::new();
    // Of some thousands two share a counter.
    let sharing = loop {
        let address = (random.below(1 << 40) as u64 + 1) * 16;
        let record = record(address);
        let other = met.insert(std::ptr::from_ref(counters.word(record)), record);
        if let Some(other) = other.filter(|other| *other != record) {
            break [record, other];
        }
    };
    let queue = TxnQueue::new(counters, 2, true);
    assert!(queue.claim_alone());
    let Entered::Free(context) = queue.enter(asking(&sharing, true), None, Guest::Alone) else {
        panic!("no other transaction is there");
    };
    assert!(queue.leave(context.entry).is_none());
    queue.end_alone();
    let Entered::Blocked(_) = queue.enter(context, None, Guest::Any) else {
        panic!("two of its requests share a counter");
    };
    assert!(queue.take_head().is_some(), "it is the first");
}
