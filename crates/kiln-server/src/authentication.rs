//! Authentication: which clients must prove who they are, and the server's part of the proof.
//!
//! The proof is SCRAM-SHA-256 (RFC 5802, RFC 7677), with the binding to the TLS connection where
//! there is one (SCRAM-SHA-256-PLUS, `tls-server-end-point` of RFC 5929). The server learns no
//! password, and a client that does not know the password learns no more than that, not even
//! whether there is such a role.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kiln_platform::net::{Peer, own_user};
use kiln_platform::random::entropy;
use kiln_sql::secret::{Hash, Secret, hash, is_same, mac};
use kiln_sql::{Error, Result, Roles, SqlState};
use kiln_wire::frontend::violation;

/// Which clients must prove who they are. Clients from other machines always must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authentication {
    /// Those of this machine must from the moment on when a role has a password, but for processes
    /// of the server's own user that come through the Unix socket: they could read its files as
    /// well.
    #[default]
    Automatic,
    /// Those of this machine need not.
    Trust,
    /// All.
    Password,
}

impl Authentication {
    /// Whether the server trusts a client at this address to be the role that it names.
    pub fn trusts(self, peer: &Peer, roles: &Roles) -> bool {
        let user = match peer {
            Peer::Unix { user } => *user,
            Peer::Tcp(_) => None,
        };
        match self {
            Authentication::Automatic => {
                user == Some(own_user()) || is_local(peer) && !roles.has_passwords()
            }
            Authentication::Trust => is_local(peer),
            Authentication::Password => false,
        }
    }
}

/// Whether a client is on this machine.
pub fn is_local(peer: &Peer) -> bool {
    match peer {
        Peer::Unix { .. } => true,
        Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
    }
}

/// The mechanism, and the one that is bound to the TLS connection.
const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Bytes of a nonce in base64.
const NONCE_BYTES: usize = 18;
/// How often a client hashes the password of a role that there is not.
const ITERATIONS: u32 = 4_096;

/// The server's part of an exchange.
pub struct Exchange {
    role: String,
    secret: Secret,
    /// Whether the role has a password; else the exchange goes on as if it had, and fails.
    has_password: bool,
    /// What identifies the TLS connection, if there is one.
    binding: Option<Box<[u8]>>,
    /// What was said, from the client's first message on.
    said: Option<Said>,
}

struct Said {
    /// The header of the client's first message, up to its second comma.
    header: String,
    /// The rest of it.
    first: String,
    /// The server's answer to it.
    answer: String,
    /// Both nonces.
    nonce: String,
}

/// How an exchange goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// With this message.
    Continue(String),
    /// The client has proved who it is, and can see by this message that the server has the secret.
    Proved(String),
}

impl Exchange {
    /// With a client that says it is this role. `pretended` stays the same for the life of a
    /// server, and no client knows it.
    pub fn new(
        role: &str,
        roles: &Roles,
        pretended: &Hash,
        binding: Option<Box<[u8]>>,
    ) -> Exchange {
        let known = roles.get(role).and_then(|role| role.secret.as_deref());
        let secret = known.and_then(|secret| secret.parse().ok());
        Exchange {
            role: role.to_owned(),
            has_password: secret.is_some(),
            secret: secret.unwrap_or_else(|| Secret {
                iterations: ITERATIONS,
                // The same each time, as that of a role that there is.
                salt: mac(pretended, &[role.as_bytes()])[..16].to_vec(),
                stored_key: [0; _],
                server_key: [0; _],
            }),
            binding,
            said: None,
        }
    }

