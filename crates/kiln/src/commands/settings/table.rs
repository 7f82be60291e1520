//! The table of settings: what a server can be told, once, for flags, environment, file and `kiln
//! config`.

use std::path::PathBuf;

use kiln::{Configuration, Logging, Options};
use kiln_platform::net::SocketAddr;
use kiln_server::Authentication;

use super::resolve::Resolved;
use super::value::{Addresses, Format, Level, Number, Period, Value};

/// How a value is written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In quotation marks.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Truth,
    /// A list of texts.
    List,
}

/// A setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name in a file. With hyphens it is the flag's, in capitals behind `KILN_` the
    /// variable's.
    pub name: &'static str,
    /// What help calls its value.
    pub value_name: &'static str,
    /// How its value is written in a file.
    pub kind: Kind,
    /// What it does, in sentences.
    pub help: &'static str,
    /// Its value when it is not set; empty for none.
    pub default: fn() -> String,
    /// Says what is wrong with a value.
    pub check: fn(&str) -> Result<(), String>,
}

impl Setting {
    /// Its flag, without the hyphens before it.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its variable of the environment.
    pub fn variable(&self) -> String {
        format!("KILN_{}", self.name.to_uppercase())
    }
}

/// Declares the settings, each with its type, its default, what help calls its value and how a file
/// has it.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:expr, $value:literal, $kind:ident;)*) => {
        /// What a server was told.
        #[derive(Debug)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $name: $type,)*
        }

        /// All settings.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            value_name: $value,
            kind: Kind::$kind,
            help: concat!($($help),+),
            default: || $default.to_string(),
            check: |text| <$type>::parse(text).map(drop),
        },)*];

        impl Settings {
            /// With the values that were found.
            ///
            /// # Errors
            /// A sentence for a value that makes no sense, with where it is from.
            pub fn of(resolved: &Resolved) -> Result<Settings, String> {
                Ok(Settings { $($name: resolved.value(stringify!($name))?,)* })
            }
        }
    };
}

settings! {
    /// Keep the database in this directory, which is made if it is not there; one that is there is
    /// recovered first. Without it the database is in memory alone, and gone when the server ends.
    data: Option<PathBuf> = "", "DIR", Text;
    /// Listen for TCP connections on these addresses of this machine, separated by commas; port 0
    /// lets the system choose.
    listen: Addresses = "127.0.0.1:5432", "ADDRESS[,…]", List;
    /// Listen on the Unix socket .s.PGSQL.PORT in this directory as well, with the port of the
    /// first address, as psql and drivers look for it with -h DIR.
    socket_dir: Option<PathBuf> = "", "DIR", Text;
    /// Answer with metrics and health over HTTP on this address (/metrics, /healthz), to all who
    /// can reach it. Without it, nowhere.
    admin: Option<SocketAddr> = "", "ADDRESS", Text;
    /// Threads that run transactions; without it, one for each core.
    workers: Option<Number<1, 256>> = "", "N", Number;
    /// Clients at a time; further ones are told that there are too many.
    connections: Number<1, 60_000> = 10_000, "N", Number;
    /// Who must prove with a password who they are: automatic asks as soon as a role has a
    /// password, and trusts this machine until then; trust trusts this machine always; password
    /// trusts no client. Clients from other machines are always asked.
    auth: Authentication = "automatic", "WHO", Text;
    /// Encrypt connections of clients that ask for it, with the certificate in this PEM file, its
    /// issuers behind it.
    tls_cert: Option<PathBuf> = "", "FILE", Text;
    /// The private key of the certificate, a PEM file.
    tls_key: Option<PathBuf> = "", "FILE", Text;
    /// Refuse clients from other machines that do not ask for encryption.
    tls_required: bool = false, "BOOL", Truth;
    /// The concurrency-control protocol, with its options.
    protocol: Configuration = Configuration::default(), "P", Text;
    /// Let the protocol be a baseline that does not serialize transactions, and loses updates.
    allow_unserializable: bool = false, "BOOL", Truth;
    /// What the log keeps of a call of a procedure: values, what it wrote; or commands, the call,
    /// which only protocols can that order calls before they run (serial, vll and its kin).
    logging: Logging = Logging::Values, "WHAT", Text;
    /// How long a recovery is to take at most, as estimated: a checkpoint is written when it would
    /// take longer; off writes none.
    recovery_target: Period = Period::of_s(Options::new().recovery_target_s), "TIME", Text;
    /// Statements of transaction blocks at a time; further ones wait.
    session_slots: Number<1, 256> = Options::new().session_slots, "N", Number;
    /// How long such a statement waits at most.
    slot_wait: Period = Period::of_ms(Options::new().slot_wait_ms), "TIME", Text;
    /// How long an open transaction block may wait for its client before it is rolled back; off
    /// lets it wait for ever.
    idle_in_transaction: Period = Period::of_ms(Options::new().idle_in_transaction_ms), "TIME", Text;
    /// How long clients have to end what they have begun when the server ends.
    drain: Period = Period::of_s(10), "TIME", Text;
    /// How lines of the log are written, on standard error: text or json.
    log_format: Format = "text", "FORMAT", Text;
    /// What is logged: error, warn, info, debug or off, each with what comes before it.
    log_level: Level = "info", "LEVEL", Text;
    /// Log statements that take this long or longer.
    log_slow: Period = Period::OFF, "TIME", Text;
    /// Log slow statements with their literals and the values of their parameters, in place of
    /// question marks. Statements on roles are logged without in any case.
    log_values: bool = false, "BOOL", Truth;
    /// Log transaction blocks that have been open for this long.
    log_block: Period = Period::of_s(60), "TIME", Text;
}
