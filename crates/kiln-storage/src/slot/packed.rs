//! Arrays as the bytes that rows have: a column of arrays is a column of byte strings to all that
//! reads and writes rows.
//!
//! | part | bytes |
//! |---|---|
//! | head | 1: the bytes of an element, or 0 for byte strings; the highest bit says that some elements are NULL |
//! | number of elements | as many as it takes, seven bits in each, the lowest first; the highest bit says that another one follows |
//! | NULLs | a bit for each element, if some are NULL |
//! | elements that are not NULL | numbers little-endian, all with the bytes that the longest takes (1, 2, 4 or 8); a NUMERIC the two words of its slot (16), where some are long each in a byte string as `Number` has it; of a byte string its length, as the number of elements is written, and the bytes |

use super::{Heap, Slot};
use crate::error::{Error, Result, SqlState};
use crate::types::{DataType, Number, Representation};

const SOME_NULL: u8 = 0x80;

/// The head of an array of NUMERICs that lie in it as byte strings.
const NUMBERS: u8 = 0x40;

/// How elements are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The lower words of their slots.
    Words,
    /// Both words of their slots.
    Decimals,
    /// The bytes that their slots point to.
    Strings,
}

impl Packing {
    /// How elements of this type are packed.
    pub fn of(element: &DataType) -> Packing {
        match element {
            DataType::Numeric { .. } => Packing::Decimals,
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Double
            | DataType::Boolean
            | DataType::Date
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_) => Packing::Words,
            DataType::Catalog(catalog) => match catalog.representation() {
                Representation::Number | Representation::Double => Packing::Words,
                _ => Packing::Strings,
            },
            _ => Packing::Strings,
        }
    }
}

/// An element of a packed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// NULL.
    Null,
    /// What is in the slot.
    Slot(Slot),
    /// Where the element lies in the packed array.
    Bytes(usize, usize),
    /// Where a NUMERIC lies in the packed array.
    Number(usize, usize),
}

impl Heap {
    /// Appends the bytes of an array that is not NULL.
    pub fn pack_array(&mut self, array: Slot, packing: Packing) -> Slot {
        let (first, count) = array.span();
        let elements = &self.elements[first..first + count];
        let bytes = &mut self.bytes;
        let start = bytes.len();
        let known = elements.iter().filter(|element| !element.is_null());
        let width = match packing {
            Packing::Strings => 0,
            Packing::Decimals if known.clone().any(|slot| slot.is_long()) => {
                return self.pack_numbers(array);
            }
            Packing::Decimals => 16,
            Packing::Words => known
                .clone()
                .map(|slot| width_of(slot.as_i64()))
                .fold(1, u8::max),
        };
        let has_null = known.clone().count() < count;
        bytes.push(width | if has_null { SOME_NULL } else { 0 });
        put_number(bytes, count);
        if has_null {
            put_nulls(bytes, elements);
        }
        for slot in known {
            match packing {
                Packing::Words => {
                    let word = slot.as_i64().to_le_bytes();
                    bytes.extend_from_slice(&word[..width.into()]);
                }
                Packing::Decimals => {
                    let (low, high) = slot.words();
                    bytes.extend_from_slice(&low.to_le_bytes());
                    bytes.extend_from_slice(&high.to_le_bytes());
                }
                Packing::Strings => {
                    let (offset, length) = slot.span();
                    put_number(bytes, length);
                    bytes.extend_from_within(offset..offset + length);
                }
            }
        }
        assert!(
            bytes.len() <= u32::MAX as usize,
            "a procedure's heap passed 4 GiB"
        );
        Slot::from_span(start as u32, (bytes.len() - start) as u32)
    }

    /// Appends the bytes of an array of NUMERICs of which some have more digits than a slot.
    #[cold]
    fn pack_numbers(&mut self, array: Slot) -> Slot {
        let elements = self.array(array).to_vec();
        let has_null = elements.iter().any(|element| element.is_null());
        let mut bytes = vec![NUMBERS | if has_null { SOME_NULL } else { 0 }];
        put_number(&mut bytes, elements.len());
        if has_null {
            put_nulls(&mut bytes, &elements);
        }
        for slot in elements.iter().filter(|slot| !slot.is_null()) {
            let mut number = Vec::new();
            self.number(*slot).append_bytes_to(&mut number);
            put_number(&mut bytes, number.len());
            bytes.extend(number);
        }
        self.push_bytes(&bytes)
    }

