//! A call's arguments, in the form that the executor copies into its frame.

mod bytes;

use std::ptr::slice_from_raw_parts;

use kiln_platform::atomic::prefetch_plain;
use kiln_platform::plain;
use kiln_platform::sync::Arc;
use kiln_storage::deferral::{ConstraintModes, Surroundings};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::sequence::{Draws, SessionSequences};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::double::narrowed;
use kiln_storage::types::{
    CatalogType, DataType, Decimal, Number, ObjectName, Representation, RowValue, Style, Value,
    parse_value_in,
};

use crate::program::Program;
use crate::values::{push_value, to_value};

/// Bytes of the values, and of what lies beside them, that are asked for.
const FETCHED_BYTES: usize = 512;

/// What kind of value was pushed; decides which parameters take it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Integer,
    Decimal,
    Double,
    Text,
    Bytea,
    Date,
    Timestamp,
    Time,
    Uuid,
    Interval,
    Object,
    /// A row: as an enum's label.
    Row,
    /// A label of an enum: what slots have means something with the type alone.
    Enum,
    IntegerArray,
    /// An array of anything else: converted element by element.
    Array,
}

impl Kind {
    /// Whether the slot does not say all of such a value.
    fn is_kept_whole(self) -> bool {
        matches!(self, Kind::Array | Kind::Enum | Kind::Row)
    }

    fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Boolean(_) => Kind::Boolean,
            Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) => Kind::Integer,
            Value::Numeric(_) | Value::LongNumeric(_) => Kind::Decimal,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Bytea(_) => Kind::Bytea,
            Value::Date(_) => Kind::Date,
            Value::Timestamp(_) | Value::TimestampTz(_) => Kind::Timestamp,
            Value::Time(_) => Kind::Time,
            Value::Uuid(_) => Kind::Uuid,
            Value::Interval(_) => Kind::Interval,
            Value::Object(_) => Kind::Object,
            Value::Enum(_) => Kind::Enum,
            Value::Row(_) => Kind::Row,
            Value::Array(values) => match values.iter().all(|value| {
                matches!(
                    value,
                    Value::Null | Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_)
                )
            }) {
                true => Kind::IntegerArray,
                false => Kind::Array,
            },
        }
    }
}

/// The arguments of one call, reusable: [`Arguments::clear`] keeps the memory.
///
/// Integers of all widths are pushed as `i64`; whether they fit the parameter is checked when the
/// call is bound to a procedure.
#[derive(Clone, Default, Debug)]
pub struct Arguments {
    slots: Vec<Slot>,
    kinds: Vec<Kind>,
    heap: Heap,
    /// The values that are kept whole ([`Kind::is_kept_whole`]) with their positions, as they were pushed.
    whole: Vec<(usize, Value)>,
    draws: CallDraws,
    surroundings: Option<Arc<Surroundings>>,
}

/// What the call has drawn from sequences; see [`kiln_storage::sequence`].
#[derive(Clone, Default, Debug)]
struct CallDraws {
    /// There for a call that draws, from [`Arguments::bind`] on.
    made: Option<Arc<Draws>>,
    /// What its session knows.
    session: Option<Arc<SessionSequences>>,
    /// Whether a further binding is of the same call, and not of the next one with these arguments.
    is_kept: bool,
}

impl Arguments {
    /// No arguments.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// The arguments `values`.
    pub fn from_values(values: &[Value]) -> Arguments {
        let mut arguments = Arguments::new();
        values.iter().for_each(|value| arguments.push(value));
        arguments
    }

