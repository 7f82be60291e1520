//! Loops and protected regions: what decides how often their bodies run, and what is known behind
//! them.

use super::sets::{NONE, SetId};
use super::{Dataflow, Flow, Loop, Rows, State};
use crate::ir::*;
use crate::names::{for_each_step, step_operation};

impl Dataflow<'_> {
    /// A protected region: any operation of its body may decide how far that gets.
    pub(super) fn protect(
        &mut self,
        step: &Step,
        (region, caught): (RegionId, Reg),
        body: &[Step],
        state: State,
    ) -> State {
        let mut behind = state.clone();
        self.loops.push(Loop {
            is_region: true,
            ..Loop::default()
        });
        let end = self.block(body, state);
        let Loop {
            escapes,
            exits,
            continues,
            ..
        } = self.loops.pop().expect("just pushed");
        for way in [end, exits, continues] {
            behind = self.join(Some(behind), way).expect("one way is there");
        }
        let (mut inside, mut written) = (Vec::new(), Vec::new());
        for_each_step(body, &mut |step| {
            if let Some(op) = step_operation(step) {
                inside.push(op);
                let is_change = matches!(
                    step,
                    Step::Update { .. } | Step::Insert { .. } | Step::Delete { .. }
                );
                written.extend(is_change.then_some(op));
            }
        });
        inside.sort_unstable();
        written.sort_unstable();
        let inside = self.sets.intern(inside);
        let deciders = self.sets.union(inside, escapes);
        let written = self.sets.intern(written);
        behind.written = self.sets.union(behind.written, written);
        self.decided(&mut behind, step, deciders);
        behind.registers[caught.0 as usize].from = deciders;
        self.raised[region.0 as usize] = deciders;
        behind
    }

    /// A loop: its iterations are followed until nothing new arrives at its head.
    pub(super) fn repeat(&mut self, step: &Step, state: State) -> Option<State> {
        let mut head = state;
        // What decides the iterations: known when entering, but for a condition and a buffer that
        // the body fills.
        let entering = self.enter(step, &mut head);
        self.loops.push(Loop {
            iterations: entering,
            ..Loop::default()
        });
        // Within an outer loop's next iteration, go on from where the last one ended: else the time
        // would double with each level of nesting.
        let known: *const Step = step;
        if let Some((last, iterations, escapes)) = self.heads.remove(&known) {
            head = self.join(Some(head), Some(last)).expect("both are there");
            self.decide_iterations(iterations);
            self.open_mut().escapes = escapes;
        }
        loop {
            let before = (
                head.clone(),
                self.open().iterations,
                self.open().escapes,
                self.returns,
            );
            let mut inside = head.clone();
            let mut leaves = Some(head.clone());
            let body = match step {
                Step::Loop {
                    before,
                    condition,
                    body,
                } => {
                    leaves = None;
                    match self.block(before, inside) {
                        Some(tested) => {
                            if let Some(condition) = condition {
                                let deciders = tested.registers[condition.0 as usize].from;
                                self.decide_iterations(deciders);
                                leaves = Some(tested.clone());
                            }
                            inside = tested;
                        }
                        None => {
                            self.loops.pop();
                            return None;
                        }
                    }
                    body
                }
                Step::ForRange { body, .. }
                | Step::ForEach { body, .. }
                | Step::ForBuffer { body, .. }
                | Step::Scan { body, .. } => body,
                _ => unreachable!("only loops repeat"),
            };
            self.begin_iteration(step, &mut inside);
            let end = self.block(body, inside);
            let continues = self.open_mut().continues.take();
            let mut back = self.join(end, continues);
            let deciders = self.deciders();
            if let Some(back) = &mut back {
                self.decided(back, step, deciders);
            }
            head = self
                .join(Some(head), back)
                .expect("the entry reaches the head");
            let after = (
                head,
                self.open().iterations,
                self.open().escapes,
                self.returns,
            );
            if after == before {
                self.heads.insert(known, (after.0, after.1, after.2));
                let exits = self.open_mut().exits.take();
                let mut left = self.join(leaves, exits);
                if let Some(left) = &mut left {
                    self.decided(left, step, deciders);
                }
                self.loops.pop();
                return left;
            }
            head = after.0;
        }
    }

    pub(super) fn open(&self) -> &Loop {
        self.loops.last().expect("called within a loop")
    }

    pub(super) fn open_mut(&mut self) -> &mut Loop {
        self.loops.last_mut().expect("called within a loop")
    }

    /// What decides how many iterations the innermost loop runs, and how far each gets.
    pub(super) fn deciders(&mut self) -> SetId {
        let Loop {
            iterations,
            escapes,
            ..
        } = *self.open();
        self.sets.union(iterations, escapes)
    }

    pub(super) fn decide_iterations(&mut self, deciders: SetId) {
        let iterations = self.sets.union(self.open().iterations, deciders);
        self.open_mut().iterations = iterations;
    }

    /// What a loop does once, before its first iteration; returns what decides its iterations.
    pub(super) fn enter(&mut self, step: &Step, state: &mut State) -> SetId {
        match step {
            Step::ForRange {
                variable,
                first,
                last,
                step,
                ..
            } => {
                let bounds = self.union_of(state, [first, last, step]);
                // The body sees the variable of the iteration only; behind the loop it is unknown.
                state.registers[variable.0 as usize] = Flow {
                    from: bounds,
                    found_by: NONE,
                };
                bounds
            }
            Step::ForEach { array, .. } => state.registers[array.0 as usize].from,
            Step::ForBuffer { matching, .. } => {
                self.union_of(state, matching.iter().map(|one| &one.value))
            }
            Step::Scan { op, range, .. } => {
                let bounds = [&range.lower, &range.upper].into_iter().flatten();
                let registers = range.prefix.iter().chain(bounds.map(|bound| &bound.value));
                let key = self.union_of(state, registers);
                self.finds(*op, key, step, state);
                self.sets.single(*op)
            }
            _ => NONE,
        }
    }

    /// What a loop writes at the start of each iteration.
    pub(super) fn begin_iteration(&mut self, step: &Step, state: &mut State) {
        match step {
            Step::ForRange { variable, .. } => {
                state.registers[variable.0 as usize] = Flow {
                    from: self.open().iterations,
                    found_by: NONE,
                };
            }
            Step::ForEach { variable, .. } => {
                state.registers[variable.0 as usize] = Flow {
                    from: self.open().iterations,
                    found_by: NONE,
                };
            }
            Step::Scan { op, record, .. } => {
                let from = self.sets.single(*op);
                state.records[record.0 as usize] = Flow {
                    from,
                    found_by: from,
                };
            }
            Step::ForBuffer { buffer, row, .. } => {
                let Rows { columns, chosen_by } = state.buffers[buffer.0 as usize].clone();
                self.decide_iterations(chosen_by);
                // Which row it is depends on what was pushed and on what it must match.
                let chosen_by = self.open().iterations;
                for (register, flow) in row.iter().zip(columns) {
                    let from = self.sets.union(flow.from, chosen_by);
                    state.registers[register.0 as usize] = Flow { from, ..flow };
                }
            }
            _ => {}
        }
    }
}
