"""psycopg 3 against a server of Kiln: types in both formats, prepared statements, pipelines, blocks, COPY, cursors, cancellation, async,
a restart of the server. The environment says where it is.
"""

import asyncio
import datetime
import os
import subprocess
import threading
from decimal import Decimal
from uuid import UUID

import psycopg

MOMENT = datetime.datetime(2026, 11, 23, 12, 30, 0, 500)
UTC = datetime.timezone.utc
UUID_VALUE = UUID("5bac6a3e-7039-29ff-b848-7560e86f147b")
# Values of each type.
VALUES = {
    "SMALLINT": [5, -32768],
    "INTEGER": [1, -(2**31)],
    "BIGINT": [2**63 - 1],
    "NUMERIC(12, 2)": [Decimal("12.34"), Decimal("-0.01")],
    "DOUBLE PRECISION": [1.5, 1e300, float("inf")],
    "BOOLEAN": [True, False],
    "TEXT": ["Zürich", "", "a\"b\\c'"],
    "VARCHAR(10)": ["x"],
    "CHAR(3)": ["ab "],
    "DATE": [datetime.date(2026, 11, 23), datetime.date(1, 1, 1)],
    "TIME": [datetime.time(12, 30, 0, 500), datetime.time(0)],
    "TIMESTAMP": [MOMENT],
    "TIMESTAMPTZ": [MOMENT.replace(tzinfo=UTC)],
    "INTERVAL": [datetime.timedelta(days=3, seconds=5, microseconds=7)],
    "UUID": [UUID_VALUE],
    "BYTEA": [b"\x00\xff"],
    "INTEGER[]": [[1, 2, None], []],
    "BIGINT[]": [[2**40]],
    "TIME[]": [[datetime.time(1, 2)]],
    "TEXT[]": [["a", None, '"x,', ""]],
    "NUMERIC[]": [[Decimal("1.5")]],
    "TIMESTAMPTZ[]": [[MOMENT.replace(tzinfo=UTC)]],
    "BYTEA[]": [[b"\x01"]],
    "UUID[]": [[UUID_VALUE]],
}


def fails(error, run, *arguments, **keywords):
    try:
        run(*arguments, **keywords)
    except error as caught:
        return caught
    raise AssertionError(f"{error} was expected")


def types(connection):
    for name, values in VALUES.items():
        for value in [*values, None]:
            for placeholder in ("%s", "%t", "%b"):
                for binary in (False, True):
                    cursor = connection.cursor(binary=binary)
                    found = cursor.execute(f"SELECT {placeholder}::{name}", (value,)).fetchone()
                    assert found == (value,), (name, placeholder, binary, value, found)


def columns(connection):
    for number, (name, values) in enumerate(VALUES.items()):
        connection.execute(f"CREATE TABLE column{number} (id INT PRIMARY KEY, value {name})")
        rows = list(enumerate([*values, None]))
        connection.cursor().executemany(f"INSERT INTO column{number} VALUES (%s, %b)", rows)
        read = f"SELECT * FROM column{number} ORDER BY id"
        for binary in (False, True):
            assert connection.cursor(binary=binary).execute(read).fetchall() == rows, name
        for form in ("text", "csv", "binary"):
            with connection.cursor().copy(f"COPY column{number} TO STDOUT (FORMAT {form})") as copy:
                sent = b"".join(bytes(part) for part in copy)
            connection.execute(f"DELETE FROM column{number}")
            with connection.cursor().copy(f"COPY column{number} FROM STDIN (FORMAT {form})") as copy:
                copy.write(sent)
            assert connection.execute(read).fetchall() == rows, (name, form)
        connection.execute(f"DROP TABLE column{number}")


