//! Functions over regular expressions.
//!
//! A match is PostgreSQL's: the one that begins first, and of those the longest, or the shortest
//! when the pattern's first quantifier is not greedy. What was compiled is kept for each thread.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, meta};

use super::array::check_elements;
use super::cast::strict;
use super::pattern::{Translated, invalid, similar, similar_parts, translate};
use super::{Named, check_length, signatures};

/// The most bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 1 << 19;

/// The most bytes of what is found out about a pattern while it is matched.
const CACHE_BYTES_MAX: usize = 1 << 18;

/// How many compiled patterns a thread keeps, as in PostgreSQL.
const KEPT_MAX: usize = 32;

/// A compiled pattern.
struct Compiled {
    pattern: String,
    flags: String,
    translated: Translated,
    /// Finds where the first match begins.
    first: meta::Regex,
    /// Finds the longest match from there on; made when it is first asked for.
    longest: OnceCell<meta::Regex>,
}

thread_local! {
    /// The patterns that were used last, the latest at the end.
    static KEPT: RefCell<Vec<Rc<Compiled>>> = const { RefCell::new(Vec::new()) };
}

fn compiled(pattern: &str, flags: &str) -> Result<Rc<Compiled>> {
    KEPT.with_borrow_mut(|kept| {
        let is_known = |one: &Rc<Compiled>| one.pattern == pattern && one.flags == flags;
        if let Some(at) = kept.iter().rposition(is_known) {
            let known = kept.remove(at);
            kept.push(known.clone());
            return Ok(known);
        }
        let new = Rc::new(compile(pattern, flags)?);
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(new.clone());
        Ok(new)
    })
}

fn compile(pattern: &str, flags: &str) -> Result<Compiled> {
    let translated = translate(pattern, flags)?;
    Ok(Compiled {
        pattern: pattern.to_owned(),
        flags: flags.to_owned(),
        first: build(&translated.text, MatchKind::LeftmostFirst)?,
        longest: OnceCell::new(),
        translated,
    })
}

fn build(pattern: &str, kind: MatchKind) -> Result<meta::Regex> {
    let config = meta::Config::new()
        .match_kind(kind)
        .nfa_size_limit(Some(COMPILED_BYTES_MAX))
        .hybrid_cache_capacity(CACHE_BYTES_MAX);
    meta::Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(250))
        .build(pattern)
        .map_err(|error| match error.size_limit() {
            Some(_) => invalid("regular expression is too complex"),
            None => invalid("invalid pattern"),
        })
}

impl Compiled {
    /// Refuses to say which part of a text matches.
    fn check_extent(&self) -> Result<()> {
        match self.translated.is_mixed {
            false => Ok(()),
            true => Err(Error::unsupported(
                "a part that matches a regular expression with greedy and other quantifiers is not \
                 supported",
            )),
        }
    }

    /// The first match in `text` from the byte `start` on, with its groups.
    ///
    /// # Errors
    /// 2201B when the pattern is too complex.
    fn find(
        &self,
        text: &str,
        start: usize,
        groups: &mut Captures,
    ) -> Result<Option<Range<usize>>> {
        let input = Input::new(text).range(start..);
        if self.translated.is_shortest {
            self.first.captures(input, groups);
        } else {
            let Some(found) = self.first.find(input) else {
                return Ok(None);
            };
            let longest = match self.longest.get() {
                Some(longest) => longest,
                None => {
                    let built = build(&self.translated.text, MatchKind::All)?;
                    self.longest.get_or_init(|| built)
                }
            };
            let input = Input::new(text)
                .range(found.start()..)
                .anchored(Anchored::Yes);
            longest.captures(input, groups);
        }
        Ok(groups.get_match().map(|found| found.range()))
    }

    fn is_match(&self, text: &str) -> bool {
        self.first.is_match(text)
    }

    fn groups(&self) -> Captures {
        self.first.create_captures()
    }
}

/// Says how long it takes to look for a pattern in a text.
/// What a byte takes that an expression looks at, as bytes that are copied.
const WORK_PER_BYTE: usize = 16;

fn spend(heap: &mut Heap, text: Slot) -> Result<()> {
    heap.spend(text.span().1.saturating_mul(WORK_PER_BYTE))
}

fn matches(heap: &mut Heap, text: Slot, pattern: Slot, flags: &str) -> Result<Slot> {
    spend(heap, text)?;
    let compiled = compiled(heap.str(pattern), flags)?;
    Ok(Slot::from_bool(compiled.is_match(heap.str(text))))
}

