//! CALL of a stored procedure: its arguments, bound to the statement's parameters.

use kiln_engine::{Access, Arguments, Catalog, Object, Privilege, Rows};
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::panics::caught;
use super::prepared::{Column, Plan, Statement};
use super::stepped::Stepped;
use crate::catalog::{View, routine_of};
use crate::compile::{
    CallArgumentValue, CallArguments, CatalogView as _, bind_call, fail, position_of, routine_name,
};
use crate::parse::{Call, RoutineKind};

/// A CALL whose arguments are bound.
pub(super) struct CallPlan {
    /// The procedure.
    pub name: String,
    program: Arc<Program>,
    arguments: CallArguments,
    /// The types of the statement's parameters.
    pub parameters: Vec<DataType>,
    columns: Vec<(String, DataType)>,
    /// What its role must be allowed to do.
    accesses: Arc<[Access]>,
    /// The routine, when it is run step by step.
    pub stepped: Option<Stepped>,
}

impl CallPlan {
    /// Binds a CALL; the types that `declared` lacks of the statement's parameters are inferred.
    ///
    /// # Errors
    /// 42883 when there is no such procedure or it takes other arguments, 42809 for a function.
    pub fn of(catalog: &Catalog, call: &Call, declared: &[Option<DataType>]) -> Result<CallPlan> {
        CallPlan::of_kind(catalog, call, declared, RoutineKind::Procedure)
    }

    /// Binds a SELECT of a function that is run step by step, as a CALL.
    ///
    /// # Errors
    /// As [`CallPlan::of`].
    pub fn of_function(
        catalog: &Catalog,
        call: &Call,
        declared: &[Option<DataType>],
    ) -> Result<CallPlan> {
        CallPlan::of_kind(catalog, call, declared, RoutineKind::Function)
    }

    fn of_kind(
        catalog: &Catalog,
        call: &Call,
        declared: &[Option<DataType>],
        kind: RoutineKind,
    ) -> Result<CallPlan> {
        let name = routine_name(&View::of(catalog), &call.name)?;
        let position = position_of(&call.name);
        let procedure = catalog.procedure(&name);
        let routine = procedure.and_then(|known| Some((known, routine_of(catalog, known)?)));
        let Some((procedure, routine)) = routine else {
            let message = format!("procedure {name} does not exist");
            return Err(
                fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(
                    "No procedure matches the given name and argument types. You might need to \
                     add explicit type casts.",
                ),
            );
        };
        if routine.kind == RoutineKind::Function && kind == RoutineKind::Procedure {
            let message = format!("{name} is not a procedure");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("To call a function, use SELECT."));
        }
        let view = View::of(catalog);
        let execute = Access::of_caller(Object::routine(&name), Privilege::Execute);
        view.note_access(execute);
        for access in procedure.accesses() {
            view.note_access(access.clone());
        }
        let outputs = kind == RoutineKind::Procedure;
        let (arguments, parameters) = caught(|| {
            bind_call(
                &view,
                &routine,
                &call.arguments,
                outputs,
                declared,
                position,
            )
        })?;
        let stepped = Stepped::find(&view, &name);
        Ok(CallPlan {
            program: procedure.program().clone(),
            columns: match &stepped {
                Some(stepped) => stepped.columns(),
                None => routine.result_columns(),
            },
            stepped,
            name,
            arguments,
            parameters,
            accesses: view.into_accesses(),
        })
    }

    /// The columns of the row that its output parameters are.
    pub fn columns(&self) -> Vec<Column> {
        let columns = self.columns.iter().map(|(name, data_type)| Column {
            name: name.clone(),
            data_type: data_type.clone(),
            origin: None,
        });
        columns.collect()
    }

    /// What its role must be allowed to do.
    pub fn accesses(&self) -> &Arc<[Access]> {
        &self.accesses
    }

    /// The program that computes the arguments; `None` when they are at hand.
    pub fn computing(&self) -> Option<&Arc<Program>> {
        match &self.arguments {
            CallArguments::Computed(program) => Some(program),
            CallArguments::Direct(_) => None,
        }
    }

    /// Whether arguments that were made for another plan of the same statement are what this one
    /// takes.
    pub fn has_arguments_of(&self, other: &CallPlan) -> bool {
        match (&self.arguments, &other.arguments) {
            (CallArguments::Direct(these), CallArguments::Direct(those)) => {
                these == those && self.parameters == other.parameters
            }
            _ => false,
        }
    }

    /// The error of a statement that is no query any more but a call, since its function was
    /// replaced; or of a cursor for it.
    #[cold]
    pub fn only_alone(&self) -> Error {
        let message = format!(
            "function {} is run by SELECT as a statement of its own: any other call of it",
            self.name
        );
        Error::unsupported(message)
    }

    /// The error of a call whose arguments were made for another procedure of this name.
    #[cold]
    pub fn replaced(&self) -> Error {
        let message = format!("procedure \"{}\" was replaced during its call", self.name);
        Error::new(SqlState::SERIALIZATION_FAILURE, message).with_hint("Try again.")
    }

    /// [`CallPlan::direct`], as values.
    pub fn direct_values(&self, values: &[Value]) -> Vec<Value> {
        let CallArguments::Direct(direct) = &self.arguments else {
            return Vec::new();
        };
        let value = |argument: &CallArgumentValue| match argument {
            CallArgumentValue::Constant(value) => value.clone(),
            CallArgumentValue::Parameter(position) => {
                values.get(*position).cloned().unwrap_or(Value::Null)
            }
        };
        direct.iter().map(value).collect()
    }

    /// The arguments that are at hand, when the statement's parameters have these values.
    pub fn direct(&self, values: &[Value]) -> Arguments {
        let mut arguments = Arguments::new();
        let CallArguments::Direct(direct) = &self.arguments else {
            return arguments;
        };
        for argument in direct {
            match argument {
                CallArgumentValue::Constant(value) => arguments.push(value),
                CallArgumentValue::Parameter(position) => match values.get(*position) {
                    Some(value) => arguments.push(value),
                    None => arguments.push_null(),
                },
            }
        }
        arguments
    }
}

