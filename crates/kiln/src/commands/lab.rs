//! `kiln lab`: the papers' figures, measured and drawn again.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, Subcommand};
use kiln_figures::page::{self, Verdict, outcome_text};
use kiln_figures::{Extent, Figure, Paper, Programs, Results, Runner, draw};
use kiln_lab::machine::{self, Machine};
use kiln_lab::progress::Progress;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{disk, file, thread};

use super::print;

/// The arguments of `kiln lab`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kiln lab list --paper orthrus\n  \
    kiln lab run orthrus-9 --quick\n  \
    kiln lab report --quick --out report.html\n  \
    kiln lab diff results-of-monday/full results/full")]
pub struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// List the figures
    List {
        #[command(flatten)]
        chosen: Chosen,
        /// With the verdicts on what is in this directory, as a table in Markdown
        #[arg(long, value_name = "DIR")]
        verdicts: Option<PathBuf>,
    },
    /// Show what a figure measures and claims, and its commands
    Show {
        /// Its name, such as orthrus-9
        figure: String,
        #[command(flatten)]
        amount: Amount,
    },
    /// Measure figures: rows as JSON, a picture, and a verdict on each of the paper's claims
    ///
    /// What was measured before, by a program of the same commit, is not measured again: a run that
    /// was ended goes on where it was.
    Run {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        run: Runs,
    },
    /// Measure what is missing, and write all figures into one page of HTML
    Report {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        run: Runs,
        /// The page
        #[arg(long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
        /// Write what was measured so far, and measure nothing
        #[arg(long)]
        as_is: bool,
    },
    /// Compare two sets of results: files, or directories of them
    Diff {
        /// What was measured first
        before: PathBuf,
        /// And then
        after: PathBuf,
    },
}

/// Which figures.
#[derive(Args)]
struct Chosen {
    /// Figures by their names [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Those of a paper
    #[arg(long, value_parser = paper, value_name = "PAPER", conflicts_with = "figures")]
    paper: Option<Paper>,
}

/// How much is measured.
#[derive(Args)]
struct Amount {
    /// Measure each point once, for a short time, at some values of x
    #[arg(long)]
    quick: bool,
    /// Seeds of each point [default: 3; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,
}

#[derive(Args)]
struct Runs {
    #[command(flatten)]
    amount: Amount,
    /// Where results are kept: those of --quick in its folder quick, others in full
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    results: PathBuf,
    /// Runs on virtual cores at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// The program for virtual cores [default: the checkout's, which cargo builds first]
    #[arg(long, value_name = "FILE")]
    virtual_cores: Option<PathBuf>,
}

fn paper(text: &str) -> Result<Paper, String> {
    let found = Paper::ALL.into_iter().find(|it| it.name() == text);
    found.ok_or_else(|| {
        let names = Paper::ALL.map(Paper::name).join(", ");
        format!("the papers are {names}")
    })
}

/// Runs `kiln lab`.
///
/// # Errors
/// A sentence for the user.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    match arguments.command {
        Subcommands::List { chosen, verdicts } => match verdicts {
            Some(directory) => verdicts_in(&chosen.figures()?, &directory),
            None => list(&chosen.figures()?),
        },
        Subcommands::Show { figure, amount } => show(&named(&figure)?, &amount),
        Subcommands::Run { chosen, run } => {
            for (figure, results) in run.all(chosen.figures()?)? {
                tell(&figure, &results)?;
            }
            Ok(())
        }
        Subcommands::Report {
            chosen,
            run,
            out,
            as_is,
        } => report(chosen.figures()?, &run, &out, as_is),
        Subcommands::Diff { before, after } => diff(&before, &after),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn named(name: &str) -> Result<Figure, String> {
    let found = Figure::named(name);
    found.ok_or_else(|| format!("there is no figure \"{name}\"; `kiln lab list` shows them"))
}

impl Chosen {
    fn figures(&self) -> Result<Vec<Figure>, String> {
        if !self.figures.is_empty() {
            return self.figures.iter().map(|name| named(name)).collect();
        }
        let is_chosen = |it: &Figure| self.paper.is_none_or(|paper| it.paper == paper);
        Ok(Figure::all().into_iter().filter(is_chosen).collect())
    }
}

impl Amount {
    fn extent(&self) -> Extent {
        match self.quick {
            true => Extent::Quick,
            false => Extent::Full,
        }
    }

    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(self.extent().seeds())
    }
}

fn list(figures: &[Figure]) -> Result<(), String> {
    let width = figures.iter().map(|it| it.name().len()).max().unwrap_or(0);
    let lines = figures.iter().map(|figure| {
        let (machine, claims) = (&figure.machine, figure.claim.len());
        format!(
            "{:width$}  {machine:8} {claims:2} claims  {}\n",
            figure.name(),
            figure.title
        )
    });
    print(&lines.collect::<String>())
}

