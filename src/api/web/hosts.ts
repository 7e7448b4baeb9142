// The page of hosts, for the people who operate this Berth: each host, and what to do about it.

import { AppError, unauthorized } from '../../contract/errors.ts'
import type { Me } from '../../contract/me.ts'
import { describeHosts, type HostLine } from '../../domain/hosts/describe.ts'
import { meRoute } from '../routes/me.ts'
import { escapeHtml, htmlPage } from './html.ts'
import type { Page } from './page.ts'

export const hostsPage: Page = {
  method: 'GET',
  path: '/hosts',
  answer: async (app, { sessionToken, perform }) => {
    if (sessionToken === null) throw unauthorized()
    const { user } = (await perform(meRoute, {})) as Me
    // For everybody else there is no such page.
    if (!user.admin) throw new AppError('not_found', 404, 'The path /hosts does not exist.')
    const hosts = await describeHosts(app.db, app.clock.now())
    const markup = `
<p>The machines on which units run. <a href="/docs/operating#a-second-host">A second host</a> joins by
<code>npm run hosts -- join-token</code>.</p>
${hosts.map(hostMarkup).join('')}
<p><a href="/t">Dashboard</a> · <a href="/docs/operating">Operating</a></p>`
    return { status: 200, html: htmlPage('Hosts', markup, { wide: true }) }
  },
}

function hostMarkup({ name, state, units, freeMemory, engine, seen, advice }: HostLine): string {
  const facts = [
    `${units} ${units === 1 ? 'unit' : 'units'}`,
    ...(freeMemory === '-' ? [] : [`${freeMemory} of memory free`]),
    engine,
    `seen ${seen}`,
  ]
  return `<h2>${escapeHtml(name)}: ${escapeHtml(state)}</h2>
<p>${escapeHtml(facts.join(' · '))}</p>
<p>What to do: ${escapeHtml(advice ?? 'nothing')}</p>
`
}
