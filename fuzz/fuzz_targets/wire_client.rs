//! What a client may send first, and what it may send in a session: refused, awaited or taken, and
//! never a panic.

#![no_main]

use kiln_wire::connection::{Incoming, Input};
use kiln_wire::frontend::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let mut input = Input::new(Limits::default());
    if first % 3 > 0 {
        input.begin_session();
        input.copies(first % 3 == 2);
    }
    for piece in bytes.chunks(1 + usize::from(first / 3)) {
        if input.room() < piece.len() {
            return;
        }
        input.receive(piece);
        loop {
            let skips = match input.take() {
                Ok(Some(Incoming::Message(it))) => it.message.is_err() && it.is_extended,
                Ok(Some(Incoming::Opening(_))) => {
                    input.begin_session();
                    false
                }
                Ok(None) => break,
                Err(_) => return,
            };
            if skips {
                input.skip_to_sync();
            }
        }
    }
});
