//! The layers of the workspace: a crate uses those below it, protocols do not know each other, and
//! the modules at the top of a crate form no circle, nor do those at the top of its large folders.
//!
//! A circle of modules has to be read as one. Where a lower module seems to need a higher one, a
//! type stands in the wrong place, or the lower one has a trait of its own that the higher one
//! implements. The lists of exceptions only become shorter: an exception that nothing needs any
//! more is a complaint as well.

mod manifest;
mod modules;
mod paths;
mod sources;

use std::collections::BTreeSet;
use std::path::Path;

use kiln_platform::file;

use modules::{Arrow, Source, arrows, arrows_within, circle};

/// The crates from the bottom to the top. A crate uses crates of the lines before its own.
const LAYERS: [&[&str]; 10] = [
    &["kiln-machine"],
    &["kiln-platform"],
    &["kiln-figures", "kiln-history", "kiln-storage"],
    &[
        "kiln-checker",
        "kiln-durability",
        "kiln-procedure",
        "kiln-wire",
    ],
    &["kiln-protocols", "kiln-workloads"],
    &["kiln-engine"],
    &["kiln-sql"],
    &["kiln-lab", "kiln-server"],
    &["kiln-sim"],
    &["kiln"],
];

/// Folders of crates whose modules form no circle.
const FOLDERS: [(&str, &str); 8] = [
    ("kiln-engine", "catalog"),
    ("kiln-engine", "change"),
    ("kiln-engine", "kernel"),
    ("kiln-procedure", "optimise"),
    ("kiln-procedure", "verify"),
    ("kiln-sql", "catalog"),
    ("kiln-sql", "compile"),
    ("kiln-sql", "database"),
];

/// A module that names another one although it should not, and why it does.
struct Exception<'a> {
    /// A crate, or a folder of one as `crate/folder`.
    of: &'a str,
    from: &'a str,
    to: &'a str,
    because: &'a str,
}

