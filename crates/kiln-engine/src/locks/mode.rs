//! Modes of locks, and which of them exclude each other.

/// How something is locked, from the weakest to the strongest: PostgreSQL's modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Excludes [`LockMode::AccessExclusive`] alone.
    AccessShare,
    /// What `SELECT … FOR UPDATE` takes there.
    RowShare,
    /// What changes of rows take there.
    RowExclusive,
    /// Excludes itself, and what is stronger.
    ShareUpdateExclusive,
    /// Many may hold it, while none holds [`LockMode::RowExclusive`]. Shared advisory locks have
    /// this mode.
    Share,
    /// As `Share`, for one at a time.
    ShareRowExclusive,
    /// Excludes all but `AccessShare`. Advisory locks that are not shared have this mode.
    Exclusive,
    /// Excludes all.
    AccessExclusive,
}

impl LockMode {
    /// All modes, from the weakest to the strongest.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// PostgreSQL's name, as `pg_locks` shows it.
    pub fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }

    /// Whether two sessions cannot hold these modes of one lock at a time.
    pub fn conflicts(self, other: LockMode) -> bool {
        let (weak, strong) = (self.min(other), self.max(other));
        match weak {
            LockMode::AccessShare => strong == LockMode::AccessExclusive,
            LockMode::RowShare => strong >= LockMode::Exclusive,
            LockMode::RowExclusive => strong >= LockMode::Share,
            LockMode::ShareUpdateExclusive => true,
            LockMode::Share => strong != LockMode::Share,
            LockMode::ShareRowExclusive | LockMode::Exclusive | LockMode::AccessExclusive => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_exclude_each_other_as_the_manual_of_postgresql_says() {
        // A row for each mode, a column for each mode of another holder, as in its table.
        let table = [
            ".......X", //
            "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX", "XXXXXXXX",
        ];
        for (mode, row) in LockMode::ALL.into_iter().zip(table) {
            for (other, cell) in LockMode::ALL.into_iter().zip(row.chars()) {
                assert_eq!(mode.conflicts(other), cell == 'X', "{mode:?} and {other:?}");
                assert_eq!(other.conflicts(mode), cell == 'X', "{other:?} and {mode:?}");
            }
        }
    }
}
