//! Functions over the catalog.
//!
//! Each gets the snapshot, the heap and its arguments. A NULL argument makes the result NULL,
//! unless it is said otherwise.

use kiln_engine::{Access, Object, Privilege, Role};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::beside;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, ObjectName};

use super::outside::{CatalogCall, CatalogFunction};
use super::snapshot::{CommentClass, ObjectOf, Snapshot, TableEntry};
use super::{DATABASE, DATABASE_OID, PUBLIC_OID, builtin, deparse, names, triggers};
use crate::compile::sql_name;

/// The number in a slot.
fn oid_of(slot: Slot) -> u32 {
    u32::try_from(slot.as_i64()).unwrap_or_default()
}

/// Whether this is the session's temporary schema.
fn is_own(snapshot: &Snapshot, schema: &str) -> bool {
    let own = snapshot.temporary.as_ref();
    own.is_some_and(|(_, own)| own == schema)
}

fn push_text(heap: &mut Heap, text: Option<String>) -> Slot {
    text.map_or(Slot::NULL, |text| heap.push_str(&text))
}

/// Declares functions that NULL arguments make NULL.
macro_rules! functions {
    ($($constant:ident = $name:literal, |$snapshot:ident, $heap:ident $(, $argument:ident)*| $body:expr;)*) => {
        $(pub(crate) const $constant: CatalogCall = CatalogCall {
            name: $name,
            function: {
                fn function($snapshot: &Snapshot, $heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                    let [$($argument),*] = arguments else {
                        return Ok(Slot::NULL);
                    };
                    if arguments.iter().any(|argument| argument.is_null()) {
                        return Ok(Slot::NULL);
                    }
                    $(let $argument = *$argument;)*
                    let _ = (&$snapshot, &$heap);
                    $body
                }
                function
            },
        };)*
    };
}

