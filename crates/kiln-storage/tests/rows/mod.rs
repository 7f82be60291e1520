//! Columns of all types, and values for them.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_storage::schema::Column;
use kiln_storage::slot::row::Form;
use kiln_storage::slot::{Heap, Packing, Slot};
use kiln_storage::types::{
    CatalogType, DataType, Decimal, EnumType, Interval, Number, RowField, RowType,
};

/// A column called `c`.
pub fn column(data_type: DataType, not_null: bool) -> Column {
    Column {
        name: "c".to_owned(),
        data_type,
        not_null,
        default: None,
        domain: None,
        generated: None,
    }
}

/// All types that a column may have.
pub fn types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Double,
        DataType::Date,
        DataType::TIMESTAMP,
        DataType::TIME,
        DataType::numeric(4, 2),
        DataType::numeric(12, 2),
        DataType::numeric(30, 5),
        DataType::numeric(150, 40),
        DataType::NUMERIC,
        DataType::NUMERIC,
        DataType::Char(1),
        DataType::Char(2),
        DataType::VarChar(Some(16)),
        DataType::VarChar(Some(5000)),
        DataType::Text,
        DataType::Bytea,
        DataType::Uuid,
        DataType::INTERVAL,
        DataType::REAL,
        DataType::JSON,
        DataType::array(DataType::Boolean),
        DataType::array(DataType::Integer),
        DataType::array(DataType::numeric(12, 2)),
        DataType::array(DataType::VarChar(Some(16))),
        DataType::array(DataType::INTERVAL),
        mood(),
        DataType::array(mood()),
        pair(),
    ]
}

/// An enum.
fn mood() -> DataType {
    let labels = ["sad", "ok", "happy"].map(str::to_owned);
    let made = EnumType::new((20_000, 20_001), ("mood", "mood"), &labels);
    DataType::Enum(Arc::new(made.expect("it is a type")))
}

/// A row with a number, a text and an enum.
fn pair() -> DataType {
    let types = [
        ("a", DataType::NUMERIC),
        ("b", DataType::Text),
        ("c", mood()),
    ];
    let fields = types.map(|(name, data_type)| RowField {
        name: name.to_owned(),
        data_type,
    });
    let made = RowType::new((20_002, 20_003), ("pair", "pair"), fields.into());
    DataType::Row(Arc::new(made.expect("it is a type")))
}

