//! What was measured of a figure.

use std::path::Path;

use kiln_platform::file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::{Check, Of, Outcome, Reference};
use crate::description::Extent;
use crate::description::{Claim, Figure};
use crate::points::Point;

/// The rows of a figure, as they are kept in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The name of the figure.
    pub figure: String,
    /// How much was measured.
    pub extent: Extent,
    /// One for each run.
    pub rows: Vec<Row>,
}

/// What a run has given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The title of its picture.
    pub panel: String,
    /// The name of its series.
    pub series: String,
    /// Its value of x.
    pub x: String,
    /// What it is repeated by.
    pub seed: u64,
    /// The words behind the program's name.
    pub command: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The row that the run has written: every option, and all that was measured.
    pub result: Value,
}

/// Several runs of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The value in the middle.
    pub median: f64,
    /// The least and the greatest one.
    pub least: f64,
    /// See there.
    pub most: f64,
    /// How many there are.
    pub runs: usize,
}

/// A point in which two sets of results differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The title of its picture.
    pub panel: String,
    /// The name of its series.
    pub series: String,
    /// Its value of x.
    pub x: String,
    /// What was measured the one time.
    pub before: Summary,
    /// And the other.
    pub after: Summary,
}

impl Difference {
    /// The quotient of the medians.
    pub fn ratio(&self) -> f64 {
        self.after.median / self.before.median
    }

    /// Whether the runs of the one are all on one side of those of the other.
    pub fn is_clear(&self) -> bool {
        self.after.least > self.before.most || self.after.most < self.before.least
    }
}

impl Results {
    /// None yet.
    pub fn new(figure: &Figure, extent: Extent) -> Results {
        Results {
            figure: figure.name(),
            extent,
            rows: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read(path: &Path) -> Result<Results, String> {
        let text = file::read_to_string(path).map_err(|error| format!("cannot read {error}"))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} has no results of a figure: {error}", path.display()))
    }

    /// Writes them to a file.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).expect("all keys are text");
        file::write(path, text.as_bytes()).map_err(|error| format!("cannot write {error}"))
    }

    /// The row of a point, if it was measured by the program of this commit.
    pub fn row_of(&self, point: &Point, commit: Option<&str>) -> Option<&Row> {
        let command = point.words.join(" ");
        self.rows
            .iter()
            .find(|row| row.command == command && row.commit() == commit)
    }

    /// What was measured at a point; `None` where it was not, or has no such value.
    pub fn summary(
        &self,
        figure: &Figure,
        panel: &str,
        series: &str,
        x: &str,
        measure: usize,
    ) -> Option<Summary> {
        let rows = self.rows.iter();
        let rows = rows.filter(|row| row.panel == panel && row.series == series && row.x == x);
        let measure = figure.measure.get(measure)?;
        let mut values: Vec<f64> = rows
            .filter_map(|row| row.value(&measure.value))
            .map(|value| match measure.inverse {
                true => measure.per / value,
                false => value / measure.per,
            })
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let (half, runs) = (values.len() / 2, values.len());
        let median = match runs % 2 {
            1 => values[half],
            _ => (values[half - 1] + values[half]) / 2.0,
        };
        Some(Summary {
            median,
            least,
            most,
            runs,
        })
    }

    /// Judges a claim.
    pub fn judge(&self, figure: &Figure, claim: &Claim) -> Outcome {
        match Check::read(&claim.check) {
            Ok(check) => check.evaluate(&|reference| self.value(figure, reference)),
            Err(_) => Outcome::Unknown,
        }
    }

    fn value(&self, figure: &Figure, reference: &Reference) -> Option<f64> {
        let Reference {
            panel,
            series,
            x,
            of,
            measure,
        } = reference;
        let at = |x: &String| Some(self.summary(figure, panel, series, x, *measure)?.median);
        if let Some(name) = x {
            return at(figure.x.value(name)?);
        }
        let mut all = figure.values(self.extent).iter().filter_map(at);
        match of {
            Of::First => all.next(),
            Of::Last => all.next_back(),
            Of::Max => all.reduce(f64::max),
            Of::Min => all.reduce(f64::min),
        }
    }

    /// The commits, machines and dates of the runs, each once.
    pub fn made_by(&self) -> Vec<String> {
        let mut all: Vec<String> = self.rows.iter().map(Row::made_by).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The points that both have, of the first measure.
    pub fn differences(&self, after: &Results, figure: &Figure) -> Vec<Difference> {
        let mut differences = Vec::new();
        for panel in &figure.panel {
            for series in &figure.series {
                for x in &figure.x.values {
                    let of = |results: &Results| {
                        results.summary(figure, &panel.title, series.name(), x, 0)
                    };
                    if let (Some(before), Some(after)) = (of(self), of(after)) {
                        differences.push(Difference {
                            panel: panel.title.clone(),
                            series: series.name().to_owned(),
                            x: x.clone(),
                            before,
                            after,
                        });
                    }
                }
            }
        }
        differences
    }
}

impl Row {
    /// The sum of what these JSON pointers point at, which are separated by blanks.
    fn value(&self, pointers: &str) -> Option<f64> {
        let values = pointers
            .split_whitespace()
            .map(|pointer| self.result.pointer(pointer)?.as_f64());
        values.sum()
    }

