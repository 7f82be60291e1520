//! What a table is, as declared: columns, keys, constraints.

use std::borrow::Cow;
use std::fmt;

use crate::types::DataType;

/// A table's number within its database; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Numbers from here on are of tables, and of sequences, that a transaction block tries out, or
    /// that are temporary: none of a catalog in force has one.
    pub const TRIALS_FROM: u32 = 1 << 31;

    /// Whether what is committed to the table is reported to a log: it is no temporary one.
    #[inline(always)]
    pub const fn is_durable(self) -> bool {
        self.0 < TableId::TRIALS_FROM
    }
}

/// A column's position within its table, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

impl ColumnId {
    /// The position as an index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most columns a table may have: the width of a [`ColumnSet`].
pub const COLUMNS_MAX: usize = 128;

/// The most columns an index may have, as in PostgreSQL.
pub const KEY_COLUMNS_MAX: usize = 32;

/// A set of columns of one table.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ColumnSet(u128);

impl ColumnSet {
    /// No column.
    pub const EMPTY: ColumnSet = ColumnSet(0);

    /// Adds `column`.
    #[inline(always)]
    pub fn insert(&mut self, column: ColumnId) {
        self.0 |= 1 << column.0;
    }

    /// Whether `column` is in the set.
    #[inline(always)]
    pub const fn contains(self, column: ColumnId) -> bool {
        self.0 >> column.0 & 1 != 0
    }

    /// Whether no column is in the set.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a column is in both sets.
    #[inline(always)]
    pub const fn intersects(self, other: ColumnSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The columns of either set.
    #[inline(always)]
    pub const fn union(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 | other.0)
    }

    /// The columns of both sets.
    #[inline(always)]
    pub const fn intersection(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 & other.0)
    }

    /// The columns of this set that are not in the other.
    #[inline(always)]
    pub const fn difference(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 & !other.0)
    }

    /// As two words, for [`ColumnSet::from_words`].
    pub const fn to_words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// The opposite of [`ColumnSet::to_words`].
    #[inline(always)]
    pub const fn from_words([low, high]: [u64; 2]) -> ColumnSet {
        ColumnSet(low as u128 | (high as u128) << 64)
    }

    /// The first `count` columns.
    #[inline(always)]
    pub const fn first(count: usize) -> ColumnSet {
        match count {
            0..COLUMNS_MAX => ColumnSet((1 << count) - 1),
            _ => ColumnSet(u128::MAX),
        }
    }

    /// The number of columns.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The columns in ascending order.
    pub fn iter(self) -> impl Iterator<Item = ColumnId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let column = rest.trailing_zeros();
                rest &= rest - 1;
                ColumnId(column as u16)
            })
        })
    }
}

impl FromIterator<ColumnId> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = ColumnId>>(columns: I) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        columns.into_iter().for_each(|column| set.insert(column));
        set
    }
}

impl fmt::Debug for ColumnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|column| column.0))
            .finish()
    }
}

/// One column as declared, or one that holds a key of an index over expressions: such a column is
/// *hidden*. It has no name, so that no statement names it, and is generated.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, folded to lower case unless it was quoted; empty for a hidden column.
    pub name: String,
    /// Its type; of a column of a domain, the type that the domain is over.
    pub data_type: DataType,
    /// The name of the domain that it was declared with.
    pub domain: Option<String>,
    /// Whether NULL is refused (NOT NULL, or part of the primary key).
    pub not_null: bool,
    /// The DEFAULT expression as SQL text.
    pub default: Option<String>,
    /// The expression over other columns of the row from which its value is computed, as SQL text;
    /// such a column has no default value.
    pub generated: Option<String>,
}

impl Column {
    /// A column that holds what an index over the expression `text` has of each row.
    pub fn hidden(data_type: DataType, text: String) -> Column {
        Column {
            name: String::new(),
            data_type,
            domain: None,
            not_null: false,
            default: None,
            generated: Some(text),
        }
    }

    /// Whether it holds a key of an index over expressions.
    pub fn is_hidden(&self) -> bool {
        self.name.is_empty()
    }

    /// What messages call it: its name, or the expression that a hidden column holds.
    pub fn label(&self) -> Cow<'_, str> {
        match &self.generated {
            Some(text) if self.is_hidden() => match is_call(text) {
                true => Cow::Borrowed(text),
                false => Cow::Owned(format!("({text})")),
            },
            _ => Cow::Borrowed(&self.name),
        }
    }
}

