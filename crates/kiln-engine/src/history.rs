//! Histories: recording what transactions do, for a judge.

use std::collections::{BTreeMap, BTreeSet};

use kiln_history::{Event, History, LogReader, Object, ObjectName, TableNames};
use kiln_procedure::AbortCause;
use kiln_procedure::frame::to_value;
use kiln_protocols::Observation;
use kiln_storage::error::{Error, Result};
use kiln_storage::record::RecordRef;
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;
use kiln_storage::types::format_value;

use crate::catalog::Catalog;
use crate::engine::Engine;

impl Engine {
    /// Records from now on what transactions read and wrote, for [`Engine::take_history`]; what was
    /// recorded before is forgotten. Each worker keeps about `limit_bytes`. Nothing is dropped: a
    /// caller stops making calls when [`Driver::is_history_full`](crate::Driver::is_history_full)
    /// says so.
    ///
    /// Tables must not be dropped or truncated meanwhile: their memory, by which histories know
    /// records, may be used again.
    ///
    /// # Errors
    /// 55P03 when running transactions do not end within
    /// [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms); 0A000 in builds without the feature
    /// `history`.
    pub fn record_history(&self, limit_bytes: usize) -> Result<()> {
        if !kiln_protocols::RECORDS_HISTORIES {
            return Err(Error::unsupported("this build records no histories")
                .with_hint("Build it with the feature \"history\"."));
        }
        let alone = self.inner().shut_gate()?;
        self.inner()
            .set_observation(Some(Observation::new(limit_bytes)));
        alone.announce_change();
        Ok(())
    }

    /// Stops recording and returns what was recorded, with the names of everything as they are now.
    /// The history is empty when nothing was being recorded.
    ///
    /// # Errors
    /// 55P03 when running transactions do not end within
    /// [`Options::ddl_wait_ms`](crate::Options::ddl_wait_ms).
    pub fn take_history(&self) -> Result<History> {
        let alone = self.inner().shut_gate()?;
        let Some(observation) = self.inner().set_observation(None) else {
            return Ok(History::default());
        };
        alone.announce_change();
        // SAFETY: the gate is shut, so no worker slot's worker runs a transaction, and shutting it
        // synchronised with the end of those that ran. They record nothing outside of transactions.
        let logs = unsafe { observation.take_logs() };
        let catalog = self.catalog();
        Ok(History {
            protocol: self.protocol().name(),
            workload: String::new(),
            procedures: observation.procedures(),
            causes: AbortCause::ALL
                .iter()
                .map(|cause| cause.name().to_owned())
                .collect(),
            tables: table_names(&catalog),
            objects: object_names(&catalog, &logs),
            logs,
        })
    }
}

/// The names of all tables, by their numbers.
fn table_names(catalog: &Catalog) -> Vec<TableNames> {
    let mut names = Vec::new();
    for (name, table) in catalog.tables() {
        let number = table.id().0 as usize;
        if names.len() <= number {
            names.resize_with(number + 1, TableNames::default);
        }
        let columns = table.schema().columns.iter();
        let indexes = table.indexes().iter();
        names[number] = TableNames {
            name: name.to_owned(),
            columns: columns.map(|column| column.name.clone()).collect(),
            indexes: indexes
                .map(|index| index.definition().name.clone())
                .collect(),
        };
    }
    names
}

/// Names for the objects in the logs: by the primary key of the row that the object holds now, or
/// else held last.
fn object_names(catalog: &Catalog, logs: &[Vec<u64>]) -> Vec<ObjectName> {
    let mut mentioned = BTreeSet::new();
    let mut names = BTreeMap::new();
    for words in logs {
        // What a log of our own holds can be decoded.
        for event in LogReader::new(words).map_while(std::result::Result::ok) {
            match event {
                Event::Read { object, .. }
                | Event::ReadAbsent { object, .. }
                | Event::Write { object, .. }
                | Event::Met { object, .. } => {
                    mentioned.insert(object);
                }
                Event::Entry {
                    index, object, key, ..
                } if index.index == 0 => {
                    let mut tables = catalog.tables();
                    let table = tables.find(|(_, table)| table.id().0 == index.table);
                    if let Some((name, table)) = table {
                        let key = table.indexes()[0].key_layout().describe(key);
                        names.insert(object, (index.table, format!("{name}[{key}]")));
                    }
                }
                _ => {}
            }
        }
    }
    for (name, table) in catalog.tables() {
        table.indexes()[0].for_each(|record| {
            let object = Object(record.address());
            if mentioned.contains(&object) {
                let name = format!("{name}[{}]", key_text(table, record));
                names.insert(object, (table.id().0, name));
            }
        });
    }
    names
        .into_iter()
        .map(|(object, (table, name))| ObjectName {
            object,
            table,
            name,
        })
        .collect()
}

/// The primary key of a row that no transaction changes, or its row number.
fn key_text(table: &Table, record: RecordRef) -> String {
    let mut heap = Heap::new();
    let schema = table.schema();
    let fields = table.indexes()[0].key_layout().fields().iter();
    let texts: Vec<String> = fields
        .map(|field| {
            let slot = table.field_value(field, table.row(record), &mut heap);
            match field.column {
                Some(column) => {
                    let data_type = &schema.columns[column.index()].data_type;
                    format_value(&to_value(&heap, slot, data_type), data_type)
                }
                None => slot.as_i64().to_string(),
            }
        })
        .collect();
    texts.join(", ")
}
