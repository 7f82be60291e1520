//! Which value a setting has: the flag's, else the environment's, else the file's, else the
//! default.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::file::{self, Entry};
use super::table::{SETTINGS, Setting};
use super::value::Value;

/// The file of settings in a data directory.
pub const FILE: &str = "kiln.toml";

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag.
    Flag,
    /// A variable of the environment.
    Environment,
    /// This line of the file.
    File(PathBuf, usize),
    /// It was not set.
    Default,
}

impl Source {
    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Flag => "flag",
            Source::Environment => "environment",
            Source::File(..) => "file",
            Source::Default => "default",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path, line) => write!(f, "{}:{line}", path.display()),
            other => f.write_str(other.name()),
        }
    }
}

/// The values of all settings.
#[derive(Debug)]
pub struct Resolved(BTreeMap<&'static str, (String, Source)>);

/// What a command was given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The file of settings that was named.
    pub config: Option<PathBuf>,
    /// The values of flags.
    pub flags: BTreeMap<&'static str, String>,
}

impl Given {
    /// Looks the values of all settings up; `variable` is the environment. The file is the one that
    /// was named, else the one in the data directory if there is one.
    ///
    /// # Errors
    /// A sentence for a file that cannot be read or has mistakes, and for a variable that cannot
    /// have that value.
    pub fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Resolved, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let data = setting("data");
        let data = self
            .flags
            .get("data")
            .cloned()
            .or_else(|| variable(&data.variable()));
        let config = self
            .config
            .clone()
            .or_else(|| variable("KILN_CONFIG").map(PathBuf::from));
        let in_data = data.map(|data| Path::new(&data).join(FILE));
        let path = config.or_else(|| in_data.filter(|path| path.is_file()));
        let entries = path
            .as_deref()
            .map(file::read)
            .transpose()?
            .unwrap_or_default();
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let value = value_of(setting, &self.flags, &variable, &path, &entries)?;
            values.insert(setting.name, value);
        }
        Ok(Resolved(values))
    }
}

fn value_of(
    setting: &Setting,
    flags: &BTreeMap<&'static str, String>,
    variable: &impl Fn(&str) -> Option<String>,
    path: &Option<PathBuf>,
    entries: &BTreeMap<&'static str, Entry>,
) -> Result<(String, Source), String> {
    if let Some(text) = flags.get(setting.name) {
        return Ok((text.clone(), Source::Flag));
    }
    if let Some(text) = variable(&setting.variable()) {
        let checked = (setting.check)(&text);
        checked.map_err(|why| format!("{}={text}: {why}", setting.variable()))?;
        return Ok((text, Source::Environment));
    }
    Ok(match (entries.get(setting.name), path) {
        (Some(Entry { text, line }), Some(path)) => {
            (text.clone(), Source::File(path.clone(), *line))
        }
        _ => ((setting.default)(), Source::Default),
    })
}

/// The setting of this name.
fn setting(name: &str) -> &'static Setting {
    let found = SETTINGS.iter().find(|setting| setting.name == name);
    found.expect("it is in the table")
}

impl Resolved {
    /// The value of a setting.
    pub(super) fn value<T: Value>(&self, name: &str) -> Result<T, String> {
        let (text, source) = &self.0[name];
        T::parse(text).map_err(|why| format!("{name} ({source}): {why}"))
    }

    /// The text of a setting's value, and where it is from.
    pub fn get(&self, name: &str) -> &(String, Source) {
        &self.0[name]
    }

    /// Whether it was set.
    pub fn is_set(&self, name: &str) -> bool {
        self.0[name].1 != Source::Default
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Kind, Settings};
    use super::*;
    use kiln_platform::disk::TemporaryDirectory;

