//! Where a server is, as a URL says it:
//! `postgresql://user:password@host:port/database?sslmode=require`.
//!
//! The parts are those of libpq's URLs. What is not in the URL is taken from `PGHOST`, `PGPORT`,
//! `PGUSER`, `PGPASSWORD`, `PGDATABASE` and `PGSSLMODE`, as psql takes it.

use std::path::{Path, PathBuf};

use kiln_platform::net::{self, Address};

/// Whether a connection is encrypted, and whether the server must prove who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Encryption {
    /// It is not.
    Disable,
    /// It is if the server offers that.
    #[default]
    Prefer,
    /// It is; the server may be anyone.
    Require,
    /// It is, and an authority that is trusted vouches for the server's certificate.
    VerifyAuthority,
    /// So it does, and the certificate is for the host that was asked for.
    VerifyFull,
}

/// What a URL asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name, an address, or the directory of a Unix socket.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    pub encryption: Encryption,
    /// Certificates of authorities that are trusted, as PEM.
    pub authorities: Option<PathBuf>,
    /// Seconds for the connection and the beginning of its session.
    pub timeout_s: u64,
    /// Settings of the session.
    pub settings: Vec<(String, String)>,
}

const PORT: u16 = 5432;
const TIMEOUT_S: u64 = 30;
/// Settings that a URL may have as parameters.
const SETTINGS: [&str; 2] = ["application_name", "options"];

impl Target {
    /// Reads a URL; `environment` has what it does not say.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(
        url: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Target, String> {
        let rest = ["postgresql://", "postgres://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme))
            .ok_or("a URL of a server begins with postgresql://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (login, None),
        };
        let (host, port) = split_port(place)?;
        let mut parts = Parts {
            host: decoded(host)?,
            port: decoded(port)?,
            user: decoded(user)?,
            password,
            database: decoded(database)?,
            ..Parts::default()
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| format!("the parameter \"{parameter}\" of the URL has no value"))?;
            parts.set(&decoded(name)?, decoded(value)?)?;
        }
        parts.complete(environment)
    }

    /// Where the server listens: several addresses of one host are tried in turn.
    ///
    /// # Errors
    /// That there is no such host.
    pub fn addresses(&self) -> Result<Vec<Address>, String> {
        if self.host.starts_with('/') {
            let name = format!(".s.PGSQL.{}", self.port);
            return Ok(vec![Address::Unix(Path::new(&self.host).join(name))]);
        }
        let found = net::resolve(&self.host, self.port);
        let found =
            found.map_err(|error| format!("cannot find the host {}: {error}", self.host))?;
        Ok(found.into_iter().map(Address::Tcp).collect())
    }
}

/// What was read of a URL.
#[derive(Default)]
struct Parts {
    host: String,
    port: String,
    user: String,
    password: Option<String>,
    database: String,
    encryption: Option<String>,
    authorities: Option<PathBuf>,
    timeout: String,
    settings: Vec<(String, String)>,
}

impl Parts {
    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "host" | "hostaddr" => self.host = value,
            "port" => self.port = value,
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "dbname" => self.database = value,
            "sslmode" => self.encryption = Some(value),
            "sslrootcert" => self.authorities = Some(value.into()),
            "connect_timeout" => self.timeout = value,
            name if SETTINGS.contains(&name) => self.settings.push((name.to_owned(), value)),
            name => return Err(format!("the parameter \"{name}\" of the URL is not known")),
        }
        Ok(())
    }

    fn complete(self, environment: impl Fn(&str) -> Option<String>) -> Result<Target, String> {
        let or = |value: String, name: &str| match value.is_empty() {
            true => environment(name).unwrap_or_default(),
            false => value,
        };
        let or_else = |value: String, other: &str| match value.is_empty() {
            true => other.to_owned(),
            false => value,
        };
        let number = |text: String, what: &str| {
            let read = text.parse::<u16>();
            read.map_err(|_| format!("{what} is a number up to 65535, and not \"{text}\""))
        };
        let port = or_else(or(self.port, "PGPORT"), &PORT.to_string());
        let timeout = or_else(self.timeout, &TIMEOUT_S.to_string());
        let user = or_else(or(or(self.user, "PGUSER"), "USER"), "kiln");
        Ok(Target {
            host: or_else(or(self.host, "PGHOST"), "localhost"),
            port: number(port, "a port")?,
            password: self.password.or_else(|| environment("PGPASSWORD")),
            database: or_else(or(self.database, "PGDATABASE"), &user),
            user,
            encryption: match self.encryption.or_else(|| environment("PGSSLMODE")) {
                Some(mode) => encryption(&mode)?,
                None => Encryption::default(),
            },
            authorities: self.authorities,
            timeout_s: number(timeout, "connect_timeout")?.into(),
            settings: self.settings,
        })
    }
}

