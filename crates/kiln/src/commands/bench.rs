//! `kiln bench`: its arguments, and the list of what there is.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use kiln_engine::{BasisFactors, Configuration, Logging, Protocol, ProtocolOption};
use kiln_lab::{Failure, Plan};
use kiln_workloads::Workload;

/// The arguments of `kiln bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kiln bench tpcc\n  \
    kiln bench tpcc --warehouses 2 --threads 1,2 --protocol silo --json result.json\n  \
    kiln bench hot --sessions 1,100,10000\n  \
    kiln bench tpcc --data results-tpcc\n  \
    kiln bench smallbank --theta 0.9 --seconds 5")]
pub struct Arguments {
    /// What to run
    #[arg(required_unless_present = "list", value_parser = workload_names())]
    workload: Option<String>,
    /// List the workloads with their options, and the protocols
    #[arg(long, exclusive = true)]
    list: bool,
    /// Protocols, separated by commas, each with its options, as in silo+cu; --list names them
    /// [default: silo+cu+ts,serial,2pl-no-wait]
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', value_parser = super::protocol)]
    protocol: Vec<Configuration>,
    /// Where the locks are, for all protocols named; P+table is the same for one
    /// [default: beside the record]
    #[arg(long, value_enum)]
    locks: Option<super::Locks>,
    /// Numbers of threads, separated by commas; a protocol of one worker runs with one
    /// [default: one for each core]
    #[arg(
        long, value_name = "N[,N…]", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=Plan::THREADS_MAX as i64)
    )]
    threads: Vec<u16>,
    /// Numbers of sessions, separated by commas, whose calls go through the workers' inboxes, as
    /// those of a server's connections do; --threads is the number of workers then
    /// [default: the workers make their calls themselves]
    #[arg(
        long, value_name = "N[,N…]", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=Plan::SESSIONS_MAX as i64)
    )]
    sessions: Vec<u32>,
    /// Seconds measured in each run
    #[arg(long, value_name = "S", default_value_t = Plan::SECONDS)]
    seconds: f64,
    /// Seconds that each run warms up before that
    #[arg(long, value_name = "S", default_value_t = Plan::WARMUP)]
    warmup: f64,
    /// Runs of each protocol and number of threads; the report has their median
    #[arg(long, value_name = "R", default_value_t = Plan::REPEAT as u16,
        value_parser = clap::value_parser!(u16).range(1..=1_000))]
    repeat: u16,
    /// Determines the population and the calls
    #[arg(long, value_name = "N", default_value_t = Plan::SEED)]
    seed: u64,
    /// MiB of memory set aside at the start, so that growing tables cost no page faults
    #[arg(long, value_name = "MIB", default_value_t = Plan::RESERVE_MIB as u32,
        value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    reserve: u32,
    /// Keep the databases of the benchmark in this new directory, that of the first run in DIR/1,
    /// of the second in DIR/2: all that is counted is on disk in the end, and a call's latency
    /// lasts until its commit is. They stay there
    /// [default: in memory alone]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// What the log in --data keeps of a call: what it wrote, or the call, which only protocols can
    /// that order calls before they run (serial, vll and its kin)
    #[arg(long, value_parser = super::logging(), default_value_t = Logging::Values, requires = "data")]
    logging: Logging,
    /// Seconds that a recovery from --data may take, as estimated: a checkpoint is written while
    /// the runs go on when it would take longer, so 1 writes one after the other; 0 for none
    #[arg(long, value_name = "S", default_value_t = 20, requires = "data")]
    recovery_target: u64,
    /// Write the result to this file, one row for each protocol and number of threads
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print what strife made of a batch: spot clusters, conflict-free clusters, residuals; with a
    /// file, draw it as well
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, value_parser = svg_name)]
    explain_batch: Option<Option<PathBuf>>,
    #[command(flatten)]
    basis_factors: super::basis_factors::BasisFactorArguments,
    #[command(flatten)]
    settings: Settings,
}

