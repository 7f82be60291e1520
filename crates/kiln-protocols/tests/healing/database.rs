//! The rows, and what came of a call.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_protocols::{Common, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::slot::Heap;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

pub(super) const ID: ColumnId = ColumnId(0);
pub(super) const CODE: ColumnId = ColumnId(1);
pub(super) const LEFT: ColumnId = ColumnId(2);
pub(super) const RIGHT: ColumnId = ColumnId(3);
pub(super) const NOTE: ColumnId = ColumnId(4);

pub(super) const BY_ID: u16 = 0;
pub(super) const BY_CODE: u16 = 1;
pub(super) const BY_LEFT: u16 = 2;
pub(super) const BY_ID_HASHED: u16 = 3;

/// Rows are keyed by numbers below this.
pub(super) const KEYS: usize = 6;

fn table(number: u32) -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: name != "note",
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: format!("item{number}"),
        columns: vec![
            column("id", DataType::Integer),
            column("code", DataType::Integer),
            column("left", DataType::BigInt),
            column("right", DataType::BigInt),
            column("note", DataType::Text),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let index = |name: &str, columns, unique, kind| IndexDefinition {
        name: name.to_owned(),
        columns,
        unique,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind,
    };
    let ordered = IndexKind::Ordered {
        partition_columns: 0,
    };
    let indexes = vec![
        index("item_code", vec![CODE], true, ordered),
        index("item_left", vec![LEFT], false, ordered),
        index("item_hash", vec![ID], true, IndexKind::Hash),
    ];
    Arc::new(Table::new(TableId(number), schema, 0, indexes).expect("a table like others"))
}

/// One of the two databases: a table that programs look into, and one that they only insert into.
pub(super) struct Database {
    pub(super) items: Arc<Table>,
    pub(super) log: Arc<Table>,
    pub(super) epochs: Epochs,
    pub(super) worker: Worker,
}

impl Database {
    pub(super) fn new(protocol: Protocol) -> Database {
        let epochs = Epochs::new(WORKERS_MAX);
        let participant = epochs.register().expect("a slot is free");
        let common = Arc::new(Common::new(protocol));
        Database {
            items: table(1),
            log: table(2),
            worker: Worker::new(&common, participant, Random::from_seed(1)),
            epochs,
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        for table in [&self.items, &self.log] {
            let mut heap = Heap::new();
            let start = rows.len();
            table.indexes()[0].for_each(|record| {
                let columns = table.schema().columns.iter().zip(0..);
                let values = columns.map(|(column, position)| {
                    let slot = table.column_value(ColumnId(position), table.row(record), &mut heap);
                    kiln_procedure::frame::to_value(&heap, slot, &column.data_type)
                });
                rows.push(values.collect());
            });
            rows[start..].sort_by_key(|row: &Vec<Value>| match row[0] {
                Value::Integer(id) => id,
                _ => unreachable!("ids are integers"),
            });
        }
        rows
    }
}

/// What came of a call: the rows emitted, or the error.
pub(super) type Effect = Result<Vec<Vec<Value>>, (SqlState, String)>;

pub(super) fn effect_of(worker: &Worker, program: &Program, outcome: Outcome) -> Effect {
    match outcome {
        Outcome::Committed => Ok(worker.frame().result_values(program)),
        Outcome::Rejected(error) => Err((error.state(), error.to_string())),
        Outcome::Expired => unreachable!("there is no deadline"),
    }
}