    /// Three values of a setting besides its default.
    fn samples(setting: &Setting) -> [&'static str; 3] {
        match setting.name {
            "listen" => ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3,[::1]:3"],
            "admin" => ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"],
            "auth" => ["trust", "password", "trust"],
            "protocol" => ["serial", "tictoc", "silo+cu"],
            "logging" => ["commands", "values", "commands"],
            "log_format" => ["json", "text", "json"],
            "log_level" => ["warn", "debug", "off"],
            _ => match (setting.kind, setting.value_name) {
                (Kind::Truth, _) => ["true", "false", "true"],
                (Kind::Number, _) => ["7", "8", "9"],
                (_, "TIME") => ["7s", "8ms", "off"],
                (_, "DIR" | "FILE") => ["/a", "/b", "/c"],
                other => panic!("{} has no samples: {other:?}", setting.name),
            },
        }
    }

    #[test]
    fn flags_come_before_the_environment_before_the_file_before_defaults() {
        let directory = TemporaryDirectory::new("kiln-settings").expect("there is room");
        let path = directory.path().join("some.toml");
        for setting in SETTINGS {
            let [in_file, in_environment, in_flag] = samples(setting);
            let quoted = match setting.kind {
                Kind::Number | Kind::Truth => in_file.to_owned(),
                Kind::Text | Kind::List => format!("\"{in_file}\""),
            };
            let line = format!("# settings\n{} = {quoted}\n", setting.name);
            kiln_platform::file::write(&path, line.as_bytes()).expect("there is room");
            for has in 0..8 {
                let (flag, environment, file) = (has & 1 > 0, has & 2 > 0, has & 4 > 0);
                let mut given = Given {
                    config: file.then(|| path.clone()),
                    ..Given::default()
                };
                if flag {
                    given.flags.insert(setting.name, in_flag.to_owned());
                }
                let variable = |name: &str| {
                    (environment && name == setting.variable()).then(|| in_environment.to_owned())
                };
                let resolved = given.resolve(variable).expect("all is right");
                let expected = match (flag, environment, file) {
                    (true, ..) => (in_flag.to_owned(), Source::Flag),
                    (_, true, _) => (in_environment.to_owned(), Source::Environment),
                    (_, _, true) => (in_file.to_owned(), Source::File(path.clone(), 2)),
                    _ => ((setting.default)(), Source::Default),
                };
                assert_eq!(resolved.get(setting.name), &expected, "{}", setting.name);
                Settings::of(&resolved).expect("all make sense");
            }
        }
    }

    #[test]
    fn the_file_in_the_data_directory_is_read_unless_another_is_named() {
        let directory = TemporaryDirectory::new("kiln-settings").expect("there is room");
        let (inside, named) = (directory.path().join(FILE), directory.path().join("other"));
        let write = |path: &Path, text: &str| {
            kiln_platform::file::write(path, text.as_bytes()).expect("there is room");
        };
        write(&inside, "connections = 1");
        write(&named, "connections = 2");
        let data = directory.path().display().to_string();
        let mut given = Given::default();
        let in_environment = |name: &str| (name == "KILN_DATA").then(|| data.clone());
        let resolved = given.resolve(in_environment).expect("all is right");
        assert_eq!(resolved.get("connections").0, "1");
        given.flags.insert("data", data.clone());
        let resolved = given.resolve(|_| None).expect("all is right");
        assert_eq!(resolved.get("connections").0, "1");
        given.config = Some(named.clone());
        let resolved = given.resolve(|_| None).expect("all is right");
        assert_eq!(
            resolved.get("connections"),
            &("2".to_owned(), Source::File(named, 1))
        );
        given.config = Some("/nowhere".into());
        let why = given.resolve(|_| None).expect_err("it is not there");
        assert!(why.contains("/nowhere"), "{why}");
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let wrong = |name: &str| (name == "KILN_CONNECTIONS").then(|| "many".to_owned());
        let why = Given::default()
            .resolve(wrong)
            .expect_err("it is no number");
        assert_eq!(why, "KILN_CONNECTIONS=many: it is a number from 1 to 60000");
        let empty = |name: &str| (name == "KILN_CONNECTIONS").then(String::new);
        let resolved = Given::default().resolve(empty).expect("empty is not set");
        assert_eq!(resolved.get("connections").1, Source::Default);
    }
}
