"""psycopg 3 against a server of Kiln: types in both formats, blocks, prepared statements, pipelines, async.

Run as: psycopg3.py PORT
"""

import asyncio
import datetime
import sys
from decimal import Decimal
from uuid import UUID

import psycopg

DSN = f"host=127.0.0.1 port={sys.argv[1]} user=kiln"
ROW = (
    1,
    Decimal("12.34"),
    "Zürich",
    datetime.date(2026, 11, 23),
    datetime.datetime(2026, 11, 23, 12, 30, 0, 500, tzinfo=datetime.timezone.utc),
    b"\x00\xff",
    UUID("5bac6a3e-7039-29ff-b848-7560e86f147b"),
    1.5,
    True,
)
COLUMNS = "id, n, s, d, t, b, u, f, ok"


def types(connection):
    connection.execute(
        "CREATE TABLE types (id INT PRIMARY KEY, n NUMERIC(12, 2), s TEXT, d DATE, t TIMESTAMPTZ,"
        " b BYTEA, u UUID, f DOUBLE PRECISION, ok BOOLEAN)"
    )
    values = ", ".join(["%s"] * len(ROW))
    connection.execute(f"INSERT INTO types VALUES ({values})", ROW)
    values = ", ".join(["%b"] * len(ROW))
    connection.execute(f"INSERT INTO types VALUES ({values})", (2, *ROW[1:]))
    for binary in (False, True):
        rows = connection.cursor(binary=binary).execute(f"SELECT {COLUMNS} FROM types ORDER BY id").fetchall()
        assert rows == [ROW, (2, *ROW[1:])], rows
    ids = connection.execute("SELECT id FROM types WHERE id = ANY(%s)", ([2, 3],)).fetchall()
    assert ids == [(2,)], ids


def statements(connection):
    connection.execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)")
    connection.cursor().executemany("INSERT INTO counter VALUES (%s, 0)", [(i,) for i in range(20)])
    for _ in range(10):
        updated = connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s RETURNING n", (1,), prepare=True)
    assert updated.fetchone() == (10,)
    with connection.pipeline():
        cursors = [
            connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s RETURNING n", (i % 3,))
            for i in range(30)
        ]
    assert [cursor.fetchone()[0] for cursor in cursors[-3:]] == [10, 20, 10]
    try:
        connection.execute("INSERT INTO counter VALUES (1, 1)")
        raise AssertionError("the key is there")
    except psycopg.errors.UniqueViolation as error:
        assert error.diag.constraint_name == "counter_pkey", error.diag.constraint_name


def blocks():
    with psycopg.connect(DSN) as connection:
        connection.execute("UPDATE counter SET n = 100 WHERE id = 5")
        connection.commit()
        connection.execute("UPDATE counter SET n = 200 WHERE id = 5")
        connection.rollback()
        try:
            connection.execute("SELECT 1 / 0")
        except psycopg.errors.DivisionByZero:
            pass
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        assert connection.execute("SELECT n FROM counter WHERE id = 5").fetchone() == (100,)


async def asynchronous():
    async def increment():
        connection = await psycopg.AsyncConnection.connect(DSN, autocommit=True)
        async with connection:
            for _ in range(20):
                await connection.execute("UPDATE counter SET n = n + 1 WHERE id = 9")

    await asyncio.gather(*(increment() for _ in range(8)))
    connection = await psycopg.AsyncConnection.connect(DSN, autocommit=True)
    async with connection:
        cursor = await connection.execute("SELECT n FROM counter WHERE id = 9")
        assert await cursor.fetchone() == (160,)


with psycopg.connect(DSN, autocommit=True) as connection:
    types(connection)
    statements(connection)
blocks()
asyncio.run(asynchronous())
