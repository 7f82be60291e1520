#!/usr/bin/env bash
# pgbench: its tables, loaded from both sides, its transactions in every mode, statements on one row, a connection for each transaction.
# `.ci/clients` sets the environment; PGBENCH_SCALE is 10 unless it says otherwise.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scale=${PGBENCH_SCALE:-10}
fail() { echo "pgbench: $*" >&2; exit 1; }
value() { psql -X -A -t -c "$1"; }
# Two clients may want one account at one time, and one of them has seen its balance: then it tries again (40001).
bench() {
    local report
    report=$(pgbench --verbose-errors --max-tries=10 -c 4 -j 2 "$@" 2>&1) || fail "$report"
    grep -q 'number of failed transactions: 0 ' <<<"$report" || fail "$report"
}

pgbench -i -q -s "$scale" 2>&1 | tail -1
[ "$(value 'SELECT count(*), max(aid) FROM pgbench_accounts')" = "$((scale * 100000))|$((scale * 100000))" ] || fail "rows are missing"
# Tables that are there are dropped and truncated.
pgbench -i -q -s 1 -I dtGvp 2>&1 | tail -1
[ "$(value 'SELECT count(*) FROM pgbench_accounts')" = 100000 ] || fail "rows are missing"

for mode in simple extended prepared; do
    # Without -n it truncates the history first.
    bench -M "$mode" -t 50
    bench -n -S -M "$mode" -t 50
    bench -n -N -M "$mode" -t 50
    [ "$(value 'SELECT count(*) FROM pgbench_history')" = 400 ] || fail "the history of $mode has other rows"
done
sums="SELECT (SELECT sum(bbalance) FROM pgbench_branches) - (SELECT sum(tbalance) FROM pgbench_tellers)"
[ "$(value "$sums")" = 0 ] || fail "branches and tellers differ"

cat >"$work/hot.sql" <<'END'
\set delta random(1, 9)
BEGIN;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = 1;
END;
END
bench -n -f "$work/hot.sql" -M prepared -t 100
bench -n -f "$work/hot.sql" -C -t 20
bench -n -S -C -t 20
[ "$(value "$sums")" = 0 ] || fail "branches and tellers differ"
