//! Functions over the catalog, and those that say what a server is.

use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType};

use super::super::Position;
use super::super::bound::{Bound, Kind, Operation};
use super::cast::strict;
use super::{Function, Signature, Ty};
use crate::catalog::functions::*;
use crate::catalog::{CatalogCall, DATABASE};

const OID: Ty = Ty::Catalog(CatalogType::Oid);
const NAME: Ty = Ty::Catalog(CatalogType::Name);
const CLASS: Ty = Ty::Catalog(CatalogType::RegClass);
const NODES: Ty = Ty::Catalog(CatalogType::NodeTree);
const INET: Ty = Ty::Catalog(CatalogType::Inet);

/// A function over the catalog.
const fn over(call: CatalogCall, arguments: &'static [Ty], result: Ty) -> Signature {
    named(call.name, call, arguments, result)
}

/// A function over the catalog under another name.
const fn named(
    name: &'static str,
    call: CatalogCall,
    arguments: &'static [Ty],
    result: Ty,
) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Catalog(CatalogCall { name, ..call }),
        volatile: false,
    }
}

/// A function that asks nothing.
const fn plain(
    name: &'static str,
    function: ScalarFunction,
    arguments: &'static [Ty],
    result: Ty,
) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(function),
        volatile: false,
    }
}

fn null(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(Slot::NULL)
}

fn first(_: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    Ok(arguments.first().copied().unwrap_or(Slot::NULL))
}

fn no(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(Slot::FALSE)
}

fn database(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(heap.push_str(DATABASE))
}

fn encoding(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(heap.push_str("UTF8"))
}

fn version(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
    let text = format!(
        "PostgreSQL {} (Kiln {}) on {}-{}",
        crate::server::VERSION,
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS,
    );
    Ok(heap.push_str(&text))
}

/// The number of an encoding, as PostgreSQL has it.
const ENCODINGS: [(i64, &str); 2] = [(0, "SQL_ASCII"), (6, "UTF8")];

strict! {
    ENCODING_TO_CHAR = "pg_encoding_to_char", |heap, number| {
        let number = number.as_i64();
        let known = ENCODINGS.iter().find(|(known, _)| *known == number);
        Ok(heap.push_str(known.map_or("", |(_, name)| name)))
    };
    CHAR_TO_ENCODING = "pg_char_to_encoding", |heap, name| {
        let name = heap.str(name).to_uppercase().replace('-', "");
        let known = ENCODINGS.iter().find(|(_, known)| *known == name);
        Ok(Slot::from_i64(known.map_or(-1, |(number, _)| *number)))
    };
    SIZE_PRETTY = "pg_size_pretty", |heap, bytes| {
        let text = pretty_size(bytes.as_i64());
        Ok(heap.push_str(&text))
    };
}

/// Bytes in the largest unit in which they are ten at least, as PostgreSQL rounds them.
fn pretty_size(bytes: i64) -> String {
    /// Below so many of a unit it is kept.
    const LIMIT: u64 = 10 * 1024;
    let sign = if bytes < 0 { "-" } else { "" };
    let mut size = bytes.unsigned_abs();
    if size < LIMIT {
        return format!("{sign}{size} bytes");
    }
    // Twice the size in the next unit, so that the last bit decides how it is rounded.
    size >>= 9;
    for unit in ["kB", "MB", "GB", "TB"] {
        if size < 2 * LIMIT - 1 {
            return format!("{sign}{} {unit}", size.div_ceil(2));
        }
        size >>= 10;
    }
    format!("{sign}{} PB", size.div_ceil(2))
}

/// The tables of which a table is a part, as an array.
pub(in super::super) fn partition_ancestors(relation: Bound, position: Position) -> Bound {
    let class = DataType::Catalog(CatalogType::RegClass);
    let kind = Kind::Operation(Operation::Consult(PG_PARTITION_ANCESTORS), vec![relation]);
    Bound::new(kind, DataType::array(class), position)
}