/// Whether a text matches a regular expression with the flags of SQL/JSON's `like_regex`, where a
/// point and what excludes characters do not match a line's end without `s`.
pub(super) fn is_like_regex(text: &str, pattern: &str, flags: &str) -> Result<bool> {
    let has = |flag| flags.contains(flag);
    let mut options = String::new();
    if has('q') {
        options.push('q');
    } else {
        options.push(match (has('m'), has('s')) {
            (false, false) => 'p',
            (true, false) => 'n',
            (false, true) => 's',
            (true, true) => 'w',
        });
    }
    if has('i') {
        options.push('i');
    }
    Ok(compiled(pattern, &options)?.is_match(text))
}

/// The letters of `flags` that are options of the pattern, and whether there is a `g`.
fn split_flags(flags: &str) -> Result<(String, bool)> {
    let mut options = String::new();
    for letter in flags.chars() {
        match letter {
            'g' => {}
            'b' | 'c' | 'e' | 'i' | 'm' | 'n' | 'p' | 'q' | 's' | 't' | 'w' | 'x' => {
                options.push(letter);
            }
            other => {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        }
    }
    Ok((options, flags.contains('g')))
}

/// Which matches [`replace`] replaces.
#[derive(Clone, Copy)]
struct Replaced {
    /// The character to begin with, from 1.
    start: i64,
    /// The number of the match, from 1; 0 for all. `None`: the first, or all with the flag `g`.
    number: Option<i64>,
}

impl Replaced {
    const BY_FLAGS: Replaced = Replaced {
        start: 1,
        number: None,
    };
}

/// Replaces matches.
fn replace(
    text: &str,
    pattern: &str,
    replacement: &str,
    flags: &str,
    which: Replaced,
) -> Result<String> {
    let (options, is_global) = split_flags(flags)?;
    let mut start = place_of(text, which.start)?;
    let number = which.number.unwrap_or(i64::from(!is_global));
    if number < 0 {
        return Err(out_of_range("n", number));
    }
    let compiled = compiled(pattern, &options)?;
    compiled.check_extent()?;
    let mut groups = compiled.groups();
    let mut result = String::with_capacity(text.len());
    let (mut copied, mut count) = (0, 0);
    while start <= text.len()
        && let Some(found) = compiled.find(text, start, &mut groups)?
    {
        count += 1;
        start = after(text, &found);
        if number == 0 || number == count {
            result.push_str(&text[copied..found.start]);
            push_replacement(&mut result, replacement, text, &groups);
            check_length(result.len())?;
            copied = found.end;
        }
        if number == count {
            break;
        }
    }
    result.push_str(&text[copied..]);
    check_length(result.len())?;
    Ok(result)
}

fn out_of_range(parameter: &str, value: i64) -> Error {
    let message = format!("invalid value for parameter \"{parameter}\": {value}");
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Where the character of a number begins, from 1; one past the end where there are fewer.
fn place_of(text: &str, number: i64) -> Result<usize> {
    if number < 1 {
        return Err(out_of_range("start", number));
    }
    let skipped = usize::try_from(number - 1).unwrap_or(usize::MAX);
    let place = text.char_indices().map(|(at, _)| at).nth(skipped);
    Ok(place.unwrap_or(match text.chars().count() == skipped {
        true => text.len(),
        false => text.len() + 1,
    }))
}

/// What `regexp_count`, `regexp_instr` and `regexp_substr` look for.
struct Search<'a> {
    name: &'static str,
    start: i64,
    /// The number of the match, from 1.
    number: i64,
    flags: &'a str,
    /// The group; 0 for the whole match.
    group: i64,
}

impl Search<'_> {
    /// Calls `meet` with the groups of each match until it says that it has seen enough.
    fn run(
        &self,
        text: &str,
        pattern: &str,
        mut meet: impl FnMut(&Captures) -> bool,
    ) -> Result<()> {
        let mut start = place_of(text, self.start)?;
        if self.number < 1 {
            return Err(out_of_range("n", self.number));
        }
        if self.group < 0 {
            return Err(out_of_range("subexpr", self.group));
        }
        let (options, is_global) = split_flags(self.flags)?;
        if is_global {
            let message = format!("{}() does not support the \"global\" option", self.name);
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let compiled = compiled(pattern, &options)?;
        compiled.check_extent()?;
        let mut groups = compiled.groups();
        while start <= text.len()
            && let Some(found) = compiled.find(text, start, &mut groups)?
        {
            if meet(&groups) {
                break;
            }
            start = after(text, &found);
        }
        Ok(())
    }

    /// The part that is looked for.
    fn find(&self, text: &str, pattern: &str) -> Result<Option<Range<usize>>> {
        let (mut part, mut count) = (None, 0);
        self.run(text, pattern, |groups| {
            count += 1;
            let group = usize::try_from(self.group).unwrap_or(usize::MAX);
            if count == self.number && group < groups.group_len() {
                part = groups.get_group(group).map(|span| span.range());
            }
            count == self.number
        })?;
        Ok(part)
    }

    fn count(&self, text: &str, pattern: &str) -> Result<Slot> {
        let mut count = 0;
        self.run(text, pattern, |_| {
            count += 1;
            false
        })?;
        Ok(Slot::from_i64(count))
    }

    /// The number of the character where the part begins, or that behind it; 0 without one.
    fn place(&self, text: &str, pattern: &str, end: i64) -> Result<Slot> {
        if !(0..=1).contains(&end) {
            return Err(out_of_range("endoption", end));
        }
        let part = self.find(text, pattern)?;
        Ok(Slot::from_i64(part.map_or(0, |part| {
            let before = if end == 1 { part.end } else { part.start };
            text[..before].chars().count() as i64 + 1
        })))
    }
}

/// Where to look for the next match.
fn after(text: &str, found: &Range<usize>) -> usize {
    match found.is_empty() {
        false => found.end,
        true => {
            let next = text[found.end..].chars().next();
            found.end + next.map_or(1, char::len_utf8)
        }
    }
}

/// `\1` to `\9` are groups and `\&` the whole match.
fn push_replacement(result: &mut String, replacement: &str, text: &str, groups: &Captures) {
    let mut letters = replacement.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            result.push(letter);
            continue;
        }
        let group = match letters.next() {
            Some('&') => Some(0),
            Some(digit @ '1'..='9') => digit.to_digit(10).map(|digit| digit as usize),
            Some('\\') | None => {
                result.push('\\');
                continue;
            }
            Some(other) => {
                result.push('\\');
                result.push(other);
                continue;
            }
        };
        if let Some(span) = group.and_then(|group| groups.get_group(group)) {
            result.push_str(&text[span.range()]);
        }
    }
}

