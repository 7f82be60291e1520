//! Blocks, declarations, and the dispatch over statements.

use kiln_procedure::ir::{Instruction, Reg, RegionId, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::super::bound::{Bound, Routine};
use super::super::coerce::CastContext;
use super::super::domain::coerce_to;
use super::super::scope::Variable;
use super::super::{Compiler, DeclaredType, Position, Typed, fail, name_of, unsupported};
use super::control::OpenLoop;
use super::piece::stepped_only;
use super::results::Destination;
use super::routine::{Declared, declared};
use super::variables::{Scope, Slot, raise_step, refuse, require_not_null, set_boolean};
use super::{at, liveness, passes};
use crate::parse;
use crate::parse::plpgsql::{Block, Declaration, Statement, StatementKind};
use crate::parse::{TypeKind, TypeReference};

/// The state of compiling one body.
pub(super) struct Body {
    pub routine: Routine,
    pub scopes: Vec<Scope>,
    pub loops: Vec<OpenLoop>,
    /// The number of conditionals and loops of the language around the statement.
    pub regions: usize,
    pub found: Reg,
    /// FOUND is assigned to as any variable.
    pub assigns_found: bool,
    /// FOUND may be read wherever an error leads from here.
    pub keeps_found: bool,
    /// The region whose error the handler around the statement has caught.
    pub caught: Option<RegionId>,
    /// Holds ROW_COUNT when something asks for it.
    pub row_count: Option<Reg>,
    pub destination: Destination,
    /// The registers of output parameters or of RETURNS TABLE's columns, in order.
    pub outputs: Vec<Slot>,
    /// The names of a trigger's event have values that are known.
    pub is_of_trigger: bool,
    /// For each shape of a record: what says whether it is assigned, and its fields.
    pub guards: Vec<(Reg, Vec<Reg>)>,
}

impl Body {
    /// For a body whose program is `compiler`'s own.
    pub(super) fn new(compiler: &mut Compiler<'_>, routine: &Routine) -> Body {
        Body {
            routine: routine.clone(),
            scopes: Vec::new(),
            loops: Vec::new(),
            regions: 0,
            found: compiler.builder.register(DataType::Boolean),
            assigns_found: false,
            keeps_found: false,
            caught: None,
            row_count: None,
            destination: Destination::Program,
            outputs: Vec::new(),
            is_of_trigger: false,
            guards: Vec::new(),
        }
    }

    /// Compiles a DO block.
    pub(super) fn anonymous(&mut self, c: &mut Compiler<'_>, block: &Block) -> Result<()> {
        c.open();
        self.start(c, block, &[])?;
        self.block(c, block)?;
        self.finish(c, block)
    }

    /// Compiles the body of a routine whose arguments are the program's parameters.
    pub(super) fn routine(&mut self, c: &mut Compiler<'_>, body: &parse::Body) -> Result<()> {
        let inputs = self
            .routine
            .parameters
            .iter()
            .filter(|one| one.mode.is_input())
            .count();
        let arguments: Vec<Reg> = (0..inputs)
            .map(|index| c.builder.parameter(index))
            .collect();
        self.strict_check(c, &arguments);
        c.open();
        self.any_body(c, body, &arguments)
    }

    /// Compiles a body in either language into the open block, and closes that.
    pub(super) fn any_body(
        &mut self,
        c: &mut Compiler<'_>,
        body: &parse::Body,
        arguments: &[Reg],
    ) -> Result<()> {
        match body {
            parse::Body::PlPgSql(block) => {
                self.start(c, block, arguments)?;
                self.block(c, block)?;
                self.finish(c, block)
            }
            parse::Body::Sql(statements) => {
                self.start_sql(c, arguments)?;
                let around = std::mem::replace(&mut c.prefers_columns, true);
                let result = self.sql_statements(c, statements);
                c.prefers_columns = around;
                result?;
                let steps = c.close();
                passes::append(c, steps, &self.guards);
                Ok(())
            }
        }
    }

    /// Returns NULL at once when an argument of a STRICT function is NULL.
    pub(super) fn strict_check(&mut self, c: &mut Compiler<'_>, arguments: &[Reg]) {
        if !self.routine.strict {
            return;
        }
        for source in arguments {
            let target = c.builder.register(DataType::Boolean);
            c.builder.scalar(Instruction::IsNull {
                target,
                source: *source,
                negated: false,
            });
            c.open();
            if !self.routine.result.is_set() {
                let types = self.routine.result.types();
                let row: Vec<Reg> = types
                    .into_iter()
                    .map(|data_type| c.builder.constant(data_type, Value::Null))
                    .collect();
                self.hand_out(c, &row);
            }
            self.leave(c);
            let then = c.close();
            c.builder.push(Step::If {
                condition: target,
                then,
                otherwise: Vec::new(),
            });
        }
    }

    /// Declares parameters, output columns and FOUND.
    pub(super) fn start(
        &mut self,
        c: &mut Compiler<'_>,
        block: &Block,
        arguments: &[Reg],
    ) -> Result<()> {
        let is_assigned = |name: &str| (block.lists()).any(|list| liveness::assigns(list, name));
        self.declare_parameters(c, arguments, true, &is_assigned)?;
        set_boolean(c, self.found, false);
        self.assigns_found = is_assigned("found");
        if block.lists().any(liveness::asks_for_row_count) {
            let target = c.builder.register(DataType::BigInt);
            let source = c.builder.constant(DataType::BigInt, Value::BigInt(0));
            c.builder.scalar(Instruction::Move { target, source });
            self.row_count = Some(target);
        }
        Ok(())
    }

    fn start_sql(&mut self, c: &mut Compiler<'_>, arguments: &[Reg]) -> Result<()> {
        self.declare_parameters(c, arguments, false, &|_| false)
    }

    /// Declares parameters by name and by number; `numbers_outputs` says whether those that only
    /// give a value back are counted too.
    fn declare_parameters(
        &mut self,
        c: &mut Compiler<'_>,
        arguments: &[Reg],
        numbers_outputs: bool,
        is_assigned: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let routine = self.routine.clone();
        c.push_variables(Some(&routine.name));
        self.scopes.push(Scope::new(Some(routine.name.clone())));
        let mut positional = Vec::with_capacity(routine.parameters.len());
        let mut given = arguments.iter();
        for parameter in &routine.parameters {
            let mut data_type = parameter.data_type.clone();
            let argument = if parameter.mode.is_input() {
                given.next().copied()
            } else {
                None
            };
            let register = match argument {
                Some(argument) if let Some(domain) = &parameter.domain => {
                    let given = Bound::register(argument, data_type, None);
                    let of = DeclaredType {
                        data_type: domain.base.clone(),
                        domain: Some(domain.clone()),
                    };
                    let target = c.builder.register(of.data_type.clone());
                    let checked = coerce_to(given, &of, CastContext::Assignment)?;
                    c.emit_into(&checked, target)?;
                    data_type = of.data_type;
                    target
                }
                // An argument's own register is never written.
                Some(argument)
                    if !parameter.mode.is_output()
                        && !is_assigned(&parameter.name)
                        && !parameter.name.is_empty() =>
                {
                    argument
                }
                Some(argument) => {
                    let target = c.builder.register(data_type.clone());
                    c.builder.scalar(Instruction::Move {
                        target,
                        source: argument,
                    });
                    target
                }
                None => {
                    let target = c.builder.register(data_type.clone());
                    c.builder.scalar(Instruction::SetNull { target });
                    target
                }
            };
            c.keep_in_domain(register, parameter.domain.as_ref());
            if numbers_outputs || parameter.mode.is_input() {
                positional.push(Typed {
                    register,
                    data_type: data_type.clone(),
                });
            }
            let slot = Slot {
                register,
                data_type,
                constant: false,
                not_null: false,
                name: parameter.name.clone(),
            };
            if parameter.mode.is_output() {
                self.outputs.push(slot.clone());
            }
            if !parameter.name.is_empty() {
                self.declare_slot(c, slot, None)?;
            }
        }
        let domains = routine.result_domains.iter();
        for ((name, data_type), domain) in routine.table.iter().zip(domains) {
            let register = c.builder.register(data_type.clone());
            c.builder.scalar(Instruction::SetNull { target: register });
            c.keep_in_domain(register, domain.as_ref());
            let slot = Slot {
                register,
                data_type: data_type.clone(),
                constant: false,
                not_null: false,
                name: name.clone(),
            };
            self.outputs.push(slot.clone());
            self.declare_slot(c, slot, None)?;
        }
        c.set_positional(positional);
        if !routine
            .parameters
            .iter()
            .any(|parameter| parameter.name == "found")
        {
            let slot = Slot {
                register: self.found,
                data_type: DataType::Boolean,
                constant: false,
                not_null: false,
                name: "found".to_owned(),
            };
            self.declare_slot(c, slot, None)?;
        }
        Ok(())
    }

    /// What happens when control reaches the end; closes the block of the whole body.
    pub(super) fn finish(&mut self, c: &mut Compiler<'_>, block: &Block) -> Result<()> {
        self.end(c, at(block.position))?;
        c.pop_variables();
        self.scopes.pop();
        let steps = c.close();
        passes::append(c, steps, &self.guards);
        Ok(())
    }

    /// Compiles a block.
    pub(super) fn block(&mut self, c: &mut Compiler<'_>, block: &Block) -> Result<()> {
        // A function of SQL may be around it.
        let around = std::mem::take(&mut c.prefers_columns);
        let result = self.block_live(c, block, false);
        c.prefers_columns = around;
        result
    }

    fn block_live(&mut self, c: &mut Compiler<'_>, block: &Block, found: bool) -> Result<()> {
        let label = block.label.as_ref().map(name_of);
        c.push_variables(label.as_deref());
        self.scopes.push(Scope::new(label.clone()));
        for declaration in &block.declarations {
            let key = std::ptr::from_ref(declaration) as usize;
            self.deferring(c, key, |body, c| body.declaration(c, declaration))?;
        }
        match label {
            Some(label) if (block.lists()).any(|list| liveness::exits_to(list, &label)) => {
                let handle = c.open_labelled_block(label.as_str());
                self.loops.push(OpenLoop {
                    label: Some(label),
                    is_for: false,
                });
                self.region(c, &[], |body, c| body.content(c, block, true))?;
                self.loops.pop();
                c.close_labelled_block(handle);
            }
            _ => self.content(c, block, found)?,
        }
        self.scopes.pop();
        c.pop_variables();
        Ok(())
    }

    /// The statements of a block, and its handlers.
    fn content(&mut self, c: &mut Compiler<'_>, block: &Block, found: bool) -> Result<()> {
        match block.handlers.is_empty() {
            true => self.statements(c, &block.body, found),
            false => self.protected(c, block, found),
        }
    }

    pub(super) fn declaration(
        &mut self,
        c: &mut Compiler<'_>,
        declaration: &Declaration,
    ) -> Result<()> {
        let position = at(declaration.position);
        let name = name_of(&declaration.name);
        let resolved = match self.type_of_reference(c, &declaration.data_type) {
            Ok(resolved) => resolved,
            Err(error) => return Err(refuse(c, error)),
        };
        let resolved = match resolved {
            Declared::Scalar(DeclaredType {
                data_type: DataType::Row(of),
                domain: None,
            }) => Declared::of_row(of),
            other => other,
        };
        match resolved {
            Declared::Scalar(DeclaredType { data_type, domain }) => {
                let register = c.builder.register(data_type.clone());
                let slot = Slot {
                    register,
                    data_type,
                    constant: declaration.constant,
                    not_null: declaration.not_null,
                    name,
                };
                c.keep_in_domain(register, domain.as_ref());
                // Declared even when its default cannot be compiled.
                let default = match &declaration.default {
                    Some(default) => {
                        let context = CastContext::Variable;
                        c.expression_into(&default.expr, register, &slot.data_type, context)
                    }
                    None => {
                        c.builder.scalar(Instruction::SetNull { target: register });
                        c.check_register(register)
                    }
                };
                self.declare_slot(c, slot.clone(), position)?;
                default?;
                require_not_null(c, &slot, position);
                Ok(())
            }
            Declared::Row(..) | Declared::Record if declaration.not_null => {
                Err(refuse(c, unsupported("NOT NULL for a record", position)))
            }
            Declared::Row(shape, domains, of) => {
                let constant = declaration.constant;
                let fields = self.declare_row(c, &name, &shape, constant, position)?;
                c.describe_row(&name, of, false);
                for (field, domain) in fields.iter().zip(&domains) {
                    c.keep_in_domain(field.register, domain.as_ref());
                }
                self.record_default(c, declaration)
            }
            Declared::Record => {
                let key = std::ptr::from_ref(declaration) as usize;
                self.declare_record(c, &name, key, position)?;
                self.record_default(c, declaration)
            }
        }
    }

    /// The default of a record is assigned after its declaration, and so must not name it.
    fn record_default(&mut self, c: &mut Compiler<'_>, declaration: &Declaration) -> Result<()> {
        match &declaration.default {
            Some(default) if declaration.constant => Err(refuse(
                c,
                unsupported("a record that is CONSTANT", at(default.position)),
            )),
            Some(default) => {
                let target = parse::plpgsql::Target {
                    position: declaration.position,
                    path: vec![declaration.name.clone()],
                    places: Vec::new(),
                };
                self.assign(c, &target, default)
            }
            None => Ok(()),
        }
    }

    /// What a declaration's type names; variables around it can be meant by `%TYPE`.
    fn type_of_reference(
        &self,
        c: &mut Compiler<'_>,
        reference: &TypeReference,
    ) -> Result<Declared> {
        if let TypeKind::Like(path) = &reference.kind {
            let names: Vec<String> = path.iter().map(name_of).collect();
            match c.variable(&names) {
                Some(Variable::Scalar {
                    data_type,
                    register,
                    ..
                }) => {
                    let domain = c.domain_of_register(register).cloned();
                    return Ok(Declared::Scalar(DeclaredType { data_type, domain }));
                }
                Some(Variable::Record { fields, of, .. }) if !fields.is_empty() => {
                    let domains = fields.iter();
                    let domains = domains.map(|it| c.domain_of_register(it.register).cloned());
                    let domains = domains.collect();
                    let fields = fields.into_iter();
                    let shape = fields.map(|field| (field.name, field.data_type)).collect();
                    return Ok(Declared::Row(shape, domains, of));
                }
                Some(Variable::Record { .. }) => return Ok(Declared::Record),
                None => {}
            }
        }
        declared(c.catalog, reference)
    }

    /// Compiles a list of statements; `found` says whether FOUND may be read after it.
    pub(super) fn statements(
        &mut self,
        c: &mut Compiler<'_>,
        list: &[Statement],
        found: bool,
    ) -> Result<()> {
        for (index, statement) in list.iter().enumerate() {
            let found = self.keeps_found || liveness::found_is_read_after(list, index, found);
            let key = std::ptr::from_ref(statement) as usize;
            self.deferring(c, key, |body, c| body.statement(c, statement, found))?;
        }
        Ok(())
    }

    /// Compiles a part of the body; an error of it that PostgreSQL reports when the part runs is
    /// noted, so that the next compilation raises it there.
    fn deferring(
        &mut self,
        c: &mut Compiler<'_>,
        key: usize,
        compile: impl FnOnce(&mut Self, &mut Compiler<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(error) = c.routines.deferred.get(&key) {
            let step = raise_step(error);
            // In a branch of its own, so that what follows counts as reachable: it must compile.
            let always = c.builder.constant(DataType::Boolean, Value::Boolean(true));
            c.builder.push(Step::If {
                condition: always,
                then: vec![step],
                otherwise: Vec::new(),
            });
            return Ok(());
        }
        let result = compile(self, c);
        if let Err(error) = &result
            && !c.routines.grew_by_error
        {
            let unsure = error.state() == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
                && self.has_unsure_record();
            if unsure {
                let position = error.position().map(|place| (place.line, place.column));
                return Err(refuse(
                    c,
                    unsupported("a record whose fields depend on the path taken", position),
                ));
            }
            if !c.routines.refused && may_wait(error) {
                c.routines.deferred.insert(key, error.clone());
                c.routines.grew = true;
                c.routines.grew_by_error = true;
            }
        }
        result
    }

    fn statement(
        &mut self,
        c: &mut Compiler<'_>,
        statement: &Statement,
        found: bool,
    ) -> Result<()> {
        let position = at(statement.position);
        match &statement.kind {
            StatementKind::Block(block) => self.block_live(c, block, found),
            StatementKind::Assign { target, value } => self.assign(c, target, value),
            StatementKind::Select { query, into } => {
                self.select_into(c, query, into, found, position)
            }
            StatementKind::Unexecutable(error) => Err(error.clone()),
            StatementKind::Data { statement, into } => {
                self.data(c, statement, into.as_ref(), found, position)
            }
            StatementKind::Execute { .. }
            | StatementKind::Utility(_)
            | StatementKind::EndTransaction { .. }
            | StatementKind::Open(_)
            | StatementKind::CursorStep(_)
            | StatementKind::CloseCursor(_)
            | StatementKind::ForCursor(_) => Err(refuse(c, stepped_only(position))),
            StatementKind::Perform(query) => self.perform(c, query, found),
            StatementKind::Call(call) => self.call(c, call),
            StatementKind::If {
                branches,
                otherwise,
            } => self.if_statement(c, branches, otherwise, found),
            StatementKind::Case {
                operand,
                arms,
                otherwise,
            } => self.case(
                c,
                operand.as_ref(),
                arms,
                otherwise.as_deref(),
                found,
                position,
            ),
            StatementKind::Loop(body) => self.endless(c, body, found),
            StatementKind::While { condition, body } => self.while_loop(c, condition, body, found),
            StatementKind::ForRange(range) => self.for_range(c, range, found, position),
            StatementKind::ForQuery {
                targets,
                rows,
                body,
            } => self.for_rows(c, targets, rows, body, found, position),
            StatementKind::ForEach {
                target,
                array,
                body,
            } => self.for_each(c, target, array, body, found, position),
            StatementKind::Exit {
                kind,
                label,
                condition,
            } => self.exit(c, *kind, label.as_ref(), condition.as_ref(), position),
            StatementKind::Return(value) => self.return_value(c, value.as_ref(), position),
            StatementKind::ReturnNext(value) => self.return_next(c, value.as_ref(), position),
            StatementKind::ReturnQuery(rows) => self.return_query(c, rows, found, position),
            StatementKind::Raise(raise) => self.raise(c, raise, position),
            StatementKind::Assert { condition, message } => {
                self.assert(c, condition, message.as_ref(), position)
            }
            StatementKind::GetRowCount(targets) => targets
                .iter()
                .try_for_each(|target| self.get_row_count(c, target)),
            StatementKind::GetStacked(items) => self.get_stacked(c, items, position),
            StatementKind::Null => Ok(()),
        }
    }

    /// `condition` as PL/pgSQL tests it: anything that can be converted to BOOLEAN.
    pub(super) fn condition(
        &mut self,
        c: &mut Compiler<'_>,
        condition: &parse::Expression,
    ) -> Result<Reg> {
        c.truth(&condition.expr)
    }
}

/// Whether an error that was not refused is one that PostgreSQL reports when the statement runs.
fn may_wait(error: &Error) -> bool {
    let state = error.state();
    state != SqlState::FEATURE_NOT_SUPPORTED && state.class() != "54" && state.class() != "XX"
}

/// An error of creation.
pub(super) fn creation_error(
    c: &mut Compiler<'_>,
    state: SqlState,
    message: &str,
    position: Position,
) -> Error {
    refuse(c, fail(state, message, position))
}
