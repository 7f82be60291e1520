//! Scripts: what several transactions do step by step, and what must not come of it.
//!
//! ```text
//! # A comment.
//! title: Write skew
//! anomaly: G2-item
//!
//! setup:
//!   CREATE TABLE item (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
//!   INSERT INTO item VALUES (1, 10), (2, 20);
//!
//! steps:
//!   t1: BEGIN
//!   t2: BEGIN
//!   t1: SELECT id, value FROM item ORDER BY id -> one
//!   t2: SELECT id, value FROM item ORDER BY id -> two
//!   t1: UPDATE item SET value = 11 WHERE id = 1
//!   t2: UPDATE item SET value = 21 WHERE id = 2
//!   t1: COMMIT
//!   t2: COMMIT
//!
//! final: SELECT id, value FROM item ORDER BY id
//! anomaly when: t1 committed and t2 committed and one = 1,10 2,20 and two = 1,10 2,20
//! ```
//!
//! Each of `t1`, `t2`, … is one transaction in a session of its own: from BEGIN to COMMIT or
//! ROLLBACK, or a single statement. `-> name` names the rows of a step. Statements whose rows have
//! no order by nature should sort them.
//!
//! The anomaly is there when all conditions of one of the `anomaly when` lines hold:
//!
//! | condition | holds when |
//! |---|---|
//! | `t1 committed` | its effects are there |
//! | `t1 rejected` | it ended with an error that is no conflict |
//! | `name = 1,10 2,20`, `name = none` | the step returned these rows |
//! | `name contains 1,10` | the row is one of them |
//! | `name differs from other` | both steps returned rows, but not the same |
//!
//! `final` names the rows of the final query. No condition holds for a step that returned no rows.
//! `commits at least: 0` changes the number of transactions that must commit, which is 1.

use std::fmt;

/// What is run, one statement at a time, and what it must not lead to.
#[derive(Debug)]
pub struct Script {
    /// The file's name without extension.
    pub name: String,
    pub title: String,
    /// Adya's name of the anomaly.
    pub anomaly: String,
    /// How many transactions commit under every protocol.
    pub commits_min: usize,
    /// Statements that prepare the database.
    pub setup: String,
    /// The names of the transactions, in the order of their first steps.
    pub transactions: Vec<String>,
    pub steps: Vec<Step>,
    /// The query for the state at the end.
    pub final_query: String,
    /// The anomaly happened when all conditions of one of these hold.
    pub anomaly_when: Vec<Vec<Condition>>,
}

/// One statement of one transaction.
#[derive(Debug)]
pub struct Step {
    /// The position of the transaction among those of the script.
    pub transaction: usize,
    pub sql: String,
    /// The name of the rows that it returns.
    pub label: Option<String>,
}

/// Says something about a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Condition {
    Committed(usize),
    Rejected(usize),
    Equals(Label, Vec<String>),
    Contains(Label, String),
    Differ(Label, Label),
}

/// Rows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Those of the step at this position.
    Step(usize),
    /// Those of the final query.
    Final,
}

/// What is wrong with a script, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    /// From 1; 0 for the file as a whole.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

fn mistake<T>(line: usize, message: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake {
        line,
        message: message.into(),
    })
}

