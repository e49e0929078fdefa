// One dead letter in a dialog: its whole error, all that is known, and its first rows, or the message's value.

import { get, getExact } from './api.js'
import { byId, element, facts, setText } from './dom.js'
import { bytes, moment, name, whole } from './format.js'
import { createTable } from './table.js'

const FIRST_ROWS = 20

export const tableOf = ({ database, table }) => name(`${database}.${table}`)
export const senderOf = ({ user, topic, partition, offset }) => name(topic ? `${topic}:${partition}:${offset}` : user)
export const timeOf = (text) => (Number.isNaN(Date.parse(text)) ? text : moment(Date.parse(text)))

/** Returns what opens a dead letter of the list. */
export function createOpened({ retry, discard }) {
  const dialog = byId('opened')
  let opened = null

  byId('opened-retry').addEventListener('click', () => {
    dialog.close()
    retry(opened)
  })
  byId('opened-discard').addEventListener('click', async () => {
    if (await discard(opened)) dialog.close()
  })

  return async (letter) => {
    const { id } = letter
    opened = letter
    setText(byId('opened-title'), `Dead letter ${id}`)
    setText(byId('opened-error'), 'Asking the gateway …')
    byId('opened-facts').replaceChildren()
    byId('opened-rows').replaceChildren()
    dialog.showModal()
    const known = await get(`dead-letters/${id}`).catch(failureOf)
    if (opened !== letter) return
    setText(byId('opened-error'), known.error)
    if (known.id === undefined) return
    facts(byId('opened-facts'), factsOf(known))
    const parts = isMessage(known) ? partsOf(known) : await rowsOf(id)
    if (opened === letter) byId('opened-rows').replaceChildren(...parts)
  }
}

function failureOf(error) {
  if (error.kind === 'unauthorised') document.dispatchEvent(new Event('unauthorised'))
  return { error: error.message }
}

const isMessage = ({ topic }) => typeof topic === 'string'
const pairs = (object) => Object.entries(object ?? {}).map(([key, value]) => `${key} = ${value}`).join(', ')

function factsOf(letter) {
  return [
    ['Table', tableOf(letter)],
    [isMessage(letter) ? 'Message' : 'User', senderOf(letter)],
    ['Pipeline', letter.pipeline],
    ['Failed', timeOf(letter.failed)],
    ['Arrived', timeOf(letter.arrived)],
    ['Attempts', whole(letter.attempts)],
    ['Rows', `${whole(letter.rows)}, ${bytes(letter.bytes)}`],
    ['Ack level', letter.ack],
    ['Kept as', letter.kept_as],
    ['Columns', letter.columns?.map(({ name, type }) => (type ? `${name} ${type}` : name)).join(', ')],
    ['Settings', pairs(letter.settings)],
    ['Roles', letter.roles?.join(', ')],
    ['Query', letter.query],
    ['Query id', letter.query_id],
    ['Timestamp', isMessage(letter) ? moment(letter.timestamp_ms) : null],
  ]
}

async function rowsOf(id) {
  const answer = await getExact(`dead-letters/${id}/rows?limit=${FIRST_ROWS}`).catch(failureOf)
  const head = element('h3', { textContent: 'First rows' })
  if (!answer.meta) return [head, element('p', { textContent: answer.error })]
  const columns = answer.meta.map(({ name: title, type: hint }) => (
    { title, hint, isText: true, className: 'text long', text: (row) => shown(row[title]) }))
  const place = element('div')
  createTable(place, { label: 'First rows', columns, keyOf: (row) => row }).show(answer.data)
  return [head, place]
}

const shown = (value) => (value === null ? 'NULL' : typeof value === 'object' ? JSON.stringify(value) : String(value))

function partsOf({ key, headers = [], value }) {
  const parts = [['Key', key], ...headers.map((header) => [`Header ${header.name}`, header.value]), ['Value', value]]
  return parts.flatMap(([title, text]) => [
    element('h3', { textContent: title }),
    element('pre', { textContent: text ?? 'none', tabIndex: 0, role: 'region', 'aria-label': title }),
  ])
}
