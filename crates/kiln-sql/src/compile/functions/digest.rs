//! Digests of bytes.

use std::fmt::Write;

use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::cast::strict;
use super::signatures;

fn digest<D: Digest>(heap: &mut Heap, bytes: Slot) -> Slot {
    let digest = D::digest(heap.bytes(bytes));
    heap.push_bytes(&digest)
}

/// As hexadecimal digits, which is what `md5` gives.
fn digits(heap: &mut Heap, bytes: Slot) -> Result<Slot> {
    let mut text = String::with_capacity(32);
    for byte in Md5::digest(heap.bytes(bytes)) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(heap.push_str(&text))
}

strict! {
    MD5 = "md5", |heap, bytes| digits(heap, bytes);
    SHA224 = "sha224", |heap, bytes| Ok(digest::<Sha224>(heap, bytes));
    SHA256 = "sha256", |heap, bytes| Ok(digest::<Sha256>(heap, bytes));
    SHA384 = "sha384", |heap, bytes| Ok(digest::<Sha384>(heap, bytes));
    SHA512 = "sha512", |heap, bytes| Ok(digest::<Sha512>(heap, bytes));
}

signatures! {
    "md5"(Text) -> Text = MD5;
    "md5"(Bytea) -> Text = MD5;
    "sha224"(Bytea) -> Bytea = SHA224;
    "sha256"(Bytea) -> Bytea = SHA256;
    "sha384"(Bytea) -> Bytea = SHA384;
    "sha512"(Bytea) -> Bytea = SHA512;
}
