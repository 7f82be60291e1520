//! Calls of other routines: their bodies are compiled in the place of the call.
//!
//! So the analysis sees a call's operations among the caller's, and a record that both look up is
//! looked up once. What calls itself cannot be compiled in place, and is refused.

use kiln_engine::{Object, Privilege};
use kiln_procedure::analysis::names::for_each_step;
use kiln_procedure::ir::{BufferId, Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Ident;

use super::super::bound::{Bound, Callee, ResultKind, Routine};
use super::super::once::Written;
use super::super::query::OutputColumn;
use super::super::row_value::record_of;
use super::super::{Compiler, Position, fail, routine_name, unsupported};
use super::assign::RowTarget;
use super::at;
use super::body::Body;
use super::matching::{types_of, undefined};
use super::results::Destination;
use super::variables::refuse;
use crate::parse::plpgsql::Target;
use crate::parse::{Call, RoutineKind};

/// How many routines may be compiled within one another.
pub(super) const DEPTH_MAX: usize = 16;

impl Callee {
    /// The routine called `name`, if there is one.
    ///
    /// # Errors
    /// Those of its header; 0A000 for one that is being compiled.
    fn find(c: &mut Compiler<'_>, name: &str, position: Position) -> Result<Option<Callee>> {
        // By name, as the old definition of a routine that is being replaced is still there.
        if c.routines.is_active(name) {
            let error = unsupported(format!("a recursive call of {name}"), position);
            return Err(refuse(c, error));
        }
        match c.catalog.routine(name) {
            Some(definition) => {
                let routine = Routine::of(c.catalog, &definition)?;
                if routine.result == ResultKind::Trigger {
                    return Err(super::not_called());
                }
                c.note_access(Object::routine(name), Privilege::Execute);
                super::learn(c, &definition, &routine)?;
                Ok(Some(Callee {
                    definition,
                    routine,
                    over_rows: false,
                }))
            }
            None => Ok(None),
        }
    }

    /// Binds a call of the function called `name`; `over_rows` says whether it may run once for
    /// each row of a query.
    ///
    /// # Errors
    /// 42883 when there is none for these arguments, 42809 for a procedure.
    pub(in super::super) fn bind(
        c: &mut Compiler<'_>,
        name: &str,
        mut given: Vec<(Option<&Ident>, Bound)>,
        over_rows: bool,
        position: Position,
    ) -> Result<(Callee, Vec<Bound>)> {
        given.retain(|(_, bound)| !bound.is_void());
        let Some(mut callee) = Callee::find(c, name, position)? else {
            return Err(undefined(RoutineKind::Function, name, &given, position));
        };
        if callee.routine.kind == RoutineKind::Procedure {
            let message = format!("{name}({}) is a procedure", types_of(&given));
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("To call a procedure, use CALL."));
        }
        callee.over_rows = over_rows;
        let arguments = callee.routine.arguments(c, &given, false, position)?;
        Ok((callee, arguments))
    }

    /// Whether any number of values come back, and no rows.
    pub(in super::super) fn gives_values(&self) -> bool {
        matches!(self.routine.result, ResultKind::SetOfScalar(_))
    }

    /// The type of a call as a value: TEXT (the empty one) when nothing comes back.
    ///
    /// # Errors
    /// 0A000 for a function that gives rows.
    pub(in super::super) fn value_type(&self, position: Position) -> Result<DataType> {
        match &self.routine.result {
            ResultKind::Void | ResultKind::Trigger => Ok(DataType::Text),
            ResultKind::Scalar(data_type) => Ok(data_type.clone()),
            ResultKind::Row(columns) => {
                let of = match &self.routine.row_type {
                    Some(of) => of.clone(),
                    None => {
                        let fields = columns.iter();
                        let fields = fields.map(|(name, data_type)| (name.clone(), data_type));
                        record_of(fields, position)?
                    }
                };
                Ok(DataType::Row(of))
            }
            _ => Err(unsupported(
                format!(
                    "a call of {} as a value, since it gives rows",
                    self.routine.name
                ),
                position,
            )
            .with_hint("Call it in FROM.")),
        }
    }

    /// Calls the function as a value.
    ///
    /// # Errors
    /// As [`Callee::call_once`].
    pub(in super::super) fn call_value(
        &self,
        c: &mut Compiler<'_>,
        arguments: &[Reg],
        target: Reg,
        position: Position,
    ) -> Result<()> {
        if self.routine.result == ResultKind::Void {
            self.call_once(c, arguments, &[], position)?;
            void_value(c, target);
            return Ok(());
        }
        if let DataType::Row(of) = self.value_type(position)?
            && let ResultKind::Row(columns) = &self.routine.result
        {
            let types = columns.iter().map(|(_, data_type)| data_type.clone());
            let row: Vec<Reg> = types.map(|it| c.builder.register(it)).collect();
            self.call_once(c, arguments, &row, position)?;
            c.pack_columns(&row, &of, target);
            return Ok(());
        }
        self.call_once(c, arguments, &[target], position)
    }

    /// Calls the routine where it may be called only for its effects or one row, which goes to
    /// `row`. The registers of `row` have the types of the result.
    ///
    /// # Errors
    /// 0A000 for what calls itself; the errors of its body.
    pub(in super::super) fn call_once(
        &self,
        c: &mut Compiler<'_>,
        arguments: &[Reg],
        row: &[Reg],
        position: Position,
    ) -> Result<()> {
        let outside = c.loop_depth();
        let destination = Destination::Registers {
            outside,
            row: row.to_vec(),
        };
        self.inline(c, arguments, destination, position)
    }

    /// Calls the routine and collects its rows in a new buffer.
    ///
    /// # Errors
    /// As [`Callee::call_once`].
    pub(in super::super) fn call_rows(
        &self,
        c: &mut Compiler<'_>,
        arguments: &[Reg],
        position: Position,
    ) -> Result<BufferId> {
        let buffer = c.builder.buffer(self.routine.result.types().len());
        c.builder.push(Step::BufferClear { buffer });
        let destination = Destination::Buffer {
            outside: c.loop_depth(),
            buffer,
        };
        self.inline(c, arguments, destination, position)?;
        if self.routine.result == ResultKind::Void {
            let target = c.builder.register(DataType::Text);
            void_value(c, target);
            c.builder.push(Step::BufferPush {
                buffer,
                row: [target].into(),
            });
        }
        Ok(buffer)
    }

    fn inline(
        &self,
        c: &mut Compiler<'_>,
        arguments: &[Reg],
        destination: Destination,
        position: Position,
    ) -> Result<()> {
        let name = &self.routine.name;
        if c.routines.active.len() >= DEPTH_MAX {
            let feature = format!("more than {DEPTH_MAX} calls within one another");
            return Err(refuse(c, unsupported(feature, position)));
        }
        c.routines.active.push(super::Active {
            name: name.clone(),
            routine: name.clone(),
            is_definer: self.definition.is_definer,
        });
        let variables = std::mem::take(&mut c.variables);
        let levels = std::mem::take(&mut c.levels);
        let positional = std::mem::take(&mut c.positional);
        c.open_ir_loop();
        let mut body = Body::new(c, &self.routine);
        if let Destination::Registers { row, .. } = &destination {
            for (target, domain) in row.iter().zip(&self.routine.result_domains) {
                c.keep_in_domain(*target, domain.as_ref());
            }
        }
        body.destination = destination;
        body.strict_check(c, arguments);
        c.open();
        let result = c.along(&self.definition.path, |c| {
            c.outside_statement(|c| body.any_body(c, &self.definition.body, arguments))
        });
        if result.is_ok() {
            c.builder.push(Step::Exit { depth: 0 });
            let body = c.close_ir_loop();
            let mut tables = Vec::new();
            for_each_step(&body, &mut |step| {
                if let Step::Insert { table, .. }
                | Step::Update { table, .. }
                | Step::Delete { table, .. } = step
                {
                    tables.push(c.builder.table_of(*table).id());
                }
            });
            let writes = !tables.is_empty();
            for table in tables {
                c.note_written(Written {
                    table,
                    function: name.clone(),
                    position,
                });
            }
            c.builder.push(Step::Loop {
                before: Vec::new(),
                condition: None,
                body,
            });
            if writes && self.over_rows {
                let feature = format!("a call of {name}, which writes, for each row of a query");
                return Err(refuse(c, unsupported(feature, position)));
            }
        }
        c.variables = variables;
        c.levels = levels;
        c.positional = positional;
        c.routines.active.pop();
        result
    }
}