    /// Forgets all arguments.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.kinds.clear();
        self.heap.clear();
        self.whole.clear();
        self.draws = CallDraws::default();
        self.surroundings = None;
    }

    /// The call is a part of a larger transaction, in which deferrable constraints are checked so;
    /// what waits for its end is told ([`Frame::pending`](crate::Frame::pending)), unless a former
    /// call has said otherwise.
    pub fn defer_constraints(&mut self, modes: impl FnOnce() -> Arc<ConstraintModes>) {
        let known = self.surroundings.as_deref().cloned().unwrap_or_default();
        if known.constraint_modes.is_none() {
            self.surroundings = Some(Arc::new(Surroundings {
                constraint_modes: Some(modes()),
                ..known
            }));
        }
    }

    /// The session of the call writes texts so, as
    /// [`Style::bytes_of`](kiln_storage::types::Style::bytes_of) has it; none is the default.
    #[inline]
    pub fn set_style(&mut self, style: Option<&Arc<[u8]>>) {
        if let Some(style) = style {
            self.put_style(style);
        }
    }

    #[cold]
    fn put_style(&mut self, style: &Arc<[u8]>) {
        let known = self.surroundings.as_deref().cloned().unwrap_or_default();
        self.surroundings = Some(Arc::new(Surroundings {
            style: Some(style.clone()),
            ..known
        }));
    }

    /// Whether its session writes texts in another style than the default.
    pub fn style(&self) -> Option<&Arc<[u8]>> {
        self.surroundings.as_ref()?.style.as_ref()
    }

    /// An attempt begins: it is a part of what is said here.
    #[inline(always)]
    pub(crate) fn hand_surroundings(&self, target: &mut Option<Arc<Surroundings>>) {
        if self.surroundings.is_some() || target.is_some() {
            target.clone_from(&self.surroundings);
        }
    }

    /// The call is one of this session.
    pub fn set_session(&mut self, session: &Arc<SessionSequences>) {
        self.draws.session = Some(session.clone());
    }

    /// The call is one of a session, and will perhaps be made again, with these arguments or clones
    /// of them: then it is given the same values of sequences.
    pub fn keep_draws(&mut self, session: &Arc<SessionSequences>) {
        self.draws = CallDraws {
            made: Some(Arc::new(Draws::of(Some(session.clone())))),
            session: None,
            is_kept: true,
        };
    }

    /// Gives up what [`Arguments::keep_draws`] was asked for, if the call has asked no sequence.
    pub fn release_draws(&mut self) {
        if self.draws.made.as_ref().is_some_and(|it| it.is_unused()) {
            self.draws = CallDraws::default();
        }
    }

    /// An attempt begins: it draws from here.
    #[inline(always)]
    pub(crate) fn hand_draws(&self, target: &mut Option<Arc<Draws>>) {
        if self.draws.made.is_some() || target.is_some() {
            self.begin_drawing(target);
        }
    }

    #[cold]
    fn begin_drawing(&self, target: &mut Option<Arc<Draws>>) {
        target.clone_from(&self.draws.made);
        if let Some(draws) = target {
            draws.begin_attempt();
        }
    }

    /// The call draws.
    #[cold]
    fn prepare_draws(&mut self) {
        if !self.draws.is_kept {
            let draws = Draws::of(self.draws.session.clone());
            self.draws.made = Some(Arc::new(draws));
        }
    }

    /// Whether these are the arguments that `other` has, a NaN being the same as itself, and a
    /// number other than one with more zeros. It does not matter how they were pushed.
    pub fn is_same(&self, other: &Arguments) -> bool {
        let is_same = |position| is_same_value(&self.value(position), &other.value(position));
        self.kinds == other.kinds && (0..self.len()).all(is_same)
    }

    /// Becomes what `other` is.
    pub fn copy_from(&mut self, other: &Arguments) {
        self.clear();
        self.slots.extend_from_slice(&other.slots);
        self.kinds.extend_from_slice(&other.kinds);
        self.heap.append_image(&other.heap);
        self.whole.extend_from_slice(&other.whole);
        if other.draws.made.is_some() {
            self.draws.clone_from(&other.draws);
        }
        self.surroundings.clone_from(&other.surroundings);
    }

    /// The memory that they take, in bytes, roughly.
    pub fn bytes(&self) -> usize {
        let slots = size_of::<Slot>() + size_of::<Kind>();
        let mut arrays = Vec::new();
        for (_, array) in &self.whole {
            array.append_to(&mut arrays);
        }
        self.slots.len() * slots + self.heap.used_bytes() + arrays.len()
    }

    /// The number of arguments.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    #[inline]
    fn push_slot(&mut self, slot: Slot, kind: Kind) {
        self.slots.push(slot);
        self.kinds.push(kind);
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.push_slot(Slot::NULL, Kind::Null);
    }

    /// Appends a BOOLEAN.
    pub fn push_bool(&mut self, value: bool) {
        self.push_slot(Slot::from_bool(value), Kind::Boolean);
    }

    /// Appends an integer of any width.
    #[inline]
    pub fn push_i64(&mut self, value: i64) {
        self.push_slot(Slot::from_i64(value), Kind::Integer);
    }

    /// Appends a DOUBLE PRECISION.
    pub fn push_f64(&mut self, value: f64) {
        self.push_slot(Slot::from_f64(value), Kind::Double);
    }

    /// Appends a NUMERIC.
    #[inline]
    pub fn push_decimal(&mut self, value: Decimal) {
        self.push_slot(Slot::from_decimal(value), Kind::Decimal);
    }

    /// Appends a text.
    #[inline]
    pub fn push_text(&mut self, value: &str) {
        let slot = self.heap.push_str(value);
        self.push_slot(slot, Kind::Text);
    }

    /// Appends a TIMESTAMP or TIMESTAMPTZ in microseconds since 2000-01-01.
    pub fn push_timestamp(&mut self, microseconds: i64) {
        self.push_slot(Slot::from_i64(microseconds), Kind::Timestamp);
    }

    /// Appends an array of integers of any width.
    #[inline]
    pub fn push_i64_array(&mut self, values: &[i64]) {
        let slot = self.heap.push_integers(values);
        self.push_slot(slot, Kind::IntegerArray);
    }

    /// Appends any value.
    pub fn push(&mut self, value: &Value) {
        let slot = push_value(&mut self.heap, value);
        let kind = Kind::of(value);
        if kind.is_kept_whole() {
            self.whole.push((self.slots.len(), value.clone()));
        }
        self.push_slot(slot, kind);
    }

    /// Asks for the memory that other values will be kept in.
    #[inline]
    pub fn fetch_room(&self) {
        let slots = slice_from_raw_parts(self.slots.as_ptr(), self.slots.capacity());
        prefetch_plain(slots, FETCHED_BYTES);
        self.heap.fetch_room(FETCHED_BYTES);
    }

    /// Asks for the memory of the values, before it is used.
    #[inline]
    pub fn fetch(&self) {
        prefetch_plain(self.slots.as_slice(), FETCHED_BYTES);
        self.heap.fetch(FETCHED_BYTES);
    }

    /// Tells virtual cores that the calling thread reads the values, which another one may have
    /// written.
    #[inline(always)]
    pub fn note_reads(&self) {
        plain::reads(self.slots.as_slice());
        self.heap.note_reads();
    }

    /// As [`Arguments::note_reads`], of values that the thread has written and others will read.
    #[inline(always)]
    pub fn note_writes(&self) {
        plain::writes(self.slots.as_slice());
        self.heap.note_writes();
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Checks the arguments against `program`'s parameters, and converts those that need it
    /// (an integer for a NUMERIC parameter, a text for a DATE, …).
    ///
    /// # Errors
    /// 42883 for a wrong number of arguments, 42804 for a type that does not convert, 22003 and
    /// its like for values that do not fit.
    #[inline]
    pub fn bind(&mut self, program: &Program) -> Result<()> {
        if self.slots.len() != program.parameters.len() {
            return Err(self.wrong_count(program));
        }
        if program.analysis.draws() {
            self.prepare_draws();
        } else if !self.draws.is_kept {
            self.draws.made = None;
        }
        for position in 0..self.slots.len() {
            let data_type = &program.parameters[position].data_type;
            let slot = self.slots[position];
            let fits = match (self.kinds[position], data_type) {
                (Kind::Null, _) => true,
                (Kind::Integer, DataType::BigInt) => true,
                (Kind::Integer, DataType::Integer) => i32::try_from(slot.as_i64()).is_ok(),
                (Kind::Integer, DataType::SmallInt) => i16::try_from(slot.as_i64()).is_ok(),
                (Kind::IntegerArray, DataType::Array(element)) => self.array_fits(slot, element),
                // CHAR values are held without trailing blanks.
                (Kind::Text, DataType::Char(_)) => !self.heap.bytes(slot).ends_with(b" "),
                (Kind::Enum, DataType::Enum(_)) => self.is_label(position, data_type),
                (kind, DataType::Catalog(catalog)) => self.catalog_fits(slot, kind, *catalog),
                (kind, data_type) => {
                    matches!(
                        (kind, data_type),
                        (Kind::Boolean, DataType::Boolean)
                            | (Kind::Decimal, DataType::Numeric { .. })
                            | (Kind::Double, DataType::Double)
                            | (Kind::Text, DataType::Text | DataType::VarChar(_))
                            | (Kind::Bytea, DataType::Bytea)
                            | (Kind::Date, DataType::Date)
                            | (
                                Kind::Timestamp,
                                DataType::Timestamp(_) | DataType::TimestampTz(_)
                            )
                            | (Kind::Uuid, DataType::Uuid)
                            | (Kind::Time, DataType::Time(_))
                            | (Kind::Interval, DataType::Interval(_))
                    )
                }
            };
            if !fits {
                self.convert(program, position)?;
            }
        }
        Ok(())
    }

    /// Whether a value is a label of this type.
    fn is_label(&self, position: usize, data_type: &DataType) -> bool {
        match (self.value(position), data_type) {
            (Value::Enum(value), DataType::Enum(of)) => {
                value.of == *of && of.label(value.number).is_some()
            }
            _ => false,
        }
    }

    fn array_fits(&self, slot: Slot, element: &DataType) -> bool {
        let values = self.heap.array(slot).iter().filter(|slot| !slot.is_null());
        let mut values = values.map(|slot| slot.as_i64());
        match element {
            DataType::BigInt => true,
            DataType::Integer => values.all(|value| i32::try_from(value).is_ok()),
            DataType::SmallInt => values.all(|value| i16::try_from(value).is_ok()),
            DataType::Catalog(catalog) if catalog.representation() == Representation::Number => {
                values.all(|value| u32::try_from(value).is_ok())
            }
            _ => false,
        }
    }

    /// Whether a value of the catalogs' types is as it must be.
    fn catalog_fits(&self, slot: Slot, kind: Kind, catalog: CatalogType) -> bool {
        match (kind, catalog.representation()) {
            (Kind::Integer, Representation::Number) => u32::try_from(slot.as_i64()).is_ok(),
            // A text that was read already is read once more: it may be one that was pushed as a
            // text.
            (Kind::Text, Representation::Text) if catalog.is_json() => false,
            (Kind::Text, Representation::Text) => {
                let text = self.heap.str(slot);
                catalog.fit(text).len() == text.len()
            }
            (Kind::Double, Representation::Double) => {
                let number = slot.as_f64();
                f64::from(number as f32).to_bits() == number.to_bits()
            }
            (Kind::Object, Representation::Object) => true,
            (Kind::IntegerArray, Representation::Vector) => {
                let element = catalog.element();
                element.is_some_and(|element| self.array_fits(slot, &element))
            }
            _ => false,
        }
    }

    #[cold]
    fn wrong_count(&self, program: &Program) -> Error {
        let parameters: Vec<String> = program
            .parameters
            .iter()
            .map(|parameter| format!("{} {}", parameter.name, parameter.data_type))
            .collect();
        Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!(
                "procedure {} takes {} arguments, but {} were given",
                program.name,
                program.parameters.len(),
                self.slots.len()
            ),
        )
        .with_hint(format!(
            "Its parameters are ({}).",
            parameters.join(", ").replace("  ", " ")
        ))
    }

    /// The value at `position`, with the type that it was pushed with, or bound to since: of
    /// integers the widest, of timestamps the one without time zone.
    pub fn value(&self, position: usize) -> Value {
        let data_type = match self.kinds[position] {
            Kind::Null => return Value::Null,
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::BigInt,
            Kind::Decimal => DataType::NUMERIC,
            Kind::Double => DataType::Double,
            Kind::Text => DataType::Text,
            Kind::Bytea => DataType::Bytea,
            Kind::Date => DataType::Date,
            Kind::Timestamp => DataType::TIMESTAMP,
            Kind::Time => DataType::TIME,
            Kind::Uuid => DataType::Uuid,
            Kind::Interval => DataType::INTERVAL,
            Kind::Object => DataType::Catalog(CatalogType::RegClass),
            Kind::IntegerArray => DataType::array(DataType::BigInt),
            Kind::Array | Kind::Enum | Kind::Row => {
                let array = self
                    .whole
                    .iter()
                    .find(|(pushed_at, _)| *pushed_at == position);
                return array.map_or(Value::Null, |(_, value)| value.clone());
            }
        };
        to_value(&self.heap, self.slots[position], &data_type)
    }

    #[cold]
    fn convert(&mut self, program: &Program, position: usize) -> Result<()> {
        let parameter = &program.parameters[position];
        let value = self.value(position);
        let style = self.style().cloned();
        let style = Style::read(style.as_deref().unwrap_or_default());
        let converted = convert_in(value, &parameter.data_type, &style).map_err(|error| {
            let (number, name) = (position + 1, &parameter.name);
            error.with_detail(format!(
                "This is argument {number} ({name}) of {}.",
                program.name
            ))
        })?;
        self.slots[position] = push_value(&mut self.heap, &converted);
        // A later binding starts from what is there now.
        self.kinds[position] = Kind::of(&converted);
        self.whole.retain(|(pushed_at, _)| *pushed_at != position);
        if self.kinds[position].is_kept_whole() {
            self.whole.push((position, converted));
        }
        Ok(())
    }
}

