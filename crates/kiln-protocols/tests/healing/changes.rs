//! What others change meanwhile.

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::Protocol;
use kiln_protocols::shared::optimistic::record_lock::EXCLUSIVE;
use kiln_storage::slot::Heap;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::database::*;

/// The changes that others make meanwhile, and what brings rows back.
struct Changes {
    change: Vec<Arc<Program>>,
    refill: Arc<Program>,
}

impl Changes {
    fn new(database: &Database) -> Changes {
        let parameters = || {
            [
                ("id".to_owned(), DataType::Integer),
                ("v".to_owned(), DataType::BigInt),
                ("c".to_owned(), DataType::Integer),
            ]
        };
        let by_key = |kind: usize| {
            let mut b = ProgramBuilder::new(&format!("change{kind}"), parameters());
            let (items, log) = (b.table(&database.items), b.table(&database.log));
            let table = if kind == 5 { log } else { items };
            let (id, value, code) = (b.parameter(0), b.parameter(1), b.parameter(2));
            let (item, found) = b.lookup(table, BY_ID, &[id], None);
            b.open();
            match kind {
                0 => b.update(items, item, &[(LEFT, value)], None),
                1 => b.update(items, item, &[(RIGHT, value)], None),
                2 => {
                    let note = b.constant(DataType::Text, Value::Text("long ".repeat(30)));
                    b.update(items, item, &[(NOTE, note)], None);
                }
                3 => b.update(items, item, &[(CODE, code)], None),
                _ => b.delete(table, item, None),
            }
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
            Arc::new(b.finish())
        };
        let mut b = ProgramBuilder::new("refill", parameters());
        let items = b.table(&database.items);
        let null = b.register(DataType::Text);
        b.scalar(Instruction::SetNull { target: null });
        let row = [
            b.parameter(0),
            b.parameter(2),
            b.parameter(1),
            b.parameter(1),
            null,
        ];
        let inserted = b.register(DataType::Boolean);
        let conflict = Conflict {
            index: None,
            inserted,
        };
        b.insert(items, &row, Some(conflict), None);
        Changes {
            change: (0..6).map(by_key).collect(),
            refill: Arc::new(b.finish()),
        }
    }
}

/// The change that gives a row another unique key.
const TAKES_CODE: usize = 3;

/// Both databases, and the changes that other transactions make in them.
pub(super) struct Others {
    pub(super) healed: Database,
    pub(super) fresh: Database,
    changes: [Changes; 2],
    /// Changes that were made.
    pub(super) made: u64,
    /// Changes that were not made, because the attempt that is open had what they take.
    pub(super) given_up: u64,
}

impl Others {
    pub(super) fn new() -> Others {
        let (healed, fresh) = (
            Database::new(Protocol::Healing),
            Database::new(Protocol::Serial),
        );
        Others {
            changes: [Changes::new(&healed), Changes::new(&fresh)],
            healed,
            fresh,
            made: 0,
            given_up: 0,
        }
    }

    /// Brings a row back.
    pub(super) fn refill(&mut self, random: &mut Random) {
        let values = Others::values(random);
        self.make(&values, None);
    }

    /// Makes some change. While the open attempt holds locks, which `has_locks` says, only one that
    /// need not wait for these: there is but one thread.
    pub(super) fn change(&mut self, random: &mut Random, has_locks: bool) {
        let which = random.below(self.changes[0].change.len() + 1);
        let which = (which < self.changes[0].change.len()).then_some(which);
        let values = Others::values(random);
        let may_wait = match which {
            None | Some(TAKES_CODE) => self.is_locked(None),
            Some(_) => self.is_locked(Some(&values[0])),
        };
        match has_locks && may_wait {
            true => self.given_up += 1,
            false => self.make(&values, which),
        }
    }

    fn values(random: &mut Random) -> [Value; 3] {
        [
            Value::Integer(random.below(KEYS) as i32),
            Value::BigInt(random.between(-3, 9)),
            Value::Integer(random.below(KEYS) as i32),
        ]
    }

    /// Whether a transaction holds the lock of a row with this id, or of any.
    fn is_locked(&self, id: Option<&Value>) -> bool {
        let has_locked = |table: &Table| {
            let mut is_locked = false;
            let mut heap = Heap::new();
            table.indexes()[0].for_each(|record| {
                let slot = table.column_value(ID, table.row(record), &mut heap);
                let its = kiln_procedure::frame::to_value(&heap, slot, &DataType::Integer);
                let is_meant = id.is_none_or(|id| *id == its);
                // Relaxed: there is but one thread.
                is_locked |= is_meant && record.aux().load(Ordering::Relaxed) & EXCLUSIVE != 0;
            });
            is_locked
        };
        has_locked(&self.healed.items) || has_locked(&self.healed.log)
    }

    /// Makes the same change in both databases, unless the attempt that is open has what it takes:
    /// a key that it means to insert, or an entry that it moves.
    fn make(&mut self, values: &[Value; 3], which: Option<usize>) {
        let mut effects = Vec::new();
        let databases = [&mut self.healed, &mut self.fresh];
        for (database, changes) in databases.into_iter().zip(&self.changes) {
            let program = which.map_or(&changes.refill, |which| &changes.change[which]);
            let mut arguments = Arguments::from_values(values);
            arguments.bind(program).expect("the arguments suit it");
            let outcome = database
                .worker
                .try_call(program, &arguments, None, Some(0), None);
            let Some(outcome) = outcome else {
                assert!(effects.is_empty(), "the serial one has no competitor");
                self.given_up += 1;
                return;
            };
            effects.push(effect_of(&database.worker, program, outcome));
        }
        assert_eq!(effects[0], effects[1]);
        self.made += 1;
    }
}
