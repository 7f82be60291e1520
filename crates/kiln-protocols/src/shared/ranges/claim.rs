//! A range of keys that a transaction asks for.

use kiln_storage::table::{Cuts, Table};

/// A range can be covered by so many nodes of a level; with more it goes to the level above.
const NODES_MAX: u128 = 8;

/// A key space of the database, by its number: of its table, and within the table.
pub type SpaceId = u64;

/// The keys between two points of a space, in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeClaim {
    /// The first and the last point.
    pub first: u128,
    /// See `first`.
    pub last: u128,
    /// The space.
    pub space: SpaceId,
    /// Where the space's points are cut into prefixes.
    pub cuts: Cuts,
    /// Of the cuts, the one whose nodes cover it.
    pub level: u8,
    /// Whether the keys, or their records, will be written.
    pub exclusive: bool,
}

/// The leading bits of a point.
#[inline(always)]
pub fn prefix(point: u128, bits: u8) -> u128 {
    match bits {
        0 => 0,
        bits => point >> (128 - bits),
    }
}

impl RangeClaim {
    /// The keys from `first` to `last` in the key space at a position of `table`.
    #[inline]
    pub fn new(
        table: &Table,
        space: usize,
        (first, last): (u128, u128),
        exclusive: bool,
    ) -> RangeClaim {
        let cuts = table.key_spaces()[space].cuts;
        let bits = cuts.bits();
        let mut level = bits.len() - 1;
        if first != last {
            let nodes = |level: usize| prefix(last, bits[level]) - prefix(first, bits[level]);
            while level > 0 && nodes(level) >= NODES_MAX {
                level -= 1;
            }
        }
        RangeClaim {
            first,
            last,
            space: u64::from(table.id().0) << 8 | space as u64,
            cuts,
            level: level as u8,
            exclusive,
        }
    }

    /// The same, and all keys that its nodes cover besides.
    #[inline]
    pub fn widened(self) -> RangeClaim {
        let free = match self.cuts.bits()[self.level as usize] {
            0 => u128::MAX,
            bits => u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0),
        };
        RangeClaim {
            first: self.first & !free,
            last: self.last | free,
            ..self
        }
    }

    /// Whether a transaction that has this has `other`.
    #[inline(always)]
    pub fn covers(&self, other: &RangeClaim) -> bool {
        self.space == other.space
            && self.first <= other.first
            && self.last >= other.last
            && (self.exclusive || !other.exclusive)
    }

    /// Whether no two transactions may have the two at once.
    pub fn conflicts(&self, other: &RangeClaim) -> bool {
        self.space == other.space
            && self.first <= other.last
            && other.first <= self.last
            && (self.exclusive || other.exclusive)
    }
}

/// The cuts of a space for which they do not matter.
#[cfg(test)]
pub fn no_cuts() -> Cuts {
    use kiln_storage::schema::{Column, ColumnId, TableId, TableSchema};
    let schema = TableSchema {
        name: "item".to_owned(),
        columns: vec![Column {
            name: "id".to_owned(),
            data_type: kiln_storage::types::DataType::BigInt,
            not_null: true,
            default: None,
            domain: None,
            generated: None,
        }],
        primary_key: vec![ColumnId(0)],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let table = Table::new(TableId(1), schema, 0, Vec::new()).expect("a table like others");
    table.key_spaces()[0].cuts
}
