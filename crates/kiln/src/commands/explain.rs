//! `kiln explain`: a procedure's analysis as a listing or a graph, and what follows from all
//! procedures together: column groups and conflicts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use kiln_engine::{Catalog, Procedure};
use kiln_platform::file;
use kiln_platform::sync::Arc;
use kiln_procedure::workload::groups::Weighted;
use kiln_procedure::{Program, explain};
use kiln_sql::{Database, Options};
use kiln_workloads::Workload;

/// The arguments of `kiln explain`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kiln explain payment\n  \
    kiln explain new_order --dot | dot -Tsvg > new_order.svg\n  \
    kiln explain --workload tpcc --tables --weights new_order=45,payment=43,order_status=4\n  \
    kiln explain --workload tpcc --conflicts\n  \
    kiln explain -f schema.sql -f procedures.sql transfer")]
pub struct Arguments {
    /// The procedure or function; without one, those that there are are listed
    procedure: Option<String>,
    /// Print the dependencies as a graph for Graphviz
    #[arg(long)]
    dot: bool,
    /// Print which columns of each table share a timestamp (+ts), and why
    #[arg(long, conflicts_with_all = ["procedure", "dot"])]
    tables: bool,
    /// Print which statements may conflict, on which columns, and what +cu and +ts remove
    #[arg(long, conflicts_with_all = ["procedure", "dot"])]
    conflicts: bool,
    /// How often procedures are called, for --tables and --conflicts; 1 for those not named.
    /// Columns are split as they are in a database where these calls were counted
    #[arg(long, value_name = "NAME=WEIGHT", value_delimiter = ',', value_parser = weight)]
    weights: Vec<(String, f64)>,
    /// Scripts that create the tables and the procedure, instead of the bundled workloads
    #[arg(short, long, value_name = "FILE", conflicts_with = "workload")]
    file: Vec<PathBuf>,
    /// The bundled workload to search, instead of all
    #[arg(long, value_name = "NAME", value_parser = super::bench::workload_names())]
    workload: Option<String>,
}

/// A place where procedures come from.
struct Origin {
    name: String,
    scripts: Vec<(String, String)>,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let mut names = Vec::new();
    for origin in origins(&arguments)? {
        let database =
            Database::open(Options::new().workers(1)).map_err(|error| format!("{error:#}"))?;
        for (name, text) in &origin.scripts {
            database
                .execute(text)
                .map_err(|error| format!("{name}: {error:#}"))?;
        }
        let catalog = database.engine().catalog();
        if arguments.tables || arguments.conflicts {
            let catalog = weighed(&database, &arguments.weights)?;
            let procedures = catalog.procedures().collect::<Vec<_>>();
            let programs: Vec<Weighted<'_>> = procedures
                .iter()
                .map(|procedure| Weighted {
                    program: procedure.program(),
                    weight: weight_of(&arguments.weights, procedure.name()),
                })
                .collect();
            let several = arguments.file.is_empty() && arguments.workload.is_none();
            if several {
                super::print(&format!("== {}\n", origin.name))?;
            }
            if arguments.tables {
                super::print(&explain::tables(&programs))?;
            }
            if arguments.conflicts {
                super::print(&explain::conflicts(&programs))?;
            }
            continue;
        }
        if let Some(name) = &arguments.procedure
            && let Some(procedure) = catalog.procedure(&name.to_lowercase())
        {
            super::print(&rendered(procedure.program(), arguments.dot))?;
            return Ok(ExitCode::SUCCESS);
        }
        let found = catalog
            .procedures()
            .map(|procedure| procedure.name().to_owned());
        names.push(format!(
            "  {}: {}",
            origin.name,
            found.collect::<Vec<_>>().join(", ")
        ));
    }
    if arguments.tables || arguments.conflicts {
        return Ok(ExitCode::SUCCESS);
    }
    let known = names.join("\n");
    match &arguments.procedure {
        Some(name) => Err(format!(
            "there is no procedure \"{name}\"; there are\n{known}"
        )),
        None => {
            super::print(&format!("Procedures:\n{known}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Calls that stand for all weights together.
const ASSUMED_CALLS: f64 = 1e9;

/// The catalog of a database in which procedures were called as these weights say, if any are
/// given.
fn weighed(database: &Database, weights: &[(String, f64)]) -> Result<Arc<Catalog>, String> {
    let catalog = database.engine().catalog();
    if weights.is_empty() {
        return Ok(catalog);
    }
    let weight = |procedure: &Arc<Procedure>| weight_of(weights, procedure.name());
    let total: f64 = catalog.procedures().map(weight).sum();
    for procedure in catalog.procedures() {
        let share = weight(procedure) / total.max(f64::MIN_POSITIVE);
        procedure.assume_calls((share * ASSUMED_CALLS) as u64);
    }
    let analysed = database.execute("ANALYZE");
    analysed.map_err(|error| format!("{error:#}"))?;
    Ok(database.engine().catalog())
}

/// `name=weight`.
fn weight(text: &str) -> Result<(String, f64), String> {
    let expected = || "expected NAME=WEIGHT with a weight of at least 0".to_owned();
    let (name, weight) = text.split_once('=').ok_or_else(expected)?;
    let weight: f64 = weight.trim().parse().map_err(|_| expected())?;
    if !weight.is_finite() || weight < 0.0 {
        return Err(expected());
    }
    Ok((name.trim().to_lowercase(), weight))
}

fn weight_of(weights: &[(String, f64)], procedure: &str) -> f64 {
    let known = weights.iter().find(|(name, _)| name == procedure);
    known.map_or(1.0, |(_, weight)| *weight)
}

fn rendered(program: &Program, dot: bool) -> String {
    let mut text = match dot {
        true => explain::dot(program),
        false => {
            let sections = [
                explain::text(program),
                explain::updates(program),
                explain::healing(program),
            ];
            let sections = sections.into_iter().filter(|section| !section.is_empty());
            sections.collect::<Vec<_>>().join("\n")
        }
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The files that were named together, or each bundled workload.
fn origins(arguments: &Arguments) -> Result<Vec<Origin>, String> {
    if !arguments.file.is_empty() {
        let read = |path: &PathBuf| {
            let text = file::read_to_string(Path::new(path)).map_err(|error| error.to_string())?;
            Ok((path.display().to_string(), text))
        };
        let scripts: Result<Vec<_>, String> = arguments.file.iter().map(read).collect();
        let names: Vec<String> = arguments
            .file
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Ok(vec![Origin {
            name: names.join(", "),
            scripts: scripts?,
        }]);
    }
    let wanted = |workload: &Workload| match &arguments.workload {
        Some(name) => workload.name() == name,
        None => true,
    };
    let workloads = Workload::all().into_iter().filter(wanted);
    Ok(workloads
        .map(|workload| Origin {
            name: workload.name().to_owned(),
            scripts: vec![
                (
                    format!("{}/schema.sql", workload.name()),
                    workload.schema_sql().to_owned(),
                ),
                (
                    format!("{}/partitions.sql", workload.name()),
                    workload.partitions_sql().to_owned(),
                ),
                (
                    format!("{}/procedures.sql", workload.name()),
                    workload.procedures_sql().to_owned(),
                ),
            ],
        })
        .collect())
}
