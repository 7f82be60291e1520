#!/usr/bin/env bash
# psql: scripts with data in them, \copy, variables, transactions of a whole script, Ctrl-C, what a script ends with after an error,
# and a restart of the server. `.ci/clients` sets the environment.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
psql() { command psql -X -q -A -t "$@"; }

# Fails unless both texts are the same.
same() {
    [ "$1" = "$2" ] || { printf 'psql: expected\n%s\nand not\n%s\n' "$2" "$1" >&2; exit 1; }
}

cat >data.sql <<'END'
\set ON_ERROR_STOP on
CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price NUMERIC(8, 2));
COPY item FROM STDIN;
1	a\tb	1.50
2	\N	2
\.
COPY item (id, name) FROM STDIN WITH (FORMAT csv, HEADER);
id,name
3,"x, ""y"""
4,
\.
\copy item FROM STDIN csv
5,five,5
\.
\copy item TO 'item.csv' csv header
\copy (SELECT id FROM item WHERE id < 3) TO 'ids'
DELETE FROM item;
\copy item FROM 'item.csv' csv header
END
psql -f data.sql
same "$(cat item.csv)" 'id,name,price
1,a	b,1.50
2,,2.00
3,"x, ""y""",
4,,
5,five,5.00'
same "$(cat ids)" $'1\n2'
same "$(psql -c 'SELECT count(*), sum(price) FROM item')" '5|8.50'

# Variables, queries that make statements, values that make variables.
cat >words.sql <<'END'
\set id 3
\set text 'it''s'
SELECT :'text', name FROM item WHERE id = :id;
SELECT id AS first, price AS "cost" FROM item ORDER BY id LIMIT 1 \gset got_
\echo :got_first :got_cost
SELECT format('UPDATE item SET name = %L WHERE id = %s', 'n' || id, id) FROM item WHERE id < 3 ORDER BY id
\gexec
SELECT name FROM item WHERE id < 3 ORDER BY id \g (format=unaligned tuples_only=on recordsep=/)
\pset null (none)
SELECT price FROM item WHERE id = 4;
\x on
SELECT id, name FROM item WHERE id = 1;
\if :{?got_first}
\echo yes
\else
\echo no
\endif
\errverbose
SELECT * FROM nothing;
\echo :ERROR :SQLSTATE
\timing on
SELECT 1;
END
words=$(psql -f words.sql 2>errors)
same "$(sed 's/^Time: .*/Time/' <<<"$words")" "it's|x, \"y\"
1 1.50
n1/n2
(none)
id|1
name|n1
yes
There is no previous error.
true 42P01
?column?|1
Time"
same "$(cat errors)" 'psql:words.sql:19: ERROR:  relation "nothing" does not exist
LINE 1: SELECT * FROM nothing;
                      ^'

# A script that is one transaction, and how scripts end.
status=0
psql -1 -v ON_ERROR_STOP=1 -c 'DELETE FROM item' -c 'SELECT 1 / 0' 2>errors || status=$?
same "$status $(cat errors)" '1 ERROR:  division by zero'
printf 'DELETE FROM item WHERE id = 1;\nSELECT 1 / 0;\n' >fails.sql
status=0
psql -1 -v ON_ERROR_STOP=1 -f fails.sql 2>errors || status=$?
same "$status $(cat errors)" '3 psql:fails.sql:2: ERROR:  division by zero'
psql -1 -f fails.sql 2>errors
same "$(psql -c 'SELECT count(*) FROM item')" 5
status=0
psql -c "COPY item FROM STDIN" 2>errors <<<$'1\tx\t1' || status=$?
same "$status $(head -1 errors)" '1 ERROR:  duplicate key value violates unique constraint "item_pkey"'

# Blocks with cursors, prepared statements and savepoints; errors in a block are undone alone.
cat >blocks.sql <<'END'
\set ON_ERROR_ROLLBACK on
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM item ORDER BY id;
FETCH 2 FROM c;
FETCH PRIOR FROM c;
SELECT 1 / 0;
MOVE LAST IN c;
FETCH RELATIVE 0 FROM c;
PREPARE named (INT) AS SELECT name FROM item WHERE id = $1;
EXECUTE named(5);
COMMIT;
EXECUTE named(5);
DEALLOCATE named;
\set FETCH_COUNT 2
SELECT id FROM item ORDER BY id;
END
same "$(psql -f blocks.sql 2>errors | tr '\n' ' ')" '1 2 1 5 five five 1 2 3 4 5 '
same "$(cat errors)" 'psql:blocks.sql:6: ERROR:  division by zero'

# Ctrl-C.
command psql -X -q -c "SELECT count(*) FROM generate_series(1, 10000000000)" 2>errors &
slow=$!
for _ in $(seq 20); do
    sleep 0.3
    kill -INT "$slow" 2>/dev/null || break
done
wait "$slow" || true
same "$(tail -1 errors)" 'ERROR:  canceling statement due to user request'

# A password by \password, and none.
role() { psql -c "CREATE ROLE $1 LOGIN"; psql -c "\\password $1" <<<"$2"$'\n'"$2" >/dev/null 2>&1; }
role ada secret
same "$(PGPASSWORD=secret psql -U ada -c 'SELECT current_user')" ada
role bob ''
status=0
PGPASSWORD='' psql -w -U bob -c 'SELECT 1' 2>errors || status=$?
same "$status" 2

# A session whose server ends is told so, and reconnects.
cat >again.sql <<'END'
SELECT 1;
\! sh -c "$KILN_RESTART"
\connect
SELECT count(*) FROM item;
\! sh -c "$KILN_RESTART"
SELECT 2;
END
status=0
same "$(psql -f again.sql 2>errors | tr '\n' ' ')" '1 5 '
grep -q 'terminating connection due to administrator command' errors || { cat errors >&2; exit 1; }
