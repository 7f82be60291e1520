//! Trigger functions: their bodies are compiled where a row is written, with the row in NEW and
//! OLD.
//!
//! The same function may serve several tables and events. It is compiled for each of them by
//! itself: NEW and OLD have the columns of the table, and what `TG_OP` and its like say is known,
//! so that the branches of other events are left out.

use kiln_platform::sync::Arc;
use kiln_procedure::analysis::names::for_each_step;
use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::parts;
use kiln_storage::schema::{ColumnSet, Trigger, TriggerEvent, TriggerTime};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Value as Literal};

use super::super::bound::{Bound, Kind, Routine};
use super::super::coerce::CastContext;
use super::super::once::Written;
use super::super::types::same_base;
use super::super::{Compiler, Position, Typed, fail, unsupported};
use super::body::{Body, creation_error};
use super::call::DEPTH_MAX;
use super::results::Destination;
use super::variables::{EntryKind, Slot, failure, refuse, set_boolean};
use super::{Active, at, liveness, repeat};
use crate::compile::name_of;
use crate::parse::plpgsql::{Block, Statement, StatementKind, Target};
use crate::parse::{self, Expression, FunctionDefinition};

/// A trigger that fires for rows that are written.
#[derive(Clone, Debug)]
pub(in super::super) struct Firing {
    pub table: Arc<Table>,
    pub trigger: Trigger,
    pub event: TriggerEvent,
}

/// What the body of a trigger function works on.
pub(super) struct Frame {
    firing: Firing,
    /// The row before, and the row as it is to be, where the event has them.
    old: Option<Vec<Reg>>,
    new: Option<Vec<Reg>>,
}

/// Where the row goes that a BEFORE trigger returns, and whether it returns one.
#[derive(Clone, Debug)]
pub(in super::super) struct Returned {
    pub kept: Reg,
    /// Empty for a row that is deleted.
    pub row: Vec<Reg>,
}

impl Firing {
    /// It by a name that no routine has.
    fn key(&self) -> String {
        let (trigger, table) = (&self.trigger.name, &self.table.schema().name);
        format!(
            "trigger \"{trigger}\" on table \"{table}\" for {}",
            self.event.name()
        )
    }

    /// The constants that its function can name.
    fn constants(&self, oid: u32) -> Vec<(&'static str, DataType, Value)> {
        let text = |text: &str| Value::Text(text.to_owned());
        let (schema, table) = parts(&self.table.schema().name);
        let count = i32::try_from(self.trigger.arguments.len()).unwrap_or(i32::MAX);
        let when = match self.trigger.time {
            TriggerTime::Before => "BEFORE",
            TriggerTime::After => "AFTER",
        };
        vec![
            ("tg_name", DataType::NAME, text(&self.trigger.name)),
            ("tg_when", DataType::Text, text(when)),
            ("tg_level", DataType::Text, text("ROW")),
            ("tg_op", DataType::Text, text(self.event.name())),
            ("tg_relid", DataType::OID, Value::BigInt(i64::from(oid))),
            ("tg_relname", DataType::NAME, text(table)),
            ("tg_table_name", DataType::NAME, text(table)),
            ("tg_table_schema", DataType::NAME, text(schema)),
            ("tg_nargs", DataType::Integer, Value::Integer(count)),
        ]
    }
}

impl<'a> Compiler<'a> {
    /// Compiles the function of a trigger in this place.
    ///
    /// # Errors
    /// 0A000 for a trigger that fires itself, and for a BEFORE trigger that writes its own table;
    /// 42883 without the function; the errors of its body.
    pub(in super::super) fn fire_trigger(
        &mut self,
        firing: &Firing,
        old: Option<&[Reg]>,
        new: Option<&[Reg]>,
        returned: Option<&Returned>,
    ) -> Result<()> {
        let key = firing.key();
        if self.routines.is_active(&key) {
            let error = unsupported(format!("a trigger that fires itself ({key})"), None);
            return Err(refuse(self, error));
        }
        if self.routines.active.len() >= DEPTH_MAX || self.builder.is_too_large() {
            let feature = format!("more than {DEPTH_MAX} triggers and calls within one another");
            return Err(refuse(self, unsupported(feature, None)));
        }
        let definition = self.trigger_function(firing, &key)?;
        let frame = Frame {
            firing: firing.clone(),
            old: old.map(<[Reg]>::to_vec),
            new: new.map(<[Reg]>::to_vec),
        };
        let routine = Routine::of(self.catalog, &definition)?;
        self.routines.active.push(Active {
            name: key,
            routine: routine.name.clone(),
            is_definer: definition.is_definer,
        });
        let steps = self.isolated(|c| {
            let destination = Destination::Trigger {
                outside: c.loop_depth(),
                returned: returned.cloned(),
            };
            c.open_ir_loop();
            let mut body = Body::new(c, &routine);
            body.destination = destination;
            c.open();
            let result = c.along(&definition.path, |c| {
                body.trigger_body(c, &definition, &frame)
            });
            if result.is_err() {
                return result.map(|()| Vec::new());
            }
            c.builder.push(Step::Exit { depth: 0 });
            Ok(c.close_ir_loop())
        });
        self.routines.active.pop();
        let body = steps?;
        if returned.is_some() {
            self.note_tables_written(firing, &body)?;
        }
        self.builder.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
        Ok(())
    }

