//! tokio-postgres against a server of Kiln: binary values, pipelines, COPY, portals, cancellation,
//! a restart.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use futures_util::{SinkExt, StreamExt, TryStreamExt};
use kiln_rust_clients::{Result, restart};
use rust_decimal::Decimal;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{Client, IsolationLevel, NoTls, SimpleQueryMessage};
use uuid::Uuid;

async fn connect() -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(&kiln_rust_clients::url(), NoTls).await?;
    // Its error is that of the client's next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// A value goes to the server and comes back, and so does NULL.
async fn round_trip<T>(client: &Client, name: &str, value: T) -> Result<()>
where
    T: ToSql + FromSqlOwned + PartialEq + Debug + Sync,
{
    let text = format!("SELECT $1::{name}");
    let row = client.query_one(&text, &[&value]).await?;
    assert_eq!(row.get::<_, T>(0), value, "{name}");
    let row = client.query_one(&text, &[&None::<T>]).await?;
    assert_eq!(row.get::<_, Option<T>>(0), None, "{name}");
    Ok(())
}

async fn types(client: &Client) -> Result<()> {
    round_trip(client, "smallint", i16::MIN).await?;
    round_trip(client, "integer", i32::MIN).await?;
    round_trip(client, "bigint", i64::MAX).await?;
    round_trip(client, "double precision", 1.5_f64).await?;
    round_trip(client, "boolean", true).await?;
    round_trip(client, "text", "Zürich".to_owned()).await?;
    round_trip(client, "varchar(9)", "x".to_owned()).await?;
    round_trip(client, "bytea", vec![0_u8, 255]).await?;
    round_trip(client, "uuid", Uuid::from_u128(7)).await?;
    round_trip(client, "numeric(12, 2)", Decimal::new(-1234, 2)).await?;
    let moment: DateTime<Utc> = "2026-11-23T12:30:00.000500Z".parse()?;
    round_trip(client, "timestamptz", moment).await?;
    round_trip(client, "timestamp", moment.naive_utc()).await?;
    round_trip(client, "date", NaiveDate::from_ymd_opt(1999, 12, 31)).await?;
    round_trip(client, "integer[]", vec![Some(1), None, Some(-3)]).await?;
    round_trip(client, "text[]", vec!["a".to_owned(), "\"b,".to_owned()]).await?;
    round_trip(client, "numeric[]", vec![Decimal::new(15, 1)]).await?;
    Ok(())
}

async fn statements(client: &Client) -> Result<()> {
    let script = "CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price NUMERIC(8, 2));
        CREATE PROCEDURE buy(item_id INT, INOUT n INT, OUT total NUMERIC) LANGUAGE plpgsql AS $$
            BEGIN SELECT price * n INTO total FROM item WHERE id = item_id; n := n + 1; END $$";
    client.batch_execute(script).await?;
    let insert = "INSERT INTO item VALUES ($1, $2, $3)";
    let insert = client
        .prepare_typed(insert, &[Type::INT4, Type::TEXT])
        .await?;
    let price = Decimal::new(250, 2);
    // All at once: the driver sends them behind each other.
    let inserts = (0..100).map(async |id| {
        let count = client
            .execute(&insert, &[&id, &format!("item {id}"), &price])
            .await;
        count.expect("it is new")
    });
    let counts = futures_util::future::join_all(inserts).await;
    assert_eq!(counts.iter().sum::<u64>(), 100);
    let error = client.execute(&insert, &[&1_i32, &"again", &price]).await;
    let error = error.expect_err("the key is there");
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    let found = error.as_db_error().and_then(|error| error.constraint());
    assert_eq!(found, Some("item_pkey"));
    let ids = "SELECT id FROM item WHERE id = ANY($1) ORDER BY id";
    let rows = client.query(ids, &[&vec![3_i32, 1, 777]]).await?;
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, [1, 3]);
    let row = client
        .query_one("CALL buy($1, $2, NULL)", &[&1_i32, &4_i32])
        .await?;
    assert_eq!((row.get(0), row.get(1)), (5_i32, Decimal::new(1000, 2)));
    let messages = client
        .simple_query("SELECT id FROM item WHERE id < 2; SELECT 'x' AS y")
        .await?;
    let rows = messages
        .iter()
        .filter(|message| matches!(message, SimpleQueryMessage::Row(_)));
    assert_eq!(rows.count(), 3);
    let rows = client.query_raw("SELECT id FROM item", None::<i32>).await?;
    assert_eq!(
        pin!(rows).map(|row| row.expect("it is one")).count().await,
        100
    );
    Ok(())
}

