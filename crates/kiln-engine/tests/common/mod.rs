//! A small bank, its procedures built by hand.

#![allow(dead_code, reason = "each test file uses a part")]

use kiln_engine::{Engine, Options, Procedure, Program, ProgramBuilder, Protocol};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::*;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

pub const ID: ColumnId = ColumnId(0);
pub const OWNER: ColumnId = ColumnId(1);
pub const BALANCE: ColumnId = ColumnId(2);

/// `account (id BIGINT PRIMARY KEY, owner VARCHAR(20) NOT NULL, balance BIGINT NOT NULL)`.
pub fn account_schema(name: &str) -> TableSchema {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    TableSchema {
        name: name.to_owned(),
        columns: vec![
            column("id", DataType::BigInt),
            column("owner", DataType::VarChar(Some(20))),
            column("balance", DataType::BigInt),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    }
}

pub fn index(name: &str, columns: &[ColumnId], unique: bool, kind: IndexKind) -> IndexDefinition {
    let columns = columns.to_vec();
    IndexDefinition {
        name: name.to_owned(),
        columns,
        unique,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind,
    }
}

pub const ORDERED: IndexKind = IndexKind::Ordered {
    partition_columns: 0,
};

fn parameters(names: &[&str]) -> Vec<(String, DataType)> {
    names
        .iter()
        .map(|name| ((*name).to_owned(), DataType::BigInt))
        .collect()
}

fn require(builder: &mut ProgramBuilder, condition: Reg, state: SqlState, message: &str) {
    let error = Failure {
        state,
        message: message.to_owned(),
        arguments: [].into(),
        detail: None,
        hint: None,
        subject: None,
        position: None,
    };
    let error = Box::new(error);
    builder.scalar(Instruction::Require {
        condition,
        null_fails: true,
        error,
    });
}

fn arithmetic(builder: &mut ProgramBuilder, op: Arithmetic, left: Reg, right: Reg) -> Reg {
    let target = builder.register(DataType::BigInt);
    builder.scalar(Instruction::Integer {
        op,
        width: Width::Eight,
        target,
        left,
        right,
    });
    target
}

/// Adds `amount` to an account, which must be there; returns the register with the new balance.
pub fn add(builder: &mut ProgramBuilder, table: &Arc<Table>, id: Reg, amount: Reg) -> Reg {
    let reference = builder.table(table);
    let (record, found) = builder.lookup(reference, 0, &[id], None);
    require(builder, found, SqlState::NO_DATA_FOUND, "no such account");
    let balance = builder.read(reference, record, &[BALANCE], None)[0];
    let sum = arithmetic(builder, Arithmetic::Add, balance, amount);
    builder.update(reference, record, &[(BALANCE, sum)], None);
    sum
}

fn emit_bigint(builder: &mut ProgramBuilder, register: Reg) {
    builder.push(Step::Emit {
        row: [register].into(),
    });
    builder.returns(vec![("value".to_owned(), DataType::BigInt)]);
}

/// `transfer(source, target, amount)`: raises 23514, after it has written, when money is short.
pub fn transfer(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("transfer", parameters(&["source", "target", "amount"]));
    let (source, target) = (builder.parameter(0), builder.parameter(1));
    let amount = builder.parameter(2);
    let zero = builder.constant(DataType::BigInt, Value::BigInt(0));
    let taken = arithmetic(&mut builder, Arithmetic::Subtract, zero, amount);
    let rest = add(&mut builder, table, source, taken);
    add(&mut builder, table, target, amount);
    let enough = builder.register(DataType::Boolean);
    let (op, class) = (Comparison::GreaterOrEqual, Class::Integer);
    builder.scalar(Instruction::Compare {
        op,
        class,
        target: enough,
        left: rest,
        right: zero,
    });
    require(
        &mut builder,
        enough,
        SqlState::CHECK_VIOLATION,
        "insufficient funds",
    );
    builder.finish()
}

/// `deposit(id, amount)`: emits the new balance.
pub fn deposit(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("deposit", parameters(&["id", "amount"]));
    let (id, amount) = (builder.parameter(0), builder.parameter(1));
    let sum = add(&mut builder, table, id, amount);
    emit_bigint(&mut builder, sum);
    builder.finish()
}

/// `open(id, amount)`: raises 23505 when the account is there.
pub fn open(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("open", parameters(&["id", "amount"]));
    let (id, amount) = (builder.parameter(0), builder.parameter(1));
    let reference = builder.table(table);
    let owner = builder.constant(
        DataType::VarChar(Some(20)),
        Value::Text("nobody".to_owned()),
    );
    builder.insert(reference, &[id, owner, amount], None, None);
    builder.finish()
}

/// `shut(id)`: deletes the account if it is there.
pub fn shut(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("shut", parameters(&["id"]));
    let id = builder.parameter(0);
    let reference = builder.table(table);
    let (record, found) = builder.lookup(reference, 0, &[id], None);
    builder.open();
    builder.delete(reference, record, None);
    let then = builder.close();
    builder.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    builder.finish()
}

/// `total()`: emits the sum of all balances.
pub fn total(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("total", []);
    let reference = builder.table(table);
    let zero = builder.constant(DataType::BigInt, Value::BigInt(0));
    let sum = builder.register(DataType::BigInt);
    builder.scalar(Instruction::Move {
        target: sum,
        source: zero,
    });
    let record = builder.record();
    builder.open();
    let balance = builder.read(reference, record, &[BALANCE], None)[0];
    let (op, width) = (Arithmetic::Add, Width::Eight);
    builder.scalar(Instruction::Integer {
        op,
        width,
        target: sum,
        left: sum,
        right: balance,
    });
    let body = builder.close();
    builder.scan(reference, 0, Range::default(), false, record, body, None);
    emit_bigint(&mut builder, sum);
    builder.finish()
}

/// `spin(turns)`: counts; emits the number of turns.
pub fn spin() -> Program {
    let mut builder = ProgramBuilder::new("spin", parameters(&["turns"]));
    let turns = builder.parameter(0);
    let one = builder.constant(DataType::BigInt, Value::BigInt(1));
    let variable = builder.register(DataType::BigInt);
    let body = Vec::new();
    let (first, last, step, reverse) = (one, turns, one, false);
    builder.push(Step::ForRange {
        variable,
        first,
        last,
        step,
        reverse,
        body,
    });
    emit_bigint(&mut builder, turns);
    builder.finish()
}

/// `linger(id, amount, turns)`: deposits, and then counts before it emits the new balance, so that
/// others come in between.
pub fn linger(table: &Arc<Table>) -> Program {
    let mut builder = ProgramBuilder::new("linger", parameters(&["id", "amount", "turns"]));
    let (id, amount) = (builder.parameter(0), builder.parameter(1));
    let sum = add(&mut builder, table, id, amount);
    let one = builder.constant(DataType::BigInt, Value::BigInt(1));
    let (variable, last) = (builder.register(DataType::BigInt), builder.parameter(2));
    builder.push(Step::ForRange {
        variable,
        first: one,
        last,
        step: one,
        reverse: false,
        body: Vec::new(),
    });
    emit_bigint(&mut builder, sum);
    builder.finish()
}

/// `nothing()`: an empty transaction.
pub fn nothing() -> Program {
    ProgramBuilder::new("nothing", []).finish()
}

/// The procedures that use the table.
pub fn programs(table: &Arc<Table>) -> Vec<Program> {
    vec![
        transfer(table),
        deposit(table),
        open(table),
        shut(table),
        total(table),
        linger(table),
    ]
}

/// Compiles the procedures anew for the table as it is in a change.
pub fn recompile(change: &mut kiln_engine::CatalogChange<'_>, table: &Arc<Table>) -> Result<()> {
    for program in programs(table) {
        change.create_procedure(Procedure::new(Arc::new(program)), true)?;
    }
    Ok(())
}

/// A bank with the accounts `0..accounts`, each with `balance`.
pub fn bank(options: Options, accounts: i64, balance: i64) -> Engine {
    let engine = Engine::open(options).expect("the options make sense");
    engine
        .change_catalog(|change| {
            let table = change.create_table(account_schema("account"), 0, Vec::new())?;
            recompile(change, &table)?;
            for program in [spin(), nothing()] {
                change.create_procedure(Procedure::new(Arc::new(program)), false)?;
            }
            Ok(())
        })
        .expect("the catalog is empty");
    let rows = (0..accounts).map(|id| {
        [
            Value::BigInt(id),
            Value::Text(format!("owner {id}")),
            Value::BigInt(balance),
        ]
    });
    let report = engine.load("account", &["id", "owner", "balance"], rows);
    assert_eq!(report.expect("the rows are good").rows, accounts as u64);
    engine
}

/// Few threads, so that tests run side by side.
pub fn small(protocol: Protocol) -> Options {
    Options::new()
        .workers(2)
        .pin_workers(false)
        .protocol(protocol)
}

/// The one number that a call returned.
pub fn number(engine: &Engine, procedure: &str, arguments: &[i64]) -> i64 {
    let arguments: Vec<Value> = arguments
        .iter()
        .map(|value| Value::BigInt(*value))
        .collect();
    let rows = engine
        .call(procedure, arguments)
        .expect("it runs")
        .rows()
        .expect("it commits");
    rows.typed::<(i64,)>().expect("one number")[0].0
}

/// Sets a flag when it is dropped, so that those who wait for it end also after a panic.
pub struct SetOnDrop<'a>(pub &'a kiln_platform::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, kiln_platform::atomic::Ordering::Release);
    }
}
