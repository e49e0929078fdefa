// The pipelines from Kafka, partition by partition; nothing at all if there are none.

import { get } from './api.js'
import { byId, element, setText } from './dom.js'
import { age, count, duration, moment, whole } from './format.js'
import { createTable } from './table.js'

const STATES = {
  running: '● running',
  waiting: '○ waiting: it connects, or has no partition',
  paused: '○ paused: as much is held as may be',
  replaying: '○ replaying: a batch of before goes first',
  failed: '▲ failed: it is tried again',
  stopped: '▲ stopped',
}

const LATENCY = 'From a message’s timestamp until its rows are stored; of the last minute'
const LAG = 'Age of the oldest message that is not stored'

const COLUMNS = [
  { title: 'Topic', isName: true, text: ({ topic }) => topic },
  { title: 'Partition', text: ({ partition }) => String(partition) },
  { title: 'State', isText: true, text: ({ state }) => (STATES[state] ?? state).split(':')[0] },
  { title: 'Lag', hint: LAG, text: (partition) => age(partition.oldest_unstored_seconds) },
  { title: 'Lag, messages', text: (partition) => whole(partition.lag_messages) },
  { title: 'Rows', hint: 'Since the start', text: ({ rows }) => count(rows) },
  { title: 'Latency p50', hint: LATENCY, text: (partition) => duration(partition.latency_seconds?.p50) },
  { title: 'Latency p99', hint: LATENCY, text: (partition) => duration(partition.latency_seconds?.p99) },
  { title: 'Dead letters', text: (partition) => whole(partition.dead_letters) },
  { title: 'Last error', isText: true, className: 'text error', text: (partition) => partition.last_error?.error ?? '' },
]

let failing = []

/** The names of those that can't go on by themselves, or only if something else is mended. */
export const failingPipelines = () => failing

/** Returns what asks for them. */
export function createPipelines() {
  const blocks = new Map()

  function show(pipeline) {
    const { pipeline: name, partitions, last_error: lastError } = pipeline
    if (!blocks.has(name)) blocks.set(name, block(name))
    const { root, state, about, error, table } = blocks.get(name)
    setText(state, STATES[pipeline.state] ?? pipeline.state)
    state.dataset.level = isFailing(pipeline) ? 'fault' : 'ok'
    setText(about, [
      ` · into ${pipeline.database}.${pipeline.table} as ${pipeline.format}, ${pipeline.guarantee}`,
      `group ${pipeline.group}`,
      `a message may be ${age(pipeline.max_latency_seconds)} old when it is stored`,
    ].join('; '))
    setText(error, lastError ? `Last error, ${moment(lastError.at_micros / 1000)}: ${lastError.error}` : '')
    table.show(partitions)
    return root
  }

  return async () => {
    const { pipelines } = await get('kafka')
    const area = byId('pipelines')
    area.hidden = pipelines.length === 0
    failing = pipelines.filter((one) => isFailing(one) || one.partitions.some(isFailing)).map(({ pipeline }) => pipeline)
    const roots = pipelines.map(show)
    for (const [name, { root }] of blocks) if (!roots.includes(root) && blocks.delete(name)) root.remove()
  }
}

const isFailing = ({ state }) => state === 'failed' || state === 'stopped'
const keyOf = ({ topic, partition }) => `${partition}:${topic}`

function block(name) {
  const state = element('strong', { className: 'state' })
  const about = element('span')
  const error = element('p', { className: 'error' })
  const root = element('article', {}, element('h4', { textContent: name }), element('p', {}, state, about), error)
  byId('pipelines').append(root)
  const table = createTable(root, { label: `Partitions of ${name}`, columns: COLUMNS, keyOf })
  return { root, state, about, error, table }
}
