//! The model against reality: the same points run for real and on virtual cores.
//!
//! A build runs either on real cores or on virtual ones, so the real points come as the file that
//! `kiln bench … --json FILE` writes. Its rows say what was run (workload, options, seed, protocol,
//! threads), and the same is run on the modelled machine; nothing is given twice, so nothing can
//! differ. A point passes when the model's throughput is within [`TOLERANCE`] of the real one, and
//! a group of points, one for each protocol, when the model puts the protocols in the real order.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kiln_engine::{BasisFactors, Configuration};
use kiln_machine::Preset;
use kiln_platform::file;
use kiln_workloads::Workload;
use serde_json::Value;

/// How far the model may be off, as a share of the real throughput.
pub const TOLERANCE: f64 = 0.20;

/// What to validate.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Files that `kiln bench --json` wrote.
    pub real: Vec<PathBuf>,
    /// The model of the machine that they were written on.
    pub machine: Preset,
    /// Milliseconds of virtual time that each point is measured for.
    pub milliseconds: f64,
    /// Milliseconds before that, which are in no figure.
    pub warmup_ms: f64,
}

impl Validation {
    /// The default of [`Validation::milliseconds`].
    pub const MILLISECONDS: f64 = 100.0;
    /// The default of [`Validation::warmup_ms`].
    pub const WARMUP_MS: f64 = 20.0;
}

/// A point that was run for real: a row of a file.
#[derive(Clone, Debug)]
pub struct Real {
    /// What ran.
    pub workload: Workload,
    /// Its settings, as `name value` pairs.
    pub options: String,
    /// Under which protocol.
    pub protocol: Configuration,
    /// With which basis factors.
    pub basis_factors: BasisFactors,
    /// On how many cores, each with a thread.
    pub threads: usize,
    /// How many cores the machine had: protocols choose by them how many workers do what.
    pub cores: usize,
    /// What determined the population and the calls.
    pub seed: u64,
    /// Committed calls a second: the middle of the runs, the least and the most.
    pub committed_per_s: f64,
    /// The slowest run.
    pub least: f64,
    /// The fastest run.
    pub most: f64,
    /// Failed attempts for each committed call.
    pub aborts_per_commit: f64,
}

/// A point, real and modelled.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The real one.
    pub real: Real,
    /// The model's committed calls a second.
    pub committed_per_s: f64,
    /// The model's failed attempts for each committed call.
    pub aborts_per_commit: f64,
}

impl Compared {
    /// How much more the model commits than reality, as a share of the latter.
    pub fn error(&self) -> f64 {
        self.committed_per_s / self.real.committed_per_s - 1.0
    }

    /// Whether the model is close enough.
    pub fn passes(&self) -> bool {
        self.error().abs() <= TOLERANCE
    }
}

/// The points of a file.
///
/// # Errors
/// What is wrong with the file: it cannot be read, is no result of a benchmark, or holds points
/// that cannot be run again.
pub fn read(path: &Path) -> Result<Vec<Real>, String> {
    let text = file::read_to_string(path).map_err(|error| format!("cannot read {error}"))?;
    let name = path.display();
    let rows: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    let rows = rows
        .as_array()
        .filter(|rows| !rows.is_empty())
        .ok_or_else(|| format!("{name} has no rows; it should be what kiln bench --json wrote"))?;
    let numbered = rows.iter().enumerate();
    numbered
        .map(|(number, row)| {
            point(row).map_err(|wrong| format!("{name}, row {}: {wrong}", number + 1))
        })
        .collect()
}

fn text<'a>(row: &'a Value, field: &str) -> Result<&'a str, String> {
    let value = row.get(field).and_then(Value::as_str);
    value.ok_or_else(|| format!("there is no text \"{field}\""))
}

fn number(row: &Value, field: &str) -> Result<f64, String> {
    let value = row.get(field).and_then(Value::as_f64);
    value
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("there is no number \"{field}\""))
}

