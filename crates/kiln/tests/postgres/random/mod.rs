//! Random SQL over a small schema: statements that know its tables, types and functions.
//!
//! What a statement gives does not depend on a plan: LIMIT stands behind an order over all columns,
//! nothing raises depending on which rows are looked at, and what calls `random()` gives the same
//! whatever that returns. So two databases can be compared, and their rows as sets.
//!
//! The numbers come from outside: a seeded generator, or a fuzzer's bytes.

mod expression;
mod query;
mod statement;

/// Creates the tables and functions that the statements name, and fills the tables.
pub const SETUP: &[&str] = &[
    "CREATE TABLE item (a integer PRIMARY KEY, b integer, c text, d numeric(8,2), e boolean, f date)",
    "CREATE TABLE part (a integer, b integer, c text NOT NULL DEFAULT 'new', g bigint, PRIMARY KEY (a, b))",
    "CREATE TABLE word (c text UNIQUE, b integer CHECK (b < 1000), w smallint)",
    "CREATE TABLE bare ()",
    "CREATE TABLE calls (n integer)",
    "CREATE INDEX item_b ON item (b)",
    "CREATE INDEX part_c ON part (c, g)",
    "INSERT INTO item VALUES (1, 10, 'one', 1.50, true, '2024-01-31'), (2, 20, 'two', -2.25, false, '2024-02-29'),
     (3, NULL, NULL, NULL, NULL, NULL), (4, 10, 'Four', 0.00, true, '1999-12-31'), (5, 3, '', 7.00, false, '2024-01-31')",
    "INSERT INTO part VALUES (1, 1, 'one', 100), (1, 2, 'x', NULL), (2, 1, 'two', -5), (3, 3, 'y', 7), (9, 9, 'z', 3000000000)",
    "INSERT INTO word VALUES ('one', 1, 1), ('two', NULL, 2), (NULL, 3, 3), (NULL, 4, NULL)",
    "INSERT INTO bare DEFAULT VALUES",
    "INSERT INTO bare DEFAULT VALUES",
    "CREATE FUNCTION tick(x integer) RETURNS integer LANGUAGE plpgsql AS $$
     BEGIN INSERT INTO calls VALUES (x); RETURN x; END $$",
    "CREATE FUNCTION twice(x integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
     BEGIN RETURN x + x; END $$",
    "CREATE FUNCTION items() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM item'",
    "CREATE FUNCTION chance() RETURNS double precision LANGUAGE plpgsql AS $$
     BEGIN RETURN random(); END $$",
    "CREATE FUNCTION pairs(n integer) RETURNS TABLE (i integer, j integer) LANGUAGE plpgsql AS $$
     BEGIN FOR i IN 1..n LOOP j := i * i; RETURN NEXT; END LOOP; END $$",
];

/// What the tables hold and the functions did, after the statements.
pub const CONTENT: &[&str] = &[
    "SELECT * FROM item",
    "SELECT * FROM part",
    "SELECT * FROM word",
    "SELECT count(*) FROM bare",
    "SELECT n, count(*) FROM calls GROUP BY n",
];

/// The types of the generated expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer,
    BigInt,
    Numeric,
    Text,
    Boolean,
    Date,
}

const TYPES: [Type; 6] = [
    Type::Integer,
    Type::BigInt,
    Type::Numeric,
    Type::Text,
    Type::Boolean,
    Type::Date,
];

/// A column that can be named.
#[derive(Clone, Debug)]
struct Column {
    source: String,
    name: String,
    data_type: Type,
}

/// A table of [`SETUP`].
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, Type)],
    /// The columns of its unique keys.
    keys: &'static [&'static str],
}

const TABLES: [Table; 4] = [
    Table {
        name: "item",
        columns: &[
            ("a", Type::Integer),
            ("b", Type::Integer),
            ("c", Type::Text),
            ("d", Type::Numeric),
            ("e", Type::Boolean),
            ("f", Type::Date),
        ],
        keys: &["a"],
    },
    Table {
        name: "part",
        columns: &[
            ("a", Type::Integer),
            ("b", Type::Integer),
            ("c", Type::Text),
            ("g", Type::BigInt),
        ],
        keys: &["a, b"],
    },
    Table {
        name: "word",
        columns: &[("c", Type::Text), ("b", Type::Integer)],
        keys: &["c"],
    },
    Table {
        name: "bare",
        columns: &[],
        keys: &[],
    },
];

/// Makes statements.
pub struct Generator<'c> {
    /// A number below its argument.
    choose: &'c mut dyn FnMut(usize) -> usize,
    /// Rows that an expression may name, outermost level first.
    levels: Vec<Vec<Column>>,
    /// Names and columns of the WITH queries in scope.
    with: Vec<(String, Vec<Type>)>,
    /// Numbers the aliases.
    names: usize,
    /// How much more a statement may grow.
    budget: usize,
}

impl<'c> Generator<'c> {
    /// A generator that takes its decisions from `choose`, which gives a number below its argument.
    pub fn new(choose: &'c mut dyn FnMut(usize) -> usize) -> Generator<'c> {
        Generator {
            choose,
            levels: Vec::new(),
            with: Vec::new(),
            names: 0,
            budget: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.choose)(bound)
    }

    /// True once in `times`.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'p, T: ?Sized>(&mut self, from: &[&'p T]) -> &'p T {
        from[self.below(from.len())]
    }

    fn data_type(&mut self) -> Type {
        TYPES[self.below(TYPES.len())]
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Takes from what a statement may still grow; says whether there was something left.
    fn grow(&mut self) -> bool {
        let may = self.budget > 0;
        self.budget = self.budget.saturating_sub(1);
        may
    }
}
