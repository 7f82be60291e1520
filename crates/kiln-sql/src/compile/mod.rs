//! Expressions and queries, compiled to the procedure IR.
//!
//! Compiling has two halves. *Binding* turns a syntax tree into a `bound` tree: names are resolved
//! to registers and columns, operators and functions to instructions, and every node has its
//! PostgreSQL type. *Emitting* plans the access paths of a bound query and writes the steps.
//! Between the two, questions such as "which tables does this condition need" are walks over a
//! small tree.
//!
//! Rows are pushed: a query is compiled as nested scans, look-ups and loops, and what shall happen
//! to each result row is emitted by a *sink*, a closure that is called exactly once, at the place
//! where the registers of one row are ready.
//!
//! A module names only modules of its own line of this table and of the lines before it, and no
//! modules name each other in a circle. So they can be read from the first line on.
//!
//! | module | holds |
//! |---|---|
//! | `types`, `quoting`, `names`, `expression` | types, names and expressions as they are written |
//! | `bound` | what binding makes: expressions, SELECTs and queries, which are one recursion, and walks over them; parameters whose types are inferred |
//! | `constant`, `implication`, `computed`, `order` | constants, what conditions imply, what hidden columns hold, which values have an order |
//! | `functions` | builtin functions: their signatures, and what computes them |
//! | `row_value` | rows as values, and their fields |
//! | `coerce`, `category`, `overload` | conversions between types, and which builtin a call means |
//! | `scope`, `control` | variables, row sources, what a name means; open loops, EXIT and CONTINUE |
//! | `arrays`, `operators`, `patterns`, `qualified`, `domain`, `session_value`, `advisory`, `sleep`, `extensions` | operators, names of relations, values of domains, what the session knows |
//! | `bind`, `json`, `aggregate`, `aggregate_call`, `collected`, `grouping_sets`, `window`, `row_function`, `row_call`, `signal`, `notify`, `special` | binding expressions |
//! | `emit`, `path`, `plan`, `rows`, `limit`, `locking` | bound expressions to instructions, and access paths |
//! | `from`, `table_function`, `json_record`, `view`, `select`, `set`, `query`, `with`, `recursion`, `subquery`, `access` | binding queries |
//! | `produce`, `read`, `group`, `windowed`, `set_rows`, `join`, `relation`, `sequence` | the loops over the rows of queries |
//! | `once`, `semijoin` | what a statement computes only once |
//! | `plpgsql`, `arguments`, `dml`, `ddl` | routines, and statements that change rows or define |

mod access;
mod advisory;
mod aggregate;
mod aggregate_call;
mod arguments;
mod arrays;
mod bind;
mod bound;
mod category;
mod coerce;
mod collected;
mod computed;
mod constant;
mod control;
pub mod ddl;
pub mod dml;
mod domain;
mod emit;
mod expression;
pub(crate) mod extensions;
mod framed;
mod from;
mod functions;
mod group;
mod grouping_sets;
mod implication;
mod join;
mod json;
mod json_record;
mod leaves;
mod limit;
mod locking;
mod names;
mod notation;
mod notify;
mod once;
mod operators;
mod order;
mod overload;
mod part;
mod path;
mod patterns;
mod plan;
pub mod plpgsql;
mod postponed;
mod produce;
mod qualified;
mod query;
mod quoting;
mod read;
mod recursion;
mod relation;
mod row_call;
mod row_function;
mod row_value;
mod rows;
mod scope;
mod select;
mod semijoin;
mod sequence;
mod session_value;
mod set;
mod set_rows;
mod signal;
mod sleep;
mod sliding;
mod special;
mod subquery;
mod table_function;
#[cfg(test)]
mod tests;
mod traversal;
mod types;
mod view;
mod window;
mod windowed;
mod with;

use std::collections::BTreeSet;
use std::collections::HashMap;

