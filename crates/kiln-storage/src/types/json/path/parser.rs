//! From the words of a path to its tree.

use super::lexer::{Place, Word, syntax, words};
use super::{JsonPath, Method, Operator, Step, Steps};
use crate::error::{Error, Result, SqlState};
use crate::types::json::normal_number;

/// How deep parentheses, subscripts and signs may be nested.
const DEPTH_MAX: usize = 200;

/// How many operators and accessors a path may have: evaluation goes one call deeper for each.
pub(super) const STEPS_MAX: usize = 500;

pub(super) fn parse(text: &str) -> Result<JsonPath> {
    let words = words(text)?;
    if words.is_empty() {
        let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
        return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
    }
    let mut parser = Parser {
        text,
        words,
        at: 0,
        depth: 0,
        steps: 0,
        filters: 0,
        subscripts: 0,
    };
    let is_strict = parser.takes_name("strict");
    if !is_strict {
        parser.takes_name("lax");
    }
    let steps = parser.expression()?;
    match parser.at == parser.words.len() {
        true => Ok(JsonPath {
            is_lax: !is_strict,
            steps,
        }),
        false => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    words: Vec<Place>,
    at: usize,
    depth: usize,
    /// How many operators and accessors there are so far.
    steps: usize,
    /// How many filters are open: `@` is what the innermost looks at.
    filters: usize,
    /// How many subscripts are open, for `last`.
    subscripts: usize,
}

/// Which operators join operands, from those that bind least.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("=", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<>", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Modulo),
    ],
];

