//! What bodies are compiled to, what is refused, and a few that run. How bodies behave is compared
//! with PostgreSQL by the snippets of the crate `kiln`.

use kiln_procedure::ir::{Block, Instruction, Reg, Step};
use kiln_storage::error::{Error, SqlState};
use kiln_storage::types::Value;

use super::passes;
use crate::{Database, Options, Protocol};

const TABLES: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, s VARCHAR(10));
    CREATE TABLE line (o INTEGER, n INTEGER, amount NUMERIC(6, 2), PRIMARY KEY (o, n));
    INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two');
    INSERT INTO line VALUES (1, 1, 1.50), (1, 2, 2.50), (2, 1, 4.00);";

fn database() -> Database {
    let options = Options::new().workers(1).protocol(Protocol::Serial);
    let database = Database::open(options).expect("an empty database");
    database.execute(TABLES).expect("two tables");
    database
}

/// The steps of a function called `f`, by name: blocks in parentheses, the parts of a conditional
/// with a bar between them.
fn outline(definition: &str) -> String {
    let database = database();
    database.execute(definition).expect("a function");
    let catalog = database.engine().catalog();
    let program = catalog
        .procedure("f")
        .expect("just created")
        .program()
        .clone();
    listed(&program.body)
}

fn listed(block: &[Step]) -> String {
    let names: Vec<String> = block.iter().map(name_of).collect();
    names.join(" ")
}

