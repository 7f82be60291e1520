//! What is known of registers at a point of the program.

use std::collections::BTreeMap;

use crate::ir::Reg;

/// A value that may be NULL and whose computation is not followed: an argument, a column, an
/// element.
pub(super) type Root = u32;

/// A set of roots, by its number in [`Sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetId(u32);

/// No roots: what has this set is not NULL.
pub(super) const NEVER: SetId = SetId(0);

/// The root of what is NULL for certain.
const ALWAYS: Root = 0;

/// Sets with more roots are followed as one root of their own.
const ROOTS_MAX: usize = 8;

/// All sets of roots, each once.
pub(super) struct Sets {
    sets: Vec<Box<[Root]>>,
    numbers: BTreeMap<Box<[Root]>, SetId>,
    next_root: Root,
}

impl Sets {
    pub fn new() -> Sets {
        let mut sets = Sets {
            sets: Vec::new(),
            numbers: BTreeMap::new(),
            next_root: ALWAYS + 1,
        };
        let never = sets.number_of(Vec::new());
        debug_assert_eq!(never, NEVER);
        sets
    }

    fn number_of(&mut self, roots: Vec<Root>) -> SetId {
        let roots = roots.into_boxed_slice();
        if let Some(number) = self.numbers.get(&roots) {
            return *number;
        }
        let number = SetId(self.sets.len() as u32);
        self.sets.push(roots.clone());
        self.numbers.insert(roots, number);
        number
    }

    /// The set of what is NULL for certain.
    pub fn always(&mut self) -> SetId {
        self.number_of(vec![ALWAYS])
    }

    /// The set of a value of which nothing is known.
    pub fn fresh(&mut self) -> SetId {
        let root = self.next_root;
        self.next_root += 1;
        self.number_of(vec![root])
    }

    pub fn roots(&self, set: SetId) -> &[Root] {
        &self.sets[set.0 as usize]
    }

    /// The set of what is NULL when one of two values is.
    pub fn union(&mut self, left: SetId, right: SetId) -> SetId {
        if left == right || right == NEVER {
            return left;
        }
        if left == NEVER {
            return right;
        }
        let mut roots = [self.roots(left), self.roots(right)].concat();
        roots.sort_unstable();
        roots.dedup();
        match roots.len() > ROOTS_MAX {
            // As exact as the set: it is NULL when it is NULL.
            true => self.fresh(),
            false => self.number_of(roots),
        }
    }
}

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// It is NULL exactly when one of these roots is.
    pub nulls: SetId,
    /// For a condition, whether it is TRUE, or is FALSE.
    pub truth: Option<bool>,
    /// When it is TRUE, none of these roots is NULL.
    pub if_true: SetId,
    /// When it is FALSE, none of these roots is NULL.
    pub if_false: SetId,
}

impl Known {
    /// The facts about a value of which only this is known.
    pub fn of(nulls: SetId) -> Known {
        Known {
            nulls,
            truth: None,
            if_true: NEVER,
            if_false: NEVER,
        }
    }
}

/// What is known at a point of the program.
#[derive(Clone)]
pub(super) struct Facts {
    registers: Vec<Known>,
    /// Roots that are not NULL, in ascending order.
    present: Vec<Root>,
}

impl Facts {
    /// Nothing is known of so many registers.
    pub fn new(sets: &mut Sets, registers: usize) -> Facts {
        Facts {
            registers: (0..registers).map(|_| Known::of(sets.fresh())).collect(),
            present: Vec::new(),
        }
    }

    pub fn get(&self, register: Reg) -> Known {
        self.registers[register.0 as usize]
    }

    pub fn set(&mut self, register: Reg, known: Known) {
        self.registers[register.0 as usize] = known;
    }

    fn is_present(&self, root: Root) -> bool {
        self.present.binary_search(&root).is_ok()
    }

