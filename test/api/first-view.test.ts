// The dashboard's page as the server sends it: with the list of units for those who are signed in, and as it is built for
// everybody else.

import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { builtDashboard } from '../support/dashboard.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string
let slug: string

beforeAll(async () => {
  service = await startService({ dashboard: await builtDashboard() })
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  const { body } = await service.call<Me>('GET', '/v1/me', { cookie })
  slug = body.teams[0]?.slug ?? ''
})
afterAll(async () => await service.close())

const pageAt = async (path: string, headers: Record<string, string> = { cookie }) =>
  await fetch(service.baseUrl + path, { headers: { accept: 'text/html', ...headers } })

const dataOf = (html: string) => {
  const [, text] = /<script type="application\/json" id="first-data">([^]*?)<\/script>/.exec(html) ?? []
  return text === undefined ? null : (JSON.parse(text) as { me: Me; team?: string; units?: Unit[] })
}

describe('the page of the units of a team', () => {
  it('has the list, as HTML and as data, for a person of the team', async () => {
    const unit = await makeUnit(service, team, { name: 'first-of-all' })
    const response = await pageAt(`/t/${slug}/units`)
    const html = await response.text()
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(html).toContain(`href="/t/${slug}/units/${unit.id}"`)
    expect(dataOf(html)?.units).toMatchObject([{ id: unit.id, name: 'first-of-all' }])
    // The sheet is in the page, and its links come after what it paints.
    expect(html.indexOf('rel="stylesheet"')).toBeGreaterThan(html.indexOf('first-of-all'))
    expect(html).not.toContain('href="/v1/me"')
  })

  it('allows the script and the sheets that may be in it by their digests, and no other', async () => {
    const response = await pageAt(`/t/${slug}/units`)
    const empty = await makeSession(service, await makeTeam(service))
    const html = await (await pageAt('/t', { cookie: empty })).text()
    expect(html).toContain('Start your first unit')
    const policy = response.headers.get('content-security-policy') ?? ''
    const inline = [...html.matchAll(/<(?:script|style)>([^]*?)<\/(?:script|style)>/g)]
    // A team with units needs one sheet less.
    expect(inline).toHaveLength(3)
    expect((await response.text()).match(/<style>/g)).toHaveLength(1)
    const digests = inline.map(
      ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
    )
    expect([...policy.matchAll(/'sha256-[^']+'/g)].map(([digest]) => digest).toSorted()).toEqual(
      digests.toSorted(),
    )
    expect(policy).not.toContain('unsafe')
    expect(html).not.toContain(' style="')
  })

  it('keeps what people have typed as text', async () => {
    const other = await makeTeam(service)
    const name = `</script><img src=x onerror="alert('1')">`
    await service.app.db.updateTable('teams').set({ name }).where('id', '=', other.teamId).execute()
    const html = await (await pageAt('/t', { cookie: await makeSession(service, other) })).text()
    expect(html).not.toContain('<img')
    expect(dataOf(html)?.me.teams[0]?.name).toBe(name)
    expect(html).toContain('&#60;img')
  })

  it('begins at the team that was used last where the address names none', async () => {
    expect(dataOf(await (await pageAt('/t')).text())?.team).toBe(team.teamId)
  })

  it('has only the person where another page, a filter or a team of others is asked for', async () => {
    const other = await makeTeam(service)
    const theirs = other.teamId.replace('_', '-')
    for (const path of [`/t/${slug}/spend`, `/t/${slug}/units?state=running`, `/t/${theirs}/units`]) {
      const html = await (await pageAt(path)).text()
      expect(dataOf(html)).toEqual({ me: expect.objectContaining({ currentTeamId: team.teamId }) })
      expect(html).not.toContain('id="first"')
    }
  })

  it('is as it was built where the list takes too long to be read', async () => {
    const dashboard = await builtDashboard()
    const hasty = await startService({
      dashboard: { ...dashboard, first: { ...dashboard.first, patienceMs: 0 } },
    })
    const session = await makeSession(hasty, await makeTeam(hasty))
    const response = await fetch(`${hasty.baseUrl}/t`, { headers: { accept: 'text/html', cookie: session } })
    expect(await response.text()).not.toContain('first-data')
    await hasty.close()
  })

  it('is as it was built without a session, and with one that has ended', async () => {
    for (const headers of [{}, { cookie: 'berth_session=berth_sess_nothing' }] as Record<string, string>[]) {
      const response = await pageAt(`/t/${slug}/units`, headers)
      expect(response.headers.get('cache-control')).toBe('no-cache')
      expect(await response.text()).not.toContain('first-data')
    }
  })

  it('is packed as the browser takes it', async () => {
    for (const encoding of ['br', 'gzip']) {
      const response = await pageAt(`/t/${slug}/units`, { cookie, 'accept-encoding': encoding })
      expect(response.headers.get('content-encoding')).toBe(encoding)
      expect(await response.text()).toContain('first-data')
    }
  })
})
