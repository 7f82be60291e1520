//! What the pieces of a text of a date or time say, as PostgreSQL has it (`DecodeDateTime` and
//! `DecodeTimeOnly`): each sets some fields, and no field is set twice.

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
    civil_from_days, days_from_civil, days_in_month, time_of_day,
};
use super::field::EPOCH_JULIAN_DAY;
use super::input::{Fault, Moment};
use super::input_pieces::{Piece, PieceKind, Pieces};
use super::input_words::{Label, Word, word};
use super::zone::Zone;

type Read<T> = std::result::Result<T, Fault>;

/// The largest displacement from UTC, in hours.
const ZONE_HOUR_MAX: i64 = 15;

const YEAR: u32 = 1 << 0;
const MONTH: u32 = 1 << 1;
const DAY: u32 = 1 << 2;
const DAY_OF_YEAR: u32 = 1 << 3;
const HOUR: u32 = 1 << 4;
const MINUTE: u32 = 1 << 5;
const SECOND: u32 = 1 << 6;
const FRACTION: u32 = 1 << 7;
const ZONE: u32 = 1 << 8;
/// A zone that is one of summer, or is made one.
const SUMMER: u32 = 1 << 9;
/// `dst`.
const MADE_SUMMER: u32 = 1 << 10;
const HALF_OF_DAY: u32 = 1 << 11;
const ERA: u32 = 1 << 12;
const WEEKDAY: u32 = 1 << 13;
const SPECIAL: u32 = 1 << 14;
/// An abbreviation that means what it meant at the date.
const DATED_ZONE: u32 = 1 << 15;

const DATE: u32 = YEAR | MONTH | DAY;
const TIME: u32 = HOUR | MINUTE | SECOND | FRACTION;

/// A moment that is said by a word.
#[derive(Clone, Copy)]
enum Special {
    Epoch,
    Infinity,
    MinusInfinity,
}

/// What was read so far.
#[derive(Default)]
struct Decoder {
    /// The fields that are set.
    set: u32,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// Microseconds.
    fraction: i64,
    /// Seconds west of UTC.
    west: i64,
    /// A zone whose displacement depends on the date, and whether it has its full name.
    zone: Option<(Zone, bool)>,
    has_month_name: bool,
    /// The year has one digit or two.
    is_short_year: bool,
    is_julian: bool,
    before_christ: bool,
    afternoon: Option<bool>,
    /// What the next number is.
    label: Option<Label>,
    special: Option<Special>,
}

/// The integer at the beginning of a text, and the rest; 0 where there is none.
fn leading(text: &str) -> Read<(i64, &str)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Ok((0, text));
    }
    let (number, rest) = text.split_at(text.len() - unsigned.len() + digits);
    let number: i32 = number.parse().map_err(|_| Fault::FieldRange)?;
    Ok((number.into(), rest))
}

/// Digits as a number, which they are.
fn digits(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

/// Microseconds of `.25`.
fn fraction_of(text: &str) -> Read<i64> {
    let digits = text.strip_prefix('.').ok_or(Fault::Syntax)?;
    match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(fraction_microseconds(digits)),
        false => Err(Fault::Syntax),
    }
}

/// Microseconds of a fraction's digits, rounded as PostgreSQL rounds them.
fn fraction_microseconds(digits: &str) -> i64 {
    // A fraction of digits always parses.
    let fraction: f64 = format!("0.{digits}0").parse().unwrap_or(0.0);
    (fraction * 1e6).round_ties_even() as i64
}

/// `:30` or `:30:15`: its parts, where it has them, and what is behind.
fn parts_behind(mut rest: &str) -> Read<([i64; 2], &str)> {
    let mut parts = [0; 2];
    for part in &mut parts {
        let Some(behind) = rest.strip_prefix(':') else {
            break;
        };
        (*part, rest) = leading(behind).map_err(|_| Fault::Zone)?;
    }
    Ok((parts, rest))
}

