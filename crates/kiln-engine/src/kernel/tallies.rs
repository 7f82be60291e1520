//! What workers have counted: in memory of their own, where a snapshot reads it.

use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_protocols::{Configuration, Counted, Counters};

/// The counters of all workers that there were.
#[derive(Default)]
pub(crate) struct Tallies(Mutex<Tally>);

#[derive(Default)]
struct Tally {
    /// The counters of workers that may still run.
    present: Vec<(Configuration, Arc<Counters>)>,
    /// The sums of those that have gone.
    past: Vec<(Configuration, Counted)>,
}

impl Tally {
    /// Adds the counters of workers that have gone to the sums.
    fn collect_gone(&mut self) {
        let mut present = std::mem::take(&mut self.present);
        present.retain_mut(|(protocol, counters)| {
            // The worker had the other reference; without it, what it counted last is seen.
            let Some(counters) = Arc::get_mut(counters) else {
                return true;
            };
            add(&mut self.past, *protocol, &counters.read());
            false
        });
        self.present = present;
    }
}

impl Tallies {
    /// A worker of this protocol counts here.
    pub fn join(&self, protocol: Configuration, counters: Arc<Counters>) {
        let mut tally = lock(&self.0);
        tally.collect_gone();
        tally.present.push((protocol, counters));
    }

    /// What transactions have come to, by the protocol that ran them.
    pub fn read(&self) -> Vec<(Configuration, Counted)> {
        let mut tally = lock(&self.0);
        tally.collect_gone();
        let mut sums = tally.past.clone();
        for (protocol, counters) in &tally.present {
            add(&mut sums, *protocol, &counters.read());
        }
        sums
    }
}

fn add(sums: &mut Vec<(Configuration, Counted)>, protocol: Configuration, counted: &Counted) {
    match sums.iter_mut().find(|(known, _)| *known == protocol) {
        Some((_, sum)) => sum.add(counted),
        None => sums.push((protocol, counted.clone())),
    }
}
