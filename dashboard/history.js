// The last hour, second by second, as the gateway's history has it.

const KEPT_SECONDS = 3600
const FRESH_SECONDS = 10
/** More than these in a chart are a thicket: a minute of a chart then is a few points. */
const MAX_POINTS = 300

let seconds = []
let series = new Map()

/** Of the latest sample, in ms; null without one. */
export const lastMs = () => (seconds.length ? Math.round(seconds.at(-1) * 1000) : null)

export function clear() {
  seconds = []
  series = new Map()
}

export function add({ first_ms: firstMs, step_ms: stepMs, count, series: given }) {
  const names = Object.keys(given)
  for (const name of names) if (!series.has(name)) series.set(name, seconds.map(() => null))
  const step = stepMs / 1000
  for (let at = 0; at < count; at++) {
    const second = firstMs / 1000 + at * step
    const last = seconds.at(-1) ?? -Infinity
    // The gateway's clock ticks a little early or late: what is so near is the sample that is known already.
    if (second < last + step / 2) continue
    // A gap is a gap, not a line across it: the gateway was away.
    if (last > 0 && second > last + 3 * step) push(last + step, () => null)
    push(second, (name) => given[name]?.[at] ?? null)
  }
  const old = seconds.findIndex((second) => second > seconds.at(-1) - KEPT_SECONDS)
  if (old > 0) {
    seconds.splice(0, old)
    for (const values of series.values()) values.splice(0, old)
  }
}

function push(second, valueOf) {
  seconds.push(second)
  for (const [name, values] of series) values.push(valueOf(name))
}

/** The last that is known; what nothing happened to for longer has no figure of now. */
export const latest = (name) => recent(name, FRESH_SECONDS).at(-1) ?? null

/** Of the last `length` seconds, those that are known. */
export function recent(name, length) {
  return (series.get(name) ?? []).slice(firstWithin(length)).filter((value) => value !== null)
}

/** Points for a chart: of each stretch of time the mean, or the highest of what must not be smoothed away. */
export function points(names, length, keepsHighest) {
  const stretch = Math.max(1, Math.ceil(length / MAX_POINTS))
  const times = []
  const lines = names.map(() => [])
  const columns = names.map((name) => series.get(name))
  for (let from = firstWithin(length), to; from < seconds.length; from = to) {
    // Stretches stand still while time goes on, so that a peak keeps its shape.
    const end = (Math.floor(seconds[from] / stretch) + 1) * stretch
    for (to = from + 1; to < seconds.length && seconds[to] < end;) to++
    times.push(seconds[to - 1])
    columns.forEach((values, line) => lines[line].push(values ? gathered(values, from, to, keepsHighest) : null))
  }
  return [times, ...lines]
}

function gathered(values, from, to, keepsHighest) {
  let sum = 0, highest = -Infinity, known = 0
  for (let at = from; at < to; at++) {
    if (values[at] === null) continue
    sum += values[at]
    highest = Math.max(highest, values[at])
    known++
  }
  return known === 0 ? null : keepsHighest ? highest : sum / known
}

function firstWithin(length) {
  const after = (seconds.at(-1) ?? 0) - length
  let low = 0
  for (let high = seconds.length; low < high;) {
    const middle = (low + high) >> 1
    if (seconds[middle] > after) high = middle
    else low = middle + 1
  }
  return low
}
