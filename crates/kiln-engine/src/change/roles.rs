//! Roles made and removed, and privileges given and taken away.

use kiln_storage::error::Result;

use super::catalog_change::CatalogChange;
use crate::roles::{Object, ObjectKind, Privileges, Role, RoleSettings};

impl CatalogChange<'_> {
    /// Adds a role.
    ///
    /// # Errors
    /// 42710 when the name is taken, 42939 for one that is reserved.
    pub fn create_role(&mut self, role: Role) -> Result<()> {
        self.roles().create(role)
    }

    /// Replaces the role that has this name.
    ///
    /// # Errors
    /// 42704 when no role has the name; 0A000 when the first role would no longer be a superuser,
    /// or could not connect.
    pub fn alter_role(&mut self, role: Role) -> Result<()> {
        self.roles().replace(role)
    }

    /// Removes a role.
    ///
    /// # Errors
    /// 42704 when no role has the name; 2BP01 for the first role, and for one that has privileges.
    pub fn drop_role(&mut self, name: &str) -> Result<()> {
        self.roles().drop(name)
    }

    /// Gives privileges for an object to a role, or to [`PUBLIC`](crate::PUBLIC).
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn grant(&mut self, object: &Object, grantee: &str, granted: Privileges) -> Result<()> {
        (self.roles()).change(object, grantee, |privileges| privileges.and(granted))
    }

    /// Takes privileges for an object away.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn revoke(&mut self, object: &Object, grantee: &str, revoked: Privileges) -> Result<()> {
        (self.roles()).change(object, grantee, |privileges| privileges.without(revoked))
    }

    /// Gives an object to a role.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn change_owner(&mut self, object: Object, owner: &str) -> Result<()> {
        self.roles().set_owner(object, owner)
    }

    /// Gives all that belongs to a role to another one.
    ///
    /// # Errors
    /// 42704 when there is no such role; 2BP01 for the first role, to which the system belongs.
    pub fn reassign_owned(&mut self, from: &str, to: &str) -> Result<()> {
        self.roles().reassign_owned(from, to)
    }

    /// Takes all privileges of a role away.
    ///
    /// # Errors
    /// 0A000 when objects belong to it; 2BP01 for the first role.
    pub fn revoke_all(&mut self, role: &str) -> Result<()> {
        self.roles().revoke_all(role)
    }

    /// Changes the settings with which sessions of a role begin, or with `None` of all.
    ///
    /// # Errors
    /// 42704 when there is no such role; 53400 for too many.
    pub fn change_settings(
        &mut self,
        role: Option<&str>,
        change: impl FnOnce(&mut RoleSettings),
    ) -> Result<()> {
        self.roles().change_settings(role, change)
    }

    /// Makes a role a member of another one: it may do what that one may do. Says whether it was
    /// none before.
    ///
    /// # Errors
    /// 42704 when there is no such role; 0LP01 when the other one is a member of it.
    pub fn add_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.roles().add_member(member, role)
    }

    /// Ends a membership; says whether there was one.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn remove_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.roles().remove_member(member, role)
    }

    /// Changes what a grantee may do with objects of a kind that are made from here on, in one
    /// schema or in all.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn change_default_privileges(
        &mut self,
        kind: ObjectKind,
        schema: Option<&str>,
        grantee: &str,
        change: impl FnOnce(Privileges) -> Privileges,
    ) -> Result<()> {
        (self.roles()).change_defaults(kind, schema, grantee, change)
    }
}
