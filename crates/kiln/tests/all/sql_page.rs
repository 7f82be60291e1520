//! The statements of `docs/sql.md`, `docs/sql-differences.md` and `docs/row-values.md`: those that are there succeed, the
//! others are refused by name.

use kiln::{Database, Options};

/// The pages in the order in which one session runs them: refused statements name tables of the
/// first page.
const PAGES: [(&str, &str); 3] = [
    ("docs/sql.md", include_str!("../../../../docs/sql.md")),
    (
        "docs/sql-differences.md",
        include_str!("../../../../docs/sql-differences.md"),
    ),
    (
        "docs/row-values.md",
        include_str!("../../../../docs/row-values.md"),
    ),
];

/// A block of statements of a page, and the line on which it begins.
struct Block {
    page: &'static str,
    line: usize,
    is_refused: bool,
    text: String,
}

fn blocks(page: &'static str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        match line {
            "```sql" | "```sql refused" => {
                is_inside = true;
                blocks.push(Block {
                    page,
                    line: number + 2,
                    is_refused: line.ends_with("refused"),
                    text: String::new(),
                });
            }
            "```" => is_inside = false,
            _ if is_inside => {
                let text = &mut blocks.last_mut().expect("a block is open").text;
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn what_is_there_runs_and_what_is_not_is_refused_by_name() {
    let database = Database::open(Options::default()).expect("a database");
    let mut session = database.session().expect("a session");
    let mut wrong = Vec::new();
    let mut counts = [0, 0];
    for block in PAGES.iter().flat_map(|(page, text)| blocks(page, text)) {
        let page = block.page;
        let mut line = block.line;
        for statement in split(&block.text) {
            let result = session.execute(&statement);
            counts[usize::from(block.is_refused)] += 1;
            let verdict = match (result, block.is_refused) {
                (Ok(_), false) => None,
                (Err(error), true) if error.state().as_str() == "0A000" => None,
                (Ok(_), true) => Some("is there".to_owned()),
                (Err(error), _) => Some(format!("{}: {error}", error.state())),
            };
            if let Some(verdict) = verdict {
                wrong.push(format!("{page}:{line}: {statement}: {verdict}"));
            }
            line += statement.matches('\n').count() + 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        counts.iter().all(|count| *count > 30),
        "statements were lost: {counts:?}"
    );
}

/// The statements of a block: each ends with a semicolon at the end of a line, outside of a body.
fn split(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut current = String::new();
    for line in text.lines() {
        if !current.is_empty() {
            current.push('\n');
        }
        current.push_str(line);
        let is_in_body = current.matches("$$").count() % 2 == 1;
        if line.ends_with(';') && !is_in_body {
            statements.push(std::mem::take(&mut current));
        }
    }
    statements
}