/// The groups of the first match, or the match itself where there are none, as an array.
fn first_match(heap: &mut Heap, text: Slot, pattern: Slot, flags: &str) -> Result<Slot> {
    let (options, is_global) = split_flags(flags)?;
    if is_global {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "regexp_match() does not support the \"global\" option",
        )
        .with_hint("Use the regexp_matches function instead."));
    }
    spend(heap, text)?;
    let compiled = compiled(heap.str(pattern), &options)?;
    compiled.check_extent()?;
    let whole = heap.str(text).to_owned();
    let mut groups = compiled.groups();
    if compiled.find(&whole, 0, &mut groups)?.is_none() {
        return Ok(Slot::NULL);
    }
    Ok(parts(heap, &whole, &groups))
}

/// The groups of a match, or the match itself where there are none, as an array.
fn parts(heap: &mut Heap, whole: &str, groups: &Captures) -> Slot {
    let first = usize::from(groups.group_len() > 1);
    let parts: Vec<Slot> = (first..groups.group_len())
        .map(|group| match groups.get_group(group) {
            Some(span) => heap.push_str(&whole[span.range()]),
            None => Slot::NULL,
        })
        .collect();
    heap.push_array(&parts)
}

/// The groups of the first match, or of all, as an array of arrays.
fn all_matches(heap: &mut Heap, text: Slot, pattern: Slot, flags: &str) -> Result<Slot> {
    let (options, is_global) = split_flags(flags)?;
    spend(heap, text)?;
    let compiled = compiled(heap.str(pattern), &options)?;
    compiled.check_extent()?;
    let whole = heap.str(text).to_owned();
    let mut groups = compiled.groups();
    let (mut matches, mut start) = (Vec::new(), 0);
    while start <= whole.len()
        && let Some(found) = compiled.find(&whole, start, &mut groups)?
    {
        matches.push(parts(heap, &whole, &groups));
        check_elements(matches.len())?;
        start = after(&whole, &found);
        if !is_global {
            break;
        }
    }
    Ok(heap.push_array(&matches))
}

