//! Which roles are members of which: what a role may do, its members may do too.

use std::collections::{BTreeMap, BTreeSet};

use kiln_storage::error::{Error, Result, SqlState};

/// The roles that roles are members of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memberships {
    /// By member; never empty.
    roles: BTreeMap<String, BTreeSet<String>>,
}

impl Memberships {
    /// Each membership: the member, and the role.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.roles.iter();
        all.flat_map(|(member, roles)| roles.iter().map(|role| (member.as_str(), role.as_str())))
    }

    /// The roles that `member` is a member of, through others too; without itself.
    pub fn of(&self, member: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![member];
        while let Some(next) = open.pop() {
            for role in self.roles.get(next).into_iter().flatten() {
                if found.insert(role.as_str()) {
                    open.push(role);
                }
            }
        }
        found
    }

    /// Whether no role is a member of another one.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Makes a role a member of another one; says whether it was none.
    ///
    /// # Errors
    /// 0LP01 when the other one is a member of it.
    pub fn add(&mut self, member: &str, role: &str) -> Result<bool> {
        if member == role || self.of(role).contains(member) {
            let message = format!("role \"{role}\" is a member of role \"{member}\"");
            return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
        }
        let roles = self.roles.entry(member.to_owned()).or_default();
        Ok(roles.insert(role.to_owned()))
    }

    /// Ends a membership; says whether there was one.
    pub fn remove(&mut self, member: &str, role: &str) -> bool {
        let Some(roles) = self.roles.get_mut(member) else {
            return false;
        };
        let was_member = roles.remove(role);
        if roles.is_empty() {
            self.roles.remove(member);
        }
        was_member
    }

    /// Ends all memberships of a role that goes, and in it.
    pub fn forget(&mut self, role: &str) {
        self.roles.remove(role);
        self.roles.retain(|_, roles| {
            roles.remove(role);
            !roles.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_members_are_members() {
        let mut memberships = Memberships::default();
        assert!(memberships.add("a", "b").expect("no circle"));
        assert!(memberships.add("b", "c").expect("no circle"));
        assert!(!memberships.add("a", "b").expect("no circle"));
        assert_eq!(memberships.of("a"), BTreeSet::from(["b", "c"]));
        let circle = memberships.add("c", "a").expect_err("a circle");
        assert_eq!(circle.state(), SqlState::INVALID_GRANT_OPERATION);
        assert!(memberships.remove("b", "c") && !memberships.remove("b", "c"));
        memberships.forget("b");
        assert!(memberships.is_empty());
    }
}
