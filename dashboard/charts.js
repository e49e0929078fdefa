// One chart: its title, the figure of now (or of where the pointer is), and the line. In words, too, for those who
// can't see it.

import { element, setText } from './dom.js'
import { age, clock } from './format.js'
import * as history from './history.js'

// A classic script, since uPlot has no small module.
const { uPlot } = globalThis

const HEIGHT = matchMedia('(max-width: 600px)').matches ? 100 : 128
const FONT = '11px system-ui, sans-serif'
const LABEL_GAP = 12
const BINARY_STEPS = Array.from({ length: 52 }, (_, power) => 2 ** power)
const DASHES = [[], [5, 4]]
const RANGE_WORDS = { 300: 'last 5 minutes', 900: 'last 15 minutes', 3600: 'last hour' }

const charts = []
let colours = {}
let rangeSeconds = 300

/**
 * `figure` is what the chart shows. `lines`: the series of the history, each with its `label`. `format` writes a value
 * with its unit, `tick` one beside the axis. `keepsHighest`: of a stretch of time the highest value is drawn, not the
 * mean. `limit`: of what the figure is a part. `least`: the axis goes up to this at least. `note` is said beside it.
 * `hasLegend`: what tells several lines apart stands beside their figures, and not at their ends too.
 */
export function addChart(parent, figure) {
  const { title, lines, limit } = figure
  const figures = lines.map(() => element('span'))
  const value = element('p', { className: 'value' })
  lines.forEach(({ label = '' }, line) => {
    value.append(element('small', { textContent: label }), ' ', figures[line], ' ')
  })
  const summary = element('p', { className: 'summary' })
  const drawing = element('div', { className: 'drawing', role: 'img' })
  const meter = element('div', { className: 'meter', role: 'meter', 'aria-label': `${title}: part of the limit` })
  meter.append(element('div'))
  meter.hidden = !limit
  const head = element('h3', { textContent: title })
  parent.append(element('article', { className: 'chart' }, head, value, meter, summary, drawing))

  const chart = { ...figure, figures, summary, drawing, meter, isInView: false, plot: null }
  chart.plot = new uPlot(options(chart), [[], ...lines.map(() => [])], drawing)
  charts.push(chart)
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width > 0) chart.plot.setSize({ width: Math.floor(width), height: HEIGHT })
  }).observe(drawing)
  new IntersectionObserver((changes) => {
    chart.isInView = changes.at(-1).isIntersecting
    if (chart.isInView) draw(chart)
  }, { rootMargin: '300px' }).observe(drawing)
}

export function setRange(seconds) {
  rangeSeconds = seconds
  refresh()
}

/** What is out of view is drawn when it comes into view. */
export function refresh() {
  charts.forEach((chart) => (chart.isInView ? draw(chart) : write(chart)))
}

function draw(chart) {
  chart.plot.setData(history.points(chart.lines.map(({ name }) => name), rangeSeconds, chart.keepsHighest))
  write(chart)
}

function options(chart) {
  const { axis, format, tick = format, isBinary = false, least = 1, hasLegend = false } = chart
  const grid = { stroke: () => colours.grid, width: 1 }
  const common = { stroke: () => colours.muted, font: FONT, grid, ticks: { show: false } }
  const hasEnds = chart.lines.length > 1 && !hasLegend
  return {
    width: 320,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, hasEnds ? 46 : hasLegend ? 26 : 18, 0, 0],
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
      sync: { key: 'windrow', scales: ['x', null] },
    },
    scales: {
      x: { range: () => [now() - rangeSeconds, now()] },
      y: { range: (_, __, highest) => [0, Math.max(least, (highest ?? 0) * 1.08)] },
    },
    axes: [
      { ...common, size: 20, gap: 6, space: 60, values: (_, splits) => splits.map(tickTime) },
      {
        ...common,
        size: 58,
        gap: 4,
        space: 26,
        label: axis,
        labelFont: FONT,
        labelSize: 15,
        values: (_, splits) => splits.map(tick),
        ...(isBinary ? { incrs: BINARY_STEPS } : {}),
      },
    ],
    series: [{}, ...chart.lines.map((_, at) => ({
      stroke: () => colours.lines[at],
      width: 1.5,
      dash: DASHES[at],
      points: { show: false, size: 4, filter: lonePoints },
    }))],
    hooks: { setCursor: [() => write(chart)], draw: hasEnds ? [(plot) => labelLines(plot, chart.lines)] : [] },
  }
}

