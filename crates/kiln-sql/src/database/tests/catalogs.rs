//! What `pg_catalog` and `information_schema` show.

use kiln_engine::{Options, Protocol};
use kiln_platform::disk::TemporaryDirectory;
use kiln_storage::types::{DataType, Value};

use super::{check, open, transcript_in};
use crate::Database;
use crate::catalog::{Relation, Snapshot};

const SCHEMA: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE,
        price NUMERIC(10, 2) DEFAULT 0 CHECK (price >= 0), code CHAR(3) DEFAULT 'abc', nothing TEXT DEFAULT NULL);
    CREATE TABLE sale (id BIGINT PRIMARY KEY, item INTEGER NOT NULL REFERENCES item, day DATE, kind TEXT CHECK (kind IN ('a', 'b')));
    CREATE UNIQUE INDEX sale_two ON sale (item, day);
    CREATE FUNCTION total(a INTEGER, b INTEGER DEFAULT 2) RETURNS INTEGER LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
    CREATE PROCEDURE buy(item INTEGER, OUT rest BIGINT) LANGUAGE plpgsql AS $$ BEGIN rest := 1; END $$;
    CREATE ROLE shop LOGIN;
    GRANT SELECT ON item TO shop;
";

/// The results of a script after [`SCHEMA`].
#[track_caller]
fn shows(script: &str, expected: &str) {
    let tags = "CREATE TABLE\nCREATE TABLE\nCREATE INDEX\nCREATE FUNCTION\nCREATE PROCEDURE\nCREATE ROLE\nGRANT\n";
    check(&format!("{SCHEMA}{script}"), &format!("{tags}{expected}"));
}

#[test]
fn objects_are_found_by_name_and_by_number() {
    shows(
        "SELECT 'item'::regclass, 'public.item'::regclass::oid = 'item'::regclass::oid, 'pg_class'::regclass::oid;
         SELECT 'int4'::regtype, 'character varying'::regtype::oid, 'text[]'::regtype::oid, 1007::oid::regtype;
         SELECT 'total'::regproc, 'total(integer, integer)'::regprocedure, 'public'::regnamespace::oid, 'kiln'::regrole::oid;
         SELECT to_regclass('nothing'), to_regtype('nothing'), to_regclass('information_schema.tables');
         SELECT 99999::oid::regclass, 0::oid::regclass, '-'::regclass::oid;
         SELECT 'nothing'::regclass;
         SELECT 'nothing'::regtype;
         SELECT 'nothing'::regproc;
         SELECT 'a.'::regclass;",
        "regclass,?column?,oid
         item,t,1259
         regtype,oid,oid,regtype
         integer,1043,1009,integer[]
         regproc,regprocedure,oid,oid
         total,\"total(integer,integer)\",2200,10
         to_regclass,to_regtype,to_regclass
         ,,information_schema.tables
         regclass,regclass,oid
         99999,-,0
         42P01: relation \"nothing\" does not exist
         42704: type \"nothing\" does not exist
         42883: function \"nothing\" does not exist
         42602: invalid name syntax",
    );
}

#[test]
fn relations_join_as_tables_do() {
    shows(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
           FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
           LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
          WHERE c.oid = 'item'::regclass AND a.attnum > 0 ORDER BY a.attnum;
         SELECT conname, contype, conkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'sale'::regclass ORDER BY 1;
         SELECT indexrelid::regclass, indkey, indkey[0], indisprimary FROM pg_index i
          WHERE indrelid = (SELECT oid FROM pg_class WHERE relname = 'sale') ORDER BY indisprimary;
         SELECT n.nspname, count(*) FROM pg_catalog.pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relkind = 'r' AND nspname = 'public' GROUP BY 1;
         WITH pg_class AS (SELECT 1 AS oid) SELECT oid FROM pg_class;",
        "relname,attname,format_type,attnotnull,pg_get_expr
         item,id,integer,t,
         item,name,character varying(40),t,
         item,price,\"numeric(10,2)\",f,0
         item,code,character(3),f,'abc'::bpchar
         item,nothing,text,f,
         conname,contype,conkey,pg_get_constraintdef
         sale_item_fkey,f,{2},FOREIGN KEY (item) REFERENCES item(id)
         sale_kind_check,c,{4},\"CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text])))\"
         sale_pkey,p,{1},PRIMARY KEY (id)
         indexrelid,indkey,indkey,indisprimary
         sale_two,2 3,2,f
         sale_pkey,1,1,t
         nspname,count
         public,2
         oid
         1",
    );
}

