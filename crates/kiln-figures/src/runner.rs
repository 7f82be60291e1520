//! Makes the runs of a figure: each in a process of its own, so that none finds what another one
//! has left in memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{file, thread, time};
use serde_json::Value;

use crate::description::Extent;
use crate::description::Figure;
use crate::points::Point;
use crate::results::{Results, Row};

/// The programs that make the runs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `kiln` for the threads of this machine.
    pub threads: PathBuf,
    /// `kiln` for virtual cores.
    pub virtual_cores: PathBuf,
}

/// Makes runs, and keeps their rows.
pub struct Runner<'a> {
    /// What makes them.
    pub programs: Programs,
    /// How much is measured.
    pub extent: Extent,
    /// With how many seeds.
    pub seeds: u64,
    /// How many runs on virtual cores there are at a time; those on threads are alone.
    pub jobs: usize,
    /// Where the rows are kept, a file for each figure.
    pub directory: &'a Path,
    /// The commit that the programs are built from: rows of another one are measured again.
    pub commit: Option<String>,
}

/// What stands for a directory in the words of a run.
const DATA: &str = "{data}";

/// A directory for the data of one run, which makes it; it is removed after the run.
struct Data(PathBuf);

impl Data {
    /// One in memory where the system has files there, since a disk's pace is no part of a figure;
    /// beside the results otherwise.
    fn new(results: &Path, job: usize) -> Result<Data, String> {
        let memory = Path::new("/dev/shm");
        let path = match file::list(memory) {
            Ok(_) => memory.join(format!("kiln-lab-{}-{job}", std::process::id())),
            Err(_) => results.join(format!(".data-{job}")),
        };
        // What a run that was ended has left there would be another database.
        file::remove_directory(&path).map_err(|error| format!("cannot remove {error}"))?;
        Ok(Data(path))
    }

    fn name_in(&self, word: &str) -> String {
        match word == DATA {
            true => self.0.display().to_string(),
            false => word.to_owned(),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // What is left is removed before the next run.
        let _ = file::remove_directory(&self.0);
    }
}

impl Runner<'_> {
    /// The file of a figure's results.
    pub fn path(&self, figure: &Figure) -> PathBuf {
        self.directory.join(format!("{}.json", figure.name()))
    }

    /// The results of a figure that there are already, and the points that are left to measure.
    pub fn left(&self, figure: &Figure) -> (Results, Vec<Point>) {
        let mut results = Results::new(figure, self.extent);
        let before = Results::read(&self.path(figure));
        let before = before.ok().filter(|it| it.extent == self.extent);
        let points = figure.points(self.extent, self.seeds);
        let left = points.into_iter().filter(|point| {
            let row = before
                .as_ref()
                .and_then(|before| before.row_of(point, self.commit.as_deref()));
            results.rows.extend(row.cloned());
            row.is_none()
        });
        let left = left.collect();
        (results, left)
    }

    /// Makes the runs that are left, calls `ended` after each with the seconds it took, and writes
    /// the rows after each.
    ///
    /// # Errors
    /// What the first run that failed has said; the rows of the others are kept.
    pub fn run(&self, figure: &Figure, ended: &(dyn Fn(f64) + Sync)) -> Result<Results, String> {
        let (results, left) = self.left(figure);
        let (results, next) = (Mutex::new(results), AtomicUsize::new(0));
        let failed = Mutex::new(None);
        let jobs = if figure.is_virtual() { self.jobs } else { 1 };
        thread::scope(|scope| {
            for job in 0..jobs.min(left.len()) {
                let (results, failed, next, left) = (&results, &failed, &next, &left);
                scope.spawn(move || {
                    while lock(failed).is_none() {
                        // Relaxed: the number alone is shared.
                        let Some(point) = left.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            return;
                        };
                        let kept = self.measure(figure, point, job).and_then(|row| {
                            ended(row.seconds);
                            let mut results = lock(results);
                            results.rows.push(row);
                            results.write(&self.path(figure))
                        });
                        if let Err(error) = kept {
                            lock(failed).get_or_insert(error);
                        }
                    }
                });
            }
        });
        match failed
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
        {
            Some(error) => Err(error),
            None => {
                let results = results.into_inner();
                let results = results.unwrap_or_else(|poisoned| poisoned.into_inner());
                results.write(&self.path(figure))?;
                Ok(results)
            }
        }
    }

    fn measure(&self, figure: &Figure, point: &Point, job: usize) -> Result<Row, String> {
        let program = match figure.is_virtual() {
            true => &self.programs.virtual_cores,
            false => &self.programs.threads,
        };
        let scratch = self.directory.join(format!(".run-{job}.json"));
        // What another run has left there is not taken for this one's.
        file::write(&scratch, b"").map_err(|error| format!("cannot write {error}"))?;
        let data = Data::new(self.directory, job)?;
        let began_ns = time::now_ns();
        let output = Command::new(program)
            .args(point.words.iter().map(|word| data.name_in(word)))
            .arg("--json")
            .arg(&scratch)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let seconds = (time::now_ns() - began_ns) as f64 / 1e9;
        let command = point.words.join(" ");
        let mut series = figure.series.iter();
        let is_unsafe = series.any(|it| it.name() == point.series && it.is_unsafe);
        // A run whose audit failed leaves its row, and says so by its status.
        let has_failed_audit = output.status.code() == Some(1) && is_unsafe;
        if !output.status.success() && !has_failed_audit {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: Vec<&str> = said.lines().rev().take(5).collect();
            let said: Vec<&str> = said.into_iter().rev().collect();
            return Err(format!(
                "kiln {command}\nhas failed ({}):\n{}",
                output.status,
                said.join("\n")
            ));
        }
        let text = file::read_to_string(&scratch);
        let text = text.map_err(|error| format!("kiln {command}\nhas left no rows: {error}"))?;
        let rows = serde_json::from_str::<Vec<Value>>(&text);
        match rows.map(<[Value; 1]>::try_from) {
            Ok(Ok([result])) => Ok(Row {
                panel: point.panel.clone(),
                series: point.series.clone(),
                x: point.x.clone(),
                seed: point.seed,
                command,
                seconds,
                result,
            }),
            _ => Err(format!("kiln {command}\nhas not left one row")),
        }
    }
}