    /// What the client may choose among.
    pub fn mechanisms(&self) -> &'static [&'static str] {
        match self.binding {
            Some(_) => &[PLUS, PLAIN],
            None => &[PLAIN],
        }
    }

    /// Takes what the client says.
    ///
    /// # Errors
    /// 28P01 when it has not the role's password, 08P01 for what is no message of the exchange.
    pub fn take(&mut self, body: &[u8]) -> Result<Reply> {
        match self.said.take() {
            None => self.begin(body).map(Reply::Continue),
            Some(said) => self.end(&said, body).map(Reply::Proved),
        }
    }

    fn begin(&mut self, body: &[u8]) -> Result<String> {
        let (mechanism, message) = initial(body).ok_or_else(malformed)?;
        if !self.mechanisms().contains(&mechanism) {
            return Err(violation(format!(
                "client selected an invalid SASL authentication mechanism: {mechanism}"
            )));
        }
        let is_bound = mechanism == PLUS;
        let (header, first) = split_header(message).ok_or_else(malformed)?;
        match (header.as_bytes()[0], is_bound) {
            (b'n', false) | (b'p', true) => {}
            // The client could have been bound, and was told that the server cannot: a third party
            // relays the connection.
            (b'y', false) if self.binding.is_none() => {}
            _ => return Err(rejected_binding()),
        }
        if is_bound && !header.starts_with("p=tls-server-end-point,") {
            let message = "unsupported SCRAM channel-binding type";
            return Err(violation(message.to_owned()));
        }
        // The name is that of the startup message: PostgreSQL's clients leave it empty here.
        let mut parts = first.split(',');
        let name = parts.next().filter(|name| name.starts_with("n="));
        let nonce = parts.next().and_then(|nonce| nonce.strip_prefix("r="));
        let (Some(_), Some(nonce)) = (name, nonce) else {
            return Err(malformed());
        };
        let is_printable = |byte: u8| matches!(byte, 0x21..=0x7e);
        if nonce.is_empty() || !nonce.bytes().all(is_printable) {
            return Err(malformed());
        }
        let own: [u8; NONCE_BYTES] = entropy().map_err(|error| {
            let message = format!("the system gives no random numbers: {error}");
            Error::new(SqlState::IO_ERROR, message)
        })?;
        let nonce = format!("{nonce}{}", BASE64_STANDARD.encode(own));
        let Secret {
            iterations, salt, ..
        } = &self.secret;
        let salt = BASE64_STANDARD.encode(salt);
        let answer = format!("r={nonce},s={salt},i={iterations}");
        self.said = Some(Said {
            header: header.to_owned(),
            first: first.to_owned(),
            answer: answer.clone(),
            nonce,
        });
        Ok(answer)
    }

    fn end(&self, said: &Said, body: &[u8]) -> Result<String> {
        let message = std::str::from_utf8(body).map_err(|_| malformed())?;
        let (unproved, proof) = message.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut parts = unproved.split(',');
        let binding = parts.next().and_then(|binding| binding.strip_prefix("c="));
        let nonce = parts.next().and_then(|nonce| nonce.strip_prefix("r="));
        let (Some(binding), Some(nonce)) = (binding, nonce) else {
            return Err(malformed());
        };
        let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| malformed());
        let mut expected = said.header.clone().into_bytes();
        if said.header.starts_with('p') {
            expected.extend_from_slice(self.binding.as_deref().unwrap_or_default());
        }
        if decode(binding)? != expected {
            return Err(rejected_binding());
        }
        if nonce != said.nonce {
            return Err(violation(
                "malformed SCRAM message: nonce does not match".to_owned(),
            ));
        }
        let proof = Hash::try_from(decode(proof)?).map_err(|_| malformed())?;
        let whole = [
            said.first.as_bytes(),
            b",",
            said.answer.as_bytes(),
            b",",
            unproved.as_bytes(),
        ];
        let mut key = mac(&self.secret.stored_key, &whole);
        key.iter_mut()
            .zip(proof)
            .for_each(|(key, proof)| *key ^= proof);
        if !is_same(&hash(&key), &self.secret.stored_key) || !self.has_password {
            return Err(self.refused());
        }
        let signature = mac(&self.secret.server_key, &whole);
        Ok(format!("v={}", BASE64_STANDARD.encode(signature)))
    }

    fn refused(&self) -> Error {
        let message = format!("password authentication failed for user \"{}\"", self.role);
        Error::new(SqlState::INVALID_PASSWORD, message)
    }
}

/// The mechanism and the first message, of the first answer of the client.
fn initial(body: &[u8]) -> Option<(&str, &str)> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let (mechanism, rest) = (&body[..end], &body[end + 1..]);
    let (length, message) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    if message.len() != length {
        return None;
    }
    Some((
        std::str::from_utf8(mechanism).ok()?,
        std::str::from_utf8(message).ok()?,
    ))
}

/// The header of a first message, both of its commas included, and the rest.
fn split_header(message: &str) -> Option<(&str, &str)> {
    let mut commas = message.match_indices(',');
    let (first, _) = commas.next()?;
    let (second, _) = commas.next()?;
    let (flag, authorized) = (&message[..first], &message[first + 1..second]);
    let is_known = matches!(flag, "n" | "y") || flag.starts_with("p=");
    // Who acts for another one is not known here.
    (is_known && authorized.is_empty()).then(|| message.split_at(second + 1))
}

fn malformed() -> Error {
    violation("malformed SCRAM message".to_owned())
}

fn rejected_binding() -> Error {
    let message = "SCRAM channel binding check failed";
    Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
        .with_hint("Someone may be between client and server.")
}