functions! {
    CURRENT_SCHEMA = "current_schema", |snapshot, heap| {
        let mut schemas = snapshot.path.schemas();
        let first = schemas.find(|schema| !is_own(snapshot, schema));
        Ok(push_text(heap, first.map(str::to_owned)))
    };
    CURRENT_SCHEMAS = "current_schemas", |snapshot, heap, with_implicit| {
        let implicit = with_implicit.as_bool();
        let (own, others): (Vec<&str>, Vec<&str>) =
            snapshot.path.schemas().partition(|schema| is_own(snapshot, schema));
        let own = own.into_iter().filter(|_| implicit);
        let system = implicit.then_some("pg_catalog");
        let names = own.chain(system).chain(others);
        let names: Vec<Slot> = names.map(|name| heap.push_str(name)).collect();
        Ok(heap.push_array(&names))
    };
    PG_MY_TEMP_SCHEMA = "pg_my_temp_schema", |snapshot, heap| {
        let own = snapshot.temporary.as_ref().map_or(0, |(oid, _)| *oid);
        Ok(Slot::from_i64(i64::from(own)))
    };
    PG_GET_CONSTRAINTDEF = "pg_get_constraintdef", |snapshot, heap, oid| {
        Ok(match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::Constraint(table, constraint)) => {
                heap.push_str(&deparse::constraint(snapshot, table, constraint))
            }
            Some(ObjectOf::DomainCheck(entry, check)) => {
                heap.push_str(&entry.definition(check, false))
            }
            _ => Slot::NULL,
        })
    };
    PG_GET_CONSTRAINTDEF_PRETTY = "pg_get_constraintdef", |snapshot, heap, oid, pretty| {
        match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::Constraint(table, constraint)) if pretty.as_bool() => {
                Ok(heap.push_str(&deparse::pretty_constraint(snapshot, table, constraint)))
            }
            Some(ObjectOf::DomainCheck(entry, check)) if pretty.as_bool() => {
                Ok(heap.push_str(&entry.definition(check, true)))
            }
            _ => (PG_GET_CONSTRAINTDEF.function)(snapshot, heap, &[oid]),
        }
    };
    PG_GET_INDEXDEF = "pg_get_indexdef", |snapshot, heap, oid| {
        Ok(match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::Index(table, index)) => heap.push_str(&deparse::index(table, index)),
            _ => Slot::NULL,
        })
    };
    PG_GET_INDEXDEF_COLUMN = "pg_get_indexdef", |snapshot, heap, oid, column, pretty| {
        if column.as_i64() == 0 {
            return match snapshot.object(oid_of(oid)) {
                Some(ObjectOf::Index(table, index)) if pretty.as_bool() => {
                    Ok(heap.push_str(&deparse::pretty_index(table, index)))
                }
                _ => (PG_GET_INDEXDEF.function)(snapshot, heap, &[oid]),
            };
        }
        let Some(ObjectOf::Index(table, index)) = snapshot.object(oid_of(oid)) else {
            return Ok(Slot::NULL);
        };
        let at = usize::try_from(column.as_i64() - 1).ok();
        let column = at.and_then(|at| index.definition.key_columns().get(at));
        let print = |text: &str| match pretty.as_bool() {
            true => super::pretty::pretty(text),
            false => text.to_owned(),
        };
        let text = column.map(|column| deparse::index_key(table, *column, &print));
        Ok(heap.push_str(&text.unwrap_or_default()))
    };
    PG_GET_FUNCTIONDEF = "pg_get_functiondef", |snapshot, heap, oid| {
        let routine = match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::Routine(routine)) => routine,
            _ => return Ok(Slot::NULL),
        };
        let facts = routine.facts.as_ref();
        Ok(push_text(heap, facts.map(|facts| deparse::routine(routine, facts))))
    };
    PG_GET_FUNCTION_ARGUMENTS = "pg_get_function_arguments", |snapshot, heap, oid| {
        let facts = snapshot.facts_of(oid_of(oid));
        let text = facts.map(|facts| deparse::arguments(facts, true));
        Ok(push_text(heap, text.or_else(|| snapshot.builtin_arguments(oid_of(oid)))))
    };
    PG_GET_FUNCTION_IDENTITY_ARGUMENTS = "pg_get_function_identity_arguments", |snapshot, heap, oid| {
        let facts = snapshot.facts_of(oid_of(oid));
        let text = facts.map(|facts| deparse::arguments(facts, false));
        Ok(push_text(heap, text.or_else(|| snapshot.builtin_arguments(oid_of(oid)))))
    };
    PG_GET_FUNCTION_RESULT = "pg_get_function_result", |snapshot, heap, oid| {
        let facts = snapshot.facts_of(oid_of(oid));
        let text = match facts {
            Some(facts) => deparse::result(facts),
            None => snapshot.builtin_result(oid_of(oid)),
        };
        Ok(push_text(heap, text))
    };
    PG_GET_USERBYID = "pg_get_userbyid", |snapshot, heap, oid| {
        let oid = oid_of(oid);
        Ok(match snapshot.object(oid) {
            Some(ObjectOf::Role(role)) => heap.push_str(&role.name),
            _ if oid == 6171 => heap.push_str("pg_database_owner"),
            _ => heap.push_str(&format!("unknown (OID={oid})")),
        })
    };
    PG_GET_EXPR_PRETTY = "pg_get_expr", |snapshot, heap, node, _relation, pretty| {
        Ok(match pretty.as_bool() {
            true => {
                let text = super::pretty::pretty(heap.str(node));
                heap.push_str(&text)
            }
            false => node,
        })
    };
    // No table is divided.
    PG_PARTITION_ANCESTORS = "pg_partition_ancestors", |snapshot, heap, _relation| {
        Ok(heap.push_array(&[]))
    };
    OBJ_DESCRIPTION_BY_OID = "obj_description", |snapshot, heap, oid| {
        let said = snapshot.comment(oid_of(oid), 0, |class| !class.is_shared());
        Ok(push_text(heap, said.map(str::to_owned)))
    };
    OBJ_DESCRIPTION = "obj_description", |snapshot, heap, oid, class| {
        let wanted = heap.str(class);
        let said = snapshot.comment(oid_of(oid), 0, |class| {
            !class.is_shared() && class.name() == wanted
        });
        Ok(push_text(heap, said.map(str::to_owned)))
    };
    COL_DESCRIPTION = "col_description", |snapshot, heap, relation, column| {
        let column = i32::try_from(column.as_i64()).unwrap_or(-1);
        let said = snapshot.comment(oid_of(relation), column, |class| {
            class == CommentClass::Class
        });
        Ok(push_text(heap, said.map(str::to_owned)))
    };
    SHOBJ_DESCRIPTION = "shobj_description", |snapshot, heap, oid, class| {
        let wanted = heap.str(class);
        let said = snapshot.comment(oid_of(oid), 0, |class| {
            class.is_shared() && class.name() == wanted
        });
        Ok(push_text(heap, said.map(str::to_owned)))
    };
    PG_GET_SERIAL_SEQUENCE = "pg_get_serial_sequence", |snapshot, heap, table, column| {
        let class = snapshot.object_named(CatalogType::RegClass, heap.str(table))?;
        let Some(ObjectOf::Table(table)) = snapshot.object(class.oid) else {
            return Ok(Slot::NULL);
        };
        let column = heap.str(column);
        if table.schema().column(column).is_none() {
            let message = format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                table.name()
            );
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        }
        let owned = snapshot.owned_sequence(table.qualified(), column);
        let name = owned.map(|it| sql_name(it.sequence.name()));
        Ok(push_text(heap, name))
    };
    PG_SEQUENCE_LAST_VALUE = "pg_sequence_last_value", |snapshot, heap, sequence| {
        let object = ObjectName::from_bytes(heap.bytes(sequence));
        let Some(ObjectOf::Sequence(entry)) = snapshot.object(object.oid) else {
            return Ok(Slot::NULL);
        };
        let (last, _, is_called) = entry.sequence.shown();
        Ok(if is_called { Slot::from_i64(last) } else { Slot::NULL })
    };
    PG_GET_VIEWDEF = "pg_get_viewdef", |snapshot, heap, oid| {
        Ok(match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::View(entry)) => heap.push_str(&deparse::view(&entry.view)),
            Some(ObjectOf::Table(TableEntry {
                view: Some(view), ..
            })) => heap.push_str(&deparse::view(view)),
            _ => Slot::NULL,
        })
    };
    PG_GET_VIEWDEF_PRETTY = "pg_get_viewdef", |snapshot, heap, oid, _pretty| {
        (PG_GET_VIEWDEF.function)(snapshot, heap, &[oid])
    };
    PG_GET_VIEWDEF_BY_NAME = "pg_get_viewdef", |snapshot, heap, name| {
        let class = snapshot.object_named(CatalogType::RegClass, heap.str(name))?;
        Ok(match snapshot.object(class.oid) {
            Some(ObjectOf::View(entry)) => heap.push_str(&deparse::view(&entry.view)),
            Some(ObjectOf::Table(TableEntry {
                view: Some(view), ..
            })) => heap.push_str(&deparse::view(view)),
            _ => {
                let message = format!("\"{}\" is not a view", class.name);
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
        })
    };
    PG_GET_VIEWDEF_BY_NAME_PRETTY = "pg_get_viewdef", |snapshot, heap, name, _pretty| {
        (PG_GET_VIEWDEF_BY_NAME.function)(snapshot, heap, &[name])
    };
    PG_GET_TRIGGERDEF = "pg_get_triggerdef", |snapshot, heap, oid| {
        (PG_GET_TRIGGERDEF_PRETTY.function)(snapshot, heap, &[oid, Slot::FALSE])
    };
    PG_GET_TRIGGERDEF_PRETTY = "pg_get_triggerdef", |snapshot, heap, oid, pretty| {
        Ok(match snapshot.object(oid_of(oid)) {
            Some(ObjectOf::Trigger(table, trigger)) => {
                let text = triggers::definition(table, trigger, pretty.as_bool());
                heap.push_str(&text)
            }
            _ => Slot::NULL,
        })
    };
    // There are no rules, and no statistics over several columns.
    NOTHING_BY_OID = "pg_get_ruledef", |snapshot, heap, _oid| Ok(Slot::NULL);
    NOTHING_BY_OID_PRETTY = "pg_get_ruledef", |snapshot, heap, _oid, _pretty| Ok(Slot::NULL);

    PG_TABLE_IS_VISIBLE = "pg_table_is_visible", |snapshot, heap, oid| {
        let oid = oid_of(oid);
        let visible = |name: &str| Slot::from_bool(snapshot.is_visible(name));
        Ok(match snapshot.object(oid) {
            Some(ObjectOf::Table(table)) => visible(table.qualified()),
            Some(ObjectOf::Index(table, index)) => {
                visible(&beside(table.qualified(), &index.definition.name))
            }
            Some(ObjectOf::Sequence(it)) => visible(it.sequence.name()),
            Some(ObjectOf::View(it)) => visible(&it.view.name),
            Some(ObjectOf::CompositeRelation(of)) => visible(of.name()),
            _ => match Snapshot::system_relation(oid) {
                Some(relation) => Slot::from_bool(relation.schema == "pg_catalog"),
                None => Slot::NULL,
            },
        })
    };
    PG_TYPE_IS_VISIBLE = "pg_type_is_visible", |snapshot, heap, oid| {
        Ok(match snapshot.type_name(oid_of(oid)) {
            Some(_) => Slot::TRUE,
            None => Slot::NULL,
        })
    };
    PG_FUNCTION_IS_VISIBLE = "pg_function_is_visible", |snapshot, heap, oid| {
        let printed = snapshot.object_name(CatalogType::RegProc, oid_of(oid));
        let is_known = printed.name != oid_of(oid).to_string();
        Ok(if is_known { Slot::TRUE } else { Slot::NULL })
    };
    IS_VISIBLE = "pg_operator_is_visible", |snapshot, heap, _oid| Ok(Slot::TRUE);

    FORMAT_TYPE_OF = "format_type", |snapshot, heap, oid, modifier| {
        let text = snapshot.formatted_type(oid_of(oid), Some(modifier.as_i64()));
        Ok(heap.push_str(&text))
    };

    TO_REGCLASS = "to_regclass", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegClass, name)
    };
    TO_REGTYPE = "to_regtype", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegType, name)
    };
    TO_REGPROC = "to_regproc", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegProc, name)
    };
    TO_REGPROCEDURE = "to_regprocedure", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegProcedure, name)
    };
    TO_REGNAMESPACE = "to_regnamespace", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegNamespace, name)
    };
    TO_REGROLE = "to_regrole", |snapshot, heap, name| {
        object_or_null(snapshot, heap, CatalogType::RegRole, name)
    };

    PG_RELATION_SIZE = "pg_relation_size", |snapshot, heap, relation| {
        Ok(size(snapshot, ObjectName::from_bytes(heap.bytes(relation)), Part::Records))
    };
    PG_RELATION_SIZE_OF_FORK = "pg_relation_size", |snapshot, heap, relation, _fork| {
        Ok(size(snapshot, ObjectName::from_bytes(heap.bytes(relation)), Part::Records))
    };
    PG_INDEXES_SIZE = "pg_indexes_size", |snapshot, heap, relation| {
        Ok(size(snapshot, ObjectName::from_bytes(heap.bytes(relation)), Part::Indexes))
    };
    PG_TOTAL_RELATION_SIZE = "pg_total_relation_size", |snapshot, heap, relation| {
        Ok(size(snapshot, ObjectName::from_bytes(heap.bytes(relation)), Part::All))
    };
    PG_DATABASE_SIZE = "pg_database_size", |snapshot, heap, _database| {
        let sizes = snapshot.tables.iter().map(|table| bytes_of(&table.table, Part::All));
        Ok(Slot::from_i64(sizes.sum()))
    };
    PG_RELATION_IS_PUBLISHABLE = "pg_relation_is_publishable", |snapshot, heap, relation| {
        let object = ObjectName::from_bytes(heap.bytes(relation));
        Ok(Slot::from_bool(matches!(snapshot.object(object.oid), Some(ObjectOf::Table(_)))))
    };

    HAS_TABLE_PRIVILEGE_BY_NAME = "has_table_privilege", |snapshot, heap, role, table, wanted| {
        let table = snapshot.object_named(CatalogType::RegClass, heap.str(table))?;
        has_table_privilege(snapshot, heap, role, table.oid, wanted)
    };
    HAS_TABLE_PRIVILEGE_BY_OID = "has_table_privilege", |snapshot, heap, role, table, wanted| {
        has_table_privilege(snapshot, heap, role, oid_of(table), wanted)
    };
    HAS_COLUMN_PRIVILEGE_BY_NAME = "has_column_privilege", |snapshot, heap, role, table, _column, wanted| {
        let table = snapshot.object_named(CatalogType::RegClass, heap.str(table))?;
        has_table_privilege(snapshot, heap, role, table.oid, wanted)
    };
    HAS_COLUMN_PRIVILEGE_BY_OID = "has_column_privilege", |snapshot, heap, role, table, _column, wanted| {
        has_table_privilege(snapshot, heap, role, oid_of(table), wanted)
    };
    HAS_SEQUENCE_PRIVILEGE_BY_NAME = "has_sequence_privilege", |snapshot, heap, role, sequence, wanted| {
        let sequence = snapshot.object_named(CatalogType::RegClass, heap.str(sequence))?;
        has_sequence_privilege(snapshot, heap, role, sequence.oid, wanted)
    };
    HAS_SEQUENCE_PRIVILEGE_BY_OID = "has_sequence_privilege", |snapshot, heap, role, sequence, wanted| {
        has_sequence_privilege(snapshot, heap, role, oid_of(sequence), wanted)
    };
    HAS_FUNCTION_PRIVILEGE_BY_NAME = "has_function_privilege", |snapshot, heap, role, function, _wanted| {
        let function = snapshot.object_named(CatalogType::RegProcedure, heap.str(function))?;
        has_function_privilege(snapshot, heap, role, function.oid)
    };
    HAS_FUNCTION_PRIVILEGE_BY_OID = "has_function_privilege", |snapshot, heap, role, function, _wanted| {
        has_function_privilege(snapshot, heap, role, oid_of(function))
    };
    PG_HAS_ROLE_BY_NAME = "pg_has_role", |snapshot, heap, member, of, wanted| {
        has_role(snapshot, heap, member, heap.str(of), wanted)
    };
    PG_HAS_ROLE_BY_OID = "pg_has_role", |snapshot, heap, member, of, wanted| {
        has_role(snapshot, heap, member, &oid_of(of).to_string(), wanted)
    };
    HAS_SCHEMA_PRIVILEGE_BY_NAME = "has_schema_privilege", |snapshot, heap, role, schema, wanted| {
        let schema = snapshot.object_named(CatalogType::RegNamespace, heap.str(schema))?;
        has_schema_privilege(snapshot, heap, role, schema.oid, wanted)
    };
    HAS_SCHEMA_PRIVILEGE_BY_OID = "has_schema_privilege", |snapshot, heap, role, schema, wanted| {
        has_schema_privilege(snapshot, heap, role, oid_of(schema), wanted)
    };
    HAS_DATABASE_PRIVILEGE_BY_NAME = "has_database_privilege", |snapshot, heap, role, database, wanted| {
        if heap.str(database) != DATABASE {
            let message = format!("database \"{}\" does not exist", heap.str(database));
            return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
        }
        has_use(snapshot, heap, role, wanted, &["connect"])
    };
    HAS_DATABASE_PRIVILEGE_BY_OID = "has_database_privilege", |snapshot, heap, role, database, wanted| {
        match oid_of(database) == DATABASE_OID {
            true => has_use(snapshot, heap, role, wanted, &["connect"]),
            false => Ok(Slot::NULL),
        }
    };

    // Conversions.
    OBJECT_TO_OID = "oid", |snapshot, heap, object| {
        let ObjectName { oid, name } = ObjectName::from_bytes(heap.bytes(object));
        // A client wrote the name, and nothing has looked for it: of whatever kind it is, it is a
        // relation.
        let is_open = oid == 0 && name != "-";
        let oid = match is_open {
            true => snapshot.object_named(CatalogType::RegClass, &name)?.oid,
            false => oid,
        };
        Ok(Slot::from_i64(oid.into()))
    };
}

