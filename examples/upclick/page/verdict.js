// What is said of a city: whether it is within the KPI, and how its last minute was.

import { duration, name } from './dashboard/format.js'

/** Told apart by shape; the colour comes on top. */
export const SIGNS = { within: '●', above: '▲', unknown: '○' }

export const ms = (value) => duration(value === null ? NaN : value / 1000)
export const place = (city) => `${name(city.name)}, ${name(city.country)}`

export function verdict({ average_ms: average }, { kpi_ms: kpi }) {
  return average === null ? 'unknown' : average > kpi ? 'above' : 'within'
}

/** within 100 ms */
export const inWords = (found, { kpi_ms: kpi }) => (found === 'unknown' ? 'not measured' : `${found} ${ms(kpi)}`)

/** last 60 s: 12 ms to 80 ms */
export function lastMinute({ last_minute_ms: values }, { last_minute_step_seconds: step }) {
  const known = values.filter((value) => value !== null)
  const range = known.length ? `${ms(Math.min(...known))} to ${ms(Math.max(...known))}` : 'not measured'
  return `last ${values.length * step}\u00a0s: ${range}`
}
