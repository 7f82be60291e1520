//! Writes a workload as one script for psql: schema, procedures and population.
//!
//! ```text
//! cargo run --release -p kiln-workloads --example export -- tpcc 42 warehouses=2 | psql -q
//! ```
//!
//! The arguments are the workload, a seed and options as `name=value`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use kiln_workloads::{Workload, export::CopySink};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("export: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let known: Vec<&str> = Workload::all().iter().map(Workload::name).collect();
    let name = arguments
        .next()
        .ok_or_else(|| format!("which workload? {}", known.join(", ")))?;
    let mut workload =
        Workload::by_name(&name).ok_or_else(|| format!("there is no workload \"{name}\""))?;
    let seed = arguments.next().unwrap_or_else(|| "1".to_owned());
    let seed = seed
        .parse()
        .map_err(|_| format!("the seed is \"{seed}\", but must be a number"))?;
    for argument in arguments {
        let (option, value) = argument
            .split_once('=')
            .ok_or_else(|| format!("\"{argument}\" is not of the form option=value"))?;
        workload.set(option, value)?;
    }
    workload.validate()?;

    let mut out = BufWriter::new(std::io::stdout().lock());
    let failed = |error: std::io::Error| format!("cannot write: {error}");
    out.write_all(workload.schema_sql().as_bytes())
        .map_err(failed)?;
    out.write_all(workload.procedures_sql().as_bytes())
        .map_err(failed)?;
    let mut sink = CopySink::new(out);
    workload.populate(seed, &mut sink);
    sink.finish().map_err(failed)?;
    Ok(())
}