    /// The array that was packed to these bytes, which are not NULL; its texts lie in them.
    ///
    /// # Errors
    /// XX001 for bytes that no array was packed to: a reader may look at a row that is being
    /// changed.
    pub fn unpack_array(&mut self, packed: Slot) -> Result<Slot> {
        let (offset, length) = packed.span();
        let start = self.elements.len();
        if self
            .bytes
            .get(offset)
            .is_some_and(|head| head & NUMBERS != 0)
        {
            return self.unpack_numbers(packed);
        }
        let Heap {
            bytes, elements, ..
        } = self;
        let read = each_element(&bytes[offset..offset + length], |element| {
            elements.push(match element {
                Element::Number(..) => return false,
                Element::Null => Slot::NULL,
                Element::Slot(slot) => slot,
                Element::Bytes(at, length) => Slot::from_span((offset + at) as u32, length as u32),
            });
            true
        });
        if !read {
            elements.truncate(start);
            let message = "an array of a row is damaged";
            return Err(Error::new(SqlState::DATA_CORRUPTED, message));
        }
        Ok(Slot::from_span(
            start as u32,
            (elements.len() - start) as u32,
        ))
    }
}

impl Heap {
    #[cold]
    fn unpack_numbers(&mut self, packed: Slot) -> Result<Slot> {
        let bytes = self.bytes(packed).to_vec();
        let mut elements = Vec::new();
        let read = each_element(&bytes, |element| {
            elements.push(match element {
                Element::Null => Slot::NULL,
                Element::Number(at, length) => match Number::from_bytes(&bytes[at..at + length]) {
                    Some(number) => self.push_number(&number),
                    None => return false,
                },
                Element::Slot(_) | Element::Bytes(..) => return false,
            });
            true
        });
        match read {
            true => Ok(self.push_array(&elements)),
            false => {
                let message = "an array of a row is damaged";
                Err(Error::new(SqlState::DATA_CORRUPTED, message))
            }
        }
    }
}

/// A bit for each element that is NULL.
fn put_nulls(bytes: &mut Vec<u8>, elements: &[Slot]) {
    bytes.extend(elements.chunks(8).map(|elements| {
        let bits = elements.iter().rev();
        bits.fold(0, |bits, element| bits << 1 | u8::from(element.is_null()))
    }));
}

/// Hands over the elements of a packed array, one after the other, until one is refused. Returns
/// whether the bytes are a packed array, and all were accepted.
pub(crate) fn each_element(packed: &[u8], mut accept: impl FnMut(Element) -> bool) -> bool {
    let mut reader = Bytes { all: packed, at: 0 };
    let mut read = || {
        let head = *reader.take(1)?.first()?;
        let count = reader.number()?;
        let width = head & !SOME_NULL;
        let nulls = match head & SOME_NULL {
            0 => &[],
            _ => reader.take(count.div_ceil(8))?,
        };
        // An element that is not NULL has a byte at least.
        if nulls.is_empty() && count > packed.len() {
            return None;
        }
        for at in 0..count {
            let is_null = nulls
                .get(at / 8)
                .is_some_and(|bits| bits >> (at % 8) & 1 != 0);
            let element = match (is_null, width) {
                (true, _) => Element::Null,
                (false, 0 | NUMBERS) => {
                    let length = reader.number()?;
                    let start = reader.at;
                    reader.take(length)?;
                    match width {
                        0 => Element::Bytes(start, length),
                        _ => Element::Number(start, length),
                    }
                }
                (false, 16) => {
                    let (low, high) = (reader.word(8)?, reader.word(8)?);
                    // The lowest byte is the flags' place.
                    Element::Slot(Slot::from_words(low as u64, high as u64 & !0xff))
                }
                (false, 1 | 2 | 4 | 8) => Element::Slot(Slot::from_i64(reader.word(width.into())?)),
                _ => return None,
            };
            if !accept(element) {
                return None;
            }
        }
        (reader.at == packed.len()).then_some(())
    };
    read().is_some()
}