/// `format_type`, whose modifier may be NULL.
pub(crate) const FORMAT_TYPE: CatalogCall = CatalogCall {
    name: "format_type",
    function: {
        fn function(snapshot: &Snapshot, heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
            match arguments {
                [oid, _] if oid.is_null() => Ok(Slot::NULL),
                [oid, modifier] if modifier.is_null() => {
                    Ok(heap.push_str(&snapshot.formatted_type(oid_of(*oid), None)))
                }
                _ => (FORMAT_TYPE_OF.function)(snapshot, heap, arguments),
            }
        }
        function
    },
};

/// Declares the two ways to a value of each `reg` type: from its name, and from its number.
macro_rules! objects {
    ($($kind:ident, $name:literal, $named:ident, $numbered:ident;)*) => {
        $(
            fn $named(snapshot: &Snapshot, heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let [name] = arguments else { return Ok(Slot::NULL) };
                if name.is_null() {
                    return Ok(Slot::NULL);
                }
                let object = snapshot.object_named(CatalogType::$kind, heap.str(*name))?;
                Ok(heap.push_bytes(&object.to_bytes()))
            }
            fn $numbered(snapshot: &Snapshot, heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let [oid] = arguments else { return Ok(Slot::NULL) };
                if oid.is_null() {
                    return Ok(Slot::NULL);
                }
                let object = snapshot.object_name(CatalogType::$kind, oid_of(*oid));
                Ok(heap.push_bytes(&object.to_bytes()))
            }
        )*

        /// The conversion of a name to a value of a `reg` type, and that of a number.
        fn conversions(kind: CatalogType) -> Option<(&'static str, CatalogFunction, CatalogFunction)> {
            Some(match kind {
                $(CatalogType::$kind => ($name, $named, $numbered),)*
                _ => return None,
            })
        }
    };
}

