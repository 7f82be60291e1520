//! Pieces of bodies that are run step by step.
//!
//! A body with EXECUTE, COMMIT or a definition is no program: what it reads and writes is known
//! only when it runs. The session runs it statement by statement instead, and keeps its variables
//! in a [`Frame`]. Whatever of it needs nothing of the kind, be it an expression or a loop with all
//! that is in it, is compiled as a piece: a program that takes the variables, and gives them back
//! as its one row.

use kiln_procedure::ProgramBuilder;
use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;

use super::super::bound::Bound;
use super::super::coerce::CastContext;
use super::super::query::{OutputColumn, QueryOptions};
use super::super::scope::Field;
use super::super::{CatalogView, Compiler, Position, Typed, fail, name_of, unsupported};
use super::body::Body;
use super::cursor::{bound_already, cursor_arguments, unbound};
use super::routine::{ResultKind, Routine};
use super::variables::{EntryKind, Scope, Slot, depends, raise_step};
use super::{CompiledFunction, Inference, Shape, at, finish, liveness, passes, repeat};
use crate::parse::plpgsql::{
    Block, BoundCursor, Declaration, Open, OpenSource, RaiseMessage, RowSource, Statement,
    StatementKind, Target,
};
use crate::parse::{self, Call, Expression, FunctionDefinition, RoutineKind};

/// What a variable can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One value.
    Scalar {
        /// Its type.
        data_type: DataType,
        /// The name of its domain, if it is of one.
        domain: Option<String>,
        /// Assignments to it are errors.
        constant: bool,
        /// NULL is an error.
        not_null: bool,
    },
    /// A row of a table.
    Row {
        /// Its fields.
        shape: Vec<(String, DataType)>,
        /// Assignments to it are errors.
        constant: bool,
    },
    /// A record; without a shape until something is assigned to it.
    Record(Option<Vec<(String, DataType)>>),
}

impl Kind {
    /// The types of its values.
    pub fn types(&self) -> Vec<DataType> {
        match self {
            Kind::Scalar { data_type, .. } => vec![data_type.clone()],
            Kind::Row { shape, .. } | Kind::Record(Some(shape)) => shape
                .iter()
                .map(|(_, data_type)| data_type.clone())
                .collect(),
            Kind::Record(None) => Vec::new(),
        }
    }
}

/// The variables of one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameScope {
    /// Its label, or the routine's name.
    pub label: Option<String>,
    /// Names and kinds, in the order of declaration. Parameters may have empty names.
    pub variables: Vec<(String, Kind)>,
}

/// The variables around a piece, the outermost block first. That one has the routine's parameters
/// and the columns of RETURNS TABLE, in the order of its header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The blocks.
    pub scopes: Vec<FrameScope>,
}

/// What a piece does.
#[derive(Clone, Debug)]
pub enum Work {
    /// Runs a statement, and gives the variables back.
    Statement(Statement),
    /// Declares a variable of the innermost block, and gives the variables back, the new one last.
    Declare(Declaration),
    /// Gives values of these types, or of their own.
    Values(Vec<(Expression, Option<DataType>)>),
    /// Gives the truth of a condition.
    Condition(Expression),
    /// Gives rows.
    Rows(RowSource),
    /// Assigns a row, whose values follow the variables' among the arguments, to targets, and gives
    /// the variables back.
    Assign {
        /// What is assigned to.
        targets: Vec<Target>,
        /// Names and types of the row's columns.
        columns: Vec<(String, DataType)>,
        /// Whether there is a row. Without one the targets become NULL.
        is_there: bool,
    },
    /// Gives what a RETURN gives.
    Return(Statement),
    /// Gives what is given at the end of the body.
    End(Block),
    /// Gives the values of a routine's input parameters in a CALL.
    Arguments(Call, Box<Routine>),
}

