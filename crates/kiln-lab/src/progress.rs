//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where the user sees how far a long step is. Shared by the threads that make the progress.
pub struct Progress {
    bar: ProgressBar,
    /// Whether a bar is drawn; else lines are printed.
    drawn: bool,
}

impl Progress {
    /// A step in which things called `unit` are counted.
    pub(crate) fn counting(what: &str, unit: &str) -> Progress {
        Progress::start(
            what,
            &format!("{{msg}}  {{wide_bar}}  {{pos}}/{{len}} {unit}  {{per_sec}}  {{elapsed}}"),
        )
    }

    /// A step of so many parts, each of which says what it is.
    pub fn steps(what: &str, length: u64) -> Progress {
        let progress = Progress::start(what, "{msg}  {wide_bar}  {pos}/{len}  {elapsed}");
        progress.bar.set_length(length);
        progress
    }

    fn start(what: &str, template: &str) -> Progress {
        let drawn = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            Some(0),
            match drawn {
                true => ProgressDrawTarget::stderr(),
                false => ProgressDrawTarget::hidden(),
            },
        );
        let style = ProgressStyle::with_template(template)
            .expect("the templates are constants without a mistake");
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        bar.set_message(what.to_owned());
        if !drawn {
            eprintln!("{what} …");
        }
        Progress { bar, drawn }
    }

    /// So much more is to be done than was known.
    pub(crate) fn expect(&self, more: u64) {
        self.bar.inc_length(more);
    }

    /// So much more is done.
    pub fn advance(&self, done: u64) {
        self.bar.inc(done);
    }

    /// What is done now. Lines are printed for each.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        if !self.drawn {
            eprintln!("{what} …");
        }
    }

    /// Draws the bar anew, so that its clock goes on.
    pub(crate) fn tick(&self) {
        self.bar.tick();
    }

    /// Removes the bar.
    pub fn clear(self) {
        self.bar.finish_and_clear();
    }
}