#[test]
fn names_and_numbers_are_values_as_others_are() {
    shows(
        "SELECT relname || '!', upper(relname), relname LIKE 'it%' FROM pg_class WHERE relname = 'item';
         SELECT oid + 0 FROM pg_class WHERE relname = 'item';
         SELECT '4294967295'::oid, (-1)::oid, 'x'::oid;
         SELECT '4294967296'::oid;
         SELECT '4294967295'::oid > 1, 2::oid = '2', 7::oid::bigint + 1, 3::oid::text;
         SELECT repeat('a', 70)::name::text = repeat('a', 63), 'abc'::\"char\", 'ab'::name = 'ab'::text;
         SELECT '1 2'::int2vector, '1 2'::oidvector::text, '{1,2}'::oid[], array_length('1 2'::int2vector::int2[], 1);
         SELECT 2 = ANY ('1 2'::int2vector), 'a' = ANY ('{a,b}'::name[]);
         SELECT 1.5::pg_catalog.float4, '0.1'::pg_catalog.float4 + 0, pg_typeof('item'::regclass), pg_typeof('x');
         SELECT reltuples, reltuples::integer FROM pg_class WHERE relname = 'item';
         CREATE TABLE of_class (a regclass);",
        "?column?,upper,?column?
         item!,ITEM,t
         42883: operator does not exist: oid + integer
         22P02: invalid input syntax for type oid: \"x\"
         22003: value \"4294967296\" is out of range for type oid
         ?column?,?column?,?column?,text
         t,t,8,3
         ?column?,char,?column?
         t,a,t
         int2vector,text,oid,array_length
         1 2,1 2,\"{1,2}\",2
         ?column?,?column?
         t,t
         float4,?column?,pg_typeof,pg_typeof
         1.5,0.10000000149011612,regclass,unknown
         reltuples,reltuples
         -1,-1
         0A000: a column of type regclass is not supported",
    );
}

#[test]
fn functions_say_what_there_is() {
    shows(
        "SELECT proname, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid)
           FROM pg_proc WHERE pronamespace = 2200 ORDER BY 1;
         SELECT replace(pg_get_functiondef('total'::regproc), ' ', '');
         SELECT pg_get_indexdef('sale_two'::regclass), pg_get_indexdef('sale_two'::regclass, 2, true);
         SELECT pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'item_price_check';
         SELECT has_table_privilege('item', 'SELECT'), has_table_privilege('shop', 'item', 'select'), has_table_privilege('shop', 'item', 'insert, update');
         SELECT has_table_privilege('nobody', 'item', 'SELECT');
         SELECT has_table_privilege('item', 'DANCE');
         SELECT current_database(), current_schema(), current_schema, current_schemas(true), pg_get_userbyid(10);
         SELECT pg_table_is_visible('item'::regclass), pg_table_is_visible('information_schema.tables'::regclass), pg_table_is_visible(1);
         SELECT array_to_string(relacl, ' ') FROM pg_class WHERE relname = 'item';
         SELECT pg_encoding_to_char(6), pg_char_to_encoding('utf-8'), pg_is_in_recovery(), inet_server_addr();",
        "proname,pg_get_function_arguments,pg_get_function_identity_arguments,pg_get_function_result
         buy,\"IN item integer, OUT rest bigint\",\"IN item integer, OUT rest bigint\",
         total,\"a integer, b integer DEFAULT 2\",\"a integer, b integer\",integer
         replace
         \"CREATEORREPLACEFUNCTIONpublic.total(ainteger,bintegerDEFAULT2)
         RETURNSinteger
         LANGUAGEsql
         IMMUTABLE
         AS$function$SELECTa+b$function$
         \"
         pg_get_indexdef,pg_get_indexdef
         \"CREATE UNIQUE INDEX sale_two ON public.sale USING btree (item, day)\",day
         pg_get_constraintdef
         CHECK (price >= 0::numeric)
         has_table_privilege,has_table_privilege,has_table_privilege
         t,t,f
         42704: role \"nobody\" does not exist
         22023: unrecognized privilege type: \"DANCE\"
         current_database,current_schema,current_schema,current_schemas,pg_get_userbyid
         kiln,public,public,\"{pg_catalog,public}\",kiln
         pg_table_is_visible,pg_table_is_visible,pg_table_is_visible
         t,f,
         array_to_string
         kiln=arwdDxt/kiln shop=r/kiln
         pg_encoding_to_char,pg_char_to_encoding,pg_is_in_recovery,inet_server_addr
         UTF8,6,f,",
    );
}

