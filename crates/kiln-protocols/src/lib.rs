//! Concurrency-control protocols: accesses and schedulers.
