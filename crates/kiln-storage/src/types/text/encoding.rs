//! Texts as bytes of an encoding.

use crate::error::{Error, Result, SqlState};

/// An encoding that texts are converted from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// That of all texts.
    Utf8,
    /// ISO 8859-1: each byte is the character of its number.
    Latin1,
    /// Bytes as they are, which must be UTF-8 to be a text.
    Ascii,
}

impl Encoding {
    /// The encoding that PostgreSQL knows by this name; `None` for one that is not there.
    pub fn of(name: &str) -> Option<Encoding> {
        let mut letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        letters.make_ascii_lowercase();
        match letters.as_str() {
            "utf8" | "unicode" => Some(Encoding::Utf8),
            "latin1" | "iso88591" => Some(Encoding::Latin1),
            "sqlascii" => Some(Encoding::Ascii),
            _ => None,
        }
    }

    /// The text that bytes of the encoding say.
    ///
    /// # Errors
    /// 22021 for bytes that are no text in it.
    pub fn decode(self, bytes: &[u8]) -> Result<String> {
        if let Some(zero) = bytes.iter().position(|byte| *byte == 0) {
            return Err(not_utf8(&bytes[zero..=zero]));
        }
        match self {
            Encoding::Utf8 | Encoding::Ascii => Ok(utf8(bytes)?.to_owned()),
            Encoding::Latin1 => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }

    /// The bytes that a text is in the encoding.
    ///
    /// # Errors
    /// 22P05 for a character that is not in it.
    pub fn encode(self, text: &str) -> Result<Vec<u8>> {
        match self {
            Encoding::Utf8 | Encoding::Ascii => Ok(text.as_bytes().to_vec()),
            Encoding::Latin1 => {
                let byte = |character| {
                    u8::try_from(u32::from(character)).map_err(|_| not_latin1(character))
                };
                text.chars().map(byte).collect()
            }
        }
    }
}

#[cold]
fn not_latin1(character: char) -> Error {
    let bytes = shown(character.encode_utf8(&mut [0; 4]).as_bytes());
    let message = format!(
        "character with byte sequence {bytes} in encoding \"UTF8\" has no equivalent in encoding \
         \"LATIN1\""
    );
    Error::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
}

/// The bytes as text.
///
/// # Errors
/// 22021 for what is not UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let from = error.valid_up_to();
        let to = from + error.error_len().unwrap_or(bytes.len() - from);
        not_utf8(&bytes[from..to])
    })
}

/// 22021 for these bytes.
#[cold]
pub fn not_utf8(bytes: &[u8]) -> Error {
    let bytes = shown(bytes);
    let message = format!("invalid byte sequence for encoding \"UTF8\": {bytes}");
    Error::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
}

fn shown(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_encoding_encodes_it_decodes() {
        for text in ["", "abc", "Käse", "ÿ"] {
            for encoding in [Encoding::Utf8, Encoding::Latin1, Encoding::Ascii] {
                let bytes = encoding.encode(text).expect("all have these characters");
                assert_eq!(encoding.decode(&bytes), Ok(text.to_owned()));
            }
        }
    }

    #[test]
    fn what_is_not_in_an_encoding_is_an_error() {
        let refused = Encoding::Latin1
            .encode("€")
            .expect_err("it has no such character");
        assert_eq!(refused.state(), SqlState::UNTRANSLATABLE_CHARACTER);
        for bytes in [&b"\xff"[..], b"a\xe2\x82", b"a\0b"] {
            let refused = Encoding::Utf8.decode(bytes).expect_err("it is no text");
            assert_eq!(refused.state(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
        }
    }
}
