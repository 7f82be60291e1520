//! ALTER TABLE: what a table becomes, change by change, and how its rows follow.
//!
//! A [`Draft`] is the table as it will be. Each change is checked against it, so that several
//! changes of one statement see each other; the expressions of USING see the rows as they were.

use kiln_engine::SearchPath;
use kiln_engine::{NewColumn, NewRows};
use kiln_platform::sync::Arc;
use kiln_procedure::ProgramBuilder;
use kiln_procedure::ir::{Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{
    Check, Column, ColumnId, ColumnSet, Deferral, ForeignKey, IndexDefinition, Partitioning,
    TableSchema, UnbuiltIndex,
};
use kiln_storage::sequence::SequenceDefinition;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{self, Expr, Ident};

use super::super::bound::Bound;
use super::super::coerce::{CastContext, cast_context, coerce};
use super::super::expression::columns_of_generated;
use super::super::{
    CatalogView, Compiler, DeclaredType, column_type, expression_columns, fail, name_of,
    position_of, position_of_span, stored_expression, unsupported,
};
use super::index::IndexDeclaration;
use super::table::{self, Constraints, UniqueKey};
use super::{generated, index_expression, kept_default, names, partition, references};
use crate::parse::{AddedColumn, AddedConstraint};

/// Where the values of a column come from.
#[derive(Clone, Copy)]
enum Source<'s> {
    /// From a column of the table before.
    Kept(ColumnId),
    /// From such a column, converted, by an expression if there is one.
    Converted(ColumnId, Option<&'s Expr>),
    /// They are its default values.
    Added,
}

impl Source<'_> {
    fn before(self) -> Option<ColumnId> {
        match self {
            Source::Kept(column) | Source::Converted(column, _) => Some(column),
            Source::Added => None,
        }
    }
}

/// A table as it will be.
pub struct Draft<'s> {
    before: Arc<Table>,
    /// As it will be declared.
    pub schema: TableSchema,
    sources: Vec<Source<'s>>,
    /// Its indexes besides the first, without those that are derived.
    pub indexes: Vec<IndexDefinition>,
    constraints: Constraints<'s>,
    /// The constraints whose rows are still to be checked.
    pub unchecked: Vec<String>,
}