objects! {
    RegClass, "regclass", class_named, class_numbered;
    RegType, "regtype", type_named, type_numbered;
    RegProc, "regproc", function_named, function_numbered;
    RegProcedure, "regprocedure", procedure_named, procedure_numbered;
    RegNamespace, "regnamespace", schema_named, schema_numbered;
    RegRole, "regrole", role_named, role_numbered;
}

/// The conversion of a text to a value of a `reg` type.
pub(crate) fn object_of_text(kind: CatalogType) -> Option<CatalogCall> {
    let (name, function, _) = conversions(kind)?;
    Some(CatalogCall { name, function })
}

/// The conversion of a number to a value of a `reg` type.
pub(crate) fn object_of_oid(kind: CatalogType) -> Option<CatalogCall> {
    let (name, _, function) = conversions(kind)?;
    Some(CatalogCall { name, function })
}

fn object_or_null(
    snapshot: &Snapshot,
    heap: &mut Heap,
    kind: CatalogType,
    name: Slot,
) -> Result<Slot> {
    let text = heap.str(name);
    // A number names nothing here.
    if text.trim().parse::<u32>().is_ok() {
        return Ok(Slot::NULL);
    }
    match snapshot.object_named(kind, text) {
        Ok(object) => Ok(heap.push_bytes(&object.to_bytes())),
        Err(error) if error.state() == SqlState::INVALID_NAME => Err(error),
        Err(_) => Ok(Slot::NULL),
    }
}