/// The part of the file that the present line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Setup,
    Steps,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<Script, Mistake> {
        let mut script = Script {
            name: name.to_owned(),
            title: String::new(),
            anomaly: String::new(),
            commits_min: 1,
            setup: String::new(),
            transactions: Vec::new(),
            steps: Vec::new(),
            final_query: String::new(),
            anomaly_when: Vec::new(),
        };
        let mut part = Part::Head;
        // They may refer to what comes later.
        let mut conditions = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with(' ') {
                match part {
                    Part::Head => return mistake(number, "an indented line outside of a part"),
                    Part::Setup => {
                        script.setup.push_str(line.trim());
                        script.setup.push('\n');
                    }
                    Part::Steps => script.step(number, line.trim())?,
                }
                continue;
            }
            let Some((key, value)) = line.split_once(':') else {
                return mistake(number, "a line that is neither indented nor `key: value`");
            };
            let value = value.trim();
            part = Part::Head;
            match key {
                "title" => script.title = value.to_owned(),
                "anomaly" => script.anomaly = value.to_owned(),
                "setup" => part = Part::Setup,
                "steps" => part = Part::Steps,
                "final" => script.final_query = value.to_owned(),
                "anomaly when" => conditions.push((number, value)),
                "commits at least" => match value.parse() {
                    Ok(count) => script.commits_min = count,
                    Err(_) => return mistake(number, format!("`{value}` is not a number")),
                },
                _ => return mistake(number, format!("`{key}` is not known")),
            }
        }
        for (number, text) in conditions {
            let all: Result<_, _> = text
                .split(" and ")
                .map(|condition| script.condition(number, condition))
                .collect();
            script.anomaly_when.push(all?);
        }
        script.check()?;
        Ok(script)
    }

    fn step(&mut self, line: usize, text: &str) -> Result<(), Mistake> {
        let Some((name, rest)) = text.split_once(':') else {
            return mistake(
                line,
                "a step begins with its transaction, as in `t1: BEGIN`",
            );
        };
        let (sql, label) = match rest.rsplit_once(" -> ") {
            Some((sql, label)) => (sql.trim(), Some(label.trim().to_owned())),
            None => (rest.trim(), None),
        };
        if let Some(label) = &label
            && (label == "final" || self.steps.iter().any(|s| s.label.as_ref() == Some(label)))
        {
            return mistake(line, format!("`{label}` names something else already"));
        }
        let known = self.transactions.iter().position(|known| known == name);
        let transaction = known.unwrap_or_else(|| {
            self.transactions.push(name.to_owned());
            self.transactions.len() - 1
        });
        self.steps.push(Step {
            transaction,
            sql: sql.to_owned(),
            label,
        });
        Ok(())
    }

    fn condition(&self, line: usize, text: &str) -> Result<Condition, Mistake> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [name, "committed"] => Ok(Condition::Committed(self.transaction(line, name)?)),
            [name, "rejected"] => Ok(Condition::Rejected(self.transaction(line, name)?)),
            [label, "=", "none"] => Ok(Condition::Equals(self.label(line, label)?, Vec::new())),
            [label, "=", rows @ ..] if !rows.is_empty() => Ok(Condition::Equals(
                self.label(line, label)?,
                rows.iter().map(|&row| row.to_owned()).collect(),
            )),
            [label, "contains", row] => Ok(Condition::Contains(
                self.label(line, label)?,
                (*row).to_owned(),
            )),
            [one, "differs", "from", other] => Ok(Condition::Differ(
                self.label(line, one)?,
                self.label(line, other)?,
            )),
            _ => mistake(line, format!("`{text}` is not a condition")),
        }
    }

    fn transaction(&self, line: usize, name: &str) -> Result<usize, Mistake> {
        match self.transactions.iter().position(|known| known == name) {
            Some(position) => Ok(position),
            None => mistake(line, format!("there is no transaction `{name}`")),
        }
    }

    fn label(&self, line: usize, name: &str) -> Result<Label, Mistake> {
        if name == "final" {
            return Ok(Label::Final);
        }
        let labelled = |step: &Step| step.label.as_deref() == Some(name);
        match self.steps.iter().position(labelled) {
            Some(position) => Ok(Label::Step(position)),
            None => mistake(line, format!("no step is called `{name}`")),
        }
    }

    /// Checks that nothing is missing, and that each transaction is whole.
    fn check(&self) -> Result<(), Mistake> {
        for (missing, what) in [
            (self.title.is_empty(), "title"),
            (self.anomaly.is_empty(), "anomaly"),
            (self.setup.is_empty(), "setup"),
            (self.final_query.is_empty(), "final"),
            (self.anomaly_when.is_empty(), "anomaly when"),
        ] {
            if missing {
                return mistake(0, format!("`{what}` is missing"));
            }
        }
        if self.transactions.len() < 2 {
            return mistake(0, "fewer than two transactions have no anomalies");
        }
        for (position, name) in self.transactions.iter().enumerate() {
            let own: Vec<&str> = self.steps_of(position).map(|(_, sql)| sql).collect();
            let inner = match own.as_slice() {
                ["BEGIN", inner @ .., "COMMIT" | "ROLLBACK"] => inner,
                [single] => std::slice::from_ref(single),
                _ => return mistake(0, format!("{name} is no transaction from BEGIN to end")),
            };
            if inner
                .iter()
                .any(|sql| ["BEGIN", "COMMIT", "ROLLBACK"].contains(sql))
            {
                return mistake(0, format!("{name} is more than one transaction"));
            }
        }
        Ok(())
    }

    /// The steps of one transaction: their positions and statements.
    pub fn steps_of(&self, transaction: usize) -> impl Iterator<Item = (usize, &str)> {
        let steps = self.steps.iter().enumerate();
        steps
            .filter(move |(_, step)| step.transaction == transaction)
            .map(|(position, step)| (position, step.sql.as_str()))
    }
}

#[test]
fn mistakes_are_found() {
    let good = "title: Lost update\nanomaly: P4\nsetup:\n  CREATE TABLE t (id INTEGER);\nsteps:\n  \
                t1: BEGIN\n  t1: SELECT * FROM t -> rows\n  t1: COMMIT\n  t2: SELECT 1\n\
                final: SELECT * FROM t\nanomaly when: t1 committed and rows = none\n";
    let script = Script::parse("good", good).expect("nothing is wrong with it");
    assert_eq!(script.steps.len(), 4);
    assert_eq!(
        script.anomaly_when,
        [vec![
            Condition::Committed(0),
            Condition::Equals(Label::Step(1), Vec::new())
        ]]
    );
    for (old, new, line, message) in [
        ("title:", "tilte:", 1, "`tilte` is not known"),
        ("title: Lost update\n", "", 0, "`title` is missing"),
        ("setup:\n", "", 3, "an indented line outside"),
        ("  t1: COMMIT\n", "", 0, "t1 is no transaction"),
        ("t2: SELECT 1", "t2: BEGIN", 0, "t2 is more than one"),
        (
            "SELECT * FROM t -> rows",
            "COMMIT -> rows",
            0,
            "t1 is more than one",
        ),
        ("rows = none", "row = none", 11, "no step is called `row`"),
        ("rows = none", "rows =", 11, "`rows =` is not a condition"),
        (
            "t1 committed",
            "t3 committed",
            11,
            "there is no transaction `t3`",
        ),
        ("-> rows", "-> final", 7, "`final` names something else"),
        (
            "t2: SELECT 1",
            "SELECT 1",
            9,
            "a step begins with its transaction",
        ),
        ("  t2: SELECT 1\n", "", 0, "fewer than two transactions"),
    ] {
        let text = good.replacen(old, new, 1);
        let found = Script::parse("bad", &text).expect_err("something is wrong with it");
        let matches = found.message.starts_with(message);
        assert!(matches && found.line == line, "{old} -> {new}: {found}");
    }
}