use kiln_engine::{Access, CurrentCatalog, Domain, IndexUse, Object, Privilege, SearchPath, View};
use kiln_platform::sync::Arc;
use kiln_procedure::ProgramBuilder;
use kiln_procedure::ir::Reg;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, name_in_schema, schema_of};
use kiln_storage::schema::TableSchema;
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, EnumType, RowType};
use sqlparser::ast::Expr;
use sqlparser::ast::Spanned;

use plpgsql::Authority;

pub use arguments::{CallArgumentValue, CallArguments, bind_call};
pub(crate) use bound::{Bound, Parameters};
pub use bound::{ColumnMeta, ColumnOrigin, PARAMETERS_MAX, SourceId, count as parameter_count};
pub use coerce::CastContext;
pub use control::LoopHandle;
pub(crate) use dml::{Updatability, updatability};
pub(crate) use domain::column_type;
pub use domain::{DeclaredType, declared_type};
pub(crate) use expression::stored_expression;
pub use qualified::{
    TEMPORARY_SCHEMA, new_relation_name, relation_name, routine_name, row_name, schema_meant,
    schema_written, temporary_name, written_name,
};
pub(crate) use qualified::{
    along_path, kept_name, missing_schema, short_name, sql_name, undefined_schema,
};
pub use query::{OutputColumn, QueryOptions, Sink};
pub(crate) use quoting::{quote_identifier, quote_literal};
pub use rows::RowSource;
pub use scope::{Field, Variable};
pub(crate) use sequence::COLUMNS as SEQUENCE_COLUMNS;
pub(crate) use session_value::SessionValues;
pub use session_value::{AdvisoryAction, AdvisoryCall, Key, Operand, Seconds, SessionValue};
pub use types::{data_type, plain_type};

/// A place in the source: line and column, from 1; `None` where it is not known.
pub type Position = Option<(u32, u32)>;

/// What a compilation needs to know of the database.
pub trait CatalogView {
    /// Along which names without a schema are looked for.
    fn path(&self) -> SearchPath {
        SearchPath::default()
    }

    /// Has names without a schema looked for along another path; returns the former one.
    fn see_along(&self, path: SearchPath) -> SearchPath {
        path
    }

    /// Has names without a schema looked for among what a view was created to read, before the
    /// path; returns the former view.
    fn see_as(&self, view: Option<Arc<View>>) -> Option<Arc<View>> {
        view
    }

    /// The view whose query is bound, if one is.
    fn seen_as(&self) -> Option<Arc<View>> {
        None
    }

    /// The temporary schema of the session for which it is seen, if that has one.
    fn temporary_schema(&self) -> Option<&str> {
        None
    }

    /// Whether there is a schema of users with this name.
    fn has_schema(&self, name: &str) -> bool {
        name == kiln_storage::qualified::PUBLIC_SCHEMA
    }

    /// The table with this qualified name.
    fn table(&self, name: &str) -> Option<Arc<Table>>;

    /// All tables.
    fn tables(&self) -> Vec<Arc<Table>> {
        Vec::new()
    }

    /// The tables whose rows refer to those of the one called `name`, itself included if they do.
    fn referencing(&self, name: &str) -> Vec<Arc<Table>> {
        let refers = |table: &Arc<Table>| {
            let mut keys = table.schema().foreign_keys.iter();
            keys.any(|key| key.table == name)
        };
        self.tables().into_iter().filter(refers).collect()
    }

    /// The view called `name`.
    fn view(&self, name: &str) -> Option<Arc<View>> {
        let _ = name;
        None
    }

    /// What the materialized view called `name` is, whose rows the table of this name has.
    fn materialized_view(&self, name: &str) -> Option<Arc<View>> {
        let _ = name;
        None
    }

    /// The names of the views that read from the table called `name`, by way of others too.
    fn views_over(&self, name: &str) -> Vec<String> {
        let _ = name;
        Vec::new()
    }

    /// The definition of the user's function or procedure called `name`, whose body is compiled in
    /// the place of a call.
    fn routine(&self, name: &str) -> Option<Arc<crate::parse::FunctionDefinition>> {
        let _ = name;
        None
    }

