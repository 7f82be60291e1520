//! Which module of a crate names which others, as its sources say.
//!
//! What only tests see does not count: modules and items behind `#[cfg(test)]`.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::{Kind, Token, read_paths, tokens};

/// A file of a crate: its path within `src/`, and its text.
pub type Source = (String, String);

/// A place at which a module names something of the same crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The module, as `access::silo`.
    pub from: Vec<String>,
    /// What it names: a module, and perhaps something in it.
    pub to: Vec<String>,
    /// The file and the line.
    pub place: String,
}

/// All arrows between the modules of a crate.
pub fn arrows(sources: &[Source]) -> Vec<Arrow> {
    let files: Vec<File> = sources.iter().map(File::of).collect();
    let of_tests: BTreeSet<Vec<String>> = files.iter().flat_map(File::tests).collect();
    let is_of_tests = |module: &[String]| {
        let mut lengths = 1..=module.len();
        lengths.any(|length| of_tests.contains(&module[..length]))
    };
    let root = files.iter().find(|file| file.path == "lib.rs");
    let shown = root.map(File::names_of_root).unwrap_or_default();
    let counted = files.iter().filter(|file| !file.module.is_empty());
    let counted = counted.filter(|file| !is_of_tests(&file.module));
    counted.flat_map(|file| file.arrows(&shown)).collect()
}

/// The arrows between the modules of a folder, whose paths are those within it. What the folder's
/// own file names does not count, as that of a crate's root does not: it says what is shown.
pub fn arrows_within(sources: &[Source], folder: &str) -> Vec<Arrow> {
    let files: Vec<File> = sources.iter().map(File::of).collect();
    let root = files.iter().find(|file| file.module == [folder]);
    let shown = root.map(File::names_of_root).unwrap_or_default();
    let within = |module: Vec<String>| {
        let (first, rest) = module.split_first()?;
        (first == folder && !rest.is_empty()).then(|| rest.to_vec())
    };
    let found = arrows(sources).into_iter().filter_map(|arrow| {
        let (from, to) = (within(arrow.from)?, within(arrow.to)?);
        Some(Arrow {
            from,
            to: shown.get(&to[0]).cloned().unwrap_or(to),
            place: arrow.place,
        })
    });
    found.collect()
}

struct File {
    path: String,
    module: Vec<String>,
    /// Without what only tests see.
    tokens: Vec<Token>,
    /// The modules in files of their own that only tests see.
    of_tests: Vec<String>,
}

impl File {
    fn of((path, text): &Source) -> File {
        let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
        let name = module.pop().unwrap_or_default();
        let name = name.strip_suffix(".rs").unwrap_or(&name);
        if !matches!(name, "mod" | "lib" | "main") {
            module.push(name.to_owned());
        }
        let (tokens, of_tests) = without_tests(tokens(text));
        File {
            path: path.clone(),
            module,
            tokens,
            of_tests,
        }
    }

    fn tests(&self) -> impl Iterator<Item = Vec<String>> {
        let own = |name: &String| [self.module.as_slice(), std::slice::from_ref(name)].concat();
        self.of_tests.iter().map(own)
    }

