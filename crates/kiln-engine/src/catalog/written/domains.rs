//! Domains as text.

use std::collections::BTreeMap;
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::Check;
use kiln_storage::types::EnumType;

use super::WrittenTable;
use crate::catalog::domains::Domain;
use crate::catalog::text_form::{Counted, Reader};

pub(super) fn write(f: &mut fmt::Formatter<'_>, domain: &Domain) -> fmt::Result {
    // Without `..`: what is added to a domain has to be written, too.
    let Domain {
        name,
        base,
        over,
        not_null,
        default,
        collation,
        checks,
    } = domain;
    let null = if *not_null { "not-null" } else { "null" };
    let base = base.described();
    write!(f, "domain {} {} {null}", Counted(name), Counted(&base))?;
    for (word, text) in [
        ("over", over),
        ("default", default),
        ("collation", collation),
    ] {
        if let Some(text) = text {
            write!(f, " {word} {}", Counted(text))?;
        }
    }
    writeln!(f)?;
    for check in checks {
        let Check {
            name,
            expression,
            is_valid,
        } = check;
        let (name, expression) = (Counted(name), Counted(expression));
        let validity = if *is_valid { "" } else { " not-valid" };
        writeln!(f, "  check {name} {expression}{validity}")?;
    }
    Ok(())
}

/// Reads what [`write`] writes, after its first word.
///
/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Domain> {
    let name = reader.counted()?.to_owned();
    let base = reader.counted()?.parse();
    let base = base.map_err(|()| reader.damaged("a known type before it"))?;
    let not_null = reader.takes("not-null");
    if !not_null {
        reader.expect("null")?;
    }
    let mut part = |word: &str| match reader.takes(word) {
        true => reader.counted().map(|text| Some(text.to_owned())),
        false => Ok(None),
    };
    let (over, default, collation) = (part("over")?, part("default")?, part("collation")?);
    let mut checks = Vec::new();
    while reader.takes("check") {
        checks.push(Check {
            name: reader.counted()?.to_owned(),
            expression: reader.counted()?.to_owned(),
            is_valid: !reader.takes("not-valid"),
        });
    }
    Ok(Domain {
        name,
        base,
        over,
        not_null,
        default,
        collation,
        checks,
    })
}

/// Has domains share the enums of the catalog.
pub(super) fn share(enums: &[Arc<EnumType>], domains: &mut [Domain]) {
    for domain in domains {
        for of in enums {
            domain.base = domain.base.with_enumeration(of);
        }
    }
}

/// Refuses domains over others, and columns of domains, that the catalog does not have or that are
/// of other types there.
///
/// # Errors
/// XX001.
pub(super) fn check(domains: &[Arc<Domain>], tables: &[WrittenTable]) -> Result<()> {
    let corrupted = |message: String| Err(Error::new(SqlState::DATA_CORRUPTED, message));
    let mut known: BTreeMap<&str, &Domain> = BTreeMap::new();
    for domain in domains {
        if known.insert(&domain.name, domain).is_some() {
            let name = &domain.name;
            return corrupted(format!("type \"{name}\" has the name of another"));
        }
    }
    for domain in domains {
        // A chain is as long as the number of domains at most.
        let (mut at, mut steps) = (&**domain, 0);
        while let Some(over) = &at.over {
            match known.get(over.as_str()) {
                Some(next) if next.base == domain.base && steps < domains.len() => at = next,
                _ => {
                    let name = &domain.name;
                    return corrupted(format!("domain \"{name}\" is over one that cannot be"));
                }
            }
            steps += 1;
        }
    }
    for table in tables {
        for column in &table.schema.columns {
            let Some(domain) = &column.domain else {
                continue;
            };
            let is_of = known.get(domain.as_str());
            if is_of.is_none_or(|of| of.base != column.data_type) {
                let (table, column) = (&table.schema.name, &column.name);
                return corrupted(format!(
                    "column \"{column}\" of table \"{table}\" is of a domain that is not there"
                ));
            }
        }
    }
    Ok(())
}
