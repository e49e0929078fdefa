// Elements made of text. Nothing here reads HTML: what the API says is a stranger's, down to the names of tables.

export const byId = (id) => document.getElementById(id)

/** Properties by their name in the DOM; those with a dash are attributes. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'role') made.setAttribute(key, value)
    else made[key] = value
  }
  made.append(...children)
  return made
}

/** Leaves a node alone that says so already: a selection in it stays, and nothing is announced twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

export function button(text, onClick, properties = {}) {
  const made = element('button', { type: 'button', textContent: text, ...properties })
  made.addEventListener('click', onClick)
  return made
}

/** A description list: pairs of a name and a text; those without a text are left out. */
export function facts(list, pairs) {
  const shown = pairs.filter(([, text]) => text !== null && text !== undefined && text !== '')
  while (list.children.length > shown.length) list.lastChild.remove()
  shown.forEach(([name, text], at) => {
    const pair = list.children[at] ?? list.appendChild(element('div', {}, element('dt'), element('dd')))
    setText(pair.firstChild, name)
    setText(pair.lastChild, text)
  })
}

/** Asks in a dialog; true if it is to be done. */
export function confirmed({ title, text, verb }) {
  const dialog = byId('confirm')
  setText(byId('confirm-title'), title)
  setText(byId('confirm-text'), text)
  setText(byId('confirm-yes'), verb)
  dialog.returnValue = 'no'
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true })
  })
}

for (const dialog of document.querySelectorAll('dialog')) {
  for (const closer of dialog.querySelectorAll('[data-close]')) {
    closer.addEventListener('click', () => dialog.close(closer.dataset.close))
  }
}
