//! The guard of the table of protocols: a protocol is named in its own folder, in the list of
//! `registry.rs` and on its page, and nowhere else in the workspace's code.
//!
//! So a new one takes a folder with a row, a line in the list and a page. Comments may name
//! protocols, and so may tests.

use std::path::{Path, PathBuf};

use kiln_platform::file;
use kiln_protocols::Protocol;

/// Places that name protocols, or that call other things the same, and why.
const EXCEPTIONS: [(&str, &[&str], &str); 12] = [
    (
        "kiln-protocols/src/protocol.rs",
        &["Silo"],
        "the recommended configuration",
    ),
    (
        "kiln-engine/src/durability/replay.rs",
        &["Serial"],
        "calls are made again one after the other",
    ),
    (
        "kiln-lab/src/plan.rs",
        &["Serial", "TwoPhaseLockingNoWait"],
        "what is measured where nothing is asked for",
    ),
    (
        "kiln/src/commands/sim.rs",
        &["TwoPhaseLockingNoWait", "orthrus"],
        "what is measured where nothing is asked for, and on which machine",
    ),
    ("kiln-figures/src/palette.rs", &["*"], "colours"),
    (
        "kiln-figures/src/description.rs",
        &["orthrus", "vll", "strife", "healing"],
        "papers",
    ),
    (
        "kiln-machine/src",
        &["orthrus", "strife", "healing"],
        "the papers' machines",
    ),
    (
        "kiln-protocols/src/factors.rs",
        &["none"],
        "no wait between attempts",
    ),
    ("kiln-lab/src/audit.rs", &["none"], "no audit"),
    ("kiln-engine/src/roles.rs", &["none"], "no name for a role"),
    ("kiln-sql/src", &["none", "serial"], "words of SQL"),
    (
        "kiln/src/commands/data/status.rs",
        &["none"],
        "no checkpoint",
    ),
];