/// A piece ready to run. The parameters of its program are ROW_COUNT, FOUND, the values of all
/// variables, and what [`Work::Assign`] takes. What gives the variables back gives them in that
/// order too, with a BOOLEAN before the fields of each record that says whether it was assigned to.
#[derive(Debug)]
pub struct CompiledPiece {
    /// Its program.
    pub function: CompiledFunction,
    /// What the variables are behind it, when it gives them back.
    pub after: Option<Frame>,
}

/// Whether a body is run step by step.
pub fn is_stepped(block: &Block) -> bool {
    declares_cursors(block) || block.lists().any(has_commands)
}

fn declares_cursors(block: &Block) -> bool {
    block.declarations.iter().any(|it| it.cursor.is_some())
}

fn has_commands(list: &[Statement]) -> bool {
    liveness::any_statement(list, &|statement| {
        if let StatementKind::Block(block) = &statement.kind {
            return declares_cursors(block);
        }
        matches!(
            statement.kind,
            StatementKind::Execute { .. }
                | StatementKind::Open(_)
                | StatementKind::CursorStep(_)
                | StatementKind::CloseCursor(_)
                | StatementKind::ForCursor(_)
                | StatementKind::Utility(_)
                | StatementKind::EndTransaction { .. }
                | StatementKind::ForQuery {
                    rows: RowSource::Execute(_),
                    ..
                }
                | StatementKind::ReturnQuery(RowSource::Execute(_))
        )
    })
}

/// Whether a statement of such a body is no piece, but consists of some: it has a command, leaves
/// what is around it, gives something back, or asks for the error that is being handled.
pub fn runs_stepped(statement: &Statement, is_stepped: &dyn Fn(&Call) -> bool) -> bool {
    let one = std::slice::from_ref(statement);
    has_commands(one)
        || liveness::any_statement(one, &|inner| match &inner.kind {
            StatementKind::Return(_)
            | StatementKind::ReturnNext(_)
            | StatementKind::ReturnQuery(_) => true,
            StatementKind::Call(call) => is_stepped(call),
            _ => false,
        })
        || leaves(one, &mut Vec::new(), 0)
        || asks_for_error(one)
}

/// Whether EXIT or CONTINUE in the list is of a loop or block around it.
fn leaves(list: &[Statement], labels: &mut Vec<String>, loops: usize) -> bool {
    list.iter().any(|statement| {
        let (label, is_loop) = match &statement.kind {
            StatementKind::Exit { label, .. } => {
                return match label {
                    Some(label) => !labels.contains(&name_of(label)),
                    None => loops == 0,
                };
            }
            StatementKind::Block(block) => (block.label.as_ref(), false),
            StatementKind::Loop(body)
            | StatementKind::While { body, .. }
            | StatementKind::ForQuery { body, .. }
            | StatementKind::ForEach { body, .. } => (body.label.as_ref(), true),
            StatementKind::ForRange(range) => (range.body.label.as_ref(), true),
            StatementKind::ForCursor(cursor) => (cursor.body.label.as_ref(), true),
            _ => (None, false),
        };
        let known = labels.len();
        labels.extend(label.map(name_of));
        let loops = loops + usize::from(is_loop);
        let leaves = liveness::inner_lists(statement)
            .into_iter()
            .any(|inner| leaves(inner, labels, loops));
        labels.truncate(known);
        leaves
    })
}

/// Whether the list asks for an error that a handler around it has caught.
fn asks_for_error(list: &[Statement]) -> bool {
    list.iter().any(|statement| match &statement.kind {
        StatementKind::Raise(raise) => raise.message == RaiseMessage::Again,
        StatementKind::GetStacked(_) => true,
        StatementKind::Block(block) => asks_for_error(&block.body),
        _ => liveness::inner_lists(statement)
            .into_iter()
            .any(asks_for_error),
    })
}

/// The error of what only such bodies have, in another one.
pub(super) fn stepped_only(position: Position) -> Error {
    unsupported(
        "EXECUTE, COMMIT, a cursor or a definition in a routine that another statement calls",
        position,
    )
    .with_hint("Such a routine runs by CALL name(…) or SELECT name(…) as a statement of its own.")
}

