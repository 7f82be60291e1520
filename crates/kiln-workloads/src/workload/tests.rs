use super::*;
use crate::definition::ProcedureKind;

#[test]
fn options_can_be_read_back() {
    for mut workload in Workload::all() {
        workload.validate().unwrap();
        for option in workload.options() {
            // hot-percent alone has no meaning.
            if option.name == "hot-percent" {
                continue;
            }
            workload.set(option.name, &option.value).unwrap();
        }
        assert_eq!(
            workload.options(),
            Workload::by_name(workload.name()).unwrap().options()
        );
    }
}

#[test]
fn options_that_are_wrong_are_explained() {
    let mut tpcc = Workload::by_name("tpcc").unwrap();
    for (option, value, message) in [
        (
            "warehouses",
            "0",
            "warehouses is \"0\", but must be a number from 1 to 32767",
        ),
        (
            "warehouses",
            "two",
            "warehouses is \"two\", but must be a number from 1 to 32767",
        ),
        (
            "rollback-percent",
            "NaN",
            "rollback-percent is \"NaN\", but must be a number from 0 to 100",
        ),
        (
            "mix",
            "some",
            "mix is \"some\", but must be full or new-order-payment",
        ),
    ] {
        assert_eq!(tpcc.set(option, value).unwrap_err(), message);
    }
    assert!(
        tpcc.set("colour", "red")
            .unwrap_err()
            .contains("it has warehouses, items")
    );
    tpcc.set("items-min", "20").unwrap();
    assert!(
        tpcc.validate()
            .unwrap_err()
            .contains("items-min is 20 and items-max 15")
    );

    let mut smallbank = Workload::by_name("smallbank").unwrap();
    assert!(
        smallbank
            .set("hot-percent", "5")
            .unwrap_err()
            .contains("hot-accounts first")
    );
    smallbank.set("hot-accounts", "10").unwrap();
    smallbank.set("hot-percent", "5").unwrap();
    smallbank.validate().unwrap();
    smallbank.set("accounts", "10").unwrap();
    assert!(
        smallbank
            .validate()
            .unwrap_err()
            .contains("less than accounts, 10")
    );
}

#[test]
fn every_table_of_the_schema_is_populated() {
    struct Names(Vec<String>);
    impl RowSink for Names {
        fn table(&mut self, name: &str, _: &[&str], _: u64) {
            self.0.push(name.to_owned());
        }
        fn row(&mut self, _: &[Value]) {}
    }
    for mut workload in Workload::all() {
        if workload.name() == "tpcc" {
            workload.set("items", "10").unwrap();
            workload.set("customers-per-district", "10").unwrap();
        }
        let mut names = Names(Vec::new());
        workload.populate(1, &mut names);
        for table in workload.tables() {
            assert!(names.0.iter().any(|name| name == table), "{table}");
            assert!(
                workload
                    .schema_sql()
                    .contains(&format!("CREATE TABLE {table} ("))
            );
        }
        assert_eq!(
            workload.schema_sql().matches("CREATE TABLE").count(),
            workload.tables().len()
        );
    }
}

#[test]
fn every_procedure_is_in_the_script() {
    for workload in Workload::all() {
        for procedure in workload.procedures() {
            let statement = match procedure.kind {
                ProcedureKind::Procedure => format!("CREATE PROCEDURE {}(", procedure.name),
                ProcedureKind::Function => format!("CREATE FUNCTION {}(", procedure.name),
            };
            let (_, rest) = workload
                .procedures_sql()
                .split_once(&statement)
                .expect("created");
            let (head, _) = rest.split_once("LANGUAGE plpgsql").expect("in PL/pgSQL");
            assert_eq!(
                head.matches("OUT ").count(),
                procedure.outputs,
                "{}",
                procedure.name
            );
        }
    }
}