async fn transactions(client: &mut Client) -> Result<()> {
    let name = "SELECT name FROM item WHERE id = 1";
    let mut transaction = client.transaction().await?;
    transaction
        .execute("UPDATE item SET name = 'a' WHERE id = 1", &[])
        .await?;
    let inner = transaction.transaction().await?;
    inner
        .execute("UPDATE item SET name = 'b' WHERE id = 1", &[])
        .await?;
    inner.rollback().await?;
    let portal = transaction
        .bind("SELECT id FROM item ORDER BY id", &[])
        .await?;
    let mut counts = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 30).await?;
        counts.push(rows.len());
        if rows.len() < 30 {
            break;
        }
    }
    assert_eq!(counts, [30, 30, 30, 10]);
    transaction.commit().await?;
    assert_eq!(client.query_one(name, &[]).await?.get::<_, &str>(0), "a");
    let transaction = client.build_transaction();
    let transaction = transaction.isolation_level(IsolationLevel::Serializable);
    let transaction = transaction.read_only(true).deferrable(true).start().await?;
    let error = transaction.execute("DELETE FROM item", &[]).await;
    let error = error.expect_err("it may only read");
    assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    transaction.rollback().await?;
    Ok(())
}

async fn copies(client: &Client) -> Result<()> {
    let sink = client.copy_in("COPY item (id, name) FROM STDIN").await?;
    let mut sink = pin!(sink);
    for id in 1_000..1_100 {
        sink.send(kiln_rust_clients::bytes(format!("{id}\tx\\ty\n")))
            .await?;
    }
    assert_eq!(sink.finish().await?, 100);
    let types = [Type::INT4, Type::TEXT, Type::NUMERIC];
    let sink = client
        .copy_in("COPY item FROM STDIN (FORMAT binary)")
        .await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for id in 2_000_i32..2_100 {
        writer
            .as_mut()
            .write(&[&id, &None::<String>, &Decimal::new(5, 1)])
            .await?;
    }
    assert_eq!(writer.finish().await?, 100);
    let all = "COPY (SELECT id, name, price FROM item WHERE id >= 1000 ORDER BY id) TO STDOUT";
    let text: Vec<_> = client.copy_out(all).await?.try_collect().await?;
    assert_eq!(text.len(), 200);
    assert_eq!(&text[0][..], b"1000\tx\\ty\t\\N\n");
    let stream = client.copy_out(&format!("{all} (FORMAT binary)")).await?;
    let rows: Vec<_> = BinaryCopyOutStream::new(stream, &types)
        .try_collect()
        .await?;
    assert_eq!(rows.len(), 200);
    assert_eq!(rows[199].get::<Decimal>(2), Decimal::new(50, 2));
    // What is dropped before its end leaves nothing.
    let sink = client.copy_in("COPY item (id, name) FROM STDIN").await?;
    let mut sink = Box::pin(sink);
    sink.send(kiln_rust_clients::bytes("5000\tx\n".to_owned()))
        .await?;
    drop(sink);
    let count = client
        .query_one("SELECT count(*) FROM item WHERE id = 5000", &[])
        .await?;
    assert_eq!(count.get::<_, i64>(0), 0);
    Ok(())
}

async fn cancellation(client: &Client) -> Result<()> {
    let token = client.cancel_token();
    let slow = client.query("SELECT count(*) FROM generate_series(1, 1000000000)", &[]);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        token.cancel_query(NoTls).await
    };
    let (slow, canceled) = tokio::join!(slow, cancel);
    canceled?;
    let error = slow.expect_err("it was cancelled");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    client.query_one("SELECT 1", &[]).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut client = connect().await?;
    types(&client).await?;
    statements(&client).await?;
    transactions(&mut client).await?;
    copies(&client).await?;
    cancellation(&client).await?;
    restart().await?;
    assert!(client.query("SELECT 1", &[]).await.is_err() && client.is_closed());
    let client = connect().await?;
    let count = client.query_one("SELECT count(*) FROM item", &[]).await?;
    assert_eq!(count.get::<_, i64>(0), 300);
    Ok(())
}