/// A table of what came of the claims.
fn verdicts_in(figures: &[Figure], directory: &Path) -> Result<(), String> {
    let mut text = "| figure | shows | machine | claims |\n|---|---|---|---|\n".to_owned();
    for figure in figures {
        let path = directory.join(format!("{}.json", figure.name()));
        let verdict = match Results::read(&path) {
            Ok(results) => Verdict::of(figure, &results).text(),
            Err(_) => "not measured".to_owned(),
        };
        let (title, machine) = (&figure.title, &figure.machine);
        text += &format!("| {} | {title} | {machine} | {verdict} |\n", figure.name());
    }
    print(&text)
}

fn show(figure: &Figure, amount: &Amount) -> Result<(), String> {
    let mut text = format!(
        "{}: {} of {}\n{}\n",
        figure.name(),
        figure.caption(),
        figure.paper.title(),
        figure.title
    );
    if !figure.set_up.is_empty() {
        text += &format!("\n{}\n", figure.set_up);
    }
    for claim in &figure.claim {
        text += &format!("\n- {}\n  {}\n", claim.says, claim.check);
        if !claim.differs.is_empty() {
            text += &format!("  Otherwise here: {}\n", claim.differs);
        }
    }
    text += "\nCommands:\n";
    for point in figure.points(amount.extent(), amount.seeds()) {
        text += &format!("kiln {}\n", point.words.join(" "));
    }
    print(&text)
}

impl Runs {
    fn directory(&self) -> PathBuf {
        self.results.join(match self.amount.extent() {
            Extent::Quick => "quick",
            Extent::Full => "full",
        })
    }

    /// The results of figures, measured as far as they are missing.
    fn all(&self, figures: Vec<Figure>) -> Result<Vec<(Figure, Results)>, String> {
        if cfg!(kiln_sim) {
            let message =
                "`kiln lab` is a command of the build for threads: `cargo run --release -- lab …`";
            return Err(message.to_owned());
        }
        let directory = self.directory();
        let made = disk::Directory::create(&directory);
        made.map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let needs_virtual_cores = figures.iter().any(Figure::is_virtual);
        let runner = Runner {
            programs: self.programs(needs_virtual_cores)?,
            extent: self.amount.extent(),
            seeds: self.amount.seeds(),
            jobs: self.jobs.map_or_else(thread::available_cores, usize::from),
            directory: &directory,
            commit: machine::commit(),
        };
        let runs = figures.iter().map(|figure| runner.left(figure).1.len());
        let estimate = Mutex::new(Estimate::new(runs.sum()));
        let mut all = Vec::new();
        for figure in figures {
            let runs = runner.left(&figure).1.len();
            let progress = (runs > 0).then(|| Progress::steps(&figure.name(), runs as u64));
            let done = |seconds| {
                let left = lock(&estimate).done(seconds, &figure, runner.jobs);
                if let Some(progress) = &progress {
                    progress.say(&format!("{}: {left}", figure.name()));
                    progress.advance(1);
                }
            };
            let results = runner.run(&figure, &done)?;
            if let Some(progress) = progress {
                progress.clear();
            }
            if let Some(svg) = draw::svg(&figure, &results)? {
                write(&directory.join(format!("{}.svg", figure.name())), &svg)?;
            }
            all.push((figure, results));
        }
        Ok(all)
    }

    /// The programs that make the runs. In a checkout cargo builds the one for virtual cores, so
    /// that both come from the same source.
    fn programs(&self, needs_virtual_cores: bool) -> Result<Programs, String> {
        let threads = std::env::current_exe();
        let threads = threads.map_err(|error| format!("cannot find this program: {error}"))?;
        let virtual_cores = match &self.virtual_cores {
            Some(path) => path.clone(),
            None if !needs_virtual_cores => PathBuf::new(),
            None => built_for_virtual_cores(&threads)?,
        };
        Ok(Programs {
            threads,
            virtual_cores,
        })
    }
}

