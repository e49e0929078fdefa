import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The report that every client program prints: its checks, and the inserts it sent by table. */
class Report {
    static final List<String> checks = new ArrayList<>();
    static final Map<String, Integer> sent = new LinkedHashMap<>();

    interface Body {
        Object run() throws Exception;
    }

    static void check(String name, Body body) {
        String detail;
        boolean ok = true;
        try {
            detail = String.valueOf(body.run());
        } catch (Throwable error) {
            ok = false;
            detail = error + " " + Arrays.toString(error.getStackTrace()) + " cause " + error.getCause();
        }
        checks.add("{\"name\":" + quoted(name) + ",\"ok\":" + ok + ",\"detail\":" + quoted(detail) + "}");
    }

    static String sends(String table, int inserts) {
        sent.merge(table, inserts, Integer::sum);
        return table;
    }

    static Object equal(Object got, Object expected) {
        if (!Objects.equals(got, expected)) throw new AssertionError("got " + got + ", expected " + expected);
        return got;
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ' || c > '~') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }

    static void print() {
        List<String> tables = new ArrayList<>();
        sent.forEach((table, inserts) -> tables.add(quoted(table) + ":" + inserts));
        String all = String.join(",", checks);
        System.out.println("{\"finished\":true,\"checks\":[" + all + "],\"sent\":{" + String.join(",", tables) + "}}");
    }
}
