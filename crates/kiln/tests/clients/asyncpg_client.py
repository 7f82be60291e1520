"""asyncpg against a server of Kiln: values in the binary format, prepared statements, blocks, cursors, COPY, a pool, cancellation, a restart
of the server. The environment says where it is.
"""

import asyncio
import datetime
import io
import os
from decimal import Decimal
from uuid import UUID

import asyncpg

MOMENT = datetime.datetime(2026, 11, 23, 12, 30, 0, 500)
VALUES = {
    "SMALLINT": 5,
    "INTEGER": -(2**31),
    "BIGINT": 2**62,
    "NUMERIC(12, 2)": Decimal("12.34"),
    "DOUBLE PRECISION": 1.5,
    "BOOLEAN": True,
    "TEXT": "Zürich",
    "VARCHAR(9)": "x",
    "CHAR(3)": "ab ",
    "DATE": datetime.date(2026, 1, 2),
    "TIME": MOMENT.time(),
    "TIMESTAMP": MOMENT,
    "TIMESTAMPTZ": MOMENT.replace(tzinfo=datetime.timezone.utc),
    "INTERVAL": datetime.timedelta(days=3, seconds=5, microseconds=7),
    "UUID": UUID("5bac6a3e-7039-29ff-b848-7560e86f147b"),
    "BYTEA": b"\0\xff",
    "TEXT[]": ["a", None, '"b,'],
}


async def fails(error, future):
    try:
        await future
    except error as caught:
        return caught
    raise AssertionError(f"{error} was expected")


async def types(connection):
    for name, value in VALUES.items():
        for sent in (value, None):
            found = await connection.fetchval(f"SELECT $1::{name}", sent)
            assert found == sent, (name, sent, found)
    for name, value in VALUES.items():
        name = name.split("(")[0]
        if name not in ("TEXT[]", "CHAR"):
            sent = [value, None, value]
            found = await connection.fetchval(f"SELECT $1::{name}[]", sent)
            assert found == sent, (name, sent, found)
            assert await connection.fetchval(f"SELECT $1 = ANY($2::{name}[])", value, sent) is True, name
    assert await connection.fetchval("SELECT sum(x) FROM unnest($1::BIGINT[]) x", [1, 2**40]) == 1 + 2**40


async def statements(connection):
    await connection.execute("CREATE TABLE stock (item INT PRIMARY KEY, free INT NOT NULL, price NUMERIC(8, 2))")
    rows = [(i, 1_000, Decimal("9.99")) for i in range(10)]
    await connection.executemany("INSERT INTO stock VALUES ($1, $2, $3)", rows)
    again = [(100, 1, None), (1, 1, None)]
    error = await fails(
        asyncpg.UniqueViolationError, connection.executemany("INSERT INTO stock VALUES ($1, $2, $3)", again)
    )
    assert (error.sqlstate, error.constraint_name) == ("23505", "stock_pkey")
    returned = await connection.fetchmany("UPDATE stock SET free = free WHERE item = $1 RETURNING item", [(1,), (2,)])
    assert [row["item"] for row in returned] == [1, 2]
    statement = await connection.prepare("SELECT item, price FROM stock WHERE item < $1 ORDER BY item")
    assert [column.name for column in statement.get_attributes()] == ["item", "price"]
    assert [parameter.name for parameter in statement.get_parameters()] == ["int4"]
    assert [tuple(row) for row in await statement.fetch(2)] == [(0, Decimal("9.99")), (1, Decimal("9.99"))]
    await connection.execute(
        "CREATE PROCEDURE add(a INT, INOUT b INT, OUT c TEXT) LANGUAGE plpgsql AS"
        " $$ BEGIN b := a + b; c := 'x' || b; END $$"
    )
    assert tuple(await connection.fetchrow("CALL add($1, $2, NULL)", 3, 4)) == (7, "x7")
    named = ["x", "y"]
    assert await connection.fetchval("SELECT 'y' = ANY($1::TEXT[])", named) is True


async def blocks(connection):
    async with connection.transaction():
        await connection.execute("UPDATE stock SET free = free - 1 WHERE item = $1", 3)
        try:
            # A block in a block is a savepoint.
            async with connection.transaction():
                await connection.execute("UPDATE stock SET free = 0 WHERE item = $1", 3)
                await connection.execute("SELECT 1 / 0")
        except asyncpg.DivisionByZeroError:
            pass
    async with connection.transaction(isolation="serializable", readonly=True, deferrable=True):
        rows = await connection.fetch("SELECT free FROM stock WHERE item < $1 ORDER BY item", 4)
    assert [row["free"] for row in rows] == [1_000, 1_000, 1_000, 999], rows


async def copies(connection):
    await connection.execute("CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2))")
    records = [(i, None if i % 2 else f"item {i}", Decimal(i)) for i in range(5_000)]
    assert await connection.copy_records_to_table("item", records=records) == "COPY 5000"
    await fails(asyncpg.UniqueViolationError, connection.copy_records_to_table("item", records=records[7:8]))
    for options in ({"format": "csv", "header": True}, {"format": "binary"}, {}):
        data = io.BytesIO()
        assert await connection.copy_from_query("SELECT * FROM item WHERE id < 4", output=data, **options) == "COPY 4"
        await connection.execute("DELETE FROM item WHERE id < 4")
        data.seek(0)
        assert await connection.copy_to_table("item", source=data, **options) == "COPY 4"
    assert await connection.fetchval("SELECT sum(price) FROM item") == 12_497_500


async def cursors(connection):
    async with connection.transaction():
        count = 0
        async for _ in connection.cursor("SELECT id FROM item ORDER BY id", prefetch=100):
            count += 1
        assert count == 5_000
        cursor = await connection.cursor("SELECT id FROM item WHERE id >= $1 ORDER BY id", 5)
        assert [row["id"] for row in await cursor.fetch(3)] == [5, 6, 7]
        assert await cursor.forward(10) == 10
        assert (await cursor.fetchrow())["id"] == 18


async def pool(connection):
    async def buy(clients):
        for _ in range(20):
            await clients.execute("UPDATE stock SET free = free - 1 WHERE item = 0")

    async with asyncpg.create_pool(min_size=2, max_size=8) as clients:
        # What one does to its connection the next one does not see.
        async with clients.acquire() as client:
            await client.execute("SET statement_timeout = 1; PREPARE named AS SELECT 1")
        await asyncio.gather(*(buy(clients) for _ in range(20)))
    assert await connection.fetchval("SELECT free FROM stock WHERE item = 0") == 600


async def cancellation(connection):
    slow = connection.execute("SELECT count(*) FROM generate_series(1, 1000000000)", timeout=0.2)
    await fails(asyncio.TimeoutError, slow)
    assert await connection.fetchval("SELECT 1") == 1
    messages = []
    connection.add_log_listener(lambda _, message: messages.append(message.message))
    await connection.execute("DO $$ BEGIN RAISE NOTICE 'free: %', 7; END $$")
    await asyncio.sleep(0.05)
    assert messages == ["free: 7"], messages


async def restart(connection):
    process = await asyncio.create_subprocess_shell(os.environ["KILN_RESTART"])
    assert await process.wait() == 0
    await fails((asyncpg.PostgresConnectionError, asyncpg.InterfaceError), connection.execute("SELECT 1"))
    connection = await asyncpg.connect()
    assert await connection.fetchval("SELECT count(*) FROM item") == 5_000
    await connection.close()


async def main():
    connection = await asyncpg.connect()
    for part in (types, statements, blocks, copies, cursors, pool, cancellation, restart):
        await part(connection)


asyncio.run(main())
