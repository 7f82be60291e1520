//! The pages for users and developers: their length, their words, and links that lead somewhere.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use kiln_platform::file;

/// Pages beside the source, by their paths from the root of the repository.
const ROOT_PAGES: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// The pages that list others by the question that they answer.
const INDEXES: [&str; 2] = ["docs/README.md", "docs/protocols/README.md"];

const LINES_MAX: usize = 300;
const COLUMNS_MAX: usize = 200;

/// Words that stand where a sentence should name its actor.
const ACTORLESS: [&str; 4] = ["whoever", "somebody", "nobody", "everybody"];

struct Page {
    /// From the root of the repository, with slashes.
    path: String,
    text: String,
}

impl Page {
    /// Numbered lines outside of code blocks.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_code = false;
        (1..).zip(self.text.lines()).filter(move |(_, line)| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
    }

    /// The anchors of the headings, as GitHub makes them.
    fn anchors(&self) -> BTreeSet<String> {
        self.prose()
            .filter(|(_, line)| line.starts_with('#'))
            .map(|(_, line)| anchor(line.trim_start_matches('#').trim()))
            .collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<Page> {
    let mut paths: Vec<String> = ROOT_PAGES.map(str::to_owned).into();
    for directory in ["docs", "docs/protocols"] {
        for path in file::list(&root().join(directory)).expect(directory) {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.expect("a name in UTF-8");
            if name.ends_with(".md") {
                paths.push(format!("{directory}/{name}"));
            }
        }
    }
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: String) -> Page {
    let text = file::read_to_string(&root().join(&path)).expect(&path);
    Page { path, text }
}

fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        })
        .collect()
}

/// The targets of a line's links and pictures, without those to other sites.
fn links(line: &str) -> Vec<&str> {
    // Every second part is code.
    let texts = line.split('`').step_by(2);
    let ends = texts.flat_map(|text| text.split("](").skip(1));
    let targets = ends.filter_map(|end| end.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://")).collect()
}

/// The path from the root of what a page's link names: the page itself if it names an anchor alone.
fn target(page: &str, link: &str) -> String {
    if link.is_empty() {
        return page.to_owned();
    }
    let directory = Path::new(page).parent().expect("the page is a file");
    let mut parts: Vec<&str> = Vec::new();
    let path = directory.join(link);
    for component in path.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_str().expect("a path in UTF-8")),
            _ => {}
        }
    }
    parts.join("/")
}

#[test]
fn pages_are_short_and_so_are_their_lines() {
    let mut wrong = Vec::new();
    for page in pages() {
        let lines = page.text.lines().count();
        if page.path.starts_with("docs/") && lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines", page.path));
        }
        for (number, line) in (1..).zip(page.text.lines()) {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                wrong.push(format!("{}:{number}: {columns} columns", page.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_name_their_actors() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (number, line) in (1..).zip(page.text.lines()) {
            let lower = line.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric());
            if let Some(word) = words.find(|word| ACTORLESS.contains(word)) {
                wrong.push(format!("{}:{number}: {word}", page.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut links_seen = 0;
    for page in &pages {
        for (number, line) in page.prose() {
            for link in links(line) {
                links_seen += 1;
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let target = target(&page.path, file);
                let is_there = root().join(&target).exists();
                if !is_there || !(heading.is_empty() || has_anchor(target, heading)) {
                    wrong.push(format!("{}:{number}: {link}", page.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links_seen > 100, "links were lost: {links_seen}");
}

fn has_anchor(path: String, heading: &str) -> bool {
    read(path).anchors().contains(heading)
}

#[test]
fn every_page_is_linked_from_an_index() {
    let pages = pages();
    let mut listed = BTreeSet::new();
    for page in &pages {
        if INDEXES.contains(&page.path.as_str()) {
            for (_, line) in page.prose() {
                for link in links(line) {
                    let file = link.split_once('#').map_or(link, |(file, _)| file);
                    listed.insert(target(&page.path, file));
                }
            }
        }
    }
    let missing: Vec<&str> = pages
        .iter()
        .map(|page| page.path.as_str())
        .filter(|path| path.starts_with("docs/") && !INDEXES.contains(path))
        .filter(|path| !listed.contains(*path))
        .collect();
    assert!(missing.is_empty(), "linked from no index: {missing:?}");
}
