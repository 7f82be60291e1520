//! The door's guard: no other crate of the workspace names an atomic, a lock, a thread, a clock, a
//! random source, a file or a socket of the standard library, or depends on a crate that would hand
//! it one.
//!
//! What passes by this crate would also pass by its backend for virtual cores: a thread that the
//! schedule does not know, a clock that is not virtual, an order of events that a seed does not
//! reproduce. Tests, benchmarks and examples count as well.

mod complaints;
mod manifest;
mod paths;
mod sources;

use kiln_platform::file;

use complaints::complain;
use paths::{Kind, read_paths, tokens};

/// A part of the standard library and what to use in its place.
struct Closed {
    /// The path after `std`, `core` or `alloc`.
    path: &'static [&'static str],
    instead: &'static str,
    /// Whether importing the module around it is refused too, because the item could then be named
    /// without its path.
    with_module: bool,
}

const fn closed(path: &'static [&'static str], instead: &'static str) -> Closed {
    Closed {
        path,
        instead,
        with_module: path.len() > 1,
    }
}

const CLOSED: [Closed; 12] = [
    closed(&["sync", "atomic"], "kiln_platform::atomic"),
    closed(&["sync"], "kiln_platform::sync"),
    closed(&["thread"], "kiln_platform::thread"),
    closed(&["time", "Instant"], "kiln_platform::time"),
    closed(&["time", "SystemTime"], "kiln_platform::time"),
    closed(&["time", "UNIX_EPOCH"], "kiln_platform::time"),
    closed(&["hint", "spin_loop"], "kiln_platform::spin"),
    closed(&["fs"], "kiln_platform::file or kiln_platform::disk"),
    closed(&["net"], "kiln_platform::net"),
    closed(&["os", "unix", "net"], "kiln_platform::net"),
    Closed {
        path: &["hash", "RandomState"],
        instead: "kiln_platform::random",
        with_module: false,
    },
    Closed {
        path: &["collections", "hash_map", "RandomState"],
        instead: "kiln_platform::random",
        with_module: false,
    },
];

/// Crates that bring atomics, locks, threads, clocks, randomness or sockets of their own.
const CLOSED_CRATES: [&str; 30] = [
    "async-io",
    "async-std",
    "chrono",
    "corosensei",
    "crossbeam",
    "crossbeam-channel",
    "crossbeam-epoch",
    "crossbeam-utils",
    "fastrand",
    "getrandom",
    "libc",
    "mio",
    "nix",
    "once_cell",
    "oorandom",
    "parking_lot",
    "polling",
    "portable-atomic",
    "quanta",
    "rand",
    "rand_chacha",
    "rand_core",
    "rand_distr",
    "rayon",
    "rustix",
    "smol",
    "socket2",
    "spin",
    "time",
    "tokio",
];

#[test]
fn no_other_crate_goes_past_the_platform() {
    let mut complaints = Vec::new();
    for directory in sources::crates() {
        if directory
            .file_name()
            .is_some_and(|name| name == "kiln-platform")
        {
            continue;
        }
        let manifest = directory.join("Cargo.toml");
        let text = file::read_to_string(&manifest).expect("every crate has a manifest");
        complain(&mut complaints, &manifest, closed_dependencies(&text));
        for (path, text) in sources::rust_sources(&directory) {
            complain(&mut complaints, &path, violations(&text));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The closed crates that a manifest depends on, with their lines.
fn closed_dependencies(text: &str) -> Vec<(usize, String)> {
    let found = manifest::dependencies(text).into_iter();
    let closed = found.filter(|(_, _, name)| CLOSED_CRATES.contains(&name.as_str()));
    closed
        .map(|(line, _, name)| (line, format!("depends on {name}; use kiln_platform")))
        .collect()
}

/// The lines of a Rust source that name something closed, and what to use.
fn violations(source: &str) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut at = 0;
    // `as` renames in imports; elsewhere it casts, as in `core as u8`.
    let mut imports = false;
    while at < tokens.len() {
        match &tokens[at].kind {
            Kind::Name(name) if name == "use" || name == "extern" => imports = true,
            Kind::Other(';') => imports = false,
            _ => {}
        }
        let starts_path = matches!(&tokens[at].kind, Kind::Name(name) if is_standard(name));
        // `other::std` is another crate's module unless only `::` stands before it.
        let continues_path = at >= 2
            && matches!(tokens[at - 1].kind, Kind::PathSeparator)
            && matches!(&tokens[at - 2].kind, Kind::Name(name) if !is_keyword(name));
        if starts_path && !continues_path {
            at = read_paths(&tokens, at, &[], &mut |segments, line, is_renamed| {
                let path = NamedPath {
                    segments,
                    is_renamed: is_renamed && imports,
                };
                if let Some(what) = judge(&path) {
                    found.push((line, what));
                }
            });
        } else {
            at += 1;
        }
    }
    found
}

fn is_standard(name: &str) -> bool {
    matches!(name, "std" | "core" | "alloc")
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "use" | "return" | "in" | "as" | "dyn" | "impl" | "mut" | "match" | "if" | "else" | "break"
    )
}

/// One path that a source names, its groups resolved.
struct NamedPath<'a> {
    segments: &'a [String],
    is_renamed: bool,
}