/// Converts a value to a type as PostgreSQL does for arguments: without loss, and texts by
/// reading them. A length, or a precision and scale, is not enforced.
///
/// # Errors
/// 42804 for a type that does not convert, 22003 and its like for values that do not fit.
pub fn convert(value: Value, data_type: &DataType) -> Result<Value> {
    convert_in(value, data_type, &Style::default())
}

/// [`convert`] in a session's style.
///
/// # Errors
/// As there.
pub fn convert_in(value: Value, data_type: &DataType, style: &Style<'_>) -> Result<Value> {
    let integer = match value {
        Value::SmallInt(value) => Some(value as i64),
        Value::Integer(value) => Some(value as i64),
        Value::BigInt(value) => Some(value),
        _ => None,
    };
    let out_of_range = || {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{data_type} out of range"),
        )
    };
    Ok(match (data_type, &value) {
        (_, Value::Null) => Value::Null,
        (DataType::SmallInt, _) if integer.is_some() => {
            let value = integer.and_then(|value| i16::try_from(value).ok());
            Value::SmallInt(value.ok_or_else(out_of_range)?)
        }
        (DataType::Integer, _) if integer.is_some() => {
            let value = integer.and_then(|value| i32::try_from(value).ok());
            Value::Integer(value.ok_or_else(out_of_range)?)
        }
        (DataType::BigInt, _) if let Some(value) = integer => Value::BigInt(value),
        (DataType::Numeric { .. }, _) if let Some(value) = integer => {
            Value::Numeric(Decimal::from_i64(value))
        }
        (DataType::Double, _) if let Some(value) = integer => Value::Double(value as f64),
        (DataType::Double, Value::Numeric(value)) => Value::Double(value.to_f64()),
        (DataType::Double, Value::LongNumeric(value)) => Value::Double(value.to_f64()?),
        (DataType::Numeric { .. }, Value::Double(value)) => Number::from_f64(*value)?.into(),
        (DataType::Timestamp(_), Value::Timestamp(at)) => Value::Timestamp(*at),
        (DataType::Timestamp(_), Value::TimestampTz(at)) => {
            Value::Timestamp(style.zone.to_shown(*at)?)
        }
        (DataType::TimestampTz(_), Value::TimestampTz(at)) => Value::TimestampTz(*at),
        (DataType::TimestampTz(_), Value::Timestamp(at)) => {
            Value::TimestampTz(style.zone.to_moment(*at)?)
        }
        (DataType::Timestamp(_), Value::Date(days)) => {
            Value::Timestamp(*days as i64 * 86_400_000_000)
        }
        (DataType::TimestampTz(_), Value::Date(days)) => {
            Value::TimestampTz(style.zone.to_moment(*days as i64 * 86_400_000_000)?)
        }
        // CHAR values are held without trailing blanks.
        (DataType::Char(_), Value::Text(text)) => {
            Value::Text(text.trim_end_matches(' ').to_owned())
        }
        (DataType::Text | DataType::VarChar(_), Value::Text(_)) => value,
        // What a transaction block has made before may have another number now.
        (DataType::Enum(of), Value::Enum(known)) if *of != known.of => {
            kiln_storage::types::parse_value(data_type, known.label())?
        }
        (data_type, Value::Enum(label)) if data_type.is_string() => {
            convert_in(Value::Text(label.label().to_owned()), data_type, style)?
        }
        (_, Value::Text(text)) => parse_value_in(data_type, text, style)?,
        (DataType::Catalog(catalog), _) if let Some(value) = to_catalog(&value, *catalog)? => value,
        (DataType::Row(of), Value::Row(row)) if of.fields().len() == row.fields.len() => {
            let pairs = row.fields.iter().zip(of.fields());
            let fields =
                pairs.map(|(value, field)| convert_in(value.clone(), &field.data_type, style));
            RowValue::value(of, fields.collect::<Result<_>>()?)
        }
        (DataType::Array(element), Value::Array(values)) => {
            let values = values
                .iter()
                .map(|value| convert_in(value.clone(), element, style));
            Value::Array(values.collect::<Result<_>>()?)
        }
        _ if value.data_type().as_ref() == Some(data_type) => value,
        _ => {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "a value of type {} does not convert to {data_type}",
                    value.type_name()
                ),
            ));
        }
    })
}

