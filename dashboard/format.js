// Numbers as people read them, with their unit. What is not known is a dash.

const NO_BREAK = '\u00a0'
const NOT_KNOWN = '–'
const GROUPED = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const POWERS = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'K']]
const SIZES = [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]
const AGES = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'min'], [60, 'min', 1, 's']]

const HIDDEN = /[\p{Cc}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

const isKnown = (value) => typeof value === 'number' && Number.isFinite(value)
const joined = (digits, unit) => (unit ? digits + NO_BREAK + unit : digits)

/** Three digits at most, and no zeros behind the point. */
const short = (value) => String(Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)))

/** 0.3, 12, 1,203, 45.6 K, 1.2 M */
export function count(value) {
  if (!isKnown(value)) return NOT_KNOWN
  if (value < 10) return short(value)
  if (value < 9999.5) return GROUPED.format(value)
  const [size, unit] = POWERS.find(([size]) => value >= size * 0.9995) ?? POWERS.at(-1)
  return joined(short(value / size), unit)
}

/** Every digit: 1,234,567 */
export const whole = (value) => (isKnown(value) ? GROUPED.format(value) : NOT_KNOWN)

/** As it is, with a fraction if it has one: 0.5, 268,435,456 */

/** 812 B, 3.4 MiB */
export function bytes(value) {
  if (!isKnown(value)) return NOT_KNOWN
  const [size, unit] = SIZES.find(([size]) => value >= size * 0.9995) ?? [1, 'B']
  return joined(short(value / size), unit)
}

/** How long something takes: 840 µs, 12 ms, 1.25 s, 3 min 12 s */
export function duration(seconds) {
  if (!isKnown(seconds)) return NOT_KNOWN
  if (seconds === 0) return joined('0', 'ms')
  if (seconds < 0.0009995) return joined(short(seconds * 1e6), 'µs')
  if (seconds < 0.9995) return joined(short(seconds * 1e3), 'ms')
  return seconds < 60 ? joined(short(seconds), 's') : age(seconds)
}

/** How old something is: 0.3 s, 12 s, 3 min 12 s, 2 d 4 h */
export function age(seconds) {
  if (!isKnown(seconds)) return NOT_KNOWN
  if (seconds < 9.95) return joined(String(Number(seconds.toFixed(1))), 's')
  const rounded = Math.round(seconds)
  const [large, largeUnit, small, smallUnit] = AGES.find(([large]) => rounded >= large) ?? [1, 's']
  const text = joined(String(Math.floor(rounded / large)), largeUnit)
  const rest = small ? Math.floor((rounded % large) / small) : 0
  return rest ? `${text} ${joined(String(rest), smallUnit)}` : text
}

export const rate = (unit) => (value) => (isKnown(value) ? joined(count(value), `${unit}/s`) : NOT_KNOWN)
export const byteRate = (value) => (isKnown(value) ? `${bytes(value)}/s` : NOT_KNOWN)

/** A name as it is, and what could not be seen in it, or would turn its letters around, as \u{202e}. */
export const name = (text) => String(text).replace(HIDDEN, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`)

/** 41 % */
export const share = (part, all) => joined(short(Math.floor((100 * part) / all)), '%')

/** "1 dead letter", "3 dead letters" */
export const plural = (number, noun) => `${whole(number)}${NO_BREAK}${noun}${number === 1 ? '' : 's'}`

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DAY_AND_CLOCK = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })

/** 14:03:59, in this browser's time zone */
export const clock = (ms) => (isKnown(ms) ? CLOCK.format(ms) : NOT_KNOWN)

/** 2026-01-31 14:03:59, in this browser's time zone */
export const moment = (ms) => (isKnown(ms) ? DAY_AND_CLOCK.format(ms) : NOT_KNOWN)
