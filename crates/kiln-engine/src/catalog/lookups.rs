//! What a compiler looked up in the catalog by name, so that what it compiled can follow.

use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::sync::{Arc, Weak};
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;
use kiln_storage::types::{EnumType, RowType};

use super::domains::Domain;
use super::objects::Catalog;
use super::procedure::Procedure;
use super::statement::Source;
use super::views::View;
use crate::roles::{Access, Object};

/// The names that the compiler of a procedure looked up, and what it found; names without an
/// object too. As long as each look-up ends as it did, compiling again gives the same program.
#[derive(Clone, Debug, Default)]
pub struct Lookups {
    tables: BTreeMap<String, Option<Weak<Table>>>,
    procedures: BTreeMap<String, Option<Arc<Source>>>,
    sequences: BTreeMap<String, Option<Weak<Sequence>>>,
    views: BTreeMap<String, Option<Arc<View>>>,
    enums: BTreeMap<String, Option<Arc<EnumType>>>,
    composites: BTreeMap<String, Option<Arc<RowType>>>,
    domains: BTreeMap<String, Option<Arc<Domain>>>,
    /// By the table referred to.
    referencing: BTreeMap<String, Vec<Weak<Table>>>,
    accesses: BTreeSet<Access>,
}

impl Lookups {
    /// The compiler looked for a table.
    pub fn note_table(&mut self, name: &str, found: Option<&Arc<Table>>) {
        if !self.tables.contains_key(name) {
            self.tables
                .insert(name.to_owned(), found.map(Arc::downgrade));
        }
    }

    /// The compiler looked for a procedure.
    pub fn note_procedure(&mut self, name: &str, found: Option<&Arc<Procedure>>) {
        if !self.procedures.contains_key(name) {
            let source = found.and_then(|procedure| procedure.source().cloned());
            self.procedures.insert(name.to_owned(), source);
        }
    }

    /// The compiler looked for a sequence.
    pub fn note_sequence(&mut self, name: &str, found: Option<&Arc<Sequence>>) {
        if !self.sequences.contains_key(name) {
            let found = found.map(Arc::downgrade);
            self.sequences.insert(name.to_owned(), found);
        }
    }

    /// The compiler looked for a view.
    pub fn note_view(&mut self, name: &str, found: Option<&Arc<View>>) {
        if !self.views.contains_key(name) {
            self.views.insert(name.to_owned(), found.cloned());
        }
    }

    /// The compiler looked for an enum.
    pub fn note_enum(&mut self, name: &str, found: Option<&Arc<EnumType>>) {
        if !self.enums.contains_key(name) {
            self.enums.insert(name.to_owned(), found.cloned());
        }
    }

    /// The compiler looked for a composite type.
    pub fn note_composite(&mut self, name: &str, found: Option<&Arc<RowType>>) {
        if !self.composites.contains_key(name) {
            self.composites.insert(name.to_owned(), found.cloned());
        }
    }

    /// The compiler looked for a domain.
    pub fn note_domain(&mut self, name: &str, found: Option<&Arc<Domain>>) {
        if !self.domains.contains_key(name) {
            self.domains.insert(name.to_owned(), found.cloned());
        }
    }

    /// The names of the types of users that were looked for and found.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let enums = self.enums.iter().filter(|(_, found)| found.is_some());
        let domains = self.domains.iter().filter(|(_, found)| found.is_some());
        let composites = self.composites.iter().filter(|(_, found)| found.is_some());
        let enums = enums.map(|(name, _)| name.as_str());
        let composites = composites.map(|(name, _)| name.as_str());
        let enums = enums.chain(composites);
        enums.chain(domains.map(|(name, _)| name.as_str()))
    }

    /// The compiler looked for the tables that refer to the one called `name`, and found these, in
    /// the order of their names.
    pub fn note_referencing(&mut self, name: &str, found: &[Arc<Table>]) {
        if !self.referencing.contains_key(name) {
            let found = found.iter().map(Arc::downgrade);
            self.referencing.insert(name.to_owned(), found.collect());
        }
    }

    /// The names of the sequences that were looked for.
    pub fn sequences(&self) -> impl Iterator<Item = &str> {
        self.sequences.keys().map(String::as_str)
    }

    /// The names of the procedures that were looked for and found.
    pub fn procedures(&self) -> impl Iterator<Item = &str> {
        let found = self.procedures.iter().filter(|(_, found)| found.is_some());
        found.map(|(name, _)| name.as_str())
    }

    /// What was compiled does something that not every role may do.
    pub fn note_access(&mut self, access: Access) {
        self.accesses.insert(access);
    }

    /// What was compiled is the body of `routine`, and what its caller had to be allowed to do the
    /// owner of that one must be.
    pub fn act_on_behalf_of(&mut self, routine: &Object) {
        let accesses = std::mem::take(&mut self.accesses).into_iter();
        let on_behalf = accesses.map(|access| Access {
            on_behalf_of: access.on_behalf_of.or_else(|| Some(routine.clone())),
            ..access
        });
        self.accesses = on_behalf.collect();
    }

    /// What its caller must be allowed to do.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.accesses.iter()
    }

    /// Whether all look-ups end in `catalog` as they did.
    pub(crate) fn hold_in(&self, catalog: &Catalog) -> bool {
        let is_same =
            |known: &Weak<Table>, table: &Arc<Table>| known.as_ptr() == Arc::as_ptr(table);
        let mut tables = self.tables.iter();
        let mut procedures = self.procedures.iter();
        let mut referencing = self.referencing.iter();
        let mut sequences = self.sequences.iter();
        let mut views = self.views.iter();
        let mut enums = self.enums.iter();
        let mut composites = self.composites.iter();
        let mut domains = self.domains.iter();
        tables.all(
            |(name, known)| match (known.as_ref(), catalog.table(name)) {
                (Some(known), Some(table)) => is_same(known, table),
                (known, table) => known.is_none() && table.is_none(),
            },
        ) && procedures.all(|(name, known)| {
            let procedure = catalog.procedure(name);
            known.as_ref() == procedure.and_then(|procedure| procedure.source())
        }) && sequences.all(|(name, known)| {
            let found = catalog.sequence(name).map(Arc::as_ptr);
            known.as_ref().map(Weak::as_ptr) == found
        }) && views.all(|(name, known)| {
            let found = catalog.views.get(name).map(Arc::as_ptr);
            known.as_ref().map(Arc::as_ptr) == found
        }) && enums.all(|(name, known)| {
            let found = catalog.enumeration(name).map(Arc::as_ptr);
            known.as_ref().map(Arc::as_ptr) == found
        }) && composites.all(|(name, known)| {
            let found = catalog.composite(name).map(Arc::as_ptr);
            known.as_ref().map(Arc::as_ptr) == found
        }) && domains.all(|(name, known)| {
            let found = catalog.domain(name).map(Arc::as_ptr);
            known.as_ref().map(Arc::as_ptr) == found
        }) && referencing.all(|(name, known)| {
            let names = catalog.referencing(name);
            let tables = names.filter_map(|name| catalog.table(name));
            known.len() == catalog.referencing(name).count()
                && known
                    .iter()
                    .zip(tables)
                    .all(|(known, table)| is_same(known, table))
        })
    }
}