fn built_for_virtual_cores(program: &Path) -> Result<PathBuf, String> {
    let is_checkout = |path: &&Path| path.join("crates/kiln-figures/Cargo.toml").exists();
    let Some(checkout) = program.ancestors().find(is_checkout) else {
        return Err(
            "figures of virtual cores need the program that is built for them; in a checkout it is built by itself, and \
             elsewhere --virtual-cores names it"
                .to_owned(),
        );
    };
    eprintln!("Building the program for virtual cores …");
    let target = checkout.join("target/sim");
    let built = Command::new("cargo")
        .current_dir(checkout)
        .args(["build", "--release", "--package", "kiln", "--target-dir"])
        .arg(&target)
        .args(["--config", "build.rustflags=[\"--cfg\", \"kiln_sim\"]"])
        .stdin(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Ok(target.join("release/kiln")),
        Ok(status) => Err(format!("cargo build has failed ({status})")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

/// How long it will take.
struct Estimate {
    left: usize,
    done: usize,
    seconds: f64,
}

impl Estimate {
    fn new(left: usize) -> Estimate {
        Estimate {
            left,
            done: 0,
            seconds: 0.0,
        }
    }

    /// A run took so long; says how long the others will.
    fn done(&mut self, seconds: f64, figure: &Figure, jobs: usize) -> String {
        let jobs = if figure.is_virtual() { jobs } else { 1 };
        self.left = self.left.saturating_sub(1);
        self.done += 1;
        self.seconds += seconds / jobs as f64;
        let left = self.seconds / self.done as f64 * self.left as f64;
        format!(
            "{} runs left, about {} min",
            self.left,
            (left / 60.0).ceil()
        )
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    file::write(path, text.as_bytes()).map_err(|error| format!("cannot write {error}"))
}

/// The verdict on a figure.
fn tell(figure: &Figure, results: &Results) -> Result<(), String> {
    let verdict = Verdict::of(figure, results).text();
    let mut text = format!("{}: {} ({verdict})\n", figure.name(), figure.title);
    for claim in &figure.claim {
        let outcome = outcome_text(claim, &results.judge(figure, claim));
        text += &format!("  {}\n    {outcome}\n", claim.says);
    }
    print(&text)
}

fn report(figures: Vec<Figure>, run: &Runs, out: &Path, as_is: bool) -> Result<(), String> {
    let all = match as_is {
        false => run.all(figures)?,
        true => {
            let directory = run.directory();
            let read = |figure: Figure| {
                let path = directory.join(format!("{}.json", figure.name()));
                Some((figure, Results::read(&path).ok()?))
            };
            figures.into_iter().filter_map(read).collect()
        }
    };
    if all.is_empty() {
        return Err(format!(
            "{} has no results of these figures; `kiln lab run` makes some",
            run.directory().display()
        ));
    }
    write(out, &page::html(&all, &Machine::current().date)?)?;
    print(&format!(
        "{} figures are in {}.\n",
        all.len(),
        out.display()
    ))
}

fn diff(before: &Path, after: &Path) -> Result<(), String> {
    let pairs = match before.is_dir() && after.is_dir() {
        false => vec![(before.to_owned(), after.to_owned())],
        true => {
            let names = Figure::all()
                .into_iter()
                .map(|it| format!("{}.json", it.name()));
            let both = names.map(|name| (before.join(&name), after.join(&name)));
            both.filter(|(one, other)| one.exists() && other.exists())
                .collect()
        }
    };
    if pairs.is_empty() {
        return Err("the two have no figure in common".to_owned());
    }
    for (before, after) in pairs {
        let (before, after) = (Results::read(&before)?, Results::read(&after)?);
        if before.figure != after.figure {
            let (one, other) = (before.figure, after.figure);
            return Err(format!("the one is of {one}, the other of {other}"));
        }
        let figure = named(&before.figure)?;
        let measure = &figure.measure[0].label;
        let mut text = format!("{}: {measure}\n", figure.name());
        for it in before.differences(&after, &figure) {
            let note = if it.is_clear() {
                ""
            } else {
                "  within the spread"
            };
            let place = [it.panel.as_str(), &it.series, figure.x.name(&it.x)];
            let place: Vec<&str> = place.into_iter().filter(|it| !it.is_empty()).collect();
            text += &format!(
                "  {:50} {:>12.3} → {:>12.3}   × {:.3}{note}\n",
                place.join(", "),
                it.before.median,
                it.after.median,
                it.ratio(),
            );
        }
        print(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kiln_figures::{Extent, Figure};

    use super::super::tests::parsed_by;
    use super::super::{bench, sim};

    /// A mistake in a description is found here, and not in the middle of a night.
    #[test]
    fn commands_of_all_figures_are_understood() {
        for figure in Figure::all() {
            for extent in [Extent::Quick, Extent::Full] {
                for point in figure.points(extent, 1) {
                    let words = point.words[1..].join(" ");
                    let read = match point.words[0].as_str() {
                        "sim" => parsed_by::<sim::Arguments>("sim", &words)
                            .and_then(|it| it.plan().map(drop)),
                        _ => parsed_by::<bench::Arguments>("bench", &words)
                            .and_then(|it| it.plan().map(drop)),
                    };
                    if let Err(error) = read {
                        panic!("{}: kiln {}\n{error}", figure.name(), point.words.join(" "));
                    }
                }
            }
        }
    }
}