/// The parts of a text between matches. As in PostgreSQL, an empty match at the beginning, at the
/// end, or directly behind another match divides nothing.
fn split(heap: &mut Heap, text: Slot, pattern: Slot, flags: &str, name: &str) -> Result<Slot> {
    let (options, is_global) = split_flags(flags)?;
    if is_global {
        let message = format!("{name}() does not support the \"global\" option");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    spend(heap, text)?;
    let compiled = compiled(heap.str(pattern), &options)?;
    compiled.check_extent()?;
    let whole = heap.str(text).to_owned();
    let mut groups = compiled.groups();
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at <= whole.len() {
        let Some(found) = compiled.find(&whole, at, &mut groups)? else {
            break;
        };
        if found.is_empty() {
            let next = whole[found.start..].chars().next();
            at = found.start + next.map_or(1, char::len_utf8);
            if found.start == begin || found.start == whole.len() {
                continue;
            }
        } else {
            at = found.end;
        }
        parts.push(&whole[begin..found.start]);
        begin = found.end;
    }
    parts.push(&whole[begin..]);
    check_elements(parts.len())?;
    let parts: Vec<Slot> = parts.into_iter().map(|part| heap.push_str(part)).collect();
    Ok(heap.push_array(&parts))
}

strict! {
    MATCHES = "textregexeq", |heap, text, pattern| matches(heap, text, pattern, "");
    MATCHES_ANY_CASE = "texticregexeq", |heap, text, pattern| {
        matches(heap, text, pattern, "i")
    };
    SIMILAR = "similar_to", |heap, text, pattern| {
        spend(heap, text)?;
        let pattern = similar(heap.str(pattern), "\\")?;
        let compiled = compiled(&pattern, "")?;
        Ok(Slot::from_bool(compiled.is_match(heap.str(text))))
    };
    SIMILAR_ESCAPE = "similar_to_escape", |heap, text, pattern, escape| {
        spend(heap, text)?;
        let pattern = similar(heap.str(pattern), heap.str(escape))?;
        let compiled = compiled(&pattern, "")?;
        Ok(Slot::from_bool(compiled.is_match(heap.str(text))))
    };
    SUBSTRING_SIMILAR = "substring_similar", |heap, text, pattern, escape| {
        let parts = similar_parts(heap.str(pattern), heap.str(escape))?;
        let whole = heap.str(text).to_owned();
        Ok(match part_between(heap, &whole, &parts)? {
            Some(part) => super::part_of(heap, text, part),
            None => Slot::NULL,
        })
    };
    REPLACE = "regexp_replace", |heap, text, pattern, replacement| {
        spend(heap, text)?;
        let replaced = replace(heap.str(text), heap.str(pattern), heap.str(replacement), "", Replaced::BY_FLAGS)?;
        Ok(heap.push_str(&replaced))
    };
    REPLACE_FLAGS = "regexp_replace_flags", |heap, text, pattern, replacement, flags| {
        spend(heap, text)?;
        let (text, pattern) = (heap.str(text), heap.str(pattern));
        let replaced = replace(text, pattern, heap.str(replacement), heap.str(flags), Replaced::BY_FLAGS)?;
        Ok(heap.push_str(&replaced))
    };
    REPLACE_FROM = "regexp_replace", |heap, text, pattern, replacement, start| {
        replace_from(heap, [text, pattern, replacement], start, None, None)
    };
    REPLACE_NUMBERED = "regexp_replace", |heap, text, pattern, replacement, start, number| {
        replace_from(heap, [text, pattern, replacement], start, Some(number), None)
    };
    REPLACE_EXTENDED = "regexp_replace", |heap, text, pattern, replacement, start, number, flags| {
        replace_from(heap, [text, pattern, replacement], start, Some(number), Some(flags))
    };
    MATCHES_ALL = "regexp_matches", |heap, text, pattern| all_matches(heap, text, pattern, "");
    MATCHES_ALL_FLAGS = "regexp_matches", |heap, text, pattern, flags| {
        let flags = heap.str(flags).to_owned();
        all_matches(heap, text, pattern, &flags)
    };
    MATCH = "regexp_match", |heap, text, pattern| first_match(heap, text, pattern, "");
    MATCH_FLAGS = "regexp_match_flags", |heap, text, pattern, flags| {
        let flags = heap.str(flags).to_owned();
        first_match(heap, text, pattern, &flags)
    };
    SPLIT = "regexp_split_to_array", |heap, text, pattern| {
        split(heap, text, pattern, "", "regexp_split_to_array")
    };
    SPLIT_FLAGS = "regexp_split_to_array", |heap, text, pattern, flags| {
        let flags = heap.str(flags).to_owned();
        split(heap, text, pattern, &flags, "regexp_split_to_array")
    };
    LIKE_FLAGS = "regexp_like_flags", |heap, text, pattern, flags| {
        let (options, is_global) = split_flags(heap.str(flags))?;
        if is_global {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "regexp_like() does not support the \"global\" option",
            ));
        }
        matches(heap, text, pattern, &options)
    };
    SUBSTRING = "substring_pattern", |heap, text, pattern| {
        spend(heap, text)?;
        let compiled = compiled(heap.str(pattern), "")?;
        compiled.check_extent()?;
        let whole = heap.str(text);
        let mut groups = compiled.groups();
        if compiled.find(whole, 0, &mut groups)?.is_none() {
            return Ok(Slot::NULL);
        }
        let group = usize::from(groups.group_len() > 1);
        Ok(match groups.get_group(group) {
            Some(span) => super::part_of(heap, text, span.range()),
            None => Slot::NULL,
        })
    };
}