/// Seconds west of UTC of `02`, `0830`, `05:30` or `05:30:15`, behind its sign.
fn offset(text: &str, is_negative: bool) -> Read<i64> {
    let (mut hour, rest) = leading(text).map_err(|_| Fault::Zone)?;
    let ([mut minute, second], behind) = parts_behind(rest)?;
    if rest.is_empty() && text.len() > 2 {
        (hour, minute) = (hour / 100, hour % 100);
    }
    let in_range = (0..=ZONE_HOUR_MAX).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !in_range {
        return Err(Fault::Zone);
    }
    if !behind.is_empty() {
        return Err(Fault::Syntax);
    }
    let displacement = (hour * 60 + minute) * 60 + second;
    Ok(if is_negative {
        displacement
    } else {
        -displacement
    })
}

/// The zone of a full name.
fn named(name: &str) -> Option<Zone> {
    Zone::of_setting(name).ok().map(|(zone, _)| zone)
}

/// Whether an abbreviation is one of summer.
fn is_of_summer(abbreviation: &str) -> bool {
    abbreviation.ends_with("dt") || matches!(abbreviation, "bst" | "cest" | "eest" | "west")
}

/// What a text of a date or a timestamp says; it is in lower case.
pub(super) fn moment(text: &str) -> Read<Moment> {
    let pieces = Pieces::of(text)?;
    let mut decoder = Decoder::default();
    let all = pieces.as_slice();
    for (at, piece) in all.iter().enumerate() {
        let set = match piece.kind {
            PieceKind::Date => decoder.date_piece(piece.text)?,
            PieceKind::Time => decoder.time_piece(piece.text, true)?,
            PieceKind::Offset => decoder.offset_piece(*piece)?,
            PieceKind::Number => match decoder.label.take() {
                Some(label) => decoder.labelled(label, piece.text)?,
                None => decoder.number_piece(piece.text)?,
            },
            PieceKind::Word | PieceKind::SignedWord => {
                match decoder.word_piece(*piece, all.get(at + 1), false)? {
                    Some(set) => set,
                    None => continue,
                }
            }
        };
        decoder.take(set)?;
    }
    decoder.finish()
}

/// The time of a text of one, which is in lower case.
pub(super) fn time(text: &str) -> Read<i64> {
    let pieces = Pieces::of(text)?;
    let mut decoder = Decoder::default();
    let all = pieces.as_slice();
    for (at, piece) in all.iter().enumerate() {
        let set = match piece.kind {
            PieceKind::Date => {
                let has_date = at == 0
                    && all.len() >= 2
                    && (all[all.len() - 1].kind == PieceKind::Date
                        || all[1].kind == PieceKind::Time);
                match has_date {
                    true => decoder.date(piece.text)?,
                    false => decoder.time_or_zone(piece.text, true)?,
                }
            }
            PieceKind::Time => decoder.time_piece(piece.text, false)?,
            PieceKind::Offset => decoder.offset_piece(*piece)?,
            PieceKind::Number => match decoder.label.take() {
                Some(label) => decoder.labelled(label, piece.text)?,
                None => {
                    let before_date =
                        at == 0 && all.last().map(|it| it.kind) == Some(PieceKind::Date);
                    decoder.number_of_time(piece.text, before_date)?
                }
            },
            PieceKind::Word | PieceKind::SignedWord => {
                match decoder.word_piece(*piece, all.get(at + 1), true)? {
                    Some(set) => set,
                    None => continue,
                }
            }
        };
        decoder.take(set)?;
    }
    decoder.finish_time()
}

impl Decoder {
    fn has(&self, fields: u32) -> bool {
        self.set & fields == fields
    }

    /// Notes fields that were set, each of which is set once.
    fn take(&mut self, fields: u32) -> Read<()> {
        if self.set & fields != 0 {
            return Err(Fault::Syntax);
        }
        self.set |= fields;
        Ok(())
    }

    /// A piece with separators: a date, or after one a time with its displacement, or a zone.
    fn date_piece(&mut self, text: &str) -> Read<u32> {
        match self.label {
            Some(Label::Julian) => {
                self.label = None;
                let (day, rest) = leading(text)?;
                let is_negative = rest.starts_with('-');
                let behind = rest.strip_prefix(['-', '+']).ok_or(Fault::Syntax)?;
                self.julian_day(day)?;
                self.west = offset(behind, is_negative)?;
                Ok(DATE | TIME | ZONE)
            }
            Some(label) => match label {
                Label::Time => {
                    self.label = None;
                    self.time_with_offset(text, false)
                }
                _ => Err(Fault::Syntax),
            },
            None if self.has(MONTH | DAY) => self.time_or_zone(text, false),
            None => self.date(text),
        }
    }