/// How the elements of a packed array were packed; `None` for bytes that are none.
pub(crate) fn packing_of(packed: &[u8]) -> Option<Packing> {
    Some(match packed.first()? & !SOME_NULL {
        0 => Packing::Strings,
        1 | 2 | 4 | 8 => Packing::Words,
        16 | NUMBERS => Packing::Decimals,
        _ => return None,
    })
}

/// The bytes that a word takes.
fn width_of(word: i64) -> u8 {
    match word {
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x8000_0000..=0x7fff_ffff => 4,
        _ => 8,
    }
}

fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What is left of a packed array.
struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.all.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    /// A number of at most 32 bits.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.take(1)?.first()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The next `width` bytes as a signed number.
    fn word(&mut self, width: usize) -> Option<i64> {
        let bytes = self.take(width)?;
        let mut word = [match bytes.last()? & 0x80 {
            0 => 0,
            _ => 0xff,
        }; 8];
        word[..width].copy_from_slice(bytes);
        Some(i64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Decimal, Interval};

    fn comes_back(heap: &mut Heap, elements: &[Slot], packing: Packing) -> usize {
        let array = heap.push_array(elements);
        let packed = heap.pack_array(array, packing);
        let back = heap.unpack_array(packed).expect("it was packed");
        let back = heap.array(back).to_vec();
        assert_eq!(back.len(), elements.len());
        for (one, other) in back.into_iter().zip(elements) {
            match packing {
                _ if other.is_null() => assert!(one.is_null()),
                Packing::Strings => assert_eq!(heap.bytes(one), heap.bytes(*other)),
                _ => assert_eq!(one, *other),
            }
        }
        packed.span().1
    }

    #[test]
    fn arrays_come_back_and_small_numbers_take_few_bytes() {
        let mut heap = Heap::new();
        for (numbers, bytes) in [
            (&[][..], 2),
            (&[1, -128, 127], 5),
            (&[128, 0], 6),
            (&[-32_769], 6),
            (&[i64::MIN, i64::MAX, 0], 26),
        ] {
            let elements: Vec<Slot> = numbers.iter().map(|it| Slot::from_i64(*it)).collect();
            assert_eq!(comes_back(&mut heap, &elements, Packing::Words), bytes);
        }
        let many: Vec<Slot> = (0..300).map(|_| Slot::NULL).collect();
        assert_eq!(comes_back(&mut heap, &many, Packing::Words), 1 + 2 + 38);
        let number = Slot::from_decimal(Decimal::parse("-1.50").expect("a number"));
        let numbers = [number, Slot::NULL, number];
        assert_eq!(comes_back(&mut heap, &numbers, Packing::Decimals), 3 + 32);
        let texts = [
            heap.push_str("a"),
            Slot::NULL,
            heap.push_str(""),
            heap.push_str("é"),
        ];
        assert_eq!(
            comes_back(&mut heap, &texts, Packing::Strings),
            3 + 2 + 1 + 3
        );
        let interval = heap.push_interval(Interval::new(1, 2, 3));
        assert_eq!(comes_back(&mut heap, &[interval], Packing::Strings), 2 + 17);
        let doubles = [Slot::from_f64(f64::NAN), Slot::from_f64(-0.0)];
        assert_eq!(comes_back(&mut heap, &doubles, Packing::Words), 2 + 16);
    }

    #[test]
    fn bytes_that_are_no_array_are_refused() {
        for bytes in [
            &[][..],
            &[1],
            &[3, 1, 0],
            &[1, 2, 0],
            &[1, 1, 0, 0],
            &[0, 1, 5, b'a'],
            &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x81, 9, 0xff],
            &[8, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x80, 0xff, 0xff, 0xff, 0xff, 0x0f],
        ] {
            let mut heap = Heap::new();
            let packed = heap.push_bytes(bytes);
            assert!(heap.unpack_array(packed).is_err(), "{bytes:?}");
            assert!(heap.elements.is_empty());
        }
    }
}