#[test]
fn only_its_folder_and_the_list_name_a_protocol() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut complaints, mut rows) = (Vec::new(), Vec::new());
    for directory in file::list(&crates).expect("the crates can be listed") {
        for source in sources(&directory.join("src")) {
            let text = file::read_to_string(&source).expect("a listed file can be read");
            let path = source.strip_prefix(&crates).expect("it is of a crate");
            let path = path.to_str().expect("the path is a text");
            for name in named(&text) {
                if is_row(path, &name) {
                    rows.push(name);
                } else if !is_excepted(path, &name) {
                    complaints.push(format!("crates/{path} names {name}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    let is_missing = |protocol: &Protocol| !rows.iter().any(|row| row == protocol.name());
    let missing: Vec<Protocol> = Protocol::ALL.into_iter().filter(is_missing).collect();
    assert_eq!(missing, [], "rows are in files called `registration`");
}

/// Whether a path is that of rows, which say names as texts.
fn is_row(path: &str, name: &str) -> bool {
    let is_of_folder = ["access/", "schedule/"]
        .iter()
        .any(|folder| path.starts_with(&format!("kiln-protocols/src/{folder}")));
    let is_text = Protocol::ALL.iter().any(|it| it.name() == name) || is_alias(name);
    is_of_folder && path.contains("/registration") && is_text
}

fn is_alias(name: &str) -> bool {
    Protocol::parse(name).is_some_and(|protocol| protocol.name() != name)
}

fn is_excepted(path: &str, name: &str) -> bool {
    let mut exceptions = EXCEPTIONS.iter();
    exceptions.any(|(place, names, _)| {
        path.starts_with(place) && (*names == ["*"] || names.contains(&name))
    })
}

#[test]
fn every_protocol_has_a_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols");
    let read = |page: &PathBuf| file::read_to_string(page).expect("a listed page can be read");
    let overview = read(&pages.join("README.md"));
    let pages = file::list(&pages).expect("the pages can be listed");
    for protocol in Protocol::ALL {
        let name = format!("`{protocol}`");
        assert!(overview.contains(&name), "the overview lacks {name}");
        let mut pages = pages.iter().filter(|page| !page.ends_with("README.md"));
        assert!(
            pages.any(|page| read(page).contains(&name)),
            "no page has {name}"
        );
    }
}

#[test]
fn what_names_a_protocol_is_found() {
    for (source, expected) in [
        ("let one = Protocol::Silo;", &["Silo"][..]),
        ("use Protocol::{Dora, Healing};", &["Dora", "Healing"]),
        ("Protocol :: Vll", &["Vll"]),
        (
            "f(\"occ\", \"silo+cu\", \"dl-detect\")",
            &["occ", "silo", "dl-detect"],
        ),
        ("r#\"mvcc\"#; '\"'; \"tictoc\"", &["mvcc", "tictoc"]),
        ("fn f<'a>(a: &'a str) {} \"dora\"", &["dora"]),
        ("// Protocol::Silo\n/* \"silo\" */ \"of silo\"", &[]),
        ("Protocol::ALL; Other::Silo; \"a \\\"silo\\\"\"", &[]),
        ("f();\n#[cfg(test)]\nmod tests { \"silo\" }", &[]),
        ("#[cfg(test)]\nmod model;\n\"silo\"", &["silo"]),
    ] {
        assert_eq!(named(source), expected, "{source}");
    }
}

/// All Rust files under `directory` but those of tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in file::list(directory).unwrap_or_default() {
        let is_of_tests = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.extension() {
            _ if is_of_tests => {}
            None => found.extend(sources(&path)),
            Some(extension) if extension == "rs" => found.push(path),
            Some(_) => {}
        }
    }
    found
}

/// The protocols that a source names: by their variants, or by texts that are one of their names,
/// with or without options. What is in comments and in a module of tests at the end of the file
/// does not count.
fn named(source: &str) -> Vec<String> {
    let end = source.find("#[cfg(test)]\nmod tests {");
    let mut found = Vec::new();
    let tokens = tokens(&source[..end.unwrap_or(source.len())]);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Text(text) => {
                let name = text.split('+').next().unwrap_or_default();
                if Protocol::parse(name).is_some() {
                    found.push(name.to_owned());
                }
            }
            Token::Name("Protocol") if tokens[at + 1..].starts_with(&COLONS) => {
                let names = tokens[at + 3..].iter().take_while(|it| is_of_path(it));
                let names = names.filter_map(|token| match token {
                    Token::Name(name) => Some(*name),
                    _ => None,
                });
                let is_one =
                    |name: &&str| Protocol::ALL.iter().any(|it| format!("{it:?}") == *name);
                found.extend(names.filter(is_one).map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

const COLONS: [Token<'static>; 2] = [Token::Other(':'), Token::Other(':')];

/// Whether a token behind `Protocol::` belongs to what is named of it: a name, or several in
/// braces.
fn is_of_path(token: &Token<'_>) -> bool {
    matches!(token, Token::Name(_) | Token::Other('{' | ','))
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    Text(&'a str),
    Other(char),
}

/// Cuts Rust source into names, texts and single characters; comments, white space and literals of
/// characters are left out.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let quote = rest.trim_start_matches(['b', 'c', 'r', '#']);
        let opening = &rest[..rest.len() - quote.len()];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if quote.starts_with('"')
            && (opening.is_empty() || opening.contains(['b', 'c', 'r']))
        {
            let text = &quote[1..];
            let closing = format!("\"{}", opening.trim_start_matches(['b', 'c', 'r']));
            let end = match opening.contains('r') {
                true => text.find(&closing).unwrap_or(text.len()),
                false => end_of_text(text),
            };
            found.push(Token::Text(&text[..end]));
            (opening.len() + 1 + end + closing.len()).min(rest.len())
        } else if next == '\'' {
            character_length(rest)
        } else if next.is_alphanumeric() || next == '_' {
            let is_over = |c: char| !c.is_alphanumeric() && c != '_';
            let length = rest.find(is_over).unwrap_or(rest.len());
            found.push(Token::Name(&rest[..length]));
            length
        } else {
            if !next.is_whitespace() {
                found.push(Token::Other(next));
            }
            next.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// Where a text ends that has escapes.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if c == '"' && !is_escaped {
            return at;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

/// The length of a literal of a character, or of the quote that a lifetime begins with.
fn character_length(rest: &str) -> usize {
    let mut inside = rest[1..].char_indices();
    match (inside.next(), inside.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = 1 + at + escaped.len_utf8();
            let end = rest[from..].find('\'');
            end.map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 2,
        _ => 1,
    }
}
