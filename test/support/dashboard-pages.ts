// Every page of the dashboard, and what is on it once it is read.

import type { Page } from 'playwright-core'
import type { TestTeam } from './make.ts'

/** What is on a page once it is read: by its path below the team's address. */
export function dashboardPages(
  team: TestTeam,
  unit: string,
): Record<string, (page: Page) => Promise<unknown>> {
  const heading = (name: string | RegExp) => async (page: Page) =>
    await page.getByRole('heading', { name }).first().waitFor()
  const text = (words: string | RegExp) => async (page: Page) => await page.getByText(words).first().waitFor()
  return {
    units: async (page) => await page.getByRole('row', { name: /web/ }).waitFor(),
    'units/new': heading('Cost'),
    [`units/${unit}`]: heading('Details'),
    [`units/${unit}/terminal`]: text(/^Connected\./),
    [`units/${unit}/code`]: text(/^Variables stay/),
    [`units/${unit}/logs`]: text(/Live|nothing more/),
    [`units/${unit}/metrics`]: heading('Memory'),
    [`units/${unit}/egress`]: heading('Refused connections'),
    [`units/${unit}/files`]: async (page) => await page.getByRole('link', { name: 'etc' }).waitFor(),
    [`units/${unit}/forks`]: text(/^No forks yet/),
    [`units/${unit}/activity`]: text(/created/),
    [`units/${unit}/settings`]: heading('Destroy this unit'),
    stacks: text('shop'),
    'stacks/shop': heading('Units'),
    recipes: text('PostgreSQL'),
    'recipes/postgres': heading('Creates'),
    agents: text('test key'),
    [`agents/${team.keyId}`]: heading('Activity'),
    'agents/new': heading('Limits'),
    'agents/hosted/new': heading('Which environment?'),
    spend: heading('Spend'),
    audit: text(/created/),
    team: heading(/.*/),
    credits: heading(/.*/),
    account: heading(/.*/),
    help: heading(/.*/),
  }
}
