//! How many workers only control concurrency, found out while they run (`--cc-threads auto`).
//!
//! ORTHRUS §4.2 shows that the best split of the cores depends on the workload, and leaves open how
//! it is found. Here it is climbed to: the rate of ended transactions is counted under one number
//! of controllers, then under one that is a *step* away. A better one is taken, and the step made
//! again in its direction. After a worse one the other direction is tried, then both with half the
//! step, down to one. Then the number stays for [`REST`] counts, or until the rate has changed
//! much: other calls may have come. No model of the workload is needed, and none of the machine.
//!
//! Anything else that tells how busy a worker is misleads: a controller that polls is always busy,
//! and execution workers are idle because there are too few controllers, or because their
//! transactions wait for each other.
//!
//! There are as many partitions as controllers, so that a transaction sends no more messages than
//! it must. So another number means other partitions: new transactions are kept out until no lock
//! is held, which is soon, and begin again with these.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering};
use kiln_platform::sync::Mutex;
use kiln_platform::time;

use crate::schedule::climb::{Climb, Learnt, Rules};

/// A count takes no longer, in nanoseconds: where calls are rare, the split does not matter.
const COUNT_NS: u64 = 50_000_000;
/// Between two looks at a count, in nanoseconds for each of its transactions; and before it, while
/// what was begun under another number ends.
const PAUSE_NS: u64 = 50;
/// When rates differ: by more than chance, or as other calls have come.
const RULES: Rules = Rules {
    better: 1.01,
    other: 1.25,
};
/// Counts under one number before its neighbours are tried again.
const REST: u32 = 50;

/// Looks for the number under which the rate is greatest.
#[derive(Debug)]
struct Search {
    climb: Climb<u32>,
    /// The numbers that there are: from one to this.
    most: u32,
    /// What is added to the best number next; 0 while it rests.
    step: i32,
    /// Whether the other direction was tried with this step.
    has_reversed: bool,
    rests: u32,
}

impl Search {
    fn new(start: u32, most: u32) -> Search {
        Search {
            climb: Climb::new(start.clamp(1, most), RULES),
            most,
            step: first_step(start),
            has_reversed: false,
            rests: 0,
        }
    }

    /// Takes the rate under `number`, which it has named last; the number to try next.
    fn next(&mut self, number: u32, rate: f64) -> u32 {
        match self.climb.learn(number, rate) {
            Learnt::Same if self.step == 0 => {
                self.rests += 1;
                if self.rests < REST {
                    return self.climb.best();
                }
                self.begin_again(1);
            }
            Learnt::Changed if self.step == 0 => {
                self.begin_again(first_step(self.climb.best()));
            }
            Learnt::Same | Learnt::Changed => {}
            // Where it came from is known to be worse.
            Learnt::Better => self.has_reversed = true,
            // What the best one has by now is counted first.
            Learnt::Worse if self.reverse() => return self.climb.best(),
            Learnt::Worse => {}
        }
        self.neighbour()
    }

    /// Ends a rest.
    fn begin_again(&mut self, step: i32) {
        (self.rests, self.step, self.has_reversed) = (0, step, false);
    }

    /// Turns to the other direction, or to half the step; whether there is something left to try.
    fn reverse(&mut self) -> bool {
        self.step = match self.has_reversed {
            false => -self.step,
            true => self.step / 2,
        };
        self.has_reversed = !self.has_reversed;
        self.step != 0
    }

    /// The next number to try; the best one when there is none.
    fn neighbour(&mut self) -> u32 {
        let best = self.climb.best();
        while self.step != 0 {
            let next = (best as i32 + self.step).clamp(1, self.most as i32) as u32;
            if next != best {
                return next;
            }
            self.reverse();
        }
        best
    }
}

fn first_step(number: u32) -> i32 {
    (number / 2).max(1) as i32
}

/// The number of controllers as it is at present, and the search for a better one.
pub struct Balance {
    number: AtomicU32,
    count: Mutex<Count>,
    /// When the worker that looks should do so again.
    look_ns: AtomicU64,
    /// Transactions of a count.
    transactions: u32,
}

