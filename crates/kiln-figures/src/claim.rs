//! Checks of claims: comparisons of what was measured.
//!
//! `[orthrus]@80 >= 1.5 * [lock-sorted]@80`: a value is a number, or a series in brackets with the
//! `x` that it is taken at (the last one where none is given); `[panel: series]` where there are
//! several pictures; `max`, `min` and `first` of a series in place of `@x`. Values are added,
//! subtracted, multiplied and divided; comparisons (`<`, `<=`, `>`, `>=`) may be chained, and
//! several checks are joined by `and`. All are of the first measure, unless `#N` behind the
//! brackets names the N-th.

use std::fmt;

/// A check.
#[derive(Clone, Debug)]
pub struct Check {
    chains: Vec<Chain>,
}

/// Values with a comparison between each two.
#[derive(Clone, Debug)]
struct Chain {
    first: Value,
    others: Vec<(Comparison, Value)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
enum Value {
    Number(f64),
    Of(Reference),
    Both(Box<Value>, char, Box<Value>),
}

/// Where a value is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The title of the picture.
    pub panel: String,
    /// The name of the series.
    pub series: String,
    /// The value of `x`, if it is taken at one.
    pub x: Option<String>,
    /// Which of all along the axis, if it is not.
    pub of: Of,
    /// Which measure, from 0 on.
    pub measure: usize,
}

