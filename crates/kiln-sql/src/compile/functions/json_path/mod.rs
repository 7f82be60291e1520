//! SQL/JSON paths over JSONB: `@?`, `@@` and the functions `jsonb_path_…`.

mod evaluate;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::CatalogType;
use kiln_storage::types::json::path::{canonical_path, read_path};
use kiln_storage::types::json::read;

use super::array::check_elements;
use super::cast::strict;
use super::{Function, Named, Signature, Ty};
use evaluate::{Failure, Item, STEPS_PER_BYTE, Scalar, found};

/// What is asked of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Exists,
    Match,
    All,
    Array,
    First,
}

/// A call with a value, a path, and perhaps variables and whether errors are silent.
fn call(heap: &mut Heap, arguments: &[Slot], asked: Asked, is_operator: bool) -> Result<Slot> {
    if arguments.iter().any(|argument| argument.is_null()) {
        return Ok(Slot::NULL);
    }
    let (value, path) = match arguments {
        [value, path, ..] => (*value, *path),
        _ => return Err(Error::internal("a path without a value")),
    };
    heap.spend(value.span().1.saturating_mul(STEPS_PER_BYTE))?;
    let is_silent = is_operator || arguments.get(3).is_some_and(|silent| silent.as_bool());
    let texts: Vec<String> = {
        let path = read_path(heap.str(path))?;
        let value = read(heap.str(value))?;
        let variables = match arguments.get(2) {
            Some(variables) => Some(read(heap.str(*variables))?),
            None if is_operator => None,
            None => Some(read("{}")?),
        };
        // In strict mode an error behind the first item counts.
        let most = match asked {
            Asked::Exists if path.is_lax => 1,
            _ => usize::MAX,
        };
        let (items, error) = found(&path, &value, variables.as_ref(), most)?;
        if let Some(error) = error {
            if !is_silent {
                return Err(error);
            }
            if matches!(asked, Asked::Exists | Asked::Match) {
                return Ok(Slot::NULL);
            }
        }
        match asked {
            Asked::Exists => return Ok(Slot::from_bool(!items.is_empty())),
            Asked::Match => return matched(&items, is_silent),
            _ => {}
        }
        let texts = items.iter().map(|item| {
            let mut out = String::new();
            item.write(&mut out);
            out
        });
        texts.collect()
    };
    match asked {
        Asked::First => Ok(match texts.first() {
            Some(text) => heap.push_str(text),
            None => Slot::NULL,
        }),
        Asked::Array => Ok(heap.push_str(&format!("[{}]", texts.join(", ")))),
        _ => {
            check_elements(texts.len())?;
            let slots: Vec<Slot> = texts.iter().map(|text| heap.push_str(text)).collect();
            Ok(heap.push_array(&slots))
        }
    }
}

/// The truth value that is the only item.
fn matched(items: &[Item<'_>], is_silent: bool) -> Result<Slot> {
    let only = match items {
        [only] => match only.scalar() {
            Ok(scalar) => scalar,
            Err(Failure::Misfit(error) | Failure::Broken(error)) => return Err(error),
        },
        _ => None,
    };
    match only {
        Some(Scalar::Boolean(value)) => Ok(Slot::from_bool(value)),
        Some(Scalar::Null) => Ok(Slot::NULL),
        _ if is_silent => Ok(Slot::NULL),
        _ => {
            let state = SqlState::parse("22038").unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
            Err(Error::new(state, "single boolean result is expected"))
        }
    }
}

const EXISTS: Named = ("jsonb_path_exists", |heap, arguments| {
    call(heap, arguments, Asked::Exists, false)
});
const EXISTS_OPERATOR: Named = ("jsonb_path_exists_opr", |heap, arguments| {
    call(heap, arguments, Asked::Exists, true)
});
const MATCH: Named = ("jsonb_path_match", |heap, arguments| {
    call(heap, arguments, Asked::Match, false)
});
const MATCH_OPERATOR: Named = ("jsonb_path_match_opr", |heap, arguments| {
    call(heap, arguments, Asked::Match, true)
});
const QUERY: Named = ("jsonb_path_query", |heap, arguments| {
    call(heap, arguments, Asked::All, false)
});
const QUERY_ARRAY: Named = ("jsonb_path_query_array", |heap, arguments| {
    call(heap, arguments, Asked::Array, false)
});
const QUERY_FIRST: Named = ("jsonb_path_query_first", |heap, arguments| {
    call(heap, arguments, Asked::First, false)
});

strict! {
    /// A path, read and written again.
    TEXT_TO_JSONPATH = "jsonpath", |heap, text| {
        let path = canonical_path(heap.str(text))?;
        Ok(heap.push_str(&path))
    };
}

const JSONB: Ty = Ty::Catalog(CatalogType::Jsonb);
const PATH: Ty = Ty::Catalog(CatalogType::JsonPath);

const fn of(name: &'static str, arguments: &'static [Ty], result: Ty, named: Named) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(named.1),
        volatile: false,
    }
}

/// The three forms of a function.
macro_rules! forms {
    ($($name:literal -> $result:expr, $named:expr;)*) => {
        &[
            of("@?", &[JSONB, PATH], Ty::Boolean, EXISTS_OPERATOR),
            of("@@", &[JSONB, PATH], Ty::Boolean, MATCH_OPERATOR),
            $(
                of($name, &[JSONB, PATH], $result, $named),
                of($name, &[JSONB, PATH, JSONB], $result, $named),
                of($name, &[JSONB, PATH, JSONB, Ty::Boolean], $result, $named),
            )*
        ]
    };
}

pub(super) static SIGNATURES: &[Signature] = forms! {
    "jsonb_path_exists" -> Ty::Boolean, EXISTS;
    "jsonb_path_match" -> Ty::Boolean, MATCH;
    "jsonb_path_query" -> Ty::JsonbArray, QUERY;
    "jsonb_path_query_array" -> JSONB, QUERY_ARRAY;
    "jsonb_path_query_first" -> JSONB, QUERY_FIRST;
};
