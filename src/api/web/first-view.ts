// The dashboard's page with what its first view shows in it: who is signed in and, for the list of units, the list, as data
// and as HTML. The browser paints it before any script has come, and the scripts need not ask for it again.

import type { App } from '../../app.ts'
import { AppError } from '../../contract/errors.ts'
import type { Me } from '../../contract/me.ts'
import type { Quota } from '../../contract/quota.ts'
import type { UnitList } from '../../contract/unit.ts'
import { getPricing } from '../../domain/units/pricing.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { quotaRoute } from '../routes/billing.ts'
import { meRoute } from '../routes/me.ts'
import { unitListRoute } from '../routes/units.ts'
import { type FirstViewData, firstViewMarkup, type FirstViewParts } from './first-view-markup.ts'
import type { PageRequest } from './page.ts'

/** More rows than a screen has, and few enough for a slow line. */
const ROWS = 40

export type FirstPage = {
  /** The page as it is built, around what is put into it. */
  page: string
  parts: FirstViewParts
  /** How long it may be waited for: the page without it is as good. */
  patienceMs: number
}

type Asked = { path: string; userAgent: string; sessionToken: string | null }

/** Returns null where nobody is signed in, or what it needs cannot be read at once: the page then asks for itself. */
export async function readFirstPage(
  app: App,
  { page, parts, patienceMs }: FirstPage,
  { path, userAgent, sessionToken }: Asked,
  perform: PageRequest['perform'],
): Promise<string | null> {
  if (sessionToken === null) return null
  const read = readFirstData(app, path, perform).catch((error: unknown) => {
    // What is refused, is refused in words once the page asks for it.
    if (!(error instanceof AppError))
      app.log.warn({ err: error }, 'the first view of a page could not be made')
    return null
  })
  const found = (await completesWithin(app.clock, patienceMs, read)) ? await read : null
  if (found === null) return null
  const told = { ...found.data, quota: found.data?.quota, me: found.me, team: found.data?.team.id }
  const withData = page
    .replace(/ *<link rel="preload" href="\/v1\/me"[^>]*>\n/, '')
    .replace(
      '</body>',
      () => `<script type="application/json" id="first-data">${inScript(told)}</script></body>`,
    )
  if (found.data === null) return withData
  const markup = firstViewMarkup(parts, found.data, {
    now: app.clock.now().getTime(),
    isMac: userAgent.includes('Mac'),
  })
  const sheets = [parts.sheet, ...(found.data.units.length > 0 ? [] : [parts.emptySheet])]
  // The links come after what they have painted by then: later scripts look for their links.
  const links = page.match(/<link rel="stylesheet"[^>]*>/g) ?? []
  return withData
    .replaceAll(/ *<link rel="stylesheet"[^>]*>\n/g, '')
    .replace('</head>', () => `${sheets.map((sheet) => `<style>${sheet}</style>`).join('')}</head>`)
    .replace('<html ', () => `<html data-team="${found.data?.team.slug ?? ''}" `)
    .replace('<div id="root">', () => `${markup}<div id="root">`)
    .replace('</body>', () => `${links.join('')}</body>`)
}

async function readFirstData(
  app: App,
  path: string,
  perform: PageRequest['perform'],
): Promise<{ me: Me; data: FirstViewData | null }> {
  const me = (await perform(meRoute, {})) as Me
  // Without a team it is that of the last call; a list that is filtered or sorted is the page's own work.
  const list = /^\/t(?:\/([^/?]+)\/units)?$/.exec(path)
  const team = list && me.teams.find(({ id, slug }) => (list[1] ? slug === list[1] : id === me.currentTeamId))
  if (!team) return { me, data: null }
  const of = { team: team.id }
  const [page, quota] = (await Promise.all([
    perform(unitListRoute, {}, undefined, { ...of, query: { limit: String(ROWS) } }),
    perform(quotaRoute, {}, undefined, of),
  ])) as [UnitList, Quota]
  const { units, next } = page
  return { me, data: { me, team, units, isComplete: next === null, pricing: getPricing(app.config), quota } }
}

/** JSON that ends no script element and begins no comment in one. */
const inScript = (value: unknown) => JSON.stringify(value).replaceAll('<', '\\u003c')
