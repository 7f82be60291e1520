//! Values that become values of a domain.
//!
//! An expression of a domain has the type that the domain is over. Where its value becomes one of
//! the domain, which is where it is assigned to a column, a variable, a parameter or a result, and
//! where it is cast, the checks of the domain stand behind its computation, with VALUE in the
//! register of the value. To analyses they are expressions like those of a table's CHECK.

use kiln_engine::{Domain, SearchPath};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Instruction, Reg};
use kiln_storage::error::{Error, Result, SqlState, Subject};
use kiln_storage::schema::Column;
use kiln_storage::types::DataType;
use sqlparser::ast::{ArrayElemTypeDef, DataType as Written, Expr};

use super::bound::{Bound, Kind};
use super::coerce::{CastContext, coerce};
use super::expression::stored_expression;
use super::quoting::quote_identifier;
use super::scope::Variable;
use super::types::{data_type, domain_named};
use super::{CatalogView, Compiler, Position, relation_name, unsupported};

/// A type as it was declared.
#[derive(Clone, Debug)]
pub struct DeclaredType {
    /// The type that its values have.
    pub data_type: DataType,
    /// The domain of which they are.
    pub domain: Option<Arc<Domain>>,
}

/// The type or domain that `written` names.
///
/// # Errors
/// As [`data_type`].
pub fn declared_type(
    written: &Written,
    catalog: &dyn CatalogView,
    position: Position,
) -> Result<DeclaredType> {
    Ok(match domain_named(written, catalog) {
        Some(domain) => DeclaredType {
            data_type: domain.base.clone(),
            domain: Some(domain),
        },
        None => DeclaredType {
            data_type: data_type(written, catalog, position)?,
            domain: None,
        },
    })
}

/// The type or domain of a column.
///
/// # Errors
/// As [`data_type`]; 0A000 for the type of a table's rows.
pub(crate) fn column_type(
    written: &Written,
    catalog: &dyn CatalogView,
    position: Position,
) -> Result<DeclaredType> {
    declared_type(written, catalog, position).map_err(|error| {
        let named = match written {
            Written::Custom(name, _) => relation_name(catalog, name).ok(),
            _ => None,
        };
        let is_of_rows = named.is_some_and(|name| catalog.row_type(&name).is_some());
        match error.state() == SqlState::UNDEFINED_OBJECT && is_of_rows {
            true => unsupported(format!("a column of type {written}"), position),
            false => error,
        }
    })
}

/// The type or domain that `written` names, or the type of a table's rows.
///
/// # Errors
/// As [`data_type`]; 0A000 for the rows of a table in a view, which does not depend on it.
pub(super) fn type_of_value(
    written: &Written,
    compiler: &Compiler<'_>,
    position: Position,
) -> Result<DeclaredType> {
    let error = match declared_type(written, compiler.catalog, position) {
        Err(error) if error.state() == SqlState::UNDEFINED_OBJECT => error,
        known => return known,
    };
    let (element, is_array) = match written {
        Written::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::Qualified(element, _),
        ) => (&**element, true),
        other => (other, false),
    };
    let Written::Custom(name, modifiers) = element else {
        return Err(error);
    };
    let named = relation_name(compiler.catalog, name).ok();
    let named = named.filter(|_| modifiers.is_empty());
    let Some(of) = named.and_then(|name| compiler.catalog.row_type(&name)) else {
        return Err(error);
    };
    if compiler.recorded.is_some() {
        return Err(unsupported(
            "the type of a table's rows in a view",
            position,
        ));
    }
    let data_type = DataType::Row(of);
    let domain = None;
    Ok(match is_array {
        true => DeclaredType {
            data_type: DataType::array(data_type),
            domain,
        },
        false => DeclaredType { data_type, domain },
    })
}

