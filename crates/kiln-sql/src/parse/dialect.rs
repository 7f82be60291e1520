//! PostgreSQL's dialect as `sqlparser` knows it, with PostgreSQL's rule on which words may be the
//! name of a result column without AS. The library takes `ON` for such a name, which makes
//! `INSERT … SELECT 1 ON CONFLICT …` a syntax error.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;

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
        self.0.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.0.prec_value(precedence)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        operand: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        symmetric_between(parser, operand).transpose()
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

/// `[NOT] BETWEEN SYMMETRIC low AND high`, which the library does not know, as what it stands for: one
/// BETWEEN, or the other with the bounds exchanged. `None` when nothing like it follows.
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