/// What of a table is measured.
#[derive(Clone, Copy)]
enum Part {
    Records,
    Indexes,
    All,
}

fn bytes_of(table: &kiln_storage::table::Table, part: Part) -> i64 {
    let records = table.slab().bytes_reserved();
    let indexes: usize = table.indexes().iter().map(|index| index.bytes()).sum();
    let bytes = match part {
        Part::Records => records,
        Part::Indexes => indexes,
        Part::All => records + indexes,
    };
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The memory of a relation, in bytes.
fn size(snapshot: &Snapshot, object: ObjectName, part: Part) -> Slot {
    Slot::from_i64(match snapshot.object(object.oid) {
        Some(ObjectOf::Table(table)) => bytes_of(&table.table, part),
        Some(ObjectOf::Index(table, index)) => {
            let mut indexes = table.table.indexes().iter();
            let index = indexes.find(|known| known.definition().name == index.definition.name);
            index.map_or(0, |index| i64::try_from(index.bytes()).unwrap_or(i64::MAX))
        }
        _ if Snapshot::system_relation(object.oid).is_some() => 0,
        _ => return Slot::NULL,
    })
}

/// The role that is called so.
fn role<'s>(snapshot: &'s Snapshot, heap: &Heap, name: Slot) -> Result<&'s Role> {
    known_role(snapshot, heap.str(name))
}

