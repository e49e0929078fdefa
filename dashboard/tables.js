// The tables that are inserted into. The gateway searches, sorts and cuts into pages: there may be ten thousands.

import { get } from './api.js'
import { byId } from './dom.js'
import { age, byteRate, bytes, count, name, plural, whole } from './format.js'
import { createPages, createTable } from './table.js'

const OTHERS = '(others)'
const TYPING_MS = 200

const figure = (title, sort, format, hint) => ({ title, sort, hint, text: (row) => format(row[sort]) })

const COLUMNS = [
  { title: 'Table', sort: 'table', isName: true, hint: 'Sorted by the table’s name alone', text: nameOf },
  figure('Rows/s', 'rows_per_second', count, 'Mean of the last seconds'),
  figure('Inserts/s', 'inserts_per_second', count, 'Mean of the last seconds'),
  figure('Bytes/s', 'bytes_per_second', byteRate, 'Payload bytes; mean of the last seconds'),
  figure('Oldest', 'oldest_insert_seconds', age, 'Age of the oldest insert that is not stored yet'),
  figure('Backlog', 'backlog_inserts', count, 'Inserts in the journal that are not in memory yet'),
  figure('Held', 'held_bytes', bytes, 'Bytes in buffers and in batches on their way'),
  figure('Failed', 'failed_inserts', count, 'Inserts that failed, since the start'),
  figure('Rows/flush', 'rows_per_flush', count, 'Mean since the start'),
  figure('Parts', 'parts_active', whole, 'Active parts, as last seen'),
  figure('Rows', 'rows', count, 'Since the start'),
]

function nameOf({ database, table }) {
  return database === OTHERS ? OTHERS : name(`${database}.${table}`)
}

/** Returns what asks for the page that is shown. */
export function createTables({ hasParts }) {
  const wanted = { search: '', sort: 'rows_per_second', order: 'desc', offset: 0, limit: 10 }
  const keyOf = ({ database, table }) => JSON.stringify([database, table])
  let table = null
  const showPages = createPages(byId('tables-pages'), { noun: 'table', onMove: (offset) => change({ offset }) })

  /** A gateway that doesn't know a figure has no column for it. */
  function create(row) {
    const columns = COLUMNS.filter(({ sort }) => sort in row && (hasParts || sort !== 'parts_active'))
    table = createTable(byId('tables'), { label: 'Tables', columns, keyOf, onSort: sortBy })
    table.markSort(wanted.sort, wanted.order)
  }

  function change(changes) {
    Object.assign(wanted, changes)
    // The next question in line comes within a second, and would show the failure.
    ask().catch(() => {})
  }

  function sortBy(sort, first) {
    const order = wanted.sort === sort ? (wanted.order === 'asc' ? 'desc' : 'asc') : first
    table.markSort(sort, order)
    change({ sort, order, offset: 0 })
  }

  let typing = 0
  byId('tables-search').addEventListener('input', ({ target }) => {
    clearTimeout(typing)
    typing = setTimeout(() => change({ search: target.value.trim(), offset: 0 }), TYPING_MS)
  })
  byId('tables-limit').addEventListener('change', ({ target }) => change({ limit: Number(target.value), offset: 0 }))

  let latest = 0
  async function ask() {
    const asked = ++latest
    const { offset, limit, search } = wanted
    const { total, matching, tables } = await get(`tables?${new URLSearchParams(wanted)}`)
    // An answer to what is not wanted any more.
    if (asked !== latest) return
    if (tables.length === 0 && matching > 0 && offset > 0) return change({ offset: 0 })
    if (!table && tables.length > 0) create(tables[0])
    table?.show(tables)
    showPages(offset, matching, limit, whereInWords({ offset, shown: tables.length, matching, total, search }))
    byId('others').hidden = !tables.some(({ database }) => database === OTHERS)
  }
  return ask
}

function whereInWords({ offset, shown, matching, total, search }) {
  if (total === 0) return 'No table has been inserted into yet.'
  if (matching === 0) return `None of ${plural(total, 'table')} matches.`
  const where = `${whole(offset + 1)}–${whole(offset + shown)} of ${whole(matching)}`
  return search ? `${where} that match, of ${plural(total, 'table')}` : where
}
