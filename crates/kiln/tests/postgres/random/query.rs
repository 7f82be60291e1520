//! Random queries.

use super::{Column, Generator, TABLES, Type};

impl Generator<'_> {
    /// A query whose rows, as a set, follow from the data alone.
    pub(super) fn query(&mut self, types: &[Type]) -> String {
        let known = self.with.len();
        let with = match self.grow() && self.one_in(4) {
            true => self.with_clause(),
            false => String::new(),
        };
        let mut body = match self.below(10) {
            0 if self.grow() => {
                let (one, other) = (self.select(types), self.select(types));
                let all = self.pick(&["", "ALL "]);
                format!("{one} UNION {all}{other}")
            }
            1 if !types.is_empty() => {
                let rows: Vec<String> = (0..=self.below(3))
                    .map(|_| self.values_row(types))
                    .collect();
                format!("VALUES {}", rows.join(", "))
            }
            _ => self.select(types),
        };
        if !types.is_empty() && self.one_in(3) {
            let directions: Vec<String> = (1..=types.len())
                .map(|number| {
                    let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                    format!("{number}{direction}")
                })
                .collect();
            body += &format!(" ORDER BY {}", directions.join(", "));
            if self.one_in(2) {
                body += &format!(" LIMIT {}", self.below(4));
            }
            if self.one_in(4) {
                body += &format!(" OFFSET {}", self.below(3));
            }
        }
        self.with.truncate(known);
        format!("{with}{body}")
    }

    fn values_row(&mut self, types: &[Type]) -> String {
        let values: Vec<String> = types
            .iter()
            .map(|data_type| self.expression(*data_type, 1))
            .collect();
        format!("({})", values.join(", "))
    }

    fn with_clause(&mut self) -> String {
        // What a query of WITH may name is what is around the whole query.
        let mut parts = Vec::new();
        for _ in 0..=self.below(2) {
            let types = self.types(1, 3);
            let query = self.query(&types);
            let name = self.name("w");
            let columns: Vec<String> = (1..=types.len()).map(|n| format!("c{n}")).collect();
            let kept = self.pick(&["", "", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            parts.push(format!("{name}({}) AS {kept}({query})", columns.join(", ")));
            self.with.push((name, types));
        }
        format!("WITH {} ", parts.join(", "))
    }

    pub(super) fn types(&mut self, from: usize, to: usize) -> Vec<Type> {
        let count = from + self.below(to - from + 1);
        (0..count).map(|_| self.data_type()).collect()
    }

    /// SELECT with FROM, WHERE and perhaps GROUP BY.
    fn select(&mut self, types: &[Type]) -> String {
        let (from, columns) = match self.one_in(12) {
            true => (String::new(), Vec::new()),
            false => self.clause_from(),
        };
        self.levels.push(columns);
        let condition = match self.one_in(2) {
            true => format!(" WHERE {}", self.expression(Type::Boolean, 3)),
            false => String::new(),
        };
        let text = match self.below(5) {
            0 if !from.is_empty() => self.grouped(types, &from, &condition),
            _ => {
                let distinct = match !types.is_empty() && self.one_in(6) {
                    true => "DISTINCT ",
                    false => "",
                };
                let outputs: Vec<String> = types
                    .iter()
                    .enumerate()
                    .map(|(number, data_type)| {
                        let output = self.expression(*data_type, 3);
                        format!("{output} AS c{}", number + 1)
                    })
                    .collect();
                // Without FROM, an output must stand behind SELECT for Kiln's parser.
                let from = match from.is_empty() && types.is_empty() {
                    true => " FROM generate_series(1, 1)".to_owned(),
                    false => from,
                };
                format!("SELECT {distinct}{}{from}{condition}", outputs.join(", "))
            }
        };
        self.levels.pop();
        format!("({text})")
    }

    fn grouped(&mut self, types: &[Type], from: &str, condition: &str) -> String {
        let own = self.levels.last().cloned().unwrap_or_default();
        let mut keys: Vec<Column> = Vec::new();
        for _ in 0..self.below(3) {
            if !own.is_empty() {
                keys.push(own[self.below(own.len())].clone());
            }
        }
        let outputs: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(number, data_type)| {
                let of_type = |key: &&Column| key.data_type == *data_type;
                let key = keys.iter().find(of_type).cloned();
                let output = match key {
                    Some(Column { source, name, .. }) if self.one_in(2) => {
                        format!("{source}.{name}")
                    }
                    _ => self.aggregate(*data_type),
                };
                format!("{output} AS c{}", number + 1)
            })
            .collect();
        let names: Vec<String> = keys
            .iter()
            .map(|Column { source, name, .. }| format!("{source}.{name}"))
            .collect();
        let group = match (names.is_empty(), types.is_empty()) {
            (false, _) => format!(" GROUP BY {}", names.join(", ")),
            (true, false) => String::new(),
            (true, true) => " HAVING true".to_owned(),
        };
        let having = match self.one_in(4) && !types.is_empty() {
            true => {
                let one = self.aggregate(Type::BigInt);
                format!(" HAVING {one} > {}", self.below(3))
            }
            false => String::new(),
        };
        format!(
            "SELECT {}{from}{condition}{group}{having}",
            outputs.join(", ")
        )
    }

    /// An aggregate of a type over the innermost rows.
    fn aggregate(&mut self, data_type: Type) -> String {
        // With columns of outer rows alone it would be an aggregate of these.
        let levels = std::mem::take(&mut self.levels);
        self.levels.extend(levels.last().cloned());
        let text = self.aggregate_call(data_type);
        self.levels = levels;
        text
    }

    fn aggregate_call(&mut self, data_type: Type) -> String {
        let filter = match self.one_in(6) {
            true => format!(" FILTER (WHERE {})", self.leaf(Type::Boolean)),
            false => String::new(),
        };
        let call = match data_type {
            Type::BigInt => match self.below(4) {
                0 => "count(*)".to_owned(),
                1 => {
                    let of = self.data_type();
                    format!("count(DISTINCT {})", self.leaf(of))
                }
                2 => format!("sum({})", self.expression(Type::Integer, 2)),
                _ => format!("count({})", self.expression(Type::Text, 1)),
            },
            Type::Numeric => match self.below(2) {
                0 => format!("sum({})", self.expression(Type::Numeric, 2)),
                _ => format!("sum({})", self.expression(Type::BigInt, 1)),
            },
            Type::Boolean => {
                let function = self.pick(&["bool_and", "bool_or"]);
                format!("{function}({})", self.expression(Type::Boolean, 2))
            }
            other => {
                let function = self.pick(&["min", "max"]);
                format!("{function}({})", self.expression(other, 2))
            }
        };
        format!("{call}{filter}")
    }

    /// FROM and the columns that it gives.
    pub(super) fn clause_from(&mut self) -> (String, Vec<Column>) {
        let (mut text, mut columns) = self.source();
        for _ in 0..self.below(3) {
            if !self.grow() {
                break;
            }
            let (source, added) = self.source();
            match self.below(4) {
                0 => {
                    text = format!("{text} CROSS JOIN {source}");
                    columns.extend(added);
                }
                kind => {
                    let join = match kind {
                        1 => "LEFT JOIN",
                        _ => "JOIN",
                    };
                    columns.extend(added);
                    self.levels.push(columns.clone());
                    let on = match self.one_in(3) {
                        true => self.expression(Type::Boolean, 2),
                        false => {
                            let data_type = self.pick(&[&Type::Integer, &Type::Text]);
                            let (one, other) = (self.leaf(*data_type), self.leaf(*data_type));
                            format!("{one} = {other}")
                        }
                    };
                    self.levels.pop();
                    text = format!("{text} {join} {source} ON {on}");
                }
            }
        }
        (format!(" FROM {text}"), columns)
    }

    fn source(&mut self) -> (String, Vec<Column>) {
        let alias = self.name("s");
        let numbered = |types: &[Type]| -> Vec<Column> {
            let columns = types.iter().enumerate();
            columns
                .map(|(number, data_type)| Column {
                    source: alias.clone(),
                    name: format!("c{}", number + 1),
                    data_type: *data_type,
                })
                .collect()
        };
        match self.below(12) {
            0 | 1 if self.grow() => {
                // A subquery in FROM sees nothing of its neighbours, but what is around them all.
                let types = self.types(0, 3);
                let query = self.query(&types);
                let columns: Vec<String> = (1..=types.len()).map(|n| format!("c{n}")).collect();
                let columns = match columns.is_empty() {
                    true => String::new(),
                    false => format!("({})", columns.join(", ")),
                };
                (format!("({query}) {alias}{columns}"), numbered(&types))
            }
            2..=4 if !self.with.is_empty() => {
                let at = self.below(self.with.len());
                let (name, types) = self.with[at].clone();
                (format!("{name} {alias}"), numbered(&types))
            }
            5 => {
                let last = self.below(4);
                let column = [Type::Integer];
                (
                    format!("generate_series(1, {last}) {alias}(c1)"),
                    numbered(&column),
                )
            }
            6 => (
                format!("unnest(ARRAY['one', 'x', NULL]::text[]) {alias}(c1)"),
                numbered(&[Type::Text]),
            ),
            7 => (
                format!("pairs({}) {alias}(c1, c2)", self.below(3)),
                numbered(&[Type::Integer, Type::Integer]),
            ),
            _ => {
                let table = &TABLES[self.below(TABLES.len())];
                let columns = table.columns.iter().map(|(name, data_type)| Column {
                    source: alias.clone(),
                    name: (*name).to_owned(),
                    data_type: *data_type,
                });
                (format!("{} {alias}", table.name), columns.collect())
            }
        }
    }

    /// A query of some columns for an expression, which may name the rows around.
    pub(super) fn subquery_of(&mut self, types: &[Type]) -> String {
        match self.grow() {
            true => self.query(types),
            false => {
                let literals: Vec<String> = types
                    .iter()
                    .map(|data_type| self.literal(*data_type))
                    .collect();
                format!("SELECT {} FROM generate_series(1, 2)", literals.join(", "))
            }
        }
    }

    /// A subquery that gives one row.
    pub(super) fn scalar_subquery(&mut self, data_type: Type) -> String {
        let (from, columns) = self.clause_from();
        self.levels.push(columns);
        let condition = self.expression(Type::Boolean, 2);
        let output = self.aggregate(data_type);
        self.levels.pop();
        format!("(SELECT {output}{from} WHERE {condition})")
    }
}