    /// The roots of a set of which it is not known that they are not NULL.
    pub fn open<'s>(&self, sets: &'s Sets, set: SetId) -> impl Iterator<Item = Root> + use<'s, '_> {
        let roots = sets.roots(set).iter().copied();
        roots.filter(|root| !self.is_present(*root))
    }

    /// Whether the register is not NULL for certain.
    pub fn never_null(&self, sets: &Sets, register: Reg) -> bool {
        self.open(sets, self.get(register).nulls).next().is_none()
    }

    /// Whether the register is NULL for certain.
    pub fn always_null(&self, sets: &Sets, register: Reg) -> bool {
        sets.roots(self.get(register).nulls).contains(&ALWAYS)
    }

    /// None of these roots is NULL from here on.
    pub fn refute(&mut self, sets: &Sets, set: SetId) {
        for root in sets.roots(set) {
            // What is always NULL makes a path that is never taken; nothing is learnt there.
            if *root != ALWAYS
                && let Err(place) = self.present.binary_search(root)
            {
                self.present.insert(place, *root);
            }
        }
    }

    /// The register is TRUE, or else FALSE, from here on.
    pub fn assume(&mut self, sets: &Sets, condition: Reg, truth: bool) {
        let known = self.get(condition);
        self.refute(sets, known.nulls);
        let implied = if truth { known.if_true } else { known.if_false };
        self.refute(sets, implied);
        let truth = Some(truth);
        self.set(condition, Known { truth, ..known });
    }

    /// What is known where two paths meet.
    ///
    /// A condition that is TRUE on the one and FALSE on the other tells which was taken, and so
    /// what else holds: `FOUND`, behind a look-up whose row's columns are NULL if there is none.
    pub fn join(sets: &mut Sets, left: Facts, right: Facts) -> Facts {
        let mut joined = left;
        let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
        // The conditions that tell, and what they were on the left.
        let mut telling: Vec<(usize, bool)> = Vec::new();
        for (position, other) in right.registers.iter().enumerate() {
            let known = joined.registers[position];
            if known == *other {
                continue;
            }
            let mine: Vec<Root> = joined.open(sets, known.nulls).collect();
            let others: Vec<Root> = right.open(sets, other.nulls).collect();
            let nulls = if known.nulls == other.nulls {
                known.nulls
            } else if mine == others {
                // Roots that are not NULL on one of the paths may be in either set.
                sets.number_of(mine)
            } else {
                let nulls = sets.fresh();
                let only = match (mine.is_empty(), others.is_empty()) {
                    (true, _) => Some(&mut only_left),
                    (_, true) => Some(&mut only_right),
                    _ => None,
                };
                if let Some(only) = only {
                    only.extend_from_slice(sets.roots(nulls));
                }
                nulls
            };
            if let (Some(truth), Some(opposite)) = (known.truth, other.truth)
                && truth != opposite
            {
                telling.push((position, truth));
            }
            let both = |mine: SetId, others: SetId| if mine == others { mine } else { NEVER };
            joined.registers[position] = Known {
                nulls,
                truth: known.truth.filter(|_| known.truth == other.truth),
                if_true: both(known.if_true, other.if_true),
                if_false: both(known.if_false, other.if_false),
            };
        }
        if !telling.is_empty() {
            let missing = |root: &&Root| !right.is_present(**root);
            only_left.extend(joined.present.iter().filter(missing));
            let missing = |root: &&Root| !joined.is_present(**root);
            only_right.extend(right.present.iter().filter(missing));
            only_left.sort_unstable();
            only_right.sort_unstable();
            let (left, right) = (sets.number_of(only_left), sets.number_of(only_right));
            for (position, was_true) in telling {
                let known = &mut joined.registers[position];
                (known.if_true, known.if_false) = match was_true {
                    true => (left, right),
                    false => (right, left),
                };
            }
        }
        joined.present.retain(|root| right.is_present(*root));
        joined
    }
}
