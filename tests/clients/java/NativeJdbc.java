import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.LocalDate;
import java.util.UUID;

/** Drives a ClickHouse over the native protocol through JDBC, with housepower's driver; prints one JSON report. */
public class NativeJdbc extends Program {
    /** ClickHouse's code is that of the exception's cause. */
    static Object failsWithin(Connection connection, String query, int code) throws Exception {
        try {
            execute(connection, query);
        } catch (SQLException error) {
            return equal(((SQLException) error.getCause()).getErrorCode(), code);
        }
        throw new AssertionError("no error was thrown");
    }

    /** The driver reads the values itself, and leaves their escapes as they are. */
    static Object plainStatement(String table, Connection connection) throws Exception {
        execute(connection, "CREATE TABLE " + table + " (id UInt64, s String, maybe Nullable(Int32), flag UInt8) ENGINE = Memory");
        try (Statement statement = connection.createStatement()) {
            for (int n = 0; n < Small.ROWS; n++) {
                statement.executeUpdate("INSERT INTO " + table + " VALUES (" + n + ", 'text', NULL, 1), (" + n + ", 'other', 5, 0)");
            }
        }
        return equal(number(connection, "SELECT count() FROM " + table + " WHERE (s = 'text') = isNull(maybe)"), 2L * Small.ROWS);
    }

    static void bind(PreparedStatement statement, Small row) throws Exception {
        statement.setLong(1, row.getId());
        statement.setString(2, row.getS());
        statement.setObject(3, row.getMaybe());
        statement.setInt(4, row.isFlag() ? 1 : 0);
    }

