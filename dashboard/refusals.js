// What the gateway has refused, and what it has passed on ungathered: how often, and what to do about it.

import { get } from './api.js'
import { byId } from './dom.js'
import { whole } from './format.js'
import { createTable } from './table.js'

const COUNTS = [
  { title: 'Last minute', text: ({ last_minute: lastMinute }) => whole(lastMinute) },
  { title: 'Since the start', text: ({ count }) => whole(count) },
]

/** Returns what asks for them. */
export function createRefusals() {
  const errors = createTable(byId('errors'), {
    label: 'Errors by code',
    columns: [
      { title: 'Error', isName: true, text: ({ code, name }) => `${name ?? 'Error'} (${code})` },
      ...COUNTS,
      { title: 'The last one', isText: true, className: 'text long', text: ({ latest }) => latest ?? '' },
    ],
    keyOf: ({ code }) => code,
  })
  const forwarded = createTable(byId('forwarded'), {
    label: 'Forwarded requests by reason',
    columns: [
      { title: 'Reason', isName: true, text: ({ reason }) => reason },
      ...COUNTS,
      { title: 'What it is, and what to do', isText: true, className: 'text long', text: ({ help }) => help ?? '' },
    ],
    keyOf: ({ reason }) => reason,
  })
  return async () => {
    const refusals = await get('refusals')
    show(errors, 'errors', refusals.errors)
    show(forwarded, 'forwarded', refusals.forwarded)
  }
}

function show(table, id, rows) {
  table.show(rows.toSorted((one, other) => other.count - one.count))
  byId(id).hidden = rows.length === 0
  byId(`no-${id}`).hidden = rows.length > 0
}
