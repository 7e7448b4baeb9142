// Walks a page by Tab alone, and says what of it cannot be reached so, or does not show that it has the focus.

import type { Page } from 'playwright-core'

/** More than any page has, unless the focus goes round in it. */
const MAX_STOPS = 300

const beginning = `
  window.berthStops = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && !one.closest('[aria-hidden=true]'))
  window.berthSeen = new Set()
  // The order of Tab begins here.
  const start = document.createElement('span')
  start.tabIndex = -1
  document.body.prepend(start)
  start.focus()
`

/** Notes what has the focus now. Null: the page has been walked. */
const noting = `(() => {
  const one = document.activeElement
  // A date has a stop for its day, its month and so on.
  const isSame = one === window.berthLast
  window.berthLast = one
  if (isSame && one.type?.startsWith('date')) return { fault: null, isTerminal: false }
  if (!one || one === document.body || window.berthSeen.has(one)) return null
  window.berthSeen.add(one)
  // The input of a terminal is a point: the terminal around it shows the focus, and Tab is the shell's.
  const terminal = one.closest('[data-own-keys]')
  const shown = terminal ?? one
  const { outlineStyle, outlineWidth, borderColor } = getComputedStyle(shown)
  const box = shown.getBoundingClientRect()
  const isInSight = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth
  const isMarked = (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || terminal?.matches(':focus-within')
  const name = one.outerHTML.slice(0, 160)
  return {
    fault: !isInSight ? name + ' has the focus out of sight' : isMarked ? null : name + ' shows no focus',
    isTerminal: terminal !== null,
  }
})()`

/** Without a place in the order of Tab is what arrows lead to within a row, a menu or a list. */
const missing = `window.berthStops.filter((one) => {
  if (!one.isConnected || window.berthSeen.has(one)) return false
  if (one.tabIndex < 0) return one.matches('a, button, input, select, textarea, summary') && !one.closest('[data-at]')
  const group = one.type === 'radio' ? one.name : null
  return group === null || ![...window.berthSeen].some((seen) => seen.type === 'radio' && seen.name === group)
}).map((one) => one.outerHTML.slice(0, 160) + ' cannot be reached')`

export async function keyboardFaults(page: Page): Promise<string[]> {
  const faults: string[] = []
  await page.evaluate(beginning)
  for (let stops = 0; ; stops += 1) {
    if (stops === MAX_STOPS) return [...faults, 'the focus never leaves the page']
    await page.keyboard.press('Tab')
    const noted: { fault: string | null; isTerminal: boolean } | null = await page.evaluate(noting)
    if (noted === null) break
    if (noted.fault !== null) faults.push(noted.fault)
    if (noted.isTerminal) await page.keyboard.press('Control+F6')
  }
  return [...faults, ...((await page.evaluate(missing)) as string[])]
}
