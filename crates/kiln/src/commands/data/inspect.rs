//! `kiln data inspect`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln::CatalogStatement;
use kiln_durability::format::entry::{self, Entry};
use kiln_durability::inspect::{FileSummary, LogSummary, read_checkpoint, read_log};
use kiln_durability::recovery::Groups;
use kiln_durability::{DataDirectory, FileName, Manifest, moment_text};
use kiln_engine::LoggedCall;
use kiln_storage::sequence::SequenceState;
use serde_json::{Value, json};

use super::catalog::{FollowedCatalog, table_names};
use super::status::checkpoint_json;
use super::{Bar, counted, grouped, readable, size, table};

/// The arguments of `kiln data inspect`.
#[derive(Args)]
#[command(
    about = "Show what is in the log and in the checkpoints",
    long_about = "Show what is in a data directory: its manifest, its checkpoints, and the segments of its log. No process may have \
        the database open.\n\n\
        What can be read of a damaged directory is shown, and then what is damaged; the exit code is 1.",
    after_help = "Examples:\n  \
        kiln data inspect shop\n  \
        kiln data inspect shop --checkpoint 7\n  \
        kiln data inspect shop --log --from-epoch 4000 --limit 20"
)]
pub struct Arguments {
    /// The data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Show each block of the log, and what is in it
    #[arg(long)]
    log: bool,
    /// Show at most so many groups of blocks
    #[arg(long, value_name = "N", requires = "log", default_value_t = 1_000)]
    limit: u64,
    /// Show groups of this log epoch and later ones
    #[arg(long, value_name = "EPOCH", requires = "log", default_value_t = 0)]
    from_epoch: u64,
    /// Show the files of this checkpoint
    #[arg(long, value_name = "N")]
    checkpoint: Option<u64>,
    /// Print JSON objects: one for each group with --log, and one for the directory
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let directory = DataDirectory::open_existing(&arguments.directory, "kiln data inspect");
    let directory = directory.map_err(readable)?;
    let files = match arguments.checkpoint {
        None => None,
        Some(number) => {
            let mut bar = Bar::new("Reading the checkpoint");
            let read = read_checkpoint(&directory, number, &mut |done, all| bar.advance(done, all));
            bar.clear();
            Some((number, read.map_err(readable)?))
        }
    };
    let log = inspect_log(arguments, &directory)?;
    let manifest = directory.manifest();
    let mut text = match arguments.json {
        true => as_json(&manifest, &log, files.as_ref().map(|(_, files)| &files[..])),
        false => as_text(&manifest, &log),
    };
    if let (Some((number, files)), false) = (&files, arguments.json) {
        text.push_str(&files_as_text(&directory, *number, files));
    }
    super::super::print(&text)?;
    let mut files = files.iter().flat_map(|(_, files)| files);
    let is_damaged = log.damage.is_some() || files.any(|file| file.damage.is_some());
    Ok(match is_damaged {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Reads the log, and prints its groups if that is asked for.
fn inspect_log(arguments: &Arguments, directory: &DataDirectory) -> Result<LogSummary, String> {
    let mut catalog = arguments.log.then(|| FollowedCatalog::of(directory));
    let mut bar = (!arguments.log).then(|| Bar::new("Reading the log"));
    let mut left = arguments.limit;
    let mut failure = None;
    let mut watch = |done, all| {
        if let Some(bar) = &mut bar {
            bar.advance(done, all);
        }
    };
    let log = read_log(directory, &mut watch, |groups| {
        let Some(catalog) = &mut catalog else {
            return Ok(());
        };
        let is_shown = left > 0 && groups.position().epoch >= arguments.from_epoch;
        left -= u64::from(is_shown);
        let shown = group(groups, catalog, arguments.json);
        if is_shown && failure.is_none() {
            failure = super::super::print(&shown).err();
        }
        Ok(())
    });
    if let Some(bar) = bar {
        bar.clear();
    }
    failure.map_or(Ok(log), Err)
}

/// A group as it is shown. The catalog follows it.
fn group(groups: &Groups, catalog: &mut FollowedCatalog, as_json: bool) -> String {
    let mut text = String::new();
    let mut blocks = Vec::new();
    for block in groups.blocks() {
        let header = &block.header;
        let (first, last) = header.epochs;
        blocks.push(json!({
            "number": header.number,
            "segment": block.segment,
            "offset": block.offset,
            "epochs": [first, last],
            "written": moment_text(header.written_us),
            "payload_bytes": block.payload_bytes,
            "durable_through": header.durable_through,
        }));
        let _ = writeln!(
            text,
            "block {}  segment {} at {}  log epochs {first} to {last}  {}  {}  durable through block {}",
            header.number,
            block.segment,
            block.offset,
            moment_text(header.written_us),
            size(block.payload_bytes as u64),
            header.durable_through
        );
    }
    let mut entries = Vec::new();
    for entry in groups.entries().into_iter().flatten() {
        let (words, value) = match &entry {
            Ok(entry) => described(entry, catalog),
            Err(_) => no_entry(),
        };
        let _ = writeln!(text, "  {words}");
        entries.push(value);
    }
    match as_json {
        true => format!("{}\n", json!({"blocks": blocks, "entries": entries})),
        false => text,
    }
}

fn no_entry() -> (String, Value) {
    ("something that is no entry".to_owned(), Value::Null)
}

/// An entry in words and as JSON, before the catalog follows it.
fn described(entry: &Entry<'_>, catalog: &mut FollowedCatalog) -> (String, Value) {
    let Entry::Block { epoch, parts } = entry else {
        let described = describe(entry, catalog);
        catalog.follow(entry);
        return described;
    };
    let parts = entry::parts(parts).map(|part| match part {
        Ok(part) => described(&part, catalog),
        Err(_) => no_entry(),
    });
    let (words, values): (Vec<String>, Vec<Value>) = parts.unzip();
    let words = words.join("\n             ");
    (
        format!("together   {epoch}  {words}"),
        json!({"kind": "block", "epoch": epoch, "entries": values}),
    )
}

/// As [`described`], of an entry that has no parts.
fn describe(entry: &Entry<'_>, catalog: &FollowedCatalog) -> (String, Value) {
    match entry {
        Entry::Commit { epoch, commit } => {
            let changes = catalog.changes(*epoch, commit);
            let words = match &changes {
                Some(changes) => {
                    let words = changes.iter().map(|(table, [inserts, updates, deletes])| {
                        let kinds = [
                            (inserts, "inserted"),
                            (updates, "updated"),
                            (deletes, "deleted"),
                        ];
                        let kinds = kinds.iter().filter(|(number, _)| **number > 0);
                        let kinds: Vec<String> = kinds
                            .map(|(number, kind)| format!("{} {kind}", grouped(**number)))
                            .collect();
                        format!("{table}: {}", kinds.join(", "))
                    });
                    words.collect::<Vec<_>>().join("; ")
                }
                None => size(commit.len() as u64),
            };
            let changes = changes.map(|changes| {
                let counts = |[inserted, updated, deleted]: [u64; 3]| {
                    json!({"inserted": inserted, "updated": updated, "deleted": deleted})
                };
                let changes = changes.into_iter();
                Value::Object(changes.map(|(table, it)| (table, counts(it))).collect())
            });
            (
                format!("commit     {epoch}  {words}"),
                json!({"kind": "commit", "epoch": epoch, "bytes": commit.len(), "changes": changes}),
            )
        }
        Entry::Statement { epoch, text } => {
            // Without what its effect depends on besides.
            let parsed = text.parse::<CatalogStatement>().ok();
            let text = parsed.as_ref().map_or(*text, |it| &it.source.text).trim();
            let words = text.replace('\n', "\n             ");
            (
                format!("statement  {epoch}  {words}"),
                json!({"kind": "statement", "epoch": epoch, "text": text}),
            )
        }
        Entry::Command {
            epoch,
            order,
            changes,
            call,
        } => {
            let mut logged = LoggedCall::default();
            let called = match logged.read(call) {
                Ok(()) => logged.to_string(),
                Err(_) => "something that is no call".to_owned(),
            };
            let made = counted(u64::from(*changes), "change");
            let words = format!("command    {epoch}  {called}: {made}");
            let entry = json!({"kind": "command", "epoch": epoch, "order": order, "call": called, "changes": changes});
            (words, entry)
        }
        Entry::Sequence { epoch, id, state } => {
            let name = catalog.sequence(*id);
            let words = name.clone().unwrap_or_else(|| format!("number {}", id.0));
            let SequenceState {
                version,
                value,
                is_called,
            } = *state;
            let given = if is_called { "up to" } else { "before" };
            (
                format!("sequence   {epoch}  {words}: values {given} {value}"),
                json!({"kind": "sequence", "epoch": epoch, "number": id.0, "sequence": name, "version": version, "value": value, "is_called": is_called}),
            )
        }
        Entry::Block { .. } => no_entry(),
        Entry::Outcome {
            epoch, key, answer, ..
        } => {
            let key = String::from_utf8_lossy(key).escape_debug().to_string();
            (
                format!(
                    "outcome    {epoch}  key {key}, {}",
                    size(answer.len() as u64)
                ),
                json!({"kind": "outcome", "epoch": epoch, "key": key, "bytes": answer.len()}),
            )
        }
    }
}

fn as_text(manifest: &Manifest, log: &LogSummary) -> String {
    let mut text = format!(
        "Database {}, created {}; its log begins with segment {}.\n",
        manifest.database,
        moment_text(manifest.created_us),
        manifest.first_segment
    );
    let words = |row: &[&str]| row.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    match manifest.checkpoints.is_empty() {
        true => text.push_str("\nNo checkpoints.\n"),
        false => text.push_str("\nCheckpoints:\n"),
    }
    let head = [
        "number",
        "rows",
        "files",
        "size",
        "log epochs",
        "segment",
        "catalog",
        "written",
    ];
    let mut rows = vec![words(&head)];
    rows.extend(manifest.checkpoints.iter().map(|it| {
        vec![
            it.number.to_string(),
            grouped(it.rows),
            it.files.len().to_string(),
            size(it.bytes()),
            format!("{} to {}", it.start_epoch, it.end_epoch),
            it.segment.to_string(),
            it.catalog.to_string(),
            moment_text(it.written_us),
        ]
    }));
    if rows.len() > 1 {
        text.push_str(&table(&rows));
    }
    let _ = writeln!(
        text,
        "\nLog: {} in {}, {}{}",
        counted(log.blocks(), "block"),
        counted(log.groups, "group"),
        size(log.bytes),
        if log.segments.is_empty() { "." } else { ":" }
    );
    let head = ["segment", "blocks", "log epochs", "used", "from", "to"];
    let mut rows = vec![words(&head)];
    rows.extend(log.segments.iter().map(|it| {
        vec![
            it.number.to_string(),
            format!("{} to {}", it.first.number, it.last.number),
            format!("{} to {}", it.first.epochs.0, it.last.epochs.1),
            size(it.used_bytes),
            moment_text(it.first.written_us),
            moment_text(it.last.written_us),
        ]
    }));
    if rows.len() > 1 {
        text.push_str(&table(&rows));
    }
    if let Some(cut) = &log.cut {
        let _ = writeln!(text, "\nBehind the end of the log: {cut}.");
    }
    if let Some(damage) = &log.damage {
        let _ = writeln!(text, "\nDamaged: {damage:#}");
    }
    text
}

fn files_as_text(directory: &DataDirectory, number: u64, files: &[FileSummary]) -> String {
    let names = table_names(directory, number).unwrap_or_default();
    let mut text = format!("\nFiles of checkpoint {number}:\n");
    let mut rows = vec![
        ["file", "table", "rows", "size"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(files.iter().map(|file| {
        let table = match file.name {
            FileName::Catalog => String::new(),
            FileName::Table { table, .. } => names.get(&table).cloned().unwrap_or_default(),
        };
        vec![
            file.name.to_string(),
            table,
            grouped(file.rows),
            size(file.bytes),
        ]
    }));
    text.push_str(&table(&rows));
    for damage in files.iter().filter_map(|file| file.damage.as_ref()) {
        let _ = writeln!(text, "\nDamaged: {damage:#}");
    }
    text
}

fn as_json(manifest: &Manifest, log: &LogSummary, files: Option<&[FileSummary]>) -> String {
    let segments = log.segments.iter().map(|it| {
        json!({
            "number": it.number,
            "used_bytes": it.used_bytes,
            "blocks": [it.first.number, it.last.number],
            "epochs": [it.first.epochs.0, it.last.epochs.1],
            "written": [moment_text(it.first.written_us), moment_text(it.last.written_us)],
        })
    });
    let files = files.map(|files| {
        let files = files.iter().map(|it| {
            json!({
                "name": it.name.to_string(),
                "bytes": it.bytes,
                "rows": it.rows,
                "damage": it.damage.as_ref().map(|it| it.message()),
            })
        });
        files.collect::<Vec<_>>()
    });
    let value = json!({
        "database": manifest.database.to_string(),
        "created": moment_text(manifest.created_us),
        "first_segment": manifest.first_segment,
        "checkpoints": manifest.checkpoints.iter().map(checkpoint_json).collect::<Vec<_>>(),
        "segments": segments.collect::<Vec<_>>(),
        "blocks": log.blocks(),
        "groups": log.groups,
        "bytes": log.bytes,
        "cut": log.cut,
        "damage": log.damage.as_ref().map(|it| it.message()),
        "files": files,
    });
    format!("{value}\n")
}
