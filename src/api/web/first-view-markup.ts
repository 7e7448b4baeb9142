// The list of a team's units as HTML, as the dashboard draws it with the same data: it stands on the page until the
// dashboard's scripts have come, with the links that work without them. test/dashboard/first-view.test.ts compares the two,
// cell by cell.

import type { Me } from '../../contract/me.ts'
import type { Pricing } from '../../contract/pricing.ts'
import type { Quota } from '../../contract/quota.ts'
import { countStates } from '../../contract/states.ts'
import { stackOf, type Unit } from '../../contract/unit.ts'
import { centsAnHour, euros, exactEuros, rate } from '../../lib/money.ts'
import { fromNow } from '../../lib/time-words.ts'
import { logo } from './harbour.ts'
import { escapeHtml } from './html.ts'

/** Of the dashboard's build: `first-view.tsx` makes it. */
export type FirstViewParts = {
  /** Names of classes, by the sheet and the name that the sources have. */
  styles: Record<string, Record<string, string>>
  pictures: Record<'search' | 'docs' | 'down' | 'more', string>
  states: Record<string, string>
  pages: { label: string; path: string; picture: string }[]
  /** What the field above the list says. */
  filter: string
  sorts: { label: string; isFirst: boolean }[]
  /** What a team without units sees. */
  empty: string
  sheet: string
  emptySheet: string
}

export type FirstViewData = {
  me: Me
  team: Me['teams'][number]
  units: Unit[]
  isComplete: boolean
  pricing: Pricing
  quota: Quota
}

/** `now`: in ms. `isMac` says which key opens the search. */
export function firstViewMarkup(
  parts: FirstViewParts,
  data: FirstViewData,
  { now, isMac }: { now: number; isMac: boolean },
): string {
  const style = (...names: string[]) =>
    names
      .map((name) => {
        const [sheet = '', own = ''] = name.split('.')
        return parts.styles[sheet]?.[own] ?? own
      })
      .join(' ')
  const drawing = { parts, style, now, base: `/t/${encodeURIComponent(data.team.slug)}` }
  const list = data.units.length > 0 ? bar(drawing, data) + table(drawing, data) : parts.empty
  return `<div id="first" aria-busy="true"><div class="${style('shell.shell')}">${sidebar(drawing, data, isMac)}
<main class="${style('shell.main')}"><div role="status"></div>${head(drawing, data)}${list}</main></div></div>`
}

type Drawing = {
  parts: FirstViewParts
  style: (...names: string[]) => string
  now: number
  base: string
}

function sidebar(
  { parts, style, base }: Drawing,
  { team, quota }: Pick<FirstViewData, 'team' | 'quota'>,
  isMac: boolean,
): string {
  const link = ({ label, path, picture }: FirstViewParts['pages'][number]) =>
    `<li><a class="${style('sidebar.page')}" href="${escapeHtml(path.replace('/t/$team', base))}"${path.endsWith('/units') ? ' aria-current="page"' : ''}>${picture}<span class="${style('sidebar.label')}">${label}</span></a></li>`
  const { capCents } = quota.spendToday
  return `<nav class="${style('sidebar.sidebar')}" aria-label="Pages">
<div class="${style('sidebar.team')}"><button type="button" disabled class="${style('menu.trigger')}" aria-label="${escapeHtml(`Team ${team.name}: change it`)}">${logo}<span class="${style('sidebar.teamName')}">${escapeHtml(team.name)}</span>${parts.pictures.down}</button></div>
<button type="button" disabled class="${style('sidebar.search')}">${parts.pictures.search}<span class="${style('sidebar.label')}">Search</span><kbd class="${style('sidebar.hint')}">${isMac ? '⌘K' : 'Ctrl K'}</kbd></button>
<ul class="${style('sidebar.pages')}">${parts.pages.map(link).join('')}<li class="${style('sidebar.wideOnly')}"><a href="/docs" class="${style('sidebar.page')}">${parts.pictures.docs}<span class="${style('sidebar.label')}">Docs</span></a></li></ul>
<p class="${style('sidebar.today')}">Today <b>${money(quota.spendToday.cents)}</b>${capCents === null ? '' : ` of ${euros(capCents)}`}<br>Credits ${money(quota.creditBalanceCents)}</p></nav>`
}