impl Compiler<'_> {
    /// Whether `name` is that of a user's routine, the one being compiled included.
    pub(in super::super) fn knows_routine(&self, name: &str) -> bool {
        self.catalog.has_function(name) || self.routines.is_active(name)
    }
}

impl Body {
    /// `CALL procedure(…)`.
    pub(super) fn call(&mut self, c: &mut Compiler<'_>, call: &Call) -> Result<()> {
        let position = at(call.position);
        let name = routine_name(c.catalog, &call.name)?;
        let mut given = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            given.push((argument.name.as_ref(), c.bind(&argument.value.expr)?));
        }
        let Some(callee) = Callee::find(c, &name, position)? else {
            return Err(undefined(RoutineKind::Procedure, &name, &given, position));
        };
        if callee.routine.kind == RoutineKind::Function {
            let message = format!("{name}({}) is not a procedure", types_of(&given));
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("To call a function, use SELECT."));
        }
        let targets = self.output_targets(c, call, &callee, &given, position)?;
        let values = callee.routine.arguments(c, &given, true, position)?;
        let arguments = c.emit_all(&values)?;
        let arguments: Vec<Reg> = arguments.iter().map(|typed| typed.register).collect();
        let columns: Vec<OutputColumn> = callee
            .routine
            .result_columns()
            .into_iter()
            .map(|(name, data_type)| OutputColumn {
                name,
                register: c.builder.register(data_type.clone()),
                data_type,
            })
            .collect();
        let row: Vec<Reg> = columns.iter().map(|column| column.register).collect();
        callee.call_once(c, &arguments, &row, position)?;
        if columns.is_empty() {
            return Ok(());
        }
        self.assign_columns(c, &targets, &columns, position)
    }

    /// The variables that a CALL passes for OUT and INOUT parameters.
    fn output_targets(
        &self,
        c: &mut Compiler<'_>,
        call: &Call,
        callee: &Callee,
        given: &[(Option<&Ident>, Bound)],
        position: Position,
    ) -> Result<RowTarget> {
        let chosen = callee.routine.chosen(given, true, position)?;
        let mut targets = Vec::new();
        for (parameter, chosen) in callee.routine.taken(true).zip(chosen) {
            if !parameter.mode.is_output() {
                continue;
            }
            let Some(number) = chosen else {
                return Err(callee.routine.undefined(given, position));
            };
            let argument = &call.arguments[number].value;
            let path = match &argument.expr {
                sqlparser::ast::Expr::Identifier(ident) => vec![ident.clone()],
                sqlparser::ast::Expr::CompoundIdentifier(path) => path.clone(),
                _ => {
                    let message = format!(
                        "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                        parameter.name
                    );
                    return Err(fail(SqlState::SYNTAX_ERROR, message, at(argument.position)));
                }
            };
            targets.push(Target {
                position: argument.position,
                path,
                places: Vec::new(),
            });
        }
        if targets.is_empty() {
            return Ok(RowTarget::Slots(Vec::new()));
        }
        self.row_targets(c, &targets)
    }
}

/// What a call of a function that returns VOID is as a value.
fn void_value(c: &mut Compiler<'_>, target: Reg) {
    let source = c
        .builder
        .constant(DataType::Text, Value::Text(String::new()));
    c.builder.scalar(Instruction::Move { target, source });
}
