//! sqlx against a server of Kiln: its pool, prepared statements, streams, nested transactions,
//! COPY, a restart.

use std::fmt::Debug;

use chrono::{DateTime, NaiveDate, Utc};
use futures_util::TryStreamExt;
use kiln_rust_clients::{Result, restart};
use rust_decimal::Decimal;
use sqlx::postgres::{PgConnection, PgPoolOptions, PgRow, Postgres};
use sqlx::{Acquire, Connection, Decode, Encode, Executor, PgPool, Row, Type};
use uuid::Uuid;

/// A value goes to the server and comes back, and so does NULL.
async fn round_trip<T>(pool: &PgPool, name: &str, value: T) -> Result<()>
where
    T: Clone + PartialEq + Debug + Send + Unpin + 'static + Type<Postgres>,
    T: for<'v> Encode<'v, Postgres> + for<'v> Decode<'v, Postgres>,
    Option<T>: for<'v> Encode<'v, Postgres>,
{
    let text = format!("SELECT $1::{name}");
    let row: PgRow = sqlx::query(&text)
        .bind(value.clone())
        .fetch_one(pool)
        .await?;
    assert_eq!(row.try_get::<T, _>(0)?, value, "{name}");
    let row = sqlx::query(&text).bind(None::<T>).fetch_one(pool).await?;
    assert_eq!(row.try_get::<Option<T>, _>(0)?, None, "{name}");
    Ok(())
}

async fn types(pool: &PgPool) -> Result<()> {
    round_trip(pool, "smallint", i16::MIN).await?;
    round_trip(pool, "integer", i32::MIN).await?;
    round_trip(pool, "bigint", i64::MAX).await?;
    round_trip(pool, "double precision", 1.5_f64).await?;
    round_trip(pool, "boolean", true).await?;
    round_trip(pool, "text", "Zürich".to_owned()).await?;
    round_trip(pool, "bytea", vec![0_u8, 255]).await?;
    round_trip(pool, "uuid", Uuid::from_u128(7)).await?;
    round_trip(pool, "numeric(12, 2)", Decimal::new(-1234, 2)).await?;
    let moment: DateTime<Utc> = "2026-11-23T12:30:00.000500Z".parse()?;
    round_trip(pool, "timestamptz", moment).await?;
    round_trip(pool, "timestamp", moment.naive_utc()).await?;
    let date = NaiveDate::from_ymd_opt(1999, 12, 31).expect("it is a date");
    round_trip(pool, "date", date).await?;
    round_trip(pool, "integer[]", vec![Some(1), None, Some(-3)]).await?;
    round_trip(pool, "text[]", vec!["a".to_owned(), "\"b,".to_owned()]).await?;
    Ok(())
}

/// The code of a database's error.
fn code<T: Debug>(result: std::result::Result<T, sqlx::Error>) -> String {
    let error = result.expect_err("it fails");
    let code = error.as_database_error().and_then(|error| error.code());
    code.unwrap_or_default().into_owned()
}

async fn statements(pool: &PgPool) -> Result<()> {
    let script = "CREATE TABLE item (id INT PRIMARY KEY, name TEXT);
        CREATE PROCEDURE next(INOUT n INT, OUT name TEXT) LANGUAGE plpgsql AS $$
            BEGIN n := n + 1; name := 'item ' || n; END $$";
    pool.execute(script).await?;
    let insert = sqlx::query("INSERT INTO item SELECT * FROM unnest($1::int[], $2::text[])");
    let ids: Vec<i32> = (0..100).collect();
    let names: Vec<String> = ids.iter().map(|id| format!("item {id}")).collect();
    let inserted = match insert.bind(&ids).bind(&names).execute(pool).await {
        Ok(inserted) => inserted.rows_affected(),
        // Without arrays beside each other in FROM, row by row.
        Err(_) => {
            for (id, name) in ids.iter().zip(&names) {
                let insert = sqlx::query("INSERT INTO item VALUES ($1, $2)");
                insert.bind(id).bind(name).execute(pool).await?;
            }
            100
        }
    };
    assert_eq!(inserted, 100);
    let again = sqlx::query("INSERT INTO item VALUES (1, NULL)");
    assert_eq!(code(again.execute(pool).await), "23505");
    let rows = sqlx::query("SELECT id, name FROM item WHERE id > $1 ORDER BY id").bind(49);
    let found: Vec<(i32, String)> = rows
        .fetch(pool)
        .map_ok(|row| (row.get(0), row.get(1)))
        .try_collect()
        .await?;
    assert_eq!((found.len(), found[0].0), (50, 50));
    let row = sqlx::query("CALL next($1, NULL)")
        .bind(4)
        .fetch_one(pool)
        .await?;
    assert_eq!((row.get::<i32, _>(0), row.get::<&str, _>(1)), (5, "item 5"));
    Ok(())
}

async fn transactions(pool: &PgPool) -> Result<()> {
    let mut transaction = pool.begin().await?;
    transaction
        .execute("UPDATE item SET name = 'a' WHERE id = 1")
        .await?;
    let mut inner = transaction.begin().await?;
    assert_eq!(code(inner.execute("SELECT 1 / 0").await), "22012");
    inner.rollback().await?;
    transaction
        .execute("UPDATE item SET name = 'b' WHERE id = 2")
        .await?;
    transaction.commit().await?;
    // One that is dropped is rolled back.
    let mut transaction = pool.begin().await?;
    transaction.execute("DELETE FROM item").await?;
    drop(transaction);
    let names = "SELECT a.name || ',' || b.name FROM item a, item b WHERE a.id = 1 AND b.id = 2";
    let row = sqlx::query(names).fetch_one(pool).await?;
    assert_eq!(row.get::<&str, _>(0), "a,b");
    Ok(())
}

async fn copies(pool: &PgPool) -> Result<()> {
    let mut connection = pool.acquire().await?;
    let mut copy = connection
        .copy_in_raw("COPY item FROM STDIN (FORMAT csv)")
        .await?;
    copy.send(&b"1000,\"x,y\"\n1001,\n"[..]).await?;
    assert_eq!(copy.finish().await?, 2);
    let mut copy = connection.copy_in_raw("COPY item FROM STDIN").await?;
    copy.send(&b"2000\tx\n"[..]).await?;
    copy.abort("no more").await?;
    let text = "COPY (SELECT * FROM item WHERE id >= 1000 ORDER BY id) TO STDOUT";
    let pieces: Vec<_> = connection.copy_out_raw(text).await?.try_collect().await?;
    assert_eq!(pieces.concat(), b"1000\tx,y\n1001\t\\N\n");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = PgPoolOptions::new().max_connections(4);
    let pool = options.connect(&kiln_rust_clients::url()).await?;
    types(&pool).await?;
    statements(&pool).await?;
    transactions(&pool).await?;
    copies(&pool).await?;
    let counts = (0..50).map(async |id| {
        let count = sqlx::query("UPDATE item SET name = 'hot' WHERE id = 5 AND $1 >= 0");
        let done = count.bind(id).execute(&pool).await.expect("it is repeated");
        done.rows_affected()
    });
    let counts = futures_util::future::join_all(counts).await;
    assert_eq!(counts.iter().sum::<u64>(), 50);
    restart().await?;
    // The pool finds out that its connections are gone.
    let row = sqlx::query("SELECT count(*) FROM item")
        .fetch_one(&pool)
        .await?;
    assert_eq!(row.get::<i64, _>(0), 102);
    pool.close().await;
    PgConnection::connect(&kiln_rust_clients::url())
        .await?
        .close()
        .await?;
    Ok(())
}