def statements(connection):
    connection.execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)")
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO counter VALUES (%s, 0) RETURNING id", [(i,) for i in range(20)], returning=True)
    assert cursor.fetchone() == (0,) and cursor.nextset() and cursor.fetchone() == (1,)
    # Prepared at the fifth time; with room for few of them, others are given up.
    connection.prepared_max = 3
    for n in range(12):
        updated = connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s RETURNING n", (1,))
        assert updated.fetchone() == (n + 1,)
    for offset in range(8):
        for _ in range(6):
            found = connection.execute(f"SELECT id + {offset} FROM counter WHERE id = %s", (3,))
            assert found.fetchone() == (3 + offset,)
    with connection.pipeline():
        cursors = [
            connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s RETURNING n", (i % 3,)) for i in range(30)
        ]
    assert [cursor.fetchone()[0] for cursor in cursors[-3:]] == [10, 22, 10]
    # An error in a pipeline undoes what comes with it.
    def failing():
        with connection.pipeline():
            connection.execute("UPDATE counter SET n = -1 WHERE id = 19")
            connection.execute("SELECT 1 / 0")

    # Which of both depends on how soon the error arrives.
    fails((psycopg.errors.DivisionByZero, psycopg.errors.PipelineAborted), failing)
    assert connection.execute("SELECT n FROM counter WHERE id = 19").fetchone() == (0,)
    error = fails(psycopg.errors.UniqueViolation, connection.execute, "INSERT INTO counter VALUES (1, 1)")
    assert (error.sqlstate, error.diag.constraint_name) == ("23505", "counter_pkey")
    named(connection)
    assert connection.execute("SELECT id FROM counter WHERE id = ANY(%s)", ([2, 777],)).fetchall() == [(2,)]
    found = connection.execute("SELECT length(%s), repeat('x', 3000000)", ("y" * 1_000_000,)).fetchone()
    assert found == (1_000_000, "x" * 3_000_000)
    notices = []
    connection.add_notice_handler(lambda notice: notices.append((notice.severity, notice.message_primary)))
    connection.execute("DO $$ BEGIN RAISE NOTICE 'free: %', 7; END $$")
    assert notices == [("NOTICE", "free: 7")], notices
    connection.execute(
        "CREATE PROCEDURE add(a INT, INOUT b INT, OUT c TEXT) LANGUAGE plpgsql AS"
        " $$ BEGIN b := a + b; c := 'x' || b; END $$"
    )
    assert connection.execute("CALL add(%s, %s, NULL)", (3, 4)).fetchone() == (7, "x7")
    quoted = psycopg.ClientCursor(connection).execute("SELECT %s, %s", ("it's", datetime.date(2026, 1, 1)))
    assert quoted.fetchone() == ("it's", datetime.date(2026, 1, 1))


def named(connection):
    """The objects that errors name."""
    connection.execute("CREATE TABLE owner (id INT PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE thing (id INT PRIMARY KEY, name TEXT NOT NULL, n INT CONSTRAINT small CHECK (n < 10),"
        " owner INT CONSTRAINT owned REFERENCES owner (id))"
    )
    connection.execute("INSERT INTO owner VALUES (1)")
    connection.execute("INSERT INTO thing VALUES (1, 'a', 1, 1)")
    connection.execute("CREATE FUNCTION fail() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN"
                       " RAISE EXCEPTION 'no' USING SCHEMA = 's', TABLE = 't', COLUMN = 'c', DATATYPE = 'd',"
                       " CONSTRAINT = 'n'; END $$")
    for statement, expected in [
        ("INSERT INTO thing VALUES (1, 'a', 1, 1)", ("23505", "public", "thing", None, None, "thing_pkey")),
        ("INSERT INTO thing VALUES (2, NULL, 1, 1)", ("23502", "public", "thing", "name", None, None)),
        ("INSERT INTO thing VALUES (2, 'a', 11, 1)", ("23514", "public", "thing", None, None, "small")),
        ("INSERT INTO thing VALUES (2, 'a', 1, 2)", ("23503", "public", "thing", None, None, "owned")),
        ("DELETE FROM owner", ("23503", "public", "thing", None, None, "owned")),
        ("SELECT 'x'::INT", ("22P02", None, None, None, None, None)),
        ("SELECT fail()", ("P0001", "s", "t", "c", "d", "n")),
    ]:
        diag = fails(psycopg.Error, connection.execute, statement).diag
        found = (diag.sqlstate, diag.schema_name, diag.table_name, diag.column_name, diag.datatype_name,
                 diag.constraint_name)
        assert found == expected, (statement, found)


def blocks():
    with psycopg.connect() as connection:
        connection.execute("UPDATE counter SET n = 100 WHERE id = 5")
        connection.commit()
        connection.execute("UPDATE counter SET n = 200 WHERE id = 5")
        connection.rollback()
        fails(psycopg.errors.DivisionByZero, connection.execute, "SELECT 1 / 0")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        # Blocks in blocks are savepoints.
        with connection.transaction():
            connection.execute("UPDATE counter SET n = n + 1 WHERE id = 5")
            for divisor in (0, 1):
                try:
                    with connection.transaction():
                        connection.execute("UPDATE counter SET n = n * 2 WHERE id = 5")
                        connection.execute("SELECT 1 / %s", (divisor,))
                except psycopg.errors.DivisionByZero:
                    pass
        assert connection.execute("SELECT n FROM counter WHERE id = 5").fetchone() == (202,)
        connection.rollback()
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        connection.read_only = connection.deferrable = True
        fails(psycopg.errors.ReadOnlySqlTransaction, connection.execute, "DELETE FROM counter")