    /// `hhmmss-zz`, or the name of a zone.
    fn time_or_zone(&mut self, text: &str, has_date: bool) -> Read<u32> {
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            let zone = named(text).ok_or(Fault::UnknownZone)?;
            self.zone = Some((zone, true));
            return Ok(ZONE);
        }
        self.time_with_offset(text, has_date)
    }

    /// `hhmmss-zz`.
    fn time_with_offset(&mut self, text: &str, has_date: bool) -> Read<u32> {
        if self.has(TIME) {
            return Err(Fault::Syntax);
        }
        let (time, behind) = text.split_once('-').ok_or(Fault::Syntax)?;
        self.west = offset(behind, true)?;
        let set = self.run_together(time, has_date)?;
        Ok(set | ZONE)
    }

    /// `2020-01-02`, `1/2/2020` or `2-jan-2020`.
    fn date(&mut self, text: &str) -> Read<u32> {
        const PARTS_MAX: usize = 25;
        let mut parts: [&str; PARTS_MAX] = [""; PARTS_MAX];
        let (mut count, mut rest) = (0, text);
        while !rest.is_empty() && count < PARTS_MAX {
            rest = rest.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
            let Some(first) = rest.bytes().next() else {
                return Err(Fault::Syntax);
            };
            let length = match first.is_ascii_digit() {
                true => rest.bytes().take_while(u8::is_ascii_digit).count(),
                false => rest.bytes().take_while(u8::is_ascii_alphabetic).count(),
            };
            parts[count] = &rest[..length];
            count += 1;
            // What separates it from the next one, whatever that is.
            rest = rest.get(length + 1..).unwrap_or_default();
        }
        let (mut set, mut has_month_name) = (0, false);
        let before = self.set;
        let mut note = |decoder: &mut Decoder, field: u32| {
            decoder.take(field)?;
            set |= field;
            Ok(())
        };
        for part in &mut parts[..count] {
            if part.starts_with(|first: char| first.is_ascii_alphabetic()) {
                match word(part) {
                    Some(Word::Noise) => {}
                    Some(Word::Month(month)) => {
                        self.month = month.into();
                        has_month_name = true;
                        note(self, MONTH)?;
                    }
                    _ => return Err(Fault::Syntax),
                }
                *part = "";
            }
        }
        for part in parts[..count].iter().filter(|part| !part.is_empty()) {
            let field = self.number(part, has_month_name)?;
            note(self, field)?;
        }
        let is_whole = self.set & !(DAY_OF_YEAR | ZONE) == DATE;
        self.set = before;
        match is_whole {
            true => Ok(set),
            false => Err(Fault::Syntax),
        }
    }

    /// A single number, whose place says what it is.
    fn number(&mut self, text: &str, has_month_name: bool) -> Read<u32> {
        let (value, rest) = leading(text)?;
        let length = text.len() - rest.len();
        if length == 0 {
            return Err(Fault::Syntax);
        }
        if rest.starts_with('.') {
            if length > 2 {
                return self.run_together(text, true);
            }
            self.fraction = fraction_of(rest)?;
        } else if !rest.is_empty() {
            return Err(Fault::Syntax);
        }
        if text.len() == 3 && self.set & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let is_long = text.len() >= 3;
        let field = match self.set & DATE {
            0 if is_long => YEAR,
            MONTH if has_month_name && is_long => YEAR,
            0 | YEAR | DAY => MONTH,
            MONTH => DAY,
            fields if fields == YEAR | MONTH => {
                if has_month_name && is_long && self.is_short_year {
                    // What was taken for the year is the day.
                    self.day = self.year;
                    self.year = value;
                    self.is_short_year = false;
                    return Ok(DAY);
                }
                DAY
            }
            fields if fields == MONTH | DAY => YEAR,
            DATE => return self.run_together(text, false),
            _ => return Err(Fault::Syntax),
        };
        match field {
            YEAR => {
                self.year = value;
                self.is_short_year = text.len() <= 2;
            }
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(field)
    }

    /// `20200102`, or once there is a date `0304` or `030405` with a fraction.
    fn run_together(&mut self, text: &str, has_date: bool) -> Read<u32> {
        let (text, has_fraction) = match text.split_once('.') {
            Some((before, fraction)) => {
                let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
                self.fraction = fraction_microseconds(&fraction[..end]);
                (before, true)
            }
            None => (text, false),
        };
        let length = text.len();
        if !has_fraction && !has_date && !self.has(DATE) && length >= 6 {
            let (year, month_day) = text.split_at(length - 4);
            self.year = leading(year)?.0;
            self.month = digits(&month_day[..2]);
            self.day = digits(&month_day[2..]);
            if year.len() == 2 {
                self.is_short_year = true;
            }
            return Ok(DATE);
        }
        if self.has(TIME) || !matches!(length, 4 | 6) {
            return Err(Fault::Syntax);
        }
        let part = |from: usize| text.get(from..from + 2).map_or(0, digits);
        (self.hour, self.minute, self.second) = (part(0), part(2), part(4));
        Ok(TIME)
    }

    /// `03:04`, `03:04:05` or `03:04:05.678`.
    fn time_piece(&mut self, text: &str, is_checked: bool) -> Read<u32> {
        if is_checked
            && let Some(label) = self.label.take()
            && label != Label::Time
        {
            return Err(Fault::Syntax);
        }
        let (hour, rest) = leading(text)?;
        let rest = rest.strip_prefix(':').ok_or(Fault::Syntax)?;
        let (minute, rest) = leading(rest)?;
        (self.hour, self.minute, self.second) = (hour, minute, 0);
        self.fraction = 0;
        if rest.starts_with('.') {
            // Minutes and seconds.
            self.fraction = fraction_of(rest)?;
            (self.hour, self.minute, self.second) = (0, hour, minute);
        } else if let Some(rest) = rest.strip_prefix(':') {
            let (second, rest) = leading(rest)?;
            self.second = second;
            if !rest.is_empty() {
                self.fraction = fraction_of(rest)?;
            }
        } else if !rest.is_empty() {
            return Err(Fault::Syntax);
        }
        let in_range = (0..60).contains(&self.minute) && (0..=60).contains(&self.second);
        if !in_range || self.hour < 0 || is_checked && self.is_beyond_day() {
            return Err(Fault::FieldRange);
        }
        Ok(TIME)
    }

    fn offset_piece(&mut self, piece: Piece<'_>) -> Read<u32> {
        self.west = offset(piece.text, piece.is_negative)?;
        Ok(ZONE)
    }

    /// A number of a date or a timestamp.
    fn number_piece(&mut self, text: &str) -> Read<u32> {
        let point = text.find('.');
        let has_date = self.set & DATE != 0;
        match point {
            Some(_) if !has_date => self.date(text),
            Some(before) if before > 2 => self.run_together(text, false),
            // Six digits are a date or a time, but for a year at the end.
            _ if text.len() >= 6 && (!has_date || self.set & TIME == 0) => {
                self.run_together(text, false)
            }
            _ => self.number(text, self.has_month_name),
        }
    }

    /// A number of a time.
    fn number_of_time(&mut self, text: &str, before_date: bool) -> Read<u32> {
        match text.find('.') {
            Some(_) if before_date => self.date(text),
            Some(before) if before > 2 => self.run_together(text, true),
            Some(_) => Err(Fault::Syntax),
            None if text.len() > 4 => self.run_together(text, true),
            None => {
                let known = self.set;
                self.set |= DATE;
                let set = self.number(text, false);
                self.set = known;
                set
            }
        }
    }

    /// A number behind a word that says what it is.
    fn labelled(&mut self, label: Label, text: &str) -> Read<u32> {
        self.special = None;
        let (value, rest) = leading(text)?;
        let takes_fraction = matches!(label, Label::Julian | Label::Time | Label::Second);
        if !(rest.is_empty() || rest.starts_with('.') && takes_fraction) {
            return Err(Fault::Syntax);
        }
        Ok(match label {
            Label::Year => {
                self.year = value;
                YEAR
            }
            Label::Month if self.has(MONTH | HOUR) => {
                self.minute = value;
                MINUTE
            }
            Label::Month => {
                self.month = value;
                MONTH
            }
            Label::Day => {
                self.day = value;
                DAY
            }
            Label::Hour => {
                self.hour = value;
                HOUR
            }
            Label::Minute => {
                self.minute = value;
                MINUTE
            }
            Label::Second => {
                self.second = value;
                match rest.is_empty() {
                    true => SECOND,
                    false => {
                        self.fraction = fraction_of(rest)?;
                        SECOND | FRACTION
                    }
                }
            }
            Label::Julian => {
                self.julian_day(value)?;
                let Some(digits) = rest.strip_prefix('.') else {
                    return Ok(DATE);
                };
                let fraction: f64 = format!("0.{digits}0").parse().map_err(|_| Fault::Syntax)?;
                let time = time_of_day((fraction * MICROSECONDS_PER_DAY as f64) as i64);
                self.hour = time.hour.into();
                self.minute = time.minute.into();
                self.second = time.second.into();
                self.fraction = time.microsecond.into();
                DATE | TIME
            }
            Label::Time => match self.run_together(text, true)? {
                TIME => TIME,
                _ => return Err(Fault::Syntax),
            },
            Label::Other => return Err(Fault::Syntax),
        })
    }

    fn julian_day(&mut self, day: i64) -> Read<()> {
        if day < 0 {
            return Err(Fault::FieldRange);
        }
        let civil = civil_from_days(day - EPOCH_JULIAN_DAY);
        (self.year, self.month) = (civil.year.into(), civil.month.into());
        self.day = civil.day.into();
        self.is_julian = true;
        Ok(())
    }

    /// A word; `None` for one that says nothing.
    fn word_piece(
        &mut self,
        piece: Piece<'_>,
        next: Option<&Piece<'_>>,
        is_time: bool,
    ) -> Read<Option<u32>> {
        let name = piece.text;
        let is_signed = piece.kind == PieceKind::SignedWord;
        if is_signed {
            // `+infinity` is none of PostgreSQL 15.
            return match name == "infinity" && !is_time {
                true => Ok(Some(self.special(match piece.is_negative {
                    true => Special::MinusInfinity,
                    false => Special::Infinity,
                }))),
                false => Err(Fault::Syntax),
            };
        }
        if let Some(zone) = Zone::abbreviated(name) {
            return Ok(Some(match zone {
                Zone::Fixed(east) => {
                    self.west = -east / MICROSECONDS_PER_SECOND;
                    match is_of_summer(name) {
                        true => ZONE | SUMMER,
                        false => ZONE,
                    }
                }
                zone => {
                    self.zone = Some((zone, false));
                    ZONE | DATED_ZONE
                }
            }));
        }
        let Some(word) = word(name) else {
            let zone = named(name).ok_or(Fault::Syntax)?;
            self.zone = Some((zone, true));
            return Ok(Some(ZONE));
        };
        Ok(Some(match word {
            Word::Noise => return Ok(None),
            Word::Relative if is_time && name != "now" => return Err(Fault::Syntax),
            Word::Relative => return Err(Fault::Relative),
            Word::Month(_) | Word::Weekday | Word::Epoch | Word::Infinity if is_time => {
                return Err(Fault::Syntax);
            }
            Word::Month(month) => {
                let mut set = MONTH;
                // The number before it was taken for the month, and is the day.
                if self.has(MONTH)
                    && !self.has_month_name
                    && !self.has(DAY)
                    && (1..=31).contains(&self.month)
                {
                    self.day = self.month;
                    set = DAY;
                }
                self.has_month_name = true;
                self.month = month.into();
                set
            }
            Word::Weekday => WEEKDAY,
            Word::Label(label) => {
                self.label = Some(label);
                0
            }
            Word::TimeFollows => {
                let is_time_next = next.is_some_and(|next| {
                    matches!(
                        next.kind,
                        PieceKind::Number | PieceKind::Time | PieceKind::Date
                    )
                });
                if !is_time_next || !is_time && !self.has(DATE) {
                    return Err(Fault::Syntax);
                }
                self.label = Some(Label::Time);
                0
            }
            Word::Afternoon(afternoon) => {
                self.afternoon = Some(afternoon);
                HALF_OF_DAY
            }
            Word::BeforeChrist(before) => {
                self.before_christ = before;
                ERA
            }
            Word::Summer => {
                self.west -= 3_600;
                MADE_SUMMER | SUMMER
            }
            Word::Midnight => {
                (self.hour, self.minute, self.second) = (0, 0, 0);
                self.west = 0;
                self.special = None;
                TIME | ZONE
            }
            Word::Epoch => self.special(Special::Epoch),
            Word::Infinity => self.special(Special::Infinity),
        }))
    }

    fn special(&mut self, special: Special) -> u32 {
        self.special = Some(special);
        SPECIAL
    }

    /// Checks the date, and makes its year one of the calendar.
    fn check_date(&mut self) -> Read<()> {
        if self.has(YEAR) && !self.is_julian {
            let expands = self.is_short_year && !self.before_christ;
            if self.year < 0 || self.year == 0 && !expands {
                return Err(Fault::FieldRange);
            }
            if self.before_christ {
                self.year = 1 - self.year;
            } else if expands {
                self.year += match self.year {
                    0..70 => 2_000,
                    70..100 => 1_900,
                    _ => 0,
                };
            }
        }
        if self.has(DAY_OF_YEAR) {
            let first = days_from_civil(self.year, 1, 1);
            let civil = civil_from_days(first + self.day_of_year - 1);
            (self.year, self.month) = (civil.year.into(), civil.month.into());
            self.day = civil.day.into();
        }
        let wrong_month = self.has(MONTH) && !(1..=12).contains(&self.month);
        if wrong_month || self.has(DAY) && !(1..=31).contains(&self.day) {
            return Err(Fault::FieldRangeOrOrder);
        }
        if self.has(DATE) && self.day > days_in_month(self.year, self.month as u32).into() {
            return Err(Fault::FieldRange);
        }
        Ok(())
    }

    fn apply_half_of_day(&mut self) -> Read<()> {
        match self.afternoon {
            Some(_) if self.hour > 12 => return Err(Fault::FieldRange),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        Ok(())
    }

    /// Microseconds since midnight.
    fn time_of_day(&self) -> i64 {
        self.hour * MICROSECONDS_PER_HOUR
            + self.minute * MICROSECONDS_PER_MINUTE
            + self.second * MICROSECONDS_PER_SECOND
            + self.fraction
    }

    fn is_beyond_day(&self) -> bool {
        self.hour > 24
            || !(0..60).contains(&self.minute)
            || !(0..=60).contains(&self.second)
            || self.time_of_day() > MICROSECONDS_PER_DAY
    }

    /// The zone that was said, if one was.
    fn zone(&mut self) -> Read<Option<Zone>> {
        match self.zone.take() {
            Some(_) if self.has(MADE_SUMMER) => Err(Fault::Syntax),
            Some((zone, _)) => Ok(Some(zone)),
            None if self.has(ZONE) => Ok(Some(Zone::Fixed(-self.west * MICROSECONDS_PER_SECOND))),
            None if self.has(MADE_SUMMER) => Err(Fault::Syntax),
            None => Ok(None),
        }
    }

    fn finish(mut self) -> Read<Moment> {
        self.check_date()?;
        self.apply_half_of_day()?;
        match self.special {
            Some(Special::Epoch) => return Ok(Moment::EPOCH),
            Some(Special::Infinity) => return Ok(Moment::Infinity),
            Some(Special::MinusInfinity) => return Ok(Moment::MinusInfinity),
            None => {}
        }
        if !self.has(DATE) {
            return Err(Fault::Syntax);
        }
        Ok(Moment::Finite {
            days: days_from_civil(self.year, self.month as u32, self.day),
            time: self.time_of_day(),
            zone: self.zone()?,
        })
    }

    fn finish_time(mut self) -> Read<i64> {
        self.check_date()?;
        self.apply_half_of_day()?;
        if self.is_beyond_day() {
            return Err(Fault::FieldRange);
        }
        if !self.has(TIME) {
            return Err(Fault::Syntax);
        }
        let has_full_name = matches!(self.zone, Some((_, true)));
        let zone = self.zone()?;
        // When it is says how far it is from UTC.
        match has_full_name && !self.has(DATE) && zone.is_some_and(|zone| zone.changes()) {
            true => Err(Fault::Syntax),
            false => Ok(self.time_of_day()),
        }
    }
}
