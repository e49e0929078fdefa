// What OpenTelemetry's senders bring, signal by signal; nothing at all where the ports of OTLP are closed.

import { get } from './api.js'
import { byId } from './dom.js'
import { byteRate, count, duration, whole } from './format.js'
import { createTable } from './table.js'

const AGE = 'Of the last record of a request, when the request is acknowledged; of the last minute'
const TITLES = { logs: 'Logs', traces: 'Traces', metrics: 'Metrics' }

const COLUMNS = [
  { title: 'Signal', isName: true, text: ({ signal }) => TITLES[signal] ?? signal },
  { title: 'Rows/s', hint: 'Of the last minute', text: ({ last_minute: of }) => count(of.rows_per_second) },
  { title: 'Requests/s', hint: 'Of the last minute', text: ({ last_minute: of }) => count(of.requests_per_second) },
  { title: 'Bytes/s', hint: 'Of the last minute, unpacked', text: ({ last_minute: of }) => byteRate(of.bytes_per_second) },
  { title: 'Age p50', hint: AGE, text: ({ last_minute: of }) => duration(of.age_seconds.p50) },
  { title: 'Age p99', hint: AGE, text: ({ last_minute: of }) => duration(of.age_seconds.p99) },
  { title: 'Rows', hint: 'Since the start', text: ({ rows }) => count(rows) },
  { title: 'Rejected rows', hint: 'Since the start: they can never be stored, and are dead letters', text: (of) => whole(of.rejected_rows) },
  { title: 'Refused requests', hint: 'Since the start', text: (of) => whole(of.refused_requests) },
]

/** Returns what asks for them. */
export function createOtlp() {
  const table = createTable(byId('otlp-table'), { label: 'Signals of OpenTelemetry', columns: COLUMNS, keyOf: ({ signal }) => signal })
  return async () => {
    const { signals } = await get('otlp')
    byId('otlp').hidden = signals.length === 0
    table.show(signals)
  }
}