fn point(row: &Value) -> Result<Real, String> {
    let name = text(row, "workload")?;
    let mut workload =
        Workload::by_name(name).ok_or_else(|| format!("there is no workload \"{name}\""))?;
    let settings = row.get("options").and_then(Value::as_object);
    let settings = settings.ok_or("there are no \"options\"")?;
    let mut options = Vec::new();
    for (option, value) in settings {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        // Setting one option to its default can be an error when another decides what it means.
        let same =
            |known: &kiln_workloads::WorkloadOption| known.name == option && known.value == value;
        if !workload.options().iter().any(same) {
            workload.set(option, &value)?;
            options.push(format!("{option} {value}"));
        }
    }
    workload.validate()?;
    let protocol: Configuration = text(row, "protocol")?.parse()?;
    // Rows from before they were all recorded have those that were not as recommended.
    let mut basis_factors = BasisFactors::default();
    for (name, value) in row
        .get("basis_factors")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = value
            .as_str()
            .ok_or_else(|| format!("basis factor {name} is no text"))?;
        basis_factors.choose(name, value)?;
    }
    let threads = number(row, "threads")? as usize;
    let cores = row.get("machine").and_then(|machine| machine.get("cores"));
    let cores = cores
        .and_then(Value::as_u64)
        .map_or(threads, |cores| cores as usize);
    let committed_per_s = number(row, "committed_per_s")?;
    if committed_per_s == 0.0 {
        return Err("nothing was committed".to_owned());
    }
    if row.get("oversubscribed").and_then(Value::as_bool) == Some(true) {
        return Err("there were more threads than cores, which the model does not have".to_owned());
    }
    if row
        .get("sessions")
        .and_then(Value::as_u64)
        .is_some_and(|sessions| sessions > 0)
    {
        return Err("sessions made the calls, and here the workers make them".to_owned());
    }
    if row.get("audit").and_then(Value::as_str) == Some("FAILED") {
        return Err("the audit failed, so the figures count for nothing".to_owned());
    }
    Ok(Real {
        workload,
        options: options.join(", "),
        protocol,
        basis_factors,
        threads,
        cores: cores.max(threads),
        seed: number(row, "seed")? as u64,
        committed_per_s,
        least: number(row, "committed_per_s_min")?,
        most: number(row, "committed_per_s_max")?,
        aborts_per_commit: number(row, "aborts_per_commit")?,
    })
}

/// Pairs of protocols whose order the model turns round, of the same workload on the same number of
/// cores. A pair whose real runs overlap has no order.
pub fn turned_round(points: &[Compared]) -> Vec<(&Compared, &Compared)> {
    let mut pairs = Vec::new();
    for faster in points {
        for slower in points {
            let same = faster.real.workload.name() == slower.real.workload.name()
                && faster.real.options == slower.real.options
                && faster.real.threads == slower.real.threads;
            if same
                && faster.real.least > slower.real.most
                && faster.committed_per_s <= slower.committed_per_s
            {
                pairs.push((faster, slower));
            }
        }
    }
    pairs
}

/// Whether every point is close enough and every order is right.
pub fn passes(points: &[Compared]) -> bool {
    points.iter().all(Compared::passes) && turned_round(points).is_empty()
}

/// A protocol with the basis factors that are not as recommended.
fn protocol_of(real: &Real) -> String {
    let departures = real.basis_factors.departures();
    let departures: Vec<String> = (departures.iter())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    match departures.as_slice() {
        [] => real.protocol.name(),
        some => format!("{} ({})", real.protocol.name(), some.join(", ")),
    }
}

