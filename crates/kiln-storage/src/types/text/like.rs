//! LIKE and ILIKE.
//!
//! A pattern is split at `%` into segments once. Matching anchors the first segment at the
//! start and the last at the end and finds each one between at its leftmost place after the one
//! before: with wildcards of any length on both sides, a later place can never be needed. So
//! matching never backtracks over more than one segment.

use crate::error::{Error, Result, SqlState};

/// A character of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Exactly(char),
    /// `_`
    AnyOne,
    /// An escape character at the pattern's end, an error once the text reaches it.
    DanglingEscape,
}

/// What lies between two `%`.
#[derive(Clone, Debug)]
enum Segment {
    /// Without `_`: found by substring search.
    Literal(String),
    Mixed(Vec<Element>),
}

/// A LIKE or ILIKE pattern, ready to match.
#[derive(Clone, Debug)]
pub struct LikePattern {
    /// At least one; a `%` lies between each and the next.
    segments: Vec<Segment>,
    ignore_case: bool,
}

/// The error of a pattern that ends with its escape character.
#[cold]
fn dangling_escape() -> Error {
    Error::new(
        SqlState::INVALID_ESCAPE_SEQUENCE,
        "LIKE pattern must not end with escape character",
    )
}

impl LikePattern {
    /// A pattern with the usual escape character, the backslash.
    pub fn new(pattern: &str, ignore_case: bool) -> LikePattern {
        LikePattern::with_escape_character(pattern, Some('\\'), ignore_case)
    }

    /// A pattern with the escape character of an `ESCAPE` clause; the empty string means none.
    ///
    /// # Errors
    /// 22025 when `escape` has more than one character.
    pub fn with_escape(pattern: &str, escape: &str, ignore_case: bool) -> Result<LikePattern> {
        let mut characters = escape.chars();
        match (characters.next(), characters.next()) {
            (escape, None) => Ok(LikePattern::with_escape_character(
                pattern,
                escape,
                ignore_case,
            )),
            _ => Err(
                Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                    .with_hint("Escape string must be empty or one character."),
            ),
        }
    }

    fn with_escape_character(
        pattern: &str,
        escape: Option<char>,
        ignore_case: bool,
    ) -> LikePattern {
        let mut segments = Vec::new();
        let mut segment = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            segment.push(match character {
                _ if Some(character) == escape => match characters.next() {
                    Some(escaped) => Element::Exactly(escaped),
                    None => Element::DanglingEscape,
                },
                '%' => {
                    segments.push(std::mem::take(&mut segment));
                    continue;
                }
                '_' => Element::AnyOne,
                _ => Element::Exactly(character),
            });
        }
        segments.push(segment);
        let segments = segments
            .into_iter()
            .map(|elements| Segment::new(elements, ignore_case))
            .collect();
        LikePattern {
            segments,
            ignore_case,
        }
    }

    /// The text that every match begins with: what an index scan can start from. Empty for
    /// ILIKE.
    pub fn literal_prefix(&self) -> String {
        if self.ignore_case {
            return String::new();
        }
        match &self.segments[0] {
            Segment::Literal(text) => text.clone(),
            Segment::Mixed(elements) => elements
                .iter()
                .map_while(|element| match element {
                    Element::Exactly(character) => Some(*character),
                    _ => None,
                })
                .collect(),
        }
    }

    /// Whether the pattern has no wildcard, so that LIKE is equality with
    /// [`literal_prefix`](LikePattern::literal_prefix).
    pub fn is_literal(&self) -> bool {
        matches!(self.segments[..], [Segment::Literal(_)]) && !self.ignore_case
    }

    /// Whether the whole text matches.
    ///
    /// # Errors
    /// 22025 when matching reaches an escape character at the pattern's end.
    pub fn matches(&self, text: &str) -> Result<bool> {
        if self.ignore_case {
            return self.matches_folded(&text.to_ascii_lowercase());
        }
        self.matches_folded(text)
    }

    fn matches_folded(&self, text: &str) -> Result<bool> {
        let (first, rest) = match &self.segments[..] {
            [only] => return Ok(only.at_start(text)? == Some(text.len())),
            [first, rest @ ..] => (first, rest),
            [] => return Ok(text.is_empty()),
        };
        let Some(length) = first.at_start(text)? else {
            return Ok(false);
        };
        let mut remaining = &text[length..];
        let [middle @ .., last] = rest else {
            return Ok(true);
        };
        // Whether text was left where the last run of `%` and `_` began.
        let mut text_before_run = !remaining.is_empty();
        for segment in middle {
            match segment.find_end(remaining)? {
                Some(end) => remaining = &remaining[end..],
                None => return Ok(false),
            }
            if !segment.is_wildcard() {
                text_before_run = !remaining.is_empty();
            }
        }
        last.at_end(remaining, text_before_run)
    }
}

impl Segment {
    fn new(elements: Vec<Element>, ignore_case: bool) -> Segment {
        let fold = |character: char| {
            if ignore_case {
                character.to_ascii_lowercase()
            } else {
                character
            }
        };
        let literal: Option<String> = elements
            .iter()
            .map(|element| match element {
                Element::Exactly(character) => Some(fold(*character)),
                _ => None,
            })
            .collect();
        match literal {
            Some(text) => Segment::Literal(text),
            None => Segment::Mixed(
                elements
                    .into_iter()
                    .map(|element| match element {
                        Element::Exactly(character) => Element::Exactly(fold(character)),
                        other => other,
                    })
                    .collect(),
            ),
        }
    }

