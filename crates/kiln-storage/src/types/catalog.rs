//! Types whose values are those of another type: those of which PostgreSQL's catalogs are made
//! (OID, NAME and their like), REAL, JSON, JSONB and JSONPATH.
//!
//! What they are made of decides nearly all that can be done with them: see [`Representation`].
//! Columns of tables have those alone that [`CatalogType::is_storable`] names.

use super::DataType;
use crate::error::{Error, Result};

/// A type of PostgreSQL's catalogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CatalogType {
    /// The number of an object, 32 bits unsigned.
    Oid,
    /// The number of a transaction, 32 bits unsigned.
    Xid,
    /// A name of at most 63 bytes.
    Name,
    /// `"char"`, one byte.
    Char,
    /// What a role may do with an object, for instance `shop=r/kiln`.
    AclItem,
    /// An expression that was analysed; here, its text.
    NodeTree,
    /// The address of a host.
    Inet,
    /// A place in PostgreSQL's log; no relation has such a value that is not NULL.
    Lsn,
    /// An array of any type; no relation has such a value that is not NULL.
    AnyArray,
    /// JSON, the text that was written.
    Json,
    /// JSONB, by its canonical text.
    Jsonb,
    /// A path into a JSONB, by its canonical text.
    JsonPath,
    /// A number of 32 bits with a binary point.
    Real,
    /// SMALLINTs, counted from 0.
    Int2Vector,
    /// OIDs, counted from 0.
    OidVector,
    /// A relation.
    RegClass,
    /// A type.
    RegType,
    /// A function, by its name.
    RegProc,
    /// A function, with its arguments.
    RegProcedure,
    /// A schema.
    RegNamespace,
    /// A role.
    RegRole,
    /// No value. Parameters alone can be of this type, and it has no name here: clients declare so
    /// what a function gives back, where they write it among its arguments.
    Void,
}

/// What the values of a [`CatalogType`] are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// A number of 32 bits without a sign, held as a BIGINT.
    Number,
    /// A text.
    Text,
    /// A DOUBLE PRECISION.
    Double,
    /// An array, printed as its elements with blanks between.
    Vector,
    /// A number, and the name by which the object is printed: [`ObjectName`].
    Object,
}

/// The object that a value of a `reg` type names: its number, and as what it is printed.
///
/// Where a client wrote the name, and nothing has looked for the object yet, the number is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The number.
    pub oid: u32,
    /// As it is printed: the name, qualified and quoted where that is needed, or the number where
    /// there is no such object.
    pub name: String,
}

impl ObjectName {
    /// The form in which slots have it: the number, from its highest byte, and the name. So the
    /// same objects are equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.oid.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    /// The opposite of [`ObjectName::to_bytes`]; other bytes name no object.
    pub fn from_bytes(bytes: &[u8]) -> ObjectName {
        let (oid, name) = bytes.split_first_chunk().unwrap_or((&[0; 4], bytes));
        ObjectName {
            oid: u32::from_be_bytes(*oid),
            name: String::from_utf8_lossy(name).into_owned(),
        }
    }
}

/// The bytes of a NAME, at most.
const NAME_BYTES_MAX: usize = 63;

impl CatalogType {
    /// All of them that have a name here.
    pub const ALL: [CatalogType; 21] = [
        CatalogType::Oid,
        CatalogType::Xid,
        CatalogType::Name,
        CatalogType::Char,
        CatalogType::AclItem,
        CatalogType::NodeTree,
        CatalogType::Inet,
        CatalogType::Lsn,
        CatalogType::AnyArray,
        CatalogType::Json,
        CatalogType::Jsonb,
        CatalogType::JsonPath,
        CatalogType::Real,
        CatalogType::Int2Vector,
        CatalogType::OidVector,
        CatalogType::RegClass,
        CatalogType::RegType,
        CatalogType::RegProc,
        CatalogType::RegProcedure,
        CatalogType::RegNamespace,
        CatalogType::RegRole,
    ];

    /// Its name, that of its array type, the numbers of both (0 for no array type), and the bytes
    /// of a value, or -1 where they vary.
    const fn facts(self) -> (&'static str, &'static str, u32, u32, i16) {
        match self {
            CatalogType::Oid => ("oid", "oid[]", 26, 1028, 4),
            CatalogType::Xid => ("xid", "xid[]", 28, 1011, 4),
            CatalogType::Name => ("name", "name[]", 19, 1003, 64),
            CatalogType::Char => ("\"char\"", "\"char\"[]", 18, 1002, 1),
            CatalogType::AclItem => ("aclitem", "aclitem[]", 1033, 1034, 12),
            CatalogType::NodeTree => ("pg_node_tree", "pg_node_tree[]", 194, 0, -1),
            CatalogType::Inet => ("inet", "inet[]", 869, 1041, -1),
            CatalogType::Lsn => ("pg_lsn", "pg_lsn[]", 3220, 3221, 8),
            CatalogType::AnyArray => ("anyarray", "anyarray[]", 2277, 0, -1),
            CatalogType::Json => ("json", "json[]", 114, 199, -1),
            CatalogType::Jsonb => ("jsonb", "jsonb[]", 3802, 3807, -1),
            CatalogType::JsonPath => ("jsonpath", "jsonpath[]", 4072, 4073, -1),
            CatalogType::Real => ("real", "real[]", 700, 1021, 4),
            CatalogType::Int2Vector => ("int2vector", "int2vector[]", 22, 1006, -1),
            CatalogType::OidVector => ("oidvector", "oidvector[]", 30, 1013, -1),
            CatalogType::RegClass => ("regclass", "regclass[]", 2205, 2210, 4),
            CatalogType::RegType => ("regtype", "regtype[]", 2206, 2211, 4),
            CatalogType::RegProc => ("regproc", "regproc[]", 24, 1008, 4),
            CatalogType::RegProcedure => ("regprocedure", "regprocedure[]", 2202, 2207, 4),
            CatalogType::RegNamespace => ("regnamespace", "regnamespace[]", 4089, 4090, 4),
            CatalogType::RegRole => ("regrole", "regrole[]", 4096, 4097, 4),
            CatalogType::Void => ("void", "void[]", 2278, 0, 4),
        }
    }

