//! The path along which names without a schema are looked for.
//!
//! A catalog keeps its objects by qualified names ([`kiln_storage::qualified`]), and look-ups take
//! these alone: who reads a name that a client wrote makes a qualified one of it first, with the
//! path by which the catalog is seen. The catalog in force is seen along the default path; a
//! session with another one sees a copy.

use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::qualified::PUBLIC_SCHEMA;

use super::text_form::{Counted, Reader};

/// The schemas in which a name without one is looked for, in their order; `pg_catalog` comes before
/// all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SearchPath(Option<Arc<[String]>>);

impl SearchPath {
    /// These schemas, each of which there is.
    pub fn new(schemas: Vec<String>) -> SearchPath {
        let is_default = schemas.iter().eq([PUBLIC_SCHEMA].iter());
        SearchPath((!is_default).then(|| schemas.into()))
    }

    /// Whether it is `public` alone.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// The schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        let default = self.0.is_none().then_some(PUBLIC_SCHEMA);
        let schemas = self.0.iter().flat_map(|schemas| schemas.iter());
        default.into_iter().chain(schemas.map(String::as_str))
    }

    /// The same path without a schema.
    #[must_use]
    pub fn without(&self, schema: &str) -> SearchPath {
        match self.schemas().any(|known| known == schema) {
            true => {
                let others = self.schemas().filter(|known| *known != schema);
                SearchPath::new(others.map(str::to_owned).collect())
            }
            false => self.clone(),
        }
    }

    /// The same path with a schema before all others, if it does not have it.
    #[must_use]
    pub fn behind(&self, schema: &str) -> SearchPath {
        match self.schemas().any(|known| known == schema) {
            true => self.clone(),
            false => {
                let all = [schema].into_iter().chain(self.schemas());
                SearchPath::new(all.map(str::to_owned).collect())
            }
        }
    }

    /// Where a new object without a schema goes.
    pub fn first(&self) -> Option<&str> {
        self.schemas().next()
    }
}

/// As `path in 4:shop `; the default path as nothing.
impl fmt::Display for SearchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(schemas) = &self.0 else {
            return Ok(());
        };
        f.write_str("path ")?;
        schemas
            .iter()
            .try_for_each(|schema| write!(f, "in {} ", Counted(schema)))
    }
}

/// Reads what [`SearchPath`] writes.
///
/// # Errors
/// XX001.
pub(crate) fn read_path(reader: &mut Reader<'_>) -> Result<SearchPath> {
    if !reader.takes("path") {
        return Ok(SearchPath::default());
    }
    let mut schemas = Vec::new();
    while reader.takes("in") {
        schemas.push(reader.counted()?.to_owned());
    }
    Ok(SearchPath::new(schemas))
}
