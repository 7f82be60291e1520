//! The calibration as text.

use kiln_machine::Preset;

use super::sample::Sample;
use super::{BATCH, Calibration, here, model};
use crate::number::{grouped, significant};
use crate::report::table;

/// One line of the table.
struct Row {
    what: String,
    sample: Sample,
    /// What the model with the measured constants makes of it, in nanoseconds.
    model: Option<f64>,
    /// The same with the checked-in constants.
    checked_in: Option<f64>,
}

/// The whole report.
pub(super) fn report(calibration: &Calibration) -> String {
    let measured = calibration.preset();
    let mut table = table(
        &[
            "nanoseconds",
            "least",
            "lower quartile",
            "median",
            "model, measured",
            "model, checked in",
        ],
        1,
    );
    for row in rows(calibration, &measured) {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), significant);
        table.add_row([
            row.what,
            significant(row.sample.least),
            significant(row.sample.quartile),
            significant(row.sample.median),
            number(row.model),
            number(row.checked_in),
        ]);
    }
    format!(
        "{}\n\n{table}\n\nclock {:.2} GHz; the model answers {} accesses a second\n\n{}",
        calibration.machine.line(),
        calibration.gigahertz(),
        grouped(calibration.model_accesses_per_s as u64),
        constants(&measured, calibration),
    )
}

fn rows(calibration: &Calibration, measured: &Preset) -> Vec<Row> {
    let checked_in = here();
    let row = |what: &str, sample: Sample, model: &dyn Fn(&Preset) -> f64| Row {
        what: what.to_owned(),
        sample,
        model: Some(model(measured)),
        checked_in: Some(model(&checked_in)),
    };
    let cost = |what: &str, sample: Sample, cost: &dyn Fn(&Preset) -> u64| {
        row(what, sample, &|preset| cost(preset) as f64 / 1_000.0)
    };
    let alone = &calibration.alone;
    let mut rows = vec![
        Row {
            what: "four cycles".to_owned(),
            sample: alone.four_cycles,
            model: None,
            checked_in: None,
        },
        cost("load, first level", alone.first_level, &|preset| {
            preset.costs.first_level_ps
        }),
        cost("load, second level", alone.second_level, &|preset| {
            preset.costs.second_level_ps
        }),
    ];
    for (bytes, sample) in &alone.sweep {
        let what = format!("load, random in {} MiB", bytes >> 20);
        rows.push(row(&what, *sample, &|preset| model::chase(preset, *bytes)));
    }
    rows.extend([
        row(
            &format!("load, memory, {BATCH} prefetched together"),
            alone.memory_prefetched,
            &|preset| model::memory_prefetched(preset, BATCH as u32),
        ),
        cost("prefetch of a line at hand", alone.prefetch, &|preset| {
            preset.costs.prefetch_ps
        }),
        cost("store", alone.store, &|preset| preset.costs.store_ps),
        cost("atomic addition", alone.atomic, &|preset| {
            preset.costs.atomic_ps
        }),
        cost("fence", alone.fence, &|preset| preset.work.fence_ps),
        cost("spin hint", alone.spin, &|preset| preset.work.spin_ps),
        Row {
            what: "cycle counter".to_owned(),
            sample: alone.cycles,
            model: None,
            checked_in: None,
        },
        cost("monotonic clock", alone.clock, &|preset| {
            preset.work.clock_ps
        }),
        cost("yield", alone.yielding, &|preset| {
            preset.work.system_call_ps
        }),
    ]);
    if let Some(together) = &calibration.together {
        rows.extend([
            cost(
                "load, modified by another core",
                together.modified,
                &|preset| preset.costs.modified_ps[0],
            ),
            cost("load, read by another core", together.clean, &|preset| {
                preset.costs.clean_ps[0]
            }),
            row(
                "atomic addition, modified by another core",
                together.modified_atomic,
                &|preset| model::atomic_after(preset, false),
            ),
            row(
                "atomic addition, read by both cores",
                together.shared_atomic,
                &|preset| model::atomic_after(preset, true),
            ),
            row("handing a flag over", together.ping_pong, &model::ping_pong),
            row(
                "atomic addition, both cores at once",
                together.contended_atomic,
                &model::contended_atomic,
            ),
        ]);
    }
    rows
}

/// The measured constants in the form in which they are checked in.
fn constants(measured: &Preset, calibration: &Calibration) -> String {
    let (costs, work) = (&measured.costs, &measured.work);
    let mut text = String::from("costs of the preset, in picoseconds\n");
    for (name, value) in [
        ("first_level_ps", costs.first_level_ps),
        ("second_level_ps", costs.second_level_ps),
        ("last_level_ps", costs.last_level_ps),
        ("store_ps", costs.store_ps),
        ("atomic_ps", costs.atomic_ps),
        ("prefetch_ps", costs.prefetch_ps),
        ("modified_ps", costs.modified_ps[0]),
        ("clean_ps", costs.clean_ps[0]),
        ("invalidate_ps", costs.invalidate_ps[0]),
        ("memory_ps", costs.memory_ps[0]),
        ("spin_ps", work.spin_ps),
        ("fence_ps", work.fence_ps),
        ("clock_ps", work.clock_ps),
        ("system_call_ps", work.system_call_ps),
    ] {
        text += &format!("  {name}: {},\n", grouped(value).replace(',', "_"));
    }
    if calibration.together.is_none() {
        text += "(a single core: what concerns two cores is the checked-in value)\n";
    }
    text
}