    /// PostgreSQL's name, as `format_type` prints it.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// The name of its array type.
    pub const fn array_name(self) -> &'static str {
        self.facts().1
    }

    /// Its number.
    pub const fn oid(self) -> u32 {
        self.facts().2
    }

    /// The number of its array type; 0 when there is none.
    pub const fn array_oid(self) -> u32 {
        self.facts().3
    }

    /// The bytes that a value has, or -1 where they vary.
    pub const fn length(self) -> i16 {
        self.facts().4
    }

    /// What its values are made of.
    pub const fn representation(self) -> Representation {
        match self {
            CatalogType::Oid | CatalogType::Xid => Representation::Number,
            CatalogType::Name
            | CatalogType::Char
            | CatalogType::AclItem
            | CatalogType::NodeTree
            | CatalogType::Inet
            | CatalogType::Lsn
            | CatalogType::AnyArray
            | CatalogType::Json
            | CatalogType::Jsonb
            | CatalogType::JsonPath
            | CatalogType::Void => Representation::Text,
            CatalogType::Real => Representation::Double,
            CatalogType::Int2Vector | CatalogType::OidVector => Representation::Vector,
            CatalogType::RegClass
            | CatalogType::RegType
            | CatalogType::RegProc
            | CatalogType::RegProcedure
            | CatalogType::RegNamespace
            | CatalogType::RegRole => Representation::Object,
        }
    }

    /// Whether a table's column can have this type.
    pub const fn is_storable(self) -> bool {
        self.is_json()
            || matches!(
                self,
                CatalogType::Real
                    | CatalogType::Name
                    | CatalogType::Char
                    | CatalogType::Oid
                    | CatalogType::Xid
            )
    }

    /// JSON or JSONB: a text is not a value of such a type before it was read.
    pub const fn is_json(self) -> bool {
        matches!(self, CatalogType::Json | CatalogType::Jsonb)
    }

    /// The type of the elements of a vector.
    pub const fn element(self) -> Option<DataType> {
        match self {
            CatalogType::Int2Vector => Some(DataType::SmallInt),
            CatalogType::OidVector => Some(DataType::OID),
            _ => None,
        }
    }

    /// Whether its texts compare, search and join as those of TEXT do.
    pub const fn is_string(self) -> bool {
        matches!(
            self,
            CatalogType::Name | CatalogType::Char | CatalogType::NodeTree
        )
    }

    /// The part of a text that a value of the type can have: 63 bytes of a NAME, one of a `"char"`,
    /// never half a character.
    pub fn fit(self, text: &str) -> &str {
        let limit = match self {
            CatalogType::Name => NAME_BYTES_MAX,
            CatalogType::Char => 1,
            _ => return text,
        };
        &text[..text.floor_char_boundary(limit)]
    }

    /// The `"char"` that a text says: its first byte, or the byte whose three octal digits stand
    /// behind a backslash.
    ///
    /// # Errors
    /// 0A000 for a byte that is no character by itself.
    pub fn read_char(text: &str) -> Result<String> {
        let byte = match text.as_bytes() {
            [b'\\', digits @ ..]
                if digits.len() == 3
                    && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) =>
            {
                // As in PostgreSQL, what is too much is cut.
                digits.iter().fold(0, |value: u8, digit| {
                    value.wrapping_mul(8).wrapping_add(digit - b'0')
                })
            }
            [first, ..] => *first,
            [] => 0,
        };
        CatalogType::char_of(byte)
    }

    /// The `"char"` that is a byte; byte 0 is the empty one.
    ///
    /// # Errors
    /// 0A000 for a byte that is no character by itself.
    pub fn char_of(byte: u8) -> Result<String> {
        match byte {
            0 => Ok(String::new()),
            1..=127 => Ok(char::from(byte).to_string()),
            _ => Err(Error::unsupported(
                "a \"char\" of a byte above 127 is not supported",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SqlState;

    #[test]
    fn names_of_objects_come_back_from_their_bytes() {
        let object = ObjectName {
            oid: 16_384,
            name: "\"Order\"".to_owned(),
        };
        assert_eq!(ObjectName::from_bytes(&object.to_bytes()), object);
        assert_eq!(ObjectName::from_bytes(b"").oid, 0);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "é".repeat(40);
        assert_eq!(CatalogType::Name.fit(&long).len(), 62);
        assert_eq!(CatalogType::Char.fit("rv"), "r");
        assert_eq!(CatalogType::Char.fit("é"), "");
        for (text, read) in [
            ("rv", "r"),
            ("\\101", "A"),
            ("\\000", ""),
            ("\\18", "\\"),
            ("", ""),
        ] {
            assert_eq!(CatalogType::read_char(text).unwrap(), read);
        }
        for text in ["é", "\\200", "\\777"] {
            let error = CatalogType::read_char(text).unwrap_err();
            assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
        }
        assert_eq!(CatalogType::Inet.fit(&long), long);
    }
}
