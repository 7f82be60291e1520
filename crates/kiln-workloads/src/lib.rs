//! Benchmark workloads: SQL files, loaders, argument generators and audits.