fn name_of(step: &Step) -> String {
    match step {
        Step::If {
            then, otherwise, ..
        } => {
            format!("If({} | {})", listed(then), listed(otherwise))
        }
        Step::Loop { before, body, .. } => format!("Loop({} | {})", listed(before), listed(body)),
        Step::Scan { body, .. } => format!("Scan({})", listed(body)),
        Step::ForRange { body, .. } => format!("ForRange({})", listed(body)),
        Step::ForEach { body, .. } => format!("ForEach({})", listed(body)),
        Step::ForBuffer { body, .. } => format!("ForBuffer({})", listed(body)),
        Step::Read { columns, .. } => format!("Read{}", columns.len()),
        Step::Scalar(instruction) => {
            let text = format!("{instruction:?}");
            text.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
        other => {
            let text = format!("{other:?}");
            text.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

fn refusal(definition: &str) -> Error {
    database()
        .execute(definition)
        .expect_err("a definition that is refused")
}

#[test]
fn a_look_up_reads_straight_into_variables() {
    let steps = outline(
        "CREATE FUNCTION f(k INTEGER, OUT a INTEGER, OUT b VARCHAR) LANGUAGE plpgsql AS $$
         BEGIN SELECT v, s INTO a, b FROM t WHERE id = k; END $$",
    );
    assert_eq!(steps, "Lookup If(Read2 | SetNull SetNull) Emit");
}

#[test]
fn found_is_kept_only_where_it_is_read() {
    let body = |condition: &str| {
        outline(&format!(
            "CREATE FUNCTION f(k INTEGER, OUT a INTEGER) LANGUAGE plpgsql AS $$
             BEGIN
               UPDATE t SET v = 3 WHERE id = k;
               SELECT v INTO a FROM t WHERE id = k + 1;
               IF {condition} THEN a := 0; END IF;
               DELETE FROM t WHERE id = k + 2;
             END $$"
        ))
    };
    let unread = body("a IS NULL");
    assert!(unread.contains("If(Read1 | SetNull)"), "{unread}");
    let read = body("NOT FOUND");
    assert!(
        read.contains("If(Read1 Move | SetNull Move) If( | Move)"),
        "{read}"
    );
    // Of the three statements that set it, only the one before the condition does.
    assert_eq!(
        read.matches("Compare").count(),
        unread.matches("Compare").count(),
        "{read}"
    );
}

#[test]
fn an_update_by_key_returns_without_a_buffer() {
    let steps = outline(
        "CREATE FUNCTION f(k INTEGER, OUT a INTEGER) LANGUAGE plpgsql AS $$
         BEGIN UPDATE t SET v = v + 1 WHERE id = k RETURNING v INTO a; END $$",
    );
    assert_eq!(steps, "Lookup If(Read1 Integer Update | SetNull) Emit");
}

#[test]
fn the_first_row_ends_the_scan() {
    let steps = outline(
        "CREATE FUNCTION f(k INTEGER, OUT a INTEGER) LANGUAGE plpgsql AS $$
         BEGIN SELECT n INTO a FROM line WHERE o = k ORDER BY n LIMIT 1; END $$",
    );
    assert_eq!(
        steps,
        "SetNull Move Scan(Read1 Move Exit) If( | SetNull) Emit"
    );
}

#[test]
fn a_loop_over_changed_rows_collects_them_only_when_it_must() {
    let body = |body: &str| {
        outline(&format!(
            "CREATE FUNCTION f(k INTEGER, OUT total NUMERIC) LANGUAGE plpgsql AS $$
             DECLARE x NUMERIC(6, 2);
             BEGIN
               total := 0;
               FOR x IN UPDATE line SET amount = amount + 1 WHERE o = k RETURNING amount LOOP
                 {body}
               END LOOP;
             END $$"
        ))
    };
    assert!(!body("total := total + x;").contains("Buffer"));
    assert!(body("EXIT WHEN x > 1;").contains("ForBuffer"));
    assert!(body("DELETE FROM t WHERE id = x;").contains("ForBuffer"));
}

#[test]
fn a_call_is_compiled_in_its_place() {
    let database = database();
    database
        .execute(
            "CREATE FUNCTION g(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             DECLARE x INTEGER;
             BEGIN
               SELECT v INTO x FROM t WHERE id = k;
               RETURN x;
             END $$;
             CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             BEGIN
               UPDATE t SET v = v + 1 WHERE id = k;
               RETURN g(k) * 2;
             END $$;",
        )
        .expect("two functions");
    let catalog = database.engine().catalog();
    let program = catalog
        .procedure("f")
        .expect("just created")
        .program()
        .clone();
    let lookups = program
        .operations
        .iter()
        .filter(|operation| operation.kind == kiln_procedure::ir::OperationKind::Lookup);
    assert_eq!(lookups.count(), 1, "both look the same record up");
    let rows = database.query("SELECT f(2)", ()).expect("a row");
    assert_eq!(rows.into_rows::<(i32,)>().expect("an integer"), [(42,)]);
}

#[test]
fn a_statement_that_does_not_compile_waits_for_its_call() {
    let database = database();
    database
        .execute(
            "CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             BEGIN
               IF k > 1 THEN
                 RETURN nosuch;
               END IF;
               RETURN (SELECT nosuch FROM t);
             END $$",
        )
        .expect("PostgreSQL accepts it too");
    let error = database
        .query("SELECT f(2)", ())
        .expect_err("a name that means nothing");
    assert_eq!(error.state(), SqlState::UNDEFINED_COLUMN);
    assert_eq!(error.message(), "column \"nosuch\" does not exist");
    let position = error.position().expect("where it stands");
    assert_eq!((position.line, position.column), (4, 25));
}

#[test]
fn what_a_missing_table_broke_its_creation_cures() {
    let database = database();
    database
        .execute(
            "CREATE FUNCTION f() RETURNS BIGINT LANGUAGE plpgsql AS $$
             BEGIN RETURN (SELECT count(*) FROM later); END $$",
        )
        .expect("PostgreSQL accepts it too");
    let error = database.query("SELECT f()", ()).expect_err("no table");
    assert_eq!(error.state(), SqlState::UNDEFINED_TABLE);
    database
        .execute("CREATE TABLE later (id INTEGER); INSERT INTO later VALUES (7);")
        .expect("a table");
    let rows = database.query("SELECT f()", ()).expect("a row");
    assert_eq!(rows.into_rows::<(i64,)>().expect("a number"), [(1,)]);
}

#[test]
fn a_record_has_its_fields_before_its_first_assignment_in_the_text() {
    let database = database();
    database
        .execute(
            "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
             DECLARE r RECORD; total INTEGER := 0;
             BEGIN
               FOR i IN 1..3 LOOP
                 IF i > 1 THEN total := total + r.x; END IF;
                 SELECT i * 10 AS x INTO r;
               END LOOP;
               RETURN total;
             END $$",
        )
        .expect("a function");
    let rows = database.query("SELECT f()", ()).expect("a row");
    assert_eq!(rows.into_rows::<(i32,)>().expect("a number"), [(30,)]);
}

#[test]
fn what_is_not_supported_is_refused_with_its_name_and_place() {
    let body = |declarations: &str, statement: &str| {
        format!(
            "CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$\n\
             DECLARE {declarations}\nBEGIN\n{statement}\nRETURN 1;\nEND $$"
        )
    };
    let cases = [
        (
            body("", "RETURN f(k - 1);"),
            "a recursive call of f",
            (4, 8),
        ),
        (
            body("a INTEGER[];", "a[1][2] := 1;"),
            "an array of more than one dimension",
            (4, 1),
        ),
        (
            body(
                "s TEXT := '22012';",
                "RAISE EXCEPTION 'x' USING ERRCODE = s;",
            ),
            "an ERRCODE that is not a constant",
            (4, 37),
        ),
        (
            body(
                "r RECORD;",
                "IF k > 1 THEN SELECT 1 AS a INTO r; ELSE SELECT 'b' AS b INTO r; END IF;\n\
                 k := r.a;",
            ),
            "a record whose fields depend on the path taken",
            (5, 6),
        ),
    ];
    for (definition, feature, place) in cases {
        let error = refusal(&definition);
        assert_eq!(
            error.state(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{definition}: {error}"
        );
        assert_eq!(
            error.message(),
            format!("{feature} is not supported"),
            "{definition}"
        );
        let position = error
            .position()
            .map(|position| (position.line, position.column));
        assert_eq!(position, Some(place), "{definition}");
    }
}

#[test]
fn a_function_that_writes_is_not_called_for_each_row_of_a_query() {
    let database = database();
    database
        .execute(
            "CREATE FUNCTION put(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO t VALUES (k, k, ''); RETURN k; END $$",
        )
        .expect("a function");
    let error = database
        .query("SELECT put(id + 1) FROM t", ())
        .expect_err("it would not end");
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    let rows = database.query("SELECT put(7) + 1", ()).expect("a row");
    assert_eq!(rows.into_rows::<(i32,)>().expect("a number"), [(8,)]);
}

#[test]
fn calls_run_the_program_itself() {
    let database = database();
    database
        .execute(
            "CREATE PROCEDURE p(a INTEGER, INOUT b INTEGER, OUT c TEXT) LANGUAGE plpgsql AS $$
             BEGIN
               b := b + a;
               IF b > 10 THEN RETURN; END IF;
               c := 'small';
             END $$;
             CREATE FUNCTION rows(n INTEGER) RETURNS TABLE (i INTEGER, s TEXT)
             LANGUAGE plpgsql STRICT AS $$
             BEGIN
               FOR k IN 1..n LOOP i := k; s := k || '!'; RETURN NEXT; END LOOP;
               RETURN QUERY SELECT id, t.s::text FROM t WHERE id = n;
             END $$",
        )
        .expect("two routines");
    let call = |name: &str, values: &[Value]| {
        let reply = database
            .engine()
            .call(name, values.to_vec())
            .expect("a call");
        reply.rows().expect("committed").into_values()
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let integer = Value::Integer;
    assert_eq!(
        call("p", &[integer(1), integer(2)]),
        [vec![integer(3), text("small")]],
    );
    assert_eq!(
        call("p", &[integer(9), integer(2)]),
        [vec![integer(11), Value::Null]]
    );
    assert_eq!(
        call("rows", &[integer(2)]),
        [
            vec![integer(1), text("1!")],
            vec![integer(2), text("2!")],
            vec![integer(2), text("two")],
        ],
    );
    assert!(call("rows", &[Value::Null]).is_empty(), "STRICT");
}

/// Registers by number, for the passes.
fn r(number: u16) -> Reg {
    Reg(number)
}

fn null(target: u16) -> Step {
    Step::Scalar(Instruction::SetNull { target: r(target) })
}

fn copy(target: u16, source: u16) -> Step {
    Step::Scalar(Instruction::Move {
        target: r(target),
        source: r(source),
    })
}

fn either(condition: u16, then: Block, otherwise: Block) -> Step {
    Step::If {
        condition: r(condition),
        then,
        otherwise,
    }
}

fn without_dead_stores(steps: Block) -> String {
    let mut steps = steps;
    passes::remove_dead_stores(&mut steps);
    listed(&steps)
}

#[test]
fn stores_that_are_overwritten_on_every_path_go() {
    let emit = || Step::Emit { row: [r(1)].into() };
    let all = [
        (vec![null(1), copy(1, 2), emit()], "Move Emit"),
        (vec![null(1), emit(), copy(1, 2)], "SetNull Emit Move"),
        (
            vec![null(1), either(3, vec![copy(1, 2)], vec![null(1)]), emit()],
            "If(Move | SetNull) Emit",
        ),
        (
            vec![null(1), either(3, vec![copy(1, 2)], vec![]), emit()],
            "SetNull If(Move | ) Emit",
        ),
        // A branch that ends the procedure does not count.
        (
            vec![
                null(1),
                either(3, vec![copy(1, 2)], vec![Step::Return]),
                emit(),
            ],
            "If(Move | Return) Emit",
        ),
        // One that leaves the loop around does.
        (
            vec![
                null(1),
                either(3, vec![Step::Exit { depth: 0 }], vec![]),
                copy(1, 2),
            ],
            "SetNull If(Exit | ) Move",
        ),
        // A loop may run no iteration.
        (
            vec![
                null(1),
                Step::ForRange {
                    variable: r(4),
                    first: r(5),
                    last: r(6),
                    step: r(7),
                    reverse: false,
                    body: vec![copy(1, 4)],
                },
                emit(),
            ],
            "SetNull ForRange(Move) Emit",
        ),
    ];
    for (steps, expected) in all {
        assert_eq!(without_dead_stores(steps.clone()), expected, "{steps:?}");
    }
}
