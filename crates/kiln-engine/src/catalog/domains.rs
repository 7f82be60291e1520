//! Domains: types of another type's values, of which only some are taken.

use kiln_storage::schema::Check;
use kiln_storage::types::DataType;

/// A domain. What is of a domain is kept and computed as a value of the type that it is over; the
/// compiler checks a value where it becomes one of the domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its name. All domains are in `public`.
    pub name: String,
    /// The type that it is over in the end, with length, precision and scale.
    pub base: DataType,
    /// The domain that it is over, if it is over one, whose checks hold for its values too.
    pub over: Option<String>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The value of a column that has no default value of its own, as SQL text.
    pub default: Option<String>,
    /// The collation that it was declared with. Texts are compared byte by byte whatever it is.
    pub collation: Option<String>,
    /// Its own checks, in which VALUE is the value.
    pub checks: Vec<Check>,
}

impl Domain {
    /// Its check called `name`.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }
}
