"""asyncpg against a server of Kiln: prepared statements in the binary format, blocks, many connections.

Run as: asyncpg_client.py PORT
"""

import asyncio
import sys
from decimal import Decimal

import asyncpg


async def main():
    connection = await asyncpg.connect(host="127.0.0.1", port=int(sys.argv[1]), user="kiln")
    await connection.execute("CREATE TABLE stock (item INT PRIMARY KEY, free INT NOT NULL, price NUMERIC(8, 2))")
    await connection.executemany(
        "INSERT INTO stock VALUES ($1, $2, $3)", [(i, 1_000, Decimal("9.99")) for i in range(10)]
    )
    assert await connection.fetchval("SELECT price FROM stock WHERE item = $1", 3) == Decimal("9.99")
    async with connection.transaction():
        await connection.execute("UPDATE stock SET free = free - 1 WHERE item = $1", 3)
    try:
        async with connection.transaction():
            await connection.execute("UPDATE stock SET free = 0 WHERE item = $1", 3)
            await connection.execute("SELECT 1 / 0")
    except asyncpg.DivisionByZeroError:
        pass
    rows = await connection.fetch("SELECT item, free FROM stock WHERE item < $1 ORDER BY item", 4)
    assert [tuple(row) for row in rows] == [(0, 1_000), (1, 1_000), (2, 1_000), (3, 999)], rows

    async def buy():
        client = await asyncpg.connect(host="127.0.0.1", port=int(sys.argv[1]), user="kiln")
        for _ in range(20):
            await client.execute("UPDATE stock SET free = free - 1 WHERE item = 0")
        await client.close()

    await asyncio.gather(*(buy() for _ in range(20)))
    assert await connection.fetchval("SELECT free FROM stock WHERE item = 0") == 600
    await connection.close()


asyncio.run(main())
