//! Statements that find or change rows, and loops over rows.

use kiln_procedure::ir::{Arithmetic, Block, Class, Comparison, Instruction, Reg, Step, Width};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Query;

use super::super::bound::Shape;
use super::super::coerce::CastContext;
use super::super::query::{OutputColumn, QueryOptions, Sink};
use super::super::{Compiler, Position, Typed, fail, name_of};
use super::assign::{Destined, RowTarget};
use super::body::Body;
use super::control::OpenLoop;
use super::piece::stepped_only;
use super::variables::{failure, refuse, require_not_null, set_boolean};
use super::{at, liveness};
use crate::parse::Statement;
use crate::parse::plpgsql::{Into, Loop, RowSource, Target};

/// What happens to each row of a statement; called once.
pub(super) type BodySink<'s, 'a> =
    &'s mut dyn FnMut(&mut Body, &mut Compiler<'a>, &[OutputColumn]) -> Result<()>;

impl Body {
    /// The register that says whether there was a row: FOUND itself, unless the statement looks at
    /// FOUND while it runs. `None` when no statement asks.
    pub(super) fn seen(
        &mut self,
        c: &mut Compiler<'_>,
        statement: &impl std::fmt::Debug,
        found: bool,
    ) -> Option<Reg> {
        if !found {
            return None;
        }
        Some(match liveness::mentions(statement, "found") {
            true => c.builder.register(DataType::Boolean),
            false => self.found,
        })
    }

    /// Moves what [`Body::seen`] collected to FOUND.
    pub(super) fn set_found(&mut self, c: &mut Compiler<'_>, seen: Option<Reg>) {
        if let Some(source) = seen
            && source != self.found
        {
            c.builder.scalar(Instruction::Move {
                target: self.found,
                source,
            });
        }
    }

    /// Sets ROW_COUNT to zero.
    pub(super) fn clear_count(&mut self, c: &mut Compiler<'_>) {
        if let Some(target) = self.row_count {
            let source = c.builder.constant(DataType::BigInt, Value::BigInt(0));
            c.builder.scalar(Instruction::Move { target, source });
        }
    }

    /// Counts a row.
    pub(super) fn count(&mut self, c: &mut Compiler<'_>) {
        if let Some(target) = self.row_count {
            let right = c.builder.constant(DataType::BigInt, Value::BigInt(1));
            let (op, width) = (Arithmetic::Add, Width::Eight);
            c.builder.scalar(Instruction::Integer {
                op,
                width,
                target,
                left: target,
                right,
            });
        }
    }

    /// `GET DIAGNOSTICS target = ROW_COUNT`.
    pub(super) fn get_row_count(&mut self, c: &mut Compiler<'_>, target: &Target) -> Result<()> {
        let position = at(target.position);
        let Some(register) = self.row_count else {
            return Ok(());
        };
        match self.target(c, target)? {
            Destined::Slot(slot) => {
                let typed = Typed {
                    register,
                    data_type: DataType::BigInt,
                };
                let context = CastContext::Variable;
                c.cast_into(&typed, slot.register, &slot.data_type, context, position)?;
                require_not_null(c, &slot, position);
                Ok(())
            }
            _ => {
                let message = "a target of GET DIAGNOSTICS is a scalar variable";
                Err(refuse(c, fail(SqlState::SYNTAX_ERROR, message, position)))
            }
        }
    }

