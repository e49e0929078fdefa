// Where the server is, and the report that the programs print.
import { ClickHouseError } from '@clickhouse/client'
import assert from 'node:assert/strict'

const env = process.env
export const connection = {
  url: `http://${env.CLICKHOUSE_HOST}:${env.CLICKHOUSE_PORT}`,
  username: env.CLICKHOUSE_USER,
  password: env.CLICKHOUSE_PASSWORD,
  database: env.CLICKHOUSE_DATABASE,
}
const checks = []
// Inserts sent, by table.
const sent = {}

export async function check(name, body) {
  try {
    checks.push({ name, ok: true, detail: String(await body()) })
  } catch (error) {
    checks.push({ name, ok: false, detail: String(error?.stack ?? error) })
  }
}

export async function fails(promise, code, type) {
  const error = await promise.then(() => assert.fail('no error was raised'), (raised) => raised)
  assert.ok(error instanceof ClickHouseError, String(error?.stack ?? error))
  assert.equal(error.code, code)
  assert.equal(error.type, type)
  return error.message
}

export function sends(table, inserts = 1) {
  sent[table] = (sent[table] ?? 0) + inserts
  return table
}

export function print() {
  console.log(JSON.stringify({ finished: true, checks, sent }))
}
