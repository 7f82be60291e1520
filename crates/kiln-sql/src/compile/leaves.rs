//! What expressions look at of the rows that a SELECT is made of, where the SELECT is taken apart into
//! one that gives these rows and one that goes on with them.

use super::bound::{Bound, ColumnMeta, Kind, Select, SourceId};

/// The columns that the rows have.
pub(super) struct Leaves {
    own: Vec<SourceId>,
    /// The slots of group keys and aggregates.
    slots: Vec<usize>,
    pub columns: Vec<Bound>,
}

impl Leaves {
    /// No column yet, for expressions over the rows of a SELECT or over its groups.
    pub fn of(select: &Select) -> Leaves {
        let grouping = select.grouping.iter();
        let slots = grouping.flat_map(|grouping| {
            let keys = grouping.keys.iter().map(|(_, slot)| *slot);
            keys.chain(grouping.aggregates.iter().map(|(_, slot)| *slot))
        });
        Leaves {
            own: select.items.iter().map(|item| item.source).collect(),
            slots: slots.collect(),
            columns: Vec::new(),
        }
    }

    /// The same with the columns of another source.
    pub fn with(mut self, source: SourceId) -> Leaves {
        self.own.push(source);
        self
    }

    fn is_leaf(&self, bound: &Bound) -> bool {
        match bound.kind {
            Kind::Column { source, .. } => self.own.contains(&source),
            Kind::Slot(slot) => self.slots.contains(&slot),
            _ => false,
        }
    }

    /// The number of the column that is `bound`, which becomes one if there is none.
    pub fn place(&mut self, bound: &Bound) -> usize {
        let known = self.columns.iter().position(|known| known == bound);
        known.unwrap_or_else(|| {
            self.columns.push(bound.clone());
            self.columns.len() - 1
        })
    }

    /// Makes columns of what an expression looks at, apart from the nodes that `takes` takes.
    pub fn collect(&mut self, bound: &Bound, takes: &mut dyn FnMut(&Bound) -> bool) {
        if self.is_leaf(bound) {
            self.place(bound);
            return;
        }
        if takes(bound) {
            return;
        }
        if let Kind::Subquery(subquery) = &bound.kind {
            let mut leaves = Vec::new();
            subquery.query.visit(&mut |node| {
                if self.is_leaf(node) {
                    leaves.push(node.clone());
                }
            });
            for leaf in leaves {
                self.place(&leaf);
            }
        }
        for operand in bound.operands() {
            self.collect(operand, takes);
        }
    }

    /// A leaf as a column of the rows, which are those of `source`.
    pub fn in_rows_of(&self, source: SourceId, bound: &Bound) -> Option<Bound> {
        if !self.is_leaf(bound) {
            return None;
        }
        let at = self.columns.iter().position(|known| known == bound)?;
        let column = at as u16;
        let kind = Kind::Column { source, column };
        Some(Bound::new(kind, bound.data_type.clone(), bound.position))
    }
}

/// Columns without names, for the values of expressions.
pub(super) fn plain_columns<'b>(bounds: impl Iterator<Item = &'b Bound>) -> Vec<ColumnMeta> {
    let columns = bounds.map(|bound| ColumnMeta {
        name: String::new(),
        data_type: bound.data_type.clone(),
        origin: None,
    });
    columns.collect()
}
