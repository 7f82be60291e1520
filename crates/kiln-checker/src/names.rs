//! Names of transactions, objects and columns, for people.

use std::collections::HashMap;

use kiln_history::{History, IndexId, Key};

use crate::attempts::{Attempts, Ending};
use crate::graph::EXISTENCE;

/// The names of a history.
pub(crate) struct Names<'a> {
    history: &'a History,
    attempts: &'a Attempts<'a>,
    objects: HashMap<u64, (u32, &'a str)>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(attempts: &'a Attempts<'a>) -> Names<'a> {
        let history = attempts.history;
        let objects = history.objects.iter();
        Names {
            history,
            attempts,
            objects: objects
                .map(|named| (named.object.0, (named.table, &*named.name)))
                .collect(),
        }
    }

    /// `payment (worker 1, its 17th)`, with how it ended unless it committed.
    pub(crate) fn attempt(&self, number: u32) -> String {
        let attempt = self.attempts.get(number);
        let procedure = match self.history.procedures.get(attempt.procedure as usize) {
            Some(name) => name.clone(),
            None => format!("procedure {}", attempt.procedure),
        };
        let ending = match attempt.ending {
            Ending::Committed => "",
            Ending::Rejected => ", rejected",
            Ending::Aborted => ", aborted",
        };
        let ordinal = ordinal(self.attempts.ordinal(number));
        format!(
            "{procedure} (worker {}, its {ordinal}{ending})",
            attempt.worker
        )
    }

    /// `account[3]`, or an address.
    pub(crate) fn object(&self, number: u32) -> String {
        let address = self.attempts.objects[number as usize];
        match self.objects.get(&address) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("object {address:#x}"),
        }
    }

    /// `account[3].balance`.
    pub(crate) fn column(&self, object: u32, column: u32) -> String {
        let name = self.object(object);
        if column == EXISTENCE {
            return format!("whether {name} exists");
        }
        let position = column - 1;
        let address = self.attempts.objects[object as usize];
        let columns = self.objects.get(&address).and_then(|(table, _)| {
            let table = self.history.tables.get(*table as usize)?;
            table.columns.get(position as usize)
        });
        match columns {
            Some(column) => format!("{name}.{column}"),
            None => format!("{name}.column {position}"),
        }
    }

    /// `account_pkey`, with its table if the names do not say.
    pub(crate) fn index(&self, index: IndexId) -> String {
        let table = self.history.tables.get(index.table as usize);
        match table.and_then(|table| table.indexes.get(usize::from(index.index))) {
            Some(name) => name.clone(),
            None => format!("index {} of table {}", index.index, index.table),
        }
    }
}

/// A version as the epoch and the sequence number that a tid consists of.
pub(crate) fn version(version: u64) -> String {
    const SEQUENCE_BITS: u32 = 24;
    let sequence = version & ((1 << SEQUENCE_BITS) - 1);
    format!("{}:{sequence}", version >> SEQUENCE_BITS)
}

/// A key's bytes in hexadecimal.
pub(crate) fn key(key: Key<'_>) -> String {
    let digits: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
    match digits.is_empty() {
        true => "(empty)".to_owned(),
        false => digits.concat(),
    }
}

fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_english() {
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1_013]
            .map(ordinal)
            .to_vec();
        assert_eq!(
            ordinals.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th 1013th"
        );
    }

    #[test]
    fn versions_are_epoch_and_sequence() {
        assert_eq!(version(3 << 24 | 12), "3:12");
    }
}
