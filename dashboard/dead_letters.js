// The dead letters: which there are, and what is done with them.

import { get, post } from './api.js'
import { button, byId, confirmed, element, setText } from './dom.js'
import { count, plural, whole } from './format.js'
import { createOpened, senderOf, tableOf, timeOf } from './opened_dead_letter.js'
import { askAllNow } from './polling.js'
import { createPages, createTable } from './table.js'

const SHOWN = 10

const COLUMNS = [
  { title: 'Failed', isText: true, text: ({ failed }) => timeOf(failed) },
  { title: 'Table', isName: true, text: tableOf },
  { title: 'From', isText: true, text: senderOf },
  { title: 'Rows', text: ({ rows }) => count(rows) },
  { title: 'Attempts', text: ({ attempts }) => whole(attempts) },
  { title: 'Error', isText: true, className: 'text error', text: ({ error }) => error },
]

/** Returns what asks for those that are shown. */
export function createDeadLetters() {
  const showOpened = createOpened({ retry, discard })
  const id = { title: 'Id', make: (letter) => verb('Open', showOpened, letter, { textContent: String(letter.id) }) }
  const verbs = { title: 'What to do', isText: true, className: 'verbs', make: verbsOf }
  const columns = [id, ...COLUMNS, verbs]
  const table = createTable(byId('dead-letters-table'), { label: 'Dead letters', columns, keyOf: (letter) => letter.id })
  const showPages = createPages(byId('dead-letters-pages'), { noun: 'dead letter', onMove: moveTo })
  let offset = 0, total = 0

  function moveTo(wanted) {
    offset = wanted
    askAllNow()
  }

  function verb(name, act, letter, properties = {}) {
    return button(name, () => act(letter), { 'aria-label': `${name} dead letter ${letter.id}`, ...properties })
  }

  function verbsOf(letter) {
    const properties = { className: 'danger', textContent: 'Discard…' }
    return element('div', {}, verb('Retry', retry, letter), verb('Discard', discard, letter, properties))
  }

  const note = (text) => setText(byId('dead-letters-note'), text)

  async function act(verb, body, told) {
    note('…')
    try {
      note(told(await post(`dead-letters/${verb}`, body)))
    } catch (error) {
      if (error.kind === 'unauthorised') document.dispatchEvent(new Event('unauthorised'))
      note(error.kind === 'away' ? 'No answer: look at the list before you try it again.' : error.message)
    }
    askAllNow()
  }

  function retry({ id }) {
    return act('retry', { ids: [id] }, retriedInWords)
  }

  async function discard(letter) {
    const { id, rows, topic } = letter
    const lost = typeof topic === 'string' ? 'A message' : plural(rows, 'row')
    const sure = await confirmed({
      title: `Discard dead letter ${id}?`,
      text: `${lost} for ${tableOf(letter)}, from ${senderOf(letter)}, will be thrown away for ever.`,
      verb: 'Discard',
    })
    if (sure) await act('discard', { ids: [id] }, ({ discarded }) => `${plural(discarded, 'dead letter')} discarded.`)
    return sure
  }

  byId('retry-all').addEventListener('click', async () => {
    const sure = await confirmed({
      title: `Retry ${total === 1 ? 'the dead letter' : `all ${plural(total, 'dead letter')}`}?`,
      text: 'They become inserts again, the oldest first. Repair the cause first: what fails again comes back.',
      verb: 'Retry all',
    })
    if (sure) await act('retry', { all: true }, retriedInWords)
  })

  return async () => {
    const asked = offset
    const { total: all, letters } = await get(`dead-letters?limit=${SHOWN}&offset=${asked}`)
    // An answer to what is not wanted any more.
    if (asked !== offset) return
    if (letters.length === 0 && all > 0) return moveTo(0)
    total = all
    table.show(letters)
    byId('dead-letters-table').hidden = byId('retry-all').hidden = all === 0
    const where = `${whole(offset + 1)}–${whole(offset + letters.length)} of ${whole(all)}, the latest first`
    showPages(offset, all, SHOWN, all === 0 ? 'None.' : where)
  }
}

function retriedInWords({ selected, retried, failed }) {
  const done = `${whole(retried)} of ${plural(selected, 'dead letter')} retried.`
  if (failed.length > 0) return `${done} Number ${failed[0].id} was not: ${failed[0].error}`
  return `${done} What fails again comes back here under a new id.`
}
