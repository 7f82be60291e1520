//! Function bodies.

use super::{assert_refused, parse_ok};
use crate::parse::plpgsql::{
    Block, ExitKind, RaiseLevel, RaiseMessage, RaiseOption, RowSource, StatementKind,
};
use crate::parse::{Statement, TypeKind};
use kiln_procedure::ir::{Condition, DiagnosticItem};
use kiln_storage::error::{Position, SqlState};
use sqlparser::ast::Expr;

fn block(body: &str) -> Block {
    match parse_ok(&format!("do $$ {body} $$")) {
        Statement::Do(block) => *block,
        other => panic!("not a block: {other:?}"),
    }
}

/// The only statement of a body.
fn only(statement: &str) -> StatementKind {
    let mut block = block(&format!("begin {statement} end"));
    assert_eq!(block.body.len(), 1, "{block:?}");
    block.body.remove(0).kind
}

/// Checks that a statement in a body is refused at the mark.
fn refused(statement: &str, state: &str, message: &str) {
    assert_refused(
        &format!("do $$\nbegin\n  {statement}\nend $$"),
        state,
        message,
    );
}

#[test]
fn blocks_and_declarations() {
    let block = block(
        "<<outer>> declare\n a int; b constant numeric(12,2) not null := 1.5 * 2;\n \
         c t.x%type default 'y'; d t%rowtype; e record; f int[] = array[1, 2]; \"G\" text;\n \
         begin <<inner>> declare a int; begin null; end inner; begin end; end outer;",
    );
    assert_eq!(
        block.label.as_ref().map(|label| label.value.as_str()),
        Some("outer")
    );
    let names: Vec<_> = block
        .declarations
        .iter()
        .map(|one| one.name.value.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "G"]);
    let b = &block.declarations[1];
    assert!(b.constant && b.not_null && b.default.is_some());
    assert!(matches!(
        block.declarations[2].data_type.kind,
        TypeKind::Like(_)
    ));
    assert!(matches!(
        block.declarations[3].data_type.kind,
        TypeKind::RowOf(_)
    ));
    assert_eq!(block.declarations[4].data_type.kind, TypeKind::Record);
    assert_eq!(
        block.declarations[0].position,
        Position { line: 2, column: 2 }
    );
    assert_eq!(block.body.len(), 2);
}