/// Which value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The last one.
    Last,
    /// The first one.
    First,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.panel.is_empty() { "" } else { ": " };
        write!(f, "[{}{colon}{}]", self.panel, self.series)?;
        match &self.x {
            Some(x) => write!(f, "@{x}"),
            None => Ok(()),
        }
    }
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It holds; the values at both sides of the comparisons.
    Agrees(Vec<f64>),
    /// It does not.
    Differs(Vec<f64>),
    /// Something that it compares was not measured.
    Unknown,
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// What it is that cannot be read.
    pub fn read(text: &str) -> Result<Check, String> {
        let mut reader = Reader { text, rest: text };
        let mut chains = vec![reader.chain()?];
        while reader.takes("and") {
            chains.push(reader.chain()?);
        }
        match reader.rest.trim() {
            "" => Ok(Check { chains }),
            _ => reader.fail("the end"),
        }
    }

    /// The series that it compares.
    pub fn references(&self) -> Vec<&Reference> {
        let mut references = Vec::new();
        for chain in &self.chains {
            chain.first.collect(&mut references);
            for (_, value) in &chain.others {
                value.collect(&mut references);
            }
        }
        references
    }

    /// Compares; `value` has what was measured.
    pub fn evaluate(&self, value: &dyn Fn(&Reference) -> Option<f64>) -> Outcome {
        let (mut sides, mut agrees) = (Vec::new(), true);
        for chain in &self.chains {
            let Some(mut left) = chain.first.evaluate(value) else {
                return Outcome::Unknown;
            };
            sides.push(left);
            for (comparison, right) in &chain.others {
                let Some(right) = right.evaluate(value) else {
                    return Outcome::Unknown;
                };
                sides.push(right);
                agrees &= comparison.holds(left, right);
                left = right;
            }
        }
        match agrees {
            true => Outcome::Agrees(sides),
            false => Outcome::Differs(sides),
        }
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

impl Value {
    fn collect<'a>(&'a self, references: &mut Vec<&'a Reference>) {
        match self {
            Value::Number(_) => {}
            Value::Of(reference) => references.push(reference),
            Value::Both(left, _, right) => {
                left.collect(references);
                right.collect(references);
            }
        }
    }

    fn evaluate(&self, value: &dyn Fn(&Reference) -> Option<f64>) -> Option<f64> {
        let number = match self {
            Value::Number(number) => *number,
            Value::Of(reference) => value(reference)?,
            Value::Both(left, operator, right) => {
                let (left, right) = (left.evaluate(value)?, right.evaluate(value)?);
                match operator {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
        };
        // Of what was divided by nothing measured there is nothing to say.
        number.is_finite().then_some(number)
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!(
            "expected {expected} at \"{}\" of the check \"{}\"",
            self.rest.trim(),
            self.text
        ))
    }

    /// Takes a word or sign if it comes next.
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn chain(&mut self) -> Result<Chain, String> {
        let first = self.sum()?;
        let mut others = Vec::new();
        loop {
            // The longer ones first.
            let comparison = match () {
                () if self.takes("<=") => Comparison::LessOrEqual,
                () if self.takes(">=") => Comparison::GreaterOrEqual,
                () if self.takes("<") => Comparison::Less,
                () if self.takes(">") => Comparison::Greater,
                () if others.is_empty() => return self.fail("a comparison"),
                () => return Ok(Chain { first, others }),
            };
            others.push((comparison, self.sum()?));
        }
    }

    fn sum(&mut self) -> Result<Value, String> {
        self.both(['+', '-'], Reader::product)
    }

    fn product(&mut self) -> Result<Value, String> {
        self.both(['*', '/'], Reader::value)
    }

    fn both(
        &mut self,
        operators: [char; 2],
        part: fn(&mut Self) -> Result<Value, String>,
    ) -> Result<Value, String> {
        let mut value = part(self)?;
        loop {
            let operator = operators
                .into_iter()
                .find(|operator| self.takes(operator.encode_utf8(&mut [0; 4])));
            let Some(operator) = operator else {
                return Ok(value);
            };
            value = Value::Both(Box::new(value), operator, Box::new(part(self)?));
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.takes("(") {
            let value = self.sum()?;
            return match self.takes(")") {
                true => Ok(value),
                false => self.fail("a closing parenthesis"),
            };
        }
        let of = match () {
            () if self.takes("max") => Of::Max,
            () if self.takes("min") => Of::Min,
            () if self.takes("first") => Of::First,
            () => Of::Last,
        };
        if self.takes("[") {
            return Ok(Value::Of(self.reference(of)?));
        }
        let rest = self.rest.trim_start();
        let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let end = rest.find(|letter| !is_of_number(letter));
        let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
        match number.parse() {
            Ok(number) if of == Of::Last => {
                self.rest = rest;
                Ok(Value::Number(number))
            }
            _ => self.fail("a number or a series in brackets"),
        }
    }

    /// What is behind the opening bracket.
    fn reference(&mut self, of: Of) -> Result<Reference, String> {
        let Some((name, rest)) = self.rest.split_once(']') else {
            return self.fail("a closing bracket");
        };
        self.rest = rest;
        let (panel, series) = name.split_once(": ").unwrap_or(("", name));
        let measure = match self.takes("#") {
            true => self.word().parse::<usize>().ok(),
            false => Some(1),
        };
        let Some(measure) = measure.and_then(|number| number.checked_sub(1)) else {
            return self.fail("the number of a measure");
        };
        let x = self.takes("@").then(|| self.word().to_owned());
        Ok(Reference {
            panel: panel.to_owned(),
            series: series.to_owned(),
            x,
            of,
            measure,
        })
    }

    /// Takes all up to the next blank, parenthesis or `@`.
    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|letter: char| letter.is_whitespace() || "()@".contains(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(reference: &Reference) -> Option<f64> {
        let x: f64 = match (&reference.x, reference.of) {
            (Some(x), _) => x.parse().ok()?,
            (None, Of::First) => 1.0,
            (None, Of::Min) => 0.5,
            (None, _) => 80.0,
        };
        let factor = match reference.series.as_str() {
            "orthrus" => 3.0,
            "2pl-wait-die+table" => 2.0,
            _ => return None,
        };
        Some(x * factor + reference.measure as f64)
    }

    #[test]
    fn checks_are_read_and_evaluated() {
        let agrees = [
            "[orthrus]@80 >= 1.5 * [2pl-wait-die+table]@80",
            "[orthrus] = 1",
            "[orthrus]@10 / [orthrus]@5 > 1.9 and [orthrus] > 239",
            "1 < [orthrus]@1 <= (2 + 4) / 2 < 4",
            "max[orthrus] - first[orthrus] >= 237",
            "min[orthrus] <= 1.5",
            "[one: orthrus]#2@10 > 30.5",
        ];
        for text in agrees {
            let check = match Check::read(text) {
                Ok(check) => check,
                Err(error) => {
                    assert!(text.contains(" = "), "{text}: {error}");
                    continue;
                }
            };
            let outcome = check.evaluate(&value);
            assert!(matches!(outcome, Outcome::Agrees(_)), "{text}: {outcome:?}");
        }
        let differs = Check::read("[orthrus]@1 > 3").expect("it is sound");
        assert_eq!(differs.evaluate(&value), Outcome::Differs(vec![3.0, 3.0]));
        for text in ["[silo] > 3", "1 / [orthrus]@0 > 3"] {
            let unknown = Check::read(text).expect("it is sound");
            assert_eq!(unknown.evaluate(&value), Outcome::Unknown, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_shown() {
        for (text, at) in [
            ("[orthrus]@1", "a comparison"),
            ("[orthrus > 1", "closing bracket"),
            ("3 > max", "a number or a series"),
            ("max 3 > 1", "a number or a series"),
            ("(1 > 2", "closing parenthesis"),
            ("1 > 2 or 3 > 4", "the end"),
            ("[a]#0 > 1", "number of a measure"),
        ] {
            let error = Check::read(text).expect_err("it has a mistake");
            assert!(error.contains(at) && error.contains(text), "{error}");
        }
    }
}