/// Why `path` is refused, if it is.
fn judge(path: &NamedPath<'_>) -> Option<String> {
    let shown = path.segments.join("::");
    let inner: Vec<&str> = path.segments.iter().skip(1).map(String::as_str).collect();
    match inner.as_slice() {
        [] if path.is_renamed => {
            return Some(format!("renames {shown}, which hides what is named"));
        }
        ["*"] => return Some(format!("imports {shown}, which hides what is named")),
        _ => {}
    }
    CLOSED.iter().find_map(|closed| {
        let module = &closed.path[..closed.path.len() - 1];
        let names_item = inner.starts_with(closed.path);
        let names_module = closed.with_module
            && inner.starts_with(module)
            && (inner.len() == module.len() || inner[module.len()] == "*");
        (names_item || names_module)
            .then(|| format!("names {shown}; use {} or import less", closed.instead))
    })
}

#[test]
fn every_spelling_is_caught() {
    for source in [
        "use std::sync::Mutex;",
        "use std::sync::atomic::{AtomicU64, Ordering};",
        "use core::sync::atomic::AtomicBool;",
        "use alloc::sync::Arc;",
        "use ::std::sync::Arc;",
        "use std::sync;",
        "use std::sync as s;",
        "use std::sync::*;",
        "use std::{collections::HashMap, sync::{Arc, Mutex}};",
        "use std::{fmt, thread};",
        "use std::{io::{self, Read}, fs::{self, File}};",
        "use {std::fmt, std::fs};",
        "pub use std::thread::spawn;",
        "use std::thread::{self};",
        "let handle = std::thread::spawn(|| ());",
        "let x: std::sync::Arc<u8> = make();",
        "fn f() -> std :: sync :: OnceLock<u8> { todo() }",
        "let t = std::time::Instant::now();",
        "use std::time::{Duration, Instant};",
        "use std::time::SystemTime;",
        "use std::time;",
        "use std::time::{self, Duration};",
        "use std::time::*;",
        "let text = std::fs::read_to_string(path);",
        "std::hint::spin_loop();",
        "use core::hint;",
        "use std::hash::RandomState;",
        "use std::collections::hash_map::{Entry, RandomState};",
        "let stream = std::net::TcpStream::connect(address);",
        "use std::net::{IpAddr, SocketAddr};",
        "use core::net::SocketAddr;",
        "use std::os::unix::net::UnixStream;",
        "use std::os::unix::{fs::MetadataExt, net};",
        "use std::os::unix;",
        "use std as standard;",
        "use std::{self as standard};",
        "extern crate std as standard;",
        "use std::*;",
        "use std::{fmt::Debug,\n    // a comment between\n    sync::Arc};",
        "let c = '\\''; use std::fs;",
        "fn f<'a>(x: &'a u8) { std::fs::read(x) }",
        "let s = r#\"quote \" inside\"#; use std::fs;",
        "let s = \"escaped \\\" quote\"; use std::fs;",
        "use r#std::fs;",
        "return ::std::thread::yield_now();",
    ] {
        assert!(!violations(source).is_empty(), "not caught: {source}");
    }
}

#[test]
fn what_is_open_passes() {
    for source in [
        "use kiln_platform::{atomic::AtomicU64, sync::Mutex, thread, time};",
        "use kiln_platform::sync::Arc; thread::spawn(\"x\", || ());",
        "use std::collections::{BTreeMap, HashMap};",
        "use std::time::Duration;",
        "use std::{fmt, io::{self, Write}, path::Path, process::Command};",
        "// use std::sync::Mutex;",
        "/// `std::thread` is elsewhere\nfn f() {}",
        "/* std::fs /* nested */ std::sync */ fn f() {}",
        "let message = \"std::sync is closed\";",
        "let message = r#\"use std::fs; \"quoted\" \"#;",
        "let message = b\"std::thread\"; let c = '\"'; let d = 'x';",
        "use std::hint::black_box;",
        "use std::os::unix::fs::PermissionsExt;",
        "use kiln_platform::net::{Listener, SocketAddr};",
        "let sync = 1; let thread = sync; fs::read(x);",
        "use crate::std::sync::Mutex;",
        "mod fs; use self::fs::File;",
        "use std::fmt; let number = core as u8 + f(core as usize);",
        "'outer: loop { break 'outer; }",
    ] {
        assert_eq!(violations(source), [], "caught by mistake: {source}");
    }
}

#[test]
fn the_line_is_the_one_that_names_it() {
    let source = "//! docs\n\nuse std::{\n    fmt,\n    sync::{\n        Arc,\n    },\n};\n/*\n*/\nfn f() {\n    std::fs::read(\"a\nb\");\n    std::thread::park();\n}\n";
    let lines: Vec<usize> = violations(source)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [6, 12, 14]);
}

#[test]
fn closed_crates_are_found_in_manifests() {
    let manifest = "[package]\nname = \"rand\"\n\n[dependencies]\nkiln-platform.workspace = true\n\
                    # rand = \"1\"\nlibc.workspace = true\nfastrand = \"2\"\n\
                    [dev-dependencies]\ndice = { package = \"rand\", version = \"1\" }\n\
                    [target.'cfg(unix)'.dependencies.crossbeam-epoch]\nversion = \"1\"\n\
                    [features]\nrayon = []\n";
    let lines: Vec<usize> = closed_dependencies(manifest)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [7, 8, 10, 11]);
}