    /// A statement must not read what its BEFORE triggers write, and these must not write the table
    /// of the row.
    fn note_tables_written(&mut self, firing: &Firing, body: &[Step]) -> Result<()> {
        let mut tables = Vec::new();
        for_each_step(body, &mut |step| {
            if let Step::Insert { table, .. }
            | Step::Update { table, .. }
            | Step::Delete { table, .. } = step
            {
                tables.push(self.builder.table_of(*table).id());
            }
        });
        if tables.contains(&firing.table.id()) {
            let feature = format!(
                "a BEFORE trigger that writes its own table ({})",
                firing.key()
            );
            return Err(refuse(self, unsupported(feature, None)));
        }
        for table in tables {
            self.note_written(Written {
                table,
                function: firing.trigger.function.clone(),
                position: None,
            });
        }
        Ok(())
    }

    /// The function of a trigger, of whose body compilations have learnt all. Each trigger has a
    /// copy of its own: what is learnt is known by the nodes of its tree, and holds for one table
    /// and event.
    fn trigger_function(&mut self, firing: &Firing, key: &str) -> Result<Arc<FunctionDefinition>> {
        let known = self.routines.of_triggers.iter();
        let mut known = known.filter(|(name, _)| name == key);
        let found = self.catalog.routine(&firing.trigger.function);
        if let Some((_, definition)) = known.next() {
            return Ok(definition.clone());
        }
        let found = found.ok_or_else(|| {
            let message = format!("function {}() does not exist", firing.trigger.function);
            fail(SqlState::UNDEFINED_FUNCTION, message, None)
        })?;
        let definition = Arc::new((*found).clone());
        self.routines
            .of_triggers
            .push((key.to_owned(), definition.clone()));
        self.learn_trigger(firing, key, &definition)?;
        Ok(definition)
    }

    fn learn_trigger(
        &mut self,
        firing: &Firing,
        key: &str,
        definition: &Arc<FunctionDefinition>,
    ) -> Result<()> {
        let routine = Routine::of(self.catalog, definition)?;
        let active = Active {
            name: key.to_owned(),
            routine: routine.name.clone(),
            is_definer: definition.is_definer,
        };
        super::apart(self, active, |catalog, inference| {
            repeat(catalog, inference, |c| {
                let types = firing.table.schema().shown().iter();
                let types: Vec<DataType> = types.map(|column| column.data_type.clone()).collect();
                let mut row = |is_there: bool| {
                    let registers = types.iter().map(|it| c.builder.register(it.clone()));
                    is_there.then(|| registers.collect::<Vec<Reg>>())
                };
                let frame = Frame {
                    firing: firing.clone(),
                    old: row(firing.event != TriggerEvent::Insert),
                    new: row(firing.event != TriggerEvent::Delete),
                };
                let mut body = Body::new(c, &routine);
                c.open();
                c.along(&definition.path, |c| {
                    body.trigger_body(c, definition, &frame)
                })
            })
            .map(drop)
        })
    }

    /// Whether a condition holds whatever the row is; `None` where that depends on the row.
    pub(super) fn known_truth(&mut self, expr: &Expr) -> Option<bool> {
        let bound = self.bind(expr).ok()?;
        known_truth(&bound)
    }

