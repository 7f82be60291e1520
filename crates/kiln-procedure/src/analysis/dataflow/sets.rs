//! Sets of operations, each known by a number.

use std::collections::HashMap;

use crate::ir::OpId;

/// A set of operations, by its number in [`Sets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SetId(u32);

/// The empty set.
pub(super) const NONE: SetId = SetId(0);

/// Every set of operations met, each once: states are vectors of small numbers then.
pub(super) struct Sets {
    sets: Vec<Vec<OpId>>,
    ids: HashMap<Vec<OpId>, SetId>,
}

impl Sets {
    pub(super) fn new() -> Sets {
        Sets {
            sets: vec![Vec::new()],
            ids: HashMap::from([(Vec::new(), NONE)]),
        }
    }

    pub(super) fn intern(&mut self, set: Vec<OpId>) -> SetId {
        if let Some(id) = self.ids.get(&set) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    pub(super) fn single(&mut self, op: OpId) -> SetId {
        self.intern(vec![op])
    }

    pub(super) fn union(&mut self, left: SetId, right: SetId) -> SetId {
        if left == right || right == NONE {
            return left;
        }
        if left == NONE {
            return right;
        }
        let mut set = self.get(left).to_vec();
        set.extend_from_slice(self.get(right));
        set.sort_unstable();
        set.dedup();
        self.intern(set)
    }

    pub(super) fn get(&self, id: SetId) -> &[OpId] {
        &self.sets[id.0 as usize]
    }
}
