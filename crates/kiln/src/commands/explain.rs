//! `kiln explain`: a procedure's analysis as a listing or a graph.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use kiln_platform::file;
use kiln_procedure::{Program, explain};
use kiln_sql::{Database, Options};
use kiln_workloads::Workload;

/// The arguments of `kiln explain`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kiln explain payment\n  \
    kiln explain new_order --dot | dot -Tsvg > new_order.svg\n  \
    kiln explain -f schema.sql -f procedures.sql transfer")]
pub struct Arguments {
    /// The procedure or function; without one, those that there are are listed
    procedure: Option<String>,
    /// Print the dependencies as a graph for Graphviz
    #[arg(long)]
    dot: bool,
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

fn rendered(program: &Program, dot: bool) -> String {
    let mut text = match dot {
        true => explain::dot(program),
        false => explain::text(program),
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
                    format!("{}/procedures.sql", workload.name()),
                    workload.procedures_sql().to_owned(),
                ),
            ],
        })
        .collect())
}
