//! PostgreSQL's dialect as `sqlparser` knows it, with PostgreSQL's rule on which words may be the
//! name of a result column without AS. The library takes `ON` for such a name, which makes
//! `INSERT … SELECT 1 ON CONFLICT …` a syntax error.

use sqlparser::ast::{
    BinaryOperator, ColumnOption, Expr, Function, FunctionArguments, Ident, Interval,
    KeyOrIndexDisplay, NullsDistinctOption, ObjectName, ObjectNamePart, UnaryOperator,
    UniqueConstraint, Value,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;

use super::subscript::is_subscript;

/// The words that PostgreSQL lists as "requires AS" (appendix C of its manual), as far as the
/// library knows them, and END, which would swallow the end of a block.
const NEED_AS: &[Keyword] = &[
    Keyword::ARRAY,
    Keyword::AS,
    Keyword::CHAR,
    Keyword::CHARACTER,
    Keyword::CREATE,
    Keyword::DAY,
    Keyword::END,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FILTER,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::GRANT,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::HOUR,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::LIMIT,
    Keyword::MINUTE,
    Keyword::MONTH,
    Keyword::NOTNULL,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::ORDER,
    Keyword::OVER,
    Keyword::OVERLAPS,
    Keyword::PRECISION,
    Keyword::RETURNING,
    Keyword::SECOND,
    Keyword::TO,
    Keyword::UNION,
    Keyword::VARCHAR,
    Keyword::VARYING,
    Keyword::WHERE,
    Keyword::WINDOW,
    Keyword::WITH,
    Keyword::WITHIN,
    Keyword::WITHOUT,
    Keyword::YEAR,
];

/// See the module.
#[derive(Debug)]
pub(super) struct Postgres(pub PostgreSqlDialect);

/// Passes yes-or-no questions on.
macro_rules! delegate {
    ($($question:ident)*) => {
        $(fn $question(&self) -> bool { self.0.$question() })*
    };
}

impl Dialect for Postgres {
    fn dialect(&self) -> TypeId {
        // The library asks for its own dialect by type in places.
        self.0.dialect()
    }

    fn is_identifier_generating_function_name(
        &self,
        ident: &Ident,
        before: &[ObjectNamePart],
    ) -> bool {
        is_subscript(ident, before)
    }

    fn is_column_alias(&self, keyword: &Keyword, _parser: &mut Parser<'_>) -> bool {
        !NEED_AS.contains(keyword)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.0.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        self.0.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        self.0.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.0.is_identifier_part(character)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        self.0.is_custom_operator_part(character)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.0.is_reserved_for_identifier(keyword)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.0.is_table_alias(keyword, parser)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        // It names an argument, and is no operator.
        if parser.peek_token_ref().token == Token::Assignment {
            return Some(Ok(self.prec_unknown()));
        }
        self.0.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.0.prec_value(precedence)
    }

    fn parse_column_option(&self, parser: &mut Parser<'_>) -> ColumnOptionResult {
        unique_of_nulls(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        operand: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if parser.parse_keyword(Keyword::COLLATE) {
            let collation = parser.parse_object_name(false);
            return Some(collation.map(|collation| Expr::Collate {
                expr: Box::new(operand.clone()),
                collation,
            }));
        }
        match symmetric_between(parser, operand) {
            Ok(None) => self.operator_by_name(parser, operand).transpose(),
            found => found.transpose(),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if let Some(values) = values_as_value(parser) {
            return Some(values);
        }
        if let Some(interval) = rounded_interval(parser) {
            return Some(Ok(interval));
        }
        if is_at_missing_output(parser) {
            return Some(Ok(Expr::Tuple(Vec::new())));
        }
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        // The library binds a sign less tightly than `^`.
        let operand = parser.parse_subexpr(self.prec_value(Precedence::Caret));
        Some(operand.map(|expr| Expr::UnaryOp {
            op,
            expr: Box::new(expr),
        }))
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    delegate! {
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_group_by_expr
        supports_alter_user_as_alter_role
        allow_extract_custom
        allow_extract_single_quotes
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_listen_notify
        supports_exclude_constraint
        supports_factorial_operator
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_expr_name
        supports_empty_projections
        supports_nested_comments
        supports_string_escape_constant
        supports_numeric_literal_underscores
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_order_by_using_operator
        supports_set_names
        supports_alter_column_type_using
        supports_left_associative_joins_without_parens
        supports_notnull_operator
        supports_interval_options
        supports_insert_table_alias
        supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias
        supports_comma_separated_trim
        supports_xml_expressions
        supports_aliased_function_args
        supports_comment_optimizer_hint
    }
}

impl Postgres {
    /// `OPERATOR(pg_catalog.+)`, with ANY and ALL too, and LIKE with these, which the library does
    /// not know. `None` when nothing like it follows.
    fn operator_by_name(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
    ) -> Result<Option<Expr>, ParserError> {
        let precedence = self.prec_value(Precedence::PgOther);
        if parser.peek_keyword(Keyword::OPERATOR) {
            parser.advance_token();
            let op = named_operator(parser)?;
            let quantified = self.quantified(parser, left, &op, precedence)?;
            return match quantified {
                Some(expr) => Ok(Some(expr)),
                None => Ok(Some(Expr::BinaryOp {
                    left: Box::new(left.clone()),
                    op,
                    right: Box::new(parser.parse_subexpr(precedence)?),
                })),
            };
        }
        for (words, op) in [
            (&[Keyword::LIKE][..], BinaryOperator::PGLikeMatch),
            (&[Keyword::ILIKE], BinaryOperator::PGILikeMatch),
            (
                &[Keyword::NOT, Keyword::LIKE],
                BinaryOperator::PGNotLikeMatch,
            ),
            (
                &[Keyword::NOT, Keyword::ILIKE],
                BinaryOperator::PGNotILikeMatch,
            ),
        ] {
            let is_quantified = |after: usize| {
                let word = &parser.peek_nth_token_ref(after).token;
                matches!(word, Token::Word(word) if QUANTIFIERS.contains(&word.keyword))
                    && parser.peek_nth_token_ref(after + 1).token == Token::LParen
            };
            if is_quantified(words.len()) && parser.parse_keywords(words) {
                return self.quantified(parser, left, &op, precedence);
            }
        }
        Ok(None)
    }

    /// ANY, SOME or ALL behind an operator.
    fn quantified(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        op: &BinaryOperator,
        precedence: u8,
    ) -> Result<Option<Expr>, ParserError> {
        let Some(quantifier) = parser.parse_one_of_keywords(&QUANTIFIERS) else {
            return Ok(None);
        };
        parser.expect_token(&Token::LParen)?;
        let is_query = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES]
            .into_iter()
            .any(|word| parser.peek_keyword(word));
        let right = if is_query {
            parser.prev_token();
            parser.parse_subexpr(precedence)?
        } else {
            let right = parser.parse_expr()?;
            parser.expect_token(&Token::RParen)?;
            right
        };
        let (left, right) = (Box::new(left.clone()), Box::new(right));
        let compare_op = op.clone();
        Ok(Some(match quantifier {
            Keyword::ALL => Expr::AllOp {
                left,
                compare_op,
                right,
            },
            _ => Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: quantifier == Keyword::SOME,
            },
        }))
    }
}

/// `(VALUES …)` or `ARRAY(VALUES …)` in an expression, which the library takes for a call.
fn values_as_value(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if parser.peek_keyword(Keyword::VALUES) && is_behind_quantifier(parser) {
        return Some(parser.parse_query().map(Expr::Subquery));
    }
    let is_array = parser.peek_keyword(Keyword::ARRAY);
    let open = usize::from(is_array);
    let word = &parser.peek_nth_token_ref(open + 1).token;
    let is_values = parser.peek_nth_token_ref(open).token == Token::LParen
        && matches!(word, Token::Word(word) if word.keyword == Keyword::VALUES)
        && parser.peek_nth_token_ref(open + 2).token == Token::LParen;
    if !is_values {
        return None;
    }
    let name = is_array.then(|| parser.next_token());
    parser.advance_token();
    let query = parser.parse_query().and_then(|query| {
        parser.expect_token(&Token::RParen)?;
        Ok(query)
    });
    Some(query.map(|query| match name {
        None => Expr::Subquery(query),
        Some(_) => Expr::Function(Function {
            name: ObjectName::from(vec![Ident::new("array")]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::Subquery(query),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        }),
    }))
}

/// `INTERVAL(2) '…'`, whose digits of a second the library would drop.
fn rounded_interval(parser: &mut Parser<'_>) -> Option<Expr> {
    let is_interval = |token: &Token| {
        matches!(token, Token::Word(word)
            if word.keyword == Keyword::INTERVAL && word.quote_style.is_none())
    };
    if !is_interval(&parser.peek_token_ref().token) {
        return None;
    }
    let [_, open, digits, close, text] = parser.peek_tokens();
    let Token::Number(digits, _) = digits else {
        return None;
    };
    let Token::SingleQuotedString(text) = text else {
        return None;
    };
    let is_rounded = open == Token::LParen && close == Token::RParen;
    let digits = digits.parse().ok().filter(|_| is_rounded)?;
    for _ in 0..5 {
        parser.advance_token();
    }
    Some(Expr::Interval(Interval {
        value: Box::new(Expr::value(Value::SingleQuotedString(text))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: Some(digits),
    }))
}

/// Whether the parser is behind `ANY (` or its like.
fn is_behind_quantifier(parser: &Parser<'_>) -> bool {
    let mut before = (0..parser.index())
        .rev()
        .map(|at| &parser.token_at(at).token);
    before.next() == Some(&Token::LParen)
        && before.next().is_some_and(
            |token| matches!(token, Token::Word(word) if QUANTIFIERS.contains(&word.keyword)),
        )
}

/// Whether the parser is behind a SELECT that has no output and no FROM, which the library does not
/// know: it gets an empty tuple for an output.
fn is_at_missing_output(parser: &Parser<'_>) -> bool {
    let ends = match &parser.peek_token_ref().token {
        Token::EOF | Token::SemiColon | Token::RParen => true,
        Token::Word(word) => word.quote_style.is_none() && BEHIND_OUTPUT.contains(&word.keyword),
        _ => false,
    };
    let before = (0..parser.index()).rev().map(|at| parser.token_at(at));
    let mut before = before.filter(|token| !matches!(token.token, Token::Whitespace(_)));
    ends && before.next().is_some_and(
        |token| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::SELECT),
    )
}

/// What may follow the output of a SELECT without FROM.
const BEHIND_OUTPUT: [Keyword; 11] = [
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::WINDOW,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
];

const QUANTIFIERS: [Keyword; 3] = [Keyword::ANY, Keyword::SOME, Keyword::ALL];

/// The operator in the parentheses behind OPERATOR.
fn named_operator(parser: &mut Parser<'_>) -> Result<BinaryOperator, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let mut parts: Vec<String> = vec![String::new()];
    loop {
        match parser.next_token().token {
            Token::RParen => break,
            Token::Period => parts.push(String::new()),
            Token::EOF | Token::SemiColon => {
                return Err(ParserError::ParserError("Expected: )".to_owned()));
            }
            token => {
                if let Some(last) = parts.last_mut() {
                    *last += &token.to_string();
                }
            }
        }
    }
    let is_known = matches!(parts.as_slice(), [_])
        || matches!(parts.as_slice(), [schema, _] if schema == "pg_catalog");
    let symbol = parts.last().map_or("", String::as_str);
    Ok(match symbol {
        _ if !is_known => BinaryOperator::PGCustomBinaryOperator(parts),
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "^" => BinaryOperator::PGExp,
        "||" => BinaryOperator::StringConcat,
        "&" => BinaryOperator::BitwiseAnd,
        "|" => BinaryOperator::BitwiseOr,
        "#" => BinaryOperator::PGBitwiseXor,
        "<<" => BinaryOperator::PGBitwiseShiftLeft,
        ">>" => BinaryOperator::PGBitwiseShiftRight,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "^@" => BinaryOperator::PGStartsWith,
        "->" => BinaryOperator::Arrow,
        "->>" => BinaryOperator::LongArrow,
        "#>" => BinaryOperator::HashArrow,
        "#>>" => BinaryOperator::HashLongArrow,
        "#-" => BinaryOperator::HashMinus,
        "@>" => BinaryOperator::AtArrow,
        "<@" => BinaryOperator::ArrowAt,
        "@?" => BinaryOperator::AtQuestion,
        "@@" => BinaryOperator::AtAt,
        "?" => BinaryOperator::Question,
        "?|" => BinaryOperator::QuestionPipe,
        "?&" => BinaryOperator::QuestionAnd,
        _ => BinaryOperator::PGCustomBinaryOperator(parts),
    })
}

/// `[NOT] BETWEEN SYMMETRIC low AND high`, which the library does not know, as what it stands for:
/// one BETWEEN, or the other with the bounds exchanged. `None` when nothing like it follows.
fn symmetric_between(parser: &mut Parser<'_>, operand: &Expr) -> Result<Option<Expr>, ParserError> {
    for negated in [false, true] {
        for symmetric in [true, false] {
            let kind = if symmetric {
                Keyword::SYMMETRIC
            } else {
                Keyword::ASYMMETRIC
            };
            let words = [Keyword::NOT, Keyword::BETWEEN, kind];
            if !parser.parse_keywords(&words[usize::from(!negated)..]) {
                continue;
            }
            let there = parser.parse_between(operand.clone(), negated && !symmetric)?;
            let Expr::Between {
                expr, low, high, ..
            } = &there
            else {
                return Ok(Some(there));
            };
            if !symmetric {
                return Ok(Some(there));
            }
            let back = Expr::Between {
                expr: expr.clone(),
                negated: false,
                low: high.clone(),
                high: low.clone(),
            };
            let either = Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(there),
                op: BinaryOperator::Or,
                right: Box::new(back),
            }));
            return Ok(Some(match negated {
                false => either,
                true => Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(either),
                },
            }));
        }
    }
    Ok(None)
}

/// What a dialect may make of an option of a column; `None` leaves it to the library.
type ColumnOptionResult = Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError>;

/// `UNIQUE NULLS [NOT] DISTINCT` of a column, which the library knows for tables alone.
fn unique_of_nulls(parser: &mut Parser<'_>) -> ColumnOptionResult {
    use Keyword::{DISTINCT, NOT, NULLS, UNIQUE};
    let nulls_distinct = if parser.parse_keywords(&[UNIQUE, NULLS, NOT, DISTINCT]) {
        NullsDistinctOption::NotDistinct
    } else if parser.parse_keywords(&[UNIQUE, NULLS, DISTINCT]) {
        NullsDistinctOption::Distinct
    } else {
        return Ok(None);
    };
    let constraint = UniqueConstraint {
        name: None,
        index_name: None,
        index_type_display: KeyOrIndexDisplay::None,
        index_type: None,
        columns: Vec::new(),
        include: Vec::new(),
        index_options: Vec::new(),
        characteristics: parser.parse_constraint_characteristics()?,
        nulls_distinct,
    };
    Ok(Some(Ok(Some(constraint.into()))))
}
