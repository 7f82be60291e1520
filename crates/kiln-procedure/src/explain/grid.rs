//! Text tables.

/// Cells wider than this are broken at spaces, in characters.
const CELL_MAX: usize = 48;

/// Rows of cells under headings; numbers in the columns named in `to_the_right` stand to the right.
pub(super) struct Grid {
    headings: Vec<&'static str>,
    to_the_right: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub fn new(headings: &[&'static str], to_the_right: &[usize]) -> Grid {
        Grid {
            headings: headings.to_vec(),
            to_the_right: to_the_right.to_vec(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    /// The table, each line with `indent` before it.
    pub fn render(&self, indent: &str) -> String {
        let headings = self.headings.iter().map(|heading| (*heading).to_owned());
        let mut lines = vec![headings.collect::<Vec<String>>()];
        for row in &self.rows {
            let cells: Vec<Vec<String>> = row.iter().map(|cell| wrap(cell)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let cell = |lines: &Vec<String>| lines.get(at).cloned().unwrap_or_default();
                lines.push(cells.iter().map(cell).collect());
            }
        }
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            let mut text = indent.to_owned();
            for (column, cell) in line.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                if column > 0 {
                    text.push_str("  ");
                }
                match self.to_the_right.contains(&column) {
                    true => text.push_str(&(padding + cell)),
                    false => text.push_str(&(cell.clone() + &padding)),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }
}

fn wrap(cell: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in cell.split_inclusive(' ') {
        let last = lines.last_mut().expect("there is one");
        let joined = last.chars().count() + word.trim_end().chars().count();
        if joined <= CELL_MAX || last.is_empty() {
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}