/// The level of comparisons, which do not follow each other.
const COMPARISONS: usize = 2;

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at).map(|place| &place.word)
    }

    /// The error at the present word.
    #[cold]
    fn unexpected(&self) -> Error {
        let near = self.words.get(self.at);
        let near = near.map_or("", |place| &self.text[place.start..place.end]);
        syntax("syntax error", near)
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Word::Symbol(known)) if *known == symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn takes_name(&mut self, wanted: &str) -> bool {
        let is_there =
            matches!(self.peek(), Some(Word::Name(name)) if name.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        match self.takes(symbol) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            let message = format!("a jsonpath is nested at most {DEPTH_MAX} deep");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Another operator or accessor was met.
    fn count_step(&mut self) -> Result<()> {
        self.steps += 1;
        match self.steps <= STEPS_MAX {
            true => Ok(()),
            false => {
                let message = format!("a jsonpath has at most {STEPS_MAX} operators and accessors");
                Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message))
            }
        }
    }

    /// A value or a predicate.
    fn expression(&mut self) -> Result<Steps> {
        self.deeper(|parser| parser.level(0))
    }

    /// A predicate, in parentheses that are open.
    fn predicate(&mut self) -> Result<Steps> {
        let start = self.at;
        let steps = self.expression()?;
        match steps.as_slice() {
            [only] if only.is_predicate() => Ok(steps),
            _ => {
                // What is no predicate ends where one would go on.
                self.at = self.at.max(start);
                Err(self.unexpected())
            }
        }
    }

    fn operator(&mut self, level: usize) -> Option<Operator> {
        let (_, operator) = *LEVELS[level].iter().find(
            |(symbol, _)| matches!(self.peek(), Some(Word::Symbol(known)) if known == symbol),
        )?;
        self.at += 1;
        Some(operator)
    }

    fn level(&mut self, level: usize) -> Result<Steps> {
        if level == LEVELS.len() {
            return self.signed();
        }
        let mut left = self.level(level + 1)?;
        loop {
            let at = self.at;
            let Some(operator) = self.operator(level) else {
                return match level {
                    COMPARISONS => self.word_operator(left),
                    _ => Ok(left),
                };
            };
            self.count_step()?;
            let right = self.level(level + 1)?;
            let is_predicate =
                |steps: &Steps| matches!(steps.as_slice(), [it] if it.is_predicate());
            // Predicates are joined, and values are compared and computed with.
            let wants_predicates = matches!(operator, Operator::Or | Operator::And);
            if wants_predicates != is_predicate(&left) {
                self.at = at;
                return Err(self.unexpected());
            }
            if wants_predicates != is_predicate(&right) {
                return Err(self.unexpected());
            }
            left = vec![Step::Binary(operator, left, right)];
            if level == COMPARISONS {
                return Ok(left);
            }
        }
    }

    /// `starts with` and `like_regex` behind a value.
    fn word_operator(&mut self, left: Steps) -> Result<Steps> {
        if self.takes_name("starts") {
            if !self.takes_name("with") {
                return Err(self.unexpected());
            }
            let initial = match self.peek() {
                Some(Word::Text(text)) => Step::Text(text.clone()),
                Some(Word::Variable(name)) => Step::Variable(name.clone()),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            let binary = Step::Binary(Operator::StartsWith, left, vec![initial]);
            return Ok(vec![binary]);
        }
        if !self.takes_name("like_regex") {
            return Ok(left);
        }
        let pattern = self.text()?;
        let given = match self.takes_name("flag") {
            true => self.text()?,
            false => String::new(),
        };
        Ok(vec![Step::LikeRegex {
            subject: left,
            pattern,
            flags: flags(&given)?,
        }])
    }

    fn text(&mut self) -> Result<String> {
        let Some(Word::Text(text)) = self.peek() else {
            return Err(self.unexpected());
        };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    fn signed(&mut self) -> Result<Steps> {
        let negates = match self.peek() {
            Some(Word::Symbol("+")) => false,
            Some(Word::Symbol("-")) => true,
            _ => return self.accessed(),
        };
        self.at += 1;
        let of = self.deeper(Self::signed)?;
        // A number has its sign, as in PostgreSQL.
        Ok(match of.as_slice() {
            [Step::Number(text)] => vec![Step::Number(match negates {
                false => text.clone(),
                true => match text.strip_prefix('-') {
                    Some(positive) => positive.to_owned(),
                    None if text.bytes().all(|it| matches!(it, b'0' | b'.')) => text.clone(),
                    None => format!("-{text}"),
                },
            })],
            _ => vec![Step::Sign(negates, of)],
        })
    }

    /// A value with its accessors.
    fn accessed(&mut self) -> Result<Steps> {
        let mut steps = self.primary()?;
        while let Some(accessor) = self.accessor()? {
            self.count_step()?;
            steps.push(accessor);
        }
        Ok(steps)
    }

    fn primary(&mut self) -> Result<Steps> {
        let Some(word) = self.peek().cloned() else {
            return Err(self.unexpected());
        };
        self.at += 1;
        let step = match word {
            Word::Text(text) => Step::Text(text),
            Word::Variable(name) => Step::Variable(name),
            Word::Number(text) => Step::Number(number(&text)?),
            Word::Symbol("$") => Step::Root,
            Word::Symbol("@") if self.filters > 0 => Step::Current,
            Word::Symbol("@") => {
                let message = "@ is not allowed in root expressions";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            Word::Symbol("!") => {
                let inner = self.deeper(Self::negated)?;
                return Ok(vec![Step::Not(inner)]);
            }
            Word::Symbol("(") => return self.parenthesized(),
            Word::Name(name) => return self.named(&name),
            Word::Symbol(_) => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        Ok(vec![step])
    }

    /// What `!` stands before: a predicate in parentheses, or `exists`.
    fn negated(&mut self) -> Result<Steps> {
        if self.takes("(") {
            let of = self.predicate()?;
            self.expect(")")?;
            return Ok(of);
        }
        match self.takes_name("exists") {
            true => self.exists(),
            false => Err(self.unexpected()),
        }
    }

    fn exists(&mut self) -> Result<Steps> {
        self.expect("(")?;
        let of = self.expression()?;
        if matches!(of.as_slice(), [only] if only.is_predicate()) {
            return Err(self.unexpected());
        }
        self.expect(")")?;
        Ok(vec![Step::Exists(of)])
    }

    fn parenthesized(&mut self) -> Result<Steps> {
        let of = self.expression()?;
        self.expect(")")?;
        if matches!(of.as_slice(), [only] if only.is_predicate()) && self.takes_name("is") {
            return match self.takes_name("unknown") {
                true => Ok(vec![Step::IsUnknown(of)]),
                false => Err(self.unexpected()),
            };
        }
        Ok(of)
    }

    fn named(&mut self, name: &str) -> Result<Steps> {
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        Ok(vec![match name {
            "null" => Step::Null,
            "true" => Step::Boolean(true),
            "false" => Step::Boolean(false),
            _ if is("last") && self.subscripts > 0 => Step::Last,
            _ if is("last") => {
                let message = "LAST is allowed only in array subscripts";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            _ if is("exists") => return self.exists(),
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        }])
    }

    fn accessor(&mut self) -> Result<Option<Step>> {
        Ok(Some(if self.takes(".") {
            self.behind_point()?
        } else if self.takes("[") {
            self.subscripts += 1;
            let step = self.deeper(Self::elements);
            self.subscripts -= 1;
            step?
        } else if self.takes("?") {
            self.expect("(")?;
            self.filters += 1;
            let of = self.deeper(Self::predicate);
            self.filters -= 1;
            let of = of?;
            self.expect(")")?;
            Step::Filter(of)
        } else {
            return Ok(None);
        }))
    }

    fn elements(&mut self) -> Result<Step> {
        if self.takes("*") {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        let mut subscripts = Vec::new();
        loop {
            let from = self.value()?;
            let to = match self.takes_name("to") {
                true => Some(self.value()?),
                false => None,
            };
            subscripts.push((from, to));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("]")?;
        Ok(Step::Elements(subscripts))
    }

    fn value(&mut self) -> Result<Steps> {
        let steps = self.expression()?;
        match matches!(steps.as_slice(), [only] if only.is_predicate()) {
            true => Err(self.unexpected()),
            false => Ok(steps),
        }
    }

    fn behind_point(&mut self) -> Result<Step> {
        if self.takes("*") {
            return Ok(Step::AnyMember);
        }
        if self.takes("**") {
            return self.levels();
        }
        let key = match self.peek() {
            Some(Word::Text(key)) => {
                let key = key.clone();
                self.at += 1;
                return Ok(Step::Member(key));
            }
            Some(Word::Name(key)) => key.clone(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        let is_called = matches!(self.peek(), Some(Word::Symbol("(")));
        let methods = [
            Method::Type,
            Method::Size,
            Method::Abs,
            Method::Floor,
            Method::Ceiling,
            Method::Double,
            Method::KeyValue,
            Method::Datetime,
        ];
        let mut methods = methods.into_iter();
        let method = methods.find(|method| is_called && key.eq_ignore_ascii_case(method.name()));
        let Some(method) = method else {
            return Ok(Step::Member(key));
        };
        if matches!(method, Method::Datetime | Method::KeyValue) {
            let what = format!("the jsonpath method .{}()", method.name());
            return Err(Error::unsupported(format!("{what} is not supported")));
        }
        self.expect("(")?;
        self.expect(")")?;
        Ok(Step::Method(method))
    }

    fn levels(&mut self) -> Result<Step> {
        if !self.takes("{") {
            return Ok(Step::Levels {
                first: Some(0),
                last: None,
            });
        }
        let first = self.depth_of_levels()?;
        let last = match self.takes_name("to") {
            true => self.depth_of_levels()?,
            false => first,
        };
        self.expect("}")?;
        Ok(Step::Levels { first, last })
    }

    fn depth_of_levels(&mut self) -> Result<Option<u32>> {
        if self.takes_name("last") {
            return Ok(None);
        }
        let level = match self.peek() {
            Some(Word::Number(text)) => text.parse::<u32>().ok(),
            _ => None,
        };
        let level = level.ok_or_else(|| self.unexpected())?;
        self.at += 1;
        Ok(Some(level))
    }
}

/// A number as JSONB writes it.
fn number(text: &str) -> Result<String> {
    let (digits, exponent) = match text.find(['e', 'E']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if part.is_empty() { "" } else { "." };
    normal_number(&format!("{whole}{point}{part}{exponent}"))
}

/// The flags, each once, in the order in which they are printed.
///
/// # Errors
/// 42601 for a letter that is none, 0A000 for `x` without `q`.
fn flags(given: &str) -> Result<String> {
    const KNOWN: &str = "ismxq";
    if let Some(other) = given.chars().find(|letter| !KNOWN.contains(*letter)) {
        let message = "invalid input syntax for type jsonpath";
        let detail = format!("unrecognized flag character \"{other}\" in LIKE_REGEX predicate.");
        return Err(Error::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
    }
    let flags: String = KNOWN
        .chars()
        .filter(|letter| given.contains(*letter))
        .collect();
    if flags.contains('x') && !flags.contains('q') {
        let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(flags)
}
