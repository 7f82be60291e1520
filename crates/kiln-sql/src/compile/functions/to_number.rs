//! `to_number`: a number read by a template, as PostgreSQL reads it.

use kiln_storage::error::{Error, Result};
use kiln_storage::types::Number;

use super::cast::strict;
use super::signatures;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `9` or `0`.
    Digit,
    /// `.` or `D`.
    Point,
    /// `,` or `G`.
    Comma,
    Minus,
    Plus,
    /// `SG`.
    Sign,
    /// A part that reads nothing by itself: `S`, `PR`, `FM`.
    Nothing,
    /// Any other character.
    Character,
}

/// The patterns, the longer ones before those that they begin with; those without a part are not
/// here.
const PATTERNS: &[(&str, Option<Part>)] = &[
    (",", Some(Part::Comma)),
    (".", Some(Part::Point)),
    ("0", Some(Part::Digit)),
    ("9", Some(Part::Digit)),
    ("B", None),
    ("C", None),
    ("D", Some(Part::Point)),
    ("EEEE", None),
    ("FM", Some(Part::Nothing)),
    ("G", Some(Part::Comma)),
    ("L", None),
    ("MI", Some(Part::Minus)),
    ("PL", Some(Part::Plus)),
    ("PR", Some(Part::Nothing)),
    ("RN", None),
    ("SG", Some(Part::Sign)),
    ("SP", Some(Part::Nothing)),
    ("S", Some(Part::Nothing)),
    ("TH", None),
    ("V", None),
];

/// What a template says.
#[derive(Default)]
struct Template {
    parts: Vec<Part>,
    /// The digits behind the point.
    scale: usize,
    /// The digits before the point.
    whole: usize,
    has_point: bool,
    has_brackets: bool,
    /// Where `S` is: before the first digit, or behind it.
    sign: Option<SignPlace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignPlace {
    Before,
    Behind,
}

impl Template {
    fn of(text: &str) -> Result<Template> {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                let quoted = &rest[1..];
                let end = quoted.find('"').unwrap_or(quoted.len());
                let characters = quoted[..end].chars().map(|_| Part::Character);
                template.parts.extend(characters);
                rest = quoted.get(end + 1..).unwrap_or_default();
                continue;
            }
            let known = PATTERNS.iter().find(|(name, _)| {
                rest.get(..name.len())
                    .is_some_and(|begins| begins.eq_ignore_ascii_case(name))
            });
            match known {
                Some((name, Some(part))) => {
                    template.add(name, *part);
                    rest = &rest[name.len()..];
                }
                Some((name, None)) => {
                    let message =
                        format!("the template pattern \"{name}\" of to_number is not supported");
                    return Err(Error::unsupported(message));
                }
                None => {
                    template.parts.push(Part::Character);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        Ok(template)
    }

    fn add(&mut self, name: &str, part: Part) {
        match (name, part) {
            (_, Part::Digit) if self.has_point => self.scale += 1,
            (_, Part::Digit) => self.whole += 1,
            (_, Part::Point) => self.has_point = true,
            ("PR", _) => self.has_brackets = true,
            ("S", _) => {
                self.sign = Some(match self.whole + self.scale {
                    0 => SignPlace::Before,
                    _ => SignPlace::Behind,
                });
            }
            _ => {}
        }
        self.parts.push(part);
    }
}

/// A number that is being read.
struct Reader<'t> {
    template: &'t Template,
    text: Vec<char>,
    at: usize,
    sign: Option<char>,
    digits: String,
    /// Digits behind the point, once that was read.
    behind: Option<usize>,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn read(mut self) -> Result<Number> {
        for part in &self.template.parts {
            if self.next().is_none() {
                break;
            }
            match part {
                Part::Digit | Part::Point => self.digit_or_point(),
                Part::Comma if self.next() == Some(',') => self.at += 1,
                Part::Minus => self.sign_of(&['-']),
                Part::Plus => self.sign_of(&['+']),
                Part::Sign => self.sign_of(&['+', '-']),
                Part::Character => self.at += 1,
                Part::Comma | Part::Nothing => {}
            }
        }
        let digits = self.digits.trim_end_matches('.');
        let number = Number::parse(digits);
        let number = number.map_err(|_| {
            let sign = self.sign.unwrap_or(' ');
            Error::invalid_input("numeric", &format!("{sign}{digits}"))
        })?;
        match self.sign {
            Some('-') => Ok(number.negated()),
            _ => Ok(number),
        }
    }

    fn sign_of(&mut self, signs: &[char]) {
        let next = self.next().unwrap_or(' ');
        if signs.contains(&next) {
            self.sign = Some(next);
            self.at += 1;
        } else if !next.is_ascii_digit() && !matches!(next, '.' | ',' | '+' | '-') {
            self.at += 1;
        }
    }

    fn digit_or_point(&mut self) {
        if self.next() == Some(' ') {
            self.at += 1;
        }
        if self.sign.is_none() && self.digits.is_empty() {
            match self.next() {
                Some('<') if self.template.has_brackets => self.sign = Some('-'),
                Some(sign @ ('+' | '-')) if self.template.sign != Some(SignPlace::Behind) => {
                    self.sign = Some(sign);
                }
                _ => {}
            }
            self.at += usize::from(self.sign.is_some());
        }
        let is_read = self.take();
        let template = self.template;
        if self.sign.is_none() && !self.digits.is_empty() {
            if is_read && template.sign.is_some() {
                if let Some(sign @ ('+' | '-')) = self.text.get(self.at + 1).copied() {
                    self.sign = Some(sign);
                    self.at += 1;
                }
            } else if !is_read
                && template.sign.is_none()
                && let Some(sign @ ('+' | '-')) = self.next()
            {
                self.sign = Some(sign);
            }
        }
        self.at += 1;
    }

    /// Takes a digit or the point at the present place, which it does not leave.
    fn take(&mut self) -> bool {
        match (self.next(), self.behind) {
            (Some(digit @ '0'..='9'), behind) => {
                if behind == Some(self.template.scale) {
                    return false;
                }
                self.behind = behind.map(|behind| behind + 1);
                self.digits.push(digit);
                true
            }
            (Some('.'), None) if self.template.has_point => {
                self.behind = Some(0);
                self.digits.push('.');
                true
            }
            _ => false,
        }
    }
}

fn to_number(text: &str, template: &str) -> Result<Number> {
    let template = Template::of(template)?;
    let reader = Reader {
        template: &template,
        text: text.chars().collect(),
        at: 0,
        sign: None,
        digits: String::new(),
        behind: None,
    };
    reader.read()
}

strict! {
    TO_NUMBER = "to_number", |heap, text, template| {
        let number = to_number(heap.str(text), heap.str(template))?;
        Ok(heap.push_number(&number))
    };
}

signatures! {
    "to_number"(Text, Text) -> Numeric = TO_NUMBER;
}