/// The domain of a column, if it was declared with one.
///
/// # Errors
/// XX000 for a column of a domain that the catalog does not have.
pub fn domain_of(column: &Column, catalog: &dyn CatalogView) -> Result<Option<Arc<Domain>>> {
    let Some(name) = &column.domain else {
        return Ok(None);
    };
    let found = catalog.domain(name);
    found.map(Some).ok_or_else(|| {
        let message = format!("type \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// A value as one of a domain, whose type it has.
pub(super) fn of_domain(bound: Bound, domain: &Arc<Domain>) -> Bound {
    if let Kind::OfDomain(_, known) = &bound.kind
        && Arc::ptr_eq(known, domain)
    {
        return bound;
    }
    let (data_type, position) = (bound.data_type.clone(), bound.position);
    let kind = Kind::OfDomain(Box::new(bound), domain.clone());
    Bound::new(kind, data_type, position)
}

/// Converts a value to a declared type.
///
/// # Errors
/// As [`coerce`].
pub(super) fn coerce_to(
    bound: Bound,
    target: &DeclaredType,
    context: CastContext,
) -> Result<Bound> {
    let converted = coerce(bound, &target.data_type, context)?;
    Ok(match &target.domain {
        Some(domain) => of_domain(converted, domain),
        None => converted,
    })
}

impl Compiler<'_> {
    /// A value of a column's type as one of the column's domain.
    pub(super) fn of_column(&self, bound: Bound, column: &Column) -> Result<Bound> {
        Ok(match domain_of(column, self.catalog)? {
            Some(domain) => of_domain(bound, &domain),
            None => bound,
        })
    }

    /// The name of the domain that an expression is of, as far as that is known: of a column, a
    /// variable or a cast.
    pub(super) fn domain_shown(&self, bound: &Bound) -> Option<String> {
        match &bound.kind {
            Kind::OfDomain(_, domain) => Some(domain.name.clone()),
            Kind::Shared(_, inner) => self.domain_shown(inner),
            Kind::Register(register) => {
                let domain = self.domains.get(register)?;
                Some(domain.name.clone())
            }
            Kind::Column { source, column } => {
                let table = self.source(*source).table.as_ref()?;
                let column = table.schema().columns.get(usize::from(*column))?;
                column.domain.clone()
            }
            _ => None,
        }
    }

    /// What is assigned to a register is of a domain from here on.
    pub(super) fn keep_in_domain(&mut self, register: Reg, domain: Option<&Arc<Domain>>) {
        if let Some(domain) = domain {
            self.domains.insert(register, domain.clone());
        }
    }

    /// The domain of which the values of a register are.
    pub(super) fn domain_of_register(&self, register: Reg) -> Option<&Arc<Domain>> {
        self.domains.get(&register)
    }

    /// A value that is assigned to a register.
    pub(super) fn assigned(&self, bound: Bound, target: Reg) -> Bound {
        match self.domains.get(&target) {
            Some(domain) => of_domain(bound, domain),
            None => bound,
        }
    }

    /// Checks the value that a register has, if it has to be of a domain.
    ///
    /// # Errors
    /// Those of the domain's checks.
    pub(super) fn check_register(&mut self, register: Reg) -> Result<()> {
        match self.domains.get(&register).cloned() {
            Some(domain) => self.check_domain(register, &domain),
            None => Ok(()),
        }
    }

    /// Checks that the value of a register, which is of the type that a domain is over, is one of
    /// the domain.
    ///
    /// # Errors
    /// Those of the checks.
    pub(super) fn check_domain(&mut self, value: Reg, domain: &Arc<Domain>) -> Result<()> {
        // The domains that it is over come first, and NULL is refused before all.
        let mut chain = vec![domain.clone()];
        while let Some(over) = chain.last().and_then(|last| last.over.clone()) {
            let next = self.catalog.domain(&over);
            chain.push(next.ok_or_else(|| Error::internal("a domain is over one that is gone"))?);
        }
        chain.reverse();
        let printed = quote_identifier(&domain.name);
        if chain.iter().any(|domain| domain.not_null) {
            let message = format!("domain {printed} does not allow null values");
            let error = Box::new(failure(
                SqlState::NOT_NULL_VIOLATION,
                message,
                subject(domain),
            ));
            self.builder.scalar(Instruction::RequireNotNull {
                source: value,
                error,
            });
        }
        for of in &chain {
            // As PostgreSQL, in the order of their names.
            let mut checks: Vec<_> = of.checks.iter().collect();
            checks.sort_by(|one, other| one.name.cmp(&other.name));
            for check in checks {
                let expr = stored_expression(&check.expression)?;
                let bound = self.bind_over_value(&expr, value, &domain.base)?;
                let condition = self.emit(&bound)?;
                let message = format!(
                    "value for domain {printed} violates check constraint \"{}\"",
                    check.name
                );
                let subject = subject(domain).with_constraint(&check.name);
                // NULL passes a CHECK.
                self.builder.scalar(Instruction::Require {
                    condition,
                    null_fails: false,
                    error: Box::new(failure(SqlState::CHECK_VIOLATION, message, subject)),
                });
            }
        }
        Ok(())
    }

    /// Binds a condition over VALUE, which is in a register. It can name nothing else.
    fn bind_over_value(&mut self, expr: &Expr, value: Reg, data_type: &DataType) -> Result<Bound> {
        self.along(&SearchPath::default(), |compiler| {
            compiler.isolated(|compiler| {
                let variable = Variable::Scalar {
                    register: value,
                    data_type: data_type.clone(),
                    constant: true,
                    not_null: false,
                };
                compiler.declare("value", variable, None)?;
                compiler.bind_condition(expr, "CHECK")
            })
        })
    }
}

/// Checks the condition of a domain over `base`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_condition(
    expr: &Expr,
    base: &DataType,
    catalog: &dyn CatalogView,
) -> Result<()> {
    let mut compiler = super::scratch(catalog);
    let value = compiler.builder.register(base.clone());
    compiler.bind_over_value(expr, value, base).map(drop)
}

fn subject(domain: &Domain) -> Subject {
    Subject {
        schema: Some("public".to_owned()),
        data_type: Some(domain.name.clone()),
        ..Subject::default()
    }
}

fn failure(state: SqlState, message: String, subject: Subject) -> Failure {
    Failure {
        state,
        message,
        arguments: Box::default(),
        detail: None,
        hint: None,
        subject: Some(Box::new(subject)),
        position: None,
    }
}