    /// Compiles INSERT, UPDATE or DELETE.
    pub(super) fn run_data<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        statement: &Statement,
        counter: Option<Reg>,
        sink: Option<BodySink<'_, 'a>>,
    ) -> Result<()> {
        let mut hand_over;
        let sink: Option<Sink<'_, 'a>> = match sink {
            None => None,
            Some(sink) => {
                hand_over = |c: &mut Compiler<'a>, columns: &[OutputColumn]| sink(self, c, columns);
                Some(&mut hand_over)
            }
        };
        match statement {
            Statement::Insert(insert) => c.insert(insert, sink, counter)?,
            Statement::Update(update) => c.update(update, sink, counter)?,
            Statement::Delete(delete) => c.delete(delete, sink, counter)?,
            Statement::Merge(merge) => {
                c.merge(merge, counter)?;
                Vec::new()
            }
            _ => {
                return Err(kiln_storage::error::Error::internal(
                    "a statement on no data",
                ));
            }
        };
        Ok(())
    }

    /// `SELECT … INTO`.
    pub(super) fn select_into<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        query: &Query,
        into: &Into,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let target = self.row_targets(c, &into.targets)?;
        let asked = self.seen(c, query, found);
        let seen = asked.unwrap_or_else(|| c.builder.register(DataType::Boolean));
        let outer = c.loop_depth();
        let mut shape = Shape::new();
        let mut looped = false;
        c.open();
        let result = c.query(query, QueryOptions::default(), &mut |c, columns| {
            looped = c.loop_depth() > outer;
            shape = shape_of(columns);
            if into.strict && looped {
                require_first(c, seen, position);
            }
            self.assign_columns(c, &target, columns, position)?;
            set_boolean(c, seen, true);
            if looped && !into.strict {
                let depth = c.relative(outer);
                c.builder.push(Step::Exit { depth });
            }
            Ok(())
        });
        let steps = c.close();
        result?;
        self.finish_into(c, steps, seen, into, &target, &shape, position)?;
        self.set_found(c, asked);
        Ok(())
    }

    /// Appends the steps of a statement with INTO, and what happens without a row.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a statement with INTO"
    )]
    fn finish_into(
        &mut self,
        c: &mut Compiler<'_>,
        steps: Block,
        seen: Reg,
        into: &Into,
        target: &RowTarget,
        shape: &Shape,
        position: Position,
    ) -> Result<()> {
        c.open();
        if into.strict {
            let message = "query returned no rows";
            let error = fail(SqlState::NO_DATA_FOUND, message, position);
            c.builder.push(Step::Raise {
                error: Box::new(failure(&error)),
            });
        } else {
            self.assign_nulls(c, target, shape, position)?;
            set_boolean(c, seen, false);
        }
        let missing = c.close();
        match with_otherwise(steps, seen, missing) {
            Ok(steps) => append(c, steps),
            Err((steps, mut otherwise)) => {
                set_boolean(c, seen, false);
                append(c, steps);
                if !into.strict {
                    // It is FALSE already.
                    otherwise.pop();
                }
                c.builder.push(Step::If {
                    condition: seen,
                    then: Vec::new(),
                    otherwise,
                });
            }
        }
        if self.row_count.is_some() {
            // One row at most.
            self.clear_count(c);
            c.open();
            self.count(c);
            let then = c.close();
            c.builder.push(Step::If {
                condition: seen,
                then,
                otherwise: Vec::new(),
            });
        }
        Ok(())
    }

    /// INSERT, UPDATE or DELETE.
    pub(super) fn data<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        statement: &Statement,
        into: Option<&Into>,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let Some(into) = into else {
            let counter = match self.row_count {
                Some(counter) => Some(counter),
                None if found => Some(c.builder.register(DataType::BigInt)),
                None => None,
            };
            self.run_data(c, statement, counter, None)?;
            if let Some(left) = counter
                && found
            {
                let (op, class) = (Comparison::Greater, Class::Integer);
                let right = c.builder.constant(DataType::BigInt, Value::BigInt(0));
                let target = self.found;
                c.builder.scalar(Instruction::Compare {
                    op,
                    class,
                    target,
                    left,
                    right,
                });
            }
            return Ok(());
        };
        let target = self.row_targets(c, &into.targets)?;
        // New values are assigned only when the whole statement is done, so that it does not see
        // them; unless it is done with its one row.
        let asked = self.seen(c, statement, found);
        let seen = asked.unwrap_or_else(|| c.builder.register(DataType::Boolean));
        let written = target.registers();
        let outer = c.loop_depth();
        let mut shape = Shape::new();
        let mut kept: Option<Vec<OutputColumn>> = None;
        c.open();
        let result = self.run_data(
            c,
            statement,
            None,
            Some(&mut |body, c, columns| {
                shape = shape_of(columns);
                if c.loop_depth() == outer {
                    body.assign_columns(c, &target, columns, position)?;
                    set_boolean(c, seen, true);
                    return Ok(());
                }
                require_first(c, seen, position);
                // In a loop, what the statement computes for a next row must not see them.
                let mut saved = Vec::with_capacity(columns.len());
                for column in columns {
                    let register = c.builder.register(column.data_type.clone());
                    let source = column.register;
                    c.builder.scalar(Instruction::Move {
                        target: register,
                        source,
                    });
                    saved.push(OutputColumn {
                        register,
                        ..column.clone()
                    });
                }
                kept = Some(saved);
                set_boolean(c, seen, true);
                Ok(())
            }),
        );
        let mut steps = c.close();
        result?;
        debug_assert!(
            !written.contains(&seen),
            "FOUND is no target of its own statement"
        );
        if let Some(saved) = kept {
            // The verifier wants them written on every path.
            let mut before: Block = saved
                .iter()
                .map(|column| {
                    Step::Scalar(Instruction::SetNull {
                        target: column.register,
                    })
                })
                .collect();
            before.append(&mut steps);
            c.open();
            self.assign_columns(c, &target, &saved, position)?;
            let then = c.close();
            before.push(Step::If {
                condition: seen,
                then,
                otherwise: Vec::new(),
            });
            steps = before;
        }
        self.finish_into(c, steps, seen, into, &target, &shape, position)?;
        self.set_found(c, asked);
        Ok(())
    }

    /// `PERFORM`.
    pub(super) fn perform<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        query: &Query,
        found: bool,
    ) -> Result<()> {
        let seen = self.seen(c, query, found);
        if let Some(seen) = seen {
            set_boolean(c, seen, false);
        }
        self.clear_count(c);
        c.query(query, QueryOptions::default(), &mut |c, _| {
            if let Some(seen) = seen {
                set_boolean(c, seen, true);
            }
            self.count(c);
            Ok(())
        })?;
        self.set_found(c, seen);
        Ok(())
    }

    /// `FOR targets IN rows LOOP`.
    pub(super) fn for_rows<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        targets: &[Target],
        rows: &RowSource,
        body: &Loop,
        found: bool,
        position: Position,
    ) -> Result<()> {
        let target = self.row_targets(c, targets)?;
        let label = body.label.as_ref().map(name_of);
        let label = label.as_deref();
        let iterated = c.builder.register(DataType::Boolean);
        set_boolean(c, iterated, false);
        let mut shape = Shape::new();
        let writes = liveness::may_write(&body.body);
        // The rows are those that the variables mean before the first iteration.
        let depends = self.is_changed_by(rows, targets, body);
        self.region(c, &body.body, |this, c| match rows {
            RowSource::Query(query) => {
                let options = QueryOptions {
                    materialise: writes || depends,
                };
                c.for_query(query, label, options, &mut |c, columns| {
                    shape = shape_of(columns);
                    this.iteration(c, &target, columns, iterated, label, body, position)
                })?;
                Ok(())
            }
            RowSource::Data(statement)
                if !writes && !depends && !liveness::may_leave(&body.body) =>
            {
                this.run_data(
                    c,
                    statement,
                    None,
                    Some(&mut |this, c, columns| {
                        shape = shape_of(columns);
                        this.iteration(c, &target, columns, iterated, label, body, position)
                    }),
                )
            }
            RowSource::Data(statement) => {
                this.for_collected(c, statement, &mut shape, |this, c, columns| {
                    let handle = c.open_loop(label);
                    let result =
                        this.iteration(c, &target, columns, iterated, label, body, position);
                    let steps = c.close_loop(handle);
                    result.map(|()| steps)
                })
            }
            RowSource::Execute(_) => Err(refuse(c, stepped_only(position))),
        })?;
        // Without a row the targets become NULL.
        c.open();
        self.assign_nulls(c, &target, &shape, position)?;
        let otherwise = c.close();
        c.builder.push(Step::If {
            condition: iterated,
            then: Vec::new(),
            otherwise,
        });
        self.set_found(c, found.then_some(iterated));
        Ok(())
    }

    /// Whether a loop over rows assigns to a variable that finds the rows.
    fn is_changed_by(&self, rows: &RowSource, targets: &[Target], body: &Loop) -> bool {
        let is_target = |name: &str| {
            let mut parts = targets.iter().flat_map(|target| &target.path);
            parts.any(|part| name_of(part) == name)
        };
        liveness::mentions(rows, "found")
            || self.names().any(|name| {
                (is_target(name) || liveness::assigns(&body.body, name))
                    && liveness::mentions(rows, name)
            })
    }

    /// Runs a statement to its end, and then `body` for each of the rows that it returned.
    fn for_collected<'a>(
        &mut self,
        c: &mut Compiler<'a>,
        statement: &Statement,
        shape: &mut Shape,
        body: impl FnOnce(&mut Self, &mut Compiler<'a>, &[OutputColumn]) -> Result<Block>,
    ) -> Result<()> {
        let mut collected = None;
        c.open();
        let result = self.run_data(
            c,
            statement,
            None,
            Some(&mut |_, c, columns| {
                let buffer = c.builder.buffer(columns.len());
                let row = columns.iter().map(|column| column.register).collect();
                c.builder.push(Step::BufferPush { buffer, row });
                collected = Some((buffer, columns.to_vec()));
                Ok(())
            }),
        );
        let steps = c.close();
        result?;
        let Some((buffer, mut columns)) = collected else {
            return Ok(());
        };
        *shape = shape_of(&columns);
        c.builder.push(Step::BufferClear { buffer });
        append(c, steps);
        for column in &mut columns {
            column.register = c.builder.register(column.data_type.clone());
        }
        let row = columns.iter().map(|column| column.register).collect();
        let body = body(self, c, &columns)?;
        c.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row,
            body,
        });
        Ok(())
    }

    /// One iteration of a loop over rows.
    #[expect(clippy::too_many_arguments, reason = "the parts of a loop over rows")]
    fn iteration(
        &mut self,
        c: &mut Compiler<'_>,
        target: &RowTarget,
        columns: &[OutputColumn],
        iterated: Reg,
        label: Option<&str>,
        body: &Loop,
        position: Position,
    ) -> Result<()> {
        set_boolean(c, iterated, true);
        self.assign_columns(c, target, columns, position)?;
        self.loops.push(OpenLoop {
            label: label.map(str::to_owned),
            is_for: true,
        });
        let found = liveness::found_is_read_in(&body.body, false);
        let result = self.statements(c, &body.body, found);
        self.loops.pop();
        result
    }
}