    /// The paths that it names, of those that start with a word that `is_start` knows.
    fn paths(&self, is_start: impl Fn(&str) -> bool, mut found: impl FnMut(&[String], usize)) {
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            let starts = matches!(&token.kind, Kind::Name(name) if is_start(name));
            let goes_on = at > 0 && matches!(self.tokens[at - 1].kind, Kind::PathSeparator);
            at = match starts && !goes_on {
                true => read_paths(&self.tokens, at, &[], &mut |path, line, _| {
                    found(path, line)
                }),
                false => at + 1,
            };
        }
    }

    /// What the root of a crate shows of its modules, and where that is.
    fn names_of_root(&self) -> BTreeMap<String, Vec<String>> {
        let modules: BTreeSet<&str> = self.modules().collect();
        let mut shown = BTreeMap::new();
        self.paths(
            |name| modules.contains(name),
            |path, _| {
                if let Some(name) = path.last().filter(|name| !modules.contains(name.as_str())) {
                    shown.insert(name.clone(), path.to_vec());
                }
            },
        );
        shown
    }

    /// The modules that it declares.
    fn modules(&self) -> impl Iterator<Item = &str> {
        self.tokens.windows(2).filter_map(|pair| match pair {
            [first, second] if first.is("mod") => second.name(),
            _ => None,
        })
    }

    fn arrows(&self, shown: &BTreeMap<String, Vec<String>>) -> Vec<Arrow> {
        let mut found = Vec::new();
        let is_start = |name: &str| matches!(name, "crate" | "super" | "self");
        self.paths(is_start, |path, line| {
            let Some(to) = self.absolute(path).filter(|to| !to.is_empty()) else {
                return;
            };
            found.push(Arrow {
                from: self.module.clone(),
                to: shown.get(&to[0]).cloned().unwrap_or(to),
                place: format!("{}:{line}", self.path),
            });
        });
        found
    }

    /// A path from the root of the crate; `None` when it leads out of that.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, mut rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            _ => self.module[..self.module.len().checked_sub(1)?].to_vec(),
        };
        while let [first, others @ ..] = rest
            && first == "super"
        {
            base.pop()?;
            rest = others;
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

/// Takes out what is behind `#[cfg(test)]`. Returns the rest, and the modules in files of their own
/// that were declared there.
fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let opens = token.is_other('#') && tokens.peek().is_some_and(|next| next.is_other('['));
        if !opens {
            kept.push(token);
            continue;
        }
        let attribute: Vec<Token> = take_group(&mut tokens);
        if !is_of_tests(&attribute) {
            kept.push(token);
            kept.extend(attribute);
            continue;
        }
        let item = take_item(&mut tokens);
        let is_file = item.last().is_some_and(|last| last.is_other(';'));
        if let (true, Some(at)) = (is_file, item.iter().position(|token| token.is("mod"))) {
            modules.extend(item.get(at + 1).and_then(Token::name).map(str::to_owned));
        }
    }
    (kept, modules)
}

/// Whether an attribute is `cfg` with `test` in it, but for `not(test)`.
fn is_of_tests(attribute: &[Token]) -> bool {
    let has = |name: &str| attribute.iter().any(|token| token.is(name));
    has("cfg") && has("test") && !has("not")
}

/// The tokens from a bracket to the one that closes it.
fn take_group(tokens: &mut impl Iterator<Item = Token>) -> Vec<Token> {
    let (mut group, mut depth) = (Vec::new(), 0_usize);
    for token in tokens {
        depth = token.depth_behind(depth);
        group.push(token);
        if depth == 0 {
            break;
        }
    }
    group
}

/// The tokens of an item or a statement: up to its semicolon, or to the end of its body.
fn take_item(tokens: &mut impl Iterator<Item = Token>) -> Vec<Token> {
    let (mut item, mut depth) = (Vec::new(), 0_usize);
    for token in tokens {
        depth = token.depth_behind(depth);
        let ends = depth == 0 && (token.is_other(';') || token.is_other('}'));
        item.push(token);
        if ends {
            break;
        }
    }
    item
}

impl Token {
    fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    fn is(&self, expected: &str) -> bool {
        self.name() == Some(expected)
    }

    fn is_other(&self, expected: char) -> bool {
        matches!(self.kind, Kind::Other(found) if found == expected)
    }

    /// How many brackets are open behind it.
    fn depth_behind(&self, depth: usize) -> usize {
        match self.kind {
            Kind::Other('(' | '[' | '{') => depth + 1,
            Kind::Other(')' | ']' | '}') => depth.saturating_sub(1),
            _ => depth,
        }
    }
}

/// A circle of arrows, if there is one: names, each of which leads to the next, and the last to the
/// first.
pub fn circle<'a>(arrows: &[(&'a str, &'a str)]) -> Option<Vec<&'a str>> {
    let mut others: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        others.entry(from).or_default().insert(to);
    }
    let mut done = BTreeSet::new();
    let starts: Vec<&str> = others.keys().copied().collect();
    starts
        .into_iter()
        .find_map(|start| circle_from(start, &others, &mut Vec::new(), &mut done))
}

fn circle_from<'a>(
    from: &'a str,
    others: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    way: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(at) = way.iter().position(|known| *known == from) {
        return Some(way[at..].to_vec());
    }
    if done.contains(from) {
        return None;
    }
    way.push(from);
    let next = others.get(from).into_iter().flatten();
    let found = next
        .copied()
        .find_map(|to| circle_from(to, others, way, done));
    way.pop();
    done.insert(from);
    found
}
