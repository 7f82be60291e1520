//! Parameters of statements, `$1`, `$2`, …, and how their types are inferred.
//!
//! As in PostgreSQL (`parse_param.c`), a parameter whose type the client did not declare is open
//! until the first context that wants a type gives it one; every later reference has that type
//! from the start. A reference that was still open when another one decided the type must agree
//! with it: else the types are inconsistent (42P08).

use std::cell::RefCell;
use std::rc::Rc;

use kiln_procedure::ProgramBuilder;
use kiln_procedure::ir::Reg;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;

use super::super::types::same_base;
use super::super::{Position, Typed, fail};
use super::{Bound, Kind};

/// More parameters than this need more registers than a program has.
pub const PARAMETERS_MAX: usize = 32_767;

/// One parameter.
#[derive(Clone, Debug)]
struct Parameter {
    register: Reg,
    /// `None` while no context has decided.
    data_type: Option<DataType>,
    /// A reference that no context gives a type, as in `$1 IS NULL`.
    undecided: Option<Position>,
}

/// The parameters of a statement or routine. Clones are handles of one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    list: Rc<RefCell<List>>,
}

#[derive(Debug, Default)]
struct List {
    parameters: Vec<Parameter>,
    /// Positions of those whose type was decided, and the program's builder was not told.
    untold: Vec<usize>,
}

impl FromIterator<Parameter> for Parameters {
    fn from_iter<I: IntoIterator<Item = Parameter>>(parameters: I) -> Parameters {
        let list = List {
            parameters: parameters.into_iter().collect(),
            untold: Vec::new(),
        };
        Parameters {
            list: Rc::new(RefCell::new(list)),
        }
    }
}

/// A reference to a parameter whose type was open when it was bound.
#[derive(Clone, Debug)]
pub(crate) struct OpenParameter {
    number: usize,
    parameters: Parameters,
}

impl Parameters {
    /// Parameters of known types.
    pub fn known(parameters: Vec<Typed>) -> Parameters {
        let parameters = parameters.into_iter().map(|typed| Parameter {
            register: typed.register,
            data_type: Some(typed.data_type),
            undecided: None,
        });
        parameters.collect()
    }

    /// The parameters of the program that `builder` makes; the types that `declared` lacks are
    /// inferred.
    pub fn of_program(builder: &ProgramBuilder, declared: &[Option<DataType>]) -> Parameters {
        let declared = declared.iter().enumerate();
        let parameters = declared.map(|(position, data_type)| Parameter {
            register: builder.parameter(position),
            data_type: data_type.clone(),
            undecided: None,
        });
        parameters.collect()
    }

    /// What `$number` means; `None` when there is no such parameter.
    pub fn reference(&self, number: usize, position: Position) -> Option<Bound> {
        let list = self.list.borrow();
        let parameter = list.parameters.get(number.checked_sub(1)?)?;
        Some(match &parameter.data_type {
            Some(data_type) => Bound::register(parameter.register, data_type.clone(), position),
            None => {
                let open = OpenParameter {
                    number,
                    parameters: self.clone(),
                };
                Bound::new(Kind::Parameter(open), DataType::Text, position)
            }
        })
    }

    /// Gives the program's registers the types that were decided meanwhile: the emitter of
    /// instructions asks the builder for them.
    pub fn tell(&self, builder: &mut ProgramBuilder) {
        let list = &mut *self.list.borrow_mut();
        for position in list.untold.drain(..) {
            if let Some(data_type) = &list.parameters[position].data_type {
                builder.set_parameter_type(position, data_type.clone());
            }
        }
    }

    /// The types of all parameters, when the whole statement is bound.
    ///
    /// # Errors
    /// 42P18 for a parameter without a type, 42P08 for a reference that stayed open although
    /// another one has a type.
    pub fn types(&self) -> Result<Vec<DataType>> {
        let list = self.list.borrow();
        let types = list
            .parameters
            .iter()
            .enumerate()
            .map(|(index, parameter)| {
                let message =
                    || format!("could not determine data type of parameter ${}", index + 1);
                match (&parameter.data_type, parameter.undecided) {
                    (Some(data_type), None) => Ok(data_type.clone()),
                    (Some(_), Some(position)) => {
                        Err(fail(SqlState::AMBIGUOUS_PARAMETER, message(), position))
                    }
                    (None, _) => Err(Error::new(SqlState::INDETERMINATE_DATATYPE, message())),
                }
            });
        types.collect()
    }
}

impl OpenParameter {
    /// The parameter as a value of `data_type`, which it gets unless it has it.
    ///
    /// # Errors
    /// 42P08 when another reference has got another type meanwhile.
    pub fn decide(&self, data_type: &DataType, position: Position) -> Result<Bound> {
        let list = &mut *self.parameters.list.borrow_mut();
        let parameter = &mut list.parameters[self.number - 1];
        match &parameter.data_type {
            None => {
                parameter.data_type = Some(data_type.clone());
                list.untold.push(self.number - 1);
            }
            Some(known) if same_base(known, data_type) => {}
            Some(known) => {
                let message = format!("inconsistent types deduced for parameter ${}", self.number);
                let detail = format!("{} versus {}", known.base_name(), data_type.base_name());
                let error = fail(SqlState::AMBIGUOUS_PARAMETER, message, position);
                return Err(error.with_detail(detail));
            }
        }
        Ok(Bound::register(
            parameter.register,
            data_type.clone(),
            position,
        ))
    }

    /// Notes that nothing decides the type of this reference.
    pub fn leave_undecided(&self, position: Position) {
        let mut list = self.parameters.list.borrow_mut();
        list.parameters[self.number - 1].undecided = Some(position);
    }
}

impl PartialEq for OpenParameter {
    fn eq(&self, other: &OpenParameter) -> bool {
        self.number == other.number
    }
}

/// How many parameters a statement's text has: the highest number it names.
///
/// # Errors
/// 54000 when there are too many.
pub fn count(text: &str) -> Result<usize> {
    let count = crate::parse::highest_placeholder(text);
    if count > PARAMETERS_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a statement takes at most {PARAMETERS_MAX} parameters"),
        ));
    }
    Ok(count)
}
