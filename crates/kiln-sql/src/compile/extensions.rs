//! The extensions of PostgreSQL whose functions are built in.

/// The extension that PL/pgSQL is in PostgreSQL. Every database has it.
pub(crate) const PLPGSQL: &str = "plpgsql";

/// An extension that a database may have.
#[derive(Debug)]
pub(crate) struct Extension {
    pub name: &'static str,
    /// The version whose functions are here.
    pub version: &'static str,
    /// What PostgreSQL says of it.
    pub comment: &'static str,
    /// Its functions.
    pub functions: &'static [&'static str],
}

/// All of them, by name.
pub(crate) static EXTENSIONS: &[Extension] = &[
    Extension {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        functions: &[
            "crypt",
            "digest",
            "gen_random_bytes",
            "gen_random_uuid",
            "gen_salt",
            "hmac",
        ],
    },
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        functions: &[
            "uuid_generate_v1",
            "uuid_generate_v1mc",
            "uuid_generate_v3",
            "uuid_generate_v4",
            "uuid_generate_v5",
            "uuid_nil",
            "uuid_ns_dns",
            "uuid_ns_oid",
            "uuid_ns_url",
            "uuid_ns_x500",
        ],
    },
];

impl Extension {
    /// The extension called `name`.
    pub fn find(name: &str) -> Option<&'static Extension> {
        EXTENSIONS.iter().find(|extension| extension.name == name)
    }

    /// Whether one of them has a function called `name`.
    pub fn has_function(name: &str) -> bool {
        let mut all = EXTENSIONS.iter();
        all.any(|extension| extension.functions.contains(&name))
    }
}
