//! Random expressions of a given type over the columns in scope.

use super::{Column, Generator, Type};

impl Generator<'_> {
    /// An expression of a type.
    pub(super) fn expression(&mut self, data_type: Type, depth: usize) -> String {
        if depth == 0 || !self.grow() || self.one_in(4) {
            return self.leaf(data_type);
        }
        match self.below(8) {
            0 => {
                let condition = self.expression(Type::Boolean, depth - 1);
                let (one, other) = self.two(data_type, depth);
                match self.one_in(3) {
                    true => format!("CASE WHEN {condition} THEN {one} END"),
                    false => format!("CASE WHEN {condition} THEN {one} ELSE {other} END"),
                }
            }
            1 => {
                let of = self.data_type();
                let operand = self.expression(of, depth - 1);
                let (first, second) = (self.leaf(of), self.leaf(of));
                let (one, other) = self.two(data_type, depth);
                format!("CASE {operand} WHEN {first} THEN {one} WHEN {second} THEN {other} END")
            }
            2 => {
                let (one, other) = self.two(data_type, depth);
                let function = self.pick(&["coalesce", "nullif"]);
                format!("{function}({one}, {other})")
            }
            3 if data_type != Type::Boolean => {
                let (one, other) = self.two(data_type, depth);
                let function = self.pick(&["greatest", "least"]);
                format!("{function}({one}, {other})")
            }
            4 if self.one_in(2) => self.scalar_subquery(data_type),
            _ => self.operation(data_type, depth),
        }
    }

    fn two(&mut self, data_type: Type, depth: usize) -> (String, String) {
        let one = self.expression(data_type, depth - 1);
        (one, self.expression(data_type, depth - 1))
    }

    fn operation(&mut self, data_type: Type, depth: usize) -> String {
        match data_type {
            Type::Integer => match self.below(5) {
                0 => format!("twice({})", self.leaf(Type::Integer)),
                1 => format!("length({})", self.expression(Type::Text, depth - 1)),
                2 => format!("abs({})", self.leaf(Type::Integer)),
                _ => self.arithmetic(data_type, depth),
            },
            Type::BigInt => match self.below(4) {
                0 => format!("{}::bigint", self.expression(Type::Integer, depth - 1)),
                1 => "items()".to_owned(),
                _ => self.arithmetic(data_type, depth),
            },
            Type::Numeric => match self.below(4) {
                0 => format!("round({}, 1)", self.expression(Type::Numeric, depth - 1)),
                1 => format!("{}::numeric", self.expression(Type::Integer, depth - 1)),
                _ => self.arithmetic(data_type, depth),
            },
            Type::Text => {
                let (one, other) = self.two(Type::Text, depth);
                match self.below(4) {
                    0 => format!("upper({one})"),
                    1 => format!("substr({one}, 1, 2)"),
                    2 => format!("{}::text", self.expression(Type::Integer, depth - 1)),
                    _ => format!("({one} || {other})"),
                }
            }
            Type::Boolean => self.condition(depth),
            Type::Date => {
                format!("({} + {})", self.leaf(Type::Date), self.below(40))
            }
        }
    }

    fn arithmetic(&mut self, data_type: Type, depth: usize) -> String {
        let (one, other) = self.two(data_type, depth.min(2));
        let operator = self.pick(&["+", "-", "+", "-", "*", "/"]);
        match operator {
            // The products stay small.
            "*" => format!("({} * {})", self.leaf(data_type), self.below(4)),
            "/" => format!("({} / {})", self.leaf(data_type), 1 + self.below(4)),
            _ => format!("({one} {operator} {other})"),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.below(14) {
            0 => {
                let (one, other) = self.two(Type::Boolean, depth);
                let connective = self.pick(&["AND", "OR"]);
                format!("({one} {connective} {other})")
            }
            1 => format!("(NOT {})", self.expression(Type::Boolean, depth - 1)),
            2 => {
                let data_type = self.data_type();
                let operand = self.expression(data_type, depth - 1);
                let negated = self.pick(&["", "NOT "]);
                format!("({operand} IS {negated}NULL)")
            }
            3 => {
                let data_type = self.data_type();
                let operand = self.expression(data_type, depth - 1);
                let (low, high) = (self.leaf(data_type), self.leaf(data_type));
                let negated = self.pick(&["", "NOT "]);
                format!("({operand} {negated}BETWEEN {low} AND {high})")
            }
            4 => {
                let data_type = self.data_type();
                let operand = self.expression(data_type, depth - 1);
                let count = 1 + self.below(3);
                let list: Vec<String> = (0..count).map(|_| self.leaf(data_type)).collect();
                let negated = self.pick(&["", "NOT "]);
                format!("({operand} {negated}IN ({}))", list.join(", "))
            }
            5 => {
                let data_type = self.data_type();
                let operand = self.expression(data_type, depth - 1);
                let query = self.subquery_of(&[data_type]);
                let negated = self.pick(&["", "NOT "]);
                format!("({operand} {negated}IN ({query}))")
            }
            6 => {
                let types: Vec<Type> = (0..self.below(3)).map(|_| self.data_type()).collect();
                let query = self.subquery_of(&types);
                let negated = self.pick(&["", "NOT "]);
                format!("({negated}EXISTS ({query}))")
            }
            7 => {
                let text = self.expression(Type::Text, depth - 1);
                let pattern = self.pick(&["%o%", "_", "", "t%", "%e"]);
                format!("({text} LIKE '{pattern}')")
            }
            8 => {
                let (one, other) = self.two(Type::Boolean, depth);
                let operator = self.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("({one} {operator} {other})")
            }
            9 => {
                let (first, second) = (self.data_type(), self.data_type());
                let left = (self.leaf(first), self.leaf(second));
                let right = (self.leaf(first), self.leaf(second));
                let operator = self.pick(&["=", "<", ">=", "<>"]);
                format!(
                    "(({}, {}) {operator} ({}, {}))",
                    left.0, left.1, right.0, right.1
                )
            }
            // It is true whatever the volatile call gives.
            10 => self
                .pick(&[
                    "(random() < 2)",
                    "(chance() >= 0)",
                    "(random() BETWEEN 0 AND 1)",
                ])
                .to_owned(),
            _ => {
                let data_type = self.data_type();
                let (one, other) = self.two(data_type, depth);
                let operator = self.pick(&["=", "=", "<>", "<", "<=", ">", ">="]);
                format!("({one} {operator} {other})")
            }
        }
    }

    /// A column, or a literal.
    pub(super) fn leaf(&mut self, data_type: Type) -> String {
        let of_type = |column: &&Column| column.data_type == data_type;
        let levels = self.levels.iter().flatten();
        let columns: Vec<Column> = levels.filter(of_type).cloned().collect();
        if !columns.is_empty() && !self.one_in(4) {
            let Column { source, name, .. } = &columns[self.below(columns.len())];
            return format!("{source}.{name}");
        }
        self.literal(data_type)
    }

    pub(super) fn literal(&mut self, data_type: Type) -> String {
        if self.one_in(8) {
            return match data_type {
                Type::Integer => "NULL::integer",
                Type::BigInt => "NULL::bigint",
                Type::Numeric => "NULL::numeric",
                Type::Text => "NULL::text",
                Type::Boolean => "NULL::boolean",
                Type::Date => "NULL::date",
            }
            .to_owned();
        }
        match data_type {
            Type::Integer => format!("{}", self.below(12)),
            Type::BigInt => format!("{}::bigint", self.below(12)),
            Type::Numeric => format!("{}.{}", self.below(9), self.below(100)),
            Type::Text => format!("'{}'::text", self.pick(&["one", "two", "", "x", "Zz"])),
            Type::Boolean => self.pick(&["true", "false"]).to_owned(),
            Type::Date => {
                let day = self.pick(&["2024-01-31", "2024-02-29", "1999-12-31"]);
                format!("date '{day}'")
            }
        }
    }
}