    /// The columns of NEW that the function of a BEFORE trigger may change; all of them where that
    /// is not known.
    pub(in super::super) fn columns_of_new(&self, table: &Table, function: &str) -> ColumnSet {
        let all = ColumnSet::first(table.schema().shown().len());
        let Some(definition) = self.catalog.routine(function) else {
            return ColumnSet::EMPTY;
        };
        let parse::Body::PlPgSql(block) = &definition.body else {
            return all;
        };
        let mut changed = ColumnSet::EMPTY;
        let mut add = |target: &Target| {
            let path: Vec<String> = target.path.iter().map(name_of).collect();
            let Some(at) = path.iter().position(|name| name == "new") else {
                return;
            };
            match path.get(at + 1).map(|field| table.schema().column(field)) {
                Some(Some(column)) => changed.insert(column),
                Some(None) => {}
                None => changed = all,
            }
        };
        let mut is_other = false;
        for list in block.lists() {
            liveness::each_statement(list, &mut |statement| {
                liveness::targets(statement).into_iter().for_each(&mut add);
                is_other |= returns_another_row(statement);
            });
        }
        match is_other {
            true => all,
            false => changed,
        }
    }
}

/// Whether a statement returns another row than NEW, or hands NEW on to what may change it.
fn returns_another_row(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Return(Some(value)) => match &value.expr {
            Expr::Identifier(ident) => name_of(ident) != "new",
            Expr::Value(value) => !matches!(value.value, Literal::Null),
            _ => true,
        },
        StatementKind::Call(call) => liveness::mentions(&call.arguments, "new"),
        // A NEW of its own.
        StatementKind::Block(block) => block
            .declarations
            .iter()
            .any(|it| name_of(&it.name) == "new"),
        _ => false,
    }
}

fn known_truth(bound: &Bound) -> Option<bool> {
    match &bound.kind {
        Kind::Constant(Value::Boolean(truth)) => Some(*truth),
        Kind::Constant(Value::Null) => Some(false),
        Kind::And(operands) => all_known(operands, false),
        Kind::Or(operands) => all_known(operands, true),
        _ => None,
    }
}

/// What AND (with FALSE as `decisive`) or OR gives.
fn all_known(operands: &[Bound], decisive: bool) -> Option<bool> {
    let mut truths = operands.iter().map(known_truth);
    if truths.clone().any(|truth| truth == Some(decisive)) {
        return Some(decisive);
    }
    truths.all(|truth| truth.is_some()).then_some(!decisive)
}

impl Body {
    /// Compiles the body of a trigger function into the open block, and closes that.
    fn trigger_body(
        &mut self,
        c: &mut Compiler<'_>,
        definition: &FunctionDefinition,
        frame: &Frame,
    ) -> Result<()> {
        let parse::Body::PlPgSql(block) = &definition.body else {
            return Err(unsupported("a trigger function in SQL", None));
        };
        self.is_of_trigger = true;
        self.start(c, block, &[])?;
        self.declare_constants(c, &frame.firing, block)?;
        let columns = frame.firing.table.schema().shown().iter();
        let shape: Vec<(String, DataType)> = columns
            .map(|column| (column.name.clone(), column.data_type.clone()))
            .collect();
        for (name, row) in [("new", &frame.new), ("old", &frame.old)] {
            let is_assigned = block.lists().any(|list| liveness::assigns(list, name));
            if row.is_none() && !is_assigned {
                self.declare_absent_row(c, name, &shape)?;
                let of = c.catalog.row_type(&frame.firing.table.schema().name);
                c.describe_row(name, of, true);
                continue;
            }
            let fields = self.declare_row(c, name, &shape, false, None)?;
            let of = c.catalog.row_type(&frame.firing.table.schema().name);
            c.describe_row(name, of, true);
            for (field, source) in fields.iter().zip(row.iter().flatten()) {
                let (target, source) = (field.register, *source);
                c.builder.scalar(Instruction::Move { target, source });
            }
        }
        self.block(c, block)?;
        self.finish(c, block)
    }

    /// The names of what is known of the event.
    fn declare_constants(
        &mut self,
        c: &mut Compiler<'_>,
        firing: &Firing,
        block: &Block,
    ) -> Result<()> {
        let oid = c.catalog.table_oid(&firing.table.schema().name);
        for (name, data_type, value) in firing.constants(oid) {
            let is_assigned = block.lists().any(|list| liveness::assigns(list, name));
            let constant = c.builder.constant(data_type.clone(), value);
            let register = match is_assigned {
                true => {
                    let target = c.builder.register(data_type.clone());
                    let source = constant;
                    c.builder.scalar(Instruction::Move { target, source });
                    target
                }
                false => constant,
            };
            self.declare_slot(c, slot(name, data_type, register), None)?;
        }
        let arguments = firing.trigger.arguments.iter();
        let arguments: Vec<Value> = arguments.map(|it| Value::Text(it.clone())).collect();
        let data_type = DataType::array(DataType::Text);
        let source = c
            .builder
            .constant(data_type.clone(), Value::Array(arguments));
        let target = c.builder.register(data_type.clone());
        c.builder.scalar(Instruction::Move { target, source });
        c.counted_from_zero.push(target);
        self.declare_slot(c, slot("tg_argv", data_type, target), None)
    }

