<?php
// Inserts by plain HTTP, with nothing but PHP's own streams; prints one JSON report.
declare(strict_types=1);

const COLUMNS = "(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4), at DateTime64(3, 'UTC'), tags Array(String))";
const WAITING = ['async_insert' => 1, 'wait_for_async_insert' => 1];
const NOT_WAITING = ['async_insert' => 1, 'wait_for_async_insert' => 0];

final class Answer
{
    public function __construct(public int $status, public array $headers, public string $body)
    {
    }
}

$checks = [];
$sent = [];

function rows(): array
{
    return array_map(fn (int $n): array => [
        'id' => $n, 's' => "text $n ‘quoted’ \\ \t \", it's\n", 'maybe' => $n % 2 ? null : 100 - $n, 'kind' => 'kind ' . $n % 3,
        'price' => $n + 0.125, 'at' => '2024-02-29 12:34:56.789', 'tags' => array_map(fn (int $t): string => "tag $t", $n % 4 ? range(1, $n % 4) : []),
    ], range(0, 9));
}

function post(?string $query, string $body, array $settings = [], array $headers = []): Answer
{
    $parameters = ['database' => getenv('CLICKHOUSE_DATABASE')] + ($query === null ? [] : ['query' => $query]) + $settings;
    $login = base64_encode(getenv('CLICKHOUSE_USER') . ':' . getenv('CLICKHOUSE_PASSWORD'));
    $context = stream_context_create(['http' => [
        'method' => 'POST', 'content' => $body, 'ignore_errors' => true, 'protocol_version' => '1.1', 'timeout' => 60,
        'header' => ["Authorization: Basic $login", 'Content-Type: text/plain', 'Connection: close', ...$headers],
    ]]);
    $url = 'http://' . getenv('CLICKHOUSE_HOST') . ':' . getenv('CLICKHOUSE_PORT') . '/?' . http_build_query($parameters);
    $text = (string) file_get_contents($url, false, $context);
    $named = [];
    foreach ($http_response_header as $line) {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $named[strtolower($name)] = trim($value);
    }
    return new Answer((int) explode(' ', $http_response_header[0])[1], $named, $text);
}

function run(string $statement): string
{
    $answer = post(null, $statement);
    if ($answer->status !== 200) {
        throw new RuntimeException($answer->body);
    }
    return $answer->body;
}

function equal(mixed $got, mixed $expected): void
{
    if ($got !== $expected) {
        throw new RuntimeException('got ' . json_encode($got) . ', expected ' . json_encode($expected));
    }
}

function check(string $name, callable $body): void
{
    global $checks;
    try {
        $body();
        $checks[] = ['name' => $name, 'ok' => true, 'detail' => ''];
    } catch (Throwable $error) {
        $checks[] = ['name' => $name, 'ok' => false, 'detail' => (string) $error];
    }
}

function stored(string $table): void
{
    $deadline = microtime(true) + 30;
    while ((int) run("SELECT count() FROM $table") < count(rows()) && microtime(true) < $deadline);
    $lines = explode("\n", trim(run("SELECT * FROM $table ORDER BY id FORMAT JSONEachRow")));
    equal(array_map(fn (string $line): array => json_decode($line, true), $lines), rows());
}

/** One way to insert all rows, into a table of its own. */
function way(string $table, callable $insert, bool $waits = true): void
{
    global $sent;
    $sent[$table] = 1;
    check("insert $table", function () use ($table, $insert, $waits): void {
        run("CREATE TABLE $table " . COLUMNS . ' ENGINE = MergeTree ORDER BY id');
        $answer = $insert($table);
        equal([$answer->status, $answer->body], [200, '']);
        if ($waits) {
            equal(json_decode($answer->headers['x-clickhouse-summary'], true)['written_rows'], '10');
        }
        stored($table);
    });
}

function refused(string $table, int $code, int $status, string $format, string $rows): void
{
    global $sent;
    $sent[$table] = 1;
    check("$table is $code", function () use ($table, $code, $status, $format, $rows): void {
        run("CREATE TABLE $table (id UInt64, CONSTRAINT few CHECK id < 5) ENGINE = MergeTree ORDER BY id");
        $answer = post("INSERT INTO $table FORMAT $format", $rows);
        equal([$answer->status, $answer->headers['x-clickhouse-exception-code'] ?? ''], [$status, (string) $code]);
        equal(str_starts_with($answer->body, "Code: $code. DB::Exception: "), true);
        equal(run("SELECT count() FROM $table"), "0\n");
    });
}

function lines(): string
{
    return implode("\n", array_map(fn (array $row): string => json_encode($row, JSON_UNESCAPED_UNICODE), rows())) . "\n";
}

function quoted(mixed $value): string
{
    return match (true) {
        $value === null => 'NULL',
        is_array($value) => '[' . implode(', ', array_map('quoted', $value)) . ']',
        is_string($value) => "'" . addcslashes($value, "\\'") . "'",
        default => (string) $value,
    };
}

function values(): string
{
    return implode(', ', array_map(fn (array $row): string => '(' . implode(', ', array_map('quoted', $row)) . ')', rows()));
}

/** Rows as ClickHouse writes them. */
function written(string $format): callable
{
    return fn (string $table): Answer => post("INSERT INTO $table FORMAT $format", run("SELECT * FROM lines ORDER BY id FORMAT $format"));
}

way('lines', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", lines()));
way('lines_waiting', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", lines(), WAITING));
way('lines_not_waiting', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", lines(), NOT_WAITING), false);
way('in_the_body', fn (string $table): Answer => post(null, "INSERT INTO $table FORMAT JSONEachRow\n" . lines()));
way('array', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", json_encode(rows())));
way('gzip', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", gzencode(lines()), [], ['Content-Encoding: gzip']));
way('deflate', fn (string $table): Answer => post("INSERT INTO $table FORMAT JSONEachRow", gzcompress(lines()), [], ['Content-Encoding: deflate']));
way('values', fn (string $table): Answer => post(null, "INSERT INTO $table VALUES " . values()));
way('values_with_columns', fn (string $table): Answer => post("INSERT INTO $table (id, s, maybe, kind, price, at, tags) VALUES", values()));
foreach (['CSV', 'CSVWithNames', 'TabSeparated', 'TSVWithNames', 'JSONCompactEachRow', 'RowBinary'] as $format) {
    way('written_' . strtolower($format), written($format));
}
refused('bad_json', 27, 400, 'JSONEachRow', '{"id":"x"}');
refused('checked', 469, 500, 'JSONEachRow', '{"id":7}');
echo json_encode(['finished' => true, 'checks' => $checks, 'sent' => $sent]), "\n";
