//! Values in the binary and the text format: refused, or a value that is written as it was read;
//! never a panic.

#![no_main]

use kiln_wire::format::{decode_binary, decode_text, encode_binary, encode_text, parameter_type};
use libfuzzer_sys::fuzz_target;

const OIDS: &[u32] = &[
    16, 17, 20, 21, 23, 25, 701, 1042, 1043, 1082, 1114, 1184, 1186, 1700, 2950, 1005, 1007, 1009, 1016, 1231,
];

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let oid = OIDS[usize::from(*first) % OIDS.len()];
    let data_type = parameter_type(oid).ok().flatten().expect("it is a type");
    if let Ok(value) = decode_binary(bytes, &data_type) {
        let mut written = Vec::new();
        encode_binary(&value, &data_type, &mut written);
        let again = decode_binary(&written, &data_type).expect("it was just written");
        assert_eq!(format!("{value:?}"), format!("{again:?}"));
    }
    if let Ok(value) = decode_text(bytes, &data_type) {
        encode_text(&value, &data_type, &mut Vec::new());
    }
});