/// A routine whose body is run step by step. Its program only says who can call it.
pub(super) fn stepped_function(
    catalog: &dyn CatalogView,
    definition: &FunctionDefinition,
    routine: Routine,
) -> Result<CompiledFunction> {
    let position = at(definition.position);
    if routine.result == ResultKind::Trigger {
        return Err(unsupported(
            "EXECUTE, COMMIT, a cursor or a definition in a trigger function",
            position,
        ));
    }
    if definition.is_definer {
        return Err(unsupported(
            "SECURITY DEFINER with EXECUTE, COMMIT, a cursor or a definition",
            position,
        ));
    }
    let of_parameters = routine.parameters.iter().map(|one| &one.domain);
    let mut domains = of_parameters.chain(&routine.result_domains);
    if let Some(domain) = domains.find_map(Option::as_ref) {
        let name = &domain.name;
        let what = format!(
            "a parameter or result of domain {name} of a body with EXECUTE, COMMIT, a cursor or a \
             definition"
        );
        return Err(unsupported(what, position));
    }
    if let parse::Body::PlPgSql(block) = &definition.body {
        check_names(&routine, block)?;
    }
    let mut compiler = Compiler::new(
        ProgramBuilder::new(&routine.name, routine.inputs()),
        catalog,
    );
    compiler.builder.returns(routine.result_columns());
    let (kind, call) = match routine.kind {
        RoutineKind::Function => ("function", "SELECT"),
        RoutineKind::Procedure => ("procedure", "CALL"),
    };
    let message = format!(
        "{kind} {} is run by {call} as a statement of its own: any other call of it",
        routine.name
    );
    compiler
        .builder
        .push(raise_step(&Error::unsupported(message)));
    finish(compiler, routine, Inference::default())
}

/// Checks what the statements of a body assign to.
///
/// # Errors
/// 42601 for what is no variable, as PostgreSQL reports when the routine is created.
pub fn check_names(routine: &Routine, block: &Block) -> Result<()> {
    Names::of(routine).block(block)
}

/// The variables around a statement, the outermost block first.
struct Names<'b>(Vec<NamesOfBlock<'b>>);

struct NamesOfBlock<'b> {
    label: Option<String>,
    names: Vec<String>,
    /// The cursors among them that have a query.
    cursors: Vec<(String, &'b BoundCursor)>,
}