/// Whether an expression is a call of one function, which stands in an index without parentheses
/// around it.
pub fn is_call(text: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let Some(rest) = text.trim_start_matches(is_of_name).strip_prefix('(') else {
        return false;
    };
    let mut depth = 1;
    let closing = rest.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    !text.starts_with('(') && closing == rest.len().checked_sub(1)
}

/// A CHECK constraint.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, given or made as PostgreSQL makes it.
    pub name: String,
    /// Its expression as SQL text.
    pub expression: String,
    /// Whether all rows satisfy it; else it was added as NOT VALID, and new rows do.
    pub is_valid: bool,
}

/// A REFERENCES constraint: each row's `columns` must be NULL or the key of a row in `table`.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// Its name, given or made as PostgreSQL makes it.
    pub name: String,
    /// The referencing columns.
    pub columns: Vec<ColumnId>,
    /// The referenced table's name.
    pub table: String,
    /// The referenced columns, which are unique there, in the order of `columns`.
    pub referenced: Vec<ColumnId>,
    /// Whether all rows satisfy it; else it was added as NOT VALID, and new rows do.
    pub is_valid: bool,
    /// What becomes of the rows that refer to a row that is deleted.
    pub on_delete: ReferentialAction,
    /// What becomes of the rows that refer to a row whose key changes.
    pub on_update: ReferentialAction,
    /// The columns that ON DELETE SET NULL and SET DEFAULT set; none stands for all of `columns`.
    pub set_on_delete: Vec<ColumnId>,
    /// MATCH FULL: a key is NULL in all of its columns, or in none.
    pub match_full: bool,
    /// Whether its check may wait until the transaction ends.
    pub deferral: Deferral,
}

/// Whether the check of a constraint may wait until its transaction ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferral {
    /// NOT DEFERRABLE: it is made at the end of the statement.
    #[default]
    No,
    /// DEFERRABLE INITIALLY IMMEDIATE: it waits where SET CONSTRAINTS says so.
    InitiallyImmediate,
    /// DEFERRABLE INITIALLY DEFERRED: it waits unless SET CONSTRAINTS says otherwise.
    InitiallyDeferred,
}

impl Deferral {
    /// Whether the check may wait.
    pub fn is_deferrable(self) -> bool {
        self != Deferral::No
    }

    /// Whether it waits in a transaction that says nothing about it.
    pub fn is_initially_deferred(self) -> bool {
        self == Deferral::InitiallyDeferred
    }

    /// What stands behind the constraint in SQL.
    pub fn clause(self) -> &'static str {
        match self {
            Deferral::No => "",
            Deferral::InitiallyImmediate => " DEFERRABLE",
            Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
        }
    }
}

impl ForeignKey {
    /// The columns that a change of the referenced row sets.
    pub fn columns_set_on_delete(&self) -> &[ColumnId] {
        match self.set_on_delete.is_empty() {
            true => &self.columns,
            false => &self.set_on_delete,
        }
    }

    /// What follows the referenced columns in SQL: MATCH FULL and the actions that are not NO
    /// ACTION. `own` are the columns of the table that has the constraint, and `quote` writes a
    /// name.
    pub fn clauses(&self, own: &[Column], quote: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        if self.match_full {
            text.push_str(" MATCH FULL");
        }
        for (event, action) in [("UPDATE", self.on_update), ("DELETE", self.on_delete)] {
            if action != ReferentialAction::NoAction {
                text.push_str(&format!(" ON {event} {}", action.name()));
            }
        }
        if !self.set_on_delete.is_empty() {
            let columns = self.set_on_delete.iter();
            let names = columns.map(|column| quote(&own[column.index()].name));
            text.push_str(&format!(" ({})", names.collect::<Vec<_>>().join(", ")));
        }
        text + self.deferral.clause()
    }
}

/// What becomes of rows that refer to a row that is deleted, or whose key changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// They stay; the statement fails if at its end a row refers to nothing.
    #[default]
    NoAction,
    /// They stay; the statement fails although another row may have the key by then.
    Restrict,
    /// They are deleted, or get the new key.
    Cascade,
    /// They refer to nothing.
    SetNull,
    /// They get their default values.
    SetDefault,
}

