//! `to_char` of numbers, by the template patterns of PostgreSQL's manual (9.8, table 9.29).
//!
//! A template is read once into its parts and what they say together ([`Template`]). The digits are
//! made for it ([`Digits`]), and each part then takes its place in the text ([`Printer`]).

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Number;

use super::cast::strict;
use super::{check_length, signatures};

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `9`, or `0`.
    Digit { is_zero: bool },
    /// `.` or `D`.
    Point,
    /// `,` or `G`.
    Comma,
    /// `L`: without a currency it is a blank.
    Currency,
    /// `RN`, `rn`.
    Roman { is_small: bool },
    /// `TH`, `th`.
    Ordinal { is_small: bool },
    /// `MI`.
    Minus,
    /// `PL`.
    Plus,
    /// `SG`.
    Sign,
    /// A part that prints nothing where it stands, or nothing at all.
    Nothing,
    /// Any other character.
    Character(char),
}

/// What `S` prints its sign at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Before,
    After,
}

/// The patterns, the longer ones before those that they begin with. Each is known in capitals and in
/// small letters.
const PATTERNS: &[&str] = &[
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V",
];

/// The characters of a Roman number, at most.
const ROMAN_WIDTH: usize = 15;
/// The digits that a DOUBLE PRECISION and a REAL have for certain.
const DOUBLE_DIGITS: usize = 15;
const REAL_DIGITS: usize = 6;

/// A template, and what its parts say together.
#[derive(Clone, Debug, Default)]
struct Template {
    parts: Vec<Part>,
    /// The digits before the point, and behind it.
    whole: usize,
    fraction: usize,
    /// How many digits are up to the first `0`, if there is one, and up to the last.
    first_zero: Option<usize>,
    last_zero: usize,
    /// The digits behind `V`.
    shift: usize,
    has_point: bool,
    is_shifted: bool,
    /// `FM`: without blanks, and without zeros that stand for a `9`.
    is_narrow: bool,
    anchor: Option<Anchor>,
    /// The digits before `S`.
    whole_before_sign: usize,
    has_minus: bool,
    has_plus: bool,
    is_bracketed: bool,
    is_blank: bool,
    is_roman: bool,
    is_scientific: bool,
}