function head({ style, base }: Drawing, { units, isComplete, pricing }: FirstViewData): string {
  const isFirstRun = units.length === 0 && isComplete
  const note = `${count(units.length)}${isComplete ? '' : '…'} · ${rate(centsAnHour(units, pricing))}`
  return `<header class="${style('page.head')}"><h1 class="${style('page.title')}">Units</h1><div class="${style('page.note')}">${isFirstRun ? '' : note}</div>
<div class="${style('page.actions')}"><span class="${style('live.mark', 'live.connecting')}">connecting</span><a class="${style('button.button', isFirstRun ? 'button.plain' : 'button.main')}" href="${base}/units/new">New unit</a></div></header>`
}

function bar({ parts, style }: Drawing, { units }: FirstViewData): string {
  const states = countStates(units).map(([state, number]) => {
    const shown = `${parts.states[state] ?? ''}${state} ${count(number)}`
    return `<button type="button" disabled class="${style('units.state')}" aria-pressed="false">${shown}</button>`
  })
  const { filter } = parts
  return `<div class="${style('units.bar')}"><input type="search" disabled class="${style('field.input')}" aria-label="${filter}" placeholder="${filter}"><select disabled class="${style('field.input', 'field.select')}" aria-label="Sort">${parts.sorts.map(({ label, isFirst }) => `<option${isFirst ? ' selected' : ''}>${label}</option>`).join('')}</select><div class="${style('units.states')}" role="group" aria-label="States">${states.join('')}</div></div>`
}

const columns = [
  ['Name', ''],
  ['Stack', 'stack'],
  ['Image', 'image'],
  ['Size', 'size'],
  ['Last day', 'day'],
  ['Sleeps', 'sleeps'],
  ['Cost', 'cost'],
  ['Last used', 'used'],
] as const

function table(drawing: Drawing, { units }: FirstViewData): string {
  const { style } = drawing
  const hidden = (text: string) =>
    `<span role="columnheader"><span class="visually-hidden">${text}</span></span>`
  const heads = columns.map(
    ([label, name]) =>
      `<span role="columnheader"${name === '' ? '' : ` class="${style(`table.${name}`)}"`}>${label}</span>`,
  )
  return `<div class="${style('table.scroller')}"><div role="table" aria-label="Units" aria-rowcount="${units.length + 1}" class="${style('table.table')}"><div role="row" aria-rowindex="1" class="${style('table.row', 'table.head')}">${hidden('Selected')}${heads.join('')}${hidden('Actions')}</div>
<div role="rowgroup" class="${style('table.rows')}">${units.map((unit, at) => row(drawing, unit, at)).join('\n')}</div></div></div>`
}

function row({ parts, style, base, now }: Drawing, unit: Unit, at: number): string {
  const [name, image] = [escapeHtml(unit.name), escapeHtml(unit.image)]
  const time = (when: string) => `<time datetime="${when}">${fromNow(when, now)}</time>`
  const cell = (column: string, content: string) =>
    `<span role="cell" class="${style(`table.${column}`)}">${content}</span>`
  const what = unit.state === 'error' ? escapeHtml(unit.error ?? '') : `${unit.size} · ${image}`
  const second = `${what}${unit.sleepsAt === null ? '' : ` · sleeps ${time(unit.sleepsAt)}`}`
  const wrong =
    unit.state === 'error'
      ? `<span class="${style('table.wrong')}">${escapeHtml(unit.error ?? '')}</span>`
      : ''
  const shape = `<span class="${style('state.state')}">${parts.states[unit.state] ?? ''}<span class="visually-hidden">${unit.state}</span></span>`
  return `<div role="row" aria-rowindex="${at + 2}" data-at="${at}" class="${style('table.row', 'table.unit')}"><span role="cell"><input type="checkbox" disabled aria-label="Select ${name}"></span>${cell(
    'name',
    `${shape}<a class="${style('table.link')}" href="${base}/units/${unit.id}">${name}</a>${wrong}<span class="${style('table.second')}">${second}</span>`,
  )}${cell('stack', escapeHtml(stackOf(unit)))}${cell('image', image)}${cell('size', unit.size)}${cell('day', '')}${cell('sleeps', unit.sleepsAt === null ? '–' : time(unit.sleepsAt))}${cell('cost', money(unit.costCentsSoFar, '<'))}${cell('used', unit.lastUsedAt === null ? '–' : time(unit.lastUsedAt))}<span role="cell"><button type="button" disabled class="${style('menu.trigger')}" aria-label="Actions of ${name}">${parts.pictures.more}</button></span></div>`
}

const whole = new Intl.NumberFormat('en')
const count = (number: number) => whole.format(number)

function money(cents: number, less?: string): string {
  const [text, exact] = [euros(cents, less), exactEuros(cents)]
  return `<span${exact === text ? '' : ` title="${exact}"`}>${escapeHtml(text)}</span>`
}