fn encryption(mode: &str) -> Result<Encryption, String> {
    Ok(match mode {
        "disable" => Encryption::Disable,
        "prefer" => Encryption::Prefer,
        "require" => Encryption::Require,
        "verify-ca" => Encryption::VerifyAuthority,
        "verify-full" => Encryption::VerifyFull,
        _ => {
            return Err(format!(
                "sslmode is disable, prefer, require, verify-ca or verify-full, and not \"{mode}\""
            ));
        }
    })
}

/// A host, which may be an address of IPv6 in brackets, and its port.
fn split_port(place: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or("an address in the URL has no closing bracket")?;
        return Ok((host, rest.strip_prefix(':').unwrap_or(rest)));
    }
    if place.contains(',') {
        return Err("a URL names one host here".to_owned());
    }
    Ok(place.rsplit_once(':').unwrap_or((place, "")))
}

/// Without percent signs.
fn decoded(text: &str) -> Result<String, String> {
    let malformed = || format!("\"{text}\" has a percent sign without two digits behind it");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
        let digits = std::str::from_utf8(digits).map_err(|_| malformed())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| malformed())?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| format!("\"{text}\" is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<Target, String> {
        Target::parse(url, |name| (name == "PGUSER").then(|| "ada".to_owned()))
    }

    #[test]
    fn urls_are_those_of_libpq() {
        let target = parsed("postgresql://").expect("it says nothing");
        assert_eq!((target.host.as_str(), target.port), ("localhost", 5432));
        assert_eq!(
            (target.user.as_str(), target.database.as_str()),
            ("ada", "ada")
        );
        let url = "postgres://kiln:a%20b%40c@[::1]:6000/shop?sslmode=verify-full&application_name=x%3Dy&connect_timeout=3";
        let target = parsed(url).expect("it is one");
        assert_eq!((target.host.as_str(), target.port), ("::1", 6000));
        assert_eq!(target.password.as_deref(), Some("a b@c"));
        assert_eq!(target.encryption, Encryption::VerifyFull);
        assert_eq!(target.timeout_s, 3);
        assert_eq!(
            target.settings,
            [("application_name".to_owned(), "x=y".to_owned())]
        );
        let target = parsed("postgresql:///shop?host=/run/kiln&port=1").expect("it is one");
        let addresses = target.addresses().expect("it needs no search");
        assert_eq!(addresses, [Address::Unix("/run/kiln/.s.PGSQL.1".into())]);
        let target = parsed("postgresql://%2Frun%2Fkiln/shop").expect("it is one");
        assert_eq!(
            (target.host.as_str(), target.database.as_str()),
            ("/run/kiln", "shop")
        );
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        for (url, part) in [
            ("localhost:5432", "begins with postgresql://"),
            ("postgresql://a:b", "a port is a number"),
            ("postgresql://a?sslmode=always", "sslmode is disable"),
            (
                "postgresql://a?colour=red",
                "\"colour\" of the URL is not known",
            ),
            ("postgresql://a?sslmode", "has no value"),
            ("postgresql://a%2", "percent sign"),
            ("postgresql://[::1", "closing bracket"),
            ("postgresql://a,b", "one host"),
        ] {
            let message = parsed(url).expect_err(url);
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}
