//! Sequences: the functions that draw from them, and what the catalogs show of them.

use kiln_engine::{CurrentCatalog, Object};
use kiln_platform::sync::Arc;
use kiln_procedure::outside::{OutsideFunction, OutsideRows};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{name_in_schema, schema_of};
use kiln_storage::sequence::{Draws, Sequence, SequenceDefinition};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, ObjectName, Value};

use super::outside::gone;
use super::snapshot::{ObjectOf, type_oid};
use super::values::{Row, bigint, boolean, oid, text};
use super::{Snapshot, names};
use crate::compile::CatalogView;

/// A function of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceCall {
    /// `nextval(regclass)`.
    Next,
    /// `currval(regclass)`.
    Current,
    /// `lastval()`.
    Last,
    /// `setval(regclass, bigint)`.
    Set,
    /// `setval(regclass, bigint, boolean)`.
    SetCalled,
}

/// A function of sequences as a program calls it.
pub(crate) struct SequenceFunction {
    pub call: SequenceCall,
    /// The sequence, where it is known; else the first argument names it.
    pub sequence: Option<Arc<Sequence>>,
    pub catalog: Arc<CurrentCatalog>,
}

impl std::fmt::Debug for SequenceFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.sequence.as_ref().map(|sequence| sequence.name());
        f.debug_tuple("SequenceFunction")
            .field(&self.call)
            .field(&name)
            .finish()
    }
}

impl SequenceFunction {
    fn apply(&self, sequence: &Sequence, draws: &Draws, rest: &[Slot]) -> Result<i64> {
        match (self.call, rest) {
            (SequenceCall::Next, _) => draws.next(sequence),
            (SequenceCall::Current, _) => draws.current(sequence),
            (SequenceCall::Set, [value]) => {
                draws.set(sequence, value.as_i64(), true)?;
                Ok(value.as_i64())
            }
            (SequenceCall::SetCalled, [value, is_called]) => {
                draws.set(sequence, value.as_i64(), is_called.as_bool())?;
                Ok(value.as_i64())
            }
            _ => Err(Error::internal("a function of sequences lacks arguments")),
        }
    }

    /// The sequence that a value names.
    fn find(&self, object: &ObjectName) -> Result<Arc<Sequence>> {
        let catalog = self.catalog.get().ok_or_else(gone)?;
        let snapshot = Snapshot::of(&catalog);
        let named;
        let object = match object.oid {
            0 if object.name != "-" => {
                named = snapshot.object_named(CatalogType::RegClass, &object.name)?;
                &named
            }
            _ => object,
        };
        match snapshot.object(object.oid) {
            Some(ObjectOf::Sequence(entry)) => Ok(entry.sequence.clone()),
            Some(ObjectOf::Table(_) | ObjectOf::Index(..)) => {
                let message = format!("\"{}\" is not a sequence", object.name);
                Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            _ if Snapshot::system_relation(object.oid).is_some() => {
                let message = format!("\"{}\" is not a sequence", object.name);
                Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            _ => {
                let message = format!("could not open relation with OID {}", object.oid);
                Err(Error::new(SqlState::UNDEFINED_TABLE, message))
            }
        }
    }

    fn last(&self, draws: &Draws) -> Result<i64> {
        let catalog = self.catalog.get().ok_or_else(gone)?;
        draws.last(|origin| catalog.sequences().any(|it| it.was_drawn_as(origin)))
    }
}

impl OutsideFunction for SequenceFunction {
    fn name(&self) -> &str {
        match self.call {
            SequenceCall::Next => "nextval",
            SequenceCall::Current => "currval",
            SequenceCall::Last => "lastval",
            SequenceCall::Set | SequenceCall::SetCalled => "setval",
        }
    }

    fn call(&self, heap: &mut Heap, draws: Option<&Draws>, arguments: &[Slot]) -> Result<Slot> {
        if arguments.iter().any(|argument| argument.is_null()) {
            return Ok(Slot::NULL);
        }
        let own = Draws::default();
        let draws = draws.unwrap_or(&own);
        let value = match (&self.sequence, arguments) {
            _ if self.call == SequenceCall::Last => self.last(draws)?,
            (Some(sequence), rest) => self.apply(sequence, draws, rest)?,
            (None, [object, rest @ ..]) => {
                let object = ObjectName::from_bytes(heap.bytes(*object));
                let sequence = self.find(&object)?;
                self.apply(&sequence, draws, rest)?
            }
            (None, []) => return Err(Error::internal("a sequence is not named")),
        };
        Ok(Slot::from_i64(value))
    }

    fn draws(&self) -> bool {
        true
    }

    fn result_argument(&self) -> Option<usize> {
        let is_set = matches!(self.call, SequenceCall::Set | SequenceCall::SetCalled);
        is_set.then_some(usize::from(self.sequence.is_none()))
    }

    fn advances(&self) -> bool {
        !matches!(self.call, SequenceCall::Current | SequenceCall::Last)
    }
}

/// A sequence as a relation: its one row.
#[derive(Debug)]
pub(crate) struct SequenceRow(pub Arc<Sequence>);

impl OutsideRows for SequenceRow {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn width(&self) -> usize {
        3
    }

    fn append_to(&self, _: &mut Heap, _: &[Slot], rows: &mut Vec<Slot>) {
        let (last, left, is_called) = self.0.shown();
        rows.extend([
            Slot::from_i64(last),
            Slot::from_i64(left as i64),
            Slot::from_bool(is_called),
        ]);
    }
}

/// The qualified name of the relation that a text means, as REGCLASS reads it along the path of
/// `catalog`.
///
/// # Errors
/// 42602; 42P01 for one of another database.
pub(crate) fn qualified_name(text: &str, catalog: &dyn CatalogView) -> Result<String> {
    names::relation_of(text, catalog)
}

/// The qualified name of the relation that a text in an expression means which the catalog keeps.
///
/// # Errors
/// As [`qualified_name`].
pub(crate) fn stored_name(text: &str) -> Result<String> {
    names::stored_relation(text)
}

/// `pg_sequence`.
pub(super) fn pg_sequence(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot.sequences.iter().map(|entry| {
        let SequenceDefinition {
            data_type,
            start,
            increment,
            min,
            max,
            cache,
            cycle,
            ..
        } = entry.sequence.definition();
        vec![
            oid(entry.oid),
            oid(type_oid(data_type)),
            bigint(*start),
            bigint(*increment),
            bigint(*max),
            bigint(*min),
            bigint(*cache),
            boolean(*cycle),
        ]
    });
    rows.collect()
}

/// `pg_sequences`.
pub(super) fn pg_sequences(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot.sequences.iter().map(|entry| {
        let definition = entry.sequence.definition();
        let kind = snapshot.object_name(CatalogType::RegType, type_oid(&definition.data_type));
        let (last, _, is_called) = entry.sequence.shown();
        vec![
            text(schema_of(&definition.name)),
            text(name_in_schema(&definition.name)),
            text(snapshot.owner(&Object::sequence(&definition.name))),
            Value::Object(Box::new(kind)),
            bigint(definition.start),
            bigint(definition.min),
            bigint(definition.max),
            bigint(definition.increment),
            boolean(definition.cycle),
            bigint(definition.cache),
            if is_called { bigint(last) } else { Value::Null },
        ]
    });
    rows.collect()
}