/// A random value of a type: often small, sometimes extreme.
pub fn random_slot(data_type: &DataType, random: &mut Random, heap: &mut Heap) -> Slot {
    let integer = |random: &mut Random, bits: u32| {
        let value = random.next_u64() as i64 >> (64 - bits);
        if random.percent(50.0) {
            value >> (bits / 2)
        } else {
            value
        }
    };
    let text = |random: &mut Random, most: usize, heap: &mut Heap| {
        let length = if random.percent(10.0) {
            most
        } else {
            random.below(most + 1)
        };
        let text: String = (0..length)
            .map(|_| {
                if random.percent(5.0) {
                    'é'
                } else {
                    (b'a' + random.below(3) as u8) as char
                }
            })
            .collect();
        heap.push_str(&text)
    };
    match data_type {
        DataType::Boolean => Slot::from_bool(random.percent(50.0)),
        DataType::SmallInt => Slot::from_i64(integer(random, 16)),
        DataType::Integer | DataType::Date => Slot::from_i64(integer(random, 32)),
        DataType::BigInt | DataType::Timestamp(_) | DataType::TimestampTz(_) => {
            Slot::from_i64(integer(random, 64))
        }
        DataType::Time(_) => Slot::from_i64(random.below(86_400_000_001) as i64),
        DataType::Double => {
            Slot::from_f64((random.unit() - 0.5) * 10_f64.powi(random.below(40) as i32))
        }
        DataType::Numeric { precision_scale } => {
            if random.percent(20.0) && precision_scale.is_none_or(|(precision, _)| precision > 33) {
                let text = match random.below(8) {
                    0 => "NaN".to_owned(),
                    1 if precision_scale.is_none() => "Infinity".to_owned(),
                    2 if precision_scale.is_none() => "-Infinity".to_owned(),
                    _ => {
                        let digits = (0..random.between(34, 90)).map(|_| random.below(9) + 1);
                        let digits: String = digits.map(|digit| digit.to_string()).collect();
                        let sign = ["", "-"][random.below(2)];
                        format!("{sign}{digits}e-{}", random.below(60))
                    }
                };
                let number = Number::parse(&text).expect("a number");
                let number = match precision_scale {
                    Some((precision, scale)) => number.rescale(*precision, *scale),
                    None => Ok(number),
                };
                return heap.push_number(&number.expect("within the precision"));
            }
            if random.percent(5.0) {
                return Slot::NAN;
            }
            let (precision, scale) = precision_scale.unwrap_or((20, random.below(12) as i16));
            let precision = precision.min(30);
            let limit = 10_i128.pow(precision as u32);
            let wide = (random.next_u64() as i128) << 40 | random.next_u64() as i128;
            let mantissa = (wide % limit) * if random.percent(50.0) { -1 } else { 1 };
            Slot::from_decimal(Decimal::new(mantissa, scale as u8).expect("within the precision"))
        }
        DataType::Char(most) => text(random, *most as usize, heap),
        DataType::VarChar(most) => text(random, most.unwrap_or(100).min(700) as usize, heap),
        DataType::Text => text(random, 200, heap),
        DataType::Bytea => {
            let bytes: Vec<u8> = (0..random.below(60))
                .map(|_| random.below(3) as u8)
                .collect();
            heap.push_bytes(&bytes)
        }
        DataType::Uuid => {
            let bytes: Vec<u8> = (0..16).map(|_| random.next_u64() as u8).collect();
            heap.push_bytes(&bytes)
        }
        DataType::Interval(_) => heap.push_interval(Interval::new(
            random.next_u64() as i32,
            random.next_u64() as i32,
            random.next_u64() as i64,
        )),
        DataType::Enum(of) => Slot::from_i64(of.labels()[random.below(of.labels().len())].number),
        DataType::Catalog(CatalogType::Real) => {
            let number = (random.unit() - 0.5) * 10_f64.powi(random.below(30) as i32);
            Slot::from_f64((number as f32).into())
        }
        DataType::Catalog(_) => heap.push_str("[1, {\"a\": null}]"),
        DataType::Row(of) => {
            let fields = of.fields().iter();
            let fields: Vec<Slot> = fields
                .map(|field| match random.percent(20.0) {
                    true => Slot::NULL,
                    false => random_slot(&field.data_type, random, heap),
                })
                .collect();
            let packed = heap.pack_row(&Form::letters(of), &fields);
            packed.expect("it is short")
        }
        DataType::Array(element) => {
            let elements: Vec<Slot> = (0..random.below(12))
                .map(|_| match random.percent(20.0) {
                    true => Slot::NULL,
                    false => random_slot(element, random, heap),
                })
                .collect();
            let array = heap.push_array(&elements);
            heap.pack_array(array, Packing::of(element))
        }
    }
}

/// Whether an index can have a column of the type.
pub fn is_key(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Interval(_)
            | DataType::Catalog(CatalogType::Json)
            | DataType::Array(_)
            | DataType::Row(_)
    )
}

/// Whether values of the type are byte strings.
pub fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Char(_)
            | DataType::VarChar(_)
            | DataType::Text
            | DataType::Bytea
            | DataType::Uuid
            | DataType::Interval(_)
            | DataType::Catalog(CatalogType::Json)
            | DataType::Array(_)
            | DataType::Row(_)
    )
}

/// Whether two slots of a type are the same value, each in its heap.
pub fn same(data_type: &DataType, a: Slot, a_heap: &Heap, b: Slot, b_heap: &Heap) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) if is_bytes(data_type) => a_heap.bytes(a) == b_heap.bytes(b),
        (false, false) if matches!(data_type, DataType::Numeric { .. }) => {
            a_heap.number(a).to_string() == b_heap.number(b).to_string()
        }
        (false, false) => a == b,
        (a, b) => a == b,
    }
}
