// What it costs the database to be inserted into: charts, and the figures of each side.

import { addChart, setRange } from './dashboard/charts.js'
import { byId, element, setText } from './dashboard/dom.js'
import { count, name, rate, whole } from './dashboard/format.js'
import * as history from './dashboard/history.js'
import { createTable } from './dashboard/table.js'
import { ms } from './verdict.js'

const MIN_RANGE_SECONDS = 30
const MAX_RANGE_SECONDS = 600
const calm = matchMedia('(prefers-reduced-motion: reduce)')
const CALM_MS = 5000

const percent = (value) => (value === null ? count(value) : `${count(value)}\u00a0%`)

/** Returns what shows a run; what there is to show depends on the first one. */
export function createComparison(first) {
  const sides = createTable(byId('figures'), { label: 'Figures', columns: columns(first), keyOf: (side) => side.name })
  const begunMs = Math.round(Date.now() / 1000 - first.elapsed_seconds) * 1000
  let missing = charts(first).map((chart) => ({ ...chart, parent: byId('charts').appendChild(element('div')) }))
  let drawnAt = -Infinity

  return (run) => {
    sides.show(run.sides)
    const problems = run.sides.filter(({ problem }) => problem !== null)
    setText(byId('problems'), problems.map((side) => `${name(side.name)}: ${name(side.problem)}`).join('\n'))
    remember(run.history, begunMs)
    missing = missing.filter((chart) => !begin(chart, run))
    if (calm.matches && performance.now() - drawnAt < CALM_MS) return
    drawnAt = performance.now()
    setRange(Math.max(MIN_RANGE_SECONDS, Math.min(MAX_RANGE_SECONDS, Math.ceil(run.elapsed_seconds))))
  }
}

function columns({ pieces, engine }) {
  const column = (title, key, format) => ({ title, text: (side) => format(side[key]) })
  return [
    { title: 'Rows go', isName: true, text: (side) => name(side.name) },
    column('Inserts per second', 'inserts_per_second', rate('inserts')),
    column('Rows inserted', 'rows_inserted', whole),
    column('Rows acknowledged', 'acknowledged', whole),
    column(`Found in ${name(engine)}`, 'found', whole),
    column('Failed inserts', 'failures', whole),
    column('Time to ack, p50', 'ack_p50_ms', ms),
    column('Time to ack, p99', 'ack_p99_ms', ms),
    column(`New ${name(pieces)}`, 'parts_per_second', rate(name(pieces))),
    column(`Active ${name(pieces)}`, 'active_parts', whole),
    column('Active and merged', 'all_parts', whole),
    column(`${name(engine)}’s CPU`, 'cpu_percent', percent),
  ]
}

function charts({ pieces, engine }) {
  const chart = (title, key, axis, format = count) => ({ title, key, axis, format, tick: count, hasLegend: true })
  return [
    chart(`New ${name(pieces)} per second`, 'parts_per_second', `${name(pieces)}/s`),
    chart(`Active ${name(pieces)}`, 'active_parts', name(pieces)),
    chart(`Active and merged ${name(pieces)}`, 'all_parts', name(pieces)),
    chart(`${name(engine)}’s CPU`, 'cpu_percent', '% of one core', percent),
  ]
}

/** What nobody measures has no chart: DuckDB has no parts, and the CPU of another's process isn't seen. */
function begin({ key, parent, ...figure }, { sides, history }) {
  const isKnown = history.sides.some((side) => side[key].some((value) => value !== null))
  const label = (side) => (sides.length > 1 ? name(side.name) : '')
  const lines = sides.map((side, at) => ({ name: `${at}.${key}`, label: label(side) }))
  if (isKnown) addChart(parent, { ...figure, lines })
  return isKnown
}

/** The dashboard's history goes by the clock: the run's seconds are put on it. */
function remember({ seconds, sides }, begunMs) {
  if (seconds.length === 0) return
  const series = sides.flatMap((side, at) => Object.entries(side).map(([key, values]) => [`${at}.${key}`, values]))
  history.add({
    first_ms: begunMs + seconds[0] * 1000,
    step_ms: seconds.length > 1 ? (seconds[1] - seconds[0]) * 1000 : 1000,
    count: seconds.length,
    series: Object.fromEntries(series),
  })
}
