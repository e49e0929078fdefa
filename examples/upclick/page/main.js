// The page: asks once a second how the run goes, and says so when nobody answers any more.

import { createComparison } from './comparison.js'
import { byId, setText } from './dashboard/dom.js'
import { age, name } from './dashboard/format.js'
import { createTable } from './dashboard/table.js'
import { createMaps } from './map.js'
import { inWords, ms, SIGNS, verdict } from './verdict.js'

const PERIOD_MS = 1000
// Whoever is gone is asked seldom.
const LONG_PERIOD_MS = 5000
const TIMEOUT_MS = 5000
const STATES = {
  live: ['ok', '●', 'Live'],
  ended: ['unknown', '■', 'The demo has ended. This is what it showed last.'],
  away: ['warning', '▲', 'The demo has ended, or can’t be reached. This is what it showed last.'],
}

const showMaps = createMaps(byId('maps'))
let showComparison = null
let latest = null

const kpi = (city) => `${SIGNS[verdict(city, latest)]} ${inWords(verdict(city, latest), latest)}`
const cities = createTable(byId('cities-table'), {
  label: 'Cities',
  columns: [
    { title: 'City', isName: true, text: (city) => name(city.name) },
    { title: 'Country', isText: true, text: (city) => name(city.country) },
    { title: 'Average', text: (city) => ms(city.average_ms) },
    { title: 'KPI', isText: true, text: kpi },
  ],
  keyOf: (city) => `${city.name}, ${city.country}`,
})

async function ask() {
  const run = await answer()
  // Another run at the same address has other sides.
  if (run && run.elapsed_seconds < latest?.elapsed_seconds) return location.reload()
  setTimeout(ask, run && !run.ended ? PERIOD_MS : LONG_PERIOD_MS)
  showState((run ?? latest)?.ended ? 'ended' : run ? 'live' : 'away')
  if (run) show(run)
}

async function answer() {
  try {
    const response = await fetch('api/run', { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) })
    return response.ok ? await response.json() : null
  } catch {
    return null
  }
}

function showState(state) {
  const [level, mark, words] = STATES[state]
  byId('state').dataset.level = level
  setText(byId('state-mark'), mark)
  setText(byId('state-words'), words)
}

function show(run) {
  latest = run
  setText(byId('elapsed'), age(Math.floor(run.elapsed_seconds)))
  setText(byId('title'), name(run.title))
  setText(byId('subtitle'), name(run.subtitle))
  setText(byId('sentence'), name(run.sentence ?? (run.sides.length > 1 ? 'Comparing both ways …' : '')))
  byId('sentence').classList.toggle('awaited', run.sentence === null)
  byId('dashboard').hidden = !/^https?:/.test(run.dashboard ?? '')
  if (!byId('dashboard').hidden) byId('dashboard').href = run.dashboard
  setText(byId('origin'), `What the map shows is queried from ${name(run.engine)} while it is inserted.`)
  showLegend(run)
  showMaps(run)
  showComparison ??= createComparison(run)
  showComparison(run)
  cities.show(run.cities)
}

function showLegend(run) {
  for (const found of Object.keys(SIGNS)) {
    const number = run.cities.filter((city) => verdict(city, run) === found).length
    setText(byId(found), `${inWords(found, run)}: ${number}`)
  }
  setText(byId('averaged'), `mean of the last ${age(run.averaged_over_seconds)}`)
}

ask()
