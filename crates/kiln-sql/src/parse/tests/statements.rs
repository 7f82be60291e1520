//! Statements of SQL and headers of functions.

use super::{assert_refused, parse_ok};
use crate::parse::{
    ArgumentMode, Body, DropKind, FunctionDefinition, Returns, RoutineKind, Statement, TypeKind,
    Volatility, position_of,
};
use kiln_storage::error::Position;
use sqlparser::ast::{self, Spanned};

fn definition(text: &str) -> FunctionDefinition {
    match parse_ok(text) {
        Statement::CreateFunction(definition) => *definition,
        other => panic!("not a definition: {other:?}"),
    }
}

#[test]
fn queries_and_data_statements_parse() {
    for text in [
        "select 1",
        "(select 1) union all (select 2) order by 1 limit 3 offset 1",
        "values (1, 'a'), (2, 'b')",
        "table t",
        "with a as (select 1) select * from a",
        "select a.x, count(*), sum(distinct y) filter (where y > 0) from t a left join u on a.id = \
         u.id where x in (1, 2) and y between 1 and 2 or z like 'a%' and not w is null group by a.x \
         having count(*) > 1 order by 2 desc nulls last, 1 limit 10",
        "select case when a = 1 then 'x' else 'y' end, coalesce(a, 0), a::numeric(12, 2), \
         cast(b as text), -c ^ 2, d || 'e', date '2020-01-01' + interval '1 day', \
         extract(year from now()), substring(s from 2 for 3), trim(both ' ' from s), \
         position('a' in s), array[1, 2, 3], x[1], (select max(y) from t), exists (select 1)",
        "select a is distinct from b, a is not true, a = any (array[1, 2]), row(1, 2) < (3, 4)",
        "select 1.5e-3, .5, 1., E'a\\n\\x41\\'', 'a'\n'b', $$d'q$$, $1, \"Mixed\", x'1f'",
        "select * from t for update",
        "select a isnull, b notnull from t where c isnull and d notnull",
        "insert into t values (1, 2), (3, default) returning *",
        "insert into t (a, b) select 1, 2 on conflict (a) do update set b = excluded.b + t.b",
        "insert into t default values",
        "update t set a = a + 1, (b, c) = (1, 2) where id = 3 returning a, b",
        "update t set a = u.a from u where u.id = t.id",
        "delete from t where a < 3 returning id",
        "delete from t using u where u.id = t.id",
        "truncate t, u",
        "truncate table t",
        "begin",
        "begin isolation level serializable",
        "start transaction read only",
        "commit",
        "end",
        "rollback",
        "abort",
        "set timezone = 'UTC'",
        "set search_path to public",
        "show timezone",
        "explain select 1",
        "explain analyze verbose insert into t values (1)",
        "explain call f(1)",
        "call f()",
        "call payment(1, 'x', c => 3 + 4, d := array[1, 2])",
        "drop table if exists a, b cascade",
        "drop index i",
        "drop function if exists f(int, inout x text, out int), g cascade",
        "drop procedure p",
        "drop routine r()",
        "create unique index i on t (a, b desc)",
        "create index if not exists i on t using hash (a)",
        "create table t (id int primary key, a varchar(10) not null default 'x' check (a <> ''), \
         b numeric(12, 2) references u (b) on delete cascade, c timestamptz, d double precision, \
         e bytea, f uuid, g char(3) unique, constraint p primary key (a, b), foreign key (a, b) \
         references v (x, y), check (b > 0))",
        "do $$ begin null; end $$",
        "do language plpgsql $$ begin null; end $$",
    ] {
        parse_ok(text);
    }
}

#[test]
fn unquoted_identifiers_are_folded_and_spans_kept() {
    let Statement::Query(query) = parse_ok("select Foo, \"Bar\"\n from Bär") else {
        panic!("not a query")
    };
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        panic!("not a select")
    };
    assert_eq!(select.projection[0].to_string(), "foo");
    assert_eq!(select.projection[1].to_string(), "\"Bar\"");
    assert_eq!(select.from[0].to_string(), "bär");
    let place = position_of(select.from[0].span());
    assert_eq!(place, Some(Position { line: 2, column: 7 }));
}

