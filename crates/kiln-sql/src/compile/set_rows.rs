//! The rows of UNION, INTERSECT and EXCEPT.
//!
//! A UNION collects the rows of both queries. The others sort the rows of both together, so that
//! equal rows are a *run*, in which those of the second query come first and are counted. The count
//! says of each row of the first query whether it stays:
//!
//! | | stays |
//! |---|---|
//! | INTERSECT | the first one, if something was counted |
//! | INTERSECT ALL | as many as were counted |
//! | EXCEPT | the first one, if nothing was counted |
//! | EXCEPT ALL | those behind as many as were counted |

use kiln_procedure::ir::{
    Arithmetic, BufferId, Class, Comparison, Instruction, Reg, SortKey, Step, Width,
};
use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Value};

use super::Compiler;
use super::bound::{BoundQuery, SetOperation};
use super::order::{Needs, class_in};
use super::query::QueryOptions;

/// How a row of the first query is treated.
#[derive(Clone, Copy)]
struct Treatment {
    operation: SetOperation,
    all: bool,
    /// The rows of the second query in the present run for which none of the first was found so
    /// far.
    count: Reg,
    /// Whether a row of the run stays already.
    stays: Reg,
}

impl Compiler<'_> {
    /// Collects the rows of a set operation in a buffer.
    pub(super) fn emit_set(
        &mut self,
        operation: SetOperation,
        left: &BoundQuery,
        right: &BoundQuery,
        all: bool,
    ) -> Result<BufferId> {
        if operation == SetOperation::Union && all {
            return self.emit_union(left, right, None);
        }
        let types = left.columns.iter().map(|column| &column.data_type);
        let class = |data_type| class_in(operation.name(), Needs::Equality, data_type, None);
        let classes: Vec<Class> = types.map(class).collect::<Result<_>>()?;
        match operation {
            SetOperation::Union => self.emit_union(left, right, Some(&classes)),
            _ => self.emit_sorted_set((operation, all), left, right, &classes),
        }
    }

    fn emit_union(
        &mut self,
        left: &BoundQuery,
        right: &BoundQuery,
        classes: Option<&[Class]>,
    ) -> Result<BufferId> {
        let buffer = self.builder.buffer(left.columns.len());
        self.builder.push(Step::BufferClear { buffer });
        for part in [left, right] {
            self.emit_query(part, QueryOptions::default(), &mut |compiler, row| {
                compiler.push_found(buffer, row, classes);
                Ok(())
            })?;
        }
        Ok(buffer)
    }

    fn emit_sorted_set(
        &mut self,
        (operation, all): (SetOperation, bool),
        left: &BoundQuery,
        right: &BoundQuery,
        classes: &[Class],
    ) -> Result<BufferId> {
        let width = classes.len();
        let both = self.builder.buffer(width + 1);
        let kept = self.builder.buffer(width);
        for buffer in [both, kept] {
            self.builder.push(Step::BufferClear { buffer });
        }
        for (is_first, part) in [(false, right), (true, left)] {
            self.emit_query(part, QueryOptions::default(), &mut |compiler, row| {
                let is_first = Value::Boolean(is_first);
                let is_first = compiler.builder.constant(DataType::Boolean, is_first);
                let row = row.iter().copied().chain([is_first]).collect();
                compiler
                    .builder
                    .push(Step::BufferPush { buffer: both, row });
                Ok(())
            })?;
        }
        let columns = classes.iter().copied().chain([Class::Integer]);
        let key = |(column, class)| SortKey {
            column: column as u16,
            class,
            descending: false,
            nulls_first: false,
        };
        self.sort(both, columns.enumerate().map(key).collect());

        let types = left.columns.iter().map(|column| column.data_type.clone());
        let types: Vec<DataType> = types.chain([DataType::Boolean]).collect();
        let row = self.registers(&types);
        let run = self.registers(&types[..width]);
        for &target in &run {
            self.builder.scalar(Instruction::SetNull { target });
        }
        let [started, stays] = [(); 2].map(|()| self.builder.register(DataType::Boolean));
        for flag in [started, stays] {
            self.set_truth(flag, false);
        }
        let treatment = Treatment {
            operation,
            all,
            count: self.zero(),
            stays,
        };
        self.open_ir_loop();
        self.start_set_run(treatment, (&run, started), &row[..width], classes);
        self.treat_set_row(treatment, &row[..width], row[width], kept);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: both,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        Ok(kept)
    }

    fn registers(&mut self, types: &[DataType]) -> Vec<Reg> {
        let types = types.iter();
        types
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect()
    }

    /// Begins another run where a row is unlike the present one's.
    fn start_set_run(
        &mut self,
        treatment: Treatment,
        (run, started): (&[Reg], Reg),
        row: &[Reg],
        classes: &[Class],
    ) {
        let differs = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Not {
            target: differs,
            source: started,
        });
        for ((left, right), class) in run.iter().zip(row).zip(classes) {
            self.open();
            self.builder.scalar(Instruction::Compare {
                op: Comparison::Distinct,
                class: *class,
                target: differs,
                left: *left,
                right: *right,
            });
            self.close_unless(differs);
        }
        self.open();
        for (target, source) in run.iter().zip(row) {
            let (target, source) = (*target, *source);
            self.builder.scalar(Instruction::Move { target, source });
        }
        let source = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        let target = treatment.count;
        self.builder.scalar(Instruction::Move { target, source });
        self.set_truth(treatment.stays, false);
        self.set_truth(started, true);
        self.close_if(differs);
    }

    /// Counts a row of the second query, and keeps one of the first that stays.
    fn treat_set_row(&mut self, treatment: Treatment, row: &[Reg], is_first: Reg, kept: BufferId) {
        let Treatment {
            operation,
            all,
            count,
            stays,
        } = treatment;
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        let change = |compiler: &mut Self, op| {
            compiler.builder.scalar(Instruction::Integer {
                op,
                width: Width::Eight,
                target: count,
                left: count,
                right: one,
            });
        };
        self.open();
        change(self, Arithmetic::Add);
        self.close_unless(is_first);

        self.open();
        let counted = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Compare {
            op: Comparison::Greater,
            class: Class::Integer,
            target: counted,
            left: count,
            right: zero,
        });
        let push = |compiler: &mut Self| {
            let row = row.into();
            compiler
                .builder
                .push(Step::BufferPush { buffer: kept, row });
        };
        self.open();
        match (operation, all) {
            (SetOperation::Intersect, true) => {
                push(self);
                change(self, Arithmetic::Subtract);
            }
            (SetOperation::Except, true) => change(self, Arithmetic::Subtract),
            (SetOperation::Intersect, false) => self.keep_first(stays, push),
            _ => {}
        }
        self.close_if(counted);
        if operation == SetOperation::Except {
            self.open();
            match all {
                true => push(self),
                false => self.keep_first(stays, push),
            }
            self.close_unless(counted);
        }
        self.close_if(is_first);
    }

    /// Keeps a row unless one of its run stays already.
    fn keep_first(&mut self, stays: Reg, push: impl FnOnce(&mut Self)) {
        self.open();
        push(self);
        self.set_truth(stays, true);
        self.close_unless(stays);
    }
}