    /// The sequence called `name`.
    fn sequence(&self, name: &str) -> Option<Arc<Sequence>> {
        let _ = name;
        None
    }

    /// The enum called `name`.
    fn enumeration(&self, name: &str) -> Option<Arc<EnumType>> {
        let _ = name;
        None
    }

    /// The composite type called `name`.
    fn composite(&self, name: &str) -> Option<Arc<RowType>> {
        let _ = name;
        None
    }

    /// The type of the rows of the table called `name`.
    fn row_type(&self, name: &str) -> Option<Arc<RowType>> {
        let _ = name;
        None
    }

    /// The domain called `name`.
    fn domain(&self, name: &str) -> Option<Arc<Domain>> {
        let _ = name;
        None
    }

    /// The sequence of an identity column.
    fn identity_sequence(&self, table: &str, column: &str) -> Option<Arc<Sequence>> {
        let _ = (table, column);
        None
    }

    /// The number of a table in `pg_class`; 0 for one that has none.
    fn table_oid(&self, name: &str) -> u32 {
        let _ = name;
        0
    }

    /// The number of a domain in `pg_type`; 0 for one that has none.
    fn domain_oid(&self, name: &str) -> u32 {
        let _ = name;
        0
    }

    /// Who runs what is compiled must be allowed to do this.
    fn note_access(&self, access: Access) {
        let _ = access;
    }

    /// Which catalog is in force when what is compiled runs; `None` where there is none to be
    /// asked.
    fn current(&self) -> Option<Arc<CurrentCatalog>> {
        None
    }

    /// Whether a user's function or procedure is called `name`: only for better messages.
    fn has_function(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

/// A computed value: where it is and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The register. It may be a variable's or a constant's own: copy it before writing.
    pub register: Reg,
    /// The PostgreSQL type of the expression.
    pub data_type: DataType,
}

/// Compiles expressions and queries into a [`ProgramBuilder`].
pub struct Compiler<'a> {
    /// Where the steps go.
    pub builder: ProgramBuilder,
    /// The index uses seen so far.
    pub requirements: Vec<IndexUse>,
    catalog: &'a dyn CatalogView,
    variables: Vec<scope::VariableScope>,
    positional: Parameters,
    levels: Vec<scope::Level>,
    /// The numbers of the levels over whose rows an aggregate was called.
    aggregated: BTreeSet<usize>,
    sources: Vec<scope::Source>,
    /// What hidden columns hold, for sources that have some.
    computed: Vec<(SourceId, std::rc::Rc<[computed::Computed]>)>,
    available: Vec<scope::Available>,
    marks: Vec<usize>,
    loops: Vec<control::LoopFrame>,
    depth: usize,
    nesting: usize,
    /// Registers of aggregates and group keys while the output of a grouped query is emitted.
    slots: HashMap<usize, Reg>,
    /// The names of WITH in scope, while a query is bound.
    with_names: Vec<with::WithName>,
    /// The queries of WITH that can be named, while a query is emitted.
    open_with: Vec<with::OpenWith>,
    /// Whether the query that is bound next is a whole statement, whose WITH may change data.
    is_statement: bool,
    /// What the output of a SELECT asks for, while that is bound.
    output: Option<bound::Output>,
    /// The windows that the WINDOW clause of the SELECT names.
    windows: Vec<sqlparser::ast::NamedWindowDefinition>,
    /// The table that an INSERT, UPDATE or DELETE was compiled for last.
    changed: Option<kiln_storage::schema::TableId>,
    /// What the query of a view names, while that is created.
    recorded: Option<view::Recorded>,
    /// Whether the statement gives a materialized view its rows.
    refilled: bool,
    /// What the statement that is compiled next is a part of, if it is a referential action.
    following: Option<dml::Following>,
    /// The constraints that the program keeps keys of, to check them at its end or later.
    waiting: Vec<dml::Waiting>,
    /// The recursion that is being emitted.
    recursion: Option<recursion::Recursion>,
    /// Whether a LIMIT around what is emitted may end it before its last row.
    stops_early: bool,
    /// Whether a name that columns and variables have means the column, as in functions of SQL.
    prefers_columns: bool,
    next_slot: usize,
    /// The statement that is being compiled, but for expressions of a procedure's own.
    statement: Option<once::Statement>,
    /// Whether what is compiled is a change within WITH.
    is_change_apart: bool,
    /// The number of the last shared operand.
    shared: u16,
    /// Whether the statement has the time of its transaction.
    is_one_moment: bool,
    /// Where the times that something has asked for are kept.
    clocks: Vec<(functions::Now, Reg)>,
    /// Where the session's style is kept, once something has asked for it.
    style: Option<Reg>,
    /// Arrays whose first element has the number 0.
    counted_from_zero: Vec<Reg>,
    /// The domains of variables and results, by their registers.
    domains: HashMap<Reg, Arc<Domain>>,
    /// What compilations of functions learn.
    routines: plpgsql::Inference,
    /// What the session is to give the statement, if it is one of a session.
    pub(crate) session_values: Option<SessionValues>,
}