    /// RETURN in a trigger function.
    pub(super) fn return_row(
        &mut self,
        c: &mut Compiler<'_>,
        value: Option<&Expression>,
        position: Position,
    ) -> Result<()> {
        let Some(value) = value else {
            let message = "missing expression: RETURN needs a value here";
            return Err(creation_error(c, SqlState::SYNTAX_ERROR, message, position));
        };
        let is_null = matches!(&value.expr, Expr::Value(value) if value.value == Literal::Null);
        let is_row = matches!(
            self.named_entry(&value.expr),
            Some(EntryKind::Row { .. } | EntryKind::Record(_))
        );
        if !is_null && !is_row {
            let error = unsupported("RETURN of a row that is no variable", at(value.position));
            return Err(refuse(c, error));
        }
        // Where a function is only checked no row has columns.
        let fields = match is_null || !self.is_of_trigger {
            true => None,
            false => self.named_fields(c, &value.expr, at(value.position))?,
        };
        if let Destination::Trigger {
            returned: Some(Returned { kept, row }),
            ..
        } = self.destination.clone()
        {
            match fields {
                None => set_boolean(c, kept, false),
                Some(_) if row.is_empty() => {}
                Some(fields) => {
                    let fits = fields.len() == row.len()
                        && fields.iter().zip(&row).all(|(field, register)| {
                            same_base(&field.data_type, c.builder.type_of(*register))
                        });
                    if !fits {
                        let message = "returned row structure does not match the structure of the \
                                       triggering table";
                        return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
                    }
                    for (field, target) in fields.into_iter().zip(row) {
                        let data_type = c.builder.type_of(target).clone();
                        let typed = Typed {
                            register: field.register,
                            data_type: field.data_type,
                        };
                        let context = CastContext::Variable;
                        c.cast_into(&typed, target, &data_type, context, position)?;
                    }
                }
            }
        }
        self.leave(c);
        Ok(())
    }

    /// Compiles the body of a trigger function where no table is known, to see what is wrong with
    /// it.
    pub(super) fn checked_trigger(
        &mut self,
        c: &mut Compiler<'_>,
        definition: &FunctionDefinition,
    ) -> Result<()> {
        let parse::Body::PlPgSql(block) = &definition.body else {
            let message = "SQL functions cannot return type trigger";
            let state = SqlState::INVALID_FUNCTION_DEFINITION;
            return Err(creation_error(c, state, message, at(definition.position)));
        };
        c.open();
        self.start(c, block, &[])?;
        let texts = [
            "tg_name",
            "tg_when",
            "tg_level",
            "tg_op",
            "tg_relname",
            "tg_table_name",
        ];
        let texts = texts.into_iter().chain(["tg_table_schema"]);
        let texts = texts.map(|name| (name, DataType::Text));
        let others = [
            ("tg_relid", DataType::OID),
            ("tg_nargs", DataType::Integer),
            ("tg_argv", DataType::array(DataType::Text)),
        ];
        for (name, data_type) in texts.chain(others) {
            let register = c.builder.register(data_type.clone());
            self.declare_slot(c, slot(name, data_type, register), None)?;
        }
        let key = std::ptr::from_ref(block) as usize;
        for (name, key) in [("new", key), ("old", key + 1)] {
            self.declare_record(c, name, key, None)?;
        }
        self.block(c, block)?;
        self.finish(c, block)
    }

    /// What happens at the end of a trigger function's body.
    pub(super) fn end_of_trigger(c: &mut Compiler<'_>, position: Position) {
        let error = fail(
            SqlState::FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
            "control reached end of trigger procedure without RETURN",
            position,
        );
        c.builder.push(Step::Raise {
            error: Box::new(failure(&error)),
        });
    }
}

fn slot(name: &str, data_type: DataType, register: Reg) -> Slot {
    Slot {
        register,
        data_type,
        constant: false,
        not_null: false,
        name: name.to_owned(),
    }
}
