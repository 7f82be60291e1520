//! The shapes of compiled queries: which paths are taken, what is sorted, what is read. That the
//! results are PostgreSQL's is tested by running both.

use kiln_platform::sync::Arc;
use kiln_procedure::analysis::names::for_each_step;
use kiln_procedure::ir::{Block, Step};
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::{CatalogView, Compiler, QueryOptions, Typed, Variable, ddl};
use crate::parse::{self, Statement};
use kiln_engine::IndexUse;

#[derive(Default)]
struct Tables(Vec<Arc<Table>>);

impl CatalogView for Tables {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.0
            .iter()
            .find(|table| table.schema().name == name)
            .cloned()
    }
}

/// Orders with a primary key of three columns and secondary indexes, and customers.
fn tables() -> Tables {
    let mut tables = Tables::default();
    let script = "
        CREATE TABLE orders (w INTEGER, d SMALLINT, id INTEGER, c INTEGER NOT NULL,
            note TEXT, total NUMERIC(8, 2), UNIQUE (note), PRIMARY KEY (w, d, id));
        CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, age INTEGER);
    ";
    for source in parse::script(script) {
        let Ok(Statement::CreateTable(create)) = parse::statement(&source) else {
            panic!("{} is CREATE TABLE", source.text);
        };
        let declared = ddl::create_table(&create, &tables).unwrap().unwrap();
        let id = TableId(tables.0.len() as u32 + 1);
        let mut indexes = declared.indexes;
        if declared.schema.name == "orders" {
            indexes.push(kiln_storage::schema::IndexDefinition {
                name: "orders_by_customer".to_owned(),
                columns: ["w", "d", "c", "id"]
                    .iter()
                    .map(|name| declared.schema.column(name).unwrap())
                    .collect(),
                unique: false,
                constraint: false,
                partial: false,
                nulls_equal: false,
                deferral: Default::default(),
                method: kiln_storage::schema::IndexMethod::BTree,
                kind: kiln_storage::schema::IndexKind::Ordered {
                    partition_columns: 0,
                },
            });
        }
        tables.0.push(Arc::new(
            Table::new(id, declared.schema, 0, indexes).unwrap(),
        ));
    }
    tables
}

/// Compiles a query in which `p` is an INTEGER parameter.
fn compile(sql: &str) -> Result<(Program, Vec<IndexUse>)> {
    let tables = tables();
    let builder = ProgramBuilder::new("test", [("p".to_owned(), DataType::Integer)]);
    let mut compiler = Compiler::new(builder, &tables);
    let register = compiler.builder.parameter(0);
    let data_type = DataType::Integer;
    compiler.set_positional(vec![Typed {
        register,
        data_type: data_type.clone(),
    }]);
    let p = Variable::Scalar {
        register,
        data_type,
        constant: false,
        not_null: false,
    };
    compiler.declare("p", p, None)?;
    let source = parse::SourceStatement::from(sql);
    let Statement::Query(query) = parse::statement(&source)? else {
        panic!("{sql} is a query");
    };
    let columns = compiler.query(&query, QueryOptions::default(), &mut |compiler, row| {
        let row = row.iter().map(|column| column.register).collect();
        compiler.builder.push(Step::Emit { row });
        Ok(())
    })?;
    let columns = columns
        .into_iter()
        .map(|column| (column.name, column.data_type));
    compiler.builder.returns(columns.collect());
    let Compiler {
        builder,
        requirements,
        ..
    } = compiler;
    Ok((builder.finish(), requirements))
}

