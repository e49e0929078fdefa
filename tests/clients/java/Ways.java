import com.clickhouse.client.api.Client;
import com.clickhouse.client.api.ServerException;
import com.clickhouse.client.api.data_formats.RowBinaryFormatWriter;
import com.clickhouse.client.api.insert.InsertResponse;
import com.clickhouse.client.api.insert.InsertSettings;
import com.clickhouse.client.api.metadata.TableSchema;
import com.clickhouse.client.api.query.GenericRecord;
import com.clickhouse.client.api.query.QueryResponse;
import com.clickhouse.client.api.query.QuerySettings;
import com.clickhouse.data.ClickHouseFormat;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/** Every way to insert that client-v2 offers, each into a table of its own; prints one JSON report. */
public class Ways extends Report {
    interface Insert {
        void into(String table) throws Exception;
    }

    static final Client client = builder().build();
    // What client-v2 can send as it is; ClickHouse wrote the payloads.
    static final List<ClickHouseFormat> FORMATS = List.of(
        ClickHouseFormat.JSONEachRow, ClickHouseFormat.JSONCompactEachRow, ClickHouseFormat.CSV, ClickHouseFormat.CSVWithNames,
        ClickHouseFormat.TabSeparated, ClickHouseFormat.TSVWithNamesAndTypes, ClickHouseFormat.Values, ClickHouseFormat.Native,
        ClickHouseFormat.RowBinary, ClickHouseFormat.RowBinaryWithNames, ClickHouseFormat.RowBinaryWithNamesAndTypes,
        ClickHouseFormat.MsgPack, ClickHouseFormat.Parquet, ClickHouseFormat.ArrowStream, ClickHouseFormat.Avro);

    static Client.Builder builder() {
        return new Client.Builder()
            .addEndpoint("http://" + System.getenv("CLICKHOUSE_HOST") + ":" + System.getenv("CLICKHOUSE_PORT"))
            .setUsername(System.getenv("CLICKHOUSE_USER"))
            .setPassword(System.getenv("CLICKHOUSE_PASSWORD"))
            .setDefaultDatabase(System.getenv("CLICKHOUSE_DATABASE"));
    }

    static void execute(String statement) throws Exception {
        client.execute(statement).get().close();
    }

    static long number(String query) {
        return client.queryAll(query).get(0).getLong(1);
    }

    static InsertSettings asynchronous(String wait) {
        return new InsertSettings().serverSetting("async_insert", "1").serverSetting("wait_for_async_insert", wait);
    }

    /** One way to insert all rows, into a table of its own. */
    static void way(String table, int inserts, Insert insert) {
        sends(table, inserts);
        check("insert " + table, () -> {
            execute("CREATE TABLE " + table + " " + Small.COLUMNS + " ENGINE = MergeTree ORDER BY id");
            insert.into(table);
            return table.equals("objects") ? storedAsSent(table) : storedAs("objects", table);
        });
    }

    /** What was not waited for shows up soon. */
    static void counted(String table) {
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (number("SELECT count() FROM " + table) < Small.ROWS && System.nanoTime() < deadline) Thread.onSpinWait();
        equal(number("SELECT count() FROM " + table), (long) Small.ROWS);
    }

    static Object storedAsSent(String table) {
        counted(table);
        List<GenericRecord> records = client.queryAll("SELECT * FROM " + table + " ORDER BY id");
        for (int n = 0; n < Small.ROWS; n++) {
            Small row = new Small(n);
            GenericRecord got = records.get(n);
            equal(got.getLong("id"), row.getId());
            equal(got.getString("s"), row.getS());
            equal(got.hasValue("maybe") ? got.getInteger("maybe") : null, row.getMaybe());
            equal(got.getString("kind"), row.getKind());
            equal(got.getBigDecimal("price"), row.getPrice());
            equal(got.getZonedDateTime("at").toInstant(), row.getAt().toInstant());
            equal(got.getList("tags"), row.getTags());
            equal(got.getObject("counts"), row.getCounts());
            equal(got.getString("colour"), row.getColour());
            equal(got.getBoolean("flag"), row.isFlag());
        }
        return records.size();
    }