impl<'b> Names<'b> {
    fn of(routine: &Routine) -> Names<'b> {
        let parameters = routine.parameters.iter().map(|it| &it.name);
        let table = routine.table().iter().map(|(name, _)| name);
        let mut names: Vec<String> = parameters.chain(table).cloned().collect();
        names.push("found".to_owned());
        Names(vec![NamesOfBlock {
            label: Some(routine.name.clone()),
            names,
            cursors: Vec::new(),
        }])
    }

    fn block(&mut self, block: &'b Block) -> Result<()> {
        let declared = block.declarations.iter().map(|it| name_of(&it.name));
        let cursors = block.declarations.iter();
        let cursors = cursors.filter_map(|it| Some((name_of(&it.name), it.cursor.as_deref()?)));
        let declared = (declared.collect(), cursors.collect());
        self.within(block.label.as_ref(), declared, |names| {
            names.list(&block.body)?;
            let mut handlers = block.handlers.iter();
            handlers.try_for_each(|handler| names.list(&handler.body))
        })
    }

    fn within(
        &mut self,
        label: Option<&sqlparser::ast::Ident>,
        (names, cursors): (Vec<String>, Vec<(String, &'b BoundCursor)>),
        check: impl FnOnce(&mut Names<'b>) -> Result<()>,
    ) -> Result<()> {
        self.0.push(NamesOfBlock {
            label: label.map(name_of),
            names,
            cursors,
        });
        let result = check(self);
        self.0.pop();
        result
    }

    fn list(&mut self, list: &'b [Statement]) -> Result<()> {
        for statement in list {
            let mut targets = liveness::targets(statement).into_iter();
            targets.try_for_each(|target| self.target(target))?;
            match &statement.kind {
                StatementKind::Block(block) => self.block(block)?,
                StatementKind::ForRange(range) => {
                    let variable = (vec![name_of(&range.variable)], Vec::new());
                    self.within(range.body.label.as_ref(), variable, |names| {
                        names.list(&range.body.body)
                    })?;
                }
                StatementKind::Open(open) => self.open(open, false)?,
                StatementKind::CursorStep(step) => self.target(&step.cursor)?,
                StatementKind::CloseCursor(cursor) => self.target(cursor)?,
                StatementKind::ForCursor(it) => {
                    self.open(&it.open, true)?;
                    let record = it.record.path.iter().map(name_of).collect();
                    self.within(it.body.label.as_ref(), (record, Vec::new()), |names| {
                        names.list(&it.body.body)
                    })?;
                }
                _ => {
                    let mut inner = liveness::inner_lists(statement).into_iter();
                    inner.try_for_each(|list| self.list(list))?;
                }
            }
        }
        Ok(())
    }

    /// Checks an OPEN, or the cursor of a loop.
    fn open(&self, open: &Open, is_loop: bool) -> Result<()> {
        self.target(&open.cursor)?;
        match (&open.source, self.bound(&open.cursor)) {
            (OpenSource::Rows(_), None) => Ok(()),
            (OpenSource::Rows(_), Some(_)) => Err(bound_already(&open.cursor)),
            (OpenSource::Bound(_), None) => Err(unbound(&open.cursor, is_loop)),
            (OpenSource::Bound(given), Some(bound)) => {
                cursor_arguments(&open.cursor, bound, given.as_deref()).map(drop)
            }
        }
    }

    /// The query of a cursor that its declaration has.
    fn bound(&self, cursor: &Target) -> Option<&'b BoundCursor> {
        let (name, label) = match cursor.path.as_slice() {
            [label, name] => (name_of(name), Some(name_of(label))),
            [name] => (name_of(name), None),
            _ => return None,
        };
        let mut blocks = self.0.iter().rev();
        let block = blocks.find(|block| {
            let is_meant = label.is_none() || block.label == label;
            is_meant && block.names.contains(&name)
        })?;
        let mut cursors = block.cursors.iter();
        cursors
            .find(|(known, _)| *known == name)
            .map(|(_, bound)| *bound)
    }

    fn target(&self, target: &Target) -> Result<()> {
        let path: Vec<String> = target.path.iter().map(name_of).collect();
        let is_known = self.0.iter().any(|NamesOfBlock { label, names, .. }| {
            names.contains(&path[0])
                || path.len() > 1 && label.as_ref() == Some(&path[0]) && names.contains(&path[1])
        });
        if is_known {
            return Ok(());
        }
        let message = format!("\"{}\" is not a known variable", path.join("."));
        Err(fail(SqlState::SYNTAX_ERROR, message, at(target.position)))
    }
}

/// Compiles a piece of the body of `routine`.
///
/// # Errors
/// As [`super::compile_function`], and what PostgreSQL reports when it comes to the statement.
pub fn compile_piece(
    catalog: &dyn CatalogView,
    routine: &Routine,
    frame: &Frame,
    work: &Work,
) -> Result<CompiledPiece> {
    let mut inference = Inference::default();
    let records = frame.scopes.iter().flat_map(|scope| &scope.variables);
    for (index, (_, kind)) in records.enumerate() {
        if let Kind::Record(Some(shape)) = kind {
            inference.shapes.insert(key_of(index), vec![shape.clone()]);
        }
    }
    let mut after = None;
    let compiler = repeat(catalog, &mut inference, |compiler| {
        compiler.builder = ProgramBuilder::new(&routine.name, parameters(frame, work));
        let mut body = Body::new(compiler, routine);
        compiler.open();
        let held = body.enter(compiler, frame)?;
        after = body.work(compiler, held, work)?;
        for _ in 0..body.scopes.len() {
            compiler.pop_variables();
        }
        let steps = compiler.close();
        passes::append(compiler, steps, &body.guards);
        Ok(())
    })?;
    let function = finish(compiler, routine.clone(), inference)?;
    Ok(CompiledPiece { function, after })
}

/// By which the shapes of a frame's variable are known: no address of a declaration is as small.
fn key_of(index: usize) -> usize {
    index + 1
}

/// Names and types of a piece's parameters.
fn parameters(frame: &Frame, work: &Work) -> Vec<(String, DataType)> {
    let mut types = vec![DataType::BigInt, DataType::Boolean];
    let variables = frame.scopes.iter().flat_map(|scope| &scope.variables);
    types.extend(variables.flat_map(|(_, kind)| kind.types()));
    if let Work::Assign {
        columns,
        is_there: true,
        ..
    } = work
    {
        types.extend(columns.iter().map(|(_, data_type)| data_type.clone()));
    }
    let named = types
        .into_iter()
        .map(|data_type| (String::new(), data_type));
    named.collect()
}

impl Body {
    /// Declares the variables of a frame.
    fn enter(&mut self, c: &mut Compiler<'_>, frame: &Frame) -> Result<Vec<Vec<Held>>> {
        let mut next = 0;
        let mut given = |c: &mut Compiler<'_>, target: Reg| {
            let source = c.builder.parameter(next);
            next += 1;
            c.builder.scalar(Instruction::Move { target, source });
        };
        let row_count = c.builder.register(DataType::BigInt);
        given(c, row_count);
        self.row_count = Some(row_count);
        given(c, self.found);
        self.keeps_found = true;
        self.assigns_found = true;
        let mut index = 0;
        let mut all = Vec::new();
        for (number, scope) in frame.scopes.iter().enumerate() {
            c.push_variables(scope.label.as_deref());
            self.scopes.push(Scope::new(scope.label.clone()));
            let (mut positional, mut held) = (Vec::new(), Vec::new());
            for (name, kind) in &scope.variables {
                match kind {
                    Kind::Scalar {
                        data_type,
                        domain,
                        constant,
                        not_null,
                    } => {
                        let register = c.builder.register(data_type.clone());
                        given(c, register);
                        if let Some(name) = domain {
                            let domain = c.catalog.domain(name);
                            let domain = domain.ok_or_else(|| missing_domain(name))?;
                            c.keep_in_domain(register, Some(&domain));
                        }
                        let slot = Slot {
                            register,
                            data_type: data_type.clone(),
                            constant: *constant,
                            not_null: *not_null,
                            name: name.clone(),
                        };
                        positional.push(slot.clone());
                        index += usize::from(name.is_empty());
                        if name.is_empty() {
                            held.push(Held::Unnamed(slot));
                            continue;
                        }
                        self.declare_slot(c, slot, None)?;
                    }
                    Kind::Row { shape, constant } => {
                        for field in self.declare_row(c, name, shape, *constant, None)? {
                            given(c, field.register);
                        }
                    }
                    Kind::Record(shape) => {
                        self.declare_record(c, name, key_of(index), None)?;
                        if let Some(shape) = shape {
                            let entry = (number, self.scopes[number].entries.len() - 1);
                            for field in self.shape_record(c, entry, shape) {
                                given(c, field.register);
                            }
                            self.mark_assigned(c, entry);
                        }
                    }
                }
                index += 1;
                held.push(Held::Entry(self.scopes[number].entries.len() - 1));
            }
            if number == 0 {
                self.declare_routine(c, positional)?;
            }
            all.push(held);
        }
        Ok(all)
    }

    /// Declares FOUND, and tells which of the outermost variables are the routine's parameters and
    /// results.
    fn declare_routine(&mut self, c: &mut Compiler<'_>, variables: Vec<Slot>) -> Result<()> {
        let parameters = self.routine.parameters.len();
        let outputs = variables.iter().enumerate().filter(|(number, _)| {
            let parameter = self.routine.parameters.get(*number);
            parameter.is_none_or(|parameter| parameter.mode.is_output())
        });
        self.outputs = outputs.map(|(_, slot)| slot.clone()).collect();
        let is_named_so = variables.iter().any(|slot| slot.name == "found");
        let positional = variables.into_iter().take(parameters).map(|slot| Typed {
            register: slot.register,
            data_type: slot.data_type,
        });
        c.set_positional(positional.collect());
        if is_named_so {
            return Ok(());
        }
        let slot = Slot {
            register: self.found,
            data_type: DataType::Boolean,
            constant: false,
            not_null: false,
            name: "found".to_owned(),
        };
        self.declare_slot(c, slot, None)
    }

    /// Does what a piece is for; returns what the variables are behind it, when it gives them back.
    fn work(
        &mut self,
        c: &mut Compiler<'_>,
        mut held: Vec<Vec<Held>>,
        work: &Work,
    ) -> Result<Option<Frame>> {
        match work {
            Work::Statement(statement) => {
                self.statements(c, std::slice::from_ref(statement), true)?;
                return self.give_variables(c, &held).map(Some);
            }
            Work::Declare(declaration) => {
                self.declaration(c, declaration)?;
                if let (Some(held), Some(scope)) = (held.last_mut(), self.scopes.last()) {
                    held.push(Held::Entry(scope.entries.len() - 1));
                }
                return self.give_variables(c, &held).map(Some);
            }
            Work::Assign {
                targets,
                columns,
                is_there,
            } => {
                self.assign_given(c, targets, columns, *is_there)?;
                return self.give_variables(c, &held).map(Some);
            }
            Work::Values(values) => {
                let mut row = Vec::new();
                for (value, expected) in values {
                    let typed = match expected {
                        Some(data_type) => Typed {
                            register: c.expression_as(
                                &value.expr,
                                data_type,
                                CastContext::Variable,
                            )?,
                            data_type: data_type.clone(),
                        },
                        None => c.expression(&value.expr, None)?,
                    };
                    row.push((typed.register, typed.data_type));
                }
                give(c, row);
            }
            Work::Condition(condition) => {
                let register = self.condition(c, condition)?;
                give(c, vec![(register, DataType::Boolean)]);
            }
            Work::Rows(RowSource::Query(query)) => {
                let columns = c.query(query, QueryOptions::default(), &mut |c, columns| {
                    let row = columns.iter().map(|column| column.register).collect();
                    c.builder.push(Step::Emit { row });
                    Ok(())
                })?;
                let columns = columns
                    .into_iter()
                    .map(|column| (column.name, column.data_type));
                c.builder.returns(columns.collect());
            }
            Work::Rows(RowSource::Data(statement)) => {
                let mut shape = Shape::new();
                self.run_data(
                    c,
                    statement,
                    None,
                    Some(&mut |_, c, columns| {
                        shape = columns
                            .iter()
                            .map(|it| (it.name.clone(), it.data_type.clone()))
                            .collect();
                        let row = columns.iter().map(|column| column.register).collect();
                        c.builder.push(Step::Emit { row });
                        Ok(())
                    }),
                )?;
                c.builder.returns(shape);
            }
            Work::Rows(RowSource::Execute(_)) => return Err(stepped_only(None)),
            Work::Return(statement) => {
                c.builder.returns(self.routine.result_columns());
                self.statements(c, std::slice::from_ref(statement), true)?;
            }
            Work::End(block) => {
                c.builder.returns(self.routine.result_columns());
                self.end(c, at(block.position))?;
            }
            Work::Arguments(call, callee) => {
                let mut given = Vec::new();
                for argument in &call.arguments {
                    given.push((argument.name.as_ref(), c.bind(&argument.value.expr)?));
                }
                let bounds = callee.arguments(c, &given, true, None)?;
                let all: Vec<&Bound> = bounds.iter().collect();
                let values = c.alone(&all, |compiler| compiler.emit_all(&bounds))?;
                let row = values.into_iter().map(|it| (it.register, it.data_type));
                give(c, row.collect());
            }
        }
        Ok(None)
    }

    /// Assigns the values behind those of the variables.
    fn assign_given(
        &mut self,
        c: &mut Compiler<'_>,
        targets: &[Target],
        columns: &[(String, DataType)],
        is_there: bool,
    ) -> Result<()> {
        let position = targets.first().and_then(|target| at(target.position));
        let target = self.row_targets(c, targets)?;
        if !is_there {
            self.assign_nulls(c, &target, &columns.to_vec(), position)?;
            return Ok(());
        }
        let first = c.builder.parameter_count() - columns.len();
        let columns: Vec<OutputColumn> = (columns.iter().enumerate())
            .map(|(number, (name, data_type))| OutputColumn {
                name: name.clone(),
                data_type: data_type.clone(),
                register: c.builder.parameter(first + number),
            })
            .collect();
        self.assign_columns(c, &target, &columns, position)
    }

    /// Gives all variables as a row; returns what they are.
    fn give_variables(&mut self, c: &mut Compiler<'_>, held: &[Vec<Held>]) -> Result<Frame> {
        let mut after = Frame::default();
        let mut row = Vec::new();
        row.extend(self.row_count.map(|register| (register, DataType::BigInt)));
        row.push((self.found, DataType::Boolean));
        for (scope, held) in self.scopes.iter().zip(held) {
            let mut variables = Vec::new();
            for held in held {
                variables.push(match held {
                    Held::Unnamed(slot) => (String::new(), given_slot(c, &mut row, slot)),
                    Held::Entry(index) => {
                        let entry = &scope.entries[*index];
                        let kind = match &entry.kind {
                            EntryKind::Scalar(slot) => given_slot(c, &mut row, slot),
                            EntryKind::Row { fields, constant } => Kind::Row {
                                shape: given_fields(&mut row, fields),
                                constant: *constant,
                            },
                            EntryKind::Record(record) => {
                                row.push((record.assigned, DataType::Boolean));
                                let current = match (record.current, record.shapes.len()) {
                                    (None, 2..) => return Err(depends(None)),
                                    (current, _) => current.map(|shape| &record.shapes[shape]),
                                };
                                Kind::Record(current.map(|fields| given_fields(&mut row, fields)))
                            }
                        };
                        (entry.name.clone(), kind)
                    }
                });
            }
            after.scopes.push(FrameScope {
                label: scope.label.clone(),
                variables,
            });
        }
        give(c, row);
        Ok(after)
    }
}

