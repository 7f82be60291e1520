//! Where a generator puts the arguments of a call.

use kiln_procedure::Arguments;
use kiln_storage::types::{Decimal, Value};

/// Takes the arguments of one call, in the order of the procedure's parameters.
///
/// The engine's [`Arguments`] implement it without allocating; [`ArgumentValues`] do so with owned
/// values, for tests and for rendering calls as text.
pub trait ArgumentSink {
    /// Forgets the arguments of the previous call.
    fn clear(&mut self);
    /// Appends NULL.
    fn push_null(&mut self);
    /// Appends a BOOLEAN.
    fn push_bool(&mut self, value: bool);
    /// Appends an integer of any width; the parameter's type decides which.
    fn push_i64(&mut self, value: i64);
    /// Appends a DOUBLE PRECISION.
    fn push_f64(&mut self, value: f64);
    /// Appends a NUMERIC.
    fn push_decimal(&mut self, value: Decimal);
    /// Appends a CHAR, VARCHAR or TEXT.
    fn push_text(&mut self, value: &str);
    /// Appends a TIMESTAMP in microseconds since 2000-01-01 00:00.
    fn push_timestamp(&mut self, value: i64);
    /// Appends an array of integers of any width.
    fn push_i64_array(&mut self, values: &[i64]);
}

impl ArgumentSink for Arguments {
    #[inline]
    fn clear(&mut self) {
        Arguments::clear(self);
    }

    #[inline]
    fn push_null(&mut self) {
        Arguments::push_null(self);
    }

    #[inline]
    fn push_bool(&mut self, value: bool) {
        Arguments::push_bool(self, value);
    }

    #[inline]
    fn push_i64(&mut self, value: i64) {
        Arguments::push_i64(self, value);
    }

    #[inline]
    fn push_f64(&mut self, value: f64) {
        Arguments::push_f64(self, value);
    }

    #[inline]
    fn push_decimal(&mut self, value: Decimal) {
        Arguments::push_decimal(self, value);
    }

    #[inline]
    fn push_text(&mut self, value: &str) {
        Arguments::push_text(self, value);
    }

    #[inline]
    fn push_timestamp(&mut self, value: i64) {
        Arguments::push_timestamp(self, value);
    }

    #[inline]
    fn push_i64_array(&mut self, values: &[i64]) {
        Arguments::push_i64_array(self, values);
    }
}

/// Arguments as owned values. Integers are BIGINT values whatever the parameter's type is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentValues(Vec<Value>);

impl ArgumentValues {
    /// The arguments of the last call.
    pub fn values(&self) -> &[Value] {
        &self.0
    }
}

impl ArgumentSink for ArgumentValues {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn push_null(&mut self) {
        self.0.push(Value::Null);
    }

    fn push_bool(&mut self, value: bool) {
        self.0.push(Value::Boolean(value));
    }

    fn push_i64(&mut self, value: i64) {
        self.0.push(Value::BigInt(value));
    }

    fn push_f64(&mut self, value: f64) {
        self.0.push(Value::Double(value));
    }

    fn push_decimal(&mut self, value: Decimal) {
        self.0.push(Value::Numeric(value));
    }

    fn push_text(&mut self, value: &str) {
        self.0.push(Value::Text(value.to_owned()));
    }

    fn push_timestamp(&mut self, value: i64) {
        self.0.push(Value::Timestamp(value));
    }

    fn push_i64_array(&mut self, values: &[i64]) {
        let elements = values.iter().map(|value| Value::BigInt(*value));
        self.0.push(Value::Array(elements.collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    #[test]
    fn both_sinks_get_the_same_arguments() {
        for workload in Workload::all() {
            let mut left = workload.terminals(1, 1).remove(0);
            let mut right = workload.terminals(1, 1).remove(0);
            let (mut values, mut arguments) = (ArgumentValues::default(), Arguments::new());
            for _ in 0..200 {
                let call = left.next(&mut values);
                assert_eq!(call.procedure, right.next(&mut arguments).procedure);
                assert_eq!(values.values().len(), arguments.len());
                assert_eq!(
                    arguments.len(),
                    workload.procedures()[call.procedure.0].parameters.len()
                );
            }
        }
    }
}
