import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/** The Arrow project's JDBC driver against one service of Flight SQL after the other: prints what it got, one thing on each line. */
class FlightJdbc {
    public static void main(String[] arguments) throws Exception {
        for (int at = 0; at < arguments.length; at += 5) use(Arrays.copyOfRange(arguments, at, at + 5));
    }

    static void use(String[] arguments) throws SQLException {
        String address = arguments[0], database = arguments[3];
        boolean duckdb = arguments[4].equals("duckdb");
        Properties properties = new Properties();
        properties.put("user", arguments[1]);
        properties.put("password", arguments[2]);
        properties.put("useEncryption", "false");
        properties.put("database", database);
        try (Connection connection = DriverManager.getConnection("jdbc:arrow-flight-sql://" + address, properties)) {
            tables(connection, duckdb);
            prepared(connection);
            metadata(connection.getMetaData(), database);
            large(connection, duckdb);
            errors(connection);
        }
    }

    static void tables(Connection connection, boolean duckdb) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            String made = duckdb ? "a INTEGER PRIMARY KEY, s VARCHAR)" : "a Int32, s String) ENGINE = MergeTree ORDER BY a";
            statement.execute("CREATE TABLE j (" + made);
            say("inserted " + statement.executeUpdate("INSERT INTO j VALUES (1, 'x'), (2, 'it''s')"));
            try (ResultSet rows = statement.executeQuery("SELECT a, s FROM j ORDER BY a")) {
                while (rows.next()) say("row " + rows.getInt(1) + " " + rows.getString("s"));
            }
        }
    }

    static void prepared(Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO j VALUES (?, ?)")) {
            for (int number = 10; number < 13; number++) {
                insert.setInt(1, number);
                insert.setString(2, "p" + number);
                insert.addBatch();
            }
            say("batch " + Arrays.stream(insert.executeBatch()).sum());
        }
        try (PreparedStatement query = connection.prepareStatement("SELECT count(*) FROM j WHERE s >= ?")) {
            query.setString(1, "p");
            try (ResultSet rows = query.executeQuery()) {
                rows.next();
                say("counted " + rows.getLong(1));
            }
        }
    }

    static void metadata(DatabaseMetaData about, String database) throws SQLException {
        say("product " + about.getDatabaseProductName());
        try (ResultSet rows = about.getTables(null, database, "%", new String[] {"TABLE"})) {
            while (rows.next()) say("table " + rows.getString("TABLE_SCHEM") + "." + rows.getString("TABLE_NAME"));
        }
        List<String> columns = new ArrayList<>();
        try (ResultSet rows = about.getColumns(null, database, "j", null)) {
            while (rows.next()) columns.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME"));
        }
        say("columns " + columns);
        List<String> keys = new ArrayList<>();
        try (ResultSet rows = about.getPrimaryKeys(null, database, "j")) {
            while (rows.next()) keys.add(rows.getString("COLUMN_NAME"));
        }
        say("keys " + keys);
    }

    static void large(Connection connection, boolean duckdb) throws SQLException {
        String million = duckdb ? "SELECT range AS n FROM range(1000000)" : "SELECT toInt64(number) AS n FROM numbers(1000000)";
        long sum = 0;
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(million)) {
            while (rows.next()) sum += rows.getLong(1);
        }
        say("sum " + sum);
    }

    static void errors(Connection connection) {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT * FROM no_such_table");
            say("no error");
        } catch (SQLException error) {
            say("error " + error.getMessage().contains("Code: 60"));
        }
    }

    static void say(String line) {
        System.out.println(line);
    }
}
