import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Drives a ClickHouse HTTP endpoint through JDBC; prints one JSON report. */
public class Program extends Report {
    /** ClickHouse's code is the vendor code of the exception. */
    static Object fails(Body body, int code) throws Exception {
        try {
            body.run();
        } catch (SQLException error) {
            if (error.getErrorCode() != code && !String.valueOf(error.getMessage()).contains("Code: " + code + ".")) {
                throw new AssertionError("expected code " + code, error);
            }
            return error.getMessage();
        }
        throw new AssertionError("no error was thrown");
    }

    static Connection open(String... properties) throws SQLException {
        Properties all = new Properties();
        all.setProperty("user", System.getenv("CLICKHOUSE_USER"));
        all.setProperty("password", System.getenv("CLICKHOUSE_PASSWORD"));
        for (int i = 0; i < properties.length; i += 2) all.setProperty(properties[i], properties[i + 1]);
        String address = System.getenv("CLICKHOUSE_HOST") + ":" + System.getenv("CLICKHOUSE_PORT");
        return DriverManager.getConnection("jdbc:clickhouse://" + address + "/" + System.getenv("CLICKHOUSE_DATABASE"), all);
    }

    static long number(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(query)) {
            if (!result.next()) throw new AssertionError("no row from " + query);
            return result.getLong(1);
        }
    }

    static void execute(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(query);
        }
    }

    static Object insertKinds(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE java_kinds (id UInt64, i8 Int8, f64 Float64, flag Bool, s String,"
            + " lc LowCardinality(String), maybe Nullable(Int32), numbers Array(Int32), day Date, moment DateTime,"
            + " price Decimal(18, 4), key UUID, colour Enum8('red' = 1, 'green' = 2)) ENGINE = MergeTree ORDER BY id");
        String insert = "INSERT INTO java_kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int n = 0; n < 3; n++) {
                statement.setLong(1, n);
                statement.setByte(2, (byte) -n);
                statement.setDouble(3, n + 0.25);
                statement.setBoolean(4, n % 2 == 0);
                statement.setString(5, "it's \u2018quoted\u2019 \\ \t \"");
                statement.setString(6, "kind " + n);
                if (n % 2 == 0) statement.setInt(7, n); else statement.setNull(7, java.sql.Types.INTEGER);
                statement.setArray(8, connection.createArrayOf("Int32", new Integer[] {n, 7}));
                statement.setObject(9, LocalDate.of(2024, 2, 29));
                statement.setObject(10, LocalDateTime.of(2024, 2, 29, 12, 34, 56));
                statement.setBigDecimal(11, new BigDecimal(n + ".1234"));
                statement.setObject(12, UUID.fromString("00000000-0000-0000-0000-00000000000a"));
                statement.setString(13, "green");
                statement.addBatch();
            }
            return equal(statement.executeBatch().length, 3);
        }
    }

    static Object readKinds(Connection connection) throws Exception {
        int rows = 0;
        try (Statement statement = connection.createStatement();
            ResultSet result = statement.executeQuery("SELECT * FROM java_kinds ORDER BY id")) {
            for (int n = 0; result.next(); n++, rows++) {
                equal(result.getLong("id"), (long) n);
                equal(result.getByte("i8"), (byte) -n);
                equal(result.getDouble("f64"), n + 0.25);
                equal(result.getBoolean("flag"), n % 2 == 0);
                equal(result.getString("s"), "it's \u2018quoted\u2019 \\ \t \"");
                equal(result.getObject("maybe"), n % 2 == 0 ? n : null);
                equal(result.getObject("day", LocalDate.class), LocalDate.of(2024, 2, 29));
                equal(result.getObject("moment", LocalDateTime.class), LocalDateTime.of(2024, 2, 29, 12, 34, 56));
                equal(result.getBigDecimal("price"), new BigDecimal(n + ".1234"));
                equal(result.getString("key"), "00000000-0000-0000-0000-00000000000a");
                equal(result.getString("colour"), "green");
            }
        }
        return equal(rows, 3);
    }

    static Object preparedRows(Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO java_one (id, s) VALUES (?, ?)")) {
            for (int n = 0; n < 20; n++) {
                statement.setInt(1, n);
                statement.setString(2, "prepared");
                equal(statement.executeUpdate(), 1);
            }
        }
        return equal(number(connection, "SELECT count() FROM java_one WHERE s = 'prepared'"), 20L);
    }

    static Object batch(Connection connection, String table, String text, int rows) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO " + table + " (id, s) VALUES (?, ?)")) {
            for (int n = 0; n < rows; n++) {
                statement.setInt(1, n);
                statement.setString(2, text);
                statement.addBatch();
            }
            statement.executeBatch();
        }
        return equal(number(connection, "SELECT count() FROM " + table + " WHERE s = '" + text + "'"), (long) rows);
    }

    /** One connection per writer: the driver's connections are not shared between threads. */
    static Object atOnce(int writers) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(writers);
        try {
            List<Callable<Object>> tasks = new ArrayList<>();
            for (int n = 0; n < writers; n++) {
                String insert = "INSERT INTO java_one VALUES (" + n + ", 'at once')";
                tasks.add(() -> {
                    try (Connection own = open(); Statement statement = own.createStatement()) {
                        return equal(statement.executeUpdate(insert), 1);
                    }
                });
            }
            for (Future<Object> done : threads.invokeAll(tasks)) done.get();
        } finally {
            threads.shutdown();
        }
        try (Connection own = open()) {
            return equal(number(own, "SELECT count() FROM java_one WHERE s = 'at once'"), (long) writers);
        }
    }

    static Object streamedRead(Connection connection) throws Exception {
        long count = 0;
        long sum = 0;
        try (Statement statement = connection.createStatement();
            ResultSet result = statement.executeQuery("SELECT number, toString(number) AS s FROM numbers(100000)")) {
            for (; result.next(); count++) sum += result.getLong("number");
        }
        equal(sum, 99_999L * 100_000L / 2);
        return equal(count, 100_000L);
    }

    static Object preparedQuery(Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("SELECT ? + 1, ?")) {
            statement.setInt(1, 41);
            statement.setString(2, "it's \\");
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                equal(result.getInt(1), 42);
                return equal(result.getString(2), "it's \\");
            }
        }
    }

    static Object compressed(String... properties) throws Exception {
        try (Connection packed = open(properties)) {
            String name = "packed " + String.join(" ", properties);
            batch(packed, "java_one", name, 2000);
            return equal(number(packed, "SELECT sum(length(repeat('x', 100))) FROM numbers(1000)"), 100_000L);
        }
    }

    static Object setting() throws Exception {
        try (Connection own = open("clickhouse_setting_max_block_size", "4321")) {
            return equal(number(own, "SELECT getSetting('max_block_size')"), 4321L);
        }
    }

    static Object metadata(Connection connection) throws Exception {
        equal(connection.getMetaData().getDatabaseProductName(), "ClickHouse");
        try (ResultSet columns = connection.getMetaData().getColumns(null, connection.getSchema(), "java_one", null)) {
            List<String> names = new ArrayList<>();
            while (columns.next()) names.add(columns.getString("COLUMN_NAME"));
            return equal(names, List.of("id", "s"));
        }
    }

    static Object badRow(Connection connection) throws Exception {
        return fails(() -> {
            execute(connection, "INSERT INTO java_one VALUES ('not a number', 'x')");
            return null;
        }, 6);
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = open()) {
            execute(connection, "CREATE TABLE java_one (id UInt64, s String) ENGINE = MergeTree ORDER BY id");
            check("ping", () -> equal(connection.isValid(5), true));
            check("batch of all types", () -> insertKinds(connection));
            check("read all types", () -> readKinds(connection));
            check("one prepared row many times", () -> preparedRows(connection));
            check("batch", () -> batch(connection, "java_one", "batch", 500));
            check("twenty at once", () -> atOnce(20));
            check("insert by statement", () -> {
                try (Statement statement = connection.createStatement()) {
                    return equal(statement.executeUpdate("INSERT INTO java_one VALUES (1, 'text'), (2, 'text')"), 2);
                }
            });
            check("insert from a select", () -> {
                execute(connection, "INSERT INTO java_one SELECT number, 'select' FROM numbers(5)");
                return equal(number(connection, "SELECT count() FROM java_one WHERE s = 'select'"), 5L);
            });
            check("streamed read of 100k rows", () -> streamedRead(connection));
            check("prepared query", () -> preparedQuery(connection));
            check("settings", Program::setting);
            check("metadata", () -> metadata(connection));
            check("LZ4 both ways", () -> compressed("compress", "true", "decompress", "true"));
            check("HTTP compression both ways",
                () -> compressed("compress", "true", "decompress", "true", "client.use_http_compression", "true"));
            check("no compression", () -> compressed("compress", "false"));
            check("unknown table is 60", () -> fails(() -> number(connection, "SELECT * FROM nowhere"), 60));
            check("insert into unknown table is 60", () -> fails(() -> {
                execute(connection, "INSERT INTO nowhere VALUES (1)");
                return null;
            }, 60));
            check("syntax error is 62", () -> fails(() -> number(connection, "SELEC 1"), 62));
            check("bad row", () -> badRow(connection));
            check("connection serves on after errors", () -> equal(number(connection, "SELECT 7"), 7L));
        }
        print();
    }
}