def copies(connection):
    connection.execute("CREATE TABLE item (id INT PRIMARY KEY, price NUMERIC(10, 2), name TEXT)")
    types = ["int4", "numeric", "text"]
    rows = [(i, Decimal(i) / 4, None if i % 3 == 0 else f"item\t{i}\\") for i in range(2_000)]
    with connection.cursor() as cursor:
        for is_binary, part in ((False, rows[:1_000]), (True, rows[1_000:])):
            options = "(FORMAT binary)" if is_binary else ""
            with cursor.copy(f"COPY item FROM STDIN {options}") as copy:
                copy.set_types(types)
                for row in part:
                    copy.write_row(row)
            assert cursor.rowcount == 1_000
            with cursor.copy(f"COPY (SELECT * FROM item ORDER BY id) TO STDOUT {options}") as copy:
                copy.set_types(types)
                assert list(copy.rows()) == rows[: (2_000 if is_binary else 1_000)]

    def twice():
        with connection.cursor().copy("COPY item FROM STDIN") as copy:
            copy.write("5000\t1\tx\n1\t1\tx\n")

    def broken_off():
        with connection.cursor().copy("COPY item FROM STDIN") as copy:
            copy.write("5000\t1\tx\n")
            raise KeyError

    error = fails(psycopg.errors.UniqueViolation, twice)
    assert error.diag.context == "COPY item, line 2", error.diag.context
    fails(KeyError, broken_off)
    assert connection.execute("SELECT count(*) FROM item").fetchone() == (2_000,)


def cursors():
    with psycopg.connect() as connection:
        for binary in (False, True):
            with connection.cursor(name="all", binary=binary) as cursor:
                cursor.itersize = 100
                cursor.execute("SELECT id, price FROM item WHERE id >= %s ORDER BY id", (0,))
                assert cursor.fetchmany(2) == [(0, Decimal("0.00")), (1, Decimal("0.25"))]
                assert sum(1 for _ in cursor) == 1_998
        with connection.cursor(name="back", scrollable=True) as cursor:
            cursor.execute("SELECT id FROM item ORDER BY id")
            assert cursor.fetchmany(3) == [(0,), (1,), (2,)]
            cursor.scroll(-2)
            assert cursor.fetchone() == (1,)
            cursor.scroll(40, mode="absolute")
            assert cursor.fetchone() == (40,)
        held = connection.cursor(name="held", withhold=True)
        held.execute("SELECT id FROM item ORDER BY id")
        connection.commit()
        assert held.fetchone() == (0,)
        held.close()
        assert sum(1 for _ in connection.cursor().stream("SELECT id FROM item")) == 2_000


def cancellation(connection):
    for cancel in (connection.cancel, connection.cancel_safe):
        timer = threading.Timer(0.2, cancel)
        timer.start()
        fails(psycopg.errors.QueryCanceled, connection.execute, "SELECT count(*) FROM generate_series(1, 1000000000)")
        timer.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


async def asynchronous():
    async def increment():
        async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
            for _ in range(20):
                await connection.execute("UPDATE counter SET n = n + 1 WHERE id = 9")

    await asyncio.gather(*(increment() for _ in range(8)))
    async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
        cursor = await connection.execute("SELECT n FROM counter WHERE id = 9")
        assert await cursor.fetchone() == (160,)
        async with connection.cursor().copy("COPY item (id) FROM STDIN") as copy:
            await copy.write_row((7_777,))
        async with connection.pipeline():
            cursor = await connection.execute("SELECT count(*) FROM item")
        assert await cursor.fetchone() == (2_001,)


def restart(connection):
    subprocess.run(["sh", "-c", os.environ["KILN_RESTART"]], check=True)
    error = fails(psycopg.OperationalError, connection.execute, "SELECT 1")
    assert connection.closed, error
    with psycopg.connect() as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (2_001,)


with psycopg.connect(autocommit=True) as connection:
    types(connection)
    columns(connection)
    statements(connection)
    blocks()
    copies(connection)
    cursors()
    cancellation(connection)
    asyncio.run(asynchronous())
    restart(connection)