const now = () => (history.lastMs() ?? Date.now()) / 1000
const rangeInWords = () => RANGE_WORDS[rangeSeconds] ?? `last ${age(rangeSeconds)}`
const tickTime = (seconds) => clock(seconds * 1000).slice(0, rangeSeconds > 300 ? 5 : 8)

/** A value between two gaps has no line; without a point it would not be seen. */
function lonePoints(plot, line) {
  const values = plot.data[line]
  const isKnown = (at) => (values[at] ?? null) !== null
  return [...values.keys()].filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1))
}

/** Each line says at its end what it is, so that nobody has to tell colours apart. */
function labelLines(plot, lines) {
  const { ctx, bbox } = plot
  const ratio = devicePixelRatio
  const labels = lines.flatMap(({ label }, at) => {
    const last = plot.data[at + 1].findLast((value) => value !== null)
    return last === undefined ? [] : [{ label, y: plot.valToPos(last, 'y', true) }]
  }).sort((one, other) => other.y - one.y)
  let lowest = bbox.top + bbox.height - 4 * ratio
  ctx.save()
  ctx.font = `${11 * ratio}px system-ui, sans-serif`
  ctx.fillStyle = colours.text
  ctx.textBaseline = 'middle'
  ctx.textAlign = 'left'
  for (const { label, y } of labels) {
    const at = Math.min(y, lowest)
    ctx.fillText(label, bbox.left + bbox.width + 5 * ratio, at)
    lowest = at - LABEL_GAP * ratio
  }
  ctx.restore()
}

function write({ title, lines, format, plot, limit, note, figures, summary, drawing, meter }) {
  const at = plot?.cursor?.idx ?? null
  const isPointedAt = at !== null && plot.data[0][at] !== undefined
  const values = lines.map(({ name }, line) => (isPointedAt ? plot.data[line + 1][at] : history.latest(name)))
  const words = values.map(format)
  words.forEach((text, line) => setText(figures[line], text))
  const within = inWords(lines.map(({ name }) => history.recent(name, rangeSeconds)), format)
  setText(summary, isPointedAt ? `at ${clock(plot.data[0][at] * 1000)}` : [note?.(), within].filter(Boolean).join('; '))
  const labelled = words.map((text, line) => `${lines[line].label ?? ''} ${text}`.trim())
  drawing.setAttribute('aria-label', `${title}, ${rangeInWords()}: now ${labelled.join(', ')}; ${within}`)
  if (limit) fill(meter, history.latest(lines[0].name), limit())
}

/** Of several lines in their order: mean 3 ms / 8 ms, most 4 ms / 61 ms */
function inWords(lines, format) {
  if (lines.every((values) => values.length === 0)) return 'no figures yet'
  const mean = (values) => format(values.reduce((sum, value) => sum + value, 0) / values.length)
  const most = (values) => format(values.reduce((one, other) => Math.max(one, other), -Infinity))
  return `mean ${lines.map(mean).join(' / ')}, most ${lines.map(most).join(' / ')}`
}

function fill(meter, value, limit) {
  meter.hidden = value === null || !limit
  if (meter.hidden) return
  const percent = Math.min(100, Math.round((100 * value) / limit))
  meter.setAttribute('aria-valuenow', percent)
  meter.setAttribute('aria-valuetext', `${percent} percent`)
  meter.firstChild.style.width = `${percent}%`
  meter.dataset.level = percent >= 90 ? 'fault' : percent >= 70 ? 'warning' : 'ok'
}

function readColours() {
  const style = getComputedStyle(document.documentElement)
  const colour = (name) => style.getPropertyValue(name).trim()
  const lines = [colour('--line-1'), colour('--line-2')]
  colours = { text: colour('--text'), muted: colour('--muted'), grid: colour('--grid'), lines }
}

readColours()
document.addEventListener('themechange', () => {
  readColours()
  charts.forEach(({ plot }) => plot.redraw())
})
