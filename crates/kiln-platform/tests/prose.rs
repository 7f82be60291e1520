//! Comments name their actors: a worker, a transaction, a session, no reader; and they, and the
//! pages, are spelled right.
//!
//! A comment that says what "somebody" does leaves its reader to find out which thread that is, and
//! a SAFETY comment that holds "by the contract" leaves the condition unchecked. Tests and
//! benchmarks count as well; strings and code do not.

mod complaints;
mod sources;

use std::collections::HashMap;
use std::path::Path;

use kiln_platform::file;

use complaints::complain;
use sources::{Piece, name_length};

/// Words that stand for an actor without naming it.
const NAMELESS: [&str; 4] = ["whoever", "somebody", "nobody", "everybody"];

/// What a SAFETY comment says instead of its condition.
const UNNAMED_CONDITION: [&str; 3] = ["by", "the", "contract"];

#[test]
fn comments_name_their_actors() {
    let mut complaints = Vec::new();
    for directory in sources::crates() {
        for (path, text) in sources::rust_sources(&directory) {
            // This file names the words that it refuses.
            if !path.ends_with("tests/prose.rs") {
                complain(&mut complaints, &path, nameless(&text));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The lines of a Rust source whose comments do not name an actor or a condition, with what they
/// say.
fn nameless(source: &str) -> Vec<(usize, String)> {
    let words = comment_words(source);
    let mut found = Vec::new();
    for (at, (line, word)) in words.iter().enumerate() {
        if NAMELESS.contains(&word.as_str()) {
            found.push((*line, format!("a comment says \"{word}\"; name the actor")));
        }
        let following = words[at..].iter().map(|(_, word)| word.as_str());
        if following
            .take(UNNAMED_CONDITION.len())
            .eq(UNNAMED_CONDITION)
        {
            let said = UNNAMED_CONDITION.join(" ");
            found.push((
                *line,
                format!("a comment says \"{said}\"; name the condition"),
            ));
        }
    }
    found
}

/// The words of all comments in lower case, with their lines. Constants are left out.
fn comment_words(source: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let length = match Piece::at_start(rest) {
            Some(Piece::Comment(length)) => {
                for (below, text) in rest[..length].lines().enumerate() {
                    let of_line = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    let of_line = of_line.filter(|word| word.contains(char::is_lowercase));
                    words.extend(of_line.map(|word| (line + below, word.to_lowercase())));
                }
                length
            }
            Some(Piece::Literal(length)) => length,
            None => name_length(rest).unwrap_or(next.len_utf8()),
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    words
}

#[test]
fn every_kind_of_comment_is_read() {
    for source in [
        "// somebody waits",
        "let x = 1; // Nobody waits.",
        "//! Whoever waits,",
        "/// a line\n/// of everybody's",
        "/* a block /* nobody */ */",
        "let s = \"a string\"; // whoever",
        "let c = '\"'; // nobody",
        "// SAFETY: by the contract of `f`.",
        "// SAFETY: sound by\n// the contract.",
    ] {
        assert!(!nameless(source).is_empty(), "not caught: {source}");
    }
}

#[test]
fn code_and_strings_pass() {
    for source in [
        "let nobody = somebody(whoever);",
        "let message = \"// nobody waits\";",
        "let message = r#\"/* nobody */ \"#;",
        "/// [`NOBODY`], when no core has the line.",
        "// no_body, nobody_else and bodies",
        "// by the contractor",
        "fn f<'nobody>(x: &'nobody u8) {}",
    ] {
        assert_eq!(nameless(source), [], "caught by mistake: {source}");
    }
}

#[test]
fn the_line_is_the_one_that_says_it() {
    let source =
        "// one\nlet s = \"a\nb\"; // nobody\n/* a\n somebody */\nf(); // by\n// the contract\n";
    let lines: Vec<usize> = nameless(source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [3, 5, 6]);
}

/// A line for each word that is often misspelled: how, and what is right.
const MISSPELLED: &str = include_str!("prose/misspelled.txt");

#[test]
fn comments_and_pages_are_spelled_right() {
    let misspelled: HashMap<&str, &str> = MISSPELLED
        .lines()
        .map(|line| line.split_once(' ').expect("a line has two words"))
        .collect();
    let wrong = |words: Vec<(usize, String)>| {
        let wrong = words.into_iter().filter_map(|(line, word)| {
            let right = misspelled.get(word.as_str())?;
            Some((line, format!("\"{word}\" is spelled {right}")))
        });
        wrong.collect::<Vec<_>>()
    };
    assert_eq!(wrong(comment_words("f(); // teh core")).len(), 1);
    assert_eq!(wrong(page_words("one\nUntill then"))[0].0, 2);
    let mut complaints = Vec::new();
    for directory in sources::crates() {
        for (path, text) in sources::rust_sources(&directory) {
            complain(&mut complaints, &path, wrong(comment_words(&text)));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for directory in ["", "docs", "docs/protocols", "lab"] {
        let pages = file::list(&root.join(directory)).expect("it can be listed");
        let pages = pages
            .into_iter()
            .filter(|path| path.extension().is_some_and(|it| it == "md"));
        for path in pages {
            let text = file::read_to_string(&path).expect("a listed file can be read");
            complain(&mut complaints, &path, wrong(page_words(&text)));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The words of a page in lower case, with their lines.
fn page_words(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    let words = lines.flat_map(|(at, line)| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(move |word| (at + 1, word.to_lowercase()))
    });
    words.collect()
}
