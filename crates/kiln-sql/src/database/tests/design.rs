//! The derived physical design.

use kiln_engine::{BasisFactors, Options};
use kiln_storage::schema::IndexKind;

use super::super::{Database, is_auxiliary};
use super::open;

/// Each index of a table: its name and how it is built.
fn indexes(database: &Database, table: &str) -> Vec<(String, Option<usize>)> {
    let table = database
        .engine()
        .table(table)
        .expect("there is such a table");
    let indexes = table.indexes().iter().map(|index| {
        let definition = index.definition();
        assert_eq!(definition.kind.is_hash(), is_auxiliary(&table, definition));
        let partition = match definition.kind {
            IndexKind::Hash | IndexKind::SplitHash => None,
            IndexKind::Ordered { partition_columns } => Some(partition_columns),
        };
        (definition.name.clone(), partition)
    });
    indexes.collect()
}

fn named(list: &[(&str, Option<usize>)]) -> Vec<(String, Option<usize>)> {
    list.iter()
        .map(|(name, kind)| ((*name).to_owned(), *kind))
        .collect()
}

const SCHEMA: &str = "
    CREATE TABLE orders (w INTEGER, d INTEGER, o INTEGER, c INTEGER NOT NULL, name TEXT, PRIMARY KEY (w, d, o));
    CREATE INDEX orders_by_customer ON orders (w, d, c, o);
    CREATE INDEX orders_by_name ON orders (w, name, o);
    INSERT INTO orders VALUES (1, 1, 1, 7, 'x'), (1, 1, 2, 7, 'y'), (1, 2, 1, 7, 'x'), (2, 1, 1, 8, 'x');";

