//! `kiln config`: the settings of a server, and where each is from.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::print;
use super::settings::{Given, Kind, Resolved, SETTINGS, Setting, Settings, Source, variable};

/// Print each setting of `kiln serve`, its value, where it is from, and what it does
///
/// Flags come before variables of the environment, these before the file, and the file before the
/// default. It takes the flags of `kiln serve`, and prints what a server with them would go by.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        kiln config --data shop\n  \
        kiln config --init > shop/kiln.toml")]
pub struct Arguments {
    #[command(flatten)]
    given: Given,
    /// Print JSON
    #[arg(long, conflicts_with = "init")]
    json: bool,
    /// Print a file that has each setting with its default, as a comment
    #[arg(long)]
    init: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    if arguments.init {
        print(&initial())?;
        return Ok(ExitCode::SUCCESS);
    }
    let resolved = arguments.given.resolve(variable)?;
    Settings::of(&resolved)?;
    print(&match arguments.json {
        true => format!("{:#}\n", as_json(&resolved)),
        false => as_text(&resolved),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(resolved: &Resolved) -> String {
    let mut text = String::new();
    for setting in SETTINGS {
        let (value, source) = resolved.get(setting.name);
        let assignment = format!("{} = {}", setting.name, quoted(setting, value));
        // A string takes all that is written.
        let _ = writeln!(text, "{assignment:<44} # {source}");
        for line in lines(setting.help, 90) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

fn as_json(resolved: &Resolved) -> Value {
    let settings = SETTINGS.iter().map(|setting| {
        let (value, source) = resolved.get(setting.name);
        let mut object = json!({
            "name": setting.name,
            "value": json_value(setting, value),
            "source": source.name(),
            "flag": format!("--{}", setting.flag()),
            "variable": setting.variable(),
            "description": setting.help.trim(),
        });
        if let Source::File(path, line) = source {
            object["file"] = json!(path.display().to_string());
            object["line"] = json!(line);
        }
        object
    });
    settings.collect()
}

fn json_value(setting: &Setting, text: &str) -> Value {
    match (text, setting.kind) {
        ("", _) => Value::Null,
        (text, Kind::Text) => json!(text),
        (text, Kind::Number) => text.parse::<u64>().map_or(Value::Null, Value::from),
        (text, Kind::Truth) => json!(matches!(text, "true" | "on")),
        (text, Kind::List) => text.split(',').map(str::trim).collect(),
    }
}

/// A value as a file has it. JSON's texts are also TOML's.
fn quoted(setting: &Setting, text: &str) -> String {
    match setting.kind {
        Kind::List => {
            let parts = text.split(',').map(|part| json!(part.trim()).to_string());
            format!("[{}]", parts.collect::<Vec<_>>().join(", "))
        }
        Kind::Number | Kind::Truth if !text.is_empty() => text.to_owned(),
        _ => json!(text).to_string(),
    }
}

/// A file that changes nothing.
fn initial() -> String {
    let mut text = "# Settings of `kiln serve`, each with its default. Flags and variables of the environment (KILN_…) come before them.\n".to_owned();
    for setting in SETTINGS {
        text.push('\n');
        for line in lines(setting.help, 98) {
            let _ = writeln!(text, "# {line}");
        }
        let default = quoted(setting, &(setting.default)());
        let _ = writeln!(text, "# {} = {default}", setting.name);
    }
    text
}

/// A text in lines of so many characters.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_platform::disk::TemporaryDirectory;

    #[test]
    fn the_initial_file_changes_nothing_with_comments_or_without() {
        let directory = TemporaryDirectory::new("kiln-config").expect("there is room");
        let path = directory.path().join("kiln.toml");
        let commented = initial();
        let is_setting = |line: &&str| {
            let name = line.split(" = ").next().unwrap_or_default();
            SETTINGS.iter().any(|it| name == format!("# {}", it.name)) && line.contains(" = ")
        };
        let active: Vec<&str> = (commented.lines().filter(is_setting))
            .map(|line| &line[2..])
            .collect();
        assert_eq!(active.len(), SETTINGS.len());
        for text in [commented.clone(), active.join("\n")] {
            kiln_platform::file::write(&path, text.as_bytes()).expect("there is room");
            let given = Given {
                config: Some(path.clone()),
                ..Given::default()
            };
            let from_file = given.resolve(|_| None).expect("it is right");
            for setting in SETTINGS {
                let (value, _) = from_file.get(setting.name);
                assert_eq!(*value, (setting.default)(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn long_texts_become_lines() {
        assert_eq!(lines(" one two  three", 7), ["one two", "three"]);
        assert_eq!(lines("unbreakable", 3), ["unbreakable"]);
    }
}
