//! What a server is told: by flags, variables of the environment, and a file; and what it does
//! without.

mod file;
mod resolve;
mod table;
mod value;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

pub use resolve::{Given, Resolved, Source};
pub use table::{Kind, SETTINGS, Setting, Settings};
pub use value::Format;

/// The variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A flag for each setting, and `--config` for the file.
impl Args for Given {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Read settings from this file, in place of kiln.toml in the data directory [env: KILN_CONFIG]");
        command.arg(config).args(SETTINGS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Given::augment_args(command)
    }
}

fn argument(setting: &'static Setting) -> Arg {
    let (check, default) = (setting.check, (setting.default)());
    let default = match default.as_str() {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let help = setting.help.trim().trim_end_matches('.');
    let argument = Arg::new(setting.name)
        .long(setting.flag())
        .value_name(setting.value_name)
        .action(ArgAction::Set)
        .value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
        .help(format!("{help} [env: {}]{default}", setting.variable()));
    match setting.kind {
        // The flag alone says yes.
        Kind::Truth => (argument.num_args(0..=1))
            .require_equals(true)
            .default_missing_value("true"),
        _ => argument,
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Given, clap::Error> {
        let given = SETTINGS.iter().filter_map(|setting| {
            let text = matches.get_one::<String>(setting.name)?;
            Some((setting.name, text.clone()))
        });
        Ok(Given {
            config: matches.get_one("config").cloned(),
            flags: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed_by;
    use super::*;

    #[test]
    fn each_setting_has_its_flag() {
        let words = "--listen 127.0.0.1:0,[::1]:0 --tls-required --allow-unserializable=false --log-slow 5ms";
        let given = parsed_by::<Given>("serve", words).expect("they are right");
        let text = |name: &str| given.flags.get(name).map(String::as_str);
        assert_eq!(text("listen"), Some("127.0.0.1:0,[::1]:0"));
        assert_eq!(text("tls_required"), Some("true"));
        assert_eq!(text("allow_unserializable"), Some("false"));
        assert_eq!(text("log_slow"), Some("5ms"));
        assert_eq!(text("connections"), None);
        let why = parsed_by::<Given>("serve", "--connections 0").expect_err("too few");
        assert!(why.contains("it is a number from 1 to 60000"), "{why}");
    }

    #[test]
    fn names_and_defaults_make_sense() {
        for setting in SETTINGS {
            assert!(
                (setting.check)(&(setting.default)()).is_ok(),
                "{}",
                setting.name
            );
            assert!(setting.help.trim().ends_with('.'), "{}", setting.name);
        }
    }
}