#[test]
fn what_is_not_there_is_refused() {
    check(
        "CREATE TABLE item (id INTEGER PRIMARY KEY);
         SELECT * FROM pg_catalog.item;
         SELECT * FROM information_schema.nothing;
         SELECT * FROM pg_catalog.nothing;
         DELETE FROM pg_class;
         SELECT nothing FROM pg_class;
         CREATE FUNCTION f() RETURNS BIGINT LANGUAGE sql AS 'SELECT count(*) FROM pg_settings';",
        "CREATE TABLE
         42P01: relation \"pg_catalog.item\" does not exist
         42P01: relation \"information_schema.nothing\" does not exist
         42P01: relation \"pg_catalog.nothing\" does not exist
         42P01: relation \"pg_class\" does not exist
         42703: column \"nothing\" does not exist
         0A000: pg_settings within a function is not supported",
    );
}

/// A program that was compiled before sees what is there when it runs.
#[test]
fn what_was_compiled_before_sees_later_changes() {
    let database = open();
    let mut session = database.session().expect("a session is free");
    let script = "
        CREATE FUNCTION tables() RETURNS BIGINT LANGUAGE sql AS
            'SELECT count(*) FROM pg_class WHERE relkind = ''r'' AND relnamespace = 2200';
        SELECT tables();
        CREATE TABLE a (id INTEGER);
        SELECT tables();";
    assert_eq!(
        transcript_in(&mut session, script),
        "CREATE FUNCTION\ntables\n0\nCREATE TABLE\ntables\n1\n"
    );
    let statement = session.parse("SELECT count(*) FROM pg_tables WHERE schemaname = $1", &[]);
    let statement = statement.expect("it is right");
    assert_eq!(statement.parameters(), [DataType::NAME]);
    let mut count = || {
        let result = session.query(
            "SELECT count(*) FROM pg_tables WHERE schemaname = $1",
            ("public",),
        );
        result
            .and_then(|rows| rows.into_one::<(i64,)>())
            .expect("it counts")
            .0
    };
    assert_eq!(count(), 1);
    database
        .execute("CREATE TABLE b (id INTEGER)")
        .expect("it is right");
    assert_eq!(count(), 2);
}

/// Numbers stay when objects are altered, truncated and replaced, and when the database is opened
/// again.
#[test]
fn numbers_stay_while_their_objects_live() {
    let temporary = TemporaryDirectory::new("kiln-catalogs").expect("there is room");
    let options = || {
        let options = Options::new().workers(1).pin_workers(false);
        options.data_dir(Some(temporary.path().join("data")))
    };
    let numbers = |database: &Database| {
        let rows = database.query(
            "SELECT relname, oid FROM pg_class WHERE relnamespace = 2200
              UNION ALL SELECT proname, oid FROM pg_proc WHERE pronamespace = 2200
              UNION ALL SELECT conname, oid FROM pg_constraint
              UNION ALL SELECT rolname, oid FROM pg_roles ORDER BY 1, 2",
            (),
        );
        rows.expect("it is right").to_csv()
    };
    let before = {
        let database = Database::open(options()).expect("it opens");
        database.execute(SCHEMA).expect("it is right");
        database
            .execute("DROP INDEX sale_two")
            .expect("it is right");
        let before = numbers(&database);
        database
            .execute(
                "TRUNCATE item, sale;
                 CREATE INDEX sale_day ON sale (day);
                 CREATE OR REPLACE FUNCTION total(a INTEGER, b INTEGER DEFAULT 2) RETURNS INTEGER LANGUAGE sql AS 'SELECT a';",
            )
            .expect("it is right");
        let after = numbers(&database);
        for line in before.lines() {
            assert!(after.contains(line), "{line} is not in\n{after}");
        }
        after
    };
    let database = Database::open(options()).expect("it opens again");
    assert_eq!(numbers(&database), before);
    database.engine().checkpoint().expect("it is written");
    database
        .execute("DROP TABLE sale; CREATE TABLE sale (id INTEGER)")
        .expect("it is right");
    let with_new = numbers(&database);
    assert_ne!(with_new, before, "another table has another number");
    drop(database);
    let database = Database::open(options()).expect("it opens again");
    assert_eq!(numbers(&database), with_new);
}

