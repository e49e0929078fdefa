// A table that is kept up to date in place: rows stay the same elements as long as they stand for the same thing, so
// that focus, selection and scroll position stay.

import { button, element, setText } from './dom.js'

/**
 * `columns`: each with its `title`, and how a cell is made: `text(row)`, or `make(row)` once and `update(cell, row)`.
 * `isName` makes it the header of its row, `isText` aligns it to the left, `sort` names what the server sorts it by.
 */
export function createTable(parent, { label, columns, keyOf, onSort = null }) {
  const heads = columns.map((column) => head(column, onSort))
  const body = element('tbody')
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body)
  // Whoever has no mouse scrolls it with the arrow keys, and for that it takes the focus.
  parent.append(element('div', { className: 'scroll', role: 'region', 'aria-label': label, tabIndex: 0 }, table))
  const known = new Map()

  return {
    show(rows) {
      const keys = new Set(rows.map(keyOf))
      for (const [key, gone] of known) if (!keys.has(key) && known.delete(key)) gone.remove()
      rows.forEach((row, at) => {
        const key = keyOf(row)
        if (!known.has(key)) known.set(key, line(columns, row))
        const shown = known.get(key)
        if (body.children[at] !== shown) body.insertBefore(shown, body.children[at] ?? null)
        columns.forEach((column, cell) => update(column, shown.children[cell], row))
      })
    },
    markSort(sort, order) {
      heads.forEach((cell, at) => {
        if (columns[at].sort !== sort) cell.removeAttribute('aria-sort')
        else cell.setAttribute('aria-sort', order === 'asc' ? 'ascending' : 'descending')
      })
    },
  }
}

function head({ title, hint = '', isText, isName, sort }, onSort) {
  const cell = element('th', { scope: 'col', className: isText || isName ? 'text' : 'number', title: hint })
  if (sort && onSort) {
    cell.append(button(title, () => onSort(sort, isName ? 'asc' : 'desc')))
  } else cell.append(title)
  return cell
}

function line(columns, row) {
  const cells = columns.map(({ isName, isText, className, make }) => {
    const kind = className ?? (isText || isName ? 'text' : 'number')
    const cell = isName ? element('th', { scope: 'row', className: kind }) : element('td', { className: kind })
    if (make) cell.append(make(row))
    return cell
  })
  return element('tr', {}, ...cells)
}

function update(column, cell, row) {
  if (column.update) column.update(cell, row)
  else if (column.text) {
    const text = column.text(row)
    setText(cell, text)
    // What is too long for its column is cut off on the screen.
    if ((column.isText || column.isName) && cell.title !== text) cell.title = text
  }
}

/** First, previous, next, last; and which rows these are. */
export function createPages(parent, { noun, onMove }) {
  const where = element('p', { className: 'where', role: 'status' })
  let offset = 0, last = 0, size = 1
  const move = (to) => () => onMove(Math.max(0, Math.min(last, to())))
  const buttons = [
    button('First', move(() => 0)),
    button('Previous', move(() => offset - size)),
    button('Next', move(() => offset + size)),
    button('Last', move(() => last)),
  ]
  const pages = element('div', { className: 'pages', role: 'group', 'aria-label': `Pages of ${noun}s` }, ...buttons)
  parent.append(where, pages)
  return (from, all, limit, sentence) => {
    offset = from
    size = limit
    last = Math.max(0, Math.floor((all - 1) / limit) * limit)
    setText(where, sentence)
    pages.hidden = all <= limit
    // Not `disabled`, which would throw away the focus of who has just come to the end.
    buttons.forEach((made, at) => made.setAttribute('aria-disabled', at < 2 ? offset === 0 : offset >= last))
  }
}
