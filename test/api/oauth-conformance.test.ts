// The official conformance suite of the Model Context Protocol for authorization servers: it reads the metadata,
// registers a client, opens a browser and redeems the code.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { runSuite } from '../support/conformance.ts'
import { startAtPublicUrl } from '../support/front.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import { formOf, nextOf, openConsent, registerClient, signedInBrowser } from '../support/oauth.ts'
import type { Service } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startAtPublicUrl({ loops: false })
})
afterAll(async () => await service.close())

/** Does what the person does when the suite asks them to open this URL. */
async function agreeAt(url: string): Promise<void> {
  const browser = signedInBrowser(service, await makeSession(service, await makeTeam(service)))
  const form = formOf(await (await browser.get(await openConsent(browser, url))).text())
  form.set('decision', 'connect')
  await fetch(nextOf(await (await browser.post('/oauth/consent', form)).text()))
}

it('the authorization server passes every scenario of the MCP conformance suite', {
  timeout: 60_000,
}, async () => {
  const [, listed = ''] = (await runSuite(['list'])).said.split('Authorization server scenarios')
  const scenarios = [...listed.matchAll(/^ +- (\S+)/gm)].map(([, name = '']) => name)
  expect(scenarios).toContain('authorization-code-grant')
  const port = await freePort('127.0.0.1')
  const client = await registerClient(service, { redirectUri: `http://127.0.0.1:${port}/callback` })
  const { publicUrl } = service.app.config
  const asked = ['--url', publicUrl, '--client-id', client.id, '--resource', `${publicUrl}/mcp`]
  const agreed: Promise<void>[] = []
  const { code, said } = await runSuite(['authorization', ...asked, '--port', String(port)], (so) => {
    const url = /http\S+\/oauth\/authorize\?\S+(?=\n)/.exec(so)?.[0]
    if (url !== undefined && agreed.length === 0) agreed.push(agreeAt(url))
  })
  await Promise.all(agreed)
  for (const scenario of scenarios) expect(said).toContain(`✓ ${scenario}: 1 passed, 0 failed`)
  expect([code, said]).toEqual([0, expect.stringContaining(`${scenarios.length} passed, 0 failed`)])
})