/// The part of a text for which the second of the expressions stands, where the first one stands
/// for as little as possible before it, and then it for as much as possible.
fn part_between(
    heap: &mut Heap,
    whole: &str,
    parts: &[String],
) -> Result<Option<std::ops::Range<usize>>> {
    let expression = |part: &str| compiled(&format!("^(?:{part})$"), "");
    let mut is_match = |expression: &Compiled, text: &str| {
        heap.spend(text.len().saturating_mul(WORK_PER_BYTE))?;
        Ok::<bool, Error>(expression.is_match(text))
    };
    let (before, part, after) = match parts {
        [before, part, after] => (before.as_str(), part.as_str(), after.as_str()),
        [before, part] => (before.as_str(), part.as_str(), ""),
        [part] => ("", part.as_str(), ""),
        _ => return Err(Error::internal("a pattern of so many parts")),
    };
    let (before, part, after) = (expression(before)?, expression(part)?, expression(after)?);
    let places = whole.char_indices().map(|(at, _)| at).chain([whole.len()]);
    let places: Vec<usize> = places.collect();
    let mut ends = Vec::new();
    for at in places.iter().rev() {
        if is_match(&after, &whole[*at..])? {
            ends.push(*at);
        }
    }
    for start in places {
        if !is_match(&before, &whole[..start])? {
            continue;
        }
        for end in ends.iter().copied().filter(|end| *end >= start) {
            if is_match(&part, &whole[start..end])? {
                return Ok(Some(start..end));
            }
        }
    }
    Ok(None)
}

fn replace_from(
    heap: &mut Heap,
    [text, pattern, replacement]: [Slot; 3],
    start: Slot,
    number: Option<Slot>,
    flags: Option<Slot>,
) -> Result<Slot> {
    spend(heap, text)?;
    let which = Replaced {
        start: start.as_i64(),
        number: number.map(Slot::as_i64),
    };
    let flags = flags.map_or("", |flags| heap.str(flags));
    let (text, pattern) = (heap.str(text), heap.str(pattern));
    let replaced = replace(text, pattern, heap.str(replacement), flags, which)?;
    Ok(heap.push_str(&replaced))
}

/// What is asked of a [`Search`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Count,
    Place,
    Part,
}