impl<'s> Draft<'s> {
    /// A table as it is. `is_derived` says which indexes no statement has declared.
    pub fn of(before: &Arc<Table>, is_derived: impl Fn(&IndexDefinition) -> bool) -> Draft<'s> {
        let schema = before.schema().clone();
        let indexes = before.indexes().iter().skip(1);
        let indexes = indexes.map(|index| index.definition());
        let columns = 0..schema.columns.len() as u16;
        Draft {
            before: before.clone(),
            sources: columns.map(|at| Source::Kept(ColumnId(at))).collect(),
            indexes: indexes.filter(|it| !is_derived(it)).cloned().collect(),
            constraints: Constraints::default(),
            unchecked: Vec::new(),
            schema,
        }
    }

    /// The table before.
    pub fn before(&self) -> &Arc<Table> {
        &self.before
    }

    /// The column called `ident`.
    ///
    /// # Errors
    /// 42703.
    pub fn column(&self, ident: &Ident) -> Result<ColumnId> {
        let name = name_of(ident);
        self.schema.column(&name).ok_or_else(|| {
            let table = name_in_schema(&self.schema.name);
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            fail(
                SqlState::UNDEFINED_COLUMN,
                message,
                position_of_span(ident.span),
            )
        })
    }

    /// What a column of the table before is called by now; `None` when it goes.
    pub fn column_after(&self, before: ColumnId) -> Option<ColumnId> {
        let mut sources = self.sources.iter();
        let at = sources.position(|source| source.before() == Some(before))?;
        Some(ColumnId(at as u16))
    }

    /// Whether a column has other values than before.
    pub fn is_converted(&self, column: ColumnId) -> bool {
        matches!(self.sources[column.index()], Source::Converted(..))
    }

    /// Whether rows will lie otherwise than they do.
    pub fn is_rewritten(&self) -> bool {
        let is_same = |(at, source): (usize, &Source<'_>)| matches!(source, Source::Kept(column) if column.index() == at);
        !self.sources.iter().enumerate().all(is_same) || !self.before.has_layout_of(&self.schema)
    }

    /// ADD COLUMN of a column that is not there. Returns the sequence from which it has its default
    /// value, if it has one of its own.
    ///
    /// # Errors
    /// As for CREATE TABLE.
    pub fn add_column(
        &mut self,
        added: &'s AddedColumn,
        catalog: &dyn CatalogView,
    ) -> Result<Option<SequenceDefinition>> {
        let definition = &added.definition;
        let column = table::declare_column(name_in_schema(&self.schema.name), definition, catalog)?;
        let at = self.schema.shown().len();
        let unbuilt = self.schema.unbuilt.iter_mut();
        let unbuilt = unbuilt.map(|index| &mut index.definition);
        for column in (self.indexes.iter_mut().chain(unbuilt)).flat_map(|it| &mut it.columns) {
            column.0 += u16::from(column.index() >= at);
        }
        self.schema.columns.insert(at, column);
        self.sources.insert(at, Source::Added);
        let identities = added.identities.iter();
        let identities: Vec<_> = identities.map(|(it, options)| (*it, options)).collect();
        let is_taken = |name: &str| names::is_relation(catalog, name);
        let made =
            table::declare_sequence(&mut self.schema, at, definition, &identities, is_taken)?;
        generated::check(&self.schema, at, catalog)?;
        table::check_default(definition, &mut self.schema.columns[at], catalog)?;
        let id = ColumnId(at as u16);
        self.constraints.set_columns.extend(&added.set_columns);
        (self.constraints).add_of_column(&mut self.schema, id, definition)?;
        Ok(made)
    }

    /// DROP COLUMN, with the indexes and the constraints of the table that it is in. Nothing of
    /// other tables needs it.
    ///
    /// # Errors
    /// 42P16 for the column by which rows are divided.
    pub fn drop_column(&mut self, column: ColumnId) -> Result<()> {
        let computed = self.hidden_from(column)?;
        let (schema, name) = (&mut self.schema, &self.before.schema().name);
        if schema.partition_column() == Some(column) {
            return Err(in_partition_key("drop", schema, column));
        }
        let mentions = |check: &Check| {
            let expr = stored_expression(&check.expression);
            expr.is_ok_and(|expr| expression_columns(&expr, schema).contains(&column.index()))
        };
        let gone: Vec<String> = (schema.checks.iter())
            .filter(|check| mentions(check))
            .map(|check| check.name.clone())
            .collect();
        schema.checks.retain(|check| !gone.contains(&check.name));
        schema.foreign_keys.retain(|key| {
            let refers = key.table == *name && key.referenced.contains(&column);
            !refers && !key.columns.contains(&column)
        });
        if schema.primary_key.contains(&column) {
            schema.primary_key.clear();
            schema.primary_key_name = None;
        }
        let mut taken: ColumnSet = computed;
        taken.insert(column);
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.indexes)
            .into_iter()
            .partition(|index| !index.columns.iter().any(|it| taken.contains(*it)));
        self.indexes = kept;
        schema.unbuilt.retain(|index| {
            let mut columns = index.definition.columns.iter();
            !columns.any(|it| taken.contains(*it))
        });
        if (gone.iter()).any(|index| schema.primary_key_name.as_ref() == Some(&index.name)) {
            schema.primary_key_name = None;
        }
        self.remove_column(column);
        self.drop_unused_columns();
        Ok(())
    }

    /// Adds an index, and the columns that it needs.
    pub fn add_index(&mut self, declaration: IndexDeclaration) {
        let is_built = declaration.is_built();
        let IndexDeclaration {
            definition,
            classes,
            hidden,
            ..
        } = declaration;
        let added = hidden.iter().map(|_| Source::Added);
        self.sources.extend(added);
        self.schema.columns.extend(hidden);
        match is_built {
            true => self.indexes.push(definition),
            false => self.schema.unbuilt.push(UnbuiltIndex {
                definition,
                classes,
            }),
        }
    }

    /// Takes an index away, and the columns that it alone needs.
    pub fn drop_index(&mut self, name: &str) {
        self.indexes.retain(|index| index.name != name);
        (self.schema.unbuilt).retain(|index| index.definition.name != name);
        self.drop_unused_columns();
    }

    fn drop_unused_columns(&mut self) {
        let unbuilt = self.schema.unbuilt.iter();
        let unbuilt = unbuilt.map(|index| &index.definition);
        let indexes = self.indexes.iter().chain(unbuilt);
        let used: ColumnSet = indexes.flat_map(|it| it.columns.iter().copied()).collect();
        let hidden: Vec<ColumnId> = self.schema.hidden_columns().collect();
        // From behind, so that the others stay where they are.
        for column in hidden.into_iter().rev() {
            if !used.contains(column) {
                self.remove_column(column);
            }
        }
    }

    /// Takes a column away that no index has.
    fn remove_column(&mut self, column: ColumnId) {
        let (schema, name) = (&mut self.schema, &self.before.schema().name);
        let move_up = |columns: &mut Vec<ColumnId>| {
            let behind = columns.iter_mut().filter(|it| it.0 > column.0);
            behind.for_each(|it| it.0 -= 1);
        };
        move_up(&mut schema.primary_key);
        for key in &mut schema.foreign_keys {
            move_up(&mut key.columns);
            move_up(&mut key.set_on_delete);
            if key.table == *name {
                move_up(&mut key.referenced);
            }
        }
        if let Some(Partitioning::Column(by)) = &mut schema.partition_by {
            by.0 -= u16::from(by.0 > column.0);
        }
        (self.indexes.iter_mut()).for_each(|index| move_up(&mut index.columns));
        let unbuilt = schema.unbuilt.iter_mut();
        unbuilt.for_each(|index| move_up(&mut index.definition.columns));
        (schema.triggers.iter_mut()).for_each(|trigger| move_up(&mut trigger.columns));
        schema.columns.remove(column.index());
        self.sources.remove(column.index());
    }

    /// SET NOT NULL, or DROP NOT NULL.
    ///
    /// # Errors
    /// 42P16 for a column of the primary key.
    pub fn set_not_null(&mut self, column: ColumnId, not_null: bool) -> Result<()> {
        if !not_null && self.primary_columns().contains(&column) {
            let name = &self.schema.columns[column.index()].name;
            let message = format!("column \"{name}\" is in a primary key");
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        self.schema.columns[column.index()].not_null = not_null;
        Ok(())
    }

    /// The columns of the primary key, however it is indexed.
    fn primary_columns(&self) -> Vec<ColumnId> {
        let mut indexes = self.indexes.iter();
        let name = self.schema.primary_key_name.as_ref();
        match indexes.find(|index| Some(&index.name) == name) {
            Some(index) => index.columns.clone(),
            None => self.schema.primary_key.clone(),
        }
    }

    /// ALTER COLUMN TYPE.
    ///
    /// # Errors
    /// 42704 and its like for the type; 42804 where values do not convert by themselves, or a
    /// foreign key cannot be; what a CHECK says of other types.
    pub fn set_type(
        &mut self,
        column: ColumnId,
        written: &ast::DataType,
        using: Option<&'s Expr>,
        catalog: &dyn CatalogView,
    ) -> Result<()> {
        let DeclaredType { data_type, domain } = column_type(written, catalog, None)?;
        let domain = domain.map(|domain| domain.name.clone());
        if !data_type.is_storable() {
            return Err(unsupported(format!("a column of type {data_type}"), None));
        }
        if self.schema.partition_column() == Some(column) {
            return Err(in_partition_key("alter", &self.schema, column));
        }
        self.check_generated_type(column, using)?;
        let name = self.schema.columns[column.index()].name.clone();
        let Some(from) = self.sources[column.index()].before() else {
            return Err(Error::internal(
                "types are changed before columns are added",
            ));
        };
        let old = &self.before.schema().columns[from.index()];
        let is_same = old.data_type == data_type && old.domain == domain;
        if is_same && using.is_none() {
            return Ok(());
        }
        if using.is_none() && !converts(&old.data_type, &data_type) {
            let target = domain.as_deref().unwrap_or(data_type.base_name());
            let message =
                format!("column \"{name}\" cannot be cast automatically to type {target}");
            let quoted = super::super::quoting::quote_identifier(&name);
            return Err(
                Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(format!(
                    "You might need to specify \"USING {quoted}::{}\".",
                    domain.unwrap_or_else(|| data_type.to_string())
                )),
            );
        }
        self.schema.columns[column.index()].data_type = data_type;
        self.schema.columns[column.index()].domain = domain;
        self.sources[column.index()] = Source::Converted(from, using);
        self.compute_anew(column, catalog)?;
        self.check_default_of(column, catalog)?;
        self.check_constraints_on(column, catalog)
    }

    /// Has the hidden columns that are computed from a column computed anew.
    fn compute_anew(&mut self, column: ColumnId, catalog: &dyn CatalogView) -> Result<()> {
        for hidden in self.hidden_from(column)?.iter() {
            let text = self.schema.columns[hidden.index()].generated.as_deref();
            let expr = stored_expression(text.unwrap_or_default())?;
            let bound = index_expression::bind(&self.schema, &expr, catalog)?;
            self.schema.columns[hidden.index()].data_type = bound.data_type;
            self.sources[hidden.index()] = Source::Added;
        }
        Ok(())
    }

    /// A column from which another one is computed keeps its type, and a column that is computed
    /// converts by itself.
    fn check_generated_type(&self, column: ColumnId, using: Option<&Expr>) -> Result<()> {
        let definition = &self.schema.columns[column.index()];
        let name = &definition.name;
        if let Some(other) = self.generated_from(column)?.iter().next() {
            let other = &self.schema.columns[other.index()].name;
            let message = "cannot alter type of a column used by a generated column";
            let detail = format!("Column \"{name}\" is used by generated column \"{other}\".");
            return Err(Error::unsupported(message).with_detail(detail));
        }
        if definition.generated.is_some() && using.is_some() {
            let message = "cannot specify USING when altering type of generated column";
            let error = Error::new(SqlState::INVALID_COLUMN_DEFINITION, message);
            return Err(error.with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        Ok(())
    }

    /// The generated columns that are computed from a column, without hidden ones.
    ///
    /// # Errors
    /// XX000 for a text that is no expression.
    pub fn generated_from(&self, column: ColumnId) -> Result<ColumnSet> {
        let shown = ColumnSet::first(self.schema.shown().len());
        Ok(self.computed_from(column)?.intersection(shown))
    }

    /// The hidden columns that are computed from a column.
    fn hidden_from(&self, column: ColumnId) -> Result<ColumnSet> {
        let shown = ColumnSet::first(self.schema.shown().len());
        Ok(self.computed_from(column)?.difference(shown))
    }

    fn computed_from(&self, column: ColumnId) -> Result<ColumnSet> {
        let mut found = ColumnSet::EMPTY;
        for at in 0..self.schema.columns.len() as u16 {
            let from = columns_of_generated(&self.schema, ColumnId(at))?;
            if from.contains(column) {
                found.insert(ColumnId(at));
            }
        }
        Ok(found)
    }

    fn check_default_of(&self, column: ColumnId, catalog: &dyn CatalogView) -> Result<()> {
        let column = &self.schema.columns[column.index()];
        let Some(default) = &column.default else {
            return Ok(());
        };
        let expr = stored_expression(default)?;
        let mut compiler = super::super::scratch(catalog);
        let bound = compiler.along(&SearchPath::default(), |compiler| compiler.bind(&expr))?;
        if bound.is_unknown() || converts(&bound.data_type, &column.data_type) {
            return Ok(());
        }
        let message = format!(
            "default for column \"{}\" cannot be cast automatically to type {}",
            column.name,
            column.data_type.base_name()
        );
        Err(Error::new(SqlState::DATATYPE_MISMATCH, message))
    }

    /// The constraints on a column hold for another type, or are to be checked.
    fn check_constraints_on(&mut self, column: ColumnId, catalog: &dyn CatalogView) -> Result<()> {
        for check in &self.schema.checks {
            let expr = stored_expression(&check.expression)?;
            let bound = table::bind_check(&self.schema, &expr, catalog)?;
            let touched = bound.columns().iter().any(|(_, at)| *at == column.0);
            if touched && check.is_valid {
                self.unchecked.push(check.name.clone());
            }
        }
        for key in &self.schema.foreign_keys {
            if !key.columns.contains(&column) {
                continue;
            }
            let other = match key.table == self.schema.name {
                true => Some(self.schema.clone()),
                false => (catalog.table(&key.table)).map(|table| table.schema().clone()),
            };
            if let Some(other) = other {
                references::check_types(&self.schema, key, &other)?;
            }
            if key.is_valid {
                self.unchecked.push(key.name.clone());
            }
        }
        Ok(())
    }

    /// ADD of a constraint.
    ///
    /// # Errors
    /// 42703 for a column, 42P16 for a second primary key, 0A000.
    pub fn add_constraint(&mut self, added: &'s AddedConstraint) -> Result<()> {
        self.constraints.set_columns.extend(&added.set_columns);
        (self.constraints).add(&mut self.schema, &added.constraint, !added.not_valid)
    }

    /// DROP CONSTRAINT; says whether there was one. No foreign key of another constraint needs it.
    pub fn drop_constraint(&mut self, name: &str) -> bool {
        let schema = &mut self.schema;
        let count = schema.checks.len() + schema.foreign_keys.len() + self.indexes.len();
        schema.checks.retain(|check| check.name != name);
        schema.foreign_keys.retain(|key| key.name != name);
        (self.indexes).retain(|index| !index.constraint || index.name != name);
        let left = schema.checks.len() + schema.foreign_keys.len() + self.indexes.len();
        let is_primary = schema.primary_key_name.as_deref() == Some(name);
        if is_primary {
            schema.primary_key.clear();
            schema.primary_key_name = None;
        }
        is_primary || left < count
    }

    /// Whether there is a constraint called `name`.
    pub fn has_constraint(&self, name: &str) -> bool {
        let names = table::constraint_names(&self.schema, &self.indexes);
        names.iter().any(|known| known == name)
    }

    /// The columns of the unique keys: of the primary key, and of unique indexes and constraints.
    pub fn unique_keys(&self) -> impl Iterator<Item = &[ColumnId]> {
        let unique = self.indexes.iter().filter(|index| index.keeps_unique());
        let unique = unique.map(|index| index.columns.as_slice());
        unique.chain([self.schema.primary_key.as_slice()])
    }

    /// Checks the constraints that were added, and gives them their names.
    ///
    /// # Errors
    /// As for CREATE TABLE.
    pub fn declare(&mut self, catalog: &dyn CatalogView) -> Result<()> {
        let constraints = std::mem::take(&mut self.constraints);
        let (own, kept) = (self.schema.name.clone(), self.indexes.len());
        let is_taken = |name: &str| names::is_relation_besides(catalog, &beside(&own, name), &own);
        if let Some(key) = &constraints.primary_key {
            let is_taken =
                |name: &str| is_taken(name) || self.indexes.iter().any(|index| index.name == name);
            let position = key.name.as_ref().map(|name| name.span);
            let position = position.and_then(position_of_span);
            let name = table::primary_key_name(&self.schema, key, &is_taken, position)?;
            match self.is_rewritten() && !key.deferral.is_deferrable() {
                true => self.schema.primary_key.clone_from(&key.columns),
                false => self.indexes.push(table::key_index(name.clone(), key)),
            }
            self.schema.primary_key_name = Some(name);
        }
        table::declare_keys(
            &self.schema,
            &mut self.indexes,
            &constraints,
            &is_taken,
            None,
        )?;
        let keys = constraints.unique.iter().chain(&constraints.primary_key);
        for name in keys.filter_map(|key| key.name.as_ref()) {
            let mut others = self.schema.clone();
            others.primary_key_name = None;
            let position = position_of_span(name.span);
            table::refuse_duplicate(&others, &[], &name_of(name), position)?;
        }
        partition::check_keys(&self.schema, self.unique_keys())?;
        // The index of a deferrable key takes rows with equal keys.
        let deferrable = self.indexes.iter().enumerate();
        for (at, index) in deferrable.filter(|(_, it)| it.deferral.is_deferrable()) {
            if at >= kept || index.columns.iter().any(|it| self.is_converted(*it)) {
                self.unchecked.push(index.name.clone());
            }
        }
        for written in &constraints.checks {
            let check = table::declare_check(&self.schema, &self.indexes, written, catalog)?;
            if check.is_valid {
                self.unchecked.push(check.name.clone());
            }
            self.schema.checks.push(check);
        }
        let key = |columns: &[ColumnId], deferral| UniqueKey {
            columns: columns.to_vec(),
            nulls_equal: false,
            deferral,
            name: None,
        };
        let unique = self.indexes.iter().filter(|index| index.keeps_unique());
        let keys = unique.map(|index| key(&index.columns, index.deferral));
        let mut keys: Vec<UniqueKey> = keys.collect();
        if !self.schema.primary_key.is_empty() {
            keys.push(key(&self.schema.primary_key, Deferral::No));
        }
        for (columns, written) in constraints.foreign_keys {
            let (schema, indexes) = (&self.schema, &self.indexes);
            let written = (&written, constraints.set_columns.as_slice());
            let key = table::declare_reference(schema, indexes, &keys, columns, written, catalog)?;
            if key.is_valid {
                self.unchecked.push(key.name.clone());
            }
            self.schema.foreign_keys.push(key);
        }
        partition::check_actions(&self.schema)
    }

    /// How the rows follow, if they will lie otherwise.
    ///
    /// # Errors
    /// What is wrong with the expressions that compute values.
    pub fn rows(&self, catalog: &dyn CatalogView) -> Result<NewRows> {
        let old = self.before.schema();
        let mut arguments: Vec<ColumnId> = Vec::new();
        for source in &self.sources {
            match source {
                Source::Converted(from, None) => arguments.push(*from),
                Source::Converted(_, Some(expr)) => {
                    let used = expression_columns(expr, old).into_iter();
                    arguments.extend(used.map(|at| ColumnId(at as u16)));
                }
                Source::Kept(_) | Source::Added => {}
            }
        }
        arguments.extend(self.kept_for_generated()?);
        arguments.sort_unstable();
        arguments.dedup();
        let (mut columns, mut computed) = (Vec::new(), Vec::new());
        for (at, source) in self.sources.iter().enumerate() {
            columns.push(match source {
                Source::Kept(column) => NewColumn::Kept(*column),
                _ => {
                    computed.push(at);
                    NewColumn::Computed(computed.len() - 1)
                }
            });
        }
        let program = match computed.is_empty() {
            true => None,
            false => Some(Arc::new(self.program(&arguments, &computed, catalog)?)),
        };
        Ok(NewRows {
            schema: self.schema.clone(),
            indexes: self.indexes.clone(),
            columns,
            program,
            arguments,
        })
    }

    /// A program that computes the values of some columns of the new row from columns of the old
    /// one.
    fn program(
        &self,
        arguments: &[ColumnId],
        computed: &[usize],
        catalog: &dyn CatalogView,
    ) -> Result<kiln_procedure::Program> {
        let old = self.before.schema();
        let column = |id: &ColumnId| &old.columns[id.index()];
        let parameters = arguments.iter().map(column);
        let parameters = parameters.map(|it| (it.name.clone(), it.data_type.clone()));
        let mut compiler = Compiler::new(ProgramBuilder::new("ALTER TABLE", parameters), catalog);
        compiler.set_one_moment();
        let mut row = Vec::new();
        for (at, column) in old.columns.iter().enumerate() {
            let id = ColumnId(at as u16);
            let register = match arguments.iter().position(|argument| *argument == id) {
                Some(position) => compiler.builder.parameter(position),
                None => compiler.builder.register(column.data_type.clone()),
            };
            row.push((column.name.clone(), column.data_type.clone(), register));
        }
        let source = compiler.declare_register_row(&old.name, &row, None);
        compiler.push_rows(&[source]);
        let is_generated = |at: &usize| {
            let is_added = matches!(self.sources[*at], Source::Added);
            is_added && self.schema.columns[*at].generated.is_some()
        };
        let (last, first): (Vec<usize>, Vec<usize>) =
            computed.iter().partition(|at| is_generated(at));
        let mut bounds = Vec::with_capacity(first.len());
        for at in &first {
            let column = &self.schema.columns[*at];
            bounds.push(match self.sources[*at] {
                Source::Converted(from, None) => {
                    let (_, data_type, register) = &row[from.index()];
                    let bound = Bound::register(*register, data_type.clone(), None);
                    let bound = coerce(bound, &column.data_type, CastContext::Assignment)?;
                    compiler.of_column(bound, column)?
                }
                Source::Converted(_, Some(expr)) => {
                    let bound = bind_using(&mut compiler, expr, column)?;
                    compiler.of_column(bound, column)?
                }
                Source::Kept(_) | Source::Added => compiler.bind_default(column)?,
            });
        }
        let values = compiler.emit_all(&bounds)?;
        let mut registers: Vec<Option<Reg>> = (self.sources.iter())
            .map(|source| match source {
                Source::Kept(from) => Some(row[from.index()].2),
                Source::Converted(..) | Source::Added => None,
            })
            .collect();
        for (at, value) in first.iter().zip(values) {
            registers[*at] = Some(value.register);
        }
        self.emit_generated(&mut compiler, &last, &mut registers)?;
        let values = computed.iter().map(|at| {
            let data_type = &self.schema.columns[*at].data_type;
            let register =
                registers[*at].ok_or_else(|| Error::internal("a column has no value"))?;
            Ok(compiler.builder.for_row(register, data_type))
        });
        let row = values.collect::<Result<_>>()?;
        compiler.builder.push(Step::Emit { row });
        let columns = computed.iter().map(|at| {
            let column = &self.schema.columns[*at];
            (column.name.clone(), column.data_type.in_rows().clone())
        });
        compiler.builder.returns(columns.collect());
        if compiler.builder.is_too_large() {
            let message = "the statement is too large";
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        compiler.finish()
    }
}

impl Draft<'_> {
    /// The columns before from which added columns are computed, where they stay as they are.
    fn kept_for_generated(&self) -> Result<Vec<ColumnId>> {
        let mut kept = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            if matches!(source, Source::Added) {
                let from = columns_of_generated(&self.schema, ColumnId(at as u16))?;
                let sources = from.iter().map(|column| self.sources[column.index()]);
                kept.extend(sources.filter_map(|source| match source {
                    Source::Kept(column) => Some(column),
                    Source::Converted(..) | Source::Added => None,
                }));
            }
        }
        Ok(kept)
    }

    /// Computes generated columns that are added, from the other columns of the new row.
    fn emit_generated(
        &self,
        compiler: &mut Compiler<'_>,
        columns: &[usize],
        registers: &mut [Option<Reg>],
    ) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let all = self.schema.columns.iter().zip(registers.iter());
        let row: Vec<_> = all
            .map(|(column, register)| {
                let data_type = column.data_type.clone();
                let register =
                    register.unwrap_or_else(|| compiler.builder.register(data_type.clone()));
                (column.name.clone(), data_type, register)
            })
            .collect();
        let source = compiler.declare_register_row(name_in_schema(&self.schema.name), &row, None);
        for at in columns {
            let column = &self.schema.columns[*at];
            let text = column.generated.as_deref().unwrap_or_default();
            let expr = stored_expression(text)?;
            let bound = compiler.without_names(|compiler| {
                compiler.push_rows(&[source]);
                let bound = compiler.bind(&expr)?;
                compiler.for_column(bound, column, "default expression")
            })?;
            let bound = match column.is_hidden() {
                true => bound.in_default_style(),
                false => bound,
            };
            registers[*at] = Some(compiler.emit(&bound)?);
        }
        Ok(())
    }
}

