//! Views as text.

use std::fmt;

use kiln_storage::error::Result;

use crate::catalog::search_path::read_path;
use crate::catalog::text_form::{Counted, Reader};
use crate::catalog::views::{CheckOption, View, ViewRead, ViewRows};

pub(super) fn write(f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
    // Without `..`: what is added to a view has to be written, too.
    let View {
        name,
        columns,
        rows,
        query,
        path,
        check_option,
        reads,
        calls,
        types,
    } = view;
    write!(f, "view {}", Counted(name))?;
    match rows {
        ViewRows::Computed => {}
        ViewRows::Stored => write!(f, " stored")?,
        ViewRows::Missing => write!(f, " missing")?,
    }
    match check_option {
        None => writeln!(f)?,
        Some(CheckOption::Local) => writeln!(f, " local")?,
        Some(CheckOption::Cascaded) => writeln!(f, " cascaded")?,
    }
    for (name, data_type) in columns {
        let data_type = data_type.described();
        writeln!(f, "  shows {} {}", Counted(name), Counted(&data_type))?;
    }
    for ViewRead { relation, columns } in reads {
        write!(f, "  reads {}", Counted(relation))?;
        for column in columns {
            write!(f, " of {}", Counted(column))?;
        }
        writeln!(f)?;
    }
    for routine in calls {
        writeln!(f, "  calls {}", Counted(routine))?;
    }
    for name in types {
        writeln!(f, "  names {}", Counted(name))?;
    }
    writeln!(f, "  {path}query {}", Counted(query))
}

/// Reads what [`write`] writes, after its first word.
///
/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<View> {
    let name = reader.qualified()?;
    let rows = if reader.takes("stored") {
        ViewRows::Stored
    } else if reader.takes("missing") {
        ViewRows::Missing
    } else {
        ViewRows::Computed
    };
    let check_option = if reader.takes("local") {
        Some(CheckOption::Local)
    } else {
        reader.takes("cascaded").then_some(CheckOption::Cascaded)
    };
    let mut columns = Vec::new();
    while reader.takes("shows") {
        let name = reader.counted()?.to_owned();
        let data_type = reader.counted()?.parse();
        let data_type = data_type.map_err(|()| reader.damaged("a known type before it"))?;
        columns.push((name, data_type));
    }
    let mut reads = Vec::new();
    while reader.takes("reads") {
        let relation = reader.qualified()?;
        let mut columns = Vec::new();
        while reader.takes("of") {
            columns.push(reader.counted()?.to_owned());
        }
        reads.push(ViewRead { relation, columns });
    }
    let mut calls = Vec::new();
    while reader.takes("calls") {
        calls.push(reader.counted()?.to_owned());
    }
    let mut types = Vec::new();
    while reader.takes("names") {
        types.push(reader.counted()?.to_owned());
    }
    let path = read_path(reader)?;
    reader.expect("query")?;
    Ok(View {
        name,
        columns,
        rows,
        path,
        query: reader.counted()?.to_owned(),
        check_option,
        reads,
        calls,
        types,
    })
}
