import java.math.BigDecimal;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A row of the table that every way of inserting fills: getters for client-v2, which writes plain objects. */
public class Small {
    static final int ROWS = 10;
    static final String COLUMNS = "(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4),"
        + " at DateTime64(3, 'UTC'), tags Array(String), counts Map(String, Int64), colour Enum8('red' = 1, 'green' = 2), flag Bool)";
    private final int number;

    Small(int number) {
        this.number = number;
    }

    static List<Small> all() {
        List<Small> rows = new ArrayList<>();
        for (int n = 0; n < ROWS; n++) rows.add(new Small(n));
        return rows;
    }

    public long getId() {
        return number;
    }

    public String getS() {
        return "text " + number + " \u2018quoted\u2019 \\ \t \", it's\n";
    }

    public Integer getMaybe() {
        return number % 2 == 0 ? 100 - number : null;
    }

    public String getKind() {
        return "kind " + number % 3;
    }

    public BigDecimal getPrice() {
        return new BigDecimal(number + ".1234");
    }

    public ZonedDateTime getAt() {
        return ZonedDateTime.of(2024, 2, 29, 12, 34, 56, 789_000_000, ZoneOffset.UTC);
    }

    public List<String> getTags() {
        List<String> tags = new ArrayList<>();
        for (int n = 0; n < number % 4; n++) tags.add("tag " + n);
        return tags;
    }

    public Map<String, Long> getCounts() {
        return Map.of("n", (long) number);
    }

    public String getColour() {
        return number % 2 == 0 ? "red" : "green";
    }

    public boolean isFlag() {
        return number % 2 == 0;
    }
}
