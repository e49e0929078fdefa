// Drives a ClickHouse HTTP endpoint with the official JavaScript client; prints one JSON report.
import { createClient } from '@clickhouse/client'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { check, connection, fails, print } from './report.mjs'

const client = createClient(connection)

async function rowsOf(query, parameters) {
  const result = await client.query({ query, format: 'JSONEachRow', ...parameters })
  return result.json()
}

const KINDS = {
  id: 'UInt64', i8: 'Int8', f32: 'Float32', f64: 'Float64', flag: 'Bool', s: 'String', lc: 'LowCardinality(String)',
  maybe: 'Nullable(Int32)', numbers: 'Array(Int32)', texts: 'Array(Nullable(String))', attributes: 'Map(String, String)',
  pair: 'Tuple(Int32, String)', day: 'Date', far_day: 'Date32', moment: "DateTime('UTC')", instant: "DateTime64(3, 'UTC')",
  price: 'Decimal(18, 4)', key: 'UUID', ip4: 'IPv4', ip6: 'IPv6', colour: "Enum8('red' = 1, 'green' = 2)",
}

function kindsRow(n) {
  return {
    id: `${n}`, i8: n - 5, f32: n + 0.5, f64: n / 4, flag: n % 2 === 0, s: `text ${n} ‘quoted’ \\ \t "`, lc: `kind ${n % 3}`,
    maybe: n % 2 ? null : n, numbers: [n, n + 1], texts: ['a', null], attributes: { a: `${n}`, b: 'x' },
    pair: [n, `p${n}`], day: '2024-02-29', far_day: '1950-01-01', moment: '2024-02-29 12:34:56',
    instant: '2024-02-29 12:34:56.789', price: n + 0.25, key: '00000000-0000-0000-0000-00000000000' + n,
    ip4: '10.0.0.1', ip6: '::1', colour: n % 2 ? 'red' : 'green',
  }
}

await check('ping', async () => assert.equal((await client.ping()).success, true))
await check('ping with a query', async () => assert.equal((await client.ping({ select: true })).success, true))

await check('all types', async () => {
  const columns = Object.entries(KINDS).map(([name, kind]) => `${name} ${kind}`).join(', ')
  await client.command({ query: `CREATE TABLE js_kinds (${columns}) ENGINE = MergeTree ORDER BY id` })
  const rows = [0, 1, 2].map(kindsRow)
  const inserted = await client.insert({ table: 'js_kinds', values: rows, format: 'JSONEachRow' })
  assert.equal(inserted.executed, true)
  assert.equal(inserted.summary.written_rows, '3')
  assert.match(inserted.query_id, /^[0-9a-f-]{36}$/)
  const settings = { clickhouse_settings: { output_format_json_quote_64bit_integers: 1 } }
  assert.deepEqual(await rowsOf('SELECT * FROM js_kinds ORDER BY id', settings), rows)
})

await client.command({ query: 'CREATE TABLE js_one (id UInt64, s String) ENGINE = MergeTree ORDER BY id' })

await check('one row many times, waiting', async () => {
  const clickhouse_settings = { async_insert: 1, wait_for_async_insert: 1 }
  for (let id = 0; id < 20; id++) {
    const values = [{ id, s: `r${id}` }]
    const { summary } = await client.insert({ table: 'js_one', values, format: 'JSONEachRow', clickhouse_settings })
    assert.equal(summary.written_rows, '1')
  }
  assert.equal((await rowsOf('SELECT count() AS n FROM js_one'))[0].n, 20)
})

await check('forty at once, waiting', async () => {
  const clickhouse_settings = { async_insert: 1, wait_for_async_insert: 1 }
  const one = (id) => client.insert({ table: 'js_one', values: [{ id, s: 'many' }], format: 'JSONEachRow', clickhouse_settings })
  const results = await Promise.all(Array.from({ length: 40 }, (_, n) => one(100 + n)))
  assert.deepEqual(new Set(results.map((r) => r.summary.written_rows)), new Set(['1']))
  assert.equal((await rowsOf("SELECT count() AS n FROM js_one WHERE s = 'many'"))[0].n, 40)
})

