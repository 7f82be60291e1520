//! A bank whose total never changes, whatever the protocol and however the threads interleave:
//! transfers, accounts opened with money of others, accounts closed, numbers moved through a
//! unique index, procedures that raise after they wrote, and auditors that scan all accounts and
//! must always find the same total.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::factors::{AbortMechanism, DeadlockAvoidance, Factors, Regulation};
use kiln_protocols::{Common, Configuration, Outcome, Protocol, ProtocolOption, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

/// An interpreter of the memory model is given less of everything; see
/// `kiln-storage/tests/weak_memory.rs` for how it is run.
const ACCOUNTS: i64 = if cfg!(miri) { 5 } else { 24 };
const CALLS: u64 = if cfg!(miri) { 40 } else { 200_000 };
/// Numbers of threads, each with a seed.
const RUNS: &[(u64, u64)] = if cfg!(miri) {
    &[(2, 1), (2, 2)]
} else {
    &[(1, 1), (2, 2), (4, 3), (8, 4)]
};
const OPENING: i64 = 1_000;
const ID: ColumnId = ColumnId(0);
const CODE: ColumnId = ColumnId(1);
const BALANCE: ColumnId = ColumnId(2);
const NOTE: ColumnId = ColumnId(3);

fn table(hashed: bool) -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "account".to_owned(),
        columns: vec![
            column("id", DataType::Integer),
            column("code", DataType::VarChar(Some(10))),
            column("balance", DataType::BigInt),
            column("note", DataType::Text),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let index = |name: &str, columns: Vec<ColumnId>, kind: IndexKind| IndexDefinition {
        name: name.to_owned(),
        columns,
        unique: true,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind,
    };
    let mut indexes = vec![index(
        "account_code",
        vec![CODE],
        IndexKind::Ordered {
            partition_columns: 0,
        },
    )];
    if hashed {
        indexes.push(index("account_pkey_hash", vec![ID], IndexKind::Hash));
    }
    Arc::new(Table::new(TableId(1), schema, 0, indexes).expect("a table like others"))
}

/// Raises `state` unless `condition`.
fn require(builder: &mut ProgramBuilder, condition: Reg, state: SqlState) {
    builder.scalar(Instruction::Require {
        condition,
        null_fails: true,
        error: Box::new(Failure {
            state,
            message: "refused".to_owned(),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        }),
    });
}

fn add(builder: &mut ProgramBuilder, op: Arithmetic, left: Reg, right: Reg) -> Reg {
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

struct Programs {
    transfer: Arc<Program>,
    open: Arc<Program>,
    close: Arc<Program>,
    swap: Arc<Program>,
    audit: Arc<Program>,
    deposit: Arc<Program>,
    exchange: Arc<Program>,
    renumber: Arc<Program>,
}

fn programs(table: &Arc<Table>) -> Programs {
    // With a hash index (the last one) look-ups go there, else to the primary key.
    let by_id = table.indexes().len() as u16 - if table.indexes().len() > 2 { 1 } else { 2 };
    let integer = |name: &str| (name.to_owned(), DataType::Integer);
    let bigint = |name: &str| (name.to_owned(), DataType::BigInt);
    let text = |name: &str| (name.to_owned(), DataType::VarChar(Some(10)));

    // transfer(from, to, amount): raises 23514, after having written, when the money is short.
    let mut b = ProgramBuilder::new(
        "transfer",
        [integer("from"), integer("to"), bigint("amount")],
    );
    let accounts = b.table(table);
    let (from, to, amount) = (b.parameter(0), b.parameter(1), b.parameter(2));
    let (source, found) = b.lookup(accounts, by_id, &[from], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let balance = b.read(accounts, source, &[BALANCE], None)[0];
    let rest = add(&mut b, Arithmetic::Subtract, balance, amount);
    b.update(accounts, source, &[(BALANCE, rest)], None);
    let (target, found) = b.lookup(accounts, by_id, &[to], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let balance = b.read(accounts, target, &[BALANCE], None)[0];
    let sum = add(&mut b, Arithmetic::Add, balance, amount);
    b.update(accounts, target, &[(BALANCE, sum)], None);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let enough = b.register(DataType::Boolean);
    let (op, class) = (Comparison::GreaterOrEqual, Class::Integer);
    b.scalar(Instruction::Compare {
        op,
        class,
        target: enough,
        left: rest,
        right: zero,
    });
    require(&mut b, enough, SqlState::CHECK_VIOLATION);
    let transfer = Arc::new(b.finish());

    // open(from, id, code, note): half of the money of `from` goes to a new account.
    let parameters = [
        integer("from"),
        integer("id"),
        text("code"),
        ("note".into(), DataType::Text),
    ];
    let mut b = ProgramBuilder::new("open", parameters);
    let accounts = b.table(table);
    let (source, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let balance = b.read(accounts, source, &[BALANCE], None)[0];
    let two = b.constant(DataType::BigInt, Value::BigInt(2));
    let half = add(&mut b, Arithmetic::Divide, balance, two);
    let rest = add(&mut b, Arithmetic::Subtract, balance, half);
    b.update(accounts, source, &[(BALANCE, rest)], None);
    let values = [b.parameter(1), b.parameter(2), half, b.parameter(3)];
    b.insert(accounts, &values, None, None);
    let open = Arc::new(b.finish());

    // close(id, heir): the account goes, its money stays.
    let mut b = ProgramBuilder::new("close", [integer("id"), integer("heir")]);
    let accounts = b.table(table);
    let (closed, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let balance = b.read(accounts, closed, &[BALANCE], None)[0];
    b.delete(accounts, closed, None);
    let (heir, found) = b.lookup(accounts, by_id, &[b.parameter(1)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let present = b.read(accounts, heir, &[BALANCE], None)[0];
    let sum = add(&mut b, Arithmetic::Add, present, balance);
    b.update(accounts, heir, &[(BALANCE, sum)], None);
    let close = Arc::new(b.finish());

    // swap(id, spare): the account takes another code (and note); 23505 when it is taken.
    let mut b = ProgramBuilder::new(
        "swap",
        [integer("id"), text("code"), ("n".into(), DataType::Text)],
    );
    let accounts = b.table(table);
    let (account, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let changes = [(CODE, b.parameter(1)), (NOTE, b.parameter(2))];
    b.update(accounts, account, &changes, None);
    let swap = Arc::new(b.finish());

    // audit(): the total and the number of accounts, by a scan of the primary key; then again by
    // a scan of the codes; they must agree.
    let mut b = ProgramBuilder::new("audit", []);
    let accounts = b.table(table);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let mut sums = Vec::new();
    for (index, reverse) in [(0, false), (1, true)] {
        let (total, count) = (b.register(DataType::BigInt), b.register(DataType::BigInt));
        b.scalar(Instruction::Move {
            target: total,
            source: zero,
        });
        b.scalar(Instruction::Move {
            target: count,
            source: zero,
        });
        let record = b.record();
        b.open();
        let balance = b.read(accounts, record, &[BALANCE], None)[0];
        let (op, width) = (Arithmetic::Add, Width::Eight);
        b.scalar(Instruction::Integer {
            op,
            width,
            target: total,
            left: total,
            right: balance,
        });
        b.scalar(Instruction::Integer {
            op,
            width,
            target: count,
            left: count,
            right: one,
        });
        let body = b.close();
        b.scan(
            accounts,
            index,
            Range::default(),
            reverse,
            record,
            body,
            None,
        );
        sums.extend([total, count]);
    }
    b.push(Step::Emit { row: sums.into() });
    b.returns(
        (0..4)
            .map(|at| (format!("c{at}"), DataType::BigInt))
            .collect(),
    );
    let audit = Arc::new(b.finish());

    // deposit(id, amount): one hot row.
    let mut b = ProgramBuilder::new("deposit", [integer("id"), bigint("amount")]);
    let accounts = b.table(table);
    let (account, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let balance = b.read(accounts, account, &[BALANCE], None)[0];
    let amount = b.parameter(1);
    let sum = add(&mut b, Arithmetic::Add, balance, amount);
    b.update(accounts, account, &[(BALANCE, sum)], None);
    let deposit = Arc::new(b.finish());

    // exchange(a, b): two accounts exchange their unique codes, one update after the other.
    let mut b = ProgramBuilder::new("exchange", [integer("a"), integer("b"), text("spare")]);
    let accounts = b.table(table);
    let (first, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let (second, found) = b.lookup(accounts, by_id, &[b.parameter(1)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let first_code = b.read(accounts, first, &[CODE], None)[0];
    let second_code = b.read(accounts, second, &[CODE], None)[0];
    b.update(accounts, first, &[(CODE, b.parameter(2))], None);
    b.update(accounts, second, &[(CODE, first_code)], None);
    b.update(accounts, first, &[(CODE, second_code)], None);
    let exchange = Arc::new(b.finish());

    // renumber(id, new_id): deletes the account and inserts it with another number and its code.
    let mut b = ProgramBuilder::new("renumber", [integer("id"), integer("new_id")]);
    let accounts = b.table(table);
    let (account, found) = b.lookup(accounts, by_id, &[b.parameter(0)], None);
    require(&mut b, found, SqlState::NO_DATA_FOUND);
    let columns = b.read(accounts, account, &[CODE, BALANCE, NOTE], None);
    b.delete(accounts, account, None);
    let values = [b.parameter(1), columns[0], columns[1], columns[2]];
    b.insert(accounts, &values, None, None);
    let renumber = Arc::new(b.finish());

    Programs {
        transfer,
        open,
        close,
        swap,
        audit,
        deposit,
        exchange,
        renumber,
    }
}

fn call(worker: &mut Worker, program: &Arc<Program>, values: &[Value]) -> Outcome {
    let mut arguments = Arguments::from_values(values);
    arguments
        .bind(program)
        .expect("the arguments suit the program");
    worker.call(program, &arguments, None)
}

fn note(random: &mut Random) -> Value {
    // Short ones lie in the row, long ones are spilled.
    Value::Text("n".repeat(random.below(80)))
}

fn worker(common: &Arc<Common>, epochs: &Epochs, seed: u64) -> Worker {
    let participant = epochs.register().expect("a slot is free");
    Worker::new(common, participant, Random::from_seed(seed))
}

fn run(protocol: impl Into<Configuration>, threads: u64, calls: u64, hashed: bool, seed: u64) {
    run_under(Common::new(protocol), threads, calls, hashed, seed);
}

fn run_under(common: Common, threads: u64, calls: u64, hashed: bool, seed: u64) {
    let table = table(hashed);
    let programs = programs(&table);
    let epochs = Epochs::new(WORKERS_MAX);
    let protocol = common.configuration();
    if protocol.has(ProtocolOption::TimestampSplitting) {
        table.split_by([ID, CODE, NOTE].into_iter().collect());
    }
    let common = Arc::new(common);
    let mut first = worker(&common, &epochs, seed);
    let integer = |value: i64| Value::Integer(value as i32);
    {
        // The first account has all the money; the others are opened from it and topped up.
        let mut b = ProgramBuilder::new("seed", [("m".to_owned(), DataType::BigInt)]);
        let accounts = b.table(&table);
        let id = b.constant(DataType::Integer, Value::Integer(0));
        let code = b.constant(
            DataType::VarChar(Some(10)),
            Value::Text("code 0".to_owned()),
        );
        let text = b.constant(DataType::Text, Value::Text("the first".to_owned()));
        b.insert(accounts, &[id, code, b.parameter(0), text], None, None);
        let seed_program = Arc::new(b.finish());
        let outcome = call(
            &mut first,
            &seed_program,
            &[Value::BigInt(ACCOUNTS * OPENING)],
        );
        assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
    }
    let work = |mut worker: Worker, thread: u64| {
        let mut random = Random::stream(seed, thread);
        let mut deposits = 0;
        for _ in 0..calls {
            let (a, b) = (
                random.below(ACCOUNTS as usize) as i64,
                random.below(ACCOUNTS as usize) as i64,
            );
            let code = Value::Text(format!("code {}", random.below(ACCOUNTS as usize * 2)));
            let outcome = match random.below(24) {
                0..8 => {
                    let amount = Value::BigInt(random.between(0, 400));
                    call(
                        &mut worker,
                        &programs.transfer,
                        &[integer(a), integer(b), amount],
                    )
                }
                8..11 => {
                    let values = [integer(a), integer(b), code, note(&mut random)];
                    call(&mut worker, &programs.open, &values)
                }
                11..13 if a != 0 => call(&mut worker, &programs.close, &[integer(a), integer(b)]),
                13..16 => call(
                    &mut worker,
                    &programs.swap,
                    &[integer(a), code, note(&mut random)],
                ),
                18..20 => {
                    let spare = Value::Text(format!("spare {a}"));
                    call(
                        &mut worker,
                        &programs.exchange,
                        &[integer(a), integer(b), spare],
                    )
                }
                20..22 if a != 0 => {
                    call(&mut worker, &programs.renumber, &[integer(a), integer(b)])
                }
                16..18 => {
                    deposits += 1;
                    call(
                        &mut worker,
                        &programs.deposit,
                        &[integer(0), Value::BigInt(0)],
                    )
                }
                _ => {
                    let outcome = call(&mut worker, &programs.audit, &[]);
                    let rows = worker.frame().result_values(&programs.audit);
                    let (total, count) = (&rows[0][0], &rows[0][1]);
                    assert_eq!(
                        *total,
                        Value::BigInt(ACCOUNTS * OPENING),
                        "{protocol}, seed {seed}"
                    );
                    assert_eq!(
                        (total, count),
                        (&rows[0][2], &rows[0][3]),
                        "{protocol}, seed {seed}"
                    );
                    outcome
                }
            };
            match outcome {
                Outcome::Committed => {}
                Outcome::Rejected(error) => {
                    let expected = [
                        SqlState::NO_DATA_FOUND,
                        SqlState::CHECK_VIOLATION,
                        SqlState::UNIQUE_VIOLATION,
                    ];
                    assert!(expected.contains(&error.state()), "{protocol}: {error}");
                }
                Outcome::Expired => panic!("there was no deadline"),
            }
        }
        (worker, deposits)
    };
    let mut workers = vec![first];
    workers.extend((1..threads).map(|thread| worker(&common, &epochs, seed + thread)));
    let (work, epochs_ref) = (&work, &epochs);
    let mut workers: Vec<Worker> = thread::scope(|scope| {
        let handles: Vec<_> = workers
            .into_iter()
            .enumerate()
            .map(|(thread, worker)| scope.spawn(move || work(worker, thread as u64)))
            .collect();
        while !handles.iter().all(|handle| handle.is_finished()) {
            epochs_ref.advance();
            thread::sleep(1_000_000);
        }
        handles
            .into_iter()
            .map(|handle| handle.join().expect("no worker fails").0)
            .collect()
    });
    let worker = &mut workers[0];
    assert!(matches!(
        call(worker, &programs.audit, &[]),
        Outcome::Committed
    ));
    let rows = worker.frame().result_values(&programs.audit);
    assert_eq!(rows[0][0], Value::BigInt(ACCOUNTS * OPENING));
    let maintenance = epochs.register().expect("a slot is free");
    common.settle(&maintenance);
    common.clear_aux(&table);
    // Every index has the same records, and each is under its row's present key.
    let lengths: Vec<usize> = table.indexes().iter().map(|index| index.len()).collect();
    assert!(
        lengths.iter().all(|length| *length == lengths[0]),
        "{protocol}: {lengths:?}"
    );
    common.clear_aux(&table);
    let mut present = 0;
    table.indexes()[0].for_each(|record| {
        let tid = record.tid().load(kiln_platform::atomic::Ordering::Acquire);
        assert_eq!(
            tid >> 61,
            0,
            "no record is locked, absent or dead at the end"
        );
        assert_eq!(
            record.aux().load(kiln_platform::atomic::Ordering::Acquire),
            0
        );
        present += 1;
    });
    assert_eq!(Value::BigInt(present), rows[0][1]);
}

#[test]
fn serial_keeps_the_total() {
    for hashed in [false, true] {
        run(Protocol::Serial, 1, CALLS / 4, hashed, 1);
    }
}

fn runs(protocol: Protocol) {
    for &(threads, seed) in RUNS {
        run(protocol, threads, CALLS / threads, seed % 2 == 0, seed);
    }
}

#[test]
fn silo_keeps_the_total() {
    runs(Protocol::Silo);
}

#[test]
fn occ_keeps_the_total() {
    runs(Protocol::Occ);
}

#[test]
fn healing_keeps_the_total() {
    runs(Protocol::Healing);
}

#[test]
fn tictoc_keeps_the_total() {
    runs(Protocol::TicToc);
}

#[test]
fn hybrid_keeps_the_total() {
    runs(Protocol::Hybrid);
}

#[test]
fn mocc_keeps_the_total() {
    runs(Protocol::Mocc);
}

#[test]
fn mvcc_keeps_the_total() {
    runs(Protocol::Mvcc);
}

/// All columns but the balance have a timestamp of their own.
#[test]
fn timestamp_splitting_keeps_the_total() {
    for name in [
        "silo+ts",
        "silo+cu+ts",
        "tictoc+ts",
        "tictoc+cu+ts",
        "mvcc+ts",
        "mvcc+cu+ts",
    ] {
        let configuration: Configuration = name.parse().expect("a protocol's name");
        for &(threads, seed) in RUNS {
            let calls = CALLS / 8 / threads;
            run(configuration, threads, calls, seed % 2 == 0, seed);
        }
    }
}

#[test]
fn two_phase_locking_keeps_the_total() {
    runs(Protocol::TwoPhaseLockingNoWait);
}

#[test]
fn silo_conserves_the_total_under_other_basis_factors() {
    let mut unwinding = Factors::default();
    unwinding.abort_mechanism = AbortMechanism::Unwind;
    unwinding.deadlock_avoidance = DeadlockAvoidance::Sort;
    let mut hasty = Factors::default();
    hasty.regulation = Regulation::None;
    for factors in [unwinding, hasty] {
        let common = Common::with_factors(Protocol::Silo, factors);
        run_under(common, 3, CALLS / 4, true, 7);
    }
}

/// With locks that are waited for, or in a table, and more threads than cores.
#[test]
fn two_phase_locking_with_queues_keeps_the_total() {
    let table = |protocol: Protocol| {
        let configuration = Configuration::from(protocol);
        configuration.with(ProtocolOption::LockTable)
    };
    let mut configurations = vec!["strife+cu".parse().expect("a protocol's name")];
    for protocol in [
        Protocol::TwoPhaseLockingNoWait,
        Protocol::TwoPhaseLockingWaitDie,
        Protocol::TwoPhaseLockingWaitForGraph,
        Protocol::TwoPhaseLockingDreadlocks,
        Protocol::LockSorted,
        Protocol::LockAtomic,
        Protocol::PreNoWait,
        Protocol::Vll,
        Protocol::VllSca,
        Protocol::VllArrayed,
        Protocol::Orthrus,
        Protocol::OrthrusShared,
        Protocol::Strife,
        Protocol::Partitioned,
        Protocol::VllSingle,
        Protocol::Dora,
        Protocol::Vllr,
        Protocol::VllrSca,
        Protocol::RangeMap,
        Protocol::RangeHierarchical,
    ] {
        configurations.extend(table(protocol).ok());
        if protocol != Protocol::TwoPhaseLockingNoWait {
            configurations.push(protocol.into());
        }
    }
    for configuration in configurations {
        for &(threads, seed) in RUNS {
            let calls = CALLS / 8 / threads;
            run(configuration, threads, calls, seed % 2 == 0, seed);
        }
        if !cfg!(miri) {
            run(configuration, 32, CALLS / 8 / 32, true, 5);
        }
    }
}
