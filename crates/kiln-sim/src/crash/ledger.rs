//! What clients were told, and what has to be found for it after a crash.

use std::collections::{BTreeMap, BTreeSet};

use super::definitions::made;
use super::picture::{Picture, Transfer};
use super::schema::STATEMENTS;

/// Something that a client was told, or was about to do.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// All this is there.
    Picture(Box<Picture>),
    /// This many statements of the schema are about to have been run.
    StatementBegun(usize),
    /// This many statements of the schema have been run.
    Statement(usize),
    /// This step of the client that changes the catalog is about to be made.
    StepBegun(u64),
    /// It was made.
    Step(u64),
    /// A transaction with this token is about to begin.
    Begun(i64),
    /// An entry of a counter: number and token.
    Entry(i64, i64, i64),
    /// A counter is at this or above it.
    Counter(i64, i64),
    /// A transfer, and what it was, as far as that is known.
    Transfer(i64, Option<Transfer>),
    /// An account is at this version or above it.
    Account(i64, i64),
    /// A badge is at this version or above it.
    Badge(i64, i64),
    /// An owner has made so many hops or more.
    Owner(i64, i64),
}

/// A fact, and how much of the life was [filmed](kiln_platform::sim::disk::Disk::film) when it was
/// noted.
#[derive(Clone, Debug)]
pub(super) struct Noted {
    pub(super) at: usize,
    pub(super) fact: Fact,
}

/// What has to be found.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// Statements of the schema that were acknowledged, and that were begun.
    statements: (usize, usize),
    steps: (u64, u64),
    tokens: BTreeSet<i64>,
    entries: BTreeMap<(i64, i64), i64>,
    counters: BTreeMap<i64, i64>,
    transfers: BTreeMap<i64, Option<Transfer>>,
    accounts: BTreeMap<i64, i64>,
    badges: BTreeMap<i64, i64>,
    owners: BTreeMap<i64, i64>,
}

fn raise(bounds: &mut BTreeMap<i64, i64>, key: i64, value: i64) {
    let bound = bounds.entry(key).or_insert(value);
    *bound = (*bound).max(value);
}

impl Bounds {
    /// The bounds when what was noted before this picture of the film counts.
    pub(super) fn before(&self, frame: usize, noted: &[Noted]) -> Bounds {
        let mut bounds = self.clone();
        for note in noted.iter().filter(|note| note.at <= frame) {
            bounds.add(&note.fact);
        }
        bounds
    }

    /// Transactions and statements of which clients know that they committed.
    pub(super) fn acknowledged(&self) -> u64 {
        self.entries.len() as u64 + self.transfers.len() as u64 + self.steps.0
    }

    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Picture(picture) => self.add_picture(picture),
            Fact::StatementBegun(count) => self.statements.1 = *count,
            Fact::Statement(count) => self.statements.0 = *count,
            Fact::StepBegun(step) => self.steps.1 = *step,
            Fact::Step(step) => self.steps.0 = *step,
            Fact::Begun(token) => _ = self.tokens.insert(*token),
            Fact::Entry(counter, n, token) => {
                raise(&mut self.counters, *counter, *n);
                self.entries.insert((*counter, *n), *token);
            }
            Fact::Counter(counter, n) => raise(&mut self.counters, *counter, *n),
            Fact::Transfer(token, transfer) => _ = self.transfers.insert(*token, *transfer),
            Fact::Account(id, version) => raise(&mut self.accounts, *id, *version),
            Fact::Badge(id, version) => raise(&mut self.badges, *id, *version),
            Fact::Owner(id, hops) => raise(&mut self.owners, *id, *hops),
        }
    }

    fn add_picture(&mut self, picture: &Picture) {
        self.statements = (picture.statements, picture.statements);
        let step = self.step_of(picture).unwrap_or(self.steps.0);
        self.steps = (step, step);
        self.entries.extend(&picture.entries);
        for (counter, n) in &picture.counters {
            raise(&mut self.counters, *counter, *n);
        }
        for (token, transfer) in &picture.transfers {
            self.transfers.insert(*token, Some(*transfer));
        }
        for (id, (_, version)) in &picture.accounts {
            raise(&mut self.accounts, *id, *version);
        }
        for (id, (_, version)) in &picture.badges {
            raise(&mut self.badges, *id, *version);
        }
        for (id, (_, hops)) in &picture.owners {
            raise(&mut self.owners, *id, *hops);
        }
    }

    /// The step up to which the client has come that changes the catalog.
    pub(super) fn step_of(&self, picture: &Picture) -> Option<u64> {
        (self.steps.0..=self.steps.1).find(|step| made(*step) == picture.made)
    }

    /// All that was acknowledged is there, and nothing that was never begun.
    ///
    /// # Errors
    /// What is lost, or too much.
    pub(super) fn check(&self, picture: &Picture) -> Result<(), String> {
        let (acknowledged, begun) = self.statements;
        if !(acknowledged..=begun.max(acknowledged)).contains(&picture.statements) {
            return Err(format!(
                "{} of {} statements of the schema are there; {acknowledged} were acknowledged, and {begun} begun",
                picture.statements,
                STATEMENTS.len()
            ));
        }
        if self.step_of(picture).is_none() {
            return Err(format!(
                "the catalog and the tables {:?} are those of no step from {} to {}",
                picture.made, self.steps.0, self.steps.1
            ));
        }
        if picture.statements < STATEMENTS.len() {
            return Ok(());
        }
        for (place, token) in &self.entries {
            match picture.entries.get(place) {
                Some(found) if found == token => {}
                found => {
                    return Err(format!(
                        "entry {place:?} was acknowledged with token {token}, and is {found:?}"
                    ));
                }
            }
        }
        for (token, transfer) in &self.transfers {
            match (picture.transfers.get(token), transfer) {
                (Some(found), Some(known)) if found == known => {}
                (Some(_), None) => {}
                (found, known) => {
                    return Err(format!(
                        "transfer {token} was acknowledged as {known:?}, and is {found:?}"
                    ));
                }
            }
        }
        let tokens = picture.entries.values().chain(picture.transfers.keys());
        if let Some(strange) = tokens.into_iter().find(|token| !self.is_known(**token)) {
            return Err(format!("token {strange} was never begun"));
        }
        let versions = |of: &BTreeMap<i64, (i64, i64)>| -> BTreeMap<i64, i64> {
            of.iter()
                .map(|(id, (_, version))| (*id, *version))
                .collect()
        };
        let badges = picture
            .badges
            .iter()
            .map(|(id, (_, version))| (*id, *version))
            .collect();
        for (what, bounds, found) in [
            ("counter", &self.counters, &picture.counters),
            ("account", &self.accounts, &versions(&picture.accounts)),
            ("badge", &self.badges, &badges),
            ("owner", &self.owners, &versions(&picture.owners)),
        ] {
            for (id, bound) in bounds {
                let found = found.get(id);
                if found.is_none_or(|found| found < bound) {
                    return Err(format!(
                        "{what} {id} was seen at {bound}, and is at {found:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_known(&self, token: i64) -> bool {
        self.tokens.contains(&token)
    }
}
