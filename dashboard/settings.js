// The settings in force and where each comes from. Asked for once, when somebody wants to see them.

import { get } from './api.js'
import { byId, setText } from './dom.js'
import { plural } from './format.js'
import { createTable } from './table.js'

const COLUMNS = [
  { title: 'Setting', isName: true, text: ({ name }) => name },
  { title: 'Value', isText: true, className: 'text long', text: ({ value }) => value },
  { title: 'From', isText: true, text: ({ source }) => source },
]

export function createSettings() {
  const details = byId('settings')
  const table = createTable(byId('settings-table'), { label: 'Settings', columns: COLUMNS, keyOf: ({ name }) => name })
  let settings = []

  function show() {
    const wanted = byId('settings-search').value.trim().toLowerCase()
    const found = settings.filter((setting) => COLUMNS.some(({ text }) => text(setting).toLowerCase().includes(wanted)))
    table.show(found)
    setText(byId('settings-note'), plural(found.length, 'setting') + (wanted ? ` of ${settings.length}` : ''))
  }

  byId('settings-search').addEventListener('input', show)
  details.addEventListener('toggle', async () => {
    if (!details.open || settings.length) return
    try {
      ({ settings } = await get('settings'))
      show()
    } catch (error) {
      if (error.kind === 'unauthorised') document.dispatchEvent(new Event('unauthorised'))
      setText(byId('settings-note'), `${error.message} Close this and open it again to ask once more.`)
    }
  })
}