#[test]
fn literals_have_their_values() {
    let Statement::Query(query) =
        parse_ok("values ('it''s', E'\\u00e9\\t\\'\\xc3\\xa9', 'a'\n'b')")
    else {
        panic!("not a query")
    };
    let ast::SetExpr::Values(values) = query.body.as_ref() else {
        panic!("not values")
    };
    let found: Vec<_> = values.rows[0]
        .iter()
        .map(|value| match value {
            ast::Expr::Value(value) => value.value.clone().into_string().unwrap_or_default(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, ["it's", "é\t'é", "ab"]);
}

#[test]
fn drops_say_what_they_drop() {
    let Statement::Drop(drop) = parse_ok("drop table if exists a, b cascade") else {
        panic!()
    };
    assert_eq!(
        (drop.kind, drop.if_exists, drop.cascade),
        (DropKind::Table, true, true)
    );
    assert_eq!(drop.names.len(), 2);
    let Statement::DropFunction(drop) = parse_ok("drop procedure p(a int, out b text), q") else {
        panic!()
    };
    assert_eq!(drop.kind, Some(RoutineKind::Procedure));
    assert_eq!(drop.routines[0].arguments.as_ref().map(Vec::len), Some(1));
    assert_eq!(drop.routines[1].arguments, None);
}

#[test]
fn calls_know_their_arguments() {
    let Statement::Call(call) = parse_ok("call F(1, b => f(2, 3))") else {
        panic!()
    };
    assert_eq!(call.name.to_string(), "f");
    assert_eq!(call.arguments.len(), 2);
    assert_eq!(
        call.arguments[1]
            .name
            .as_ref()
            .map(|name| name.value.as_str()),
        Some("b")
    );
    assert_eq!(
        call.arguments[1].value.position,
        Position {
            line: 1,
            column: 16
        }
    );
}

#[test]
fn headers_of_functions() {
    let function = definition(
        "create or replace function F(a int, inout b numeric(12,2) default 1.5, out c text[],\n \
         d t.c%type = null, timestamp with time zone, in e double precision, f in u%rowtype)\n \
         returns record immutable strict parallel safe cost 10 as $$ begin end $$ language plpgsql",
    );
    assert!(function.or_replace && function.strict);
    assert_eq!(function.kind, RoutineKind::Function);
    assert_eq!(function.volatility, Volatility::Immutable);
    assert_eq!(function.name.to_string(), "f");
    let modes: Vec<_> = function
        .arguments
        .iter()
        .map(|argument| argument.mode)
        .collect();
    let (input, output, both) = (ArgumentMode::In, ArgumentMode::Out, ArgumentMode::InOut);
    assert_eq!(modes, [input, both, output, input, input, input, input]);
    let names: Vec<_> = function
        .arguments
        .iter()
        .map(|argument| {
            argument
                .name
                .as_ref()
                .map_or("", |name| name.value.as_str())
        })
        .collect();
    assert_eq!(names, ["a", "b", "c", "d", "", "e", "f"]);
    assert!(function.arguments[1].default.is_some() && function.arguments[3].default.is_some());
    assert_eq!(
        function.arguments[3].position,
        Position { line: 2, column: 2 }
    );
    assert!(matches!(
        &function.arguments[2].data_type.kind,
        TypeKind::Sql(ast::DataType::Array(_))
    ));
    assert!(
        matches!(&function.arguments[3].data_type.kind, TypeKind::Like(path) if path.len() == 2)
    );
    assert!(
        matches!(&function.arguments[6].data_type.kind, TypeKind::RowOf(path) if path.len() == 1)
    );
    assert!(matches!(
        function.returns,
        Some(Returns::Type(ref returns)) if returns.kind == TypeKind::Record
    ));
}

#[test]
fn results_of_functions() {
    let returns = |returns: &str| {
        definition(&format!(
            "create function f() {returns} language plpgsql called on null input as $$begin end$$"
        ))
        .header
        .returns
    };
    assert_eq!(returns(""), None);
    assert_eq!(returns("returns void"), Some(Returns::Void));
    assert!(matches!(
        returns("returns setof t"),
        Some(Returns::SetOf(_))
    ));
    assert!(matches!(
        returns("returns double precision"),
        Some(Returns::Type(_))
    ));
    assert!(matches!(
        returns("returns table (a int, b numeric(3,1), c timestamp with time zone)"),
        Some(Returns::Table(columns)) if columns.len() == 3
    ));
}

#[test]
fn bodies_in_other_quotes_and_languages() {
    let body = |text: &str| definition(text).body;
    assert!(matches!(
        body("create function f() returns text language 'plpgsql' as 'begin return ''x''; end'"),
        Body::PlPgSql(block) if block.body.len() == 1
    ));
    let Body::Sql(statements) = body(
        "create function f(a int) returns int stable language sql as $$ \n insert into t values (a);\n\
         select a + 1; $$",
    ) else {
        panic!("not SQL")
    };
    assert_eq!(statements.len(), 2);
    assert_eq!(statements[0].0, Position { line: 2, column: 2 });
    assert!(matches!(
        statements[1],
        (Position { line: 3, column: 1 }, Statement::Query(_))
    ));
    let procedure = definition("create procedure p(out a int) language plpgsql as $$begin end$$");
    assert_eq!(
        (procedure.kind, procedure.header.returns),
        (RoutineKind::Procedure, None)
    );
}

#[test]
fn syntax_errors_are_worded_and_placed_as_postgres_does() {
    for (text, near) in [
        ("¶selct 1", "syntax error at or near \"selct\""),
        ("select 1 +¶", "syntax error at end of input"),
        ("select 1 ¶)", "syntax error at or near \")\""),
        ("select a, b c ¶d from t", "at or near \"d\""),
        ("insert into t values (1) ¶(2)", "at or near \"(\""),
        (
            "select ¶'abc",
            "unterminated quoted string at or near \"'abc\"",
        ),
        ("select ¶\"abc", "unterminated quoted identifier"),
        ("do ¶$$ begin", "unterminated dollar-quoted string"),
        ("select 1 ¶/* x", "unterminated /* comment"),
        ("select ¶\"\"", "zero-length delimited identifier"),
        (
            "select ¶12ab",
            "trailing junk after numeric literal at or near \"12ab\"",
        ),
        ("create ¶foo bar", "syntax error at or near \"foo\""),
        ("drop ¶foo bar", "syntax error at or near \"foo\""),
        (
            "create function f() returns int ¶wrong",
            "at or near \"wrong\"",
        ),
        (
            "create procedure f() ¶returns int language sql as ''",
            "at or near \"returns\"",
        ),
        ("create function f(a int¶", "syntax error at end of input"),
        ("create function f(a int,¶)", "at or near \")\""),
        ("create function f() returns ¶setof language sql as ''", ""),
        (
            "create function f() language sql as '' ¶language sql",
            "conflicting or redundant",
        ),
        ("call f(1¶", "syntax error at end of input"),
        ("call f(1,¶)", "missing expression at or near \")\""),
        ("¶", "syntax error at end of input"),
        ("select 1¶; select 2", "several statements"),
        ("explain ¶commit", "at or near \"commit\""),
    ] {
        if text.contains("¶setof") {
            assert_refused(&text.replace("¶setof ", "setof ¶"), "42601", near);
        } else {
            assert_refused(text, "42601", near);
        }
    }
}

#[test]
fn what_is_not_supported_is_named() {
    for (text, feature) in [
        (
            "alter table t ¶enable row level security",
            "ALTER TABLE … ENABLE",
        ),
        (
            "alter table t add unique ¶using index i",
            "a key of an index that there is",
        ),
        (
            "alter table t alter a ¶set something else",
            "this form of ALTER TABLE … ALTER COLUMN",
        ),
        (
            "¶alter index i set tablespace s",
            "this form of ALTER INDEX",
        ),
        (
            "¶alter function f() immutable",
            "this form of ALTER of a routine",
        ),
        (
            "¶create or replace recursive view v (a) as select 1",
            "CREATE RECURSIVE",
        ),
        (
            "create view v ¶with (security_barrier) as select 1",
            "an option of a view",
        ),
        (
            "¶alter view v alter a set default 1",
            "this form of ALTER VIEW",
        ),
        (
            "create schema s ¶create table t (a int)",
            "CREATE SCHEMA with what is in it",
        ),
        (
            "select 1 ¶into unlogged t from u",
            "SELECT INTO an unlogged",
        ),
        ("commit ¶prepared 'x'", "two-phase commit"),
        ("set transaction ¶snapshot 'x'", "SET TRANSACTION SNAPSHOT"),
        (
            "create function f() returns ¶event_trigger language plpgsql as $$begin end$$",
            "type event_trigger",
        ),
        (
            "create trigger g before insert on t ¶execute function f()",
            "a trigger FOR EACH STATEMENT",
        ),
        (
            "create trigger g after delete on t ¶referencing old table as o for each row execute function f()",
            "a transition table",
        ),
        (
            "create trigger g after ¶truncate on t for each statement execute function f()",
            "a TRUNCATE trigger",
        ),
        (
            "create trigger g ¶instead of insert on v for each row execute function f()",
            "an INSTEAD OF trigger",
        ),
        (
            "create ¶constraint trigger g after insert on t for each row execute function f()",
            "a constraint trigger",
        ),
        (
            "create function f() returns int language ¶c as 'x'",
            "LANGUAGE c",
        ),
        (
            "create function f() returns int language plpgsql as ¶E'begin end'",
            "escapes",
        ),
        (
            "create function f() returns int language sql ¶set a = 1 as ''",
            "SET",
        ),
        (
            "create function f() returns int language sql ¶begin atomic; end",
            "BEGIN ATOMIC",
        ),
        (
            "create function f() returns int language sql ¶return 1",
            "RETURN",
        ),
        (
            "create function f() returns int language sql as '¶commit'",
            "transaction statement",
        ),
    ] {
        let text = text.split(';').next().unwrap_or(text);
        assert_refused(text, "0A000", feature);
    }
}

#[test]
fn incomplete_definitions() {
    assert_refused(
        "¶create function f() returns int language sql",
        "42P13",
        "no function body",
    );
    assert_refused(
        "¶create function f() returns int as ''",
        "42P13",
        "no language specified",
    );
}