await check('without waiting', async () => {
  const clickhouse_settings = { async_insert: 1, wait_for_async_insert: 0 }
  const { executed } = await client.insert({ table: 'js_one', values: [{ id: 900 }], format: 'JSONEachRow', clickhouse_settings })
  return assert.equal(executed, true)
})

for (const [format, values] of [
  ['JSONCompactEachRow', [[200, 'compact'], [201, 'compact']]],
  ['JSONStringsEachRow', [{ id: '210', s: 'strings' }]],
  ['JSON', { meta: [{ name: 'id', type: 'UInt64' }, { name: 's', type: 'String' }], data: [{ id: 220, s: 'meta' }] }],
]) {
  await check(`insert ${format}`, async () => {
    const { summary } = await client.insert({ table: 'js_one', values, format })
    assert.ok(Number(summary.written_rows) > 0)
  })
}

await check('insert a stream of objects', async () => {
  const values = Readable.from(Array.from({ length: 1000 }, (_, n) => ({ id: 1000 + n, s: 'stream' })))
  const { summary } = await client.insert({ table: 'js_one', values, format: 'JSONEachRow' })
  assert.equal(summary.written_rows, '1000')
})

await check('insert a stream of CSV text', async () => {
  const values = Readable.from(['3000,"a"\n', '3001,"b"\n'], { objectMode: false })
  await client.insert({ table: 'js_one', values, format: 'CSV' })
  assert.equal((await rowsOf('SELECT count() AS n FROM js_one WHERE id IN (3000, 3001)'))[0].n, 2)
})

await check('insert some columns', async () => {
  await client.insert({ table: 'js_one', values: [{ id: 4000 }], columns: ['id'], format: 'JSONEachRow' })
  await client.insert({ table: 'js_one', values: [{ id: 4001 }], columns: { except: ['s'] }, format: 'JSONEachRow' })
  assert.equal((await rowsOf('SELECT count() AS n FROM js_one WHERE id IN (4000, 4001)'))[0].n, 2)
})

await check('insert by statement', async () => {
  const { summary } = await client.command({ query: "INSERT INTO js_one VALUES (5000, 'a'), (5001, 'b')" })
  assert.equal(summary.written_rows, '2')
})

await check('insert from a select', async () => {
  await client.command({ query: 'INSERT INTO js_one SELECT 6000 + number, toString(number) FROM numbers(5)' })
  assert.equal((await rowsOf('SELECT count() AS n FROM js_one WHERE id BETWEEN 6000 AND 6004'))[0].n, 5)
})

await check('empty insert sends nothing', async () => {
  const { executed } = await client.insert({ table: 'js_one', values: [], format: 'JSONEachRow' })
  assert.equal(executed, false)
})

await check('result formats', async () => {
  const query = 'SELECT number AS n, toString(number) AS s FROM numbers(3)'
  const json = await (await client.query({ query, format: 'JSON' })).json()
  assert.equal(json.rows, 3)
  assert.deepEqual(json.data[2], { n: 2, s: '2' })
  const compact = await (await client.query({ query, format: 'JSONCompactEachRow' })).json()
  assert.deepEqual(compact, [[0, '0'], [1, '1'], [2, '2']])
  assert.equal(await (await client.query({ query, format: 'CSV' })).text(), '0,"0"\n1,"1"\n2,"2"\n')
  assert.equal(await (await client.query({ query, format: 'TabSeparated' })).text(), '0\t0\n1\t1\n2\t2\n')
})

await check('streamed read of 100k rows', async () => {
  const result = await client.query({ query: 'SELECT number FROM numbers(100000)', format: 'JSONEachRow' })
  let [count, sum] = [0, 0]
  for await (const rows of result.stream()) {
    for (const row of rows) {
      count += 1
      sum += Number(row.json().number)
    }
  }
  assert.equal(count, 100_000)
  assert.equal(sum, (99_999 * 100_000) / 2)
})

await check('result closed in the middle', async () => {
  const result = await client.query({ query: 'SELECT number FROM numbers(10000000)', format: 'JSONEachRow' })
  result.close()
  assert.equal((await client.ping()).success, true)
})