impl ReferentialAction {
    /// All of them.
    pub const ALL: [ReferentialAction; 5] = [
        ReferentialAction::NoAction,
        ReferentialAction::Restrict,
        ReferentialAction::Cascade,
        ReferentialAction::SetNull,
        ReferentialAction::SetDefault,
    ];

    /// What it is called in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        }
    }

    /// Whether the referring rows change.
    pub const fn changes_rows(self) -> bool {
        !matches!(
            self,
            ReferentialAction::NoAction | ReferentialAction::Restrict
        )
    }
}

/// A row trigger.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// When it fires.
    pub time: TriggerTime,
    /// For which changes, in their order.
    pub events: Vec<TriggerEvent>,
    /// The columns of which a statement must set one, for an update; none stands for any.
    pub columns: Vec<ColumnId>,
    /// The expression over the rows `old` and `new` that must hold, as SQL text.
    pub condition: Option<String>,
    /// The name of its function.
    pub function: String,
    /// What the function is given.
    pub arguments: Vec<String>,
    /// Whether it fires.
    pub is_enabled: bool,
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerTime {
    /// Before the row is written.
    Before,
    /// At the end of the statement that has written it.
    After,
}

/// The change of a row for which a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerEvent {
    /// A new row.
    Insert,
    /// A row that goes.
    Delete,
    /// A row that changes.
    Update,
}

impl TriggerEvent {
    /// What it is called in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Update => "UPDATE",
        }
    }
}

/// An index as declared. The primary key and UNIQUE constraints are indexes too.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    /// Its name, given or made as PostgreSQL makes it.
    pub name: String,
    /// The indexed columns, in order.
    pub columns: Vec<ColumnId>,
    /// Whether two rows with equal `columns` are refused. A NULL in one of them makes rows distinct,
    /// unless `nulls_equal`.
    pub unique: bool,
    /// NULLS NOT DISTINCT: NULLs are equal to each other, in a unique index or constraint.
    pub nulls_equal: bool,
    /// Whether it is of a constraint that is DEFERRABLE. Such an index is not `unique`: it takes
    /// rows with equal keys, and the statements that write them look for others of their key.
    pub deferral: Deferral,
    /// Whether it came from a PRIMARY KEY or UNIQUE constraint and so cannot be dropped alone.
    pub constraint: bool,
    /// Whether it is of a part of the table: its first column is hidden then, TRUE in the rows that
    /// are of that part and NULL in the others, which are therefore distinct.
    pub partial: bool,
    /// The access method that it was declared with.
    pub method: IndexMethod,
    /// How it is built.
    pub kind: IndexKind,
}

/// The access method of an index, as CREATE INDEX … USING names it. It says nothing of how the
/// index is built: see [`IndexKind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexMethod {
    /// The one without USING.
    #[default]
    BTree,
    /// For keys that are looked up whole.
    Hash,
    /// Of ranges of pages.
    Brin,
    /// Of the elements of values.
    Gin,
    /// Of trees of any kind.
    Gist,
    /// Of trees that divide space.
    SpGist,
}

impl IndexMethod {
    /// All of them.
    pub const ALL: [IndexMethod; 6] = [
        IndexMethod::BTree,
        IndexMethod::Hash,
        IndexMethod::Brin,
        IndexMethod::Gin,
        IndexMethod::Gist,
        IndexMethod::SpGist,
    ];

    /// What it is called in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            IndexMethod::BTree => "btree",
            IndexMethod::Hash => "hash",
            IndexMethod::Brin => "brin",
            IndexMethod::Gin => "gin",
            IndexMethod::Gist => "gist",
            IndexMethod::SpGist => "spgist",
        }
    }

    /// Whether an index of it has entries for rows. The others are declared only: no statement is
    /// answered by one.
    pub const fn is_built(self) -> bool {
        !matches!(
            self,
            IndexMethod::Gin | IndexMethod::Gist | IndexMethod::SpGist
        )
    }
}

/// An index that is declared only: the table has no entries for it, and no statement uses it.
#[derive(Clone, Debug)]
pub struct UnbuiltIndex {
    /// What it is.
    pub definition: IndexDefinition,
    /// The operator class of each column of its key, if one was named.
    pub classes: Vec<Option<String>>,
}

