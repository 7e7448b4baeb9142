// The rules of axe-core on a page, light and dark, on a desk and on a phone; and that none is wider than its screen.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { NodeResult, Result } from 'axe-core'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
type Violation = Pick<Result, 'id'> & { nodes: Pick<NodeResult, 'html'>[] }

const widths = { wide: 1440, narrow: 390 } as const

/** What is wrong, by screen and theme. `seen` is called with each of them, such as `wide, dark`. */
export async function accessibilityFaults(
  page: Page,
  seen?: (how: string) => Promise<unknown>,
): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  await page.evaluate(axe)
  for (const [screen, width] of Object.entries(widths)) {
    await page.setViewportSize({ width, height: 800 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const wrong = await faultsNow(page)
      const how = `${screen}, ${colorScheme}`
      if (wrong.length > 0) found[how] = wrong
      await seen?.(how)
    }
  }
  await page.setViewportSize({ width: widths.wide, height: 800 })
  return found
}

/** Without what is right on the page, of which axe-core describes each element: that took more than half of the time. */
const run = `axe.run({ resultTypes: ['violations'] })
  .then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) })))`

async function faultsNow(page: Page): Promise<string[]> {
  const violations = (await page.evaluate(run)) as Violation[]
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
  )
  const isWide = (await page.evaluate('document.documentElement.scrollWidth > innerWidth')) as boolean
  return isWide ? [...found, 'the page is wider than its screen'] : found
}
