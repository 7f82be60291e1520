//! Enums: types whose values are labels, in an order of their own.
//!
//! A value is a number that its label has had since it was added. The numbers of labels are in the
//! order of the type, and labels that are added between two others get a number between theirs: so
//! rows and keys hold the numbers, compare as they lie, and are never written anew.

use std::fmt;
use std::hash::{Hash, Hasher};

use kiln_platform::sync::Arc;

use crate::error::{Error, Result, SqlState};

/// The bytes of a label, at most.
pub const LABEL_BYTES_MAX: usize = 63;

/// How far a label that is added at an end is from its neighbour: so often can the room between two
/// be halved, but for one time.
const STEP: i64 = 1 << 40;

/// An enum. Two with one number are one type, whichever labels are known of it.
#[derive(Clone, Debug)]
pub struct EnumType {
    oid: u32,
    array_oid: u32,
    name: String,
    array_name: String,
    printed: String,
    printed_array: String,
    labels: Vec<EnumLabel>,
}

/// A label of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumLabel {
    /// Its number: in rows, in keys, and for comparisons.
    pub number: i64,
    /// The label.
    pub text: String,
}

/// Where a label is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumPosition<'a> {
    /// Behind all others.
    Last,
    /// Before this one.
    Before(&'a str),
    /// Behind this one.
    After(&'a str),
}

/// A value of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumValue {
    /// The number of its label.
    pub number: i64,
    /// Its type.
    pub of: Arc<EnumType>,
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.oid == other.oid
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

impl EnumType {
    /// An enum of these labels, with its number and that of its array type. `printed` is its name
    /// as SQL writes it.
    ///
    /// # Errors
    /// 42602 for a label that is too long, 23505 for one that is there twice.
    pub fn new(
        (oid, array_oid): (u32, u32),
        (name, printed): (&str, &str),
        labels: &[String],
    ) -> Result<EnumType> {
        let mut made = EnumType {
            oid,
            array_oid,
            name: name.to_owned(),
            array_name: format!("_{name}"),
            printed: printed.to_owned(),
            printed_array: format!("{printed}[]"),
            labels: Vec::new(),
        };
        for label in labels {
            check_label(label)?;
            if made.number(label).is_some() {
                let message = "duplicate key value violates unique constraint \
                               \"pg_enum_typid_label_index\"";
                let detail = format!("Key (enumtypid, enumlabel)=({oid}, {label}) already exists.");
                return Err(Error::new(SqlState::UNIQUE_VIOLATION, message).with_detail(detail));
            }
            made.add(label, EnumPosition::Last)?;
        }
        Ok(made)
    }

    /// Its number.
    pub fn oid(&self) -> u32 {
        self.oid
    }

    /// The number of its array type.
    pub fn array_oid(&self) -> u32 {
        self.array_oid
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its array type.
    pub fn array_name(&self) -> &str {
        &self.array_name
    }

    /// Its name as SQL writes it: quoted where that is needed.
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// The name of its array type as it is printed.
    pub fn printed_array(&self) -> &str {
        &self.printed_array
    }

    /// Its labels, in their order.
    pub fn labels(&self) -> &[EnumLabel] {
        &self.labels
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(&self, name: &str, printed: &str) -> EnumType {
        EnumType {
            name: name.to_owned(),
            array_name: format!("_{name}"),
            printed: printed.to_owned(),
            printed_array: format!("{printed}[]"),
            ..self.clone()
        }
    }

    /// The label with this number.
    pub fn label(&self, number: i64) -> Option<&str> {
        let labels = &self.labels;
        let at = labels.binary_search_by_key(&number, |label| label.number);
        at.ok().map(|at| labels[at].text.as_str())
    }

    /// The number of a label.
    pub fn number(&self, text: &str) -> Option<i64> {
        let mut labels = self.labels.iter();
        let label = labels.find(|label| label.text == text);
        label.map(|label| label.number)
    }

    /// The number of a label.
    ///
    /// # Errors
    /// 22P02.
    pub fn require(&self, text: &str) -> Result<i64> {
        self.number(text)
            .ok_or_else(|| no_label(&self.printed, text))
    }

    /// Adds a label.
    ///
    /// # Errors
    /// 42602 for one that is too long; 42710 for one that is there; 22023 when the other label of
    /// `place` is not; 54000 when there is no number between its neighbours.
    pub fn add(&mut self, text: &str, place: EnumPosition<'_>) -> Result<()> {
        check_label(text)?;
        if self.number(text).is_some() {
            return Err(label_exists(text));
        }
        let at = match place {
            EnumPosition::Last => self.labels.len(),
            EnumPosition::Before(neighbour) => self.position(neighbour)?,
            EnumPosition::After(neighbour) => self.position(neighbour)? + 1,
        };
        let before = at.checked_sub(1).map(|at| self.labels[at].number);
        let after = self.labels.get(at).map(|label| label.number);
        let number = match (before, after) {
            (None, None) => Some(0),
            (Some(before), None) => before.checked_add(STEP),
            (None, Some(after)) => after.checked_sub(STEP),
            (Some(before), Some(after)) => {
                let middle = before.midpoint(after);
                (middle != before && middle != after).then_some(middle)
            }
        };
        let number = number.ok_or_else(|| {
            let message = format!("there is no number left for label \"{text}\" at this place");
            Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_hint("Add it at another place, or create another type.")
        })?;
        let text = text.to_owned();
        self.labels.insert(at, EnumLabel { number, text });
        Ok(())
    }

    /// Gives a label another text.
    ///
    /// # Errors
    /// 22023 when there is no such label; 42710 when the other one is there; 42602 for one that is
    /// too long.
    pub fn rename_label(&mut self, from: &str, to: &str) -> Result<()> {
        check_label(to)?;
        let at = self.position(from)?;
        if self.number(to).is_some() {
            return Err(label_exists(to));
        }
        self.labels[at].text = to.to_owned();
        Ok(())
    }

    fn position(&self, text: &str) -> Result<usize> {
        let at = self.labels.iter().position(|label| label.text == text);
        at.ok_or_else(|| {
            let message = format!("\"{text}\" is not an existing enum label");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })
    }

    /// The type that [`Display`](fmt::Display) writes; nothing comes behind it.
    pub fn read(description: &str) -> Option<EnumType> {
        let mut words = Words(description.strip_prefix("enum ")?);
        let (oid, array_oid) = (words.number()?, words.number()?);
        let (name, printed) = (words.counted()?, words.counted()?);
        let mut made = EnumType {
            oid,
            array_oid,
            name: name.to_owned(),
            array_name: format!("_{name}"),
            printed: printed.to_owned(),
            printed_array: format!("{printed}[]"),
            labels: Vec::new(),
        };
        while words.0 != "end" {
            let (number, text) = words.label()?;
            let is_next = made.labels.last().is_none_or(|last| last.number < number);
            if !is_next || made.number(text).is_some() {
                return None;
            }
            let text = text.to_owned();
            made.labels.push(EnumLabel { number, text });
        }
        Some(made)
    }
}

impl fmt::Display for EnumType {
    /// All of the type, as [`EnumType::read`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, printed) = (&self.name, &self.printed);
        write!(f, "enum {} {} ", self.oid, self.array_oid)?;
        write!(f, "{}:{name} {}:{printed} ", name.len(), printed.len())?;
        for EnumLabel { number, text } in &self.labels {
            write!(f, "{number} {}:{text} ", text.len())?;
        }
        f.write_str("end")
    }
}

impl EnumValue {
    /// Its label.
    pub fn label(&self) -> &str {
        // A number without a label is of a row that another transaction is changing.
        self.of.label(self.number).unwrap_or_default()
    }
}

/// The label with a number, in what [`Display`](fmt::Display) writes of a type: without reading all
/// of that.
pub fn label_in(description: &str, number: i64) -> Option<&str> {
    let mut words = labels_of(description)?;
    while words.0 != "end" {
        let (known, text) = words.label()?;
        if known == number {
            return Some(text);
        }
    }
    None
}

/// The number of a label, likewise.
///
/// # Errors
/// 22P02.
pub fn number_in(description: &str, label: &str) -> Result<i64> {
    let mut words = labels_of(description).unwrap_or(Words("end"));
    while words.0 != "end" {
        match words.label() {
            Some((number, text)) if text == label => return Ok(number),
            Some(_) => {}
            None => break,
        }
    }
    let read = EnumType::read(description);
    let name = read.as_ref().map_or("", EnumType::printed);
    Err(no_label(name, label))
}

/// What begins with the first label.
fn labels_of(description: &str) -> Option<Words<'_>> {
    let mut words = Words(description.strip_prefix("enum ")?);
    words.number::<u32>()?;
    words.number::<u32>()?;
    words.counted()?;
    words.counted()?;
    Some(words)
}

/// What is left of a description.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        let (word, rest) = self.0.split_once(' ')?;
        self.0 = rest;
        word.parse().ok()
    }

    fn counted(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_once(':')?;
        let (text, rest) = rest.split_at_checked(length.parse().ok()?)?;
        self.0 = rest.strip_prefix(' ')?;
        Some(text)
    }

    fn label(&mut self) -> Option<(i64, &'a str)> {
        Some((self.number()?, self.counted()?))
    }
}