/// The comparison as text.
pub fn report(machine: &Preset, points: &[Compared]) -> String {
    let headings = [
        "workload",
        "protocol",
        "cores",
        "real/s",
        "least – most",
        "model/s",
        "error",
        "aborts/commit",
        "model",
    ];
    let rows: Vec<[String; 9]> = points
        .iter()
        .map(|point| {
            let real = &point.real;
            let mut workload = real.workload.name().to_owned();
            if !real.options.is_empty() {
                let _ = write!(workload, " ({})", real.options);
            }
            [
                workload,
                protocol_of(real),
                real.threads.to_string(),
                format!("{:.0}", real.committed_per_s),
                format!("{:.0} – {:.0}", real.least, real.most),
                format!("{:.0}", point.committed_per_s),
                format!(
                    "{:+.1} %{}",
                    point.error() * 100.0,
                    if point.passes() { "" } else { " !" }
                ),
                format!("{:.4}", real.aborts_per_commit),
                format!("{:.4}", point.aborts_per_commit),
            ]
        })
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([headings[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = format!(
        "The model of machine {} against real cores: {}\n\n",
        machine.name, machine.description
    );
    let mut line = |cells: &[String]| {
        for (column, cell) in cells.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0 | 1 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    };
    line(&headings.map(str::to_owned));
    for row in &rows {
        line(row);
    }
    let within = points.iter().filter(|point| point.passes()).count();
    let worst = points
        .iter()
        .map(|point| point.error().abs())
        .fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "\n{within} of {} points within {:.0} %; the worst is {:.1} % off",
        points.len(),
        TOLERANCE * 100.0,
        worst * 100.0
    );
    let turned = turned_round(points);
    if turned.is_empty() {
        text += "the order of the protocols is the real one\n";
    }
    for (faster, slower) in turned {
        let _ = writeln!(
            text,
            "{} on {} cores: really {} is faster than {}, in the model it is not",
            faster.real.workload.name(),
            faster.real.threads,
            protocol_of(&faster.real),
            protocol_of(&slower.real)
        );
    }
    text
}

/// Runs every point of the files on the modelled machine and prints the comparison. Returns whether
/// it [`passes`].
///
/// # Errors
/// What is wrong with a file, or why a point could not be run.
#[cfg(kiln_sim)]
pub fn validate(validation: &Validation) -> Result<bool, String> {
    use crate::plan::{Measurement, Mode, Plan};

    if validation.real.is_empty() {
        return Err(format!(
            "there is nothing to compare with; {ADVICE} --real tpcc.json --real hot.json"
        ));
    }
    let mut reals = Vec::new();
    for path in &validation.real {
        reals.extend(read(path)?);
    }
    let mut points = Vec::new();
    for real in reals {
        let measurement = Measurement {
            machine: validation.machine.clone(),
            milliseconds: validation.milliseconds,
            warmup_ms: validation.warmup_ms,
            lines: 0,
        };
        let plan = Plan {
            workload: real.workload.clone(),
            protocols: vec![real.protocol],
            cores: vec![real.threads],
            seed: real.seed,
            mode: Mode::Measure(measurement.clone()),
            check: false,
            basis_factors: real.basis_factors,
            jobs: 1,
            json: None,
        };
        plan.validate()?;
        let (threads, cores) = (real.threads, real.cores);
        let point =
            crate::measure::measure_one(&plan, &measurement, real.protocol, threads, cores)?;
        if !point.audit.passed() {
            return Err(crate::report::violations(&point.audit));
        }
        eprintln!(
            "{}, {}, {} cores: {:?}",
            real.workload.name(),
            real.protocol,
            real.threads,
            point.statistics
        );
        points.push(Compared {
            committed_per_s: point.committed_per_s(),
            aborts_per_commit: point.per_commit(point.done.statistics.aborts_total()),
            real,
        });
    }
    crate::report::show(&report(&validation.machine, &points))?;
    Ok(passes(&points))
}

/// Says that this build has no virtual cores, and how to validate.
///
/// # Errors
/// What is wrong with a file; otherwise always: what to do instead.
#[cfg(not(kiln_sim))]
pub fn validate(validation: &Validation) -> Result<bool, String> {
    for path in &validation.real {
        read(path)?;
    }
    let files: Vec<String> = validation
        .real
        .iter()
        .map(|path| format!(" --real {}", path.display()))
        .collect();
    Err(format!(
        "this build runs on real cores only; {ADVICE}{}",
        match files.is_empty() {
            true => " --real tpcc.json --real hot.json".to_owned(),
            false => files.concat(),
        }
    ))
}

/// How a validation goes.
const ADVICE: &str = "measure on a quiet machine with the ordinary build, and give the results to the \
build for virtual cores, in Kiln's source directory:\n\n  \
kiln bench tpcc --protocol serial,silo,2pl-no-wait --threads 1,2 --repeat 5 --json tpcc.json\n  \
kiln bench hot --protocol serial,silo,2pl-no-wait --threads 1,2 --repeat 5 --json hot.json\n  \
cargo sim --validate";

#[cfg(test)]
mod tests {
    use kiln_engine::Protocol;

    use super::*;

    fn row(protocol: &str, threads: u32, rate: f64) -> Value {
        serde_json::json!({
            "workload": "tpcc",
            "options": { "warehouses": 2, "mix": "full" },
            "protocol": protocol,
            "threads": threads,
            "oversubscribed": false,
            "seed": 42,
            "committed_per_s": rate,
            "committed_per_s_min": rate * 0.98,
            "committed_per_s_max": rate * 1.02,
            "aborts_per_commit": 0.25,
            "audit": "passed",
        })
    }

    fn compared(protocol: &str, real: f64, model: f64) -> Compared {
        Compared {
            real: point(&row(protocol, 2, real)).expect("the row is sound"),
            committed_per_s: model,
            aborts_per_commit: 0.5,
        }
    }

    #[test]
    fn a_row_says_what_ran() {
        let real = point(&row("silo", 2, 1e5)).expect("the row is sound");
        assert_eq!(real.options, "warehouses 2", "what is not a default");
        assert_eq!((real.threads, real.seed), (2, 42));
        assert_eq!(real.protocol, Protocol::Silo);
        let options = real.workload.options();
        assert!(
            options
                .iter()
                .any(|option| option.name == "warehouses" && option.value == "2")
        );
    }

    #[test]
    fn a_row_says_with_which_basis_factors_and_on_what_machine() {
        let mut recorded = BasisFactors::default();
        recorded.split_indexes = true;
        recorded.protocols.batches.size = 512;
        recorded.protocols.partitions = 4;
        let mut row = row("strife", 1, 1e5);
        row["basis_factors"] = kiln_lab::json::basis_factors(&recorded);
        row["machine"] = serde_json::json!({ "cores": 2 });
        let real = point(&row).expect("the row is sound");
        assert_eq!(real.basis_factors, recorded);
        assert_eq!((real.threads, real.cores), (1, 2));
        assert_eq!(
            protocol_of(&real),
            "strife (batch-size 512, data-partitions 4, indexes split)"
        );
    }

    #[test]
    fn rows_that_cannot_be_run_again_are_refused() {
        let broken: [(&str, Value, &str); 9] = [
            ("workload", "tpcd".into(), "no workload \"tpcd\""),
            ("protocol", "hope".into(), "no protocol \"hope\""),
            (
                "committed_per_s",
                Value::Null,
                "no number \"committed_per_s\"",
            ),
            ("committed_per_s", 0.into(), "nothing was committed"),
            ("oversubscribed", true.into(), "more threads than cores"),
            ("options", serde_json::json!({"warehouses": 0}), "from 1 to"),
            ("audit", "FAILED".into(), "audit failed"),
            ("sessions", 8.into(), "sessions made the calls"),
            (
                "basis_factors",
                serde_json::json!({"k": "lots"}),
                "no basis factor k with the value \"lots\"",
            ),
        ];
        for (field, value, message) in broken {
            let mut row = row("silo", 1, 1e5);
            row[field] = value;
            let error = point(&row).expect_err("the row is broken");
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn files_that_are_no_results_are_refused() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("kiln-validate-{}.json", std::process::id()));
        for (content, message) in [
            ("", "EOF"),
            ("[]", "no rows"),
            ("{\"a\": 1}", "no rows"),
            ("[1]", "row 1: there is no text"),
        ] {
            file::write(&path, content.as_bytes()).expect("the file can be written");
            let error = read(&path).expect_err("this is no result");
            assert!(error.contains(message), "{error}");
        }
        let rows = Value::Array(vec![row("silo", 1, 5.0), row("serial", 1, 6.0)]);
        file::write(&path, rows.to_string().as_bytes()).expect("the file can be written");
        assert_eq!(read(&path).expect("this is a result").len(), 2);
        assert!(read(&directory.join("kiln-no-such-file.json")).is_err());
    }

    #[test]
    fn errors_are_shares_of_the_real_throughput() {
        assert!(compared("silo", 100.0, 120.0).passes());
        assert!(!compared("silo", 100.0, 121.0).passes());
        assert!(!compared("silo", 100.0, 79.0).passes());
    }

    #[test]
    fn the_order_counts_where_there_is_one() {
        let right = [
            compared("serial", 110.0, 115.0),
            compared("silo", 100.0, 101.0),
        ];
        assert!(passes(&right));
        let wrong = [
            compared("serial", 110.0, 100.0),
            compared("silo", 100.0, 101.0),
        ];
        assert!(wrong.iter().all(Compared::passes) && !passes(&wrong));
        assert_eq!(turned_round(&wrong).len(), 1);
        // The runs overlap: neither protocol is faster.
        let even = [
            compared("serial", 101.0, 100.0),
            compared("silo", 100.0, 101.0),
        ];
        assert!(passes(&even));
        let machine = Preset::named("here").expect("a preset of this name exists");
        let text = report(&machine, &wrong);
        assert!(text.contains("really serial is faster than silo"), "{text}");
        assert!(
            text.contains("-9.1 %") && text.contains("2 of 2 points"),
            "{text}"
        );
    }
}