/// The steps that matter, in order, one word each.
fn shape(sql: &str) -> String {
    let (program, _) = compile(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut words: Vec<String> = Vec::new();
    collect(&program, &program.body, &mut words);
    // How many reads share the columns of a record is for the optimiser to say.
    let columns = |word: &String| {
        word.strip_prefix("read:")
            .and_then(|text| text.parse().ok())
    };
    words.dedup_by(|next, first| match (columns(first), columns(next)) {
        (Some(one), Some(other)) => {
            let (one, other): (usize, usize) = (one, other);
            *first = format!("read:{}", one + other);
            true
        }
        _ => false,
    });
    words.join(" ")
}

fn collect(program: &Program, block: &Block, words: &mut Vec<String>) {
    for step in block {
        let word = match step {
            Step::Lookup { table, index, .. } => {
                let table = &program.tables[table.0 as usize];
                format!(
                    "lookup:{}",
                    table.indexes()[*index as usize].definition().name
                )
            }
            Step::Scan {
                table,
                index,
                range,
                reverse,
                ..
            } => {
                let table = &program.tables[table.0 as usize];
                let name = &table.indexes()[*index as usize].definition().name;
                let bounds =
                    usize::from(range.lower.is_some()) + usize::from(range.upper.is_some());
                let back = if *reverse { ":back" } else { "" };
                format!("scan:{name}:{}+{bounds}{back}", range.prefix.len())
            }
            Step::Read { columns, .. } => format!("read:{}", columns.len()),
            Step::BufferSort { .. } => "sort".to_owned(),
            Step::BufferPush { .. } => "push".to_owned(),
            Step::BufferPushDistinct { .. } => "distinct".to_owned(),
            Step::ForBuffer { matching, .. } if !matching.is_empty() => {
                format!("matching:{}", matching.len())
            }
            Step::ForBuffer { .. } => "rows".to_owned(),
            Step::Exit { .. } => "exit".to_owned(),
            Step::Emit { .. } => "emit".to_owned(),
            _ => String::new(),
        };
        if !word.is_empty() {
            words.push(word);
        }
        match step {
            Step::If {
                then, otherwise, ..
            } => {
                collect(program, then, words);
                collect(program, otherwise, words);
            }
            Step::Loop { body, .. }
            | Step::ForRange { body, .. }
            | Step::ForEach { body, .. }
            | Step::Scan { body, .. }
            | Step::ForBuffer { body, .. } => collect(program, body, words),
            _ => {}
        }
    }
}

fn state(sql: &str) -> SqlState {
    match compile(sql) {
        Ok(_) => panic!("{sql} compiles"),
        Err(error) => error.state(),
    }
}

#[test]
fn a_whole_unique_key_is_looked_up() {
    assert_eq!(
        shape("SELECT total FROM orders WHERE w = p AND d = 2 AND id = p + 1"),
        "lookup:orders_pkey read:1 emit"
    );
    // The key is proof of itself: what it fixes is neither read nor checked.
    assert_eq!(
        shape("SELECT id FROM orders WHERE w = p AND d = 2 AND id = 7"),
        "lookup:orders_pkey emit"
    );
    // So is the key of any other index.
    assert_eq!(
        shape("SELECT id FROM orders WHERE note = 'x'"),
        "lookup:orders_note_key read:1 emit"
    );
    let (_, uses) = compile("SELECT 1 FROM orders WHERE w = p AND d = 2 AND id = 7").unwrap();
    assert_eq!(uses.len(), 1);
    assert!(uses[0].point && uses[0].prefix_columns == 3 && uses[0].index == 0);
}

#[test]
fn an_index_gives_the_order_and_the_limit_ends_the_scan() {
    assert_eq!(
        shape("SELECT id FROM orders WHERE w = p AND d = 1 ORDER BY id LIMIT 1"),
        "scan:orders_pkey:2+0 read:1 emit exit"
    );
    assert_eq!(
        shape("SELECT id FROM orders WHERE w = p AND d = 1 AND c = 5 ORDER BY id DESC LIMIT 1"),
        "scan:orders_by_customer:3+0:back read:1 emit exit"
    );
    assert_eq!(
        shape("SELECT total FROM orders WHERE w = p AND d = 1 ORDER BY total"),
        "scan:orders_pkey:2+0 read:1 push sort rows emit"
    );
    assert_eq!(
        shape("SELECT id FROM orders WHERE w = p AND d = 1 AND id >= 5 AND id < 9 ORDER BY id"),
        "scan:orders_pkey:2+2 read:1 emit"
    );
}

#[test]
fn an_extreme_of_the_next_key_column_is_its_first_entry() {
    assert_eq!(
        shape("SELECT max(id) FROM orders WHERE w = p AND d = 1"),
        "scan:orders_pkey:2+0:back read:1 exit emit"
    );
    assert_eq!(
        shape("SELECT max(total) FROM orders WHERE w = p AND d = 1"),
        "scan:orders_pkey:2+0 read:1 emit"
    );
}

#[test]
fn joins_begin_with_the_most_selective_source() {
    assert_eq!(
        shape("SELECT name FROM orders, customer WHERE customer.id = c AND w = p AND d = 1"),
        "scan:orders_pkey:2+0 read:1 lookup:customer_pkey read:1 emit"
    );
    assert_eq!(
        shape("SELECT name, total FROM orders JOIN customer ON customer.id = p AND c = age"),
        "lookup:customer_pkey read:2 scan:orders_pkey:0+0 read:2 emit"
    );
    // Without an index the inner side is copied once, and found by what the join equates.
    assert_eq!(
        shape("SELECT a.id FROM customer a JOIN customer b ON a.age = b.age"),
        "scan:customer_pkey:0+0 read:1 push scan:customer_pkey:0+0 read:2 matching:1 emit"
    );
    assert_eq!(
        shape("SELECT o.id, name FROM orders o LEFT JOIN customer ON customer.id = o.c"),
        "scan:orders_pkey:0+0 read:2 lookup:customer_pkey read:1 emit"
    );
}

#[test]
fn a_list_of_values_is_looked_up_one_by_one() {
    // None twice, whatever it is written as.
    assert_eq!(
        shape("SELECT name FROM customer WHERE id IN (1, p, 3)"),
        "distinct distinct distinct rows lookup:customer_pkey read:1 emit"
    );
    assert_eq!(
        shape("SELECT name FROM customer WHERE id = 1 OR id = p + 1"),
        "distinct distinct rows lookup:customer_pkey read:1 emit"
    );
    assert_eq!(
        shape("SELECT total FROM orders WHERE w = p AND d IN (1, 2) ORDER BY id LIMIT 1"),
        "distinct distinct rows scan:orders_pkey:2+0 read:2 push sort rows emit exit"
    );
    assert_eq!(
        shape("SELECT total FROM orders WHERE w IN (1, 2) AND d IN (3, 4) AND id = 5"),
        "distinct distinct rows distinct distinct rows lookup:orders_pkey read:1 emit"
    );
    // A whole key that is fixed is better; different columns are no list.
    assert_eq!(
        shape("SELECT name FROM customer WHERE id IN (1, 2) AND id = p"),
        "lookup:customer_pkey read:1 emit"
    );
    assert_eq!(
        shape("SELECT name FROM customer WHERE id = 1 OR age = 2"),
        "scan:customer_pkey:0+0 read:3 emit"
    );
    // The rows of a subquery are a list.
    assert_eq!(
        shape("SELECT name FROM customer WHERE id IN (SELECT c FROM orders WHERE w = p)"),
        "scan:orders_pkey:1+0 read:1 distinct rows lookup:customer_pkey read:1 emit"
    );
    assert_eq!(
        shape("SELECT name FROM customer WHERE id NOT IN (SELECT c FROM orders WHERE w = p)"),
        "scan:customer_pkey:0+0 read:1 scan:orders_pkey:1+0 read:1 distinct matching:1 exit read:1 emit"
    );
    // The right side of a LEFT JOIN.
    assert_eq!(
        shape("SELECT o.id, name FROM orders o LEFT JOIN customer ON customer.id IN (o.c, 7)"),
        "scan:orders_pkey:0+0 read:2 distinct distinct rows lookup:customer_pkey read:1 push push \
         rows emit"
    );
}

#[test]
fn a_subquery_is_computed_once_unless_it_names_the_rows_around_it() {
    let once = |sql: &str| {
        let (program, _) = compile(sql).unwrap();
        // What is computed once is behind a flag that is taken down first.
        let is_reset = matches!(program.body.first(), Some(Step::Scalar(_)));
        let is_scanned_in_branch = {
            let mut found = false;
            for_each_step(&program.body, &mut |step| {
                if let Step::If {
                    then, otherwise, ..
                } = step
                {
                    let scans = |step: &Step| matches!(step, Step::Scan { .. });
                    found |= then.is_empty() && otherwise.iter().any(scans);
                }
            });
            found
        };
        is_reset && is_scanned_in_branch
    };
    assert!(once(
        "SELECT id FROM customer WHERE age > (SELECT max(c) FROM orders WHERE w = p) + 0 * id"
    ));
    assert!(once(
        "SELECT id, age - (SELECT min(c) FROM orders) FROM customer"
    ));
    assert!(once(
        "SELECT id FROM customer WHERE id > 3 AND age NOT IN (SELECT c FROM orders)"
    ));
    assert!(once(
        "SELECT id, EXISTS (SELECT 1 FROM orders WHERE c = p) FROM customer"
    ));
    assert!(!once(
        "SELECT id, (SELECT max(c) FROM orders WHERE w = customer.id) FROM customer"
    ));
    assert!(!once(
        "SELECT id FROM customer WHERE age IN (SELECT c + customer.id FROM orders)"
    ));
    // Outside of loops it is computed once anyway.
    assert!(!once("SELECT (SELECT max(total) FROM orders WHERE w = p)"));
}

#[test]
fn what_a_subquery_takes_from_outside_fixes_its_keys() {
    assert_eq!(
        shape(
            "SELECT id, (SELECT max(total) FROM orders WHERE w = customer.id AND d = 1) FROM customer"
        ),
        "scan:customer_pkey:0+0 read:1 scan:orders_pkey:2+0 read:1 emit"
    );
    assert_eq!(
        shape("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customer WHERE customer.id = c)"),
        "scan:orders_pkey:0+0 read:1 lookup:customer_pkey read:1 emit"
    );
}

#[test]
fn groups_come_in_the_wanted_order() {
    assert_eq!(
        shape("SELECT d, count(*) FROM orders GROUP BY d ORDER BY d DESC"),
        "scan:orders_pkey:0+0 read:1 push push sort rows push push rows emit"
    );
    assert_eq!(
        shape("SELECT count(*), sum(total) FROM orders WHERE w = p"),
        "scan:orders_pkey:1+0 read:1 emit"
    );
    assert_eq!(
        shape("SELECT count(DISTINCT c) FROM orders WHERE w = p"),
        "scan:orders_pkey:1+0 read:1 distinct emit"
    );
}

#[test]
fn constants_are_folded_unless_they_raise() {
    let (program, _) = compile("SELECT 1 + 2 * 3, upper('a') || 'b', round(2.345, 2)").unwrap();
    assert_eq!(program.body.len(), 1, "{:?}", program.body);
    let values: Vec<&Value> = program
        .constants
        .iter()
        .map(|constant| &constant.value)
        .collect();
    assert!(values.contains(&&Value::Integer(7)) && values.contains(&&Value::Text("Ab".into())));
    // What raises does so when it is evaluated, and only then.
    assert!(compile("SELECT 1 / 0").is_ok());
    assert!(compile("SELECT CASE WHEN p = 1 THEN 1 / 0 END").is_ok());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (sql, expected) in [
        ("SELECT nope FROM orders", SqlState::UNDEFINED_COLUMN),
        (
            "SELECT id FROM orders, customer",
            SqlState::AMBIGUOUS_COLUMN,
        ),
        ("SELECT x.id FROM orders", SqlState::UNDEFINED_TABLE),
        ("SELECT 1 FROM missing", SqlState::UNDEFINED_TABLE),
        ("SELECT nope(1)", SqlState::UNDEFINED_FUNCTION),
        ("SELECT 1 + true", SqlState::UNDEFINED_FUNCTION),
        ("SELECT id FROM orders WHERE c", SqlState::DATATYPE_MISMATCH),
        ("SELECT id, count(*) FROM orders", SqlState::GROUPING_ERROR),
        (
            "SELECT count(count(*)) FROM orders",
            SqlState::GROUPING_ERROR,
        ),
        ("SELECT 'x'::integer", SqlState::INVALID_TEXT_REPRESENTATION),
        (
            "SELECT id FROM orders ORDER BY 9",
            SqlState::INVALID_COLUMN_REFERENCE,
        ),
        ("SELECT $2", SqlState::UNDEFINED_PARAMETER),
    ] {
        assert_eq!(state(sql), expected, "{sql}");
        assert!(compile(sql).unwrap_err().position().is_some(), "{sql}");
    }
}

#[test]
fn a_column_and_a_variable_of_one_name_are_ambiguous() {
    let tables = tables();
    let mut compiler = Compiler::new(ProgramBuilder::new("test", []), &tables);
    let register = compiler.builder.register(DataType::Integer);
    let data_type = DataType::Integer;
    let variable = Variable::Scalar {
        register,
        data_type,
        constant: false,
        not_null: false,
    };
    compiler.push_variables(Some("f"));
    compiler.declare("age", variable.clone(), None).unwrap();
    assert!(compiler.declare("age", variable, None).is_err());
    let ambiguous = |compiler: &mut Compiler<'_>, sql: &str| {
        let source = parse::SourceStatement::from(sql);
        let Ok(Statement::Query(query)) = parse::statement(&source) else {
            panic!("{sql} is a query");
        };
        compiler
            .query_columns(&query)
            .err()
            .map(|error| error.state())
    };
    let sql = "SELECT age FROM customer";
    assert_eq!(
        ambiguous(&mut compiler, sql),
        Some(SqlState::AMBIGUOUS_COLUMN)
    );
    let sql = "SELECT f.age, customer.age FROM customer";
    assert_eq!(ambiguous(&mut compiler, sql), None);
}

#[test]
fn deep_expressions_are_refused_and_long_chains_are_not() {
    let chain = vec!["p"; 400].join(" + ");
    assert!(compile(&format!("SELECT {chain}")).is_ok());
    let conditions = vec!["c = p"; 400].join(" OR ");
    assert!(compile(&format!("SELECT id FROM orders WHERE {conditions}")).is_ok());
    let nested = format!("SELECT {}p{}", "abs(".repeat(300), ")".repeat(300));
    assert_eq!(state(&nested), SqlState::STATEMENT_TOO_COMPLEX);
}
