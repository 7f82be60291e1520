//! Any text is read as a manifest, or as the list of a backup, or refused with the path of its
//! file; what is read is written as it was.
//!
//! The checksum in the last line is made right, so that inputs reach the lines before it.

#![no_main]

use std::path::Path;

use kiln_durability::Manifest;
use kiln_durability::backup::BackupList;
use libfuzzer_sys::fuzz_target;

fn sealed(text: &str) -> Vec<u8> {
    let mut digest = crc64fast::Digest::new();
    digest.write(text.as_bytes());
    format!("{text}checksum {:016x}\n", digest.sum64()).into_bytes()
}

fuzz_target!(|text: &str| {
    let path = Path::new("of/a/file");
    for bytes in [text.as_bytes(), &sealed(text)] {
        match Manifest::read(bytes, path) {
            Ok(manifest) => {
                let written = manifest.to_bytes().expect("what was read can be written");
                assert_eq!(Manifest::read(&written, path), Ok(manifest));
            }
            Err(error) => assert!(error.message().contains("of/a/file"), "{error}"),
        }
        match BackupList::read(bytes, path) {
            Ok(list) => {
                let written = sealed(&list.to_string());
                assert_eq!(BackupList::read(&written, path), Ok(list));
            }
            Err(error) => assert!(error.message().contains("of/a/file"), "{error}"),
        }
    }
});