/// Raises P0003 when there was a row already.
fn require_first(c: &mut Compiler<'_>, seen: Reg, position: Position) {
    let error = fail(
        SqlState::TOO_MANY_ROWS,
        "query returned more than one row",
        position,
    )
    .with_hint("Make sure the query returns a single row, or use LIMIT 1.");
    let first = c.builder.register(DataType::Boolean);
    c.builder.scalar(Instruction::Not {
        target: first,
        source: seen,
    });
    let error = Box::new(failure(&error));
    c.builder.scalar(Instruction::Require {
        condition: first,
        null_fails: true,
        error,
    });
}

fn shape_of(columns: &[OutputColumn]) -> Shape {
    columns
        .iter()
        .map(|column| (column.name.clone(), column.data_type.clone()))
        .collect()
}

pub(super) fn append(c: &mut Compiler<'_>, steps: Block) {
    for step in steps {
        c.builder.push(step);
    }
}

/// Where the steps end with a conditional whose one branch ends with setting `seen`, as those of a
/// look-up by a unique key do: gives that conditional the other branch. Otherwise both come back.
fn with_otherwise(
    mut steps: Block,
    seen: Reg,
    missing: Block,
) -> std::result::Result<Block, (Block, Block)> {
    let fits = match steps.last() {
        Some(Step::If {
            then, otherwise, ..
        }) => {
            otherwise.is_empty()
                && matches!(
                    then.last(),
                    Some(Step::Scalar(Instruction::Move { target, .. })) if *target == seen
                )
        }
        _ => false,
    };
    if fits && let Some(Step::If { otherwise, .. }) = steps.last_mut() {
        *otherwise = missing;
        return Ok(steps);
    }
    Err((steps, missing))
}