#[cold]
fn misused(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

impl Template {
    fn read(text: &str) -> Result<Template> {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let mut known = PATTERNS.iter();
            let pattern = known.find_map(|name| {
                let is_small = rest.starts_with(&name.to_ascii_lowercase());
                let is_known = is_small || rest.starts_with(name);
                is_known.then_some((*name, is_small))
            });
            if let Some((name, is_small)) = pattern {
                rest = &rest[name.len()..];
                let part = template.add(name, is_small)?;
                template.parts.push(part);
                continue;
            }
            if first == '"' {
                rest = template.quoted(&rest[1..]);
                continue;
            }
            if let Some(after) = rest.strip_prefix("\\\"") {
                template.parts.push(Part::Character('"'));
                rest = after;
                continue;
            }
            template.parts.push(Part::Character(first));
            rest = &rest[first.len_utf8()..];
        }
        Ok(template)
    }

    /// Takes characters up to the next quote; a backslash quotes the one behind it.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let taken = match character {
                '"' => break,
                '\\' => characters.next().unwrap_or('\\'),
                other => other,
            };
            self.parts.push(Part::Character(taken));
        }
        characters.as_str()
    }

    fn add(&mut self, pattern: &str, is_small: bool) -> Result<Part> {
        if self.is_scientific && pattern != "EEEE" {
            return Err(misused("\"EEEE\" must be the last pattern used"));
        }
        Ok(match pattern {
            "9" | "0" => {
                let is_zero = pattern == "0";
                self.add_digit(is_zero)?;
                Part::Digit { is_zero }
            }
            "." | "D" => {
                if self.has_point {
                    return Err(misused("multiple decimal points"));
                }
                if self.is_shifted {
                    return Err(misused("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
                Part::Point
            }
            "," | "G" => Part::Comma,
            "L" => Part::Currency,
            "RN" => {
                self.is_roman = true;
                Part::Roman { is_small }
            }
            "TH" => Part::Ordinal { is_small },
            "MI" => {
                self.refuse_beside_sign("MI")?;
                self.has_minus = true;
                Part::Minus
            }
            "PL" => {
                self.refuse_beside_sign("PL")?;
                self.has_plus = true;
                Part::Plus
            }
            "SG" => {
                self.refuse_beside_sign("SG")?;
                (self.has_minus, self.has_plus) = (true, true);
                Part::Sign
            }
            other => {
                self.add_silent(other)?;
                Part::Nothing
            }
        })
    }

    fn refuse_beside_sign(&self, pattern: &str) -> Result<()> {
        match self.anchor {
            Some(_) => Err(misused(&format!(
                "cannot use \"S\" and \"{pattern}\" together"
            ))),
            None => Ok(()),
        }
    }

    fn add_digit(&mut self, is_zero: bool) -> Result<()> {
        if self.is_bracketed {
            let digit = if is_zero { '0' } else { '9' };
            return Err(misused(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if is_zero {
            if self.first_zero.is_none() && !self.has_point {
                self.first_zero = Some(self.whole);
            }
        } else if self.is_shifted {
            self.shift += 1;
            return Ok(());
        }
        match self.has_point {
            true => self.fraction += 1,
            false => self.whole += 1,
        }
        if is_zero {
            self.last_zero = self.whole + self.fraction;
        }
        Ok(())
    }

    /// A pattern that says something about the others.
    fn add_silent(&mut self, pattern: &str) -> Result<()> {
        match pattern {
            "FM" => self.is_narrow = true,
            "B" => self.is_blank |= self.whole + self.fraction == 0 && self.first_zero.is_none(),
            "S" => {
                if self.anchor.is_some() {
                    return Err(misused("cannot use \"S\" twice"));
                }
                if self.has_plus || self.has_minus || self.is_bracketed {
                    let message = "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together";
                    return Err(misused(message));
                }
                self.whole_before_sign = self.whole;
                self.anchor = Some(match self.has_point {
                    true => Anchor::After,
                    false => Anchor::Before,
                });
            }
            "PR" => {
                if self.anchor.is_some() || self.has_plus || self.has_minus {
                    let message = "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together";
                    return Err(misused(message));
                }
                self.is_bracketed = true;
            }
            "V" => {
                if self.has_point {
                    return Err(misused("cannot use \"V\" and decimal point together"));
                }
                self.is_shifted = true;
            }
            "EEEE" => {
                if self.is_scientific {
                    return Err(misused("cannot use \"EEEE\" twice"));
                }
                let is_beside_others = self.is_blank
                    || self.is_narrow
                    || self.anchor.is_some()
                    || self.is_bracketed
                    || self.has_minus
                    || self.has_plus
                    || self.is_roman
                    || self.is_shifted;
                if is_beside_others {
                    let detail = "\"EEEE\" may only be used together with digit and decimal \
                                  point patterns.";
                    let message = "\"EEEE\" is incompatible with other formats";
                    return Err(misused(message).with_detail(detail));
                }
                self.is_scientific = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// What stands for digits that do not fit.
    fn overfull(&self) -> String {
        let (whole, fraction) = ("#".repeat(self.whole), "#".repeat(self.fraction));
        format!("{whole}.{fraction}")
    }

    /// NaN or an infinity with an exponent.
    fn without_exponent(&self) -> String {
        let rest = "#".repeat(self.fraction + 4);
        format!(" {}.{rest}", "#".repeat(self.whole))
    }
}

/// A number as a template wants it.
struct Digits {
    /// `+`, `-`, or neither for a Roman number.
    sign: char,
    text: String,
    /// The places before its first digit.
    spaces: usize,
}

impl Digits {
    /// Of a number without an exponent, as its text is: with a sign if it is negative.
    fn fit(template: &Template, text: &str) -> Digits {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', text),
        };
        let length = digits.find('.').unwrap_or(digits.len());
        let text = match length > template.whole {
            true => template.overfull(),
            false => digits.to_owned(),
        };
        Digits {
            sign,
            text,
            spaces: template.whole.saturating_sub(length),
        }
    }

    fn roman(number: Option<i64>) -> Digits {
        const UNITS: [(i64, &str); 13] = [
            (1000, "M"),
            (900, "CM"),
            (500, "D"),
            (400, "CD"),
            (100, "C"),
            (90, "XC"),
            (50, "L"),
            (40, "XL"),
            (10, "X"),
            (9, "IX"),
            (5, "V"),
            (4, "IV"),
            (1, "I"),
        ];
        let mut text = String::new();
        match number {
            Some(mut rest @ 1..=3999) => {
                for (value, letters) in UNITS {
                    while rest >= value {
                        text.push_str(letters);
                        rest -= value;
                    }
                }
            }
            _ => text.push_str(&"#".repeat(ROMAN_WIDTH)),
        }
        Digits {
            sign: '\0',
            text,
            spaces: 0,
        }
    }
}

/// The state of a text that is printed, digit by digit.
struct Printer<'a> {
    template: &'a Template,
    anchor: Option<Anchor>,
    is_bracketed: bool,
    digits: &'a Digits,
    /// The digit that is printed next.
    next: usize,
    /// The last one that is printed where the template is narrow: zeros behind it are left out.
    last: Option<usize>,
    /// How many parts for digits there were.
    place: usize,
    /// How many there are, from 1 on, with one for the sign where it takes a place.
    places: isize,
    has_sign: bool,
    /// Whether the part before this one has printed a digit.
    in_number: bool,
    out: String,
}

impl<'a> Printer<'a> {
    fn new(template: &'a Template, digits: &'a Digits) -> Printer<'a> {
        let is_positive = digits.sign != '-';
        let is_narrow = template.is_narrow;
        let mut anchor = template.anchor;
        let has_own_sign = template.has_plus || template.has_minus;
        let has_sign = match has_own_sign {
            true => template.has_minus,
            false => is_positive && digits.sign == '+' && is_narrow && anchor.is_none(),
        };
        if anchor == Some(Anchor::Before) && template.whole == template.whole_before_sign {
            anchor = Some(Anchor::After);
        }
        let last = (is_narrow && template.has_point)
            .then(|| last_significant(&digits.text))
            .flatten();
        let last = last.map(|last| match template.last_zero > digits.spaces {
            true => last.max((digits.text.len() - 1).min(template.last_zero - digits.spaces)),
            false => last,
        });
        let takes_place = !has_sign && digits.spaces == 0;
        Printer {
            template,
            anchor,
            is_bracketed: template.is_bracketed && !(is_positive && is_narrow && !has_own_sign),
            digits,
            next: 0,
            last,
            place: 0,
            places: (template.whole + template.fraction) as isize - 1 + isize::from(takes_place),
            has_sign,
            in_number: false,
            out: String::new(),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.digits.text.as_bytes().get(at).copied()
    }

    /// Whether no digit but the point is left of the number.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.byte(last) == Some(b'.'))
    }

    /// Whether the zero before a point is next, for which a blank stands.
    fn is_at_leading_zero(&self) -> bool {
        self.template.first_zero.is_none()
            && self.next == 0
            && self.byte(0) == Some(b'0')
            && self.template.fraction != 0
    }

    fn sign_of_anchor(&mut self) {
        self.out.push(match self.digits.sign {
            '-' => '-',
            _ => '+',
        });
    }

    fn sign_before(&mut self) {
        let begins = self.place >= self.digits.spaces
            || self.template.first_zero.is_some_and(|at| at == self.place);
        if self.has_sign || !begins || self.is_at_leading_zero() && !self.ends_at_point() {
            return;
        }
        match (self.anchor, self.digits.sign) {
            (Some(Anchor::Before), _) => {
                self.sign_of_anchor();
                self.has_sign = true;
            }
            (Some(Anchor::After), _) => {}
            (None, sign) if self.is_bracketed => {
                self.out.push(if sign == '+' { ' ' } else { '<' });
                self.has_sign = true;
            }
            (None, '+') => {
                if !self.template.is_narrow {
                    self.out.push(' ');
                }
                self.has_sign = true;
            }
            (None, '-') => {
                self.out.push('-');
                self.has_sign = true;
            }
            (None, _) => {}
        }
    }

    /// A place for a digit or the point.
    fn digit(&mut self, is_zero: bool) {
        if self.template.is_roman {
            return;
        }
        self.in_number = false;
        self.sign_before();
        let is_before = self.place < self.digits.spaces;
        let has_zero = (self.template.first_zero).is_some_and(|at| at <= self.place);
        if is_before && !has_zero {
            if !self.template.is_narrow {
                self.out.push(' ');
            }
        } else if is_before {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.next_digit(is_zero);
        }
        let mut end = self.places
            + isize::from(self.digits.spaces > 0)
            + isize::from(self.template.has_point);
        if self.last == Some(self.next) {
            end = self.place as isize;
        }
        if self.place as isize + 1 == end {
            if self.has_sign && self.is_bracketed {
                self.out
                    .push(if self.digits.sign == '+' { ' ' } else { '>' });
            } else if self.anchor == Some(Anchor::After) {
                self.sign_of_anchor();
            }
        }
        self.place += 1;
    }

    fn next_digit(&mut self, is_zero: bool) {
        let next = self.byte(self.next);
        if next == Some(b'.') {
            if !self.ends_at_point() || self.template.is_narrow {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| self.next > last) && !is_zero {
            // A zero that is left out.
        } else if self.is_at_leading_zero() {
            if !self.template.is_narrow {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        } else {
            // Behind the last digit PostgreSQL prints the end of the text.
            self.out.push(next.map_or('\0', char::from));
            self.in_number = true;
        }
        self.next += usize::from(next.is_some());
    }

    fn blank_unless_narrow(&mut self) {
        if !self.template.is_narrow {
            self.out.push(' ');
        }
    }

    fn print(mut self) -> Result<String> {
        for part in &self.template.parts {
            match *part {
                Part::Digit { is_zero } => self.digit(is_zero),
                Part::Point => self.digit(false),
                Part::Comma if self.in_number => self.out.push(','),
                Part::Comma => self.blank_unless_narrow(),
                Part::Currency => self.out.push(' '),
                Part::Roman { is_small } => self.roman(is_small),
                Part::Ordinal { is_small } => self.ordinal(is_small)?,
                Part::Minus if self.digits.sign == '-' => self.out.push('-'),
                Part::Plus if self.digits.sign == '+' => self.out.push('+'),
                Part::Minus | Part::Plus => self.blank_unless_narrow(),
                Part::Sign => self.out.push(self.digits.sign),
                Part::Nothing => {}
                Part::Character(character) => self.out.push(character),
            }
            check_length(self.out.len())?;
        }
        if let Some(end) = self.out.find('\0') {
            self.out.truncate(end);
        }
        Ok(self.out)
    }

    fn roman(&mut self, is_small: bool) {
        let width = match self.template.is_narrow {
            true => 0,
            false => ROMAN_WIDTH,
        };
        let text = match is_small {
            true => self.digits.text.to_ascii_lowercase(),
            false => self.digits.text.clone(),
        };
        self.out.push_str(&format!("{text:>width$}"));
    }

    fn ordinal(&mut self, is_small: bool) -> Result<()> {
        let text = self.digits.text.as_bytes();
        let is_left_out = self.template.is_roman
            || text.first() == Some(&b'#')
            || self.digits.sign == '-'
            || self.template.has_point;
        if is_left_out {
            return Ok(());
        }
        let ending = match text {
            [.., b'1', b'0'..=b'9'] => "TH",
            [.., b'1'] => "ST",
            [.., b'2'] => "ND",
            [.., b'3'] => "RD",
            [.., b'0'..=b'9'] => "TH",
            _ => {
                let message = format!("\"{}\" is not a number", self.digits.text);
                return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
        };
        match is_small {
            true => self.out.push_str(&ending.to_ascii_lowercase()),
            false => self.out.push_str(ending),
        }
        Ok(())
    }
}

/// Where the last digit behind the point is that is not zero, or the point itself.
fn last_significant(text: &str) -> Option<usize> {
    let point = text.find('.')?;
    let last = text.rfind(|digit| digit != '0').unwrap_or(point);
    Some(last.max(point))
}

/// Adds one to the last of some decimal digits; whether it is carried beyond the first.
fn carries(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    true
}

/// A finite NUMERIC's digits and exponent, rounded half away from zero. As in PostgreSQL one that is
/// rounded up to 10 keeps its exponent.
fn scientific(text: &str, places: usize) -> (String, i64) {
    let digits = text.trim_start_matches('-');
    let point = digits.find('.').unwrap_or(digits.len());
    let all: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
    let first = all.iter().position(|digit| *digit != b'0');
    let exponent = first.map_or(0, |first| point as i64 - 1 - first as i64);
    let all = &all[first.unwrap_or(all.len())..];
    let mut mantissa: Vec<u8> = all.iter().copied().take(places + 1).collect();
    mantissa.resize(places + 1, b'0');
    let mut whole = 1;
    if all.get(places + 1).is_some_and(|next| *next >= b'5') && carries(&mut mantissa) {
        mantissa.insert(0, b'1');
        whole = 2;
    }
    let mut mantissa: String = mantissa.into_iter().map(char::from).collect();
    if places > 0 {
        mantissa.insert(whole, '.');
    }
    (mantissa, exponent)
}

/// A number that a template prints.
enum Printed<'a> {
    /// An INTEGER; its type's name is that of its range's error.
    Integer(i64),
    BigInt(i64),
    Numeric(&'a Number),
    /// A DOUBLE PRECISION or a REAL, with the digits that it has for certain.
    Double(f64, usize),
}

impl Printed<'_> {
    fn by(&self, text: &str) -> Result<String> {
        let mut template = Template::read(text)?;
        if template.is_scientific {
            return self.scientific(&template);
        }
        let digits = match template.is_roman {
            true => Digits::roman(self.to_roman()?),
            false => self.digits(&mut template)?,
        };
        if template.is_roman {
            template = Template {
                parts: template.parts,
                is_narrow: template.is_narrow,
                is_roman: true,
                ..Template::default()
            };
        }
        Printer::new(&template, &digits).print()
    }

    fn to_roman(&self) -> Result<Option<i64>> {
        Ok(match *self {
            Printed::Integer(number) | Printed::BigInt(number) => Some(number),
            Printed::Numeric(number) => Some(number.round(0)?.to_i32()?.into()),
            Printed::Double(number, _) => {
                let rounded = number.round_ties_even();
                (1.0..4000.0).contains(&rounded).then_some(rounded as i64)
            }
        })
    }

    fn scientific(&self, template: &Template) -> Result<String> {
        let of_number = |number: &Number| {
            let text = number.to_string();
            let (mantissa, exponent) = scientific(&text, template.fraction);
            Ok(with_exponent(&mantissa, exponent, number.is_negative()))
        };
        match *self {
            Printed::Integer(number) => Ok(scientific_double(number as f64, template.fraction)),
            Printed::BigInt(number) => of_number(&Number::from(number)),
            Printed::Numeric(number) if number.is_finite() => of_number(number),
            Printed::Double(number, _) if number.is_finite() => {
                Ok(scientific_double(number, template.fraction))
            }
            _ => Ok(template.without_exponent()),
        }
    }

    /// The digits for a template, whose `V` moves the point, and which has no more digits behind
    /// the point than a DOUBLE PRECISION has.
    fn digits(&self, template: &mut Template) -> Result<Digits> {
        let shift = template.shift;
        if template.is_shifted {
            template.whole += shift;
        }
        let factor = || Number::parse(&format!("1e{shift}"));
        let integer = |number: i64, name: &str, range: std::ops::RangeInclusive<i64>| {
            let factor = u32::try_from(shift).ok();
            let factor = factor.and_then(|shift| 10_i64.checked_pow(shift));
            let product = factor.and_then(|factor| number.checked_mul(factor));
            let product = product.filter(|product| range.contains(product));
            product.ok_or_else(|| Error::out_of_range(name))
        };
        let text = match *self {
            Printed::Integer(number) => {
                let range = i32::MIN.into()..=i32::MAX.into();
                with_zeros(integer(number, "integer", range)?, template.fraction)
            }
            Printed::BigInt(number) => with_zeros(
                integer(number, "bigint", i64::MIN..=i64::MAX)?,
                template.fraction,
            ),
            Printed::Numeric(number) => {
                let shifted = match template.is_shifted {
                    true => &number.try_mul(&factor()?)?,
                    false => number,
                };
                let places = i32::try_from(template.fraction).unwrap_or(i32::MAX);
                let rounded = shifted.round(places)?.to_string();
                match shifted.is_finite() {
                    true => with_places(rounded, template.fraction),
                    false => rounded,
                }
            }
            Printed::Double(number, certain) => {
                let shift = i32::try_from(shift).unwrap_or(i32::MAX);
                let shifted = match template.is_shifted {
                    true => number * 10_f64.powi(shift),
                    false => number,
                };
                let whole = plain_double(shifted.abs(), 0).len();
                template.fraction = template.fraction.min(certain.saturating_sub(whole));
                plain_double(shifted, template.fraction)
            }
        };
        Ok(Digits::fit(template, &text))
    }
}

/// A sign, digits as they are printed, and an exponent.
fn with_exponent(mantissa: &str, exponent: i64, is_negative: bool) -> String {
    let sign = if is_negative { '-' } else { ' ' };
    let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.abs())
}

fn scientific_double(number: f64, places: usize) -> String {
    let text = format!("{:.places$e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    with_exponent(
        mantissa,
        exponent.parse().unwrap_or(0),
        number.is_sign_negative(),
    )
}

fn plain_double(number: f64, places: usize) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        number => format!("{number:.places$}"),
    }
}

fn with_zeros(number: i64, places: usize) -> String {
    with_places(number.to_string(), places)
}

/// Digits with so many places behind the point: `round` adds none.
fn with_places(mut digits: String, places: usize) -> String {
    let known = digits.find('.').map_or(0, |point| digits.len() - point - 1);
    if known == 0 && places > 0 && !digits.contains('.') {
        digits.push('.');
    }
    digits.push_str(&"0".repeat(places.saturating_sub(known)));
    digits
}

strict! {
    OF_NUMERIC = "to_char", |heap, value, template| {
        let text = Printed::Numeric(&heap.number(value)).by(heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    OF_INTEGER = "to_char", |heap, value, template| {
        let text = Printed::Integer(value.as_i64()).by(heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    OF_BIGINT = "to_char", |heap, value, template| {
        let text = Printed::BigInt(value.as_i64()).by(heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    OF_REAL = "to_char", |heap, value, template| {
        let text = Printed::Double(value.as_f64(), REAL_DIGITS).by(heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    OF_DOUBLE = "to_char", |heap, value, template| {
        let text = Printed::Double(value.as_f64(), DOUBLE_DIGITS).by(heap.str(template))?;
        Ok(heap.push_str(&text))
    };
}

signatures! {
    "to_char"(Numeric, Text) -> Text = OF_NUMERIC;
    "to_char"(Int4, Text) -> Text = OF_INTEGER;
    "to_char"(Int8, Text) -> Text = OF_BIGINT;
    "to_char"(Real, Text) -> Text = OF_REAL;
    "to_char"(Double, Text) -> Text = OF_DOUBLE;
}
