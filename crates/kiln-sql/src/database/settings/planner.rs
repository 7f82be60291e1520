//! Settings of PostgreSQL's planner, its memory and its statistics: taken, so that scripts that
//! tune it run, and without effect. What a statement reads is decided when it is compiled, without
//! costs, and no statement sorts or joins on disk.

use super::known::{Kind, Known};

/// What all of them are for.
const WITHOUT_EFFECT: &str = "Taken for scripts; plans do not depend on it.";

const fn switch(name: &'static str, default: &'static str) -> Known {
    (name, name, default, Kind::Boolean, WITHOUT_EFFECT)
}

const fn cost(name: &'static str, default: &'static str) -> Known {
    (name, name, default, Kind::Real, WITHOUT_EFFECT)
}

const fn count(name: &'static str, default: &'static str, most: i64) -> Known {
    (name, name, default, Kind::Integer(0, most), WITHOUT_EFFECT)
}

/// A size; a number without a unit counts so many kilobytes.
const fn size(name: &'static str, default: &'static str, kilobytes: u64) -> Known {
    (name, name, default, Kind::Size(kilobytes), WITHOUT_EFFECT)
}

const fn word(name: &'static str, default: &'static str, words: &'static [&'static str]) -> Known {
    (name, name, default, Kind::Word(words), WITHOUT_EFFECT)
}

/// By name.
pub(super) const WITHOUT_EFFECTS: &[Known] = &[
    word(
        "constraint_exclusion",
        "partition",
        &[
            "partition",
            "on",
            "off",
            "true",
            "false",
            "yes",
            "no",
            "1",
            "0",
        ],
    ),
    cost("cpu_index_tuple_cost", "0.005"),
    cost("cpu_operator_cost", "0.0025"),
    cost("cpu_tuple_cost", "0.01"),
    cost("cursor_tuple_fraction", "0.1"),
    count("default_statistics_target", "100", 10_000),
    word("default_toast_compression", "pglz", &["pglz", "lz4"]),
    size("effective_cache_size", "4GB", 8),
    count("effective_io_concurrency", "1", 1_000),
    switch("enable_async_append", "on"),
    switch("enable_bitmapscan", "on"),
    switch("enable_gathermerge", "on"),
    switch("enable_hashagg", "on"),
    switch("enable_hashjoin", "on"),
    switch("enable_incremental_sort", "on"),
    switch("enable_indexonlyscan", "on"),
    switch("enable_indexscan", "on"),
    switch("enable_material", "on"),
    switch("enable_memoize", "on"),
    switch("enable_mergejoin", "on"),
    switch("enable_nestloop", "on"),
    switch("enable_parallel_append", "on"),
    switch("enable_parallel_hash", "on"),
    switch("enable_partition_pruning", "on"),
    switch("enable_partitionwise_aggregate", "off"),
    switch("enable_partitionwise_join", "off"),
    switch("enable_seqscan", "on"),
    switch("enable_sort", "on"),
    switch("enable_tidscan", "on"),
    word(
        "force_parallel_mode",
        "off",
        &[
            "off", "on", "regress", "true", "false", "yes", "no", "1", "0",
        ],
    ),
    count("from_collapse_limit", "8", i32::MAX as i64),
    switch("geqo", "on"),
    count("geqo_threshold", "12", i32::MAX as i64),
    cost("hash_mem_multiplier", "2"),
    switch("jit", "on"),
    cost("jit_above_cost", "100000"),
    count("join_collapse_limit", "8", i32::MAX as i64),
    size("maintenance_work_mem", "64MB", 1),
    count("max_parallel_maintenance_workers", "2", 1_024),
    count("max_parallel_workers", "8", 1_024),
    count("max_parallel_workers_per_gather", "2", 1_024),
    size("min_parallel_index_scan_size", "512kB", 8),
    size("min_parallel_table_scan_size", "8MB", 8),
    switch("parallel_leader_participation", "on"),
    cost("parallel_setup_cost", "1000"),
    cost("parallel_tuple_cost", "0.1"),
    word(
        "plan_cache_mode",
        "auto",
        &["auto", "force_generic_plan", "force_custom_plan"],
    ),
    cost("random_page_cost", "4"),
    cost("seq_page_cost", "1"),
    word(
        "stats_fetch_consistency",
        "cache",
        &["none", "cache", "snapshot"],
    ),
    size("temp_buffers", "8MB", 8),
    switch("track_counts", "on"),
    word("track_functions", "none", &["none", "pl", "all"]),
    switch("track_io_timing", "off"),
    (
        "vacuum_cost_delay",
        "vacuum_cost_delay",
        "0",
        Kind::Duration,
        WITHOUT_EFFECT,
    ),
    size("work_mem", "4MB", 1),
];
