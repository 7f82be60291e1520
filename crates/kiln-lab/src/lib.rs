//! Benchmarks and their reports.