/// Whether a role is, or is a member of, another one, whose privileges it then has.
fn has_role(snapshot: &Snapshot, heap: &Heap, member: Slot, of: &str, list: Slot) -> Result<Slot> {
    let (member, of) = (role(snapshot, heap, member)?, known_role(snapshot, of)?);
    let wanted = wanted(heap.str(list), &["member", "usage"])?;
    let is_member = || {
        member.name == of.name
            || snapshot
                .privileges
                .roles_of(&member.name)
                .contains(&*of.name)
    };
    let has = wanted.iter().any(|(_, with_grant)| !with_grant) && is_member();
    Ok(Slot::from_bool(member.is_superuser || has))
}

fn known_role<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s Role> {
    let mut roles = snapshot.roles.iter();
    let known = roles.find(|(oid, role)| role.name == name || oid.to_string() == name);
    known.map(|(_, role)| &**role).ok_or_else(|| {
        let message = format!("role \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// The privileges that a list names, of which one is enough.
fn wanted<'t>(text: &'t str, known: &[&str]) -> Result<Vec<(String, bool)>> {
    let parts = text.split(',').map(|part: &'t str| {
        let lower = part.trim().to_lowercase();
        let (name, with_grant) = match lower.strip_suffix(" with grant option") {
            Some(name) => (name.to_owned(), true),
            None => (lower.clone(), false),
        };
        match known.contains(&name.as_str()) {
            true => Ok((name, with_grant)),
            false => {
                let message = format!("unrecognized privilege type: \"{}\"", part.trim());
                Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    });
    parts.collect()
}

fn has_table_privilege(
    snapshot: &Snapshot,
    heap: &Heap,
    role_name: Slot,
    table: u32,
    list: Slot,
) -> Result<Slot> {
    const KNOWN: [&str; 7] = [
        "select",
        "insert",
        "update",
        "delete",
        "truncate",
        "references",
        "trigger",
    ];
    let role = role(snapshot, heap, role_name)?;
    let wanted = wanted(heap.str(list), &KNOWN)?;
    let table = match snapshot.object(table) {
        Some(ObjectOf::Table(table)) => table.qualified(),
        Some(ObjectOf::View(entry)) => entry.view.name.as_str(),
        Some(ObjectOf::Index(..)) => return Ok(Slot::from_bool(role.is_superuser)),
        _ => {
            let Some(_) = Snapshot::system_relation(table) else {
                return Ok(Slot::NULL);
            };
            let may_read = wanted
                .iter()
                .any(|(name, with_grant)| name == "select" && !with_grant);
            return Ok(Slot::from_bool(role.is_superuser || may_read));
        }
    };
    let allows = |name: &str| {
        let mut all = Privilege::ALL.into_iter();
        all.find(|privilege| privilege.name() == name)
            .is_some_and(|privilege| {
                let object = Object::table(table);
                snapshot
                    .privileges
                    .allows(role, &Access::of_caller(object, privilege))
            })
    };
    let mut wanted = wanted.iter();
    let has = role.is_superuser || wanted.any(|(name, with_grant)| !with_grant && allows(name));
    Ok(Slot::from_bool(has))
}

fn has_sequence_privilege(
    snapshot: &Snapshot,
    heap: &Heap,
    role_name: Slot,
    sequence: u32,
    list: Slot,
) -> Result<Slot> {
    let role = role(snapshot, heap, role_name)?;
    let wanted = wanted(heap.str(list), &["usage", "select", "update"])?;
    let Some(ObjectOf::Sequence(entry)) = snapshot.object(sequence) else {
        let object = snapshot.object_name(CatalogType::RegClass, sequence);
        if object.name == sequence.to_string() {
            return Ok(Slot::NULL);
        }
        let message = format!("\"{}\" is not a sequence", object.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let allows = |name: &str| {
        let mut all = Privilege::ALL.into_iter();
        let privilege = all.find(|privilege| privilege.name() == name);
        privilege.is_some_and(|privilege| {
            let object = Object::sequence(entry.sequence.name());
            let access = Access::of_caller(object, privilege);
            snapshot.privileges.allows(role, &access)
        })
    };
    let mut wanted = wanted.iter();
    let has = role.is_superuser || wanted.any(|(name, with_grant)| !with_grant && allows(name));
    Ok(Slot::from_bool(has))
}

fn has_function_privilege(
    snapshot: &Snapshot,
    heap: &Heap,
    role_name: Slot,
    function: u32,
) -> Result<Slot> {
    let role = role(snapshot, heap, role_name)?;
    Ok(match snapshot.object(function) {
        Some(ObjectOf::Routine(routine)) => {
            let object = Object::routine(routine.name.clone());
            let access = Access::of_caller(object, Privilege::Execute);
            Slot::from_bool(snapshot.privileges.allows(role, &access))
        }
        _ => Slot::TRUE,
    })
}

/// Whether a role may use a schema, or create in it.
fn has_schema_privilege(
    snapshot: &Snapshot,
    heap: &Heap,
    role_name: Slot,
    schema: u32,
    list: Slot,
) -> Result<Slot> {
    let Some(name) = snapshot.schema_name(schema) else {
        return Ok(Slot::NULL);
    };
    let is_own = schema == PUBLIC_OID || snapshot.schemas.iter().any(|(oid, _)| *oid == schema);
    if !is_own {
        return has_use(snapshot, heap, role_name, list, &["usage"]);
    }
    let role = role(snapshot, heap, role_name)?;
    let allows = |privilege: Privilege| {
        let object = Object::schema(name);
        snapshot
            .privileges
            .allows(role, &Access::of_caller(object, privilege))
    };
    let mut wanted = wanted(heap.str(list), &["usage", "create"])?.into_iter();
    let has = wanted.any(|(name, with_grant)| {
        let privilege = match name.as_str() {
            "create" => Privilege::Create,
            // All roles may use `public`.
            _ if schema == PUBLIC_OID => return !with_grant,
            _ => Privilege::Usage,
        };
        !with_grant && allows(privilege)
    });
    Ok(Slot::from_bool(role.is_superuser || has))
}

/// Whether a role may use a schema of every database, or the database: all may use them, and
/// superusers alone create.
fn has_use(
    snapshot: &Snapshot,
    heap: &Heap,
    role_name: Slot,
    list: Slot,
    open: &[&str],
) -> Result<Slot> {
    const KNOWN: [&str; 5] = ["usage", "create", "connect", "temporary", "temp"];
    let role = role(snapshot, heap, role_name)?;
    let mut wanted = wanted(heap.str(list), &KNOWN)?.into_iter();
    let is_open = wanted.any(|(name, with_grant)| !with_grant && open.contains(&name.as_str()));
    Ok(Slot::from_bool(role.is_superuser || is_open))
}

impl Snapshot {
    /// What `format_type` prints. Without a modifier the type is printed without one.
    fn formatted_type(&self, oid: u32, modifier: Option<i64>) -> String {
        let with_modifier = modifier.filter(|modifier| *modifier >= 0);
        let data_type = builtin::type_of(oid);
        let Some(modifier) = with_modifier else {
            return match (oid, data_type) {
                (0, _) => "-".to_owned(),
                // One that must have a length, and has none, is told from one that may go without.
                (_, Some(DataType::Char(_))) if modifier.is_some() => "bpchar".to_owned(),
                _ => self.type_name(oid).unwrap_or_else(|| "???".to_owned()),
            };
        };
        let apply = |data_type: DataType| match data_type {
            DataType::Char(_) => format!("character({})", modifier - 4),
            DataType::VarChar(_) => format!("character varying({})", modifier - 4),
            DataType::Numeric { .. } => {
                // The scale has eleven bits, the uppermost of which is its sign.
                let scale = (((modifier - 4) & 0x7ff) ^ 0x400) - 0x400;
                let precision = (modifier - 4) >> 16;
                format!("numeric({precision},{scale})")
            }
            DataType::Timestamp(_) => format!("timestamp({modifier}) without time zone"),
            DataType::TimestampTz(_) => format!("timestamp({modifier}) with time zone"),
            DataType::Time(_) => format!("time({modifier}) without time zone"),
            // Above the digits it says of which fields the interval may be.
            DataType::Interval(_) if modifier & 0xffff <= 6 => {
                format!("interval({})", modifier & 0xffff)
            }
            other => other.base_name().to_owned(),
        };
        match data_type {
            Some(DataType::Array(element)) => format!("{}[]", apply(*element)),
            Some(data_type) => apply(data_type),
            None => self.type_name(oid).unwrap_or_else(|| "???".to_owned()),
        }
    }

    fn facts_of(&self, oid: u32) -> Option<&super::snapshot::RoutineFacts> {
        match self.object(oid)? {
            ObjectOf::Routine(routine) => routine.facts.as_ref(),
            _ => None,
        }
    }

    /// The arguments of one of PostgreSQL's functions.
    fn builtin_arguments(&self, oid: u32) -> Option<String> {
        let printed = self.object_name(CatalogType::RegProcedure, oid).name;
        let (_, arguments) = printed.split_once('(')?;
        let arguments = arguments.strip_suffix(')')?;
        Some(arguments.replace(',', ", "))
    }

    /// The result of one of PostgreSQL's functions.
    fn builtin_result(&self, oid: u32) -> Option<String> {
        use kiln_storage::types::Value;
        let mut rows = builtin::rows("pg_proc").iter();
        let row = rows.find(|row| row.first() == Some(&Value::BigInt(oid.into())))?;
        let (Some(Value::BigInt(result)), Some(Value::Boolean(is_set))) =
            (row.get(18), row.get(13))
        else {
            return None;
        };
        let name = self.type_name(u32::try_from(*result).ok()?)?;
        Some(if *is_set {
            format!("SETOF {name}")
        } else {
            name
        })
    }
}

/// The value of REGTYPE that the type of a literal is.
pub(crate) fn unknown_type() -> kiln_storage::types::Value {
    const UNKNOWN: u32 = 705;
    kiln_storage::types::Value::Object(Box::new(ObjectName {
        oid: UNKNOWN,
        name: "unknown".to_owned(),
    }))
}

/// The value of REGTYPE that a type is.
pub(crate) fn type_object(data_type: &DataType) -> kiln_storage::types::Value {
    names::type_object(data_type)
}