    static Object prepared(String table, Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO " + table + " VALUES (?, ?, ?, ?)")) {
            for (Small row : Small.all()) {
                bind(statement, row);
                statement.executeUpdate();
            }
        }
        return table;
    }

    static Object batch(String table, Connection connection) throws Exception {
        String insert = "INSERT INTO " + table + " (id, s, maybe, flag) VALUES (?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (Small row : Small.all()) {
                bind(statement, row);
                statement.addBatch();
            }
            equal(statement.executeBatch().length, Small.ROWS);
        }
        return table;
    }

    interface Insert {
        Object into(String table, Connection connection) throws Exception;
    }

    static void way(String table, int inserts, Insert insert, String... properties) {
        sends(table, inserts);
        check("insert " + table, () -> {
            try (Connection connection = open(properties)) {
                String columns = "(id UInt64, s String, maybe Nullable(Int32), flag UInt8)";
                execute(connection, "CREATE TABLE " + table + " " + columns + " ENGINE = MergeTree ORDER BY id");
                insert.into(table, connection);
                return stored(table, connection);
            }
        });
    }

    static Object stored(String table, Connection connection) throws Exception {
        try (Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("SELECT id, s, maybe, flag FROM " + table + " ORDER BY id")) {
            int read = 0;
            for (; rows.next(); read++) {
                Small row = Small.all().get(read);
                equal(rows.getLong(1), row.getId());
                equal(rows.getString(2), row.getS());
                equal(rows.getObject(3), row.getMaybe());
                equal(rows.getInt(4), row.isFlag() ? 1 : 0);
            }
            return equal(read, Small.ROWS);
        }
    }

    static Object kinds(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE java_kinds (id UInt64, i8 Int8, f64 Float64, s String, fixed FixedString(3),"
            + " lc LowCardinality(String), maybe Nullable(Int32), numbers Array(Int32), day Date, moment DateTime,"
            + " instant DateTime64(3), price Decimal(18, 4), key UUID, colour Enum8('red' = 1, 'green' = 2),"
            + " ip4 IPv4, pairs Map(String, Int64)) ENGINE = MergeTree ORDER BY id");
        String marks = "?" + ", ?".repeat(15);
        Timestamp moment = Timestamp.valueOf("2024-02-29 12:34:56");
        UUID key = UUID.fromString("61f0c404-5cb3-11e7-907b-a6006ad3dba0");
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO java_kinds VALUES (" + marks + ")")) {
            for (int n = 0; n < 3; n++) {
                statement.setLong(1, n);
                statement.setByte(2, (byte) -n);
                statement.setDouble(3, n + 0.25);
                statement.setString(4, "it's \u2018quoted\u2019 \\ \t \"");
                statement.setString(5, "abc");
                statement.setString(6, "kind " + n);
                statement.setObject(7, n % 2 == 0 ? n : null);
                statement.setArray(8, connection.createArrayOf("Int32", new Object[] {n, 7}));
                statement.setObject(9, LocalDate.of(2024, 2, 29));
                statement.setTimestamp(10, moment);
                statement.setTimestamp(11, moment);
                statement.setBigDecimal(12, new BigDecimal(n + ".1234"));
                statement.setObject(13, key);
                statement.setString(14, "green");
                statement.setLong(15, 0x0a000001L);
                statement.setObject(16, java.util.Map.of("n", (long) n));
                statement.addBatch();
            }
            equal(statement.executeBatch().length, 3);
        }
        String text = "SELECT toString(tuple(id, i8, f64, fixed, lc, maybe, numbers, day, price, key, colour, ip4, pairs)) FROM java_kinds"
            + " ORDER BY id";
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            int n = 0;
            for (; rows.next(); n++) {
                equal(rows.getString(1), "(" + n + "," + -n + "," + (n + 0.25) + ",'abc','kind " + n + "'," + (n % 2 == 0 ? n : "NULL")
                    + ",[" + n + ",7],'2024-02-29'," + n + ".1234,'" + key + "','green','10.0.0.1',{'n':" + n + "})");
            }
            return equal(n, 3);
        }
    }

    static Object manyRows(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE java_many (id UInt64, s String) ENGINE = MergeTree ORDER BY id");
        return batch(connection, "java_many", "many", 50_000);
    }

    static Object refusal(String table, Connection connection) throws Exception {
        execute(connection, "CREATE TABLE " + table + " (id UInt64, CONSTRAINT few CHECK id < 5) ENGINE = MergeTree ORDER BY id");
        failsWithin(connection, "INSERT INTO " + table + " VALUES (7)", 469);
        return equal(number(connection, "SELECT count() FROM " + table), 0L);
    }

    /** An error within an insert costs the connection, so each has its own. */
    static void alone(String name, Insert insert) {
        check(name, () -> {
            try (Connection connection = open()) {
                return insert.into(name, connection);
            }
        });
    }

    public static void main(String[] arguments) throws Exception {
        sends("native_statement", Small.ROWS);
        alone("native_statement", NativeJdbc::plainStatement);
        way("native_prepared", Small.ROWS, NativeJdbc::prepared);
        way("native_batch", 1, NativeJdbc::batch);
        way("native_uncompressed", 1, NativeJdbc::batch, "enable_compression", "false");
        way("native_waiting", Small.ROWS, NativeJdbc::prepared, "async_insert", "1", "wait_for_async_insert", "1");
        way("native_setting", 1, NativeJdbc::batch, "max_insert_block_size", "4", "max_threads", "2");
        alone("all types", (name, connection) -> kinds(connection));
        alone("many rows", (name, connection) -> manyRows(connection));
        alone("ping", (name, connection) -> equal(connection.isValid(5), true));
        alone("streamed read of 100k rows", (name, connection) -> streamedRead(connection));
        alone("insert from a select", (name, connection) -> {
            execute(connection, "INSERT INTO java_many SELECT number, 'select' FROM numbers(5)");
            return equal(number(connection, "SELECT count() FROM java_many WHERE s = 'select'"), 5L);
        });
        check("constraint is 469", () -> {
            try (Connection connection = open()) {
                return refusal("java_checked", connection);
            }
        });
        alone("unknown table is 60", (name, connection) -> failsWithin(connection, "SELECT * FROM nowhere", 60));
        alone("syntax error is 62", (name, connection) -> failsWithin(connection, "SELEC 1", 62));
        print();
    }
}
