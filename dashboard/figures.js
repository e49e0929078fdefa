// Which charts there are, and where.

import { addChart } from './charts.js'
import { byId } from './dom.js'
import { age, byteRate, bytes, count, duration, rate, share } from './format.js'
import * as history from './history.js'

const number = (axis, title, name) => ({ title, axis, format: count, lines: [{ name }] })
const perSecond = (unit, title, name) => ({ ...number(`${unit}/s`, title, name), format: rate(unit), tick: count })
const size = (title, name) => ({ title, axis: 'bytes', format: bytes, isBinary: true, least: 1024, lines: [{ name }] })
const sizePerSecond = (title, name) => ({ ...size(title, name), axis: 'bytes/s', format: byteRate, tick: bytes })
const time = (title, ...names) => ({
  title, axis: 'time', format: duration, keepsHighest: true, least: 0.001,
  lines: names.map((name) => ({ name, label: name.match(/p\d+/)?.[0] })),
})

const sizeWithin = (title, name, limit) => ({
  ...size(title, name),
  limit,
  note: () => (limit() ? `${share(history.latest(name) ?? 0, limit())} of ${bytes(limit())}` : ''),
})

/** `status` returns the latest; of DuckDB there are no parts. */
export function createFigures(status) {
  const { backend } = status()
  const hasParts = backend.kind !== 'duckdb'

  const arriving = byId('arriving-charts')
  addChart(arriving, perSecond('inserts', 'Inserts per second', 'inserts_per_second'))
  addChart(arriving, perSecond('rows', 'Rows per second', 'rows_per_second'))
  addChart(arriving, sizePerSecond('Payload bytes per second', 'payload_bytes_per_second'))

  const safe = byId('safe-charts')
  addChart(safe, sizeWithin('Journal on disk, bytes', 'journal_bytes', () => status().journal.max_bytes))
  addChart(safe, time('Time of a sync of the journal', 'journal_sync_seconds'))
  addChart(safe, sizePerSecond('Written to the journal, bytes per second', 'journal_written_bytes_per_second'))
  addChart(safe, sizeWithin('Held in memory, bytes', 'held_bytes', () => status().max_held_bytes))
  const backlog = number('inserts', 'Backlog in the journal, inserts', 'backlog_inserts')
  addChart(safe, { ...backlog, keepsHighest: true, note: () => bytes(history.latest('backlog_bytes')) })
  addChart(safe, { ...time('Age of the oldest insert not stored', 'oldest_insert_seconds'), format: age, least: 1 })

  const stored = byId('stored-charts')
  const flushes = { name: 'flushes_per_second', label: 'flushes' }
  const parts = { name: 'parts_per_second', label: 'parts' }
  addChart(stored, hasParts
    ? { title: 'Flushes and parts per second', axis: 'per second', format: count, lines: [flushes, parts] }
    : perSecond('flushes', 'Flushes per second', flushes.name))
  if (hasParts) addChart(stored, { ...number('parts', 'Active parts', 'parts_active'), keepsHighest: true })
  addChart(stored, time('Time of a flush', 'flush_p50_seconds', 'flush_p99_seconds'))
  addChart(stored, time('Time of an insert, from arrival to answer', 'insert_p50_seconds', 'insert_p99_seconds'))
  addChart(stored, number('rows', 'Rows per flush', 'rows_per_flush'))
  addChart(stored, number('inserts', 'Inserts per flush', 'inserts_per_flush'))

  const refused = byId('refused-charts')
  addChart(refused, {
    title: 'Failed inserts and errors per second', axis: 'per second', format: count,
    lines: [{ name: 'failed_inserts_per_second', label: 'failed' }, { name: 'errors_per_second', label: 'errors' }],
  })
  addChart(refused, perSecond('requests', 'Forwarded requests per second', 'forwarded_per_second'))
  addChart(refused, { ...number('dead letters', 'Dead letters', 'dead_letters'), keepsHighest: true })
}
