// Ordered appends that are under way; nothing at all if there are none.

import { get } from './api.js'
import { byId } from './dom.js'
import { name, whole } from './format.js'
import { createTable } from './table.js'

const COLUMNS = [
  { title: 'Table', isName: true, text: ({ table }) => name(table) },
  { title: 'User', isText: true, text: ({ user }) => name(user) },
  { title: 'State', isText: true, text: ({ state }) => state },
  { title: 'Batches received', text: ({ received }) => whole(received.reduce(addRange, 0)) },
  { title: 'Waits for batch', text: ({ next }) => whole(next) },
  { title: 'Id', isText: true, className: 'text long', text: ({ id }) => id },
]

/** A range has both its ends. */
function addRange(sum, [first, last]) {
  return sum + last - first + 1
}

/** Returns what asks for them. */
export function createAppends() {
  const table = createTable(byId('appends-table'), { label: 'Ordered appends', columns: COLUMNS, keyOf: ({ id }) => id })
  return async () => {
    const { appends } = await get('appends')
    byId('appends').hidden = appends.length === 0
    table.show(appends)
  }
}