await check('exec gives the raw stream', async () => {
  const { stream } = await client.exec({ query: 'SELECT number FROM numbers(1000) FORMAT RowBinary' })
  let bytes = 0
  for await (const piece of stream) bytes += piece.length
  assert.equal(bytes, 8000)
})

await check('parameters', async () => {
  const query_params = { n: 41, s: "it's \\ \n", list: [1, 2], none: null, map: { a: 1 } }
  const query = `SELECT {n:Int32} + 1 AS n, {s:String} AS s, {list:Array(Int32)} AS list,
    {none:Nullable(String)} AS none, {map:Map(String, UInt8)} AS map`
  const [row] = await rowsOf(query, { query_params })
  assert.deepEqual(row, { n: 42, s: "it's \\ \n", list: [1, 2], none: null, map: { a: 1 } })
})

await check('settings', async () => {
  const clickhouse_settings = { max_block_size: '1234' }
  assert.equal((await rowsOf("SELECT getSetting('max_block_size') AS v", { clickhouse_settings }))[0].v, 1234)
})

await check('session', async () => {
  const own = createClient({ ...connection, session_id: randomUUID(), max_open_connections: 1 })
  await own.command({ query: 'CREATE TEMPORARY TABLE scratch (n UInt8)' })
  await own.insert({ table: 'scratch', values: [{ n: 1 }, { n: 2 }], format: 'JSONEachRow' })
  const rows = await (await own.query({ query: 'SELECT sum(n) AS s FROM scratch', format: 'JSONEachRow' })).json()
  await own.close()
  assert.equal(Number(rows[0].s), 3)
})

await check('gzip both ways', async () => {
  const packed = createClient({ ...connection, compression: { request: true, response: true } })
  const values = Array.from({ length: 2000 }, (_, n) => ({ id: 10_000 + n, s: 'packed'.repeat(20) }))
  const { summary, response_headers } = await packed.insert({ table: 'js_one', values, format: 'JSONEachRow' })
  assert.equal(summary.written_rows, '2000')
  assert.ok(response_headers['x-clickhouse-query-id'])
  const result = await packed.query({ query: 'SELECT * FROM js_one WHERE id >= 10000', format: 'JSONEachRow' })
  assert.equal((await result.json()).length, 2000)
  await packed.close()
})

await check('query id', async () => {
  const query_id = randomUUID()
  const result = await client.query({ query: 'SELECT 1', format: 'JSONEachRow', query_id })
  await result.text()
  assert.equal(result.query_id, query_id)
  assert.equal(result.response_headers['x-clickhouse-query-id'], query_id)
  const inserted = await client.insert({ table: 'js_one', values: [{ id: 7000 }], format: 'JSONEachRow', query_id: `${query_id}-i` })
  assert.equal(inserted.query_id, `${query_id}-i`)
})

await check('unknown table', () => fails(client.query({ query: 'SELECT * FROM nowhere' }), '60', 'UNKNOWN_TABLE'))
await check('insert into unknown table', () =>
  fails(client.insert({ table: 'nowhere', values: [{ a: 1 }], format: 'JSONEachRow' }), '60', 'UNKNOWN_TABLE'))
await check('syntax error', () => fails(client.command({ query: 'SELEC 1' }), '62', 'SYNTAX_ERROR'))
await check('bad row', () =>
  fails(client.insert({ table: 'js_one', values: [{ id: 'x' }], format: 'JSONEachRow' }), '27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'))
await check('wrong password', () => {
  const stranger = createClient({ ...connection, password: 'wrong' })
  return fails(stranger.command({ query: 'SELECT 1' }), '516', 'AUTHENTICATION_FAILED')
})
await check('abort', async () => {
  const controller = new AbortController()
  const slow = client.query({ query: 'SELECT sleepEachRow(1) FROM numbers(100) SETTINGS function_sleep_max_microseconds_per_block = 0', abort_signal: controller.signal })
  controller.abort()
  await assert.rejects(slow)
  assert.equal((await client.ping()).success, true)
})

await client.close()
print()
