// pgx against a server of Kiln: all modes of execution, a pool, batches, COPY, savepoints, cancellation, a restart of the server.
// The environment says where it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// state fails unless the error is the database's, with this SQLSTATE.
func state(err error, expected string) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != expected {
		panic(fmt.Sprintf("%s was expected, and not %v", expected, err))
	}
}

func same[T comparable](found, expected T) {
	if found != expected {
		panic(fmt.Sprintf("%v was expected, and not %v", expected, found))
	}
}

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

func types(pool *pgxpool.Pool) {
	moment := time.Date(2026, 11, 23, 12, 30, 0, 500_000, time.UTC)
	for _, mode := range modes {
		var small int16
		var number int32
		var large int64
		var double float64
		var truth bool
		var text string
		var bytes []byte
		var when time.Time
		query := "SELECT $1::SMALLINT, $2::INT, $3::BIGINT, $4::DOUBLE PRECISION, $5::BOOLEAN, $6::TEXT, $7::BYTEA, $8::TIMESTAMPTZ"
		row := pool.QueryRow(ctx, query, mode, int16(-5), int32(-1<<31), int64(1<<62), 1.5, true, "Zürich'", []byte{0, 255}, moment)
		check(row.Scan(&small, &number, &large, &double, &truth, &text, &bytes, &when))
		same(fmt.Sprint(small, number, large, double, truth, text, bytes, when.Equal(moment)),
			fmt.Sprint(-5, -1<<31, 1<<62, 1.5, true, "Zürich'", []byte{0, 255}, true))
		var numeric pgtype.Numeric
		var numbers []int32
		var texts []string
		var date pgtype.Date
		var interval pgtype.Interval
		row = pool.QueryRow(ctx, "SELECT $1::NUMERIC(8, 2), $2::INT[], $3::TEXT[], $4::DATE, $5::INTERVAL", mode,
			"12.30", []int32{1, -2}, []string{"a", "\"b,"}, moment, time.Second)
		check(row.Scan(&numeric, &numbers, &texts, &date, &interval))
		value, err := numeric.Float64Value()
		check(err)
		same(fmt.Sprint(value.Float64, numbers, texts, date.Time.Day(), interval.Microseconds),
			fmt.Sprint(12.3, []int32{1, -2}, []string{"a", "\"b,"}, 23, 1_000_000))
		var none *int32
		var nowhere *string
		check(pool.QueryRow(ctx, "SELECT $1::INT, $2::TEXT", mode, nil, nil).Scan(&none, &nowhere))
		if none != nil || nowhere != nil {
			panic("NULL was expected")
		}
	}
	var id pgtype.UUID
	check(pool.QueryRow(ctx, "SELECT $1::UUID", [16]byte{1, 2}).Scan(&id))
	same(id.Bytes, [16]byte{1, 2})
}

func statements(pool *pgxpool.Pool) {
	_, err := pool.Exec(ctx, `CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2), at TIMESTAMPTZ);
		CREATE PROCEDURE add(a INT, INOUT b INT, OUT c TEXT) LANGUAGE plpgsql AS
		$$ BEGIN b := a + b; c := 'x' || b; END $$`)
	check(err)
	row := func(i int) ([]any, error) { return []any{i, fmt.Sprint("item ", i), "1.50", time.Now()}, nil }
	columns := []string{"id", "name", "price", "at"}
	count, err := pool.CopyFrom(ctx, pgx.Identifier{"item"}, columns, pgx.CopyFromSlice(5_000, row))
	check(err)
	same(count, 5_000)
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"item"}, columns, pgx.CopyFromSlice(5_000, row))
	state(err, "23505")
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"item"}, columns, pgx.CopyFromFunc(func() ([]any, error) { return nil, errors.New("no more") }))
	state(err, "57014")
	var b int32
	var c string
	check(pool.QueryRow(ctx, "CALL add($1, $2, NULL)", 3, 4).Scan(&b, &c))
	same(fmt.Sprint(b, c), "7x7")
	check(pool.QueryRow(ctx, "SELECT count(*) FROM item WHERE id = ANY($1)", []int{1, 2, 7_777}).Scan(&b))
	same(b, 2)
	rows, err := pool.Query(ctx, "SELECT id FROM item ORDER BY id")
	check(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	check(err)
	same(len(ids), 5_000)
	_, err = pool.Exec(ctx, "INSERT INTO item VALUES (1)")
	state(err, "23505")
}