/// A count under way.
struct Count {
    search: Search,
    /// Transactions that had ended when it began, and when that was; none before it has begun.
    begun: Option<(u32, u64)>,
}

impl Balance {
    /// Begins with `start` of at most `most`, and compares counts of so many transactions.
    pub fn new(start: u32, most: u32, count: u32) -> Balance {
        let search = Search::new(start, most);
        Balance {
            number: AtomicU32::new(search.climb.best()),
            count: Mutex::new(Count {
                search,
                begun: None,
            }),
            look_ns: AtomicU64::new(0),
            transactions: count,
        }
    }

    /// How many controllers there should be.
    pub fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    /// There are so many controllers now.
    pub fn adopt(&self, number: u32) {
        // Relaxed: a worker that begins a transaction later has seen that none keeps it out any
        // more.
        self.number.store(number, Ordering::Relaxed);
    }

    /// Goes on with the search if it is time; `ended` counts the transactions that have ended,
    /// modulo 2³². The number of controllers that there should be now, if it is another one.
    pub fn look(&self, ended: impl FnOnce() -> u32) -> Option<u32> {
        let now = time::now_ns();
        // Relaxed: the mutex keeps the count.
        if now < self.look_ns.load(Ordering::Relaxed) {
            return None;
        }
        let mut count = self.count.try_lock().ok()?;
        let next_look = now + PAUSE_NS * u64::from(self.transactions);
        self.look_ns.store(next_look, Ordering::Relaxed);
        let Some((before, since)) = count.begun else {
            count.begun = Some((ended(), now));
            return None;
        };
        let (done, elapsed) = (
            ended().wrapping_sub(before),
            now.saturating_sub(since).max(1),
        );
        if done < self.transactions && elapsed < COUNT_NS {
            return None;
        }
        let number = self.number();
        let next = count.search.next(number, f64::from(done) / elapsed as f64);
        count.begun = None;
        (next != number).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs for so many counts under a rate for each number, and returns the number that it rests
    /// at.
    fn climbed(search: &mut Search, counts: u32, rate: impl Fn(u32) -> f64) -> u32 {
        let mut number = search.climb.best();
        for _ in 0..counts {
            number = search.next(number, rate(number));
            assert!((1..=search.most).contains(&number));
        }
        search.climb.best()
    }

    /// The rate of a pipeline of which a share of the cores is the bottleneck.
    fn pipeline(cores: u32, share: f64) -> impl Fn(u32) -> f64 {
        move |controllers| {
            let (control, execute) = (f64::from(controllers), f64::from(cores - controllers));
            (control / share).min(execute / (1.0 - share))
        }
    }

    #[test]
    fn the_best_number_is_found_from_anywhere() {
        for most in [1, 2, 5, 16, 32] {
            for start in [1, most / 2, most] {
                for share in [0.02, 0.1, 0.2, 0.45] {
                    let rate = pipeline(2 * most, share);
                    let found = climbed(&mut Search::new(start, most), 30, &rate);
                    let best = (1..=most).map(&rate).fold(0.0, f64::max);
                    assert!(
                        rate(found) > 0.97 * best,
                        "{start} of {most}, share {share}: {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn another_workload_is_noticed() {
        let mut search = Search::new(4, 32);
        climbed(&mut search, 30, pipeline(64, 0.1));
        let after = pipeline(64, 0.4);
        let found = climbed(&mut search, 30, &after);
        assert!(after(found) > 0.9 * after(26), "{found}");
    }

    #[test]
    fn noise_does_not_lead_astray() {
        let rate = pipeline(64, 0.2);
        let mut search = Search::new(6, 32);
        let mut number = search.climb.best();
        let mut random = kiln_platform::random::Random::from_seed(5);
        let mut seen = Vec::new();
        for count in 0..400 {
            let noise = 1.0 + (random.below(41) as f64 - 20.0) / 1000.0;
            number = search.next(number, rate(number) * noise);
            if count > 40 {
                seen.push(rate(number) / rate(13));
            }
        }
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        assert!(mean > 0.9, "{mean}");
    }
}