    /// The bytes that the segment takes of the text's start, if it matches there.
    fn at_start(&self, text: &str) -> Result<Option<usize>> {
        let elements = match self {
            Segment::Literal(literal) => {
                return Ok(text.starts_with(literal.as_str()).then_some(literal.len()));
            }
            Segment::Mixed(elements) => elements,
        };
        let mut characters = text.chars();
        for element in elements {
            let next = characters.next();
            match (element, next) {
                (_, None) => return Ok(None),
                (Element::DanglingEscape, Some(_)) => return Err(dangling_escape()),
                (Element::Exactly(expected), Some(found)) if *expected != found => {
                    return Ok(None);
                }
                _ => {}
            }
        }
        Ok(Some(text.len() - characters.as_str().len()))
    }

    /// Where the segment's leftmost match in the text ends.
    fn find_end(&self, text: &str) -> Result<Option<usize>> {
        if let Segment::Literal(literal) = self {
            return Ok(text.find(literal.as_str()).map(|at| at + literal.len()));
        }
        for (at, _) in text.char_indices() {
            if let Some(length) = self.at_start(&text[at..])? {
                return Ok(Some(at + length));
            }
        }
        Ok(None)
    }

    /// Whether there is nothing in the segment but `_`.
    fn is_wildcard(&self) -> bool {
        match self {
            Segment::Literal(literal) => literal.is_empty(),
            Segment::Mixed(elements) => elements.iter().all(|element| *element == Element::AnyOne),
        }
    }

    /// Whether the segment matches the text's end.
    fn at_end(&self, text: &str, text_before_run: bool) -> Result<bool> {
        let elements = match self {
            Segment::Literal(literal) => return Ok(text.ends_with(literal.as_str())),
            Segment::Mixed(elements) => elements,
        };
        // A segment with a dangling escape never matches; whether it is an error depends on
        // reaching the escape.
        if elements.last() == Some(&Element::DanglingEscape) {
            // After a run of `%` and `_` PostgreSQL looks at the next character of the pattern
            // even at the text's end, unless the text ended before the run.
            let any = elements.len() - 1;
            let only_any = elements[..any]
                .iter()
                .all(|element| *element == Element::AnyOne);
            if only_any && text_before_run && (any == 0 || text.chars().nth(any - 1).is_some()) {
                return Err(dangling_escape());
            }
            return self.find_end(text).map(|_| false);
        }
        let mut characters = text.chars();
        for element in elements.iter().rev() {
            match (element, characters.next_back()) {
                (_, None) => return Ok(false),
                (Element::Exactly(expected), Some(found)) if *expected != found => {
                    return Ok(false);
                }
                _ => {}
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        LikePattern::new(pattern, false).matches(text).unwrap()
    }

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "_b_", true),
            ("abc", "__", false),
            ("abc", "%", true),
            ("", "%", true),
            ("", "", true),
            ("", "_", false),
            ("abc", "%%%", true),
            ("aaa", "%aa%aa", false),
            ("aaaa", "%aa%aa", true),
            ("aba", "a%a%a", false),
            ("ab", "a%_b", false),
            ("axb", "a%_b", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("a_b", "a\\_b", true),
            ("a\\b", "a\\\\b", true),
            ("größe", "gr__e", true),
            ("größe", "gr_e", false),
            ("größe", "%ß%", true),
            ("日本語", "日_語", true),
            ("mississippi", "m%iss%_pp_", true),
            ("mississippi", "%s_s%", true),
            ("mississippi", "%s_p%", true),
            ("mississippi", "%_x%", false),
            ("ABC", "abc", false),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn ilike_ignores_the_case_of_ascii_only() {
        let matches =
            |text: &str, pattern: &str| LikePattern::new(pattern, true).matches(text).unwrap();
        assert!(matches("ABCdef", "aBC%F"));
        assert!(!matches("É", "é"));
    }

    #[test]
    fn escapes_can_be_chosen_and_must_not_dangle() {
        let chosen = LikePattern::with_escape("a#%b", "#", false).unwrap();
        assert!(chosen.matches("a%b").unwrap());
        assert!(!chosen.matches("axb").unwrap());
        let none = LikePattern::with_escape("a\\%", "", false).unwrap();
        assert!(none.matches("a\\bc").unwrap());
        let error = LikePattern::with_escape("a", "##", false).unwrap_err();
        assert_eq!(error.state(), SqlState::INVALID_ESCAPE_SEQUENCE);

        let dangling = LikePattern::new("ab\\", false);
        assert!(!dangling.matches("xy").unwrap());
        assert!(!dangling.matches("ab").unwrap());
        let error = dangling.matches("abc").unwrap_err();
        assert_eq!(
            error.message(),
            "LIKE pattern must not end with escape character"
        );
    }

    #[test]
    fn matching_does_not_blow_up() {
        let text = "a".repeat(2_000);
        let pattern = format!("{}b", "%a".repeat(200));
        assert!(!like(&text, &pattern));
    }

    #[test]
    fn the_literal_prefix_ends_at_the_first_wildcard() {
        assert_eq!(LikePattern::new("ab\\_c%d", false).literal_prefix(), "ab_c");
        assert_eq!(LikePattern::new("ab_c%d", false).literal_prefix(), "ab");
        assert_eq!(LikePattern::new("ab%", true).literal_prefix(), "");
        assert!(LikePattern::new("ab\\%", false).is_literal());
        assert!(!LikePattern::new("ab%", false).is_literal());
    }
}