/// The value as one of a type of the catalogs; `None` where it does not convert.
fn to_catalog(value: &Value, catalog: CatalogType) -> Result<Option<Value>> {
    let number = match *value {
        Value::SmallInt(value) => Some(i64::from(value)),
        Value::Integer(value) => Some(i64::from(value)),
        Value::BigInt(value) => Some(value),
        _ => None,
    };
    Ok(match (catalog.representation(), value) {
        (Representation::Number | Representation::Object, _) if let Some(number) = number => {
            let oid = u32::try_from(number).map_err(|_| {
                let message = format!("{} out of range", catalog.name());
                Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            })?;
            Some(match catalog.representation() {
                Representation::Number => Value::BigInt(oid.into()),
                _ => Value::Object(Box::new(ObjectName {
                    oid,
                    name: oid.to_string(),
                })),
            })
        }
        (Representation::Object, Value::Object(_)) => Some(value.clone()),
        (Representation::Number, Value::Object(object)) => Some(Value::BigInt(object.oid.into())),
        (Representation::Double, _) if let Some(number) = number => Some(real(number as f64)?),
        (Representation::Double, Value::Double(number)) => Some(real(*number)?),
        (Representation::Double, Value::Numeric(number)) => Some(real(number.to_f64())?),
        (Representation::Double, Value::LongNumeric(number)) => Some(real(number.to_f64()?)?),
        (Representation::Vector, Value::Array(_)) => {
            let element = catalog.element().unwrap_or(DataType::SmallInt);
            Some(convert(value.clone(), &DataType::array(element))?)
        }
        _ => None,
    })
}

/// The REAL that is nearest.
fn real(number: f64) -> Result<Value> {
    Ok(Value::Double(narrowed(number)?))
}

/// Whether two values are the same in all that a procedure could tell them apart by.
fn is_same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Numeric(a), Value::Numeric(b)) => {
            (a.mantissa(), a.scale()) == (b.mantissa(), b.scale())
        }
        (Value::LongNumeric(a), Value::LongNumeric(b)) => a == b && a.scale() == b.scale(),
        (Value::Interval(a), Value::Interval(b)) => {
            (a.months, a.days, a.microseconds) == (b.months, b.days, b.microseconds)
        }
        (Value::Row(a), Value::Row(b)) if a.of == b.of => {
            let mut pairs = a.fields.iter().zip(&b.fields);
            pairs.all(|(a, b)| is_same_value(a, b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(a, b))
        }
        _ => a == b,
    }
}
