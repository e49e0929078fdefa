// How the gateway is, in sentences: what is wrong, worst first, and what follows from it.

import { age, bytes, count, duration, name, plural, share, whole } from './format.js'
import * as history from './history.js'

const SILENT_SECONDS = 3
const BEHIND_SECONDS = 30
const MINUTE_SECONDS = 60
const FULL = 0.9
const NAMED = 3

const isFull = (part, limit) => limit > 0 && part >= FULL * limit
const lastMinute = (series) => Math.round(history.recent(series, MINUTE_SECONDS).reduce((sum, value) => sum + value, 0))

/** `level`: ok, warning or fault; `brief` for the page's title; `sentence` for its head. */
export function health(status, silentSeconds, failingPipelines) {
  if (silentSeconds > SILENT_SECONDS) {
    const older = status ? ' The figures below are older.' : ''
    const sentence = `No answer since ${age(Math.floor(silentSeconds))}; it is asked again.${older}`
    return { level: 'fault', brief: 'no answer', sentence }
  }
  if (!status) return { level: 'unknown', brief: 'asking', sentence: 'Asking the gateway …' }
  const found = [...faults(status), ...warnings(status, failingPipelines)]
  const { level, brief } = found[0] ?? { level: 'ok', brief: '' }
  const told = found.map(({ sentence }) => sentence)
  const arrives = flow()
  if (told.length === 0) told.push(arrives ? 'All is well:' : 'All is well.')
  return { level, brief, sentence: [...told, arrives].join(' ').trim() }
}

function flow() {
  const rows = history.latest('rows_per_second')
  const oldest = history.latest('oldest_insert_seconds')
  if (rows === null) return ''
  const waiting = oldest > 0 ? `the oldest that is not stored is ${age(oldest)} old` : 'nothing waits to be stored'
  return `${count(rows)} rows/s arrive, ${waiting}.`
}

function faults({ ready, sentence, backend, journal, held_bytes: held, max_held_bytes: maxHeld }) {
  const found = []
  const add = (brief, text) => found.push({ level: 'fault', brief, sentence: text })
  if (!backend.up) {
    add('backend away', `The backend is away: ${backend.reason ?? 'it does not answer'}. Inserts are kept on disk.`)
  } else if (!ready) add('not ready', `Not ready: ${sentence}.`)
  if (isFull(journal.bytes, journal.max_bytes)) {
    const full = share(journal.bytes, journal.max_bytes)
    add('journal full', `The journal is ${full} full; at its limit inserts of level disk get 503.`)
  }
  if (isFull(held, maxHeld)) {
    add('memory full', `The buffers are ${share(held, maxHeld)} full; at their limit inserts wait, then get 503.`)
  }
  return found
}

function warnings({ backend, dead_letters: deadLetters, unprotected_tables: unprotected = [] }, failingPipelines) {
  const found = []
  const add = (brief, sentence) => found.push({ level: 'warning', brief, sentence })
  const oldest = history.latest('oldest_insert_seconds')
  const failed = lastMinute('failed_inserts_per_second')
  if (backend.up && oldest > BEHIND_SECONDS) add('falls behind', 'It falls behind.')
  if (failed > 0) add('inserts fail', `${plural(failed, 'insert')} failed in the last minute.`)
  if (failingPipelines.length > 0) add('Kafka', `Kafka: ${failingPipelines.map(name).join(', ')} can’t go on.`)
  if (unprotected.length > 0) {
    const tables = unprotected.slice(0, NAMED).map(({ database, table, view }) => `${name(`${database}.${table}`)} (by ${name(view)})`)
    const more = unprotected.length > NAMED ? ` and ${unprotected.length - NAMED} more` : ''
    const which = `${tables.join(', ')}${more}`
    add('views', `After a lost answer a view’s rows may be there twice in ${which}: ${unprotected[0].why}.`)
  }
  const letters = plural(deadLetters, 'dead letter')
  if (deadLetters > 0) add(letters, `${letters} ${deadLetters === 1 ? 'waits' : 'wait'}.`)
  return found
}

/** The answers to the questions that head the page's sections. */
export function answers(status) {
  const none = 'There are no figures yet.'
  if (history.lastMs() === null) return { arriving: none, safe: safe(status), stored: none, refused: none }
  return { arriving: arriving(status), safe: safe(status), stored: stored(status), refused: refused(status) }
}

function arriving({ connections }) {
  const open = plural(connections, 'connection')
  if (lastMinute('inserts_per_second') === 0) return `No insert was gathered in the last minute; ${open} open.`
  const [rows, inserts] = ['rows_per_second', 'inserts_per_second'].map((series) => count(history.latest(series)))
  return `Yes: ${rows} rows/s in ${inserts} inserts/s, over ${open}.`
}

function safe({ journal }) {
  const files = `${bytes(journal.bytes)} of files, of ${bytes(journal.max_bytes)} allowed`
  return `${plural(journal.inserts, 'insert')} in the journal: ${bytes(journal.live_bytes)} in ${files}.`
}

function stored({ backend }) {
  const [flush, rows] = ['flush_p99_seconds', 'rows_per_flush'].map(history.latest)
  if (!backend.up) return 'Not now: the backend is away. What waits is stored when it is back.'
  if (flush === null) return 'Nothing was flushed in the last seconds.'
  return `Yes: the last flushes took ${duration(flush)} (p99), with ${whole(rows)} rows each.`
}

function refused({ dead_letters: deadLetters }) {
  const errors = plural(lastMinute('errors_per_second'), 'error')
  const forwarded = plural(lastMinute('forwarded_per_second'), 'forwarded request')
  return `${plural(deadLetters, 'dead letter')}; in the last minute ${errors} and ${forwarded}.`
}
