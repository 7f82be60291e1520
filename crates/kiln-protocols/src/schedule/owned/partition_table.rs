//! What a partition does with the requests of transactions.

use super::{Demand, Request, Span};
use crate::shared::locks::Naming;

/// The locks of a partition, used by its owner alone.
pub trait PartitionTable: 'static {
    /// Whether workers that look after partitions run no transactions.
    const DEDICATED: bool;
    /// Partitions at most.
    const PARTITIONS_MAX: usize;

    /// How attempts know their locks: by their parts, where each partition has the locks of a part
    /// of the data. Else every one gives all locks, and a transaction asks one of them for all that
    /// it wants.
    type Naming: Naming;

    /// Whether transactions travel: the owner of a partition does all that they do with its
    /// records. Else the worker that has drawn one runs it.
    const OWNERS_RUN: bool = false;

    /// Whether a transaction comes to all its partitions at once, in one order of all transactions
    /// that come to several; each partition answers. Else it comes to one partition after the
    /// other. Only where the worker that drew a transaction runs it.
    const SEQUENCED: bool = false;

    /// Tables without locks for so many partitions.
    fn several(count: usize) -> Vec<Self>
    where
        Self: Sized;

    /// Asks for all locks of a span of a transaction; whether it is through at once: they are
    /// granted, or given up, as it was withdrawn or as a statement is in its way. Else it is handed
    /// to `granted` later, which gets others that are through now.
    ///
    /// # Safety
    /// The transaction waits, and this thread alone may use its demand, or, where it comes to all
    /// its partitions at once, the requests of the span; the caller owns the partition.
    unsafe fn acquire_span(
        &mut self,
        demand: *mut Demand,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Takes back all locks of a transaction's span, whose requests are among `requests`; `granted`
    /// gets each transaction that has all locks of its own span now.
    ///
    /// # Safety
    /// It has all that it asked for here; other partitions may do the same at the same time with
    /// other spans. The caller owns the partition.
    unsafe fn release_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    );

    /// As [`PartitionTable::release_span`] for a transaction that may have come here or not, if it
    /// waits for one of its locks; whether it does. Then it has none of them any more.
    ///
    /// # Safety
    /// As there.
    unsafe fn withdraw_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Takes a lock if no transaction has it or waits for it; whether it is taken. If not, the
    /// table does not know of it.
    ///
    /// # Safety
    /// The request has no demand, and stays where it is until it is given back; the caller alone
    /// uses it, and owns the partition.
    unsafe fn take_free(
        &mut self,
        request: *mut Request,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool;

    /// Makes a shared lock exclusive if no other transaction has it or waits for it; whether it is.
    ///
    /// # Safety
    /// The lock was taken by [`PartitionTable::take_free`]; the caller owns the partition.
    unsafe fn upgrade(&mut self, request: *mut Request) -> bool;

    /// Takes back a lock that was taken by [`PartitionTable::take_free`].
    ///
    /// # Safety
    /// As there.
    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand));
}
