// Questions that are asked again and again, while somebody can see the answers.

import { ApiError } from './api.js'

const tasks = []
/** Reasons not to ask: the tab is hidden, somebody wants to read in peace, the token is wrong. */
const stops = new Set()

/** `note` is told why there is no answer, in the place where it would be. */
export function every(periodMs, run, note = () => {}) {
  tasks.push({ periodMs, run, note, timer: 0, isAsking: false, isWantedAgain: false })
}

export function stop(reason) {
  stops.add(reason)
  for (const task of tasks) clearTimeout(task.timer)
}

export function resume(reason) {
  if (!stops.delete(reason) || stops.size > 0) return
  askAllNow()
}

export function askAllNow() {
  if (stops.size === 0) tasks.forEach(ask)
}

export const isStoppedBy = (reason) => stops.has(reason)

async function ask(task) {
  clearTimeout(task.timer)
  // What is on its way may be the answer to what was wanted before.
  task.isWantedAgain = task.isAsking
  if (task.isAsking) return
  task.isAsking = true
  const begun = performance.now()
  try {
    await task.run()
    task.note('')
  } catch (error) {
    note(task, error)
  }
  task.isAsking = false
  const wait = task.isWantedAgain ? 0 : Math.max(100, task.periodMs - (performance.now() - begun))
  if (stops.size === 0) task.timer = setTimeout(ask, wait, task)
}

function note(task, error) {
  if (!(error instanceof ApiError)) reportError(error)
  else if (error.kind === 'unauthorised') document.dispatchEvent(new Event('unauthorised'))
  // Of silence the head of the page tells; sections keep what they show.
  else if (error.kind === 'refused') task.note(error.message)
}