#[test]
fn procedures_decide_how_indexes_are_built() {
    let database = open();
    let run = |text: &str| database.execute(text).expect("the script is good");
    let count = |text: &str| {
        let rows = database.query(text, ()).expect("the query is good");
        rows.into_one::<(i64,)>().expect("one row").0
    };
    run(SCHEMA);
    let plain = [
        ("orders_pkey", Some(0)),
        ("orders_by_customer", Some(0)),
        ("orders_by_name", Some(0)),
    ];
    assert_eq!(indexes(&database, "orders"), named(&plain));
    // Statements outside of procedures change nothing.
    run("SELECT * FROM orders WHERE w = 1 AND d = 1 AND o = 1");
    assert_eq!(indexes(&database, "orders"), named(&plain));

    run("CREATE FUNCTION customer(a INTEGER, b INTEGER, z INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
         BEGIN
           RETURN (SELECT max(o) FROM orders WHERE w = a AND d = b AND c = z);
         END $$;
         CREATE FUNCTION point(a INTEGER, b INTEGER, z INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
         BEGIN
           RETURN (SELECT c FROM orders WHERE w = a AND d = b AND o = z);
         END $$;
         CREATE FUNCTION by_name(a INTEGER, s TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
         BEGIN
           RETURN (SELECT count(*) FROM orders WHERE w = a AND name = s);
         END $$;");
    let derived = [
        ("orders_pkey", Some(0)),
        ("orders_by_customer", Some(3)),
        // A name has no fixed width in a key, so that only the column before it can partition.
        ("orders_by_name", Some(1)),
        ("orders_pkey_hash", None),
    ];
    assert_eq!(indexes(&database, "orders"), named(&derived));
    let explained = |name: &str| database.explain(name).expect("it is there");
    let text = explained("customer");
    assert!(
        text.ends_with(
            "\nindexes\n  orders_by_customer on orders: ordered, partitioned by w, d, c (derived)\n"
        ),
        "{text}"
    );
    let text = explained("point");
    assert!(
        text.ends_with("\n  orders_pkey_hash on orders: hash (derived)\n"),
        "{text}"
    );
    assert_eq!(count("SELECT customer(1, 1, 7)"), 2);
    assert_eq!(count("SELECT point(2, 1, 1)::bigint"), 8);
    assert_eq!(count("SELECT by_name(1, 'x')"), 2);
    // Every index still finds every row, also across partitions.
    assert_eq!(
        count("SELECT count(*) FROM orders WHERE w >= 1 AND c > 0"),
        4
    );
    assert_eq!(
        count("SELECT count(*) FROM orders WHERE w = 1 AND d = 1 AND o = 2"),
        1
    );
    run("INSERT INTO orders VALUES (2, 1, 2, 8, 'z'); DELETE FROM orders WHERE w = 1 AND d = 2;");
    assert_eq!(count("SELECT point(2, 1, 2)::bigint"), 8);
    assert_eq!(count("SELECT coalesce(point(1, 2, 1), -1)::bigint"), -1);

    // A scan with a shorter prefix joins the partitions again.
    run(
        "CREATE FUNCTION wide(a INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
         BEGIN
           RETURN (SELECT count(*) FROM orders WHERE w = a AND d >= 1);
         END $$;
         DROP FUNCTION point;",
    );
    let after = indexes(&database, "orders");
    assert!(
        !after.iter().any(|(_, kind)| kind.is_none()),
        "no hash index is needed: {after:?}"
    );
    assert_eq!(count("SELECT wide(1)"), 2);
    run("DROP FUNCTION wide; DROP FUNCTION customer; DROP FUNCTION by_name;");
    assert_eq!(indexes(&database, "orders"), named(&plain));
}

#[test]
fn a_dropped_index_takes_its_hash_index_along() {
    let database = open();
    database
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER NOT NULL, v INTEGER);
             CREATE UNIQUE INDEX t_u ON t (u);
             INSERT INTO t VALUES (1, 10, 100), (2, 20, 200);
             CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
             BEGIN
               RETURN (SELECT v FROM t WHERE u = x);
             END $$;",
        )
        .expect("the script is good");
    let names = |database: &Database| -> Vec<String> {
        indexes(database, "t")
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(&database), ["t_pkey", "t_u", "t_u_hash"]);
    let error = database
        .execute("DROP INDEX t_u_hash")
        .expect_err("it is not the user's");
    assert_eq!(error.message(), "index \"t_u_hash\" does not exist");
    database.execute("DROP INDEX t_u").expect("it can go");
    assert_eq!(names(&database), ["t_pkey"]);
    let rows = database
        .query("SELECT f(20)", ())
        .and_then(|rows| rows.into_one());
    assert_eq!(rows, Ok((200,)));
}

/// Which columns have a timestamp of their own follows from the procedures that there are.
#[test]
fn columns_are_split_while_procedures_ask_for_it() {
    let database = open();
    let split = || -> Vec<String> {
        let table = database.engine().table("shop").expect("it is there");
        let columns = table.split().iter();
        columns
            .map(|column| table.schema().columns[column.index()].name.clone())
            .collect()
    };
    database
        .execute("CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tax INTEGER NOT NULL, ytd INTEGER NOT NULL)")
        .expect("a table");
    assert!(split().is_empty());
    database
        .execute(
            "CREATE PROCEDURE pay(shop_id INTEGER, amount INTEGER, OUT shop_name TEXT) LANGUAGE plpgsql AS $$
             BEGIN
                 UPDATE shop SET ytd = ytd + amount WHERE id = shop_id RETURNING name INTO shop_name;
             END $$",
        )
        .expect("a procedure");
    assert_eq!(split(), ["id", "name", "tax"]);
    // It reads what the other writes: that cannot be helped, and what it writes is split as well.
    database
        .execute(
            "CREATE PROCEDURE audit(shop_id INTEGER, OUT total INTEGER) LANGUAGE plpgsql AS $$
             BEGIN
                 SELECT ytd INTO total FROM shop WHERE id = shop_id;
             END $$",
        )
        .expect("a procedure");
    assert_eq!(split(), ["id", "name", "tax"]);
    // What no procedure writes is rarely written.
    database.execute("DROP PROCEDURE pay").expect("it is there");
    assert_eq!(split(), ["id", "name", "tax", "ytd"]);
    database
        .execute("DROP PROCEDURE audit")
        .expect("it is there");
    assert!(split().is_empty(), "{:?}", split());
}

#[test]
fn indexes_are_split_as_rows_are_divided() {
    let mut factors = BasisFactors::default();
    factors.split_indexes = true;
    let options = Options::new()
        .workers(1)
        .pin_workers(false)
        .basis_factors(factors);
    let database = Database::open(options).expect("a database opens");
    let run = |text: &str| database.execute(text).expect("the script is good");
    let kinds = || {
        let table = database.engine().table("orders").expect("it is there");
        let definitions = table.indexes().iter().map(|index| index.definition());
        definitions
            .map(|definition| (definition.name.clone(), definition.kind))
            .collect::<Vec<_>>()
    };
    run(SCHEMA);
    run("CREATE FUNCTION point(a INTEGER, b INTEGER, z INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
         BEGIN
           RETURN (SELECT c FROM orders WHERE w = a AND d = b AND o = z);
         END $$;");
    let hash = |kind| ("orders_pkey_hash".to_owned(), kind);
    assert!(kinds().contains(&hash(IndexKind::Hash)), "{:?}", kinds());
    run("ALTER TABLE orders PARTITION BY HASH (w)");
    assert!(
        kinds().contains(&hash(IndexKind::SplitHash)),
        "{:?}",
        kinds()
    );
    for (name, kind) in kinds() {
        let cut = IndexKind::Ordered {
            partition_columns: 1,
        };
        assert!(kind == cut || kind.is_hash(), "{name}: {kind:?}");
    }
    for w in 3..100 {
        run(&format!("INSERT INTO orders VALUES ({w}, 1, 1, {w}, 'x')"));
    }
    for w in 3..100 {
        let rows = database.query("SELECT point($1, 1, 1)", (w,));
        let row = rows.expect("the query is good").into_one::<(i32,)>();
        assert_eq!(row.expect("one row").0, w);
    }
    // By a column that no key begins with, hash indexes are whole.
    run("ALTER TABLE orders SET REPLICATED");
    assert!(kinds().contains(&hash(IndexKind::Hash)), "{:?}", kinds());
}