/// A role that may do nothing may ask what there is.
#[test]
fn every_role_may_read_the_catalogs() {
    let database = open();
    database.execute(SCHEMA).expect("it is right");
    let mut session = database.session_as("shop").expect("there is such a role");
    let transcript = transcript_in(
        &mut session,
        "SELECT count(*) FROM pg_class WHERE relname = 'sale';
         SELECT has_table_privilege('item', 'select'), has_table_privilege('sale', 'select');
         SELECT usename FROM pg_stat_activity;
         SELECT setting FROM pg_settings WHERE name = 'server_encoding';
         SELECT count(*) FROM sale;",
    );
    let expected = "count\n1\nhas_table_privilege,has_table_privilege\nt,f\nusename\nshop\nsetting\nUTF8\n\
                    42501: permission denied for table sale\n";
    assert_eq!(transcript, expected);
}

/// Each row has a value of its type for each column, and none where it must have one.
#[test]
fn rows_are_of_their_relations() {
    let database = open();
    database.execute(SCHEMA).expect("it is right");
    let catalog = database.engine().catalog();
    let snapshot = Snapshot::of(&catalog);
    for relation in Relation::all() {
        for row in relation.rows(&snapshot, &Value::Null) {
            assert_eq!(row.len(), relation.columns.len(), "{}", relation.name);
            for (value, column) in row.iter().zip(&relation.columns) {
                let place = format!("{}.{}: {value:?}", relation.name, column.name);
                assert!(!(value.is_null() && column.not_null), "{place}");
                let fits = kiln_procedure::arguments::convert(value.clone(), &column.data_type);
                assert_eq!(fits.as_ref(), Ok(value), "{place}");
            }
        }
        let query = format!("SELECT * FROM {}.{}", relation.schema, relation.name);
        let rows = database.query(&query, ());
        rows.unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}

/// Under every protocol, outside of a block and within one, in a query and in a procedure.
#[test]
fn every_protocol_reads_the_catalogs() {
    for protocol in Protocol::ALL.into_iter().filter(|it| it.is_serializable()) {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("the options are good");
        let mut session = database.session().expect("a session is free");
        let transcript = transcript_in(
            &mut session,
            "CREATE TABLE named (name TEXT PRIMARY KEY, kind TEXT);
             INSERT INTO named VALUES ('named', NULL), ('other', NULL);
             CREATE PROCEDURE note(OUT changed INTEGER) LANGUAGE plpgsql AS $$
                 BEGIN
                     UPDATE named SET kind = (SELECT relkind FROM pg_class WHERE relname = named.name);
                     SELECT count(*) INTO changed FROM named n JOIN pg_class c ON c.relname = n.name AND c.relkind = n.kind;
                 END $$;
             CALL note(NULL);
             BEGIN;
             SELECT name, kind, name::regclass FROM named WHERE kind = 'r';
             INSERT INTO named SELECT relname, 'i' FROM pg_class WHERE relname = 'named_pkey';
             COMMIT;
             SELECT name, kind FROM named ORDER BY name;",
        );
        let expected = "CREATE TABLE\nINSERT 0 2\nCREATE PROCEDURE\nchanged\n1\nBEGIN\nname,kind,name\nnamed,r,named\n\
                        INSERT 0 1\nCOMMIT\nname,kind\nnamed,r\nnamed_pkey,i\nother,\n";
        assert_eq!(transcript, expected, "{protocol}");
    }
}
