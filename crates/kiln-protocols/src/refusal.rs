//! Which protocols cannot run under which basis factors, and why.

use crate::factors::Factors;
use crate::protocol::Configuration;
use crate::registry::Protocol;

impl Factors {
    /// A sentence that says why a protocol, with its options, cannot run under these, if it cannot.
    /// Factors that it does not have change nothing, but for those that make another protocol of
    /// the one that has them.
    pub fn refusal(self, configuration: Configuration) -> Option<String> {
        let departures = self.departures();
        let departs = |factor: &str| departures.iter().any(|(name, _)| *name == factor);
        let mut alone = ALONE.into_iter();
        let (factor, what) = alone.find(|(factor, _)| departs(factor))?;
        let is_plain = configuration == configuration.protocol;
        let has_it = is_plain && configuration.protocol.has_factor(factor);
        (!has_it).then(|| {
            let owners = names(owners(factor));
            format!("{what} there for plain {owners} alone, not for {configuration}")
        })
    }

    /// A sentence that says why these protocols cannot all be run under these, if they cannot: one
    /// of them [refuses](Factors::refusal), one does not have what all have to have to be compared,
    /// or none of them has what departs.
    pub fn refusal_among(self, asked: &[Configuration]) -> Option<String> {
        if let Some(refusal) = asked.iter().find_map(|one| self.refusal(*one)) {
            return Some(refusal);
        }
        let departures = self.departures();
        for (factor, what) in SHARED {
            let departs = departures.iter().any(|(name, _)| *name == factor);
            let mut asked = asked.iter();
            if departs && let Some(one) = asked.find(|one| !one.protocol.has_factor(factor)) {
                let owners = names(owners(factor));
                return Some(format!("{what} there for {owners}, not for {one}"));
            }
        }
        let is_strange = |factor: &str| {
            let is_had = asked.iter().any(|one| one.protocol.has_factor(factor));
            owners(factor).next().is_some() && !asked.is_empty() && !is_had
        };
        let mut departures = departures.into_iter();
        let (factor, _) = departures.find(|(factor, _)| is_strange(factor))?;
        Some(format!(
            "--{factor} is an option of {}, and the protocols asked for are {}",
            names(owners(factor)),
            names(asked.iter()),
        ))
    }
}

/// Factors that make another protocol of the one that has them: what they are called, and what is
/// told of them.
const ALONE: [(&str, &str); 3] = [
    ("aborts", "aborts by unwinding are"),
    ("deadlock", "deadlock avoidance by sorting is"),
    ("early-abort", "attempts without early aborts are"),
];

/// Factors that change which transactions are in each other's way, so that those who ask for one
/// ask only for protocols that have it: what they are called, and what is told of them.
const SHARED: [(&str, &str); 1] = [("claims", "claims by column group are")];

/// The protocols that have a factor; none for those that all have.
fn owners(factor: &str) -> impl Iterator<Item = Protocol> {
    let all = Protocol::ALL.into_iter();
    all.filter(move |protocol| protocol.has_factor(factor))
}

fn names(all: impl Iterator<Item = impl ToString>) -> String {
    let names: Vec<String> = all.map(|one| one.to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::{AbortMechanism, Claims, Regulation};

    #[test]
    fn strangers_are_refused_by_what_the_rows_say() {
        let plain = |protocol| Configuration::of(protocol);
        let both = [plain(Protocol::Silo), plain(Protocol::Strife)];
        assert_eq!(Factors::default().refusal_among(&both), None);

        let mut batched = Factors::default();
        batched.batches.size = 7;
        assert_eq!(batched.refusal_among(&both), None);
        assert_eq!(batched.refusal(both[0]), None);
        assert_eq!(
            batched.refusal_among(&both[..1]).as_deref(),
            Some("--batch-size is an option of strife, and the protocols asked for are silo")
        );

        let mut unwinding = batched;
        unwinding.abort_mechanism = AbortMechanism::Unwind;
        assert_eq!(unwinding.refusal(both[0]), None);
        let refusal = "aborts by unwinding are there for plain silo alone, not for strife";
        assert_eq!(unwinding.refusal(both[1]).as_deref(), Some(refusal));
        assert_eq!(unwinding.refusal_among(&both).as_deref(), Some(refusal));
        let with_options = unwinding.refusal(Configuration::DEFAULT);
        assert!(with_options.is_some_and(|refusal| refusal.ends_with("not for silo+cu+ts")));

        let grouped = Factors {
            claims: Claims::Columns,
            ..Factors::default()
        };
        let table: Configuration = "lock-sorted+table".parse().expect("a configuration");
        assert_eq!(grouped.refusal_among(&[table]), None);
        let refusal = grouped.refusal_among(&[table, both[1]]);
        let refusal = refusal.expect("strife has claims by record");
        assert!(refusal.starts_with("claims by column group are there for lock-sorted, "));
        assert!(refusal.ends_with("not for strife"));

        let regulated = Factors {
            regulation: Regulation::None,
            ..Factors::default()
        };
        assert_eq!(regulated.refusal_among(&both), None);
    }
}
