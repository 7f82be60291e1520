//! The words in texts of dates and times.

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// 1 to 12.
    Month(u32),
    Weekday,
    /// What the next number is.
    Label(Label),
    /// `t`: a time is next.
    TimeFollows,
    Afternoon(bool),
    BeforeChrist(bool),
    /// `dst`: an hour east of what the zone says.
    Summer,
    /// `allballs`: midnight in UTC.
    Midnight,
    Epoch,
    Infinity,
    /// `now`, `today` and the like.
    Relative,
    /// `at` and `on`.
    Noise,
}

/// What a number is that a word stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// A Julian day.
    Julian,
    /// A time without colons.
    Time,
    /// Something that no number of a date is.
    Other,
}

/// The word of this name in lower case, as PostgreSQL knows it: the names of months and days also by
/// three letters, and some by four.
pub(super) fn word(name: &str) -> Option<Word> {
    Some(match name {
        "jan" | "january" => Word::Month(1),
        "feb" | "february" => Word::Month(2),
        "mar" | "march" => Word::Month(3),
        "apr" | "april" => Word::Month(4),
        "may" => Word::Month(5),
        "jun" | "june" => Word::Month(6),
        "jul" | "july" => Word::Month(7),
        "aug" | "august" => Word::Month(8),
        "sep" | "sept" | "september" => Word::Month(9),
        "oct" | "october" => Word::Month(10),
        "nov" | "november" => Word::Month(11),
        "dec" | "december" => Word::Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds"
        | "wednesday" | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat"
        | "saturday" => Word::Weekday,
        "y" => Word::Label(Label::Year),
        "m" => Word::Label(Label::Month),
        "d" => Word::Label(Label::Day),
        "h" => Word::Label(Label::Hour),
        "mm" => Word::Label(Label::Minute),
        "s" => Word::Label(Label::Second),
        "j" | "jd" | "julian" => Word::Label(Label::Julian),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Label(Label::Other),
        "t" => Word::TimeFollows,
        "am" => Word::Afternoon(false),
        "pm" => Word::Afternoon(true),
        "ad" => Word::BeforeChrist(false),
        "bc" => Word::BeforeChrist(true),
        "dst" => Word::Summer,
        "allballs" => Word::Midnight,
        "epoch" => Word::Epoch,
        "infinity" => Word::Infinity,
        "now" | "today" | "tomorrow" | "yesterday" => Word::Relative,
        "at" | "on" => Word::Noise,
        _ => return None,
    })
}