fn check_label(text: &str) -> Result<()> {
    match text.len() <= LABEL_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INVALID_NAME,
            format!("invalid enum label \"{text}\""),
        )
        .with_detail("Labels must be 63 bytes or less.")),
    }
}

#[cold]
fn label_exists(text: &str) -> Error {
    let message = format!("enum label \"{text}\" already exists");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

#[cold]
fn no_label(name: &str, text: &str) -> Error {
    let message = format!("invalid input value for enum {name}: \"{text}\"");
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood() -> EnumType {
        let labels = ["sad", "o k", "5:a end"].map(str::to_owned);
        EnumType::new((20_000, 20_001), ("Mood", "\"Mood\""), &labels).expect("it is a type")
    }

    #[test]
    fn numbers_of_labels_are_in_their_order_and_stay() {
        let mut mood = mood();
        let former = mood.clone();
        mood.add("low", EnumPosition::Before("sad")).expect("low");
        mood.add("well", EnumPosition::After("o k")).expect("well");
        mood.add("best", EnumPosition::Last).expect("best");
        let texts: Vec<&str> = mood.labels().iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["low", "sad", "o k", "well", "5:a end", "best"]);
        assert!(
            mood.labels()
                .is_sorted_by(|one, other| one.number < other.number)
        );
        for label in former.labels() {
            assert_eq!(mood.number(&label.text), Some(label.number));
        }
    }

    #[test]
    fn the_room_between_two_labels_ends_with_an_error() {
        let mut mood = mood();
        let mut added = 0;
        let error = loop {
            match mood.add(&format!("l{added}"), EnumPosition::Before("o k")) {
                Ok(()) => added += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(
            (added, error.state()),
            (40, SqlState::PROGRAM_LIMIT_EXCEEDED)
        );
    }

    #[test]
    fn a_type_comes_back_from_its_description() {
        let mood = mood();
        let text = mood.to_string();
        let read = EnumType::read(&text).expect("it was written");
        assert_eq!((&read, read.labels()), (&mood, mood.labels()));
        assert_eq!(read.printed_array(), "\"Mood\"[]");
        for label in mood.labels() {
            assert_eq!(label_in(&text, label.number), Some(label.text.as_str()));
            assert_eq!(number_in(&text, &label.text), Ok(label.number));
        }
        assert_eq!(label_in(&text, 7), None);
        let error = number_in(&text, "glad").expect_err("no label");
        assert_eq!(
            error.message(),
            "invalid input value for enum \"Mood\": \"glad\""
        );
        for damaged in [
            "enum 1 2 1:a 1:a 0 1:x",
            "enum 1 2 1:a 1:a 0 9:x end",
            "enum 1 2 1:a 1:a 0 1:x 0 1:y end",
            "enum 1 2 1:a 1:a 0 1:x 1 1:x end",
            "enum 1 x 1:a 1:a end",
        ] {
            assert!(EnumType::read(damaged).is_none(), "{damaged}");
        }
    }
}
