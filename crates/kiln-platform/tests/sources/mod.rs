//! The workspace's Rust sources, as tests read them: the files, and where comments and literals
//! end.

use std::path::{Path, PathBuf};

use kiln_platform::file;

/// The directories of the workspace's crates.
pub fn crates() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates = file::list(&directory).expect("the crates can be listed");
    crates.retain(|path| path.is_dir());
    crates
}

/// All Rust files of a crate with their text, build results apart.
///
/// # Panics
/// When there is none.
pub fn rust_sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let files = rust_files(directory);
    assert!(!files.is_empty(), "{} holds no source", directory.display());
    let read = |path: PathBuf| {
        let text = file::read_to_string(&path).expect("a listed file can be read");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in file::list(directory).expect("a directory of the workspace can be listed") {
        if path.is_dir() {
            if !path.ends_with("target") {
                found.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// A piece of source that is not code, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Comment(usize),
    /// A string, a character, a lifetime or a label.
    Literal(usize),
}

impl Piece {
    /// The piece with which `rest` starts, if that is not code.
    pub fn at_start(rest: &str) -> Option<Piece> {
        if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            Some(Piece::Comment(length))
        } else if rest.starts_with("/*") {
            Some(Piece::Comment(block_comment_length(rest)))
        } else if let Some(length) = raw_string_length(rest) {
            Some(Piece::Literal(length))
        } else if rest.starts_with('"') {
            Some(Piece::Literal(string_length(rest)))
        } else if rest.starts_with('\'') {
            Some(Piece::Literal(quote_length(rest)))
        } else {
            None
        }
    }
}

/// The length of the name or number with which `rest` starts, if it does.
pub fn name_length(rest: &str) -> Option<usize> {
    let length = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    (length > 0).then_some(length)
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"…"`, `r#"…"#` and their byte and C forms, when one starts here.
fn raw_string_length(rest: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].into_iter().find(|prefix| {
        let hashes = rest.strip_prefix(prefix).unwrap_or_default();
        hashes.trim_start_matches('#').starts_with('"')
    })?;
    let hashes = rest[start.len()..].find('"')?;
    let body = start.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(
        rest[body..]
            .find(&end)
            .map_or(rest.len(), |at| body + at + end.len()),
    )
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// A character literal, or the quote and name of a lifetime or label.
fn quote_length(rest: &str) -> usize {
    let mut inside = rest[1..].char_indices();
    match (inside.next(), inside.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = 1 + at + escaped.len_utf8();
            rest[from..]
                .find('\'')
                .map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 2,
        _ => {
            let name = |c: char| !c.is_alphanumeric() && c != '_';
            rest[1..].find(name).map_or(rest.len(), |end| end + 1)
        }
    }
}
