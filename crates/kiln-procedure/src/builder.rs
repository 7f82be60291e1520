//! Building programs: what a front end appends is checked, optimised, analysed and lowered.

use kiln_platform::sync::Arc;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::slot::Packing;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use crate::analysis::Analysis;
use crate::ir::*;
use crate::names::{for_each_step, step_blocks_mut};
use crate::packed;
use crate::procedure::{DeferredKeys, Parameter, Procedure, ResultShape};
use crate::program::Program;

/// A source position: line and column, from 1.
pub type Position = Option<(u32, u32)>;

/// Builds a [`Program`] step by step.
///
/// Steps go to the innermost open block; [`ProgramBuilder::open`] and [`ProgramBuilder::close`]
/// bracket the blocks of conditionals and loops:
///
/// ```text
/// builder.open();
/// … // steps of the body
/// let body = builder.close();
/// builder.push(Step::Loop { before: vec![], condition: None, body });
/// ```
pub struct ProgramBuilder {
    name: String,
    parameters: Vec<Parameter>,
    result: ResultShape,
    registers: Vec<DataType>,
    records: usize,
    buffers: Vec<usize>,
    regions: usize,
    deferred: Vec<DeferredKeys>,
    constants: Vec<Constant>,
    tables: Vec<Arc<Table>>,
    operations: Vec<Operation>,
    blocks: Vec<Block>,
}

impl ProgramBuilder {
    /// Starts a procedure called `name` with these parameters (name, type); the registers 0, 1, …
    /// are theirs.
    pub fn new(name: &str, parameters: impl IntoIterator<Item = (String, DataType)>) -> Self {
        let mut builder = ProgramBuilder {
            name: name.to_owned(),
            parameters: Vec::new(),
            result: ResultShape::default(),
            registers: Vec::new(),
            records: 0,
            buffers: Vec::new(),
            regions: 0,
            deferred: Vec::new(),
            constants: Vec::new(),
            tables: Vec::new(),
            operations: Vec::new(),
            blocks: vec![Vec::new()],
        };
        for (name, data_type) in parameters {
            let register = builder.register(data_type.clone());
            builder.parameters.push(Parameter {
                name,
                data_type,
                register,
            });
        }
        builder
    }

    /// Starts a procedure with parameters without names, some of whose types are not known yet: see
    /// [`ProgramBuilder::set_parameter_type`].
    pub fn of_parameters(name: &str, types: &[Option<DataType>]) -> Self {
        let parameters = types.iter().map(|data_type| {
            let data_type = data_type.clone().unwrap_or(DataType::Text);
            (String::new(), data_type)
        });
        ProgramBuilder::new(name, parameters)
    }

    /// The register of the parameter at `position`.
    pub fn parameter(&self, position: usize) -> Reg {
        self.parameters[position].register
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters.len()
    }

    /// Changes the type of the parameter at `position`, which was a guess until now.
    pub fn set_parameter_type(&mut self, position: usize, data_type: DataType) {
        let parameter = &mut self.parameters[position];
        self.registers[parameter.register.0 as usize] = data_type.clone();
        parameter.data_type = data_type;
    }

    /// A new register.
    ///
    /// # Panics
    /// Past 65,535 registers; front ends refuse such procedures by
    /// [`ProgramBuilder::is_too_large`].
    pub fn register(&mut self, data_type: DataType) -> Reg {
        let number = u16::try_from(self.registers.len()).expect("at most 65,535 registers");
        self.registers.push(data_type);
        Reg(number)
    }

    /// Whether the procedure nears the limits of the IR and must be refused.
    pub fn is_too_large(&self) -> bool {
        let noted = match self.regions {
            0 => 0,
            _ => crate::optimise::noted_values(&self.blocks, &self.tables),
        };
        let registers = self.registers.len() + noted;
        let operations = self.operations.len() + noted;
        let counts = [registers, operations, self.records, self.regions];
        counts.into_iter().any(|count| count > 60_000)
    }

