// One city: its average and its last minute, next to its dot.

import { element, setText } from './dashboard/dom.js'
import { svg } from './svg.js'
import { inWords, lastMinute, ms, place, SIGNS, verdict } from './verdict.js'

const WIDTH = 216
const HEIGHT = 56
const GAP = 12

export function createCard(parent) {
  const [title, sign, average, words, range] = ['b', 'span', 'strong', 'span', 'p'].map((tag) => element(tag))
  const line = svg('path', { class: 'line' })
  const kpiLine = svg('path', { class: 'kpi' }), kpiText = svg('text', { x: WIDTH, 'text-anchor': 'end' })
  const spark = svg('svg', { viewBox: `0 -4 ${WIDTH} ${HEIGHT + 8}` }, kpiLine, line, kpiText)
  const head = element('p', {}, sign, ' ', average, ' ', words)
  // Whoever can't see it is told the same by the dot's name.
  const card = element('div', { className: 'card', 'aria-hidden': 'true', hidden: true }, title, head, spark, range)
  parent.append(card)

  function show(dot, city, run) {
    const found = verdict(city, run)
    const values = city.last_minute_ms
    const highest = Math.max(run.kpi_ms * 1.4, ...values)
    const y = (value) => Number((HEIGHT * (1 - value / highest)).toFixed(1))
    setText(title, place(city))
    setText(sign, SIGNS[found])
    sign.dataset.verdict = found
    setText(average, ms(city.average_ms))
    setText(words, inWords(found, run))
    setText(range, lastMinute(city, run))
    line.setAttribute('d', lineThrough(values, y))
    kpiLine.setAttribute('d', `M0,${y(run.kpi_ms)}H${WIDTH}`)
    // On the side where the line is not.
    kpiText.setAttribute('y', y(run.kpi_ms) + (found === 'above' ? 13 : -4))
    setText(kpiText, `KPI ${ms(run.kpi_ms)}`)
    card.hidden = false
    moveTo(dot.getBoundingClientRect(), parent.getBoundingClientRect())
  }

  /** Above the dot, or below it where that would cover what stands above the map. */
  function moveTo(dot, { left, top, width }) {
    const x = dot.left + dot.width / 2 - left - card.offsetWidth / 2
    const above = dot.top - top - card.offsetHeight - GAP
    card.style.left = `${Math.max(0, Math.min(width - card.offsetWidth, x))}px`
    card.style.top = `${above < 0 ? dot.bottom - top + GAP : above}px`
  }

  return { show, hide: () => { card.hidden = true } }
}

/** What was not measured is a gap; a value between two gaps is a point. */
function lineThrough(values, y) {
  const step = WIDTH / Math.max(1, values.length - 1)
  const point = (at) => `${(at * step).toFixed(1)},${y(values[at])}`
  const isKnown = (at) => (values[at] ?? null) !== null
  const drawn = [...values.keys()].filter(isKnown)
  return drawn.map((at) => (isKnown(at - 1) ? `L${point(at)}` : `M${point(at)}h.1`)).join('')
}