#[test]
fn assignments() {
    for (text, path, subscripts) in [
        ("a := 1;", 1, 0),
        ("a = 1;", 1, 0),
        ("r.x := case when a then b else c end;", 2, 0),
        ("a[i + 1] := f(1, 2);", 1, 1),
        ("r.a[i][b[j]] := 0;", 2, 2),
        ("\"End\" := 0;", 1, 0),
        ("exit := 1;", 1, 0),
    ] {
        match only(text) {
            StatementKind::Assign { target, .. } => {
                assert_eq!((target.path.len(), target.places.len()), (path, subscripts));
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    // What stands after := is a SELECT without its SELECT.
    let StatementKind::Assign { value, .. } = only("n := count(*) from t where a = b;") else {
        panic!()
    };
    assert!(matches!(value.expr, Expr::Subquery(_)));
    let StatementKind::Assign { value, .. } = only("n := a is not distinct from b;") else {
        panic!()
    };
    assert!(matches!(value.expr, Expr::IsNotDistinctFrom(..)));
}

#[test]
fn into_stands_in_many_places() {
    for (text, strict, targets) in [
        ("select a, b into x, y from t;", false, 2),
        ("select into strict x a from t where b = 1;", true, 1),
        ("select into x, y a, b from t;", false, 2),
        ("select a from t into strict r;", true, 1),
        ("select a from t where b = 1 into r.x, l.r.y;", false, 2),
        (
            "select a from t order by a limit 1 into x for update;",
            false,
            1,
        ),
        (
            "with c as (select 1 as a) select a into x from c;",
            false,
            1,
        ),
        ("values (1) into x;", false, 1),
    ] {
        match only(text) {
            StatementKind::Select { into, query } => {
                assert_eq!(
                    (into.strict, into.targets.len()),
                    (strict, targets),
                    "{text}"
                );
                assert!(
                    !query.to_string().to_lowercase().contains("into"),
                    "{query}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    for (text, into) in [
        ("insert into t values (1) returning a into x;", true),
        ("insert into t select 1;", false),
        (
            "update t set a = 1 where b = 2 returning a, b into strict x, y;",
            true,
        ),
        ("delete from t where a = 1;", false),
        ("delete from t returning * into r;", true),
    ] {
        match only(text) {
            StatementKind::Data { into: found, .. } => assert_eq!(found.is_some(), into, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn branches() {
    let StatementKind::If {
        branches,
        otherwise,
    } = only(
        "if a then b := 1; elsif case when x then y else z end then null; elseif c then null; \
         null; else null; end if;",
    )
    else {
        panic!()
    };
    assert_eq!((branches.len(), otherwise.len()), (3, 1));
    assert_eq!(branches[2].1.len(), 2);
    let StatementKind::Case {
        operand,
        arms,
        otherwise,
    } = only("case a + 1 when 1, 2 then null; when f(3, 4) then null; else null; end case;")
    else {
        panic!()
    };
    assert!(operand.is_some() && otherwise.is_some());
    assert_eq!((arms[0].values.len(), arms[1].values.len()), (2, 1));
    let StatementKind::Case {
        operand,
        arms,
        otherwise,
    } = only("case when a = 1 and b then null; end case;")
    else {
        panic!()
    };
    assert!(operand.is_none() && otherwise.is_none());
    assert_eq!(arms.len(), 1);
}

#[test]
fn loops() {
    let StatementKind::Loop(body) = only(
        "<<l>> loop exit; exit l; exit l when a > 1; continue when a < 1; continue l; end loop l;",
    ) else {
        panic!()
    };
    assert_eq!(
        body.label.as_ref().map(|label| label.value.as_str()),
        Some("l")
    );
    assert_eq!(body.body.len(), 5);
    assert!(matches!(
        &body.body[2].kind,
        StatementKind::Exit {
            kind: ExitKind::Exit,
            label: Some(_),
            condition: Some(_)
        }
    ));
    assert!(matches!(
        only("while a < 3 loop a := a + 1; end loop;"),
        StatementKind::While { .. }
    ));
    for (text, reverse, step, from, to) in [
        (
            "for i in 1..10 loop null; end loop;",
            false,
            false,
            "1",
            "10",
        ),
        (
            "for i in reverse n..1 by 2 loop null; end loop;",
            true,
            true,
            "n",
            "1",
        ),
        (
            "for i in a[1].. array_length(a, 1) loop null; end loop;",
            false,
            false,
            "a[1]",
            "",
        ),
        ("for i in (x)..y loop end loop;", false, false, "(x)", "y"),
    ] {
        let StatementKind::ForRange(range) = only(text) else {
            panic!("{text}")
        };
        assert_eq!(
            (range.reverse, range.step.is_some()),
            (reverse, step),
            "{text}"
        );
        assert_eq!(range.from.expr.to_string(), from);
        assert!(range.to.expr.to_string().starts_with(to));
    }
    let StatementKind::ForQuery { targets, .. } =
        only("for a, r.b in select x, y from t where z in (1, 2) loop null; end loop;")
    else {
        panic!()
    };
    assert_eq!(targets.len(), 2);
    for text in [
        "for r in (select 1) loop end loop;",
        "for r in with a as (select 1) select * from a loop end loop;",
        "for r in values (1) loop end loop;",
        "for r in update t set a = 1 where b in (select 1) returning c loop end loop;",
        "for r.x, y in delete from t returning * loop end loop;",
    ] {
        assert!(
            matches!(only(text), StatementKind::ForQuery { .. }),
            "{text}"
        );
    }
    assert!(matches!(
        only("foreach x in array a || b loop null; end loop;"),
        StatementKind::ForEach { .. }
    ));
}

#[test]
fn returns() {
    assert!(matches!(only("return;"), StatementKind::Return(None)));
    assert!(matches!(
        only("return (a, b);"),
        StatementKind::Return(Some(_))
    ));
    assert!(matches!(
        only("return next;"),
        StatementKind::ReturnNext(None)
    ));
    assert!(matches!(
        only("return next r;"),
        StatementKind::ReturnNext(Some(_))
    ));
    assert!(matches!(
        only("return query select 1;"),
        StatementKind::ReturnQuery(RowSource::Query(_))
    ));
    assert!(matches!(
        only("return query insert into t values (1) returning a;"),
        StatementKind::ReturnQuery(RowSource::Data(_))
    ));
}

#[test]
fn raises() {
    let raise = |text: &str| match only(text) {
        StatementKind::Raise(raise) => raise,
        other => panic!("{other:?}"),
    };
    let full = raise(
        "raise notice 'a % b %% c %', f(1, 2), x using errcode = 'P0001', hint = 'h' || y, \
         detail := 'd';",
    );
    assert_eq!(full.level, RaiseLevel::Notice);
    assert!(matches!(full.message, RaiseMessage::Format { arguments, .. } if arguments.len() == 2));
    let options: Vec<_> = full.options.iter().map(|(option, _)| *option).collect();
    assert_eq!(
        options,
        [
            RaiseOption::ErrorCode,
            RaiseOption::Hint,
            RaiseOption::Detail
        ]
    );
    assert_eq!(raise("raise;").message, RaiseMessage::Again);
    assert_eq!(raise("raise 'x';").level, RaiseLevel::Exception);
    assert_eq!(
        raise("raise division_by_zero;").message,
        RaiseMessage::Condition {
            state: SqlState::DIVISION_BY_ZERO,
            name: "division_by_zero".to_string()
        }
    );
    assert!(matches!(
        raise("raise exception sqlstate '22012' using message = 'm';").message,
        RaiseMessage::Condition {
            state: SqlState::DIVISION_BY_ZERO,
            ..
        }
    ));
    assert_eq!(
        raise("raise using message = 'm';").message,
        RaiseMessage::Options
    );
}

#[test]
fn rows_without_a_destination_are_an_error_of_the_run() {
    for text in ["select 1;", "delete from t returning a;"] {
        let StatementKind::Unexecutable(error) = only(text) else {
            panic!("{text} is executable")
        };
        assert_eq!(error.state(), SqlState::SYNTAX_ERROR);
        assert!(error.message().contains("no destination"), "{error}");
    }
}

#[test]
fn other_statements() {
    assert!(matches!(only("null;"), StatementKind::Null));
    assert!(matches!(
        only("perform f(1), g() from t where a = 1;"),
        StatementKind::Perform(_)
    ));
    assert!(matches!(only("call p(1, b => 2);"), StatementKind::Call(_)));
    assert!(matches!(
        only("assert a > f(1, 2), 'no';"),
        StatementKind::Assert {
            message: Some(_),
            ..
        }
    ));
    assert!(matches!(
        only("get diagnostics n = row_count;"),
        StatementKind::GetRowCount(_)
    ));
    assert!(matches!(
        only("get current diagnostics r.n := row_count, m = row_count;"),
        StatementKind::GetRowCount(targets) if targets.len() == 2
    ));
    let StatementKind::GetStacked(items) =
        only("get stacked diagnostics a = message_text, b = returned_sqlstate;")
    else {
        panic!("it is a GET STACKED DIAGNOSTICS");
    };
    let items: Vec<DiagnosticItem> = items.into_iter().map(|(_, item)| item).collect();
    let expected = [
        DiagnosticItem::MessageText,
        DiagnosticItem::ReturnedSqlState,
    ];
    assert_eq!(items, expected);
}

#[test]
fn exception_clauses() {
    let block = block(
        "begin a := 1; exception when unique_violation or sqlstate 'AB123' then b := 1; c := 1; \
         when others then null; end",
    );
    assert_eq!(block.body.len(), 1);
    let [first, second] = block.handlers.as_slice() else {
        panic!("{block:?}");
    };
    let named = |code| Condition::State(SqlState::parse(code).expect("a state"));
    assert_eq!(first.conditions, [named("23505"), named("AB123")]);
    assert_eq!(first.body.len(), 2);
    assert_eq!(second.conditions, [Condition::Others]);
    // One name in two classes.
    let block = self::block("begin exception when null_value_not_allowed then null; end");
    assert_eq!(
        block.handlers[0].conditions,
        [named("22004"), named("39004")]
    );
}

#[test]
fn nodes_know_their_places() {
    let block = block("begin\n  a := 1\n   + b;\n  <<l>> loop\n    exit;\n  end loop;\nend");
    assert_eq!(block.position, Position { line: 1, column: 7 });
    assert_eq!(block.body[0].position, Position { line: 2, column: 3 });
    assert_eq!(block.body[1].position, Position { line: 4, column: 3 });
    let StatementKind::Assign { value, .. } = &block.body[0].kind else {
        panic!()
    };
    assert_eq!(value.position, Position { line: 2, column: 8 });
    let StatementKind::Loop(body) = &block.body[1].kind else {
        panic!()
    };
    assert_eq!(body.body[0].position, Position { line: 5, column: 5 });
}

#[test]
fn syntax_errors_in_bodies() {
    for (text, message) in [
        ("a := ¶;", "missing expression at or near \";\""),
        ("a := 1 +¶;", "at or near \";\""),
        ("if a ¶; end if;", "at or near \";\""),
        (
            "if ¶then null; end if;",
            "missing expression at or near \"then\"",
        ),
        ("if a then null; end ¶loop;", "at or near \"loop\""),
        ("if f(a ¶; then", "mismatched parentheses"),
        ("loop null; ¶else null; end loop;", "at or near \"else\""),
        ("¶foo bar;", "at or near \"foo\""),
        ("select 1 into ¶1 from t;", "at or near \"1\""),
        ("select 1 into a ¶into b;", "INTO specified more than once"),
        ("delete from t ¶into a;", "INTO used with a command"),
        (
            "for ¶a, b in 1..2 loop end loop;",
            "only one target variable",
        ),
        ("for a in ¶reverse select 1 loop end loop;", "REVERSE"),
        ("for a in ¶1 + 1 loop end loop;", "at or near \"1\""),
        ("¶exit;", "outside a loop"),
        ("¶continue;", "outside a loop"),
        ("loop exit ¶l; end loop;", "there is no label \"l\""),
        (
            "<<l>> begin loop continue ¶l; end loop; end;",
            "cannot be used in CONTINUE",
        ),
        ("<<l>> loop end loop ¶m;", "differs from block's label"),
        ("loop end loop ¶m;", "unlabeled block"),
        ("<<l>> ¶null;", "at or near \"null\""),
        ("raise ¶'a %';", "too few parameters"),
        ("raise ¶'a', 1;", "too many parameters"),
        ("raise 'a' ¶1;", "at or near \"1\""),
        ("raise notice¶;", "at or near \";\""),
        ("raise 'a' using ¶foo = 1;", "unrecognized RAISE"),
        (
            "raise 'a' using hint = 'a', ¶hint = 'b';",
            "already specified",
        ),
        ("raise sqlstate ¶'abc';", "invalid SQLSTATE"),
        ("get diagnostics a = ¶foo;", "unrecognized GET DIAGNOSTICS"),
        ("assert a, b¶, c;", "at or near \",\""),
        ("return query¶;", "at or near \";\""),
        ("perform¶;", "at or near \";\""),
        ("null ¶1;", "at or near \"1\""),
        (
            "for r in ¶delete from t loop end loop;",
            "DELETE without RETURNING",
        ),
    ] {
        refused(text, "42601", message);
    }
    refused(
        "raise ¶no_such_condition;",
        "42704",
        "unrecognized exception condition",
    );
    for (text, message) in [
        ("do $$ begin null;¶ $$", "end of input"),
        ("do $$¶$$", "end of input"),
        ("do $$ begin end ¶x $$", "unlabeled block"),
        ("do $$ begin end; ¶null; $$", "at or near \"null\""),
        (
            "do $$ declare a int; ¶a text; begin end $$",
            "duplicate declaration",
        ),
        (
            "do $$ declare a int :=¶; begin end $$",
            "missing expression",
        ),
        ("do $$ declare a ¶; begin end $$", "at or near \";\""),
        ("do $$ ¶a int; begin end $$", "at or near \"a\""),
        ("do $$ begin a := ¶'x; end $$", "unterminated quoted string"),
    ] {
        // A mark at the end of the body stands after the space before the closing quote.
        let text = text.replace("¶ $$", " ¶$$");
        assert_refused(&text, "42601", message);
    }
    assert_refused(
        "do $$ declare a int ¶not null; begin end $$",
        "22004",
        "must have a default",
    );
}

#[test]
fn unsupported_features_in_bodies() {
    for (text, feature) in [
        ("¶fetch all from c into x;", "cannot return multiple rows"),
        (
            "¶fetch forward 2 from c into x;",
            "cannot return multiple rows",
        ),
        ("commit and ¶chain;", "AND CHAIN"),
        ("¶savepoint s;", "a transaction statement"),
        ("get diagnostics a = ¶pg_context;", "PG_CONTEXT"),
        ("foreach a ¶slice 1 in array b loop end loop;", "SLICE"),
        (
            "¶with a as (select 1) insert into t select * from a;",
            "WITH before INSERT",
        ),
    ] {
        refused(text, "0A000", feature);
    }
    for (text, feature) in [
        ("do $$ declare c ¶alias for $1; begin end $$", "ALIAS"),
        (
            "do $$ declare c text ¶collate \"C\"; begin end $$",
            "COLLATE",
        ),
        (
            "do $$ ¶#variable_conflict use_column\n begin end $$",
            "option",
        ),
    ] {
        assert_refused(text, "0A000", feature);
    }
}
