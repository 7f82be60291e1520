//! `-f` and `-c`, in the order in which they stand on the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

use kiln_platform::file;

/// Where statements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    Text(String),
}

/// All files and statements of a command line. clap's derive would keep the two kinds apart and
/// lose their order.
pub struct Sources(Vec<Source>);

/// A script and the name by which errors call it.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) text: String,
}

impl Sources {
    /// The scripts.
    ///
    /// # Errors
    /// Which file cannot be read, and why.
    pub(super) fn read(&self) -> Result<Vec<Script>, String> {
        let read = |source: &Source| match source {
            Source::Text(text) => Ok(Script {
                name: "<command>".to_owned(),
                text: text.clone(),
            }),
            Source::File(path) => match file::read_to_string(path) {
                Ok(text) => Ok(Script {
                    name: path.display().to_string(),
                    text,
                }),
                Err(error) => Err(format!("cannot read {error}")),
            },
        };
        self.0.iter().map(read).collect()
    }
}

impl Args for Sources {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("file")
                    .short('f')
                    .long("file")
                    .value_name("FILE")
                    .action(ArgAction::Append)
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("Run the statements of this file"),
            )
            .arg(
                Arg::new("command")
                    .short('c')
                    .long("command")
                    .value_name("SQL")
                    .action(ArgAction::Append)
                    .help("Run these statements"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Sources::augment_args(command)
    }
}

impl FromArgMatches for Sources {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Sources, clap::Error> {
        let mut sources: Vec<(usize, Source)> = Vec::new();
        if let (Some(paths), Some(places)) = (
            matches.get_many::<PathBuf>("file"),
            matches.indices_of("file"),
        ) {
            sources.extend(places.zip(paths.cloned().map(Source::File)));
        }
        if let (Some(texts), Some(places)) = (
            matches.get_many::<String>("command"),
            matches.indices_of("command"),
        ) {
            sources.extend(places.zip(texts.cloned().map(Source::Text)));
        }
        sources.sort_by_key(|(place, _)| *place);
        Ok(Sources(
            sources.into_iter().map(|(_, source)| source).collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Sources::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_statements_keep_their_order() {
        let command = Sources::augment_args(Command::new("sql"));
        let matches = command
            .try_get_matches_from(["sql", "-c", "one", "--file=two", "-cthree", "-f", "four"])
            .expect("the arguments are valid");
        let sources = Sources::from_arg_matches(&matches).expect("matches of its own command");
        let (file, text) = (
            |name: &str| Source::File(name.into()),
            |text: &str| Source::Text(text.to_owned()),
        );
        assert_eq!(
            sources.0,
            [text("one"), file("two"), text("three"), file("four")]
        );
    }
}
