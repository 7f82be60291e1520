//! Random statements: queries, changes of data, definitions, routines, and probes of what is
//! volatile.

use super::{Column, Generator, TABLES, Table, Type};

/// How much a statement may grow.
const BUDGET: usize = 14;

impl Generator<'_> {
    /// A statement that can be compared.
    pub fn statement(&mut self) -> String {
        self.levels.clear();
        self.with.clear();
        self.names = 0;
        self.budget = BUDGET;
        match self.below(20) {
            0..=9 => {
                let types = self.types(0, 4);
                self.query(&types)
            }
            10 | 11 => self.insert(),
            12 | 13 => self.update(),
            14 => self.delete(),
            15 | 16 => self.probe(),
            17 => self.changing_with(),
            18 => self.definition(),
            _ => self.routine(),
        }
    }

    fn table(&mut self) -> &'static Table {
        &TABLES[self.below(TABLES.len())]
    }

    fn filled_table(&mut self) -> &'static Table {
        &TABLES[self.below(TABLES.len() - 1)]
    }

    fn returning(&mut self, table: &Table, alias: &str) -> String {
        if !self.one_in(3) {
            return String::new();
        }
        self.levels.push(columns_of(table, alias));
        let outputs: Vec<String> = (0..=self.below(2))
            .map(|_| {
                let data_type = self.data_type();
                self.expression(data_type, 1)
            })
            .collect();
        self.levels.pop();
        format!(" RETURNING {}", outputs.join(", "))
    }

    fn insert(&mut self) -> String {
        let table = self.table();
        if table.columns.is_empty() {
            return match self.below(3) {
                0 => "INSERT INTO bare SELECT FROM generate_series(1, 2)".to_owned(),
                _ => "INSERT INTO bare DEFAULT VALUES".to_owned(),
            };
        }
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<Type> = table
            .columns
            .iter()
            .map(|(_, data_type)| *data_type)
            .collect();
        let rows = match self.one_in(2) {
            // Random keys mostly conflict, which raises or does what ON CONFLICT says.
            true => {
                let query = self.query(&types);
                // Of rows with one key, the first is inserted.
                let order: Vec<String> = (1..=types.len()).map(|n| n.to_string()).collect();
                format!(
                    "SELECT * FROM ({query}) given ORDER BY {}",
                    order.join(", ")
                )
            }
            false => {
                let rows: Vec<String> = (0..=self.below(3))
                    .map(|_| {
                        let values: Vec<String> = types
                            .iter()
                            .map(|data_type| self.expression(*data_type, 1))
                            .collect();
                        format!("({})", values.join(", "))
                    })
                    .collect();
                format!("VALUES {}", rows.join(", "))
            }
        };
        let conflict = match self.below(4) {
            0 => " ON CONFLICT DO NOTHING".to_owned(),
            1 => {
                let key = table.keys[self.below(table.keys.len())];
                let (name, data_type) = self.changeable(table);
                self.levels.push(columns_of(table, "excluded"));
                let value = self.expression(data_type, 1);
                self.levels.pop();
                format!(" ON CONFLICT ({key}) DO UPDATE SET {name} = {value}")
            }
            _ => String::new(),
        };
        let returning = self.returning(table, table.name);
        format!(
            "INSERT INTO {} ({}) {rows}{conflict}{returning}",
            table.name,
            names.join(", ")
        )
    }

    /// A column that may take any value of its type.
    fn changeable(&mut self, table: &Table) -> (&'static str, Type) {
        match table.name {
            "item" => [
                ("b", Type::Integer),
                ("d", Type::Numeric),
                ("f", Type::Date),
            ][self.below(3)],
            "part" => [("g", Type::BigInt), ("c", Type::Text)][self.below(2)],
            _ => ("b", Type::Integer),
        }
    }

    fn update(&mut self) -> String {
        let table = self.filled_table();
        let (name, data_type) = self.changeable(table);
        self.levels.push(columns_of(table, table.name));
        let value = self.expression(data_type, 2);
        let condition = self.expression(Type::Boolean, 3);
        self.levels.pop();
        let returning = self.returning(table, table.name);
        format!(
            "UPDATE {} SET {name} = {value} WHERE {condition}{returning}",
            table.name
        )
    }

    fn delete(&mut self) -> String {
        let table = self.filled_table();
        self.levels.push(columns_of(table, table.name));
        let condition = self.expression(Type::Boolean, 3);
        // Some rows shall stay.
        let key = self.leaf(Type::Integer);
        self.levels.pop();
        let returning = self.returning(table, table.name);
        format!(
            "DELETE FROM {} WHERE {condition} AND {key} = {}{returning}",
            table.name,
            self.below(10)
        )
    }

    /// A query that says how often something volatile was computed.
    fn probe(&mut self) -> String {
        let number = self.below(100);
        let volatile = self.pick(&["random()", "chance()"]);
        let call = format!("tick({number})");
        match self.below(12) {
            0 => format!(
                "SELECT count(*) BETWEEN 1 AND 199 FROM generate_series(1, 200) WHERE {volatile} < 0.5"
            ),
            1 => format!(
                "WITH q AS (SELECT {volatile} AS r FROM item) \
                 SELECT count(*) FROM q x JOIN q y ON x.r = y.r"
            ),
            2 => format!("WITH q AS (SELECT {call} AS r) SELECT x.r = y.r FROM q x, q y"),
            3 => format!(
                "SELECT bool_and(x <= y) FROM (SELECT r AS x, lead AS y FROM \
                 (SELECT {volatile} AS r, 2.0 AS lead FROM item ORDER BY {volatile}) s) t"
            ),
            4 => format!(
                "SELECT count(DISTINCT r) FROM (SELECT {volatile} AS r FROM generate_series(1, 9)) s"
            ),
            5 => "SELECT count(DISTINCT r) FROM (SELECT f AS r FROM chance() f, generate_series(1, 9)) s"
                .to_owned(),
            // PostgreSQL computes the operand of BETWEEN twice.
            6 => format!("SELECT greatest({call}, 3), nullif({call}, 5)"),
            7 => format!(
                "SELECT CASE {call} WHEN 1 THEN 'a' WHEN {number} THEN 'b' END, {call} IN (1, 2, {number})"
            ),
            8 => format!("SELECT f, s.a FROM {call} f, item s WHERE s.a < 4"),
            9 => format!(
                "SELECT (SELECT {call}), coalesce({call}, 1), ({call}, 1) IN ((1, 2), ({number}, 1))"
            ),
            10 => format!(
                "SELECT count(*) BETWEEN 1 AND 199 FROM generate_series(1, 200) x \
                 LEFT JOIN generate_series(1, 1) y ON {volatile} < 0.5 WHERE y IS NULL"
            ),
            _ => format!(
                "SELECT count(*) FROM (SELECT DISTINCT {volatile} AS r FROM item ORDER BY r) s"
            ),
        }
    }

    /// A query that changes data in its WITH.
    fn changing_with(&mut self) -> String {
        let number = self.below(1_000);
        let change = match self.below(3) {
            0 => format!("INSERT INTO calls VALUES ({number}) RETURNING n"),
            1 => format!("UPDATE item SET b = {number} WHERE a = 1 RETURNING a"),
            _ => format!("DELETE FROM part WHERE a = {} RETURNING b", number % 10),
        };
        let query = self.pick(&[
            "SELECT 1 AS one",
            "SELECT count(*) FROM w",
            "SELECT * FROM w",
        ]);
        format!("WITH w AS ({change}) {query}")
    }

    fn definition(&mut self) -> String {
        let name = self.pick(&["new_one", "new_two"]);
        match self.below(6) {
            0 => format!("CREATE TABLE {name} ()"),
            1 => {
                let value = self.literal(Type::Integer);
                format!(
                    "CREATE TABLE {name} (a integer PRIMARY KEY DEFAULT {value}, b text CHECK (b <> 'x'))"
                )
            }
            2 => format!("DROP TABLE {name}"),
            3 => format!("INSERT INTO {name} DEFAULT VALUES"),
            4 => format!("SELECT count(*) FROM {name}"),
            _ => self
                .pick(&["CREATE INDEX word_b ON word (b)", "DROP INDEX word_b"])
                .to_owned(),
        }
    }

    /// A function that is created, replaced or called.
    fn routine(&mut self) -> String {
        if self.one_in(3) {
            return "SELECT made(3), made(NULL)".to_owned();
        }
        let parameter = Column {
            source: "made".to_owned(),
            name: "x".to_owned(),
            data_type: Type::Integer,
        };
        self.levels.push(vec![parameter]);
        let start = self.expression(Type::Integer, 2);
        let types = [Type::Integer, Type::Boolean];
        let query = self.query(&types);
        let condition = self.expression(Type::Boolean, 2);
        let found = self.subquery_of(&[Type::Integer]);
        self.levels.pop();
        format!(
            "CREATE OR REPLACE FUNCTION made(x integer) RETURNS bigint LANGUAGE plpgsql AS $$\n\
             DECLARE\n    total bigint := {start};\n    r record;\nBEGIN\n    \
             FOR r IN SELECT c1, c2 FROM ({query}) AS q(c1, c2) LOOP\n        \
             IF r.c2 THEN total := coalesce(total, 0) + coalesce(r.c1, 1); END IF;\n    \
             END LOOP;\n    IF ({condition}) THEN total := -1; END IF;\n    \
             PERFORM p.c1 FROM ({found}) AS p(c1);\n    \
             IF FOUND THEN total := total + 1000; END IF;\n    RETURN total;\nEND $$"
        )
    }
}

fn columns_of(table: &Table, alias: &str) -> Vec<Column> {
    let columns = table.columns.iter().map(|(name, data_type)| Column {
        source: alias.to_owned(),
        name: (*name).to_owned(),
        data_type: *data_type,
    });
    columns.collect()
}
