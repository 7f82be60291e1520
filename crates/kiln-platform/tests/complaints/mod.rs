//! Complaints about sources, by file and line.

use std::path::Path;

/// Adds what was found in a file, by line, to the complaints.
pub fn complain(complaints: &mut Vec<String>, path: &Path, found: Vec<(usize, String)>) {
    let shown = path.display().to_string();
    let shown = shown.split("/../").last().unwrap_or(&shown);
    complaints.extend(
        found
            .into_iter()
            .map(|(line, what)| format!("crates/{shown}:{line}: {what}")),
    );
}