/// What the function `name` is called with, with the role that asks before.
pub(in super::super) fn takes_role(name: &str, arguments: usize) -> bool {
    match name {
        "has_table_privilege"
        | "has_function_privilege"
        | "has_sequence_privilege"
        | "has_schema_privilege"
        | "pg_has_role"
        | "has_database_privilege"
        | "has_any_column_privilege" => arguments == 2,
        "has_column_privilege" => arguments == 3,
        _ => false,
    }
}

pub(super) static SIGNATURES: &[Signature] = &[
    over(FORMAT_TYPE, &[OID, Ty::Int4], Ty::Text),
    over(PG_GET_CONSTRAINTDEF, &[OID], Ty::Text),
    over(PG_GET_CONSTRAINTDEF_PRETTY, &[OID, Ty::Boolean], Ty::Text),
    over(PG_GET_INDEXDEF, &[OID], Ty::Text),
    over(
        PG_GET_INDEXDEF_COLUMN,
        &[OID, Ty::Int4, Ty::Boolean],
        Ty::Text,
    ),
    over(PG_GET_FUNCTIONDEF, &[OID], Ty::Text),
    over(PG_GET_FUNCTION_ARGUMENTS, &[OID], Ty::Text),
    over(PG_GET_FUNCTION_IDENTITY_ARGUMENTS, &[OID], Ty::Text),
    over(PG_GET_FUNCTION_RESULT, &[OID], Ty::Text),
    over(PG_GET_USERBYID, &[OID], NAME),
    // The text of an expression is what it is kept as.
    plain("pg_get_expr", first, &[NODES, OID], Ty::Text),
    over(PG_GET_EXPR_PRETTY, &[NODES, OID, Ty::Boolean], Ty::Text),
    over(PG_GET_VIEWDEF, &[OID], Ty::Text),
    over(PG_GET_VIEWDEF_PRETTY, &[OID, Ty::Boolean], Ty::Text),
    over(PG_GET_VIEWDEF_BY_NAME, &[Ty::Text], Ty::Text),
    over(
        PG_GET_VIEWDEF_BY_NAME_PRETTY,
        &[Ty::Text, Ty::Boolean],
        Ty::Text,
    ),
    over(NOTHING_BY_OID, &[OID], Ty::Text),
    over(NOTHING_BY_OID_PRETTY, &[OID, Ty::Boolean], Ty::Text),
    over(PG_GET_TRIGGERDEF, &[OID], Ty::Text),
    over(PG_GET_TRIGGERDEF_PRETTY, &[OID, Ty::Boolean], Ty::Text),
    named("pg_get_partkeydef", NOTHING_BY_OID, &[OID], Ty::Text),
    named("pg_get_statisticsobjdef", NOTHING_BY_OID, &[OID], Ty::Text),
    named(
        "pg_get_statisticsobjdef_columns",
        NOTHING_BY_OID,
        &[OID],
        Ty::Text,
    ),
    named("pg_get_function_sqlbody", NOTHING_BY_OID, &[OID], Ty::Text),
    over(PG_GET_SERIAL_SEQUENCE, &[Ty::Text, Ty::Text], Ty::Text),
    over(
        PG_HAS_ROLE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(PG_HAS_ROLE_BY_OID, &[NAME, OID, Ty::Text], Ty::Boolean),
    over(PG_SEQUENCE_LAST_VALUE, &[CLASS], Ty::Int8),
    over(
        HAS_SEQUENCE_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_SEQUENCE_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    over(PG_TABLE_IS_VISIBLE, &[OID], Ty::Boolean),
    over(PG_TYPE_IS_VISIBLE, &[OID], Ty::Boolean),
    over(PG_FUNCTION_IS_VISIBLE, &[OID], Ty::Boolean),
    over(IS_VISIBLE, &[OID], Ty::Boolean),
    named("pg_opclass_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    named("pg_opfamily_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    named("pg_collation_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    named("pg_conversion_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    named(
        "pg_statistics_obj_is_visible",
        IS_VISIBLE,
        &[OID],
        Ty::Boolean,
    ),
    named("pg_ts_config_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    named("pg_ts_dict_is_visible", IS_VISIBLE, &[OID], Ty::Boolean),
    over(OBJ_DESCRIPTION_BY_OID, &[OID], Ty::Text),
    over(OBJ_DESCRIPTION, &[OID, NAME], Ty::Text),
    over(COL_DESCRIPTION, &[OID, Ty::Int4], Ty::Text),
    over(SHOBJ_DESCRIPTION, &[OID, NAME], Ty::Text),
    over(TO_REGCLASS, &[Ty::Text], CLASS),
    over(TO_REGTYPE, &[Ty::Text], Ty::Catalog(CatalogType::RegType)),
    over(TO_REGPROC, &[Ty::Text], Ty::Catalog(CatalogType::RegProc)),
    over(
        TO_REGPROCEDURE,
        &[Ty::Text],
        Ty::Catalog(CatalogType::RegProcedure),
    ),
    over(
        TO_REGNAMESPACE,
        &[Ty::Text],
        Ty::Catalog(CatalogType::RegNamespace),
    ),
    over(TO_REGROLE, &[Ty::Text], Ty::Catalog(CatalogType::RegRole)),
    over(PG_RELATION_SIZE, &[CLASS], Ty::Int8),
    over(PG_RELATION_SIZE_OF_FORK, &[CLASS, Ty::Text], Ty::Int8),
    named("pg_table_size", PG_RELATION_SIZE, &[CLASS], Ty::Int8),
    over(PG_INDEXES_SIZE, &[CLASS], Ty::Int8),
    over(PG_TOTAL_RELATION_SIZE, &[CLASS], Ty::Int8),
    over(PG_DATABASE_SIZE, &[NAME], Ty::Int8),
    over(PG_DATABASE_SIZE, &[OID], Ty::Int8),
    plain("pg_size_pretty", SIZE_PRETTY.1, &[Ty::Int8], Ty::Text),
    over(PG_RELATION_IS_PUBLISHABLE, &[CLASS], Ty::Boolean),
    over(
        HAS_TABLE_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_TABLE_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    named(
        "has_any_column_privilege",
        HAS_TABLE_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    named(
        "has_any_column_privilege",
        HAS_TABLE_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_COLUMN_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_COLUMN_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_COLUMN_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Int2, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_FUNCTION_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_FUNCTION_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_SCHEMA_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_SCHEMA_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_DATABASE_PRIVILEGE_BY_NAME,
        &[NAME, Ty::Text, Ty::Text],
        Ty::Boolean,
    ),
    over(
        HAS_DATABASE_PRIVILEGE_BY_OID,
        &[NAME, OID, Ty::Text],
        Ty::Boolean,
    ),
    plain("version", version, &[], Ty::Text),
    plain("current_database", database, &[], NAME),
    plain("current_catalog", database, &[], NAME),
    over(CURRENT_SCHEMA, &[], NAME),
    over(CURRENT_SCHEMAS, &[Ty::Boolean], Ty::NameArray),
    plain("pg_encoding_to_char", ENCODING_TO_CHAR.1, &[Ty::Int4], NAME),
    plain("pg_char_to_encoding", CHAR_TO_ENCODING.1, &[NAME], Ty::Int4),
    plain("pg_client_encoding", encoding, &[], NAME),
    plain("getdatabaseencoding", encoding, &[], NAME),
    plain("pg_is_in_recovery", no, &[], Ty::Boolean),
    plain(
        "pg_postmaster_start_time",
        super::datetime::started,
        &[],
        Ty::TimestampTz,
    ),
    over(PG_MY_TEMP_SCHEMA, &[], OID),
    plain("pg_is_other_temp_schema", no, &[OID], Ty::Boolean),
    plain("inet_server_addr", null, &[], INET),
    plain("inet_server_port", null, &[], Ty::Int4),
    plain("inet_client_addr", null, &[], INET),
    plain("inet_client_port", null, &[], Ty::Int4),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 prints.
    #[test]
    fn sizes_are_printed_as_in_postgresql() {
        for (bytes, printed) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (-10_240, "-10 kB"),
            (1_000_000, "977 kB"),
            (10_484_735, "10239 kB"),
            (10_485_760, "10 MB"),
            (1 << 40, "1024 GB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty_size(bytes), printed, "{bytes}");
        }
    }
}