/// Searches with the arguments of one of the forms of a function: behind a text and a pattern as
/// many as there are of its parameters.
fn search(heap: &mut Heap, arguments: &[Slot], asked: Asked) -> Result<Slot> {
    if arguments.iter().any(|argument| argument.is_null()) {
        return Ok(Slot::NULL);
    }
    let [text, pattern, rest @ ..] = arguments else {
        return Err(Error::internal("a search without a pattern"));
    };
    spend(heap, *text)?;
    let mut rest = rest.iter();
    let number = |slot: Option<&Slot>, default| slot.map_or(default, |slot| slot.as_i64());
    let start = number(rest.next(), 1);
    let (nth, end) = match asked {
        Asked::Count => (1, 0),
        Asked::Place => (number(rest.next(), 1), number(rest.next(), 0)),
        Asked::Part => (number(rest.next(), 1), 0),
    };
    let flags = rest.next().map_or("", |flags| heap.str(*flags));
    let group = number(rest.next(), 0);
    let search = Search {
        name: match asked {
            Asked::Count => "regexp_count",
            Asked::Place => "regexp_instr",
            Asked::Part => "regexp_substr",
        },
        start,
        number: nth,
        flags,
        group,
    };
    let (whole, expression) = (heap.str(*text), heap.str(*pattern));
    match asked {
        Asked::Count => search.count(whole, expression),
        Asked::Place => search.place(whole, expression, end),
        Asked::Part => {
            let part = search.find(whole, expression)?;
            Ok(part.map_or(Slot::NULL, |part| super::part_of(heap, *text, part)))
        }
    }
}

const COUNT: Named = ("regexp_count", |heap, arguments| {
    search(heap, arguments, Asked::Count)
});
const INSTR: Named = ("regexp_instr", |heap, arguments| {
    search(heap, arguments, Asked::Place)
});
const SUBSTR: Named = ("regexp_substr", |heap, arguments| {
    search(heap, arguments, Asked::Part)
});

/// `text ~ pattern`, or `~*`.
pub(in super::super) fn regex_match(ignore_case: bool) -> Named {
    if ignore_case {
        MATCHES_ANY_CASE
    } else {
        MATCHES
    }
}

/// `text SIMILAR TO pattern`, with an escape or without.
pub(in super::super) fn similar_to(has_escape: bool) -> Named {
    if has_escape { SIMILAR_ESCAPE } else { SIMILAR }
}

signatures! {
    "regexp_replace"(Text, Text, Text) -> Text = REPLACE;
    "regexp_replace"(Text, Text, Text, Text) -> Text = REPLACE_FLAGS;
    "regexp_replace"(Text, Text, Text, Int4) -> Text = REPLACE_FROM;
    "regexp_replace"(Text, Text, Text, Int4, Int4) -> Text = REPLACE_NUMBERED;
    "regexp_replace"(Text, Text, Text, Int4, Int4, Text) -> Text = REPLACE_EXTENDED;
    "regexp_matches"(Text, Text) -> TextArrays = MATCHES_ALL;
    "regexp_matches"(Text, Text, Text) -> TextArrays = MATCHES_ALL_FLAGS;
    "regexp_count"(Text, Text) -> Int4 = COUNT;
    "regexp_count"(Text, Text, Int4) -> Int4 = COUNT;
    "regexp_count"(Text, Text, Int4, Text) -> Int4 = COUNT;
    "regexp_instr"(Text, Text) -> Int4 = INSTR;
    "regexp_instr"(Text, Text, Int4) -> Int4 = INSTR;
    "regexp_instr"(Text, Text, Int4, Int4) -> Int4 = INSTR;
    "regexp_instr"(Text, Text, Int4, Int4, Int4) -> Int4 = INSTR;
    "regexp_instr"(Text, Text, Int4, Int4, Int4, Text) -> Int4 = INSTR;
    "regexp_instr"(Text, Text, Int4, Int4, Int4, Text, Int4) -> Int4 = INSTR;
    "regexp_substr"(Text, Text) -> Text = SUBSTR;
    "regexp_substr"(Text, Text, Int4) -> Text = SUBSTR;
    "regexp_substr"(Text, Text, Int4, Int4) -> Text = SUBSTR;
    "regexp_substr"(Text, Text, Int4, Int4, Text) -> Text = SUBSTR;
    "regexp_substr"(Text, Text, Int4, Int4, Text, Int4) -> Text = SUBSTR;
    "regexp_match"(Text, Text) -> TextArray = MATCH;
    "regexp_match"(Text, Text, Text) -> TextArray = MATCH_FLAGS;
    "regexp_split_to_array"(Text, Text) -> TextArray = SPLIT;
    "regexp_split_to_array"(Text, Text, Text) -> TextArray = SPLIT_FLAGS;
    "regexp_like"(Text, Text) -> Boolean = MATCHES;
    "regexp_like"(Text, Text, Text) -> Boolean = LIKE_FLAGS;
    "substring"(Text, Text) -> Text = SUBSTRING;
    "substring"(Text, Text, Text) -> Text = SUBSTRING_SIMILAR;
}