/// What a [`Statement`] is called as in a catalog: it may have changed since the plan was looked
/// at.
fn plan_in(statement: &Statement, catalog: &Arc<Catalog>) -> Result<Arc<CallPlan>> {
    let call_of = |plan: Plan| match plan {
        Plan::Call(call) | Plan::Stepped(call) => Some(call),
        Plan::Explain(explain) => match &explain.analyzed {
            Plan::Call(call) => Some(call.clone()),
            _ => None,
        },
        _ => None,
    };
    call_of(statement.plan(catalog)?).ok_or_else(|| Error::internal("this is no CALL"))
}

/// Calls with arguments that are at hand; `None` when the procedure was replaced by one whose
/// arguments are not.
///
/// # Errors
/// Those of the procedure.
pub(super) fn call_directly(
    session: &mut kiln_engine::Session,
    statement: &Statement,
    values: &[Value],
) -> Result<Option<Rows>> {
    let mut must_compute = false;
    let called = session.run_with(
        |catalog, arguments| {
            let plan = plan_in(statement, catalog)?;
            must_compute = plan.computing().is_some();
            if must_compute {
                return Err(plan.replaced());
            }
            *arguments = plan.direct(values);
            Ok(plan.program.clone())
        },
        &mut Arguments::new(),
    );
    match called {
        // In a block the error has failed it.
        Err(_) if must_compute && !session.in_transaction() => Ok(None),
        called => called.map(Some),
    }
}

/// Computes the arguments and calls; both are parts of one transaction.
///
/// # Errors
/// 40001 when the procedure is replaced in between; those of the arguments and of the procedure.
pub(super) fn compute_and_call(
    session: &mut kiln_engine::Session,
    statement: &Statement,
    values: &[Value],
) -> Result<Rows> {
    let planned = plan_in(statement, &session.catalog())?;
    let computing = CallPart::of(statement, &planned, Part::Computing);
    let computed = session.run_statement(&computing, &mut Arguments::from_values(values))?;
    let computed = computed.into_values().pop().unwrap_or_default();
    let called = CallPart::of(statement, &planned, Part::Computed);
    session.run_statement(&called, &mut Arguments::from_values(&computed))
}

/// What of a CALL is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, with arguments that are at hand.
    Direct,
    /// Its arguments.
    Computing,
    /// The procedure, with arguments that were computed.
    Computed,
}

/// A CALL, or a part of one, on its way.
pub(super) struct CallPart {
    statement: Statement,
    /// What its arguments were bound to.
    planned: Arc<CallPlan>,
    part: Part,
}

impl CallPart {
    pub fn of(
        statement: &Statement,
        planned: &Arc<CallPlan>,
        part: Part,
    ) -> Arc<dyn kiln_engine::Statement> {
        Arc::new(CallPart {
            statement: statement.clone(),
            planned: planned.clone(),
            part,
        })
    }
}

impl kiln_engine::Statement for CallPart {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        let plan = plan_in(&self.statement, catalog)?;
        let is_same = match self.part {
            Part::Direct => plan.has_arguments_of(&self.planned),
            Part::Computing | Part::Computed => Arc::ptr_eq(&plan.program, &self.planned.program),
        };
        match (is_same, self.part, plan.computing()) {
            (true, Part::Computing, Some(computing)) => Ok(computing.clone()),
            (true, Part::Direct | Part::Computed, _) => Ok(plan.program.clone()),
            _ => Err(plan.replaced()),
        }
    }

    fn text(&self) -> Option<&str> {
        Some(self.statement.text())
    }
}
