//! PostgreSQL's hashes of texts: Bob Jenkins's lookup3 of the bytes, with PostgreSQL's start.
//! Clients make keys of advisory locks of them.

use kiln_storage::slot::{Heap, Slot};

use super::cast::strict;
use super::signatures;

/// The three words that bytes are mixed into.
#[derive(Clone, Copy)]
struct State([u32; 3]);

impl State {
    /// For so many bytes.
    fn new(length: usize) -> State {
        // The golden ratio, and a number of PostgreSQL's own. Lengths count modulo 2 to the 32nd.
        let start = 0x9e37_79b9_u32.wrapping_add(length as u32);
        State([start.wrapping_add(3_923_095); 3])
    }

    fn add(&mut self, words: [u32; 3]) {
        for (own, word) in self.0.iter_mut().zip(words) {
            *own = own.wrapping_add(word);
        }
    }

    /// Mixes the words, reversibly.
    fn mix(&mut self) {
        let [mut x, mut y, mut z] = self.0;
        for bits in [4, 6, 8, 16, 19, 4] {
            x = x.wrapping_sub(z) ^ z.rotate_left(bits);
            z = z.wrapping_add(y);
            // The next step is the same for the words that come one place later.
            [x, y, z] = [y, z, x];
        }
        self.0 = [x, y, z];
    }

    /// Mixes the words finally.
    fn finish(&mut self) {
        let [mut rest, mut from, mut x] = self.0;
        for bits in [14, 11, 25, 16, 4, 14, 24] {
            x = (x ^ from).wrapping_sub(from.rotate_left(bits));
            [x, from, rest] = [rest, x, from];
        }
        // Seven steps have moved the words on by one place.
        self.0 = [x, rest, from];
    }

    /// Mixes all bytes in.
    fn absorb(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<12>();
        for block in blocks {
            self.add(words(block));
            self.mix();
        }
        let mut last = [0; 12];
        // The lowest byte of the third word is the length's, which the start has.
        for (place, byte) in rest.iter().enumerate() {
            last[place + usize::from(place >= 8)] = *byte;
        }
        self.add(words(&last));
        self.finish();
    }
}

/// The words of twelve bytes.
fn words(bytes: &[u8; 12]) -> [u32; 3] {
    let (words, _) = bytes.as_chunks::<4>();
    [words[0], words[1], words[2]].map(u32::from_le_bytes)
}

fn hash(bytes: &[u8]) -> i32 {
    let mut state = State::new(bytes.len());
    state.absorb(bytes);
    state.0[2].cast_signed()
}

fn hash_with_seed(bytes: &[u8], seed: i64) -> i64 {
    let seed = seed.cast_unsigned();
    let mut state = State::new(bytes.len());
    if seed != 0 {
        state.add([(seed >> 32) as u32, seed as u32, 0]);
        state.mix();
    }
    state.absorb(bytes);
    let [_, high, low] = state.0;
    (u64::from(high) << 32 | u64::from(low)).cast_signed()
}

fn of_text(heap: &Heap, text: Slot) -> Slot {
    Slot::from_i64(hash(heap.bytes(text)).into())
}

strict! {
    HASHTEXT = "hashtext", |heap, text| Ok(of_text(heap, text));
    HASHTEXTEXTENDED = "hashtextextended", |heap, text, seed|
        Ok(Slot::from_i64(hash_with_seed(heap.bytes(text), seed.as_i64())));
}

signatures! {
    "hashtext"(Text) -> Int4 = HASHTEXT;
    "hashtextextended"(Text, Int8) -> Int8 = HASHTEXTEXTENDED;
}
