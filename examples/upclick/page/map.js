// The maps: the world, and beside it Europe, whose cities lie on top of each other on the world.

import { createCard } from './card.js'
import { svg } from './svg.js'
import { inWords, lastMinute, ms, place, verdict } from './verdict.js'

// Classic scripts, since as modules they are many small files.
const { d3, topojson } = globalThis

const [WEST, EAST, SOUTH, NORTH] = [-11, 29, 36, 61]
const EUROPE = {
  name: 'europe', label: 'Cities of Europe',
  projection: d3.geoConicConformal().parallels([40, 58]).rotate([-9, 0]),
  frame: [[WEST, SOUTH], [EAST, SOUTH], [WEST, NORTH], [EAST, NORTH]],
}
// Without the Antarctic, where nobody stands.
const WORLD = {
  name: 'world', label: 'Cities of the world',
  projection: d3.geoNaturalEarth1().rotate([-11, 0]),
  frame: [[-160, 0], [182, 0], [11, -54], [11, 73]],
}
const CIRCLE = 'M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0Z'
const OUTLINES = { within: CIRCLE, above: 'M0,-6L6,4.5L-6,4.5Z', unknown: CIRCLE }
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity }

/** Returns what shows a run. */
export function createMaps(parent) {
  const maps = [WORLD, EUROPE].map((map) => createMap(parent, map))
  const card = createCard(parent)
  const dots = new Map()
  let run = null, shown = null

  function addDots() {
    const isEuropean = ({ longitude: x, latitude: y }) => x > WEST && x < EAST && y > SOUTH && y < NORTH
    const [world, europe] = maps
    run.cities.forEach((city, at) => {
      addDot(world, city, at, !isEuropean(city))
      if (isEuropean(city)) addDot(europe, city, at, true)
    })
    for (const map of maps) {
      map.dots.forEach((dot) => dots.set(dot.group, dot))
      choosable(map)[0]?.group.setAttribute('tabindex', 0)
      lay(map)
    }
  }

  function choose(dot = null) {
    shown?.group.classList.remove('shown')
    shown = dot
    shown?.group.classList.add('shown')
    if (shown) card.show(shown.group, run.cities[shown.at], run)
    else card.hide()
  }

  const dotOf = ({ target }) => dots.get(target.closest('.dot'))
  const focused = () => dots.get(document.activeElement)
  parent.addEventListener('pointerover', (event) => choose(dotOf(event) ?? focused()))
  parent.addEventListener('pointerleave', () => choose(focused()))
  parent.addEventListener('focusin', (event) => choose(dotOf(event)))
  parent.addEventListener('focusout', () => choose())
  parent.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') choose()
    if (!(event.key in STEPS) || event.altKey || !focused()) return
    event.preventDefault()
    step(focused(), STEPS[event.key])
  })
  // Without the land there still are the dots.
  loadLand(maps).catch(() => {})

  return (latest) => {
    run = latest
    if (dots.size === 0) addDots()
    dots.forEach((dot) => update(dot, run))
    if (shown) choose(shown)
  }
}

function createMap(parent, { name, label, projection, frame }) {
  const land = svg('path', { class: 'land' }), borders = svg('path', { class: 'borders' })
  const list = svg('g', { role: 'listbox', 'aria-label': label })
  const picture = svg('svg', { class: name }, land, borders, list)
  parent.append(picture)
  const map = { projection, frame, list, dots: [], shapes: [], paths: [land, borders], width: 0, height: 0 }
  const fit = ([{ contentRect: { width, height } }]) => lay(Object.assign(map, { width, height }))
  new ResizeObserver(fit).observe(picture)
  return map
}

async function loadLand(maps) {
  const atlas = await (await fetch('vendor/world-atlas/countries-110m.json')).json()
  const { land, countries } = atlas.objects
  const shapes = [topojson.feature(atlas, land), topojson.mesh(atlas, countries, (one, other) => one !== other)]
  maps.forEach((map) => lay(Object.assign(map, { shapes })))
}

/** What is in the map of Europe is chosen there; on the world it is a mark only. */
function addDot(map, { longitude, latitude }, at, isChoosable) {
  const mark = svg('path', { class: 'mark' })
  const seen = { class: 'small dot', 'aria-hidden': true }
  const kind = isChoosable ? { class: 'dot', role: 'option', tabindex: -1 } : seen
  const group = svg('g', kind, svg('circle', { class: 'hit' }), mark)
  map.list.append(group)
  map.dots.push({ map, group, mark, at, isChoosable, where: [longitude, latitude] })
}

/** Fits a map into its picture. Dots are as large as they are, however large the map is. */
function lay({ projection, frame, shapes, paths, dots, width, height }) {
  if (width === 0) return
  projection.clipExtent(null).fitSize([width, height], { type: 'MultiPoint', coordinates: frame })
  const path = d3.geoPath(projection.clipExtent([[-2, -2], [width + 2, height + 2]]))
  shapes.forEach((shape, at) => paths[at].setAttribute('d', path(shape)))
  for (const { group, where } of dots) group.setAttribute('transform', `translate(${projection(where)})`)
}

function update({ group, mark, at, isChoosable }, run) {
  const city = run.cities[at]
  const found = verdict(city, run)
  mark.dataset.verdict = found
  mark.setAttribute('d', OUTLINES[found])
  const words = `${place(city)}: ${ms(city.average_ms)}, ${inWords(found, run)}; ${lastMinute(city, run)}`
  if (isChoosable) group.setAttribute('aria-label', words)
}

const choosable = (map) => map.dots.filter(({ isChoosable }) => isChoosable)

/** In the order of the cities, from west to east. */
function step(from, by) {
  const dots = choosable(from.map)
  const to = dots[Math.max(0, Math.min(dots.length - 1, dots.indexOf(from) + by))]
  from.group.setAttribute('tabindex', -1)
  to.group.setAttribute('tabindex', 0)
  to.group.focus()
}
