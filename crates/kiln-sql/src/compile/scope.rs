//! What a name means: variables of blocks around a statement, and columns of the rows at hand.

use std::rc::Rc;

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{RecordReg, Reg, TableRef};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::schema_of;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, RowType};
use sqlparser::ast::Ident;

use super::bound::{Bound, Kind, Operation, Parameters, SourceId};
use super::constant::operation;
use super::row_value::{field_named, pack, pack_unless_null, record_of};
use super::{Compiler, Position, Typed, fail, name_of, position_of_span, unsupported};

/// A variable of PL/pgSQL.
#[derive(Clone, Debug)]
pub enum Variable {
    /// A variable with one value.
    Scalar {
        /// Where it is.
        register: Reg,
        /// Its declared type.
        data_type: DataType,
        /// Whether assignments to it are refused.
        constant: bool,
        /// Whether it refuses NULL.
        not_null: bool,
    },
    /// A record or row variable, whose fields are registers of their own.
    Record {
        /// The fields, in order; empty until the first assignment gives it a shape.
        fields: Vec<Field>,
        /// The type that it was declared with, if that has a name.
        of: Option<Arc<RowType>>,
        /// Whether it is a row even where all its fields are NULL.
        is_there: bool,
    },
}

/// A field of a record variable.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub register: Reg,
    /// Its type.
    pub data_type: DataType,
}

/// The variables of one block.
#[derive(Debug, Default)]
pub(super) struct VariableScope {
    /// The block's label, or the function's name.
    label: Option<String>,
    names: Vec<(String, Variable)>,
}

/// A table, subquery or the like, whose columns can be named.
#[derive(Debug)]
pub(super) struct Source {
    pub name: String,
    pub columns: Vec<(String, DataType)>,
    /// The table, when it is one.
    pub table: Option<Arc<Table>>,
    /// Where to read columns that are in no register yet.
    pub record: Option<(TableRef, RecordReg)>,
    pub position: Position,
    /// Where its columns are when it is a part of a join whose rows are one source: that source,
    /// and the first of them there.
    pub within: Option<(SourceId, u16)>,
    /// What its columns are, over other sources: of a view whose query is a part of the one that
    /// names it.
    pub shown: Option<Rc<[Bound]>>,
    /// How many columns can be named: not the sort keys of a materialised subquery, nor a table's
    /// hidden columns.
    pub visible: usize,
    /// Whether all its columns may be NULL, as those of an outer join's inner side.
    pub nullable: bool,
    /// Whether its row is the value of its only column: that of a function in FROM which gives no
    /// rows of columns.
    pub is_value: bool,
    /// Whether there may be no row at all, on the inner side of an outer join.
    pub may_miss: bool,
}

impl Source {
    /// A row whose columns are expressions over other sources.
    pub fn showing(
        name: &str,
        columns: &[(String, DataType)],
        shown: Vec<Bound>,
        position: Position,
    ) -> Source {
        Source {
            name: name.to_owned(),
            columns: columns.to_vec(),
            table: None,
            record: None,
            position,
            within: None,
            shown: Some(shown.into()),
            visible: columns.len(),
            nullable: true,
            is_value: false,
            may_miss: false,
        }
    }
}

/// Whether aggregates may be called where an expression is being bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AggregatePolicy {
    /// In the output, HAVING and ORDER BY of a query.
    Allowed,
    /// In the arguments of an aggregate.
    Inside,
    /// Nowhere in this clause.
    Refused(&'static str),
}

/// A column that can be named without its table.
#[derive(Clone, Debug)]
pub(super) struct NamedColumn {
    pub name: String,
    pub bound: Bound,
}

/// The row sources of one query level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Tells it from others: aggregates and windows belong to one.
    pub number: usize,
    pub sources: Vec<SourceId>,
    /// What can be named without a table, in the order in which `*` lists it.
    pub columns: Rc<[NamedColumn]>,
    pub aggregates: AggregatePolicy,
    /// Whether its names are known, but refused: LATERAL on the right of RIGHT JOIN or FULL JOIN.
    pub is_barred: bool,
}

impl Level {
    /// A level without rows.
    pub fn empty(aggregates: AggregatePolicy) -> Level {
        Level {
            number: 0,
            sources: Vec::new(),
            columns: Rc::default(),
            aggregates,
            is_barred: false,
        }
    }
}

