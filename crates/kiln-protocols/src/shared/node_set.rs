//! The index nodes on whose content an attempt relies: its guard against phantoms (Silo §4.6).

use kiln_storage::index::{InsertEffect, NodeVersion};

use kiln_procedure::AbortCause;

use crate::canary::Canary;
use crate::shared::index_changes::Touched;

/// Guards, each once for its node.
#[derive(Default)]
pub struct NodeSet {
    guards: Vec<NodeVersion>,
    /// Positions by node, open-addressed; used once there are more than a few guards.
    by_node: Vec<u32>,
}

impl NodeSet {
    /// Up to here guards are searched one by one.
    const SEARCHED: usize = 16;

    fn start(&self, guard: &NodeVersion) -> usize {
        let hash = (guard.node.as_ptr() as u64 >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 40) as usize & (self.by_node.len() - 1)
    }

    fn position(&self, guard: &NodeVersion) -> Option<usize> {
        if self.by_node.is_empty() {
            return self
                .guards
                .iter()
                .position(|known| known.node == guard.node);
        }
        let mut at = self.start(guard);
        while self.by_node[at] != 0 {
            let position = self.by_node[at] as usize - 1;
            if self.guards[position].node == guard.node {
                return Some(position);
            }
            at = (at + 1) & (self.by_node.len() - 1);
        }
        None
    }

    fn append(&mut self, guard: NodeVersion) {
        self.guards.push(guard);
        if self.guards.len() <= Self::SEARCHED {
            return;
        }
        if self.guards.len() * 2 > self.by_node.len() {
            self.by_node = vec![0; (self.guards.len() * 4).next_power_of_two()];
            for position in 0..self.guards.len() {
                self.note(position);
            }
        } else {
            self.note(self.guards.len() - 1);
        }
    }

    fn note(&mut self, position: usize) {
        let mut at = self.start(&self.guards[position]);
        while self.by_node[at] != 0 {
            at = (at + 1) & (self.by_node.len() - 1);
        }
        self.by_node[at] = position as u32 + 1;
    }

    /// Adds a guard.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when the node was guarded at another version before.
    #[inline]
    pub fn guard(&mut self, guard: NodeVersion) -> Result<(), AbortCause> {
        match self.position(&guard) {
            None => self.append(guard),
            Some(position) if self.guards[position].observed == guard.observed => {}
            Some(_) => return Err(AbortCause::Phantom),
        }
        Ok(())
    }

    /// Takes what the attempt itself did to a node into account.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when another transaction inserted into a guarded node before.
    #[inline(always)]
    pub fn touched(&mut self, touched: Touched<'_>) -> Result<(), AbortCause> {
        match touched {
            Touched::Inserted(effect) => self.inserted(effect),
            Touched::Withdrawn(_, node) => self.guard(node),
        }
    }

    /// Takes an insertion of the attempt's own into account.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when another transaction inserted into a guarded node before.
    #[inline(always)]
    pub fn inserted(&mut self, effect: &InsertEffect) -> Result<(), AbortCause> {
        // Most attempts that insert guard nothing; this alone is to become a part of the callers.
        match self.guards.is_empty() {
            true => Ok(()),
            false => self.inserted_beside_guards(effect),
        }
    }

    #[inline(never)]
    fn inserted_beside_guards(&mut self, effect: &InsertEffect) -> Result<(), AbortCause> {
        let before = NodeVersion {
            node: effect.node,
            observed: effect.before,
        };
        let Some(position) = self.position(&before) else {
            return Ok(());
        };
        if self.guards[position].observed != effect.before
            && !Canary::OwnInsertionHidesOthers.sings()
        {
            return Err(AbortCause::Phantom);
        }
        self.guards[position].observed = effect.after;
        for sibling in effect.splits.into_iter().flatten() {
            self.guard(sibling)?;
        }
        Ok(())
    }

    /// Whether there are no guards.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// Whether every guard still holds. A sequentially consistent fence lies between the
    /// attempt's own insertions and this.
    #[inline]
    pub fn is_current(&self) -> bool {
        Canary::NodeValidationSkipped.sings() || self.guards.iter().all(NodeVersion::is_current)
    }

    /// Forgets all guards.
    #[inline]
    pub fn clear(&mut self) {
        self.guards.clear();
        if !self.by_node.is_empty() {
            self.by_node.clear();
        }
    }
}
