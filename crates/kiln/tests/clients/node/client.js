// node-postgres with pg-cursor, pg-query-stream and pg-copy-streams against a server of Kiln. The environment says where it is.
// The driver reads values as text alone.

const assert = require('assert');
const { execSync } = require('child_process');
const { Readable } = require('stream');
const { pipeline } = require('stream/promises');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const copy = require('pg-copy-streams');

const VALUES = {
  SMALLINT: 5,
  INTEGER: -2147483648,
  BIGINT: '9007199254740993',
  'NUMERIC(12, 2)': '12.34',
  'DOUBLE PRECISION': 1.5,
  BOOLEAN: true,
  TEXT: 'Zürich',
  'VARCHAR(9)': 'x',
  'CHAR(3)': 'ab ',
  TIMESTAMPTZ: new Date(1e12),
  BYTEA: Buffer.from([0, 255]),
  UUID: '5bac6a3e-7039-29ff-b848-7560e86f147b',
  'INTEGER[]': [1, 2, null],
  'TEXT[]': ['a', '"b,', null],
};

async function types(client) {
  for (const [name, value] of Object.entries(VALUES)) {
    for (const sent of [value, null]) {
      // Unnamed, and prepared under a name.
      for (const prepared of [undefined, `a ${name}`, `a ${name}`]) {
        const found = await client.query({ text: `SELECT $1::${name} AS v`, values: [sent], name: prepared });
        assert.deepStrictEqual(found.rows[0].v, sent, name);
      }
    }
  }
}

async function statements(client) {
  await client.query('CREATE TABLE item (id INT PRIMARY KEY, name TEXT)');
  const inserted = await client.query("INSERT INTO item SELECT i, 'item ' || i FROM generate_series(1, 5000) AS g(i)");
  assert.strictEqual(inserted.rowCount, 5000);
  const error = await client.query('INSERT INTO item VALUES (1, NULL)').catch((error) => error);
  assert.deepStrictEqual([error.code, error.constraint, error.severity], ['23505', 'item_pkey', 'ERROR']);
  const several = await client.query("SELECT 1 AS a; UPDATE item SET name = 'x' WHERE id = 1; SELECT 2 AS b");
  assert.deepStrictEqual(several.map((result) => `${result.command} ${result.rowCount}`), ['SELECT 1', 'UPDATE 1', 'SELECT 1']);
  const found = await client.query('SELECT id FROM item WHERE id = ANY($1)', [[2, 7777]]);
  assert.deepStrictEqual(found.rows, [{ id: 2 }]);
  await client.query(`CREATE PROCEDURE add(a INT, INOUT b INT, OUT c TEXT) LANGUAGE plpgsql AS
    $$ BEGIN b := a + b; c := 'x' || b; END $$`);
  assert.deepStrictEqual((await client.query('CALL add($1, $2, NULL)', [3, 4])).rows, [{ b: 7, c: 'x7' }]);
  const notices = [];
  client.once('notice', (notice) => notices.push(notice.message));
  await client.query("DO $$ BEGIN RAISE NOTICE 'free: %', 7; END $$");
  assert.deepStrictEqual(notices, ['free: 7']);
}

async function blocks(client) {
  await client.query('BEGIN');
  await client.query("UPDATE item SET name = 'a' WHERE id = 1");
  await client.query('SAVEPOINT inner');
  await assert.rejects(client.query('SELECT 1 / 0'), { code: '22012' });
  await assert.rejects(client.query('SELECT 1'), { code: '25P02' });
  await client.query('ROLLBACK TO inner');
  await client.query('COMMIT');
  assert.strictEqual((await client.query('SELECT name FROM item WHERE id = 1')).rows[0].name, 'a');
}

async function cursors(client) {
  const cursor = client.query(new Cursor('SELECT id FROM item WHERE id > $1 ORDER BY id', [10]));
  let count = 0;
  for (let rows = await cursor.read(100); rows.length > 0; rows = await cursor.read(1000)) count += rows.length;
  assert.strictEqual(count, 4990);
  await cursor.close();
  // One that is closed before its end, and one whose statement fails.
  const early = client.query(new Cursor('SELECT id FROM item'));
  assert.strictEqual((await early.read(1)).length, 1);
  await early.close();
  const failing = client.query(new Cursor('SELECT 1 / 0'));
  await assert.rejects(failing.read(1), { code: '22012' });
  count = 0;
  for await (const row of client.query(new QueryStream('SELECT id FROM item', [], { batchSize: 100 }))) count += row.id > 0;
  assert.strictEqual(count, 5000);
}

async function copies(client) {
  const rows = Array.from({ length: 1000 }, (_, i) => `${10000 + i},"a, ${i}"\n`);
  await pipeline(Readable.from(rows), client.query(copy.from('COPY item FROM STDIN (FORMAT csv)')));
  let text = '';
  for await (const piece of client.query(copy.to('COPY (SELECT * FROM item WHERE id >= 10000 ORDER BY id) TO STDOUT'))) text += piece;
  assert.strictEqual(text.split('\n').length, 1001);
  assert.ok(text.startsWith('10000\ta, 0\n'));
  const twice = pipeline(Readable.from(['20000,x\n', '10000,x\n']), client.query(copy.from('COPY item FROM STDIN (FORMAT csv)')));
  await assert.rejects(twice, { code: '23505' });
  assert.strictEqual((await client.query('SELECT count(*)::INT AS n FROM item')).rows[0].n, 6000);
}

async function cancellation() {
  const client = new Client({ statement_timeout: 200, application_name: 'a name', options: '-c search_path=public' });
  await client.connect();
  await assert.rejects(client.query('SELECT count(*) FROM generate_series(1, 1000000000)'), { code: '57014' });
  assert.strictEqual((await client.query('SHOW application_name')).rows[0].application_name, 'a name');
  const slow = client.query("SET statement_timeout = 0; SELECT count(*) FROM generate_series(1, 1000000000)");
  const other = new Client();
  await new Promise((resolve) => setTimeout(resolve, 200));
  other.connection.on('connect', () => other.connection.cancel(client.processID, client.secretKey));
  other.connection.connect(Number(process.env.PGPORT), process.env.PGHOST);
  await assert.rejects(slow, { code: '57014' });
  await client.end();
}

async function pool() {
  const pool = new Pool({ max: 5 });
  const buys = Array.from({ length: 100 }, () => pool.query("UPDATE item SET name = name || 'x' WHERE id = 2 RETURNING id"));
  assert.strictEqual((await Promise.all(buys)).length, 100);
  const { rows } = await pool.query('SELECT length(name) AS n FROM item WHERE id = 2');
  assert.strictEqual(rows[0].n, 106);
  await pool.end();
}

async function restart(client) {
  // It is told why, and then that the connection is gone.
  const ended = new Promise((resolve) => client.on('error', resolve));
  execSync(process.env.KILN_RESTART);
  assert.strictEqual((await ended).code, '57P01');
  const again = new Client({ connectionString: process.env.KILN_URL });
  await again.connect();
  assert.strictEqual((await again.query('SELECT count(*)::INT AS n FROM item')).rows[0].n, 6000);
  await again.end();
}

(async () => {
  const client = new Client();
  await client.connect();
  for (const part of [types, statements, blocks, cursors, copies, cancellation, pool, restart]) await part(client);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
