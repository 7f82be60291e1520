//! The choice of the thread that runs next.
//!
//! - *Random*: any of the threads that can run, each as likely as the others, at every scheduling
//!   point.
//! - *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte: *A Randomized Scheduler with Probabilistic
//!   Guarantees of Finding Bugs*, ASPLOS 2010): threads have random priorities and the highest that
//!   can run does, without interruption but at `depth - 1` random change points, where the running
//!   thread falls below all others. It finds a bug that takes `depth` ordered events among `n`
//!   threads and `k` steps with probability at least 1/(n k^(depth-1)). Ours departs from the paper
//!   in two ways. A thread that spins or yields falls below all others, so that spin loops end. And
//!   a run that outlasts its `k` steps starts over with new priorities and change points, so that
//!   one run of a long workload is many rounds of the paper's.
//! - *Least virtual time first*: the thread whose core's clock is the furthest behind.

use super::control::Schedule;

/// A small generator (splitmix64). The schedule has its own, so that no other drawing disturbs it,
/// and so has a disk.
#[derive(Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`, as far as 64 bits go.
    #[inline(always)]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// A thread that can run at a time; void when the thread's ticket has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Runnable {
    pub(super) time_ps: u64,
    pub(super) thread: u32,
    pub(super) ticket: u32,
}

/// Threads that can run, the earliest first.
#[derive(Default)]
pub(super) struct RunQueue(Vec<Runnable>);

impl RunQueue {
    pub(super) fn first(&self) -> Option<Runnable> {
        self.0.first().copied()
    }

    pub(super) fn push(&mut self, runnable: Runnable) {
        self.0.push(runnable);
        let mut at = self.0.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.0[parent] <= runnable {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = runnable;
    }

    pub(super) fn pop(&mut self) -> Option<Runnable> {
        let first = self.first()?;
        let last = self.0.pop()?;
        if !self.0.is_empty() {
            self.sink(last);
        }
        Some(first)
    }

    /// Takes the first one out and puts another in; there is a first one.
    #[inline(always)]
    pub(super) fn replace_first(&mut self, runnable: Runnable) {
        self.sink(runnable);
    }

    /// Puts `runnable` in the place of the first.
    #[inline(always)]
    fn sink(&mut self, runnable: Runnable) {
        let run_queue = &mut self.0[..];
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= run_queue.len() {
                break;
            }
            if child + 1 < run_queue.len() && run_queue[child + 1] < run_queue[child] {
                child += 1;
            }
            if runnable <= run_queue[child] {
                break;
            }
            run_queue[at] = run_queue[child];
            at = child;
        }
        run_queue[at] = runnable;
    }
}

/// The threads that can run now, for the schedules without clocks.
pub(super) struct Ready {
    pub(super) threads: Vec<u32>,
    dice: Dice,
    pct: Option<Pct>,
}

/// The state of PCT.
struct Pct {
    depth: u32,
    steps: u64,
    /// By thread: random priorities are high, change points give their number, and a thread that
    /// spins falls below all.
    priorities: Vec<i64>,
    lowest: i64,
    /// Steps left in this round, and the change points still to come as steps left then, the next
    /// last.
    left: u64,
    changes: Vec<u64>,
}

impl Ready {
    pub(super) fn new(schedule: Schedule, seed: u64) -> Ready {
        let pct = match schedule {
            Schedule::Pct { depth, steps } => Some(Pct {
                depth,
                steps,
                priorities: Vec::new(),
                lowest: 0,
                left: 0,
                changes: Vec::new(),
            }),
            _ => None,
        };
        Ready {
            threads: Vec::new(),
            dice: Dice::new(seed),
            pct,
        }
    }

    /// Notes a new thread.
    pub(super) fn thread_started(&mut self) {
        if let Some(pct) = &mut self.pct {
            pct.priorities.push(random_priority(&mut self.dice));
        }
    }

    pub(super) fn remove(&mut self, thread: u32) {
        self.threads.retain(|ready| *ready != thread);
    }

    /// The thread that runs next, `running` included if it can; at least one can.
    #[inline(always)]
    pub(super) fn choose(&mut self) -> u32 {
        match &self.pct {
            None => self.threads[self.dice.below(self.threads.len())],
            Some(pct) => pct.highest(&self.threads),
        }
    }

