//! The functions of the extensions `pgcrypto` and `uuid-ossp`.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use kiln_platform::time::wall_clock_us;
use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::cast::strict;
use super::random::{GEN_RANDOM_UUID, random, uuid};
use super::{Function, Signature, Ty, signatures};

/// Bytes that bcrypt takes of a password, a NUL behind a shorter one included.
const BCRYPT_PASSWORD_BYTES: usize = 72;
const BCRYPT_SALT_BYTES: usize = 16;
/// The base-64 digits of a salt.
const BCRYPT_SALT_DIGITS: usize = 22;
/// The cost of `gen_salt('bf')`: the logarithm of the rounds.
const BCRYPT_COST: i64 = 6;
const BCRYPT_COST_MIN: i64 = 4;
/// PostgreSQL takes up to 31. A worker computes for some 300 ms with this one, and can do nothing
/// else meanwhile.
const BCRYPT_COST_MAX: i64 = 12;
/// What one of bcrypt's rounds takes, as bytes that a function goes through.
const BCRYPT_ROUND_WORK: usize = 80 << 10;
/// Bytes of a hash that are written down; the last byte never is.
const BCRYPT_HASH_BYTES: usize = 23;
/// The most that `gen_random_bytes` gives.
const RANDOM_BYTES_MAX: usize = 1_024;

/// The digits of bcrypt.
const BCRYPT_BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::BCRYPT, NO_PAD);

