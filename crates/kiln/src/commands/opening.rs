//! What a user sees on standard error while a database is opened.

use std::io::{IsTerminal, Write};

use kiln::{RecoveryProgress, RecoveryStage};

/// On a terminal: nanoseconds before a line is drawn, and between two changes of it.
const FIRST_NS: u64 = 500_000_000;
const CHANGE_NS: u64 = 200_000_000;
/// Elsewhere, nanoseconds between two lines.
const LINE_NS: u64 = 2_000_000_000;

/// Shows how far a recovery has come: a line that changes on a terminal, and elsewhere a line now
/// and then. Quick recoveries show nothing.
pub struct Opening {
    is_terminal: bool,
    /// When something is shown again, in nanoseconds since the opening began.
    next_ns: u64,
    is_drawn: bool,
}

impl Opening {
    /// A display on standard error, for one database.
    pub fn new() -> Opening {
        Opening::on(std::io::stderr().is_terminal())
    }

    fn on(is_terminal: bool) -> Opening {
        Opening {
            is_terminal,
            next_ns: if is_terminal { FIRST_NS } else { LINE_NS },
            is_drawn: false,
        }
    }

    /// Shows this, if it is time.
    pub fn show(&mut self, progress: &RecoveryProgress) {
        if let Some(text) = self.text(progress) {
            write(&text);
        }
    }

    /// Removes the line.
    pub fn clear(mut self) {
        if let Some(text) = self.end() {
            write(text);
        }
    }

    fn text(&mut self, progress: &RecoveryProgress) -> Option<String> {
        if progress.elapsed_ns < self.next_ns {
            return None;
        }
        let line = line(progress);
        if !self.is_terminal {
            self.next_ns = progress.elapsed_ns + LINE_NS;
            return Some(format!("{line}\n"));
        }
        self.next_ns = progress.elapsed_ns + CHANGE_NS;
        self.is_drawn = true;
        Some(format!("{ERASE}{line}"))
    }

    fn end(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.is_drawn).then_some(ERASE)
    }
}

/// Returns to the start of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// What cannot be shown is not missed.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = (stderr.write_all(text.as_bytes())).and_then(|()| stderr.flush());
}

/// In less than 80 columns, so that a terminal can overwrite it.
fn line(progress: &RecoveryProgress) -> String {
    let megabytes = |bytes: u64| (bytes as f64 / 1e6).round() as u64;
    let (what, done, all) = match progress.stage {
        RecoveryStage::Checkpoint => (
            "checkpoint",
            progress.checkpoint_bytes,
            progress.checkpoint_bytes_all,
        ),
        RecoveryStage::Log => ("log", progress.log_bytes, progress.log_bytes_all),
        RecoveryStage::Indexes => {
            let seconds = progress.elapsed_ns as f64 / 1e9;
            return format!("Recovering: all is read, building indexes, {seconds:.0} s so far");
        }
    };
    format!(
        "Recovering: {what} {} of {} MB, {:.1} MB/s, about {} left",
        megabytes(done),
        megabytes(all),
        progress.bytes_per_s / 1e6,
        duration(progress.remaining_s)
    )
}

/// Whole seconds, rounded up, with minutes and hours where there are any.
fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After these milliseconds.
    fn after(elapsed_ms: u64) -> RecoveryProgress {
        RecoveryProgress {
            stage: RecoveryStage::Checkpoint,
            checkpoint_bytes: elapsed_ms * 100_000,
            checkpoint_bytes_all: 1_000_000_000,
            log_bytes: 0,
            log_bytes_all: 52_400_000,
            elapsed_ns: elapsed_ms * 1_000_000,
            bytes_per_s: 100e6,
            remaining_s: 10.35 - elapsed_ms as f64 / 1e3,
        }
    }

    #[test]
    fn a_terminal_has_one_line_that_changes_five_times_a_second() {
        let mut opening = Opening::on(true);
        let shown: Vec<u64> = (0..2_000)
            .step_by(50)
            .filter(|elapsed_ms| opening.text(&after(*elapsed_ms)).is_some())
            .collect();
        assert_eq!(shown, [500, 700, 900, 1_100, 1_300, 1_500, 1_700, 1_900]);
        let line = opening.text(&after(2_100));
        let expected = "\r\x1b[KRecovering: checkpoint 210 of 1000 MB, 100.0 MB/s, about 9 s left";
        assert_eq!(line.as_deref(), Some(expected));
        assert_eq!(opening.end(), Some("\r\x1b[K"));
        assert_eq!(opening.end(), None);
    }

    #[test]
    fn elsewhere_a_line_is_written_every_two_seconds() {
        let mut opening = Opening::on(false);
        let shown: Vec<(u64, String)> = (0..7_000)
            .step_by(100)
            .filter_map(|elapsed_ms| Some((elapsed_ms, opening.text(&after(elapsed_ms))?)))
            .collect();
        let times: Vec<u64> = shown.iter().map(|(elapsed_ms, _)| *elapsed_ms).collect();
        assert_eq!(times, [2_000, 4_000, 6_000]);
        let expected = "Recovering: checkpoint 400 of 1000 MB, 100.0 MB/s, about 7 s left\n";
        assert_eq!(shown[1].1, expected);
        assert_eq!(opening.end(), None);
    }

    #[test]
    fn quick_openings_show_nothing() {
        let mut opening = Opening::on(true);
        assert_eq!(opening.text(&after(499)), None);
        assert_eq!(opening.end(), None);
    }

    #[test]
    fn each_stage_has_its_words() {
        let mut progress = after(65_000);
        progress.stage = RecoveryStage::Log;
        (progress.log_bytes, progress.remaining_s) = (26_200_000, 61.2);
        let expected = "Recovering: log 26 of 52 MB, 100.0 MB/s, about 1 min 2 s left";
        assert_eq!(line(&progress), expected);
        progress.stage = RecoveryStage::Indexes;
        assert_eq!(
            line(&progress),
            "Recovering: all is read, building indexes, 65 s so far"
        );
        assert_eq!(duration(7_260.0), "2 h 1 min");
        let most = RecoveryProgress {
            stage: RecoveryStage::Checkpoint,
            checkpoint_bytes: 999_999_000_000,
            checkpoint_bytes_all: 999_999_000_000,
            bytes_per_s: 9_999e6,
            remaining_s: 359_940.0,
            ..progress
        };
        assert!(line(&most).len() < 80, "{}", line(&most));
    }
}