    static Object storedAs(String original, String table) {
        counted(table);
        String difference = "SELECT count() FROM (SELECT * FROM " + original + " EXCEPT SELECT * FROM " + table + ")";
        return equal(number(difference), 0L);
    }

    static Insert objects(Client own, InsertSettings settings) {
        return table -> {
            own.register(Small.class, own.getTableSchema(table));
            try (InsertResponse response = own.insert(table, Small.all(), settings).get()) {
                boolean waits = !"0".equals(settings.getAllSettings().get("clickhouse_setting_wait_for_async_insert"));
                if (waits) equal(response.getWrittenRows(), (long) Small.ROWS);
            }
        };
    }

    static void oneByOne(String table) throws Exception {
        client.register(Small.class, client.getTableSchema(table));
        List<CompletableFuture<InsertResponse>> answers = new ArrayList<>();
        for (Small row : Small.all()) answers.add(client.insert(table, List.of(row), asynchronous("1")));
        for (CompletableFuture<InsertResponse> answer : answers) answer.get().close();
    }

    static Insert written(ClickHouseFormat format) {
        return table -> {
            TableSchema schema = client.getTableSchema(table);
            client.insert(table, out -> {
                RowBinaryFormatWriter writer = new RowBinaryFormatWriter(out, schema, format);
                for (Small row : Small.all()) {
                    writer.setLong("id", row.getId());
                    writer.setString("s", row.getS());
                    writer.setValue("maybe", row.getMaybe());
                    writer.setString("kind", row.getKind());
                    writer.setBigDecimal("price", row.getPrice());
                    writer.setDateTime("at", row.getAt());
                    writer.setList("tags", row.getTags());
                    writer.setValue("counts", row.getCounts());
                    writer.setValue("colour", row.getColour());
                    writer.setBoolean("flag", row.isFlag());
                    writer.commitRow();
                }
            }, format, new InsertSettings()).get().close();
        };
    }

    static Insert stream(ClickHouseFormat format) {
        return table -> {
            QuerySettings settings = new QuerySettings().setFormat(format);
            try (QueryResponse rows = client.query("SELECT * FROM objects ORDER BY id", settings).get()) {
                client.insert(table, rows.getInputStream(), format).get().close();
            }
        };
    }

    static InputStream text(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }

    static void refused(String table, int code, String rows) {
        sends(table, 1);
        check(table + " is " + code, () -> {
            execute("CREATE TABLE " + table + " (id UInt64, CONSTRAINT few CHECK id < 5) ENGINE = MergeTree ORDER BY id");
            try {
                client.insert(table, text(rows), ClickHouseFormat.JSONEachRow).get().close();
            } catch (ExecutionException | ServerException error) {
                Throwable told = error instanceof ServerException ? error : error.getCause();
                if (!(told instanceof ServerException refusal)) throw error;
                equal(refusal.getCode(), code);
                return equal(number("SELECT count() FROM " + table), 0L);
            }
            throw new AssertionError("no error was thrown");
        });
    }

    public static void main(String[] arguments) {
        way("objects", 1, objects(client, new InsertSettings()));
        way("objects_waiting", 1, objects(client, asynchronous("1")));
        way("objects_not_waiting", 1, objects(client, asynchronous("0")));
        way("objects_pinned_off", 1, objects(client, new InsertSettings().serverSetting("async_insert", "0")));
        way("objects_one_by_one", Small.ROWS, Ways::oneByOne);
        way("objects_lz4", 1, objects(builder().compressClientRequest(true).build(), new InsertSettings()));
        way("objects_http_lz4", 1,
            objects(builder().compressClientRequest(true).useHttpCompression(true).build(), new InsertSettings()));
        way("written_rowbinary", 1, written(ClickHouseFormat.RowBinary));
        way("written_rowbinarywithdefaults", 1, written(ClickHouseFormat.RowBinaryWithDefaults));
        for (ClickHouseFormat format : FORMATS) way("stream_" + format.name().toLowerCase(Locale.ROOT), 1, stream(format));
        refused("bad_json", 27, "{\"id\":\"x\"}");
        refused("checked", 469, "{\"id\":7}");
        check("ping", () -> equal(client.ping(), true));
        client.close();
        print();
    }
}
