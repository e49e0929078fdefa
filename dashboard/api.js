// Questions to the admin port: the token, errors as sentences, and when the gateway last answered.

const KEY = 'windrow.admin_token'
const TIMEOUT_MS = 15_000
// The gateway has the database read the rows of a dead letter, and gives it half a minute.
const ROWS_TIMEOUT_MS = 40_000
// Thousands of dead letters are retried in one go.
const POST_TIMEOUT_MS = 600_000

let token = null
// Storage may be forbidden; then the token lasts as long as the page.
try { token = sessionStorage.getItem(KEY) } catch { /* nothing is remembered */ }
let answeredAt = performance.now()

export class ApiError extends Error {
  /** `kind`: `away` (no answer), `unauthorised`, or `refused` (the gateway says why) */
  constructor(kind, sentence) {
    super(sentence)
    this.kind = kind
  }
}

export const hasToken = () => token !== null

export function setToken(given) {
  token = given
  try {
    if (given === null) sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, given)
  } catch { /* nothing is remembered */ }
}

/** Since when nothing was heard, though it was asked for. */
export const silentSeconds = () => (performance.now() - answeredAt) / 1000
export const countSilenceFromNow = () => { answeredAt = performance.now() }

export const get = async (path) => JSON.parse(await ask(path, { method: 'GET' }))

/** Numbers as they were written: JavaScript's own would round those of 64 bits. */
export const getExact = async (path) =>
  JSON.parse(await ask(path, { method: 'GET' }, ROWS_TIMEOUT_MS), (_, value, context) =>
    typeof value === 'number' ? context?.source ?? value : value)

export async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' }
  return JSON.parse(await ask(path, { method: 'POST', headers, body: JSON.stringify(body) }, POST_TIMEOUT_MS))
}

async function ask(path, { headers = {}, ...request }, timeoutMs = TIMEOUT_MS) {
  if (token !== null) headers.Authorization = `Bearer ${asBytes(token)}`
  let response, text
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    response = await fetch(`api/v1/${path}`, { ...request, headers, signal, cache: 'no-store' })
    text = await response.text()
  } catch {
    throw new ApiError('away', 'The gateway does not answer.')
  }
  const isJson = response.headers.get('Content-Type')?.includes('json')
  // Something in between speaks for a gateway that is gone.
  if (response.status >= 502 && !isJson) throw new ApiError('away', 'The gateway does not answer.')
  answeredAt = performance.now()
  if (response.status === 401) throw new ApiError('unauthorised', 'The gateway wants its admin token.')
  if (response.ok && isJson) return text
  throw new ApiError('refused', sentenceOf(text) ?? `The gateway answers ${response.status} to ${path.split('?')[0]}.`)
}

/** Headers are bytes, and fetch takes each as a letter; a token may have any letters. */
const asBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text))

function sentenceOf(text) {
  try {
    return JSON.parse(text).error ?? null
  } catch {
    return null
  }
}
