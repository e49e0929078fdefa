// Every way to insert that the official JavaScript client offers, each into a table of its own; prints one JSON report.
import { createClient } from '@clickhouse/client'
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { check, connection, fails, print, sends } from './report.mjs'

const client = createClient(connection)
const COLUMNS = `(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4),
  at DateTime64(3, 'UTC'), tags Array(String))`
const ROWS = Array.from({ length: 10 }, (_, n) => ({
  id: n, s: `text ${n} ‘quoted’ \\ \t ", it's\n`, maybe: n % 2 ? null : 100 - n, kind: `kind ${n % 3}`, price: n + 0.125,
  at: '2024-02-29 12:34:56.789', tags: Array.from({ length: n % 4 }, (_, t) => `tag ${t}`),
}))
const WAITING = { async_insert: 1, wait_for_async_insert: 1 }
const NOT_WAITING = { async_insert: 1, wait_for_async_insert: 0 }

// The client's own lists of formats, less what ClickHouse does not read.
const STREAMED_JSON = [
  'JSONEachRow', 'JSONStringsEachRow', 'JSONCompactEachRow', 'JSONCompactStringsEachRow', 'JSONCompactEachRowWithNames',
  'JSONCompactEachRowWithNamesAndTypes', 'JSONCompactStringsEachRowWithNames', 'JSONCompactStringsEachRowWithNamesAndTypes',
]
const WHOLE_JSON = ['JSON', 'JSONCompact', 'JSONColumnsWithMetadata', 'JSONObjectEachRow']
const RAW = [
  'CSV', 'CSVWithNames', 'CSVWithNamesAndTypes', 'TabSeparated', 'TabSeparatedRaw', 'TabSeparatedWithNames',
  'TabSeparatedWithNamesAndTypes', 'CustomSeparated', 'CustomSeparatedWithNames', 'CustomSeparatedWithNamesAndTypes', 'Parquet',
]

const rowsOf = async (table) => (await client.query({ query: `SELECT * FROM ${table} ORDER BY id`, format: 'JSONEachRow' })).json()

// The raw formats have no escape for a line break in one of them, so their rows are without.
const source = (format) => `SELECT * REPLACE (replaceAll(replaceAll(s, '\\n', ' '), '\\t', ' ') AS s) FROM source ORDER BY id FORMAT ${format}`

async function inserted(table, expected, insert, { waits = true } = {}) {
  await check(`insert ${table}`, async () => {
    await client.command({ query: `CREATE TABLE ${sends(table)} ${COLUMNS} ENGINE = MergeTree ORDER BY id` })
    const { summary } = await insert(table)
    // What was not waited for is not counted (the bare engine, which has no queue, counts it all the same), and shows up soon.
    if (waits) assert.equal(summary.written_rows, `${expected.length}`)
    const deadline = Date.now() + 30_000
    let rows = await rowsOf(table)
    while (rows.length < expected.length && Date.now() < deadline) rows = await rowsOf(table)
    assert.deepEqual(rows, expected)
  })
}

const objects = (options) => (table) => client.insert({ table, values: ROWS, format: 'JSONEachRow', ...options })

await inserted('source', ROWS, objects())
await inserted('waiting', ROWS, objects({ clickhouse_settings: WAITING }))
await inserted('not_waiting', ROWS, objects({ clickhouse_settings: NOT_WAITING }), { waits: false })
await inserted('pinned_off', ROWS, objects({ clickhouse_settings: { async_insert: 0 } }))
await inserted('of_columns', ROWS, objects({ columns: Object.keys(ROWS[0]) }))
await inserted('except_columns', ROWS, objects({ columns: { except: ['nothing'] } }))

await check('one row many times at once', async () => {
  await client.command({ query: `CREATE TABLE ${sends('one_by_one', ROWS.length)} ${COLUMNS} ENGINE = MergeTree ORDER BY id` })
  const one = (row) => client.insert({ table: 'one_by_one', values: [row], format: 'JSONEachRow', clickhouse_settings: WAITING })
  const results = await Promise.all(ROWS.map(one))
  assert.deepEqual(results.map((result) => result.summary.written_rows), ROWS.map(() => '1'))
  assert.deepEqual(await rowsOf('one_by_one'), ROWS)
})

for (const format of [...STREAMED_JSON, ...WHOLE_JSON]) {
  const read = async () => (await client.query({ query: 'SELECT * FROM source ORDER BY id', format })).json()
  await inserted(`values_${format}`, ROWS, async (table) => client.insert({ table, values: await read(), format }))
  if (STREAMED_JSON.includes(format)) {
    await inserted(`stream_${format}`, ROWS, async (table) => client.insert({ table, values: Readable.from(await read()), format }))
  }
}

const plain = ROWS.map((row) => ({ ...row, s: row.s.replaceAll('\n', ' ').replaceAll('\t', ' ') }))
for (const format of RAW) {
  await inserted(`raw_${format}`, plain, async (table) => {
    const { stream } = await client.exec({ query: source(format) })
    return client.insert({ table, values: Readable.from(await stream.toArray(), { objectMode: false }), format })
  })
}

for (const [name, request] of Object.entries({ gzip: true, br: { codec: 'br' } })) {
  const packed = createClient({ ...connection, compression: { request } })
  await inserted(`packed_${name}`, ROWS, (table) => packed.insert({ table, values: ROWS, format: 'JSONEachRow' }))
  await inserted(`packed_stream_${name}`, ROWS, (table) => packed.insert({ table, values: Readable.from(ROWS), format: 'JSONEachRow' }))
  await packed.close()
}

async function refused(name, columns, values, format, code, type) {
  await check(`${name} is ${code}`, async () => {
    await client.command({ query: `CREATE TABLE ${sends(name)} ${columns} ENGINE = MergeTree ORDER BY id` })
    await fails(client.insert({ table: name, values, format }), code, type)
    assert.deepEqual(await rowsOf(name), [])
  })
}

const refusal = (text) => Readable.from([text], { objectMode: false })
await refused('bad_json', COLUMNS, [{ id: 'x' }], 'JSONEachRow', '27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED')
await refused('bad_csv', COLUMNS, refusal('x,y\n'), 'CSV', '27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED')
await refused('object_for_array', COLUMNS, [{ id: 1 }], 'JSONCompactEachRow', '27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED')
await refused('checked', '(id UInt64, CONSTRAINT small CHECK id < 5)', [{ id: 9 }], 'JSONEachRow', '469', 'VIOLATED_CONSTRAINT')

await client.close()
print()