impl<'a> Exception<'a> {
    /// From a text as `crate: module names other: reason`.
    fn read(text: &'a str) -> Exception<'a> {
        let parts = text.split_once(": ").and_then(|(of, rest)| {
            let (way, because) = rest.split_once(": ")?;
            let (from, to) = way.split_once(" names ")?;
            Some(Exception {
                of,
                from,
                to,
                because,
            })
        });
        parts.expect("an exception says of what it is, and why")
    }
}

/// Modules that close circles of their crate or folder.
const CIRCLES: [&str; 18] = [
    "kiln-sql: catalog names compile: to show an expression it binds it, and programs ask for that",
    "kiln-sql/database: call names prepared: a call is a plan of a statement, and prepares others",
    "kiln-sql/database: call names stepped: a routine that is called may run in steps",
    "kiln-sql/database: copy names prepared: COPY is a plan of a statement, and prepares others",
    "kiln-sql/database: portal names prepared: a portal runs a statement, and EXECUTE makes one",
    "kiln-sql/database: prepared names explain: EXPLAIN is a statement over a statement",
    "kiln-sql/database: prepared names stepped: a plan says what runs in steps",
    "kiln-sql/database: session names stepped: a body in steps runs statements of its session",
    "kiln-engine/catalog: comments names objects: comments are of objects, and stand in their list",
    "kiln-engine/catalog: current names objects: the handle of the list, which the list gives out",
    "kiln-engine/catalog: numbers names objects: numbers are of objects, and stand in their list",
    "kiln-engine/catalog: procedure names lookups: what a procedure has looked up is a part of it",
    "kiln-engine/catalog: procedure names objects: a procedure is compiled for a catalog, which has it",
    "kiln-engine/catalog: records names objects: programs of records are made for a catalog",
    "kiln-engine/change: catalog_change names temporary: a change of temporary objects is one",
    "kiln-engine/change: catalog_change names within_block: a change within a block is one",
    "kiln-engine/kernel: inner names loss: a lost log stops the kernel, which holds what was lost",
    "kiln-engine/kernel: inner names slot_pool: slots are given out by the kernel, and lead to it",
];

/// Folders beside protocols that are none: what several of them are made of. A base names no
/// protocol, and of the bases only those before it.
const BASES: [&str; 2] = ["schedule: in_flight", "schedule: owned"];

/// Protocols that name another one's folder; `*` is any.
const NEIGHBOURS: [&str; 1] = ["schedule: ranges names vll: the same, over ranges of keys"];

#[test]
fn crates_use_those_below_them() {
    let manifests = sources::crates().into_iter().map(|directory| {
        let text = file::read_to_string(&directory.join("Cargo.toml"));
        (
            name_of(&directory),
            text.expect("every crate has a manifest"),
        )
    });
    let complaints = upward(&LAYERS, &manifests.collect::<Vec<_>>());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn modules_form_no_circle() {
    let mut complaints = Vec::new();
    for directory in sources::crates() {
        let name = name_of(&directory);
        let sources = sources_of(&directory);
        complaints.extend(circles(&name, &arrows(&sources), &CIRCLES));
        for (_, folder) in FOLDERS.iter().filter(|(of, _)| *of == name) {
            let arrows = arrows_within(&sources, folder);
            assert!(!arrows.is_empty(), "{name} has no folder {folder}");
            complaints.extend(circles(&format!("{name}/{folder}"), &arrows, &CIRCLES));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn protocols_do_not_know_each_other() {
    let directories = sources::crates();
    let mut directories = directories.iter();
    let protocols = directories.find(|it| it.ends_with("kiln-protocols"));
    let protocols = sources_of(protocols.expect("there is the crate"));
    let complaints = neighbours(&protocols, &BASES, &NEIGHBOURS);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn name_of(directory: &Path) -> String {
    let name = directory
        .file_name()
        .expect("a crate's directory has a name");
    name.to_string_lossy().into_owned()
}

/// The sources of a crate but for its tests, benchmarks and examples.
fn sources_of(directory: &Path) -> Vec<Source> {
    let source = directory.join("src");
    let within = |(path, text): (std::path::PathBuf, String)| {
        let path = path.strip_prefix(&source).expect("it was found there");
        (path.to_string_lossy().into_owned(), text)
    };
    let found = sources::rust_sources(&source).into_iter();
    found.map(within).collect()
}

/// The dependencies on crates that are not in a lower layer, and the crates that are in none.
fn upward(layers: &[&[&str]], manifests: &[(String, String)]) -> Vec<String> {
    let layer_of = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut complaints = Vec::new();
    for (name, text) in manifests {
        let Some(layer) = layer_of(name) else {
            complaints.push(format!("{name} is in no layer"));
            continue;
        };
        for (line, section, other) in manifest::dependencies(text) {
            // Cargo allows tests to use what depends on their crate.
            let is_of_tests = section.contains("dev-dependencies");
            if !is_of_tests && layer_of(&other).is_some_and(|other| other >= layer) {
                complaints.push(format!(
                    "crates/{name}/Cargo.toml:{line}: {other} is not below {name}"
                ));
            }
        }
    }
    complaints
}

/// Circles of the modules of a crate or folder, and exceptions without need.
fn circles(name: &str, arrows: &[Arrow], exceptions: &[&str]) -> Vec<String> {
    let of_crate = name.split('/').next().unwrap_or(name);
    let modules: BTreeSet<&str> = arrows.iter().map(|arrow| arrow.from[0].as_str()).collect();
    let between = arrows
        .iter()
        .filter(|Arrow { from, to, .. }| from[0] != to[0] && modules.contains(to[0].as_str()));
    let between: Vec<&Arrow> = between.collect();
    let exceptions = exceptions.iter().map(|text| Exception::read(text));
    let exceptions: Vec<Exception<'_>> = exceptions.filter(|it| it.of == name).collect();
    let is_excepted = |arrow: &Arrow| {
        let mut exceptions = exceptions.iter();
        exceptions.any(|it| it.from == arrow.from[0] && it.to == arrow.to[0])
    };
    let kept = between.iter().filter(|arrow| !is_excepted(arrow));
    let kept: Vec<(&str, &str)> = kept
        .map(|it| (it.from[0].as_str(), it.to[0].as_str()))
        .collect();
    let mut complaints = Vec::new();
    if let Some(circle) = circle(&kept) {
        complaints.push(format!("modules of {name} form a circle:"));
        for (at, from) in circle.iter().enumerate() {
            let to = circle[(at + 1) % circle.len()];
            let mut between = between.iter();
            let arrow = between.find(|it| it.from[0] == *from && it.to[0] == to);
            let arrow = arrow.expect("the circle is made of arrows");
            let (named, place) = (arrow.to.join("::"), &arrow.place);
            complaints.push(format!(
                "  crates/{of_crate}/src/{place}: {from} names {named}"
            ));
        }
    }
    for exception in &exceptions {
        let way = (exception.from, exception.to);
        let with_it: Vec<(&str, &str)> = kept.iter().copied().chain([way]).collect();
        let is_there = between
            .iter()
            .any(|it| (it.from[0].as_str(), it.to[0].as_str()) == way);
        if !is_there || complaints.is_empty() && circle(&with_it).is_none() {
            let Exception {
                from, to, because, ..
            } = exception;
            complaints.push(format!(
                "{name} needs no exception any more for {from} that names {to} ({because})"
            ));
        }
    }
    complaints
}

/// The folders of `kiln-protocols` in which each folder is of a protocol.
const OF_PROTOCOLS: [&str; 2] = ["access", "schedule"];

/// Protocols that name others, what they share that names protocols, and exceptions without need.
fn neighbours(sources: &[Source], bases: &[&str], exceptions: &[&str]) -> Vec<String> {
    let exceptions = exceptions.iter().map(|text| Exception::read(text));
    let exceptions: Vec<Exception<'_>> = exceptions.collect();
    let is_folder = |module: &[String]| {
        let [kind, name, ..] = module else {
            return false;
        };
        let start = format!("{kind}/{name}/");
        OF_PROTOCOLS.contains(&kind.as_str()) && sources.iter().any(|it| it.0.starts_with(&start))
    };
    let base_of = |module: &[String]| {
        let name = module.get(..2).map(|module| module.join(": "));
        bases.iter().position(|base| name.as_deref() == Some(*base))
    };
    let (mut complaints, mut used) = (Vec::new(), BTreeSet::new());
    let mut stood_on = BTreeSet::new();
    for Arrow { from, to, place } in arrows(sources) {
        let is_between = is_folder(&from) && is_folder(&to) && from[0] == to[0] && from[1] != to[1];
        let base = base_of(&to).filter(|base| base_of(&from).is_none_or(|from| from > *base));
        if is_between && let Some(base) = base {
            stood_on.insert(base);
        } else if is_between {
            let mut numbered = exceptions.iter().enumerate();
            let exception = numbered.find(|(_, it)| {
                it.of == from[0] && it.to == to[1] && (it.from == from[1] || it.from == "*")
            });
            match exception {
                Some((number, _)) => {
                    used.insert(number);
                }
                None => complaints.push(format!("{place}: {} names {}::{}", from[1], to[0], to[1])),
            }
        }
        if from[0] == "shared" && OF_PROTOCOLS.contains(&to[0].as_str()) {
            complaints.push(format!("{place}: what is shared names {}", to.join("::")));
        }
    }
    for (number, base) in bases.iter().enumerate() {
        if !stood_on.contains(&number) {
            complaints.push(format!("no protocol stands on {base}"));
        }
    }
    for (number, exception) in exceptions.iter().enumerate() {
        if !used.contains(&number) {
            let Exception {
                from, to, because, ..
            } = exception;
            complaints.push(format!(
                "no exception is needed for {from} that names {to} ({because})"
            ));
        }
    }
    complaints
}

/// A made-up crate.
fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    let files = files.iter();
    files
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn a_crate_that_uses_one_above_it_is_found() {
    let layers: [&[&str]; 3] = [&["low"], &["middle", "beside"], &["high"]];
    let manifest = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let found = upward(
        &layers,
        &[
            manifest(
                "low",
                "[dependencies]\nother.workspace = true\n[dev-dependencies]\nhigh = \"1\"\n",
            ),
            manifest(
                "middle",
                "[package]\n\n[dependencies]\nlow = \"1\"\nbeside.workspace = true\n",
            ),
            manifest("high", "[target.'cfg(x)'.dependencies]\nmiddle = \"1\"\n"),
            manifest("beside", "[dependencies]\ndoor = { package = \"high\" }\n"),
            manifest("new", ""),
        ],
    );
    let expected = [
        "crates/middle/Cargo.toml:5: beside is not below middle",
        "crates/beside/Cargo.toml:2: high is not below beside",
        "new is in no layer",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_circle_is_found_with_its_places() {
    let crate_of = |low: &str| {
        made_up(&[
            (
                "lib.rs",
                "mod door;\nmod kernel;\nmod ground;\npub use door::{Door, open};",
            ),
            (
                "door.rs",
                "use crate::kernel::{self, Gate};\nfn open() { crate::ground::f() }",
            ),
            (
                "kernel/mod.rs",
                "mod gate;\npub use gate::Gate;\nuse super::ground;",
            ),
            ("kernel/gate.rs", low),
            (
                "ground.rs",
                "// crate::door::Door\nfn f() { \"crate::door\"; }",
            ),
        ])
    };
    let without = crate_of("use super::Gate; use crate::ground::f;");
    assert_eq!(
        circles("made-up", &arrows(&without), &[]),
        Vec::<String>::new()
    );
    for low in [
        "fn f() {}\nuse crate::door::Door;",
        "fn f() {}\nuse crate::Door;",
        "fn f() {}\nuse super::super::door;",
        "fn f() {}\nfn g() { crate::open() }",
        "fn f() {}\nuse crate::{ground::f, door::{Door as Other}};",
        "fn f() {}\n#[cfg(not(test))] use crate::door;",
    ] {
        let found = circles("made-up", &arrows(&crate_of(low)), &[]);
        assert_eq!(found.len(), 3, "{low}: {found:?}");
        assert!(
            found[1].starts_with("  crates/made-up/src/door.rs:1: door names kernel"),
            "{found:?}"
        );
        assert!(
            found[2].starts_with("  crates/made-up/src/kernel/gate.rs:2: kernel names door"),
            "{found:?}"
        );
    }
}

#[test]
fn tests_may_name_what_they_like() {
    let sources = made_up(&[
        (
            "lib.rs",
            "mod door;\nmod kernel;\n#[cfg(test)]\nmod testing;",
        ),
        ("door.rs", "use crate::kernel::Gate;"),
        (
            "kernel/mod.rs",
            "#[cfg(test)]\nmod tests;\n#[cfg(all(test, unix))]\nmod more { use crate::door; }\n\
             #[cfg(test)]\nuse crate::door::Door;\nfn f() { #[cfg(test)] crate::door::g(&[1]); }",
        ),
        ("kernel/tests.rs", "use crate::door::Door;"),
        ("testing.rs", "use crate::door; use crate::kernel;"),
    ]);
    assert_eq!(
        circles("made-up", &arrows(&sources), &[]),
        Vec::<String>::new()
    );
}

const MADE_UP: &str = "made-up: kernel names door: made up";

#[test]
fn an_exception_is_needed_or_complained_of() {
    let door = ("door.rs", "use crate::kernel::Gate;");
    let tied = made_up(&[door, ("kernel.rs", "use crate::door::Door;")]);
    assert_eq!(
        circles("made-up", &arrows(&tied), &[MADE_UP]),
        Vec::<String>::new()
    );
    assert_eq!(circles("other", &arrows(&tied), &[MADE_UP]).len(), 3);
    let expected = ["made-up needs no exception any more for kernel that names door (made up)"];
    let untied = made_up(&[door, ("kernel.rs", "")]);
    assert_eq!(circles("made-up", &arrows(&untied), &[MADE_UP]), expected);
    let one_way = made_up(&[("door.rs", ""), ("kernel.rs", "use crate::door::Door;")]);
    assert_eq!(circles("made-up", &arrows(&one_way), &[MADE_UP]), expected);
}

#[test]
fn a_protocol_that_names_another_one_is_found() {
    let sources = made_up(&[
        (
            "access/one/mod.rs",
            "use crate::shared::Locks;\nuse super::two::f;",
        ),
        (
            "access/two/mod.rs",
            "use crate::access::helpers::f; use crate::schedule::three::Three;",
        ),
        ("access/helpers.rs", "use super::one::One;"),
        ("schedule/three/mod.rs", "use crate::access::one::One;"),
        ("schedule/four/mod.rs", "use crate::schedule::three::Three;"),
        ("shared/mod.rs", "\nuse crate::access::one::One;"),
        ("registry.rs", "use crate::access::{one, two};"),
    ]);
    let excepted = "schedule: * names three: made up";
    let expected = [
        "access/one/mod.rs:2: one names access::two",
        "shared/mod.rs:2: what is shared names access::one::One",
    ];
    assert_eq!(neighbours(&sources, &[], &[excepted]), expected);
    let unneeded = "access: two names one: made up";
    let found = neighbours(&sources, &[], &[unneeded]);
    assert!(
        found
            .iter()
            .any(|it| it.starts_with("no exception is needed")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|it| it.contains("four names schedule::three")),
        "{found:?}"
    );
}

#[test]
fn a_base_names_no_protocol() {
    let crate_of = |base: &str, higher: &str| {
        made_up(&[
            ("schedule/one/mod.rs", "use super::higher::Higher;"),
            ("schedule/base/mod.rs", base),
            ("schedule/higher/mod.rs", higher),
        ])
    };
    let bases = ["schedule: base", "schedule: higher"];
    let sources = crate_of("use crate::shared::Locks;", "use super::base::Base;");
    assert_eq!(neighbours(&sources, &bases, &[]), Vec::<String>::new());
    for named in ["one", "higher"] {
        let low = format!("use super::{named}::f;");
        let found = neighbours(&crate_of(&low, "use super::base::Base;"), &bases, &[]);
        let expected = format!("schedule/base/mod.rs:1: base names schedule::{named}");
        assert!(
            found.iter().any(|it| it.starts_with(&expected)),
            "{found:?}"
        );
    }
    let alone = made_up(&[("schedule/base/mod.rs", ""), ("schedule/one/mod.rs", "")]);
    let expected = ["no protocol stands on schedule: base"];
    assert_eq!(neighbours(&alone, &bases[..1], &[]), expected);
}

#[test]
fn a_circle_within_a_folder_is_found() {
    let crate_of = |low: &str| {
        made_up(&[
            ("lib.rs", "mod hall;\nmod door;"),
            ("door.rs", "use crate::hall::Gate;"),
            (
                "hall/mod.rs",
                "mod gate;\nmod wall;\npub use gate::{Gate, open};",
            ),
            ("hall/wall/mod.rs", "mod brick;\nuse crate::hall::Gate;"),
            ("hall/wall/brick.rs", "use super::super::{open, f};"),
            ("hall/gate.rs", low),
        ])
    };
    let within = |low: &str| {
        let arrows = arrows_within(&crate_of(low), "hall");
        circles(
            "made-up/hall",
            &arrows,
            &["made-up: gate names wall: made up"],
        )
    };
    assert_eq!(
        within("use super::f; use crate::door::Door;"),
        Vec::<String>::new()
    );
    for low in [
        "use super::wall::brick;",
        "fn f() { crate::hall::wall::g() }",
    ] {
        let expected = [
            "modules of made-up/hall form a circle:",
            "  crates/made-up/src/hall/gate.rs:1: gate names wall",
            "  crates/made-up/src/hall/wall/mod.rs:2: wall names gate::Gate",
        ];
        let found = within(low);
        assert_eq!(found[0], expected[0]);
        assert!(found[1].starts_with(expected[1]), "{found:?}");
        assert_eq!(found[2], expected[2]);
    }
}
