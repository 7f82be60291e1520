//! Random programs do the same with and without the optimiser.
//!
//! A small interpreter of the IR runs each program twice over a toy table, as it was made and after
//! [`merge_lookups`], and compares what was emitted, how it ended, and what the table holds. The
//! programs use few keys and variables, so that look-ups of one key, writes between them and
//! assignments to key variables are frequent. Each run makes the same programs; `KILN_TEST_SEED`
//! names others.

mod generator;
mod interpreter;
#[path = "../support/mod.rs"]
mod support;

use kiln_procedure::Procedure;
use kiln_procedure::analysis::Analysis;
use kiln_procedure::analysis::names::for_each_step;
use kiln_procedure::ir::*;
use kiln_procedure::optimise::{merge_lookups, note_undo, renumber_registers, set_intents};
use kiln_procedure::verify::verify;
use kiln_storage::types::DataType;

use generator::Generator;
use interpreter::{Row, run};

fn lookups(program: &Procedure) -> usize {
    let kinds = program.operations.iter().map(|operation| operation.kind);
    kinds.filter(|kind| *kind == OperationKind::Lookup).count()
}

fn reads(program: &Procedure) -> usize {
    let kinds = program.operations.iter().map(|operation| operation.kind);
    kinds.filter(|kind| *kind == OperationKind::Read).count()
}

/// How many registers are tested for NULL.
fn tests_for_null(program: &Procedure) -> usize {
    let mut tests = 0;
    for_each_step(&program.body, &mut |step| {
        tests += match step {
            Step::Scalar(Instruction::AnyNull { sources, .. }) => sources.len(),
            Step::Scalar(Instruction::IsNull { .. } | Instruction::RequireNotNull { .. }) => 1,
            _ => 0,
        };
    });
    tests
}

#[test]
fn optimised_programs_do_the_same() {
    let (merged, joined, tests) = compare(false);
    assert!(
        merged > 200 && joined > 200 && tests > 500,
        "only {merged} look-ups, {joined} reads and {tests} tests for NULL went"
    );
}

/// With notes of how changes are taken back, which are there when the optimiser comes.
#[test]
fn optimised_programs_catch_the_same() {
    let (merged, _, tests) = compare(true);
    assert!(
        merged > 100 && tests > 100,
        "only {merged} look-ups and {tests} tests for NULL went"
    );
}

/// Compares programs, with protected regions or without; how many look-ups, reads and tests for
/// NULL went.
fn compare(protects: bool) -> (usize, usize, usize) {
    let integer = DataType::Integer;
    let columns = ["a", "b", "c?", "d?"].map(|name| (name, integer.clone()));
    let table = support::table(1, "toy", &columns, 2, &[("toy_c", &[2], true)]);
    let seed = std::env::var("KILN_TEST_SEED").ok();
    let seed: Option<u64> = seed.map(|seed| seed.parse().expect("a seed"));
    // Among these is a scan that leaves a loop around it with a variable that is read behind.
    let seed = seed.unwrap_or(8_862_535_530_636_107_000);
    let (mut merged, mut joined, mut tests) = (0, 0, 0);
    for round in 0..2_000 {
        let seed = seed.wrapping_add(round);
        let mut generator = Generator::new(seed, &table, protects);
        let plain = &generator.program;
        verify(plain).unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{:#?}", plain.body));
        let mut optimised = Generator::new(seed, &table, protects).program;
        note_undo(&mut optimised);
        merge_lookups(&mut optimised);
        set_intents(&mut optimised);
        renumber_registers(&mut optimised);
        verify(&optimised)
            .unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{:#?}", optimised.body));
        Analysis::of(&optimised);
        merged += lookups(plain) - lookups(&optimised);
        joined += reads(plain).saturating_sub(reads(&optimised));
        tests += tests_for_null(plain).saturating_sub(tests_for_null(&optimised));
        for _ in 0..8 {
            let random = &mut generator.random;
            let mut rows: Vec<Row> = Vec::new();
            for a in 0..3 {
                for b in 0..2 {
                    if random.percent(70.0) {
                        let c = random.percent(70.0).then_some(a * 2 + b);
                        let d = random.percent(80.0).then(|| random.between(0, 3));
                        rows.push([Some(a), Some(b), c, d]);
                    }
                }
            }
            let arguments = [(); 2].map(|()| random.percent(95.0).then(|| random.between(0, 3)));
            let expected = run(&generator.program, &arguments, &rows, 2000);
            let actual = run(&optimised, &arguments, &rows, 4000);
            // Copies may stand where look-ups were, so that it is not always shorter.
            assert!(
                expected.is_none() || expected == actual,
                "seed {seed}: with {arguments:?} over {rows:?}\nexpected {expected:?}\nbut was  \
                 {actual:?}\nfor {:#?}\nbecame {:#?}",
                generator.program.body,
                optimised.body
            );
        }
    }
    (merged, joined, tests)
}