/// Where a frame's variable is.
enum Held {
    /// A parameter of which only the number is known.
    Unnamed(Slot),
    /// An entry of its scope.
    Entry(usize),
}

/// Ends a piece with one row.
fn give(c: &mut Compiler<'_>, row: Vec<(Reg, DataType)>) {
    let (registers, types): (Vec<Reg>, Vec<DataType>) = row.into_iter().unzip();
    c.builder.push(Step::Emit {
        row: registers.into(),
    });
    let named = types
        .into_iter()
        .map(|data_type| (String::new(), data_type));
    c.builder.returns(named.collect());
}

/// The error for a domain that has gone while a body with a variable of it ran.
fn missing_domain(name: &str) -> Error {
    let message = format!("type \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

fn given_slot(c: &Compiler<'_>, row: &mut Vec<(Reg, DataType)>, slot: &Slot) -> Kind {
    row.push((slot.register, slot.data_type.clone()));
    let domain = c.domain_of_register(slot.register);
    Kind::Scalar {
        data_type: slot.data_type.clone(),
        domain: domain.map(|domain| domain.name.clone()),
        constant: slot.constant,
        not_null: slot.not_null,
    }
}

fn given_fields(row: &mut Vec<(Reg, DataType)>, fields: &[Field]) -> Shape {
    row.extend(fields.iter().map(|it| (it.register, it.data_type.clone())));
    let shape = fields
        .iter()
        .map(|it| (it.name.clone(), it.data_type.clone()));
    shape.collect()
}