/// The options of the workloads, as the workloads themselves name them.
pub(super) struct Settings(Vec<(&'static str, String)>);

impl Settings {
    /// The options that were given, with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0
            .iter()
            .map(|(option, value)| (*option, value.as_str()))
    }
}

/// What several workloads, or one, say of an option, with its default there.
struct Named {
    workloads: Vec<&'static str>,
    help: &'static str,
    default: String,
}

impl Named {
    fn text(&self) -> String {
        let workloads = self.workloads.join(", ");
        let help = self.help.trim_end_matches('.');
        format!("{help} [{workloads}; default: {}]", self.default)
    }
}

/// All workloads' options, each once, with what they say of it.
fn workload_options() -> Vec<(&'static str, Vec<Named>)> {
    let mut options: Vec<(&'static str, Vec<Named>)> = Vec::new();
    for workload in Workload::all() {
        for option in workload.options() {
            let place = options.iter().position(|(name, _)| *name == option.name);
            let place = place.unwrap_or_else(|| {
                options.push((option.name, Vec::new()));
                options.len() - 1
            });
            let said = &mut options[place].1;
            let same = said
                .iter_mut()
                .find(|named| named.help == option.help && named.default == option.value);
            match same {
                Some(named) => named.workloads.push(workload.name()),
                None => said.push(Named {
                    workloads: vec![workload.name()],
                    help: option.help,
                    default: option.value,
                }),
            }
        }
    }
    options
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        command.args(workload_options().into_iter().map(|(option, said)| {
            let (heading, help) = match said.as_slice() {
                [one] if one.workloads.len() == 1 => {
                    let help = one.help.trim_end_matches('.');
                    (
                        format!("Options of {}", one.workloads[0]),
                        format!("{help} [default: {}]", one.default),
                    )
                }
                several => {
                    let texts: Vec<String> = several.iter().map(Named::text).collect();
                    ("Options of several workloads".to_owned(), texts.join("\n"))
                }
            };
            Arg::new(option)
                .long(option)
                .value_name("VALUE")
                .help(help)
                .help_heading(heading)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Settings::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings, clap::Error> {
        let given = workload_options().into_iter().filter_map(|(option, _)| {
            let value: &String = matches.get_one(option)?;
            Some((option, value.clone()))
        });
        Ok(Settings(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Settings::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The name of a picture, so that nothing else is taken for one.
fn svg_name(text: &str) -> Result<PathBuf, String> {
    match text.ends_with(".svg") {
        true => Ok(text.into()),
        false => Err("the name of a picture ends with .svg".to_owned()),
    }
}

pub(super) fn workload_names() -> PossibleValuesParser {
    let names = Workload::all().into_iter().map(|workload| workload.name());
    PossibleValuesParser::new(names.collect::<Vec<_>>())
}

impl Arguments {
    /// The plan, or what is wrong with it.
    pub(super) fn plan(self) -> Result<Plan, String> {
        let name = self.workload.unwrap_or_default();
        let mut workload =
            Workload::by_name(&name).ok_or_else(|| format!("there is no workload \"{name}\""))?;
        for (option, value) in &self.settings.0 {
            workload.set(option, value)?;
        }
        let mut plan = Plan {
            seconds: self.seconds,
            warmup: self.warmup,
            repeat: self.repeat.into(),
            seed: self.seed,
            reserve_mib: self.reserve as usize,
            basis_factors: BasisFactors::from(&self.basis_factors),
            allocator: super::ALLOCATOR,
            data: self.data,
            logging: self.logging,
            recovery_target_s: self.recovery_target,
            json: self.json,
            explain_batch: self.explain_batch.is_some(),
            batch_svg: self.explain_batch.flatten(),
            ..Plan::new(workload)
        };
        if !self.protocol.is_empty() {
            plan.protocols = self.protocol;
        }
        plan.protocols = super::placed(plan.protocols, self.locks)?;
        if !self.threads.is_empty() {
            plan.threads = self
                .threads
                .iter()
                .map(|threads| usize::from(*threads))
                .collect();
        }
        plan.sessions = self.sessions.iter().map(|n| *n as usize).collect();
        plan.validate()?;
        Ok(plan)
    }
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    if arguments.list {
        super::print(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(message) => {
            let hint = "For more information, try 'kiln bench --list'.";
            let message = format!("{message}\n\n{hint}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).exit()
        }
    };
    match kiln_lab::bench(&plan) {
        Ok(verdict) if verdict.passed => Ok(ExitCode::SUCCESS),
        Ok(_) => Err("the audit failed".to_owned()),
        Err(Failure(message)) => Err(message),
    }
}

/// What `--list` prints.
fn list() -> String {
    let mut text = String::from("Workloads\n");
    for workload in Workload::all() {
        let _ = writeln!(text, "  {:<12} {}", workload.name(), workload.description());
        for option in workload.options() {
            let flag = format!("--{} {}", option.name, option.value);
            let _ = writeln!(text, "    {flag:<32} {}", option.help);
        }
    }
    text += "\nProtocols\n";
    for protocol in Protocol::ALL {
        let unsafe_mark = match protocol.is_serializable() {
            true => "",
            false => " (unsafe baseline: not serializable)",
        };
        let description = protocol.description();
        let _ = writeln!(text, "  {protocol:<20} {description}{unsafe_mark}");
    }
    text += "\nOptions of protocols, as in P+OPTION\n";
    for option in ProtocolOption::ALL {
        let takers = Protocol::ALL
            .into_iter()
            .filter(|protocol| protocol.options().contains(&option));
        let takers: Vec<&str> = takers.map(Protocol::name).collect();
        if !takers.is_empty() {
            let (name, takers) = (format!("+{}", option.name()), takers.join(", "));
            let _ = writeln!(text, "  {name:<20} {} [{takers}]", option.description());
        }
    }
    text +=
        "\nOptions are shown with their defaults; kiln bench --help has those of every workload.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::parsed_by;

    fn plan(arguments: &str) -> Result<Plan, String> {
        parsed_by::<Arguments>("bench", arguments)?.plan()
    }

    #[test]
    fn the_defaults_are_the_canonical_run() {
        let plan = plan("tpcc").expect("the defaults are valid");
        let Workload::Tpcc(config) = &plan.workload else {
            panic!("{:?}", plan.workload)
        };
        assert_eq!(*config, kiln_workloads::tpcc::Config::default());
        assert_eq!(plan.protocols, Plan::PROTOCOLS);
        assert_eq!(plan.threads, [Plan::threads_default()]);
    }

    #[test]
    fn settings_reach_the_workload_and_the_plan() {
        let plan = plan(
            "--threads 1,2 tpcc --protocol silo,2pl-no-wait --warehouses 3 --mix new-order-payment \
             --seconds 0.5 --repeat 2 --json out.json",
        )
        .expect("the arguments are valid");
        assert_eq!(plan.threads, [1, 2]);
        assert_eq!(
            plan.protocols,
            [Protocol::Silo, Protocol::TwoPhaseLockingNoWait]
        );
        assert_eq!((plan.seconds, plan.repeat), (0.5, 2));
        let options = plan.workload.options();
        let value = |name: &str| {
            options
                .iter()
                .find(|option| option.name == name)
                .map(|o| &*o.value)
        };
        assert_eq!(value("warehouses"), Some("3"));
        assert_eq!(value("mix"), Some("new-order-payment"));
    }

    #[test]
    fn mistakes_are_named_with_what_is_possible() {
        for (arguments, parts) in [
            ("", &["<WORKLOAD>"][..]),
            ("tpcd", &["tpcd", "possible values: tpcc, smallbank"]),
            (
                "tpcc --protocol silo,hope",
                &["hope", "possible values: serial, "],
            ),
            (
                "tpcc --aborts unwind",
                &["plain silo alone, not for silo+cu+ts"],
            ),
            (
                "tpcc --protocol silo --locks table",
                &["silo has no locks in a table"],
            ),
            ("tpcc --backoff never", &["exponential, none"]),
            ("tpcc --threads 0", &["'0'", "1..=224"]),
            ("tpcc --threads many", &["many"]),
            ("tpcc --mix half", &["half", "full or new-order-payment"]),
            ("ycsb --mix D", &["mix is \"D\"", "A, B or C"]),
            ("rmw --hot-position middle", &["first, last or random"]),
            ("rmw --hot-operations 11", &["operations is 10"]),
            (
                "read-only --reads 1",
                &["read-only has no option \"reads\""],
            ),
            ("strife-hot --partitions 0", &["partitions", "from 1"]),
            (
                "short-long --contention-index 2",
                &["contention-index", "to 1"],
            ),
            ("wikipedia --anonymous-percent 101", &["from 0 to 100"]),
            (
                "rubis --warehouses 1",
                &["rubis has no option", "bids-per-item"],
            ),
            ("tpcc --warehouses 0", &["warehouses", "from 1 to 32767"]),
            (
                "tpcc --theta 0.5",
                &["tpcc has no option \"theta\"", "warehouses"],
            ),
            ("smallbank --seconds -1", &["-1"]),
            ("smallbank --seconds 0", &["seconds is 0"]),
            ("tpcc --wharehouses 2", &["--wharehouses", "--warehouses"]),
        ] {
            let message = plan(arguments).expect_err(arguments);
            for part in parts {
                assert!(message.contains(part), "{arguments}: {message}");
            }
        }
    }
}