func batches(pool *pgxpool.Pool) {
	batch := &pgx.Batch{}
	for id := range 100 {
		batch.Queue("UPDATE item SET name = $1 WHERE id = $2", "b", id)
	}
	batch.Queue("SELECT count(*) FROM item WHERE name = 'b'").QueryRow(func(row pgx.Row) error {
		var count int
		err := row.Scan(&count)
		same(count, 100)
		return err
	})
	check(pool.SendBatch(ctx, batch).Close())
	// An error undoes what comes with it.
	batch = &pgx.Batch{}
	batch.Queue("UPDATE item SET name = 'c' WHERE id = 1")
	batch.Queue("SELECT 1 / 0")
	state(pool.SendBatch(ctx, batch).Close(), "22012")
	var name string
	check(pool.QueryRow(ctx, "SELECT name FROM item WHERE id = 1").Scan(&name))
	same(name, "b")
}

func blocks(pool *pgxpool.Pool) {
	check(pgx.BeginFunc(ctx, pool, func(outer pgx.Tx) error {
		_, err := outer.Exec(ctx, "UPDATE item SET name = 'outer' WHERE id = 2")
		check(err)
		state(pgx.BeginFunc(ctx, outer, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, "UPDATE item SET name = 'inner' WHERE id = 2")
			check(err)
			_, err = inner.Exec(ctx, "SELECT 1 / 0")
			return err
		}), "22012")
		_, err = outer.Exec(ctx, "DECLARE c CURSOR FOR SELECT id FROM item ORDER BY id")
		check(err)
		rows, err := outer.Query(ctx, "FETCH 3 FROM c")
		check(err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		same(len(ids), 3)
		return err
	}))
	var name string
	check(pool.QueryRow(ctx, "SELECT name FROM item WHERE id = 2").Scan(&name))
	same(name, "outer")
	options := pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}
	state(pgx.BeginTxFunc(ctx, pool, options, func(block pgx.Tx) error {
		_, err := block.Exec(ctx, "DELETE FROM item")
		return err
	}), "25006")
}

func connection(pool *pgxpool.Pool) {
	acquired, err := pool.Acquire(ctx)
	check(err)
	defer acquired.Release()
	plain := acquired.Conn().PgConn()
	text := &strings.Builder{}
	tag, err := plain.CopyTo(ctx, text, "COPY (SELECT id, name FROM item WHERE id = 2) TO STDOUT")
	check(err)
	same(tag.String()+": "+text.String(), "COPY 1: 2\touter\n")
	results, err := plain.Exec(ctx, "SELECT 1; SELECT 2").ReadAll()
	check(err)
	same(len(results), 2)
	pipeline := plain.StartPipeline(ctx)
	pipeline.SendQueryParams("SELECT $1::INT", [][]byte{[]byte("1")}, nil, nil, nil)
	pipeline.SendFlushRequest()
	check(pipeline.Flush())
	result, err := pipeline.GetResults()
	check(err)
	check(result.(*pgconn.ResultReader).Read().Err)
	check(pipeline.Sync())
	check(pipeline.Close())
	_, err = acquired.Conn().Prepare(ctx, "named", "SELECT * FROM item WHERE id = $1")
	check(err)
	check(acquired.Conn().Deallocate(ctx, "named"))
	check(acquired.Conn().DeallocateAll(ctx))
}

func cancellation(pool *pgxpool.Pool) {
	slow := "SELECT count(*) FROM generate_series(1, 1000000000)"
	limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := pool.Exec(limited, slow)
	if !errors.Is(err, context.DeadlineExceeded) {
		panic(err)
	}
	acquired, err := pool.Acquire(ctx)
	check(err)
	defer acquired.Release()
	go func() {
		time.Sleep(200 * time.Millisecond)
		check(acquired.Conn().PgConn().CancelRequest(ctx))
	}()
	_, err = acquired.Exec(ctx, slow)
	state(err, "57014")
	check(acquired.Ping(ctx))
}

func restart(pool *pgxpool.Pool) {
	check(exec.Command("sh", "-c", os.Getenv("KILN_RESTART")).Run())
	// The pool may try a connection that is gone before it makes another.
	var count int
	err := errors.New("it was never tried")
	for try := 0; try < 10 && err != nil; try++ {
		err = pool.QueryRow(ctx, "SELECT count(*) FROM item").Scan(&count)
	}
	check(err)
	same(count, 5_000)
}

func main() {
	pool, err := pgxpool.New(ctx, "")
	check(err)
	check(pool.Ping(ctx))
	for _, part := range []func(*pgxpool.Pool){types, statements, batches, blocks, connection, cancellation, restart} {
		part(pool)
	}
	pool.Close()
}