    /// A register's type.
    pub fn type_of(&self, register: Reg) -> &DataType {
        &self.registers[register.0 as usize]
    }

    /// A new record register.
    pub fn record(&mut self) -> RecordReg {
        self.records += 1;
        RecordReg((self.records - 1) as u16)
    }

    /// A new row buffer with rows of `width` columns. In a buffer, a row without columns is one
    /// constant: [`ProgramBuilder::push`] sees to that.
    pub fn buffer(&mut self, width: usize) -> BufferId {
        self.buffers.push(width.max(1));
        BufferId((self.buffers.len() - 1) as u16)
    }

    /// A new protected region, of one [`Step::Protect`].
    pub fn region(&mut self) -> RegionId {
        self.regions += 1;
        RegionId((self.regions - 1) as u16)
    }

    /// The register that holds `value`, which is of `data_type`; equal constants share one.
    pub fn constant(&mut self, data_type: DataType, value: Value) -> Reg {
        let known = self.constants.iter().find(|constant| {
            is_same(&constant.value, &value)
                && self.registers[constant.register.0 as usize] == data_type
        });
        if let Some(constant) = known {
            return constant.register;
        }
        let register = self.register(data_type);
        self.constants.push(Constant { register, value });
        register
    }

    /// The value of `register` if it is a constant.
    pub fn constant_value(&self, register: Reg) -> Option<&Value> {
        let constant = self
            .constants
            .iter()
            .find(|constant| constant.register == register)?;
        Some(&constant.value)
    }

    /// The reference to `table`, adding it to the program's tables.
    pub fn table(&mut self, table: &Arc<Table>) -> TableRef {
        let id = table.id();
        let known = self.tables.iter().position(|known| known.id() == id);
        let position = known.unwrap_or_else(|| {
            self.tables.push(table.clone());
            self.tables.len() - 1
        });
        TableRef(position as u16)
    }

    /// The table behind a reference.
    pub fn table_of(&self, table: TableRef) -> &Arc<Table> {
        &self.tables[table.0 as usize]
    }

    fn operation(&mut self, kind: OperationKind, table: TableRef, position: Position) -> OpId {
        let table: TableId = self.table_of(table).id();
        self.operations.push(Operation {
            kind,
            table,
            position,
        });
        OpId((self.operations.len() - 1) as u16)
    }

    /// Appends a step to the innermost open block.
    pub fn push(&mut self, mut step: Step) {
        match &mut step {
            Step::BufferPush { row, .. } if row.is_empty() => {
                *row = [self.constant(DataType::Boolean, Value::Boolean(true))].into();
            }
            Step::BufferPushDistinct { row, classes, .. } if row.is_empty() => {
                *row = [self.constant(DataType::Boolean, Value::Boolean(true))].into();
                *classes = [Class::Integer].into();
            }
            Step::ForBuffer { row, .. } if row.is_empty() => {
                *row = [self.register(DataType::Boolean)].into();
            }
            _ => {}
        }
        self.blocks.last_mut().expect("a block is open").push(step);
    }

    /// Appends a computation.
    pub fn scalar(&mut self, instruction: Instruction) {
        self.push(Step::Scalar(instruction));
    }

    /// Puts a computation before everything else that the program does.
    pub fn prologue(&mut self, instruction: Instruction) {
        self.blocks[0].insert(0, Step::Scalar(instruction));
    }

    /// The program leaves keys in a buffer whose check may wait until the transaction ends. It is
    /// empty when the program begins.
    pub fn defer(&mut self, keys: DeferredKeys) {
        let buffer = keys.buffer;
        self.blocks[0].insert(0, Step::BufferClear { buffer });
        self.deferred.push(keys);
    }