impl IndexDefinition {
    /// Whether it was declared so that rows differ in their keys, now or at the end of a
    /// transaction.
    pub fn keeps_unique(&self) -> bool {
        self.unique || self.deferral.is_deferrable()
    }

    /// Whether two indexes of a table are of the same keys and rules, whatever they are called and
    /// however they are built.
    pub fn is_like(&self, other: &IndexDefinition) -> bool {
        self.columns == other.columns
            && (self.unique, self.nulls_equal) == (other.unique, other.nulls_equal)
            && (self.constraint, self.deferral) == (other.constraint, other.deferral)
            && (self.partial, self.method) == (other.partial, other.method)
    }

    /// The columns of its key, as they were declared.
    pub fn key_columns(&self) -> &[ColumnId] {
        &self.columns[usize::from(self.partial)..]
    }

    /// How many of its columns make two rows distinct by being NULL, from the first on.
    pub fn distinct_nulls(&self) -> usize {
        match (self.unique, self.nulls_equal) {
            (false, _) => 0,
            (true, false) => self.columns.len(),
            // A row outside of a partial index has a NULL there.
            (true, true) => usize::from(self.partial),
        }
    }

    /// The hidden column that says which rows a partial index is of.
    pub fn predicate(&self) -> Option<ColumnId> {
        self.columns.first().copied().filter(|_| self.partial)
    }
}

/// How an index is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Hash: look-ups of whole keys only, unique keys only.
    Hash,
    /// As `Hash`; keys of different partitions of the table's rows share no memory, up to 64
    /// partitions. Whole where the table does not say how its rows are divided, or the key has that
    /// column not among its first 64 bits.
    SplitHash,
    /// Ordered (B+-tree): look-ups and ranges. The first `partition_columns` of the key partition
    /// it: scans that fix them never meet inserts with other values (STO §4.5).
    Ordered {
        /// The number of leading key columns that partition the index; 0 when it is whole.
        partition_columns: usize,
    },
}

impl IndexKind {
    /// Whether it is a hash index, split or not.
    pub fn is_hash(self) -> bool {
        matches!(self, IndexKind::Hash | IndexKind::SplitHash)
    }
}

/// A table as declared.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: String,
    /// Its columns, in order; at most [`COLUMNS_MAX`]. Hidden ones stand behind the others.
    pub columns: Vec<Column>,
    /// The primary key's columns, in key order; empty when there is none.
    pub primary_key: Vec<ColumnId>,
    /// The name of that constraint and its index; `None` makes one of the table's name. Where there
    /// are no such columns, the name of the unique index that was declared the primary key later.
    pub primary_key_name: Option<String>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// REFERENCES constraints.
    pub foreign_keys: Vec<ForeignKey>,
    /// Row triggers, by their names: in the order in which they fire.
    pub triggers: Vec<Trigger>,
    /// Indexes that are declared only.
    pub unbuilt: Vec<UnbuiltIndex>,
    /// How rows are divided over partitions, if declared; else each record is in one by itself, by
    /// chance.
    pub partition_by: Option<Partitioning>,
}

/// How a table's rows are divided over partitions, which some protocols give to different workers.
/// Tables themselves are not divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// By the value of a column: an integer, a date or a timestamp. Rows of all tables with the
    /// same value are in the same partition. No row ever changes it.
    Column(ColumnId),
    /// Every partition has all rows: who has any partition may read them, who changes one needs all
    /// partitions (the replicated tables of H-Store). There is one copy of each row all the same.
    Replicated,
}

impl TableSchema {
    /// The column by which rows are divided over partitions, which no update may change.
    pub fn partition_column(&self) -> Option<ColumnId> {
        match self.partition_by {
            Some(Partitioning::Column(column)) => Some(column),
            Some(Partitioning::Replicated) | None => None,
        }
    }

    /// The columns that statements can name.
    pub fn shown(&self) -> &[Column] {
        &self.columns[..self.columns.partition_point(|column| !column.is_hidden())]
    }

    /// The columns that hold keys of indexes over expressions.
    pub fn hidden_columns(&self) -> impl Iterator<Item = ColumnId> + use<> {
        (self.shown().len() as u16..self.columns.len() as u16).map(ColumnId)
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        let position = self.shown().iter().position(|column| column.name == name)?;
        Some(ColumnId(position as u16))
    }
}
