import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

/** Every way to insert through JDBC, each into a table of its own; prints one JSON report. */
public class JdbcWays extends Program {
    interface Insert {
        void into(String table, Connection connection) throws Exception;
    }

    static void way(String table, int inserts, Insert insert, String... properties) {
        sends(table, inserts);
        check("insert " + table, () -> {
            try (Connection connection = open(properties)) {
                String columns = "(id UInt64, s String, maybe Nullable(Int32), flag Bool)";
                execute(connection, "CREATE TABLE " + table + " " + columns + " ENGINE = MergeTree ORDER BY id");
                insert.into(table, connection);
                return stored(table, connection);
            }
        });
    }

    static Object stored(String table, Connection connection) throws Exception {
        try (Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("SELECT id, s, maybe, flag FROM " + table + " ORDER BY id")) {
            List<Small> left = new ArrayList<>(Small.all());
            while (rows.next()) {
                Small row = left.remove(0);
                equal(rows.getLong(1), row.getId());
                equal(rows.getString(2), row.getS());
                equal(rows.getObject(3), row.getMaybe());
                equal(rows.getBoolean(4), row.isFlag());
            }
            return equal(left.size(), 0);
        }
    }

    static void bind(PreparedStatement statement, Small row) throws Exception {
        statement.setLong(1, row.getId());
        statement.setString(2, row.getS());
        if (row.getMaybe() == null) statement.setNull(3, Types.INTEGER);
        else statement.setInt(3, row.getMaybe());
        statement.setBoolean(4, row.isFlag());
    }

    static void prepared(String table, Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO " + table + " VALUES (?, ?, ?, ?)")) {
            for (Small row : Small.all()) {
                bind(statement, row);
                equal(statement.executeUpdate(), 1);
            }
        }
    }

    static void batch(String table, Connection connection) throws Exception {
        String insert = "INSERT INTO " + table + " (id, s, maybe, flag) VALUES (?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (Small row : Small.all()) {
                bind(statement, row);
                statement.addBatch();
            }
            equal(statement.executeBatch().length, Small.ROWS);
        }
    }

    static void refused(String table) {
        sends(table, 1);
        check(table + " is 469", () -> {
            try (Connection connection = open()) {
                String columns = "(id UInt64, CONSTRAINT few CHECK id < 5)";
                execute(connection, "CREATE TABLE " + table + " " + columns + " ENGINE = MergeTree ORDER BY id");
                fails(() -> {
                    execute(connection, "INSERT INTO " + table + " VALUES (7)");
                    return null;
                }, 469);
                return equal(number(connection, "SELECT count() FROM " + table), 0L);
            }
        });
    }

    public static void main(String[] arguments) {
        way("jdbc_prepared", Small.ROWS, JdbcWays::prepared);
        way("jdbc_batch", 1, JdbcWays::batch);
        way("jdbc_row_binary", 1, JdbcWays::batch, "beta.row_binary_for_simple_insert", "true");
        way("jdbc_lz4", 1, JdbcWays::batch, "compress", "true", "decompress", "true");
        way("jdbc_async", Small.ROWS, JdbcWays::prepared, "clickhouse_setting_async_insert", "1");
        refused("jdbc_checked");
        print();
    }
}
