import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.OffsetDateTime;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/**
 * pgjdbc against a server of Kiln: its modes and formats, batches, rows in portions, procedures with results, savepoints, COPY,
 * cancellation, a restart of the server. The environment says where it is.
 */
public class Client {
    static final String SLOW = "SELECT count(*) FROM generate_series(1, 1000000000)";

    interface Part {
        void run(Connection connection) throws Exception;
    }

    /** Runs a part in a connection with these further properties. */
    static void with(String properties, Part part) throws Exception {
        String[] names = {"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD"};
        Object[] values = new Object[names.length];
        for (int i = 0; i < names.length; i++) {
            values[i] = java.net.URLEncoder.encode(System.getenv(names[i]), "UTF-8");
        }
        String url = String.format("jdbc:postgresql://%s:%s/%s?user=%s&password=%s", values);
        try (Connection connection = DriverManager.getConnection(url + properties)) {
            part.run(connection);
        }
    }

    static void same(Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError(expected + " was expected, and not " + found);
        }
    }

    /** The SQLSTATE of the error that a part ends with. */
    static String state(Connection connection, Part part) throws Exception {
        try {
            part.run(connection);
        } catch (SQLException error) {
            return error.getSQLState();
        }
        return "none";
    }

    static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    static int number(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            rows.next();
            return rows.getInt(1);
        }
    }

    static void types(Connection connection) throws Exception {
        execute(connection, "DROP TABLE IF EXISTS kind");
        execute(connection, "CREATE TABLE kind (id INT PRIMARY KEY, n NUMERIC(10, 2), s TEXT, t TIMESTAMPTZ, b BYTEA, "
                + "f DOUBLE PRECISION, ok BOOLEAN, d DATE, u UUID, l BIGINT)");
        UUID uuid = UUID.fromString("5bac6a3e-7039-29ff-b848-7560e86f147b");
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO kind VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int id = 0; id < 12; id++) {
                boolean isNull = id % 2 == 1;
                insert.setInt(1, id);
                insert.setBigDecimal(2, isNull ? null : new BigDecimal("12.30"));
                insert.setString(3, isNull ? null : "Zürich'");
                insert.setTimestamp(4, isNull ? null : new Timestamp(1_000_000_000_000L));
                insert.setBytes(5, isNull ? null : new byte[] {0, -1});
                insert.setObject(6, isNull ? null : 1.5, Types.DOUBLE);
                insert.setObject(7, isNull ? null : true, Types.BOOLEAN);
                insert.setDate(8, isNull ? null : Date.valueOf("2026-11-23"));
                insert.setObject(9, isNull ? null : uuid);
                insert.setLong(10, 1L << 40);
                same(insert.executeUpdate(), 1);
            }
        }
        // The driver prepares it at the fifth time, and then asks for binary values.
        for (int id = 0; id < 12; id++) {
            try (PreparedStatement query = connection.prepareStatement("SELECT * FROM kind WHERE id = ?")) {
                query.setInt(1, id);
                ResultSet row = query.executeQuery();
                row.next();
                same(row.getLong(10), 1L << 40);
                if (id % 2 == 1) {
                    same(row.getString(3) == null && row.getTimestamp(4) == null && row.getObject(9) == null, true);
                    continue;
                }
                same(row.getBigDecimal(2), new BigDecimal("12.30"));
                same(row.getString(3), "Zürich'");
                same(row.getTimestamp(4).getTime(), 1_000_000_000_000L);
                same(row.getObject(4, OffsetDateTime.class).toEpochSecond(), 1_000_000_000L);
                same(row.getBytes(5)[1], (byte) -1);
                same(row.getDouble(6), 1.5);
                same(row.getBoolean(7), true);
                same(row.getDate(8), Date.valueOf("2026-11-23"));
                same(row.getObject(9), uuid);
            }
        }
        try (PreparedStatement query = connection.prepareStatement("SELECT count(*) FROM kind WHERE id = ANY(?)")) {
            query.setArray(1, connection.createArrayOf("int4", new Integer[] {1, 2, 777}));
            ResultSet row = query.executeQuery();
            row.next();
            same(row.getInt(1), 2);
        }
    }

    static PreparedStatement inserts(Connection connection, int from, int to) throws SQLException {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?)");
        for (int id = from; id < to; id++) {
            insert.setInt(1, id);
            insert.setString(2, "item " + id);
            insert.addBatch();
        }
        return insert;
    }

    static void batches(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE item (id INT PRIMARY KEY, name TEXT)");
        connection.setAutoCommit(false);
        same(inserts(connection, 0, 1_000).executeBatch().length, 1_000);
        connection.commit();
        same(state(connection, it -> inserts(it, 999, 1_005).executeBatch()), "23505");
        connection.rollback();
        with("&reWriteBatchedInserts=true", other -> {
            int[] counts = inserts(other, 1_000, 3_000).executeBatch();
            same(counts[1_999], Statement.SUCCESS_NO_INFO);
        });
        same(number(connection, "SELECT count(*) FROM item"), 3_000);
        connection.commit();
    }

    static void portions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (PreparedStatement query = connection.prepareStatement("SELECT id FROM item ORDER BY id")) {
            query.setFetchSize(100);
            ResultSet rows = query.executeQuery();
            int count = 0;
            while (rows.next()) {
                same(rows.getInt(1), count++);
            }
            same(count, 3_000);
            // One that is left before its end.
            rows = query.executeQuery();
            rows.next();
            rows.close();
            query.setMaxRows(7);
            rows = query.executeQuery();
            for (count = 0; rows.next();) {
                count++;
            }
            same(count, 7);
        }
        execute(connection, "DECLARE c CURSOR FOR SELECT id FROM item ORDER BY id");
        same(number(connection, "FETCH ABSOLUTE 3 FROM c"), 2);
        connection.commit();
        connection.setHoldability(ResultSet.HOLD_CURSORS_OVER_COMMIT);
        Statement held = connection.createStatement();
        held.setFetchSize(10);
        same(held.executeQuery("SELECT id FROM item").next(), true);
        connection.commit();
    }

    static void procedures(Connection connection) throws Exception {
        execute(connection, "CREATE PROCEDURE add(a INT, INOUT b INT, OUT c TEXT) LANGUAGE plpgsql AS "
                + "$$ BEGIN b := a + b; c := 'x' || b; END $$");
        for (String text : new String[] {"CALL add(?, ?, ?)", "{call add(?, ?, ?)}"}) {
            with("&escapeSyntaxCallMode=callIfNoReturn", other -> {
                for (int time = 0; time < 7; time++) {
                    CallableStatement call = other.prepareCall(text);
                    call.setInt(1, 3);
                    call.setInt(2, 4);
                    call.registerOutParameter(2, Types.INTEGER);
                    call.registerOutParameter(3, Types.VARCHAR);
                    call.execute();
                    same(call.getInt(2), 7);
                    same(call.getString(3), "x7");
                    call.close();
                }
            });
        }
        execute(connection, "CREATE FUNCTION twice(x INT) RETURNS INT LANGUAGE plpgsql AS "
                + "$$ BEGIN RETURN x * 2; END $$");
        for (int time = 0; time < 7; time++) {
            CallableStatement call = connection.prepareCall("{? = call twice(?)}");
            call.registerOutParameter(1, Types.INTEGER);
            call.setInt(2, 21);
            call.execute();
            same(call.getInt(1), 42);
            call = connection.prepareCall("{? = call upper(?)}");
            call.registerOutParameter(1, Types.VARCHAR);
            call.setString(2, "abc");
            call.execute();
            same(call.getString(1), "ABC");
        }
    }

    static String all(ResultSet rows, String... columns) throws Exception {
        StringBuilder all = new StringBuilder();
        while (rows.next()) {
            for (String column : columns) {
                all.append(rows.getString(column)).append(' ');
            }
        }
        return all.toString().trim();
    }

    static void metadata(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE parent (a INT, b INT, note TEXT DEFAULT 'x', PRIMARY KEY (b, a))");
        execute(connection, "CREATE TABLE child (id INT PRIMARY KEY, a INT, b INT, u INT UNIQUE, "
                + "CONSTRAINT of_parent FOREIGN KEY (b, a) REFERENCES parent (b, a))");
        execute(connection, "CREATE INDEX by_ab ON child (a, b)");
        DatabaseMetaData data = connection.getMetaData();
        same(all(data.getPrimaryKeys(null, "public", "parent"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
                "b 1 parent_pkey a 2 parent_pkey");
        same(all(data.getIndexInfo(null, "public", "child", false, false), "INDEX_NAME", "ORDINAL_POSITION",
                "COLUMN_NAME"), "child_pkey 1 id child_u_key 1 u by_ab 1 a by_ab 2 b");
        same(all(data.getImportedKeys(null, "public", "child"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME",
                "KEY_SEQ", "FK_NAME"), "parent b b 1 of_parent parent a a 2 of_parent");
        same(all(data.getColumns(null, "public", "parent", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_DEF"),
                "a int4 null b int4 null note text 'x'::text");
        same(all(data.getProcedures(null, "public", "add"), "PROCEDURE_NAME"), "add");
        same(all(data.getFunctions(null, "public", "twice"), "FUNCTION_NAME"), "twice");
    }

    static void blocks(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        execute(connection, "UPDATE item SET name = 'a' WHERE id = 1");
        Savepoint savepoint = connection.setSavepoint();
        same(state(connection, it -> execute(it, "SELECT 1 / 0")), "22012");
        same(state(connection, it -> execute(it, "SELECT 1")), "25P02");
        connection.rollback(savepoint);
        connection.commit();
        same(number(connection, "SELECT count(*) FROM item WHERE name = 'a'"), 1);
        connection.commit();
        with("&autosave=always", other -> {
            other.setAutoCommit(false);
            for (int id = 0; id < 5; id++) {
                execute(other, "UPDATE item SET name = 'saved' WHERE id = " + id);
                same(state(other, it -> execute(it, "INSERT INTO item VALUES (1)")), "23505");
            }
            other.commit();
        });
        same(number(connection, "SELECT count(*) FROM item WHERE name = 'saved'"), 5);
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        connection.setReadOnly(true);
        same(state(connection, it -> execute(it, "DELETE FROM item")), "25006");
        connection.rollback();
        same(connection.isValid(5), true);
    }

    static void copies(Connection connection) throws Exception {
        CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
        same(copies.copyIn("COPY item FROM STDIN (FORMAT csv)", new StringReader("9001,a\n9002,\"b,\"\n")), 2L);
        StringWriter out = new StringWriter();
        copies.copyOut("COPY (SELECT * FROM item WHERE id > 9000 ORDER BY id) TO STDOUT", out);
        same(out.toString(), "9001\ta\n9002\tb,\n");
        same(state(connection, it -> copies.copyIn("COPY item FROM STDIN", new StringReader("9003\tx\n9001\tx\n"))), "23505");
        same(number(connection, "SELECT count(*) FROM item"), 3_002);
    }

    static void cancellation(Connection connection) throws Exception {
        Statement slow = connection.createStatement();
        new Timer(true).schedule(new TimerTask() {
            @Override
            public void run() {
                try {
                    slow.cancel();
                } catch (SQLException error) {
                    throw new AssertionError(error);
                }
            }
        }, 200);
        same(state(connection, it -> slow.executeQuery(SLOW)), "57014");
        slow.setQueryTimeout(1);
        same(state(connection, it -> slow.executeQuery(SLOW)), "57014");
        try (Statement several = connection.createStatement()) {
            same(several.execute("SELECT 1; UPDATE item SET name = 'm' WHERE id = 1; SELECT 2"), true);
            same(several.getMoreResults() || several.getUpdateCount() != 1, false);
            same(several.getMoreResults(), true);
        }
    }

    static void restart(Connection connection) throws Exception {
        same(new ProcessBuilder("sh", "-c", System.getenv("KILN_RESTART")).inheritIO().start().waitFor(), 0);
        same(state(connection, it -> number(it, "SELECT 1")).matches("57P01|08006"), true);
        with("", again -> same(number(again, "SELECT count(*) FROM item"), 3_002));
    }

    public static void main(String[] arguments) throws Exception {
        String[] modes = {
            "", "&prepareThreshold=1", "&prepareThreshold=-1", "&preferQueryMode=simple", "&preferQueryMode=extendedForPrepared",
            "&binaryTransfer=false",
        };
        for (String mode : modes) {
            with(mode, Client::types);
        }
        Part[] parts = {
            Client::batches, Client::portions, Client::procedures, Client::metadata, Client::blocks, Client::copies,
            Client::cancellation, Client::restart,
        };
        for (Part part : parts) {
            with("", part);
        }
    }
}
