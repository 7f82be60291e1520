//! Sequences as text.

use std::fmt;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::sequence::{
    Identity, Sequence, SequenceDefinition, SequenceId, SequenceOwner, SequenceState,
};

use crate::catalog::text_form::{Counted, Reader};

/// A sequence that was written down.
#[derive(Clone, Debug)]
pub(crate) struct WrittenSequence {
    pub id: SequenceId,
    /// See [`Sequence::origin`].
    pub origin: SequenceId,
    pub definition: SequenceDefinition,
    /// How far it has got; all values that were given are up to there.
    pub state: SequenceState,
}

impl WrittenSequence {
    pub fn of(sequence: &Sequence) -> WrittenSequence {
        WrittenSequence {
            id: sequence.id(),
            origin: sequence.origin(),
            definition: sequence.definition().clone(),
            state: sequence.kept(),
        }
    }

    /// Reads what [`Display`](fmt::Display) writes, after its first word.
    ///
    /// # Errors
    /// XX001.
    pub fn read(reader: &mut Reader<'_>) -> Result<WrittenSequence> {
        let id = SequenceId(reader.number()?);
        reader.expect("from")?;
        let origin = SequenceId(reader.number()?);
        let name = reader.qualified()?;
        let data_type = reader.counted()?.parse();
        let data_type = data_type.map_err(|()| reader.damaged("a known type before it"))?;
        reader.expect("start")?;
        let start = reader.number()?;
        reader.expect("increment")?;
        let increment = reader.number()?;
        reader.expect("values")?;
        let (min, max) = (reader.number()?, reader.number()?);
        reader.expect("cache")?;
        let cache = reader.number()?;
        let cycle = reader.takes("cycle");
        let owner = match reader.takes("owned-by") {
            true => Some(read_owner(reader)?),
            false => None,
        };
        reader.expect("state")?;
        let (version, value) = (reader.number()?, reader.number()?);
        let is_called = reader.takes("called");
        Ok(WrittenSequence {
            id,
            origin,
            definition: SequenceDefinition {
                name,
                data_type,
                start,
                increment,
                min,
                max,
                cache,
                cycle,
                owner,
            },
            state: SequenceState {
                version,
                value,
                is_called,
            },
        })
    }
}

fn read_owner(reader: &mut Reader<'_>) -> Result<SequenceOwner> {
    let (table, column) = (reader.qualified()?, reader.counted()?.to_owned());
    let identity = match (reader.takes("identity-always"), reader.takes("identity")) {
        (true, _) => Some(Identity::Always),
        (false, true) => Some(Identity::ByDefault),
        (false, false) => None,
    };
    Ok(SequenceOwner {
        table,
        column,
        identity,
    })
}

impl fmt::Display for WrittenSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrittenSequence {
            id,
            origin,
            definition,
            state,
        } = self;
        // Without `..`: what is added to a definition has to be written, too.
        let SequenceDefinition {
            name,
            data_type,
            start,
            increment,
            min,
            max,
            cache,
            cycle,
            owner,
        } = definition;
        let data_type = data_type.to_string();
        let (name, data_type) = (Counted(name), Counted(&data_type));
        writeln!(f, "sequence {} from {} {name} {data_type}", id.0, origin.0)?;
        write!(
            f,
            "  start {start} increment {increment} values {min} {max} cache {cache}"
        )?;
        writeln!(f, "{}", if *cycle { " cycle" } else { "" })?;
        if let Some(SequenceOwner {
            table,
            column,
            identity,
        }) = owner
        {
            let identity = match identity {
                None => "",
                Some(Identity::Always) => " identity-always",
                Some(Identity::ByDefault) => " identity",
            };
            writeln!(
                f,
                "  owned-by {} {}{identity}",
                Counted(table),
                Counted(column)
            )?;
        }
        let SequenceState {
            version,
            value,
            is_called,
        } = state;
        let called = if *is_called { " called" } else { "" };
        writeln!(f, "  state {version} {value}{called}")
    }
}

/// Refuses a state that the sequence cannot have.
pub(crate) fn check_state(definition: &SequenceDefinition, state: &SequenceState) -> Result<()> {
    let SequenceDefinition {
        name,
        increment,
        min,
        max,
        start,
        cache,
        ..
    } = definition;
    let is_within = |value: i64| (*min..=*max).contains(&value);
    let is_possible =
        *increment != 0 && *cache > 0 && min < max && is_within(*start) && is_within(state.value);
    match is_possible {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::DATA_CORRUPTED,
            format!("sequence \"{name}\" cannot be as the written catalog has it"),
        )),
    }
}
