//! A plan that goes from owner to owner is the plan that one worker makes alone, and each owner
//! looks at its own records.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::shared::planning::{Claim, Findings, Footprint, Planned, Scout, Whereabouts};
use kiln_protocols::{Common, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::table::{Part, Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

const WAREHOUSES: i64 = 3;
const ITEMS: i64 = 8;

/// `stock(w, i, next)`, divided by `w`; `code` is an index that does not say where its records are.
fn stock() -> Arc<Table> {
    let column = |name: &str| Column {
        name: name.to_owned(),
        data_type: DataType::BigInt,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "stock".to_owned(),
        columns: ["w", "i", "next", "code"].map(column).into(),
        primary_key: vec![ColumnId(0), ColumnId(1)],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: Some(Partitioning::Column(ColumnId(0))),
    };
    let code = IndexDefinition {
        name: "stock_code".to_owned(),
        columns: vec![ColumnId(3)],
        unique: true,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind: IndexKind::Ordered {
            partition_columns: 0,
        },
    };
    Arc::new(Table::new(TableId(1), schema, 0, vec![code]).expect("a table like others"))
}

/// Fills the table: the row `(w, i)` has the code `w * ITEMS + i`, and names another row's
/// warehouse.
fn fill(table: &Arc<Table>) {
    let names = ["w", "i", "next", "code"];
    let mut b = ProgramBuilder::new(
        "fill",
        names.map(|name| (name.to_owned(), DataType::BigInt)),
    );
    let stock = b.table(table);
    let values: Vec<Reg> = (0..names.len()).map(|at| b.parameter(at)).collect();
    b.insert(stock, &values, None, None);
    let program = Arc::new(b.finish());
    let epochs = Epochs::new(WORKERS_MAX);
    let participant = epochs.register().expect("a slot is free");
    let common = Arc::new(Common::new(Protocol::Serial));
    let mut worker = Worker::new(&common, participant, Random::from_seed(1));
    for w in 0..WAREHOUSES {
        for i in 0..ITEMS {
            let next = (w * 5 + i) % WAREHOUSES;
            let values = [w, i, next, w * ITEMS + i].map(Value::BigInt);
            let mut arguments = Arguments::from_values(&values);
            arguments.bind(&program).expect("four numbers");
            let outcome = worker.call(&program, &arguments, None);
            assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
        }
    }
}

fn missing() -> Failure {
    Failure {
        state: SqlState::NO_DATA_FOUND,
        message: "no such row".to_owned(),
        arguments: [].into(),
        detail: None,
        hint: None,
        subject: None,
        position: None,
    }
}

/// `order(w, i, suppliers, last, code)`: a row; one at the warehouse that it names; one in each of
/// some warehouses; those of a warehouse from `i` on, and for each the one in the warehouse that it
/// names; and one by its code.
fn program(table: &Arc<Table>) -> Program {
    let bigint = |name: &str| (name.to_owned(), DataType::BigInt);
    let mut b = ProgramBuilder::new(
        "order",
        [
            bigint("w"),
            bigint("i"),
            ("suppliers".to_owned(), DataType::array(DataType::BigInt)),
            bigint("last"),
            bigint("code"),
        ],
    );
    let stock = b.table(table);
    let [w, i, suppliers, last, code] = [0, 1, 2, 3, 4].map(|at| b.parameter(at));
    let next = ColumnId(2);
    let touch = |b: &mut ProgramBuilder, index: u16, key: &[Reg]| {
        let (record, found) = b.lookup(stock, index, key, None);
        b.scalar(Instruction::Require {
            condition: found,
            null_fails: true,
            error: Box::new(missing()),
        });
        let read = b.read(stock, record, &[next], None)[0];
        b.update(stock, record, &[(next, read)], None);
        read
    };
    let named = touch(&mut b, 0, &[w, i]);
    touch(&mut b, 0, &[named, i]);
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let (variable, supplier) = (b.register(DataType::BigInt), b.register(DataType::BigInt));
    b.open();
    b.scalar(Instruction::Element {
        target: supplier,
        array: suppliers,
        index: variable,
    });
    touch(&mut b, 0, &[supplier, i]);
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first: one,
        last,
        step: one,
        reverse: false,
        body,
    });
    let record = b.record();
    b.open();
    let named = b.read(stock, record, &[next], None)[0];
    touch(&mut b, 0, &[named, i]);
    let body = b.close();
    let range = Range {
        prefix: [w].into(),
        lower: Some(Bound {
            value: i,
            inclusive: true,
        }),
        upper: None,
    };
    b.scan(stock, 0, range, false, record, body, None);
    touch(&mut b, 1, &[code]);
    b.finish()
}

/// At the owner of a warehouse, or at none.
struct At(Option<u16>);

impl Whereabouts for At {
    const TRAVELS: bool = true;

    fn elsewhere(&self, part: Part) -> Option<u16> {
        let owner = part.partition(WAREHOUSES as usize) as u16;
        (self.0 != Some(owner)).then_some(owner)
    }

    fn is_outside(&self) -> bool {
        self.0.is_none()
    }
}

fn planned() -> Planned {
    Planned {
        is_divided: true,
        is_run_soon: true,
        ..Planned::default()
    }
}

/// What locks are taken by.
fn locks(footprint: &Footprint) -> Vec<(u64, bool, Part)> {
    let claims = footprint.claims().iter();
    claims
        .map(|claim: &Claim| (claim.lock(), claim.exclusive, claim.part))
        .collect()
}

#[test]
fn owners_make_the_plan_that_one_worker_makes() {
    let table = stock();
    fill(&table);
    let program = program(&table);
    let mut random = Random::from_seed(3);
    let (mut stay, mut travel) = (Scout::new(planned()), Scout::new(planned()));
    let (mut alone, mut together) = (Footprint::default(), Footprint::default());
    let (mut findings, mut others) = (Findings::default(), Findings::default());
    let mut legs = 0;
    for _ in 0..500 {
        let mut warehouse = || Value::BigInt(random.below(WAREHOUSES as usize) as i64);
        let suppliers: Vec<Value> = (0..5).map(|_| warehouse()).collect();
        let w = warehouse();
        let last = random.below(suppliers.len() + 1) as i64;
        let mut arguments = Arguments::from_values(&[
            w,
            Value::BigInt(random.below(ITEMS as usize) as i64),
            Value::Array(suppliers),
            Value::BigInt(last),
            Value::BigInt(random.below((WAREHOUSES * ITEMS) as usize) as i64),
        ]);
        arguments.bind(&program).expect("its parameters");
        let call = (&program, &arguments);
        stay.plan(call, 1, &[], &mut alone, &mut findings);

        let plan = (&mut together, &mut others);
        let mut next = travel.set_out(call, At(None), 1, &[], plan);
        assert!(next.is_some(), "the first row is some owner's");
        while let Some(owner) = next {
            legs += 1;
            let plan = (&mut together, &mut others);
            next = travel.go_on(&program, At(Some(owner)), &[], plan);
            assert_ne!(next, Some(owner), "it goes on where it is");
        }
        assert_eq!(locks(&together), locks(&alone));
    }
    assert!(legs > 500 * 3, "the rows are of several owners");
}