    /// The commit of the program.
    pub fn commit(&self) -> Option<&str> {
        let places = ["/commit", "/machine/commit"].into_iter();
        let mut found = places.filter_map(|place| self.result.pointer(place)?.as_str());
        found.next()
    }

    /// The machine and the commit.
    fn made_by(&self) -> String {
        let commit = self.commit().unwrap_or("unknown");
        let machine = match self.result.get("machine") {
            Some(Value::String(preset)) => format!("virtual cores, machine {preset}"),
            Some(machine) => {
                let of = |name: &str| machine.get(name).and_then(Value::as_str).unwrap_or("");
                let cores = machine.get("cores").and_then(Value::as_u64).unwrap_or(0);
                format!("{}, {cores} cores, {}", of("cpu"), of("os"))
            }
            None => "unknown machine".to_owned(),
        };
        format!("{machine}; commit {commit}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIGURE: &str = r#"
        paper = "sto"
        number = "0"
        title = "A figure"
        machine = "sto"
        run = "hot"
        full = "--ms 1"
        quick = "--ms 1"
        series = [{ protocol = "silo" }, { protocol = "mvcc", name = "versions", run = "--counters 2" }]
        measure = [
            { label = "thousands a second", value = "/committed_per_s", per = 1000 },
            { label = "both", value = "/a/b /c" },
            { label = "microseconds", value = "/committed_per_s", per = 1e6, inverse = true },
        ]
        x = { label = "cores", argument = "--cores", values = ["1", "2", "4"], names = ["one", "two", "four"], quick = ["1", "4"] }
        claim = [{ says = "more", check = "[silo]@four >= 2 * [silo]@one and min[versions] < 6" }]
    "#;

    fn results(figure: &Figure, factor: f64) -> Results {
        let mut results = Results::new(figure, Extent::Full);
        for point in figure.points(Extent::Full, 3) {
            let x: f64 = point.x.parse().expect("it is a number");
            let per_s = x * factor * point.seed as f64;
            results.rows.push(Row {
                command: point.words.join(" "),
                panel: point.panel,
                series: point.series,
                x: point.x,
                seed: point.seed,
                seconds: 0.5,
                result: json!({
                    "committed_per_s": per_s, "commit": "abc", "machine": "sto", "a": { "b": 1 }, "c": 2.5
                }),
            });
        }
        results
    }

    #[test]
    fn points_are_commands() {
        let figure = Figure::read(FIGURE).expect("it is sound");
        assert_eq!(figure.points(Extent::Full, 3).len(), 18);
        let quick = figure.points(Extent::Quick, 1);
        let commands: Vec<String> = quick.iter().map(|point| point.words.join(" ")).collect();
        let last = "sim hot --counters 2 --cores 4 --machine sto --jobs 1 --ms 1 --protocol mvcc --seed 42";
        assert_eq!(commands.len(), 4);
        assert_eq!(commands[3], last);
        let text = FIGURE.replace("--counters 2", "--counters {x}");
        let figure = Figure::read(&format!("seeds = 2\n{text}")).expect("it is sound");
        let points = figure.points(Extent::Full, 3);
        assert_eq!(points.len(), 12, "two seeds");
        let last = points[11].words.join(" ");
        assert!(last.contains("--counters 4 --cores 4"), "{last}");
        let text = text.replace(r#"argument = "--cores", "#, "");
        let figure = Figure::read(&text.replace("run = \"--c", "quick = \"--b\", run = \"--c"));
        let points = figure.expect("it is sound").points(Extent::Quick, 1);
        let last = points[3].words.join(" ");
        assert!(last.contains("--counters 4 --b --machine"), "{last}");
    }

    #[test]
    fn rows_are_summed_up_judged_and_compared() {
        let figure = Figure::read(FIGURE).expect("it is sound");
        let before = results(&figure, 100.0);
        let summary = before
            .summary(&figure, "", "silo", "2", 0)
            .expect("it is there");
        let expected = Summary {
            median: 8.6,
            least: 8.4,
            most: 8.8,
            runs: 3,
        };
        assert_eq!(summary, expected);
        let sum = before
            .summary(&figure, "", "silo", "2", 1)
            .expect("it is there");
        assert_eq!(sum.median, 3.5);
        let time = before.summary(&figure, "", "silo", "2", 2);
        assert!(time.is_some_and(|it| (it.median - 1e6 / 8600.0).abs() < 1e-9));
        let verdict = before.judge(&figure, &figure.claim[0]);
        assert!(matches!(verdict, Outcome::Agrees(_)), "{verdict:?}");
        let point = &figure.points(Extent::Full, 3)[7];
        assert!(before.row_of(point, Some("abc")).is_some());
        assert!(before.row_of(point, Some("abd")).is_none());
        let after = results(&figure, 110.0);
        let differences = before.differences(&after, &figure);
        assert_eq!(differences.len(), 6);
        assert!(differences.iter().all(Difference::is_clear));
        assert!((differences[3].ratio() - 1.1).abs() < 1e-9);
        assert_eq!(before.made_by(), ["virtual cores, machine sto; commit abc"]);
    }
}
