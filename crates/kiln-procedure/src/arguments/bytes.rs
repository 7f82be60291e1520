//! Arguments as bytes, for logs: their number in 4 bytes, and each as
//! [`kiln_storage::types::bytes`] has it.

use kiln_storage::bytes::{Reader, append_string};
use kiln_storage::error::Result;
use kiln_storage::types::Value;
use kiln_storage::types::bytes::form;

use super::{Arguments, Kind};

impl Arguments {
    /// Appends the arguments. Those of the usual types are written from where they lie: what a call
    /// allocates for is only the growth of `target`.
    pub fn append_to(&self, target: &mut Vec<u8>) {
        target.extend_from_slice(&(self.len() as u32).to_le_bytes());
        for (position, (slot, kind)) in self.slots.iter().zip(&self.kinds).enumerate() {
            match kind {
                Kind::Null => target.push(form::NULL),
                _ if slot.is_null() => target.push(form::NULL),
                Kind::Boolean => target.push(match slot.as_bool() {
                    true => form::TRUE,
                    false => form::FALSE,
                }),
                Kind::Integer => append_word(target, form::BIGINT, slot.as_i64() as u64),
                Kind::Timestamp => append_word(target, form::TIMESTAMP, slot.as_i64() as u64),
                Kind::Double => append_word(target, form::DOUBLE, slot.as_f64().to_bits()),
                Kind::Decimal if slot.is_long() => self.value(position).append_to(target),
                Kind::Decimal => Value::Numeric(slot.as_decimal()).append_to(target),
                Kind::Text => {
                    target.push(form::TEXT);
                    append_string(target, self.heap.bytes(*slot));
                }
                Kind::IntegerArray => {
                    let elements = self.heap.array(*slot);
                    target.push(form::ARRAY);
                    target.extend_from_slice(&(elements.len() as u32).to_le_bytes());
                    for element in elements {
                        match element.is_null() {
                            true => target.push(form::NULL),
                            false => append_word(target, form::BIGINT, element.as_i64() as u64),
                        }
                    }
                }
                Kind::Bytea
                | Kind::Date
                | Kind::Time
                | Kind::Uuid
                | Kind::Interval
                | Kind::Object
                | Kind::Enum
                | Kind::Row
                | Kind::Array => {
                    self.value(position).append_to(target);
                }
            }
        }
    }

    /// Reads arguments that [`Arguments::append_to`] has appended; they may be bound as those were,
    /// or bound anew.
    ///
    /// # Errors
    /// XX001 for other bytes.
    pub fn read_from(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..reader.number(4)? {
            self.push(&Value::read_from(reader)?);
        }
        Ok(())
    }
}

#[inline]
fn append_word(target: &mut Vec<u8>, form: u8, word: u64) {
    target.push(form);
    target.extend_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use kiln_storage::types::{Decimal, Interval, Number};

    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_appended() {
        let integers = [Value::SmallInt(-2), Value::Null, Value::BigInt(1 << 40)];
        let texts = [Value::Text("a".to_owned()), Value::Null];
        let values = [
            Value::Null,
            Value::Boolean(true),
            Value::Boolean(false),
            Value::SmallInt(7),
            Value::BigInt(i64::MIN),
            Value::Numeric(Decimal::new(-12_345, 3).expect("it fits")),
            "1e40".parse::<Number>().expect("a number").into(),
            Number::NaN.into(),
            Value::Double(-0.0),
            Value::Double(f64::NAN),
            Value::Text(String::new()),
            Value::Text("früh".to_owned()),
            Value::Bytea(vec![0, 255]),
            Value::Date(-1),
            Value::Timestamp(1),
            Value::TimestampTz(2),
            Value::Time(3),
            Value::Uuid([9; 16]),
            Value::Interval(Interval::new(1, -2, 3)),
            Value::Array(integers.into()),
            Value::Array(Vec::new()),
            Value::Array(texts.into()),
        ];
        let arguments = Arguments::from_values(&values);
        let (mut bytes, mut read) = (Vec::new(), Arguments::new());
        arguments.append_to(&mut bytes);
        read.push_i64(1);
        let mut reader = Reader::new(&bytes);
        read.read_from(&mut reader).expect("they were appended");
        assert!(reader.rest().is_empty());
        assert!(read.is_same(&arguments), "{read:?}");
        // As values have them, of which integers are the widest and timestamps without time zone.
        let mut plain = (values.len() as u32).to_le_bytes().to_vec();
        (0..values.len()).for_each(|position| arguments.value(position).append_to(&mut plain));
        assert_eq!(bytes, plain);
        for length in 0..bytes.len() {
            let cut = read.read_from(&mut Reader::new(&bytes[..length]));
            assert!(cut.is_err(), "{length} of {} bytes", bytes.len());
        }
    }
}