    /// Steps appended from now on run also after the steps before them have returned.
    ///
    /// # Panics
    /// When a block is open.
    pub fn go_on_after_return(&mut self) {
        assert_eq!(self.blocks.len(), 1, "every opened block is closed");
        let mut returns = false;
        for_each_step(&self.blocks[0], &mut |step| {
            returns |= matches!(step, Step::Return);
        });
        if !returns {
            return;
        }
        let mut body = std::mem::take(&mut self.blocks[0]);
        leave_instead(&mut body, 0);
        body.push(Step::Exit { depth: 0 });
        self.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
    }

    /// Opens a block.
    pub fn open(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Closes the innermost block and returns its steps.
    ///
    /// # Panics
    /// When only the program's own block is open.
    pub fn close(&mut self) -> Block {
        assert!(self.blocks.len() > 1, "close without open");
        self.blocks.pop().expect("just checked")
    }

    /// Appends a look-up; returns the handle's register and the register that says whether it was
    /// found.
    pub fn lookup(
        &mut self,
        table: TableRef,
        index: u16,
        key: &[Reg],
        position: Position,
    ) -> (RecordReg, Reg) {
        let op = self.operation(OperationKind::Lookup, table, position);
        let (record, found) = (self.record(), self.register(DataType::Boolean));
        let (key, intent) = (key.into(), Intent::Read);
        self.push(Step::Lookup {
            op,
            table,
            index,
            key,
            record,
            found,
            intent,
        });
        (record, found)
    }

    /// Wraps `body` (closed with [`ProgramBuilder::close`]) into a scan whose handle is `record`.
    #[expect(clippy::too_many_arguments, reason = "the fields of the step")]
    pub fn scan(
        &mut self,
        table: TableRef,
        index: u16,
        range: Range,
        reverse: bool,
        record: RecordReg,
        body: Block,
        position: Position,
    ) {
        let op = self.operation(OperationKind::Scan, table, position);
        let (range, intent) = (Box::new(range), Intent::Read);
        self.push(Step::Scan {
            op,
            table,
            index,
            range,
            reverse,
            record,
            intent,
            body,
        });
    }

    /// Appends a read of `columns` into new registers, returned in the same order.
    pub fn read(
        &mut self,
        table: TableRef,
        record: RecordReg,
        columns: &[ColumnId],
        position: Position,
    ) -> Vec<Reg> {
        let op = self.operation(OperationKind::Read, table, position);
        let registers: Vec<Reg> = columns
            .iter()
            .map(|column| {
                let data_type = self.column_type(table, *column).in_rows().clone();
                self.register(data_type)
            })
            .collect();
        let read = columns
            .iter()
            .copied()
            .zip(registers.iter().copied())
            .collect();
        self.push(Step::Read {
            op,
            table,
            record,
            columns: read,
        });
        let values = columns.iter().zip(registers);
        values
            .map(|(column, register)| {
                let data_type = self.column_type(table, *column).clone();
                self.from_row(register, data_type)
            })
            .collect()
    }

    fn column_type(&self, table: TableRef, column: ColumnId) -> &DataType {
        &self.table_of(table).schema().columns[column.index()].data_type
    }

    /// The value of type `data_type` of what a row has in such a column.
    pub fn from_row(&mut self, source: Reg, data_type: DataType) -> Reg {
        if data_type.in_rows() == &data_type {
            return source;
        }
        let target = self.register(data_type);
        self.scalar(Instruction::Call {
            function: packed::unpack,
            name: "unpack",
            target,
            arguments: [source].into(),
        });
        target
    }

    /// What rows have for a value in a column of type `data_type`.
    pub fn for_row(&mut self, value: Reg, data_type: &DataType) -> Reg {
        let DataType::Array(element) = data_type else {
            return value;
        };
        let target = self.register(data_type.in_rows().clone());
        self.scalar(Instruction::Call {
            function: packed::pack(Packing::of(element)),
            name: "pack",
            target,
            arguments: [value].into(),
        });
        target
    }

    /// Appends an update.
    pub fn update(
        &mut self,
        table: TableRef,
        record: RecordReg,
        columns: &[(ColumnId, Reg)],
        position: Position,
    ) {
        let columns = columns.iter().map(|(column, value)| {
            let data_type = self.column_type(table, *column).clone();
            (*column, self.for_row(*value, &data_type))
        });
        let columns = columns.collect();
        let op = self.operation(OperationKind::Update, table, position);
        self.push(Step::Update {
            op,
            table,
            record,
            columns,
        });
    }

    /// Appends an insert of `values` (all columns, in table order); returns the new record.
    pub fn insert(
        &mut self,
        table: TableRef,
        values: &[Reg],
        conflict: Option<Conflict>,
        position: Position,
    ) -> RecordReg {
        let values = values.iter().enumerate().map(|(at, value)| {
            let data_type = self.column_type(table, ColumnId(at as u16)).clone();
            self.for_row(*value, &data_type)
        });
        let values = values.collect();
        let op = self.operation(OperationKind::Insert, table, position);
        let record = self.record();
        self.push(Step::Insert {
            op,
            table,
            values,
            record,
            conflict,
        });
        record
    }

    /// Appends a delete.
    pub fn delete(&mut self, table: TableRef, record: RecordReg, position: Position) {
        let op = self.operation(OperationKind::Delete, table, position);
        self.push(Step::Delete { op, table, record });
    }

    /// Says what comes back.
    pub fn returns(&mut self, columns: Vec<(String, DataType)>) {
        self.result = ResultShape {
            columns: columns.into(),
        };
    }

    /// Ends the program: merges repeated look-ups of one key, sets each operation's intent,
    /// analyses the result, and lowers it to the form that is run.
    ///
    /// # Panics
    /// When a block is still open or the program breaks a rule of the IR: that is a defect of the
    /// front end.
    pub fn finish(mut self) -> Program {
        assert_eq!(self.blocks.len(), 1, "every opened block is closed");
        let body = self.blocks.pop().expect("just checked");
        let mut procedure = Procedure {
            name: self.name,
            parameters: self.parameters,
            result: self.result,
            registers: self.registers,
            records: self.records,
            buffers: self.buffers,
            regions: self.regions,
            deferred: self.deferred,
            constants: self.constants,
            tables: self.tables,
            operations: self.operations,
            body,
            ..Procedure::default()
        };
        crate::optimise::note_undo(&mut procedure);
        crate::optimise::merge_lookups(&mut procedure);
        crate::optimise::set_intents(&mut procedure);
        crate::optimise::renumber_registers(&mut procedure);
        crate::verify::verify(&procedure).unwrap_or_else(|fault| {
            panic!(
                "the program of {} breaks the IR's rules: {fault}\n{procedure:#?}",
                procedure.name
            )
        });
        let analysis = Analysis::of(&procedure);
        crate::optimise::add_prefetches(&mut procedure);
        crate::optimise::number_scans(&mut procedure);
        Program::of(procedure, analysis)
    }
}

/// Has steps that end the program leave the loop that is so many loops further out.
fn leave_instead(block: &mut Block, depth: u16) {
    for step in block {
        let is_loop = !matches!(step, Step::If { .. });
        for inner in step_blocks_mut(step).into_iter().flatten() {
            leave_instead(inner, depth + u16::from(is_loop));
        }
        if matches!(step, Step::Return) {
            *step = Step::Exit { depth };
        }
    }
}

/// Whether two values are equal to the last digit: `1.5` and `1.50` print differently, and so do
/// the two zeros of DOUBLE PRECISION.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Numeric(one), Value::Numeric(other)) => {
            one == other && one.scale() == other.scale()
        }
        (Value::LongNumeric(one), Value::LongNumeric(other)) => {
            one == other && one.scale() == other.scale()
        }
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        _ => left == right,
    }
}
