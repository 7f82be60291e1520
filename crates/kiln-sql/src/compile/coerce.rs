/// In which way a value is converted; each admits what the one before does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// An operand or argument.
    Implicit,
    /// A value for a column of INSERT or UPDATE: too long text raises 22001.
    Assignment,
    /// PL/pgSQL's assignment to a variable: as an assignment to a column, but any type converts
    /// to any other through its text.
    Variable,
    /// CAST or `::`: too long text is cut.
    Explicit,
}