/// Whether values of a type become values of another one without a cast that is written.
fn converts(from: &DataType, to: &DataType) -> bool {
    from == to || cast_context(from, to).is_some_and(|context| context <= CastContext::Assignment)
}

/// Binds the expression behind USING.
fn bind_using(compiler: &mut Compiler<'_>, expr: &Expr, column: &Column) -> Result<Bound> {
    let (name, data_type) = (&column.name, &column.data_type);
    if expr.to_string().to_lowercase().contains("(select") {
        let message = "cannot use subquery in transform expression";
        let position = position_of(expr);
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
    }
    let bound = compiler.bind(expr)?;
    if !bound.is_unknown() && !converts(&bound.data_type, data_type) {
        let message = format!(
            "result of USING clause for column \"{name}\" cannot be cast automatically to type {}",
            column.domain.as_deref().unwrap_or(data_type.base_name())
        );
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message)
            .with_hint("You might need to add an explicit cast."));
    }
    coerce(bound, data_type, CastContext::Assignment)
}

#[cold]
fn in_partition_key(what: &str, schema: &TableSchema, column: ColumnId) -> Error {
    let (table, column) = (
        name_in_schema(&schema.name),
        &schema.columns[column.index()].name,
    );
    let message = format!(
        "cannot {what} column \"{column}\" because it is part of the partition key of relation \
         \"{table}\""
    );
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// Whether a foreign key of another table can stay when the columns that it refers to have other
/// types.
///
/// # Errors
/// 42804.
pub fn check_reference_types(
    schema: &TableSchema,
    key: &ForeignKey,
    referenced: &TableSchema,
) -> Result<()> {
    references::check_types(schema, key, referenced)
}

/// A default value of a column of a draft, checked, as it is kept.
///
/// # Errors
/// What is wrong with it.
pub fn draft_default(
    draft: &Draft<'_>,
    column: ColumnId,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<String> {
    let column = &draft.schema.columns[column.index()];
    let mut compiler = super::super::scratch(catalog);
    let bound = compiler.bind(expr)?;
    compiler.for_column(bound, column, "default expression")?;
    kept_default(expr, &column.data_type, catalog)
}
