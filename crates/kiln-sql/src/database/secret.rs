//! Secrets: what a password is verified with (SCRAM-SHA-256, RFC 5802 and RFC 7677), written as
//! PostgreSQL writes them.
//!
//! A secret does not reveal the password, and a client that has the secret alone cannot connect
//! with it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use kiln_platform::random::entropy;
use kiln_storage::error::{Error, Result, SqlState};
use sha2::{Digest, Sha256};

/// Bytes of a SHA-256.
pub const HASH_BYTES: usize = 32;

/// A SHA-256.
pub type Hash = [u8; HASH_BYTES];

/// What PostgreSQL takes for passwords that are set.
const ITERATIONS: u32 = 4_096;
const SALT_BYTES: usize = 16;
/// The most iterations of a secret that a client made: more would take a client minutes.
const ITERATIONS_MAX: u32 = 10_000_000;
const PREFIX: &str = "SCRAM-SHA-256$";

/// What a password is verified with.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// How often the client hashes its password.
    pub iterations: u32,
    /// What it hashes it with.
    pub salt: Vec<u8>,
    /// The hash of the key that the client proves to have.
    pub stored_key: Hash,
    /// The key that proves to the client that the server has the secret.
    pub server_key: Hash,
}

impl Secret {
    /// That of a password, with a salt of its own.
    ///
    /// # Errors
    /// 58030 when the system gives no random numbers.
    pub fn of_password(password: &str) -> Result<Secret> {
        let salt: [u8; SALT_BYTES] = entropy().map_err(|error| {
            let message = format!("the system gives no random numbers: {error}");
            Error::new(SqlState::IO_ERROR, message)
        })?;
        Ok(Secret::derive(password, &salt, ITERATIONS))
    }

    /// Whether it is that of this password.
    pub fn is_of(&self, password: &str) -> bool {
        *self == Secret::derive(password, &self.salt, self.iterations)
    }

    fn derive(password: &str, salt: &[u8], iterations: u32) -> Secret {
        // What SASLprep forbids is taken as it is, as clients do.
        let password = stringprep::saslprep(password).unwrap_or(password.into());
        let salted = salted(password.as_bytes(), salt, iterations);
        Secret {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash(&mac(&salted, &[b"Client Key"])),
            server_key: mac(&salted, &[b"Server Key"]),
        }
    }
}

/// The HMAC-SHA-256 of the parts behind each other.
pub fn mac(key: &[u8], parts: &[&[u8]]) -> Hash {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// The SHA-256.
pub fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Whether both are the same; that takes as long whether they are or not.
pub fn is_same(one: &Hash, other: &Hash) -> bool {
    let differs = one
        .iter()
        .zip(other)
        .fold(0, |differs, (one, other)| differs | one ^ other);
    differs == 0
}

/// Hi() of RFC 5802, section 2.2.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Hash {
    let mut last = mac(password, &[salt, &1u32.to_be_bytes()]);
    let mut all = last;
    for _ in 1..iterations {
        last = mac(password, &[&last]);
        all.iter_mut()
            .zip(last)
            .for_each(|(all, last)| *all ^= last);
    }
    all
}

/// As PostgreSQL writes it: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        let (salt, stored) = (base64(&self.salt), base64(&self.stored_key));
        let (iterations, server) = (self.iterations, base64(&self.server_key));
        write!(f, "{PREFIX}{iterations}:{salt}${stored}:{server}")
    }
}

/// Shows nothing that an attacker could use.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} iterations)", self.iterations)
    }
}

impl FromStr for Secret {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Secret, ()> {
        let rest = text.strip_prefix(PREFIX).ok_or(())?;
        let (salted, keys) = rest.split_once('$').ok_or(())?;
        let (iterations, salt) = salted.split_once(':').ok_or(())?;
        let (stored, server) = keys.split_once(':').ok_or(())?;
        let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| ());
        let key = |text: &str| Hash::try_from(decode(text)?).map_err(|_| ());
        let iterations: u32 = iterations.parse().map_err(|_| ())?;
        if !(1..=ITERATIONS_MAX).contains(&iterations) {
            return Err(());
        }
        Ok(Secret {
            iterations,
            salt: decode(salt)?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the password `pencil` with the salt of the example in RFC 7677, section 3.
    const KNOWN: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

    #[test]
    fn a_secret_is_that_of_rfc_7677() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==");
        let salt = salt.expect("it is base64");
        let secret = Secret::derive("pencil", &salt, 4_096);
        assert_eq!(secret.to_string(), KNOWN);
        assert_eq!(KNOWN.parse(), Ok(secret.clone()));
        assert_ne!(Secret::derive("Pencil", &secret.salt, 4_096), secret);
    }

    #[test]
    fn what_is_no_secret_is_a_password() {
        for text in [
            "",
            "pencil",
            PREFIX,
            "SCRAM-SHA-256$0:AA==$AA==:AA==",
            &KNOWN[..KNOWN.len() - 4],
            &KNOWN.replace("4096", "99999999999"),
        ] {
            assert_eq!(text.parse::<Secret>(), Err(()), "{text}");
        }
    }

    #[test]
    fn two_secrets_of_a_password_differ() {
        let [one, other] = [(); 2].map(|()| Secret::of_password("x").expect("random"));
        assert_ne!(one.salt, other.salt);
        assert_eq!(Secret::derive("x", &one.salt, one.iterations), one);
    }
}