impl<'a> Compiler<'a> {
    /// A compiler that appends to `builder`.
    pub fn new(builder: ProgramBuilder, catalog: &'a dyn CatalogView) -> Compiler<'a> {
        Compiler {
            builder,
            requirements: Vec::new(),
            catalog,
            variables: Vec::new(),
            positional: Parameters::default(),
            levels: Vec::new(),
            aggregated: BTreeSet::new(),
            sources: Vec::new(),
            computed: Vec::new(),
            available: Vec::new(),
            marks: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            nesting: 0,
            slots: HashMap::new(),
            with_names: Vec::new(),
            open_with: Vec::new(),
            is_statement: false,
            output: None,
            windows: Vec::new(),
            changed: None,
            recorded: None,
            refilled: false,
            following: None,
            waiting: Vec::new(),
            recursion: None,
            stops_early: false,
            prefers_columns: false,
            next_slot: 0,
            statement: None,
            is_change_apart: false,
            shared: 0,
            is_one_moment: false,
            clocks: Vec::new(),
            style: None,
            counted_from_zero: Vec::new(),
            domains: HashMap::new(),
            routines: plpgsql::Inference::default(),
            session_values: None,
        }
    }

    /// The statement's time is that of its transaction from here on: a run at another time is given
    /// the same.
    pub(crate) fn set_one_moment(&mut self) {
        self.is_one_moment = true;
    }

    /// Which catalog is in force when what is compiled runs.
    ///
    /// # Errors
    /// 0A000 where there is none to be asked.
    fn current_catalog(&self) -> Result<Arc<CurrentCatalog>> {
        let current = self.catalog.current();
        current.ok_or_else(|| unsupported("a question about the catalog", None))
    }

    /// The table called `name`.
    ///
    /// # Errors
    /// 42P01, 42809 for a view.
    pub fn table(&self, name: &str, position: Position) -> Result<Arc<Table>> {
        self.catalog.table(name).ok_or_else(|| {
            if self.catalog.view(name).is_some() {
                let message = format!("\"{}\" is not a table", name_in_schema(name));
                return fail(SqlState::WRONG_OBJECT_TYPE, message, position);
            }
            let name = name.strip_prefix('.').unwrap_or(name);
            fail(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
                position,
            )
        })
    }

    /// The table called `name`, for something that not every role may do with it.
    ///
    /// # Errors
    /// 42P01.
    pub fn table_for(
        &self,
        privilege: Privilege,
        name: &str,
        position: Position,
    ) -> Result<Arc<Table>> {
        let table = self.table(name, position)?;
        self.note_access(Object::table(name), privilege);
        Ok(table)
    }

    /// Who runs this must be allowed to do something; or the owner of the view or function that
    /// does it in the place of its caller.
    fn note_access(&self, object: Object, privilege: Privilege) {
        let on_behalf_of = match self.routines.authority() {
            Authority::Database => return,
            Authority::Caller => None,
            Authority::OwnerOf(it) => Some(it),
        };
        let on_behalf = |access: Access| Access {
            on_behalf_of: on_behalf_of.clone(),
            ..access
        };
        if let Some(schema) = schema_to_use(&object) {
            self.catalog.note_access(on_behalf(schema));
        }
        let access = Access::of_caller(object, privilege);
        self.catalog.note_access(on_behalf(access));
    }

    /// Compiles what is done by this authority.
    fn by_authority<T>(
        &mut self,
        authority: Authority,
        compile: impl FnOnce(&mut Compiler<'a>) -> T,
    ) -> T {
        let was = self.routines.set_authority(authority);
        let compiled = compile(self);
        self.routines.restore_authority(was);
        compiled
    }

    /// Compiles what no role needs privileges for.
    fn unrestricted<T>(&mut self, compile: impl FnOnce(&mut Compiler<'a>) -> T) -> T {
        self.by_authority(Authority::Database, compile)
    }

    /// Compiles what the owner of a view does for those that read it, or the owner of a table for
    /// those that change a row to which its rows refer.
    fn by_owner_of<T>(
        &mut self,
        relation: &str,
        compile: impl FnOnce(&mut Compiler<'a>) -> T,
    ) -> T {
        self.by_authority(Authority::OwnerOf(Object::table(relation)), compile)
    }

    /// Who runs this reads rows of a table or view that it changes.
    fn note_reading(&self, relation: &str) {
        self.note_access(Object::table(relation), Privilege::Select);
    }

    /// Computes `expr`. A literal without a type of its own (`'x'`, NULL) becomes `expected`, or
    /// TEXT when nothing is expected; anything else keeps its type, whatever is expected.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the expression; 0A000 for what is not supported.
    pub fn expression(&mut self, expr: &Expr, expected: Option<&DataType>) -> Result<Typed> {
        let bound = self.bind_expected(expr, expected)?;
        let data_type = bound.data_type.clone();
        let register = self.alone(&[&bound], |compiler| compiler.emit(&bound))?;
        Ok(Typed {
            register,
            data_type,
        })
    }

    /// Computes several expressions; the columns that they need of one record are read in one
    /// step.
    ///
    /// # Errors
    /// As [`Compiler::expression`].
    pub fn expressions(&mut self, exprs: &[(&Expr, Option<&DataType>)]) -> Result<Vec<Typed>> {
        let mut bounds = Vec::with_capacity(exprs.len());
        for (expr, expected) in exprs {
            bounds.push(self.bind_expected(expr, *expected)?);
        }
        let all: Vec<&Bound> = bounds.iter().collect();
        self.alone(&all, |compiler| compiler.emit_all(&bounds))
    }

    /// Computes `expr` and converts it to `data_type`; returns the register.
    ///
    /// # Errors
    /// As [`Compiler::expression`], and 42804 or 42846 when the type does not convert.
    pub fn expression_as(
        &mut self,
        expr: &Expr,
        data_type: &DataType,
        context: CastContext,
    ) -> Result<Reg> {
        let bound = self.bind_as(expr, data_type, context)?;
        self.alone(&[&bound], |compiler| compiler.emit(&bound))
    }

    /// Computes several expressions, each converted to its type as an assignment converts; see
    /// [`Compiler::expressions`].
    ///
    /// # Errors
    /// As [`Compiler::expression_as`].
    pub fn expressions_as(
        &mut self,
        exprs: &[(&Expr, &DataType)],
        context: CastContext,
    ) -> Result<Vec<Reg>> {
        let mut bounds = Vec::with_capacity(exprs.len());
        for (expr, data_type) in exprs {
            bounds.push(self.bind_as(expr, data_type, context)?);
        }
        let all: Vec<&Bound> = bounds.iter().collect();
        let values = self.alone(&all, |compiler| compiler.emit_all(&bounds))?;
        Ok(values.into_iter().map(|typed| typed.register).collect())
    }

    /// Assigns `expr` to the register `target` of type `data_type`, without a move where the last
    /// instruction can write there.
    ///
    /// # Errors
    /// As [`Compiler::expression_as`].
    pub fn expression_into(
        &mut self,
        expr: &Expr,
        target: Reg,
        data_type: &DataType,
        context: CastContext,
    ) -> Result<()> {
        let bound = self.bind_as(expr, data_type, context)?;
        self.bound_into(bound, target)
    }

    /// Computes `bound` into the register `target`.
    fn bound_into(&mut self, bound: Bound, target: Reg) -> Result<()> {
        let bound = self.assigned(bound, target);
        self.alone(&[&bound], |compiler| compiler.emit_into(&bound, target))
    }

    /// Computes a condition of which only the truth matters: the register is TRUE when it holds,
    /// and FALSE or NULL, whichever came out cheaper, when it does not. `expr` must be BOOLEAN;
    /// `clause` is what the error message calls it (`WHERE`, `ON`).
    ///
    /// # Errors
    /// As [`Compiler::expression`]; 42804 when it is not boolean.
    pub fn condition(&mut self, expr: &Expr, clause: &str) -> Result<Reg> {
        let bound = self.bind_condition(expr, clause)?;
        self.alone(&[&bound], |compiler| compiler.emit_condition(&bound))
    }

    /// As [`Compiler::condition`], but what is not BOOLEAN is converted as PL/pgSQL converts it.
    ///
    /// # Errors
    /// As [`Compiler::expression_as`].
    pub fn truth(&mut self, expr: &Expr) -> Result<Reg> {
        let bound = self.bind_as(expr, &DataType::Boolean, CastContext::Variable)?;
        self.alone(&[&bound], |compiler| compiler.emit_condition(&bound))
    }

    /// Converts a computed value to `data_type`; returns where it is then (`typed`'s own register
    /// when nothing has to be done).
    ///
    /// # Errors
    /// 42804 or 42846 when the type does not convert in this context.
    pub fn cast(
        &mut self,
        typed: &Typed,
        data_type: &DataType,
        context: CastContext,
        position: Position,
    ) -> Result<Reg> {
        let bound = Bound::register(typed.register, typed.data_type.clone(), position);
        let bound = coerce::coerce(bound, data_type, context)?;
        self.emit(&bound)
    }

    /// As [`Compiler::cast`], into `target`.
    ///
    /// # Errors
    /// As [`Compiler::cast`].
    pub fn cast_into(
        &mut self,
        typed: &Typed,
        target: Reg,
        data_type: &DataType,
        context: CastContext,
        position: Position,
    ) -> Result<()> {
        let bound = Bound::register(typed.register, typed.data_type.clone(), position);
        let bound = coerce::coerce(bound, data_type, context)?;
        let bound = self.assigned(bound, target);
        self.emit_into(&bound, target)
    }

    /// As [`Compiler::cast_into`], of a value from a row that is assigned to a row: what was of a
    /// domain there is of it here.
    fn cast_of_row(
        &mut self,
        typed: &Typed,
        target: Reg,
        data_type: &DataType,
        position: Position,
    ) -> Result<()> {
        let bound = Bound::register(typed.register, typed.data_type.clone(), position);
        let bound = coerce::coerce(bound, data_type, CastContext::Variable)?;
        self.emit_into(&bound, target)
    }
}

/// A compiler whose steps are thrown away: binding tells what is wrong with an expression.
fn scratch(catalog: &dyn CatalogView) -> Compiler<'_> {
    Compiler::new(ProgramBuilder::new("", []), catalog)
}

/// The type of an expression over the columns of a table; `None` for what has no meaning, or no
/// type of its own.
pub(crate) fn expression_type(expr: &Expr, schema: Option<&TableSchema>) -> Option<DataType> {
    expression_type_in(expr, schema, &Nothing)
}

/// As [`expression_type`], of an expression that may name what is in a catalog.
pub(crate) fn expression_type_in(
    expr: &Expr,
    schema: Option<&TableSchema>,
    catalog: &dyn CatalogView,
) -> Option<DataType> {
    let bound = bound_expression(expr, schema, catalog)?;
    (!bound.is_unknown()).then_some(bound.data_type)
}

/// The columns of a table that an expression names, by their positions.
pub(crate) fn expression_columns(expr: &Expr, schema: &TableSchema) -> Vec<usize> {
    let Some(bound) = bound_expression(expr, Some(schema), &Nothing) else {
        // It names functions or types of users.
        let named = expression::named_columns(expr, schema).unwrap_or_default();
        return named.iter().map(|column| column.index()).collect();
    };
    bound
        .columns()
        .into_iter()
        .map(|(_, column)| usize::from(column))
        .collect()
}

/// A catalog without anything of users.
struct Nothing;

impl CatalogView for Nothing {
    fn table(&self, _: &str) -> Option<Arc<Table>> {
        None
    }
}

/// An expression over the columns of a table, bound; `None` for what has no meaning.
fn bound_expression(
    expr: &Expr,
    schema: Option<&TableSchema>,
    catalog: &dyn CatalogView,
) -> Option<Bound> {
    let mut compiler = Compiler::new(ProgramBuilder::new("", Vec::new()), catalog);
    if let Some(schema) = schema {
        let columns = schema.shown().iter().map(|column| ColumnMeta {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
            origin: None,
        });
        let columns: Vec<ColumnMeta> = columns.collect();
        let source = compiler.add_derived_source(name_in_schema(&schema.name), &columns, None);
        compiler.push_rows(&[source]);
    }
    compiler.bind(expr).ok()
}

/// An error of `state` at `position`.
pub fn fail(state: SqlState, message: impl Into<String>, position: Position) -> Error {
    let error = Error::new(state, message);
    match position {
        Some((line, column)) => error.at(line, column),
        None => error,
    }
}

/// The refusal of `feature`.
pub fn unsupported(feature: impl std::fmt::Display, position: Position) -> Error {
    fail(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{feature} is not supported"),
        position,
    )
}

/// Where a node of the syntax tree begins.
pub fn position_of(node: &impl Spanned) -> Position {
    position_of_span(node.span())
}

/// Where a span begins; `None` for the empty span of nodes that have none.
pub fn position_of_span(span: sqlparser::tokenizer::Span) -> Position {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (span.start.line > 0).then(|| (narrow(span.start.line), narrow(span.start.column)))
}

/// Who uses an object of another schema than `public` must be allowed to use that.
fn schema_to_use(object: &Object) -> Option<Access> {
    let schema = schema_of(&object.name);
    let is_other = schema != PUBLIC_SCHEMA;
    is_other.then(|| Access::of_caller(Object::schema(schema), Privilege::Usage))
}

/// An identifier's name: folded to lower case unless it was quoted.
pub fn name_of(ident: &sqlparser::ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// Refuses a reserved word as a name, unless it is quoted.
pub(crate) fn refuse_reserved(ident: &sqlparser::ast::Ident) -> Result<()> {
    if ident.quote_style.is_none() && crate::parse::is_reserved(&ident.value.to_lowercase()) {
        let message = format!("syntax error at or near \"{}\"", ident.value);
        return Err(fail(
            SqlState::SYNTAX_ERROR,
            message,
            position_of_span(ident.span),
        ));
    }
    Ok(())
}

/// The name of a function, which is in `public`, or of something of the system. A qualification
/// with `public` (or `pg_catalog`) is dropped.
///
/// # Errors
/// 3F000 for any other schema.
pub fn object_name(name: &sqlparser::ast::ObjectName) -> Result<String> {
    let position = position_of(name);
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part.as_ident() {
            Some(ident) => parts.push(name_of(ident)),
            None => return Err(unsupported("a function as part of a name", position)),
        }
    }
    match parts.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "public" || schema == "pg_catalog" => Ok(name.clone()),
        [schema, _] => Err(fail(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
            position,
        )),
        _ => Err(unsupported("a cross-database reference", position)),
    }
}
