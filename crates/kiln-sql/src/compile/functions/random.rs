//! Random numbers and UUIDs.

use kiln_platform::random::{Random, entropy, fresh_seed};
use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

/// Bytes of the system's randomness: what is made of them cannot be guessed.
///
/// # Errors
/// 58030 when it has none.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    entropy().map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        Error::new(SqlState::IO_ERROR, message)
    })
}

/// A UUID of these bytes, of a version of RFC 4122.
pub(super) fn uuid(heap: &mut Heap, mut bytes: [u8; 16], version: u8) -> Slot {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    heap.push_bytes(&bytes)
}

/// `gen_random_uuid()`, version 4.
pub(super) const GEN_RANDOM_UUID: ScalarFunction = {
    fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
        let bytes = random()?;
        Ok(uuid(heap, bytes, 4))
    }
    function
};

/// `random()`, in `[0, 1)`. The generator is seeded anew for each call: the procedure's frame has
/// no place to keep one, and a loop that needs fast random numbers is rare.
pub(super) const RANDOM: ScalarFunction = {
    fn function(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
        let word = Random::from_seed(fresh_seed()).next_u64();
        Ok(Slot::from_f64((word >> 11) as f64 / (1_u64 << 53) as f64))
    }
    function
};