/// A column that is in a register now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Available {
    pub source: SourceId,
    pub column: u16,
    pub register: Reg,
}

impl Compiler<'_> {
    /// Opens a block of variables; `label` is the block's label or the function's name.
    pub fn push_variables(&mut self, label: Option<&str>) {
        let label = label.map(str::to_owned);
        self.variables.push(VariableScope {
            label,
            names: Vec::new(),
        });
    }

    /// Closes the innermost block of variables.
    pub fn pop_variables(&mut self) {
        self.variables.pop();
    }

    /// Declares a variable in the innermost block, opening one when there is none.
    ///
    /// # Errors
    /// 42601 when the block has one of that name.
    pub fn declare(&mut self, name: &str, variable: Variable, position: Position) -> Result<()> {
        if self.variables.is_empty() {
            self.variables.push(VariableScope::default());
        }
        let Some(scope) = self.variables.last_mut() else {
            return Ok(());
        };
        if scope.names.iter().any(|(known, _)| known == name) {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                format!("duplicate declaration at or near \"{name}\""),
                position,
            ));
        }
        scope.names.push((name.to_owned(), variable));
        Ok(())
    }

    /// Gives a variable another meaning (a record its fields). The variable is found as
    /// [`Compiler::variable`] finds it; nothing happens when there is none.
    pub fn redeclare(&mut self, path: &[String], variable: Variable) {
        if let Some((scope, index, _)) = self.find_variable(path) {
            self.variables[scope].names[index].1 = variable;
        }
    }

    /// As [`Compiler::redeclare`], for the variable `name` of the scope with this number, counted
    /// from the outermost.
    pub(super) fn redeclare_in(&mut self, scope: usize, name: &str, variable: Variable) {
        let names = self.variables.get_mut(scope).map(|scope| &mut scope.names);
        if let Some((_, known)) = names.into_iter().flatten().find(|(known, _)| known == name) {
            *known = variable;
        }
    }

    /// The variable that `path` names: `x`, `label.x`, `record.field` or `label.record.field`. A
    /// field is given as a scalar.
    pub fn variable(&self, path: &[String]) -> Option<Variable> {
        let (scope, index, rest) = self.find_variable(path)?;
        let variable = &self.variables[scope].names[index].1;
        match (variable, &path[rest..]) {
            (variable, []) => Some(variable.clone()),
            (Variable::Record { fields, .. }, [name]) => {
                let field = fields.iter().find(|field| field.name == *name)?;
                Some(Variable::Scalar {
                    register: field.register,
                    data_type: field.data_type.clone(),
                    constant: false,
                    not_null: false,
                })
            }
            _ => None,
        }
    }

    /// The scope and the index of the variable that `path` begins with, and how much of the path
    /// names it.
    fn find_variable(&self, path: &[String]) -> Option<(usize, usize, usize)> {
        let first = path.first()?;
        for (number, scope) in self.variables.iter().enumerate().rev() {
            let find = |name: &String| scope.names.iter().position(|(known, _)| known == name);
            if let Some(index) = find(first) {
                let is_record = matches!(scope.names[index].1, Variable::Record { .. });
                if path.len() == 1 || (path.len() == 2 && is_record) {
                    return Some((number, index, 1));
                }
            }
            if path.len() > 1
                && scope.label.as_ref() == Some(first)
                && let Some(index) = find(&path[1])
            {
                let is_record = matches!(scope.names[index].1, Variable::Record { .. });
                if path.len() == 2 || (path.len() == 3 && is_record) {
                    return Some((number, index, 2));
                }
            }
        }
        None
    }

    /// Sets what `$1`, `$2`, … mean.
    pub fn set_positional(&mut self, parameters: Vec<Typed>) {
        self.positional = Parameters::known(parameters);
    }

    /// Makes the program's parameters what `$1`, `$2`, … mean; the types that `declared` lacks are
    /// inferred. Returns the handle by which they are asked for when all is compiled.
    pub(crate) fn infer_positional(&mut self, declared: &[Option<DataType>]) -> Parameters {
        self.positional = Parameters::of_program(&self.builder, declared);
        self.positional.clone()
    }

    /// Declares a row whose columns are read through `record` as they are needed.
    pub fn declare_record_row(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        record: RecordReg,
        position: Position,
    ) -> SourceId {
        let reference = self.builder.table(table);
        let columns: Vec<_> = table
            .schema()
            .columns
            .iter()
            .map(|column| (column.name.clone(), column.data_type.clone()))
            .collect();
        self.add_source(Source {
            name: alias.to_owned(),
            visible: table.schema().shown().len(),
            columns,
            table: Some(table.clone()),
            record: Some((reference, record)),
            position,
            within: None,
            shown: None,
            nullable: false,
            may_miss: false,
            is_value: false,
        })
    }

    /// Declares a row whose columns (name, type, register) are all in registers (EXCLUDED, the new
    /// row that RETURNING and CHECK see).
    pub fn declare_register_row(
        &mut self,
        alias: &str,
        columns: &[(String, DataType, Reg)],
        position: Position,
    ) -> SourceId {
        let names = columns
            .iter()
            .map(|(name, data_type, _)| (name.clone(), data_type.clone()));
        let source = self.add_source(Source {
            name: alias.to_owned(),
            columns: names.collect(),
            table: None,
            record: None,
            position,
            within: None,
            shown: None,
            visible: columns.len(),
            nullable: true,
            may_miss: false,
            is_value: false,
        });
        for (column, (_, _, register)) in columns.iter().enumerate() {
            self.set_column(source, column, *register);
        }
        source
    }

    /// Says that a column of a row is in `register` until the innermost block is closed: a newly
    /// written value, for instance.
    pub fn set_column(&mut self, source: SourceId, column: usize, register: Reg) {
        self.available.push(Available {
            source,
            column: column as u16,
            register,
        });
    }

    /// The register of a row's column, reading it when it is in none.
    ///
    /// # Errors
    /// XX000 when the row is not at hand.
    pub fn column(&mut self, source: SourceId, column: ColumnId) -> Result<Reg> {
        self.prefetch_columns(&[(source, column.0)])?;
        self.available_column(source, column.0)
    }

    /// Puts rows in scope, as one level inside those that are.
    pub fn push_rows(&mut self, sources: &[SourceId]) {
        let level = self.level_of(sources, AggregatePolicy::Refused("this clause"));
        self.levels.push(level);
    }

    /// Puts rows in scope of a clause that has no aggregates.
    pub(super) fn push_rows_of(&mut self, sources: &[SourceId], clause: &'static str) {
        let level = self.level_of(sources, AggregatePolicy::Refused(clause));
        self.levels.push(level);
    }

    /// A level of these sources, whose columns can be named without them.
    pub(super) fn level_of(&self, sources: &[SourceId], aggregates: AggregatePolicy) -> Level {
        let columns = sources
            .iter()
            .flat_map(|source| self.columns_of_row(*source));
        Level {
            number: 0,
            sources: sources.to_vec(),
            columns: columns.collect(),
            aggregates,
            is_barred: false,
        }
    }

    /// Names and values of a row's columns.
    pub(super) fn columns_of_row(&self, source: SourceId) -> Vec<NamedColumn> {
        let row = self.source(source);
        let columns = row.columns[..row.visible].iter().enumerate();
        columns
            .map(|(column, (name, _))| NamedColumn {
                name: name.clone(),
                bound: self.column_of(source, column, None),
            })
            .collect()
    }

    /// The source of this name whose row an expression can name, if no column has the name.
    pub(super) fn row_named(&self, name: &str) -> Option<SourceId> {
        let mut sources = self.levels.iter().rev().flat_map(|level| &level.sources);
        sources.find(|id| self.source(**id).name == name).copied()
    }

    /// The value of a variable; what is known of a trigger is a constant.
    fn value_of(&self, register: Reg, data_type: DataType, position: Position) -> Bound {
        match self.builder.constant_value(register) {
            Some(value) => Bound::constant(value.clone(), data_type, position),
            None => Bound::register(register, data_type, position),
        }
    }

    /// Whether the rows of a level have the columns of a source.
    pub(super) fn has_source(&self, level: &Level, source: SourceId) -> bool {
        level.sources.iter().any(|known| {
            let Source { within, shown, .. } = self.source(*known);
            let mut shown = shown.iter().flat_map(|them| &**them);
            *known == source
                || within.is_some_and(|(whole, _)| whole == source)
                || shown.any(|bound| bound.sources().contains(&source))
        })
    }

    /// The value of a row's column.
    pub(super) fn column_of(&self, source: SourceId, column: usize, position: Position) -> Bound {
        let row = self.source(source);
        if let Some(shown) = &row.shown {
            let bound = shown[column].clone();
            return Bound { position, ..bound };
        }
        let data_type = row.columns[column].1.clone();
        let kind = match row.within {
            Some((source, first)) => Kind::Column {
                source,
                column: first + column as u16,
            },
            None => Kind::Column {
                source,
                column: column as u16,
            },
        };
        Bound::new(kind, data_type, position)
    }

    /// Takes the innermost rows out of scope.
    pub fn pop_rows(&mut self) {
        self.levels.pop();
    }

    pub(super) fn add_source(&mut self, source: Source) -> SourceId {
        self.sources.push(source);
        SourceId((self.sources.len() - 1) as u32)
    }

    pub(super) fn source(&self, id: SourceId) -> &Source {
        &self.sources[id.0 as usize]
    }

    pub(super) fn source_mut(&mut self, id: SourceId) -> &mut Source {
        &mut self.sources[id.0 as usize]
    }

    pub(super) fn find_available(&self, source: SourceId, column: u16) -> Option<Reg> {
        self.available
            .iter()
            .rev()
            .find(|one| one.source == source && one.column == column)
            .map(|one| one.register)
    }

    pub(super) fn available_column(&self, source: SourceId, column: u16) -> Result<Reg> {
        self.find_available(source, column).ok_or_else(|| {
            let Source { name, columns, .. } = self.source(source);
            kiln_storage::error::Error::internal(format!(
                "column {} of {name} is not at hand",
                columns[column as usize].0
            ))
        })
    }

    /// Reads those of `needed` that are in no register, with one step for each record.
    pub(super) fn prefetch_columns(&mut self, needed: &[(SourceId, u16)]) -> Result<()> {
        let mut missing: Vec<(SourceId, u16)> = needed
            .iter()
            .copied()
            .filter(|(source, column)| self.find_available(*source, *column).is_none())
            .collect();
        missing.sort_unstable();
        missing.dedup();
        for group in missing.chunk_by(|one, other| one.0 == other.0) {
            let source = group[0].0;
            let Some((table, record)) = self.source(source).record else {
                continue;
            };
            let position = self.source(source).position;
            let columns: Vec<ColumnId> =
                group.iter().map(|(_, column)| ColumnId(*column)).collect();
            let registers = self.builder.read(table, record, &columns, position);
            for ((_, column), register) in group.iter().zip(registers) {
                self.available.push(Available {
                    source,
                    column: *column,
                    register,
                });
            }
        }
        Ok(())
    }

    /// What an identifier, qualified or not, means in an expression.
    pub(super) fn resolve(&self, idents: &[Ident]) -> Result<Bound> {
        let position = idents
            .first()
            .and_then(|ident| position_of_span(ident.span));
        let mut path: Vec<String> = idents.iter().map(name_of).collect();
        let schema = match path.len() {
            3 if self.is_schema(&path[0]) && self.variable(&path).is_none() => Some(path.remove(0)),
            _ => None,
        };
        let column = match path.as_slice() {
            [name] => self.find_column(name, position)?,
            [table, name] => self.find_qualified(schema.as_deref(), table, name, position)?,
            _ => None,
        };
        let variable = self.variable(&path);
        match (column, variable) {
            (Some(bound), Some(_)) if self.prefers_columns => Ok(bound),
            (Some(_), Some(_)) => Err(fail(
                SqlState::AMBIGUOUS_COLUMN,
                format!("column reference \"{}\" is ambiguous", path.join(".")),
                position,
            )
            .with_detail("It could refer to either a PL/pgSQL variable or a table column.")),
            (Some(bound), None) => Ok(bound),
            (
                None,
                Some(Variable::Scalar {
                    register,
                    data_type,
                    ..
                }),
            ) => Ok(self.value_of(register, data_type, position)),
            (None, Some(Variable::Record { fields, .. })) if fields.is_empty() => Err(fail(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("record \"{}\" is not assigned yet", path.join(".")),
                position,
            )
            .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")),
            (
                None,
                Some(Variable::Record {
                    fields,
                    of,
                    is_there,
                }),
            ) => self.value_of_record(fields, of, is_there, position),
            (None, None) => {
                if let Some(bound) = self.value_of_row(&path, position)? {
                    return Ok(bound);
                }
                match self.field_of_variable(&path, position)? {
                    Some(bound) => Ok(bound),
                    None => Err(self.unresolved(&path, position)),
                }
            }
        }
    }

    /// The value of a row that a name means.
    fn value_of_row(&self, path: &[String], position: Position) -> Result<Option<Bound>> {
        let [name] = path else { return Ok(None) };
        match self.row_named(name) {
            // That of a function of one value in FROM.
            Some(source) if self.source(source).is_value => {
                Ok(Some(self.column_of(source, 0, position)))
            }
            Some(source) => self.whole_row(source, position).map(Some),
            None => Ok(None),
        }
    }

    /// The row of a source, as a value.
    ///
    /// # Errors
    /// 0A000 where it cannot be told whether there is one; those of [`record_of`].
    pub(super) fn whole_row(&self, source: SourceId, position: Position) -> Result<Bound> {
        let row = self.source(source);
        let columns = self.columns_of_row(source);
        let table = row.table.as_ref().map(|table| table.schema());
        let named = table.and_then(|schema| self.catalog.row_type(&schema.name));
        let of = match named.filter(|of| of.fields().len() == columns.len()) {
            Some(of) => of,
            None => {
                let fields = columns.iter();
                let fields = fields.map(|it| (it.name.clone(), &it.bound.data_type));
                record_of(fields, position)?
            }
        };
        let fields = columns.into_iter().map(|column| column.bound).collect();
        let value = pack(fields, &of, position);
        if !row.may_miss {
            return Ok(value);
        }
        // A column that is never NULL in a row tells whether there is one.
        let certain = table.and_then(|schema| schema.columns.iter().position(|it| it.not_null));
        let Some(certain) = certain else {
            let what = "the row of an outer join as a value, where no column is NOT NULL";
            return Err(unsupported(what, position));
        };
        let certain = self.column_of(source, certain, position);
        let is_null = Operation::IsNull { negated: false };
        let misses = operation(is_null, vec![certain], DataType::Boolean, position);
        let data_type = value.data_type.clone();
        let null = Bound::null(data_type.clone(), position);
        let kind = Kind::Case {
            branches: vec![(misses, null)],
            otherwise: Some(Box::new(value)),
        };
        Ok(Bound::new(kind, data_type, position))
    }

    /// The value of a record variable. One whose fields are all NULL is taken for one that has not
    /// been assigned, which is NULL.
    fn value_of_record(
        &self,
        fields: Vec<Field>,
        of: Option<Arc<RowType>>,
        is_there: bool,
        position: Position,
    ) -> Result<Bound> {
        let of = match of {
            Some(of) => of,
            None => {
                let types = fields.iter();
                let types = types.map(|field| (field.name.clone(), &field.data_type));
                record_of(types, position)?
            }
        };
        let fields = fields.into_iter();
        let fields = fields.map(|it| self.value_of(it.register, it.data_type, position));
        let fields: Vec<Bound> = fields.collect();
        // The row that the event of a trigger does not have.
        if fields.iter().all(Bound::is_null_literal) {
            return Ok(Bound::null(DataType::Row(of), position));
        }
        Ok(match is_there {
            true => pack(fields, &of, position),
            false => pack_unless_null(fields, &of, position),
        })
    }

    /// Says of a row variable of the innermost scope of what type it is, and whether it is a row
    /// even where all its fields are NULL.
    pub(super) fn describe_row(&mut self, name: &str, named: Option<Arc<RowType>>, always: bool) {
        let names = self.variables.last_mut().map(|scope| &mut scope.names);
        let known = names.into_iter().flatten().find(|(known, _)| known == name);
        if let Some((_, Variable::Record { of, is_there, .. })) = known {
            (*of, *is_there) = (named, always);
        }
    }

    /// `variable.field`, of a variable whose value is a row.
    fn field_of_variable(&self, path: &[String], position: Position) -> Result<Option<Bound>> {
        for end in (1..path.len()).rev() {
            if let Some(Variable::Scalar {
                register,
                data_type: data_type @ DataType::Row(_),
                ..
            }) = self.variable(&path[..end])
            {
                let mut bound = self.value_of(register, data_type, position);
                for name in &path[end..] {
                    bound = field_named(&bound, name, position)?;
                }
                return Ok(Some(bound));
            }
        }
        Ok(None)
    }

    fn unresolved(&self, path: &[String], position: Position) -> kiln_storage::error::Error {
        let undefined = |message: String| fail(SqlState::UNDEFINED_COLUMN, message, position);
        match path {
            [name] => undefined(format!("column \"{name}\" does not exist")),
            [table, name] => {
                if let Some(Variable::Record { fields, .. }) = self.variable(&path[..1]) {
                    if fields.is_empty() {
                        return fail(
                            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                            format!("record \"{table}\" is not assigned yet"),
                            position,
                        )
                        .with_detail(
                            "The tuple structure of a not-yet-assigned record is indeterminate.",
                        );
                    }
                    return undefined(format!("record \"{table}\" has no field \"{name}\""));
                }
                fail(
                    SqlState::UNDEFINED_TABLE,
                    format!("missing FROM-clause entry for table \"{table}\""),
                    position,
                )
            }
            _ => undefined(format!("column {} does not exist", path.join("."))),
        }
    }

    fn find_column(&self, name: &str, position: Position) -> Result<Option<Bound>> {
        for level in self.levels.iter().rev() {
            let mut found = level.columns.iter().filter(|column| column.name == name);
            let Some(column) = found.next() else {
                continue;
            };
            if found.next().is_some() {
                return Err(fail(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("column reference \"{name}\" is ambiguous"),
                    position,
                ));
            }
            if level.is_barred {
                return Err(self.barred(&column.bound, position));
            }
            let bound = column.bound.clone();
            return Ok(Some(Bound { position, ..bound }));
        }
        Ok(None)
    }

    /// The refusal of a name that only an inner or left join would let a LATERAL item use.
    #[cold]
    fn barred(&self, bound: &Bound, position: Position) -> kiln_storage::error::Error {
        let sources = bound.sources();
        let table = sources.first().map_or("", |id| &self.source(*id).name);
        fail(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("invalid reference to FROM-clause entry for table \"{table}\""),
            position,
        )
        .with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
    }

    /// Whether there is a schema of this name, the system's among them.
    fn is_schema(&self, name: &str) -> bool {
        matches!(name, "pg_catalog" | "information_schema") || self.catalog.has_schema(name)
    }

    /// The column of a row, where `schema` is that of the table that the row is of, if it is given.
    fn find_qualified(
        &self,
        schema: Option<&str>,
        table: &str,
        name: &str,
        position: Position,
    ) -> Result<Option<Bound>> {
        let levels = self.levels.iter().rev();
        let sources = levels.flat_map(|level| level.sources.iter().map(move |id| (level, *id)));
        for (level, id) in sources {
            let source = self.source(id);
            let is_of = |schema: &str| {
                let table = source.table.as_ref().map(|table| &table.schema().name);
                table.is_none_or(|table| schema_of(table) == schema)
            };
            if source.name != table || !schema.is_none_or(is_of) {
                continue;
            }
            let mut columns = source.columns[..source.visible].iter().enumerate();
            let column = columns.find(|(_, (known, _))| known == name);
            return match column {
                Some((column, _)) if level.is_barred => {
                    Err(self.barred(&self.column_of(id, column, position), position))
                }
                Some(_) if columns.any(|(_, (known, _))| known == name) => Err(fail(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("column reference \"{name}\" is ambiguous"),
                    position,
                )),
                Some((column, _)) => Ok(Some(self.column_of(id, column, position))),
                // A record variable may have the table's name and this field.
                None if self
                    .variable(&[table.to_owned(), name.to_owned()])
                    .is_some() =>
                {
                    Ok(None)
                }
                None => Err(fail(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column {table}.{name} does not exist"),
                    position,
                )),
            };
        }
        Ok(None)
    }

    /// What `$number` means.
    pub(super) fn placeholder(&self, text: &str, position: Position) -> Result<Bound> {
        let number: Option<usize> = text.strip_prefix('$').and_then(|text| text.parse().ok());
        let parameter = number.and_then(|number| self.positional.reference(number, position));
        parameter.ok_or_else(|| {
            fail(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {text}"),
                position,
            )
        })
    }
}
