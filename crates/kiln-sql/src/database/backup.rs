//! Backups of a database, and databases made from them.

use std::path::Path;

use kiln_durability::backup::{self, BackupReport, RestoreReport};
use kiln_storage::error::Result;

use super::Database;

impl Database {
    /// Copies the database to `target`, where nothing is or an empty directory, while it goes on: a
    /// checkpoint, which this writes, and the log after it. All that was acknowledged before the
    /// call is in the backup.
    ///
    /// ```
    /// # use kiln_platform::disk::TemporaryDirectory;
    /// use kiln_sql::{Database, Options};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// # let temporary = TemporaryDirectory::new("kiln-example").expect("there is room");
    /// # let [shop, copy, again] = ["shop", "copy", "again"].map(|name| temporary.path().join(name));
    /// let database = Database::open(Options::new().workers(1).data_dir(Some(shop)))?;
    /// database.execute("CREATE TABLE seats (id INTEGER PRIMARY KEY); INSERT INTO seats VALUES (1)")?;
    /// database.backup(&copy)?;
    ///
    /// Database::restore(&copy, &again, None)?;
    /// let restored = Database::open(Options::new().workers(1).data_dir(Some(again)))?;
    /// let seats = restored.query("SELECT count(*) FROM seats", ())?;
    /// assert_eq!(seats.into_one::<(i64,)>()?, (1,));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 55000 without a data directory, or when `target` is not empty; XX001 when a file of the data
    /// directory is damaged; 57P01 when the database is closed meanwhile; 53100, 58030 and their
    /// like for what the disk refuses. Then nothing is left at `target`.
    pub fn backup(&self, target: &Path) -> Result<BackupReport> {
        self.engine().backup(target, &mut |_, _| {})
    }

    /// Makes a data directory, where nothing is or an empty directory, from the backup at `backup`:
    /// of the same database, with a log of its own from then on. With `to_us`, in microseconds
    /// since 1970, without what was written to the log after that time. Reads all of the backup
    /// before it makes anything.
    ///
    /// # Errors
    /// 55000 when `directory` is not empty, or `backup` is no backup; XX001 when a file of the
    /// backup is damaged, which the message names; 22023 for a time before the end of the backup's
    /// checkpoint, or after the backup was taken; 53100, 58030 and their like for what the disk
    /// refuses. Then nothing is left at `directory`.
    pub fn restore(backup: &Path, directory: &Path, to_us: Option<i64>) -> Result<RestoreReport> {
        backup::restore(backup, directory, to_us, "a restoration", &mut |_, _| {})
    }
}
