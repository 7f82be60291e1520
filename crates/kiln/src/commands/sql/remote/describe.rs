//! `\d` and `\df` of a server: what its information_schema holds.

use super::Remote;

const TABLES: &str =
    "SELECT table_name AS \"Name\", table_type AS \"Kind\" FROM information_schema.tables
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY table_name";

const ROUTINES: &str =
    "SELECT routine_name AS \"Name\", routine_type AS \"Kind\", data_type AS \"Result\"
    FROM information_schema.routines
    WHERE routine_schema NOT IN ('pg_catalog', 'information_schema')";

impl Remote {
    /// All tables.
    ///
    /// # Errors
    /// The server's.
    pub fn tables(&mut self) -> Result<String, String> {
        self.listing("Tables", TABLES)
    }

    /// One table.
    ///
    /// # Errors
    /// That there is no such table, and the server's.
    pub fn table(&mut self, name: &str) -> Result<String, String> {
        let name = match name
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'))
        {
            Some(quoted) => quoted.to_owned(),
            None => name.to_lowercase(),
        };
        let text = format!(
            "SELECT column_name AS \"Column\", data_type AS \"Type\",
                CASE is_nullable WHEN 'NO' THEN 'not null' ELSE '' END AS \"Nullable\",
                coalesce(column_default, '') AS \"Default\"
            FROM information_schema.columns WHERE table_name = {} ORDER BY ordinal_position",
            quoted(&name)
        );
        let listing = self.listing(&format!("Table \"{name}\""), &text)?;
        match listing.contains("(0 rows)") {
            true => Err(format!(
                "there is no table \"{name}\"; \\d lists those that there are"
            )),
            false => Ok(listing),
        }
    }

    /// Functions and procedures; those called `name` when one is given.
    ///
    /// # Errors
    /// The server's.
    pub fn functions(&mut self, name: Option<&str>) -> Result<String, String> {
        let mut text = ROUTINES.to_owned();
        if let Some(name) = name {
            text += &format!(" AND routine_name = {}", quoted(&name.to_lowercase()));
        }
        self.listing(
            "Functions and procedures",
            &(text + " ORDER BY routine_name"),
        )
    }

    fn listing(&mut self, title: &str, text: &str) -> Result<String, String> {
        let result = self.execute(&text.into());
        let result = result.map_err(|error| error.message().to_owned())?;
        let table = result.result.unwrap_or_default().to_table();
        Ok(format!("{title}\n{table}\n"))
    }
}

/// A literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