    /// The thread that runs next when `running` gives way.
    pub(super) fn choose_other(&mut self, running: u32) -> u32 {
        if let Some(pct) = &mut self.pct {
            pct.lowest -= 1;
            pct.priorities[running as usize] = pct.lowest;
            return pct.highest(&self.threads);
        }
        match self.threads.len() {
            0 | 1 => self.choose(),
            count => {
                // Any but `running`: the last takes its place in the draw.
                let drawn = self.threads[self.dice.below(count - 1)];
                if drawn == running {
                    self.threads[count - 1]
                } else {
                    drawn
                }
            }
        }
    }

    /// A step of PCT; says whether another thread may have to run now.
    #[inline(always)]
    pub(super) fn step(&mut self, running: u32) -> bool {
        let Some(pct) = &mut self.pct else {
            return true;
        };
        if pct.left == 0 {
            pct.start_round(&mut self.dice);
            return true;
        }
        pct.left -= 1;
        if pct.changes.last().is_some_and(|change| *change >= pct.left) {
            // The k-th change point of a round gives priority depth - k, below all random ones.
            pct.priorities[running as usize] = pct.changes.len() as i64;
            pct.changes.pop();
            return true;
        }
        false
    }

    /// One of the first `count`, for choices among waiters.
    pub(super) fn pick(&mut self, count: usize) -> usize {
        if self.pct.is_some() {
            return 0;
        }
        self.dice.below(count)
    }

    /// A random number that has nothing to do with the schedule.
    pub(super) fn draw(&mut self) -> u64 {
        self.dice.next()
    }
}

/// Above all change points' priorities, and practically never twice the same.
fn random_priority(dice: &mut Dice) -> i64 {
    (1 << 32) + (dice.next() >> 8) as i64
}

impl Pct {
    fn start_round(&mut self, dice: &mut Dice) {
        for priority in &mut self.priorities {
            *priority = random_priority(dice);
        }
        self.lowest = 0;
        self.left = self.steps;
        self.changes.clear();
        for _ in 1..self.depth {
            self.changes.push(dice.below(self.steps as usize) as u64);
        }
        self.changes.sort_unstable();
    }

    fn highest(&self, threads: &[u32]) -> u32 {
        let by_priority = |thread: &&u32| self.priorities[**thread as usize];
        *threads
            .iter()
            .max_by_key(by_priority)
            .expect("at least one thread can run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnables_come_out_in_order() {
        let mut dice = Dice::new(7);
        let mut run_queue = RunQueue::default();
        let runnable = |time_ps: u64| Runnable {
            time_ps,
            thread: (time_ps % 5) as u32,
            ticket: 0,
        };
        let mut expected = Vec::new();
        for _ in 0..500 {
            let time = dice.next() % 1_000;
            run_queue.push(runnable(time));
            expected.push(runnable(time));
        }
        for _ in 0..200 {
            expected.sort_unstable();
            assert_eq!(run_queue.first(), Some(expected[0]));
            let time = dice.next() % 1_000;
            run_queue.replace_first(runnable(time));
            expected[0] = runnable(time);
        }
        expected.sort_unstable();
        let drained: Vec<Runnable> = std::iter::from_fn(|| run_queue.pop()).collect();
        assert!(drained == expected);
    }

    #[test]
    fn a_round_of_pct_interrupts_at_its_change_points_only() {
        let schedule = Schedule::Pct {
            depth: 4,
            steps: 100,
        };
        let mut ready = Ready::new(schedule, 3);
        ready.threads = vec![0, 1, 2];
        for _ in 0..3 {
            ready.thread_started();
        }
        assert!(ready.step(0), "the first step starts a round");
        let mut running = ready.choose();
        let mut changes = 0;
        for _ in 0..100 {
            if ready.step(running) {
                changes += 1;
                let next = ready.choose();
                assert_ne!(
                    next, running,
                    "a thread that is interrupted falls below the others"
                );
                running = next;
            }
        }
        assert_eq!(changes, 3);
        let yielding = ready.choose();
        assert_ne!(ready.choose_other(yielding), yielding);
    }
}
