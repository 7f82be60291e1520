//! A domain among a catalog's objects.

use kiln_engine::{Catalog, Domain, NumberedObject};
use kiln_platform::sync::Arc;

/// A domain, and the numbers of it, of the type of its arrays and of its checks in their order.
pub(crate) struct DomainEntry {
    pub oid: u32,
    pub array_oid: u32,
    pub domain: Arc<Domain>,
    pub checks: Vec<u32>,
}

impl DomainEntry {
    pub fn new(domain: &Arc<Domain>, catalog: &Catalog) -> DomainEntry {
        let name = || domain.name.clone();
        let number = |object| catalog.numbers().get(&object).unwrap_or_default();
        let checks = domain.checks.iter();
        let checks =
            checks.map(|check| number(NumberedObject::DomainCheck(name(), check.name.clone())));
        DomainEntry {
            oid: number(NumberedObject::Domain(name())),
            array_oid: number(NumberedObject::DomainArray(name())),
            checks: checks.collect(),
            domain: domain.clone(),
        }
    }
}
