// The page: what is asked for how often, its head, and the form for the token.

import { countSilenceFromNow, get, hasToken, setToken, silentSeconds } from './api.js'
import { createAppends } from './appends.js'
import { refresh, setRange } from './charts.js'
import { createDeadLetters } from './dead_letters.js'
import { byId, facts, setText } from './dom.js'
import { createFigures } from './figures.js'
import { age, bytes, clock, count, moment, plural, whole } from './format.js'
import { answers, health } from './health.js'
import * as history from './history.js'
import { createOtlp } from './otlp.js'
import { createPipelines, failingPipelines } from './pipelines.js'
import { askAllNow, every, isStoppedBy, resume, stop } from './polling.js'
import { createRefusals } from './refusals.js'
import { createSettings } from './settings.js'
import { createTables } from './tables.js'

const FAST_MS = 1000
const SLOW_MS = 2000
const MARKS = { ok: '●', warning: '▲', fault: '■', unknown: '○' }
const WORDS = { ok: 'OK', warning: 'Warning', fault: 'Fault', unknown: 'Unknown' }
const calm = matchMedia('(prefers-reduced-motion: reduce)')
const CALM_MS = 5000

let status = null
let drawnAt = -Infinity

const noteIn = (id) => (text) => setText(byId(id), text)

async function askStatus() {
  const before = status
  status = await get('status')
  showSignIn(false)
  if (!before) begin()
  show()
}

/** What the page has depends on what is behind the gateway, so it is made when that is known. */
function begin() {
  const hasParts = status.backend.kind !== 'duckdb'
  byId('no-parts').hidden = hasParts
  createFigures(() => status)
  createSettings()
  every(FAST_MS, askHistory)
  every(FAST_MS, createTables({ hasParts }), noteIn('tables-failure'))
  every(SLOW_MS, createDeadLetters(), noteIn('dead-letters-failure'))
  every(SLOW_MS, createRefusals(), noteIn('refusals-failure'))
  every(SLOW_MS, createOtlp())
  every(SLOW_MS, createPipelines())
  every(SLOW_MS, createAppends())
  askAllNow()
}

async function askHistory() {
  const since = history.lastMs()
  // A clock that was put back would keep the chart still until it has caught up.
  if (since !== null && status.now_ms < since - FAST_MS) history.clear()
  history.add(await get(history.lastMs() === null ? 'history' : `history?since_ms=${history.lastMs()}`))
  show()
  const now = performance.now()
  if (calm.matches && now - drawnAt < CALM_MS) return
  drawnAt = now
  refresh()
}

function show() {
  showHealth()
  for (const [id, text] of Object.entries(answers(status))) setText(byId(`${id}-answer`), text)
  const { backend, journal } = status
  facts(byId('backend'), [
    ['Backend', `${backend.kind === 'duckdb' ? 'DuckDB' : 'ClickHouse'} ${backend.version ?? ''}`],
    ['Address', backend.name],
    ...backend.replicas.map((replica) => ['Replica', replicaText(replica)]),
    ['State', backend.up ? '● up' : `■ away: ${backend.reason ?? 'it does not answer'}`],
    ['Ready', status.ready ? `● ${status.sentence}` : `■ no: ${status.sentence}`],
    ['Windrow', status.version],
    ['Started', `${moment(status.started_ms)}, ${age((status.now_ms - status.started_ms) / 1000)} ago`],
    ['Connections', whole(status.connections)],
    ['CPU', `${count(history.latest('cpu_cores'))} cores`],
    ['Memory', bytes(history.latest('memory_bytes'))],
    ['Journal', `${plural(journal.segments, 'file')}, ${bytes(journal.bytes)}`],
    ['Dead letters', `${whole(status.dead_letters)}, ${bytes(status.dead_letter_bytes)}`],
  ])
}

function replicaText({ address, up, drained, read_only_tables: readOnly, reason, requests }) {
  const state = drained ? '▲ drained' : up ? '● up' : `■ down: ${reason ?? 'it does not answer'}`
  const tables = readOnly > 0 ? `, ${plural(readOnly, 'table')} read-only` : ''
  return `${address} ${state}${tables}, ${plural(requests, 'request')}`
}

function showHealth() {
  const { level, brief, sentence } = healthNow()
  byId('health').dataset.level = level
  setText(byId('health-mark'), MARKS[level])
  setText(byId('health-word'), WORDS[level])
  setText(byId('health-sentence'), sentence)
  // Told aloud when it changes, not with every figure.
  setText(byId('announcement'), `${WORDS[level]} ${brief}`)
  document.title = level === 'ok' ? '● Windrow' : `${level === 'unknown' ? '○' : '!'} Windrow: ${brief}`
}

function healthNow() {
  if (isStoppedBy('token')) return { level: 'unknown', brief: 'no token', sentence: 'The gateway wants its admin token.' }
  // A tab in the background must not go on saying that all is well.
  if (isStoppedBy('pause') || isStoppedBy('hidden')) {
    return { level: 'unknown', brief: 'paused', sentence: `Paused. The figures are of ${clock(history.lastMs())}.` }
  }
  return health(status, silentSeconds(), failingPipelines())
}

function wantToken() {
  // Other questions were on their way with the same token.
  if (isStoppedBy('token')) return
  stopFor('token')
  // Its button is hidden with the rest: whoever signs in wants to see something.
  resumeFor('pause')
  setText(byId('pause'), 'Pause')
  setText(byId('token-failure'), hasToken() ? 'That is not the gateway’s token. Nothing is shown without it.' : '')
  setToken(null)
  showSignIn(true)
  document.querySelectorAll('dialog[open]').forEach((dialog) => dialog.close('no'))
  byId('token').focus()
}

function showSignIn(isWanted) {
  byId('sign-in').hidden = !isWanted
  byId('main').hidden = byId('sections').hidden = byId('controls').hidden = isWanted
  byId('sign-out').hidden = !hasToken()
}

function stopFor(reason) {
  stop(reason)
  showHealth()
}

function resumeFor(reason) {
  countSilenceFromNow()
  resume(reason)
  showHealth()
}

function listen() {
  document.addEventListener('unauthorised', wantToken)
  byId('sign-in-form').addEventListener('submit', (event) => {
    event.preventDefault()
    setToken(byId('token').value)
    byId('token').value = ''
    resumeFor('token')
  })
  byId('sign-out').addEventListener('click', () => {
    setToken(null)
    location.reload()
  })
  document.addEventListener('visibilitychange', () => (document.hidden ? stopFor('hidden') : resumeFor('hidden')))
  byId('pause').addEventListener('click', () => {
    const isPaused = isStoppedBy('pause')
    setText(byId('pause'), isPaused ? 'Pause' : 'Go on')
    if (isPaused) resumeFor('pause')
    else stopFor('pause')
  })
  byId('range').addEventListener('change', ({ target }) => setRange(Number(target.value)))
}

listen()
// A reloaded page may come with what was chosen before.
setRange(Number(document.querySelector('#range input:checked').value))
if (document.hidden) stop('hidden')
every(FAST_MS, askStatus, noteIn('failure'))
askAllNow()
setInterval(showHealth, FAST_MS)