#[cold]
fn unknown_hash(name: &str) -> Error {
    let message = format!("Cannot use \"{name}\": No such hash algorithm");
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn digest(heap: &mut Heap, data: Slot, name: Slot) -> Result<Slot> {
    let (data, name) = (heap.bytes(data), heap.str(name));
    let hash: Vec<u8> = match name.to_ascii_lowercase().as_str() {
        "md5" => Md5::digest(data).to_vec(),
        "sha1" => Sha1::digest(data).to_vec(),
        "sha224" => Sha224::digest(data).to_vec(),
        "sha256" => Sha256::digest(data).to_vec(),
        "sha384" => Sha384::digest(data).to_vec(),
        "sha512" => Sha512::digest(data).to_vec(),
        _ => return Err(unknown_hash(name)),
    };
    Ok(heap.push_bytes(&hash))
}

fn mac<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mac = <M as KeyInit>::new_from_slice(key);
    let mut mac = mac.map_err(|_| Error::internal("HMAC takes keys of any length"))?;
    mac.update(data);
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hmac(heap: &mut Heap, data: Slot, key: Slot, name: Slot) -> Result<Slot> {
    let (data, key, name) = (heap.bytes(data), heap.bytes(key), heap.str(name));
    let code = match name.to_ascii_lowercase().as_str() {
        "md5" => mac::<Hmac<Md5>>(key, data)?,
        "sha1" => mac::<Hmac<Sha1>>(key, data)?,
        "sha224" => mac::<Hmac<Sha224>>(key, data)?,
        "sha256" => mac::<Hmac<Sha256>>(key, data)?,
        "sha384" => mac::<Hmac<Sha384>>(key, data)?,
        "sha512" => mac::<Hmac<Sha512>>(key, data)?,
        _ => return Err(unknown_hash(name)),
    };
    Ok(heap.push_bytes(&code))
}

fn gen_random_bytes(heap: &mut Heap, count: Slot) -> Result<Slot> {
    let count = usize::try_from(count.as_i64()).unwrap_or(0);
    if !(1..=RANDOM_BYTES_MAX).contains(&count) {
        let state = SqlState::parse("39000").unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
        return Err(Error::new(state, "Length not in range"));
    }
    let bytes: [u8; RANDOM_BYTES_MAX] = random()?;
    Ok(heap.push_bytes(&bytes[..count]))
}

fn gen_salt(heap: &mut Heap, kind: Slot, cost: i64) -> Result<Slot> {
    let kind = heap.str(kind).to_ascii_lowercase();
    match kind.as_str() {
        "bf" => {}
        "md5" | "des" | "xdes" => {
            return Err(
                Error::unsupported(format!("gen_salt('{kind}')")).with_hint("Use gen_salt('bf').")
            );
        }
        _ => {
            let message = "gen_salt: Unknown salt algorithm";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    let cost = if cost == 0 { BCRYPT_COST } else { cost };
    check_cost(cost, "gen_salt: Incorrect number of rounds")?;
    let salt: [u8; BCRYPT_SALT_BYTES] = random()?;
    let text = format!("$2a${cost:02}${}", BCRYPT_BASE64.encode(salt));
    Ok(heap.push_str(&text))
}

/// # Errors
/// 22023 for a cost that bcrypt does not have, 0A000 for one that takes too long.
fn check_cost(cost: i64, message: &str) -> Result<()> {
    match cost {
        BCRYPT_COST_MIN..=BCRYPT_COST_MAX => Ok(()),
        13..=31 => Err(Error::unsupported(format!("bcrypt with 2^{cost} rounds"))
            .with_hint(format!("The most is gen_salt('bf', {BCRYPT_COST_MAX})."))),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)),
    }
}

/// The hash of a password, with the salt before it.
fn crypt(heap: &mut Heap, password: Slot, salt: Slot) -> Result<Slot> {
    let invalid = || Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid salt");
    let salt = heap.str(salt).to_owned();
    let Some(rest) = salt
        .strip_prefix("$2a$")
        .or_else(|| salt.strip_prefix("$2b$"))
    else {
        let is_other = salt.starts_with('$') && salt.len() > 2 || salt.len() >= 2;
        return Err(match is_other {
            true => Error::unsupported("crypt with a salt other than bcrypt's")
                .with_hint("Use gen_salt('bf')."),
            false => invalid(),
        });
    };
    let (cost, digits) = rest.split_once('$').ok_or_else(invalid)?;
    let is_cost = cost.len() == 2 && cost.bytes().all(|digit| digit.is_ascii_digit());
    let number: u32 = cost.parse().ok().filter(|_| is_cost).ok_or_else(invalid)?;
    check_cost(i64::from(number), "invalid salt")?;
    let digits = digits.get(..BCRYPT_SALT_DIGITS).ok_or_else(invalid)?;
    let bytes = decode_salt(digits).ok_or_else(invalid)?;
    heap.spend(BCRYPT_ROUND_WORK << number)?;
    let password = heap.bytes(password);
    let mut ended = password[..password.len().min(BCRYPT_PASSWORD_BYTES)].to_vec();
    if ended.len() < BCRYPT_PASSWORD_BYTES {
        ended.push(0);
    }
    let hash = bcrypt::bcrypt(number, bytes, &ended);
    let prefix = &salt[..4];
    let hash = BCRYPT_BASE64.encode(&hash[..BCRYPT_HASH_BYTES]);
    // The bits that a salt has too many are 0 in what is written down.
    let text = format!("{prefix}{cost}${}{hash}", BCRYPT_BASE64.encode(bytes));
    Ok(heap.push_str(&text))
}

/// The bytes of a salt. Its last digit has four bits too many, which may be anything.
fn decode_salt(digits: &str) -> Option<[u8; BCRYPT_SALT_BYTES]> {
    let padded = format!("{digits}..");
    let bytes = BCRYPT_BASE64.decode(padded).ok()?;
    bytes.get(..BCRYPT_SALT_BYTES)?.try_into().ok()
}

/// A UUID of a name within a namespace: its bytes are those of a hash.
fn named_uuid<D: Digest>(heap: &mut Heap, namespace: Slot, name: Slot, version: u8) -> Slot {
    let mut hash = D::new();
    hash.update(heap.bytes(namespace));
    hash.update(heap.bytes(name));
    let hash = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid(heap, bytes, version)
}

/// `uuid_generate_v1()`: the time in steps of 100 ns since 1582, and a random node, as the machine
/// does not tell its address.
const UUID_V1: ScalarFunction = {
    fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
        /// From 15 October 1582 to 1 January 1970, in steps of 100 ns.
        const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000;
        let since_1970 = u64::try_from(wall_clock_us()).unwrap_or(0) * 10;
        let mut bytes: [u8; 16] = random()?;
        let time = since_1970 + GREGORIAN + u64::from(bytes[0] % 10);
        bytes[..4].copy_from_slice(&(time as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&((time >> 32) as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
        // A node that is no machine's address has this bit.
        bytes[10] |= 1;
        Ok(uuid(heap, bytes, 1))
    }
    function
};

strict! {
    DIGEST = "digest", |heap, data, name| digest(heap, data, name);
    HMAC = "hmac", |heap, data, key, name| hmac(heap, data, key, name);
    CRYPT = "crypt", |heap, password, salt| crypt(heap, password, salt);
    UUID_V3 = "uuid_generate_v3", |heap, namespace, name| {
        Ok(named_uuid::<Md5>(heap, namespace, name, 3))
    };
    UUID_V5 = "uuid_generate_v5", |heap, namespace, name| {
        Ok(named_uuid::<Sha1>(heap, namespace, name, 5))
    };
    GEN_SALT = "gen_salt", |heap, kind| gen_salt(heap, kind, 0);
    GEN_SALT_OF = "gen_salt", |heap, kind, cost| gen_salt(heap, kind, cost.as_i64().max(1));
    GEN_RANDOM_BYTES = "gen_random_bytes", |heap, count| gen_random_bytes(heap, count);
}

/// The UUIDs of namespaces (RFC 4122, Appendix C), and the one without a bit.
macro_rules! constants {
    ($($constant:ident = $first:literal;)*) => {
        $(const $constant: super::Named = (stringify!($constant), {
            fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
                let mut bytes = *b"\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8";
                bytes[3] = $first;
                Ok(heap.push_bytes(&bytes))
            }
            function
        });)*
    };
}

constants! {
    NAMESPACE_DNS = 0x10;
    NAMESPACE_URL = 0x11;
    NAMESPACE_OID = 0x12;
    NAMESPACE_X500 = 0x14;
}

const NIL: super::Named = ("uuid_nil", {
    fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
        Ok(heap.push_bytes(&[0; 16]))
    }
    function
});

signatures! {
    "digest"(Text, Text) -> Bytea = DIGEST;
    "digest"(Bytea, Text) -> Bytea = DIGEST;
    "hmac"(Text, Text, Text) -> Bytea = HMAC;
    "hmac"(Bytea, Bytea, Text) -> Bytea = HMAC;
    "crypt"(Text, Text) -> Text = CRYPT;
    "uuid_generate_v3"(Uuid, Text) -> Uuid = UUID_V3;
    "uuid_generate_v5"(Uuid, Text) -> Uuid = UUID_V5;
    "uuid_nil"() -> Uuid = NIL;
    "uuid_ns_dns"() -> Uuid = NAMESPACE_DNS;
    "uuid_ns_url"() -> Uuid = NAMESPACE_URL;
    "uuid_ns_oid"() -> Uuid = NAMESPACE_OID;
    "uuid_ns_x500"() -> Uuid = NAMESPACE_X500;
}

/// Those that give another value each time.
pub(super) static VOLATILE: &[Signature] = &[
    volatile(
        "gen_random_bytes",
        &[Ty::Int4],
        Ty::Bytea,
        GEN_RANDOM_BYTES.1,
    ),
    volatile("gen_salt", &[Ty::Text], Ty::Text, GEN_SALT.1),
    volatile("gen_salt", &[Ty::Text, Ty::Int4], Ty::Text, GEN_SALT_OF.1),
    volatile("uuid_generate_v1", &[], Ty::Uuid, UUID_V1),
    volatile("uuid_generate_v1mc", &[], Ty::Uuid, UUID_V1),
    volatile("uuid_generate_v4", &[], Ty::Uuid, GEN_RANDOM_UUID),
];

const fn volatile(
    name: &'static str,
    arguments: &'static [Ty],
    result: Ty,
    function: ScalarFunction,
) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(function),
        volatile: true,
    }
}
