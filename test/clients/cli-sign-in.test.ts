// berth login with a key and with a browser: what is stored, and how berth logout removes it.

import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli, startCli, useCli } from '../support/clients.ts'
import { makeSession } from '../support/make.ts'
import { formOf, nextOf, openConsent, signedInBrowser } from '../support/oauth.ts'

const setup = useCli()

const homeOf = (name: string) => ({ HOME: '/nowhere', XDG_CONFIG_HOME: join(setup.directory, name) })
const configOf = (home: { XDG_CONFIG_HOME: string }) => join(home.XDG_CONFIG_HOME, 'berth/config.json')
type Kept = {
  current: string
  profiles: Record<string, { url: string; key?: string; oauth?: { expiresAt: string } }>
}
const keptIn = async (home: { XDG_CONFIG_HOME: string }) =>
  JSON.parse(await readFile(configOf(home), 'utf8')) as Kept

it('berth login --key stores the key in a file that only its owner can read, and later commands use it', async () => {
  const home = homeOf('key')
  const login = await runCli(
    setup.program,
    ['login', '--url', setup.service.baseUrl, '--key'],
    home,
    `${setup.team.key}\n`,
  )
  expect(login).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('Signed in at') })
  expect((await stat(configOf(home))).mode & 0o777).toBe(0o600)
  expect(await runCli(setup.program, ['ls', '-q'], home)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect((await runCli(setup.program, ['profiles'], home)).stdout).toContain(
    `default\t${setup.service.baseUrl}\tkey\tyes`,
  )
  expect((await runCli(setup.program, ['logout'], home)).code).toBe(0)
  expect((await runCli(setup.program, ['ls'], home)).code).toBe(4)
})

it('berth login does not store a wrong key, and a corrupt config file is reported', async () => {
  const home = homeOf('wrong')
  const login = await runCli(
    setup.program,
    ['login', '--url', setup.service.baseUrl, '--key'],
    home,
    'berth_live_wrong\n',
  )
  expect(login).toMatchObject({ code: 4, stderr: expect.stringContaining('try: berth login') })
  expect((await keptIn(home)).profiles).toEqual({})
  await writeFile(configOf(home), '{')
  expect((await runCli(setup.program, ['ls'], home)).stderr).toMatch(
    /^error: .*config\.json is no JSON\.\ntry: rm /,
  )
})

/** Signs in and decides in the browser; returns the final page that the CLI serves. */
async function decide(address: string, decision: 'connect' | 'refuse'): Promise<Response> {
  const browser = signedInBrowser(setup.service, await makeSession(setup.service, setup.team))
  const { pathname, search } = new URL(address)
  const consent = await openConsent(browser, pathname + search)
  const form = formOf(await (await browser.get(consent)).text())
  form.set('decision', decision)
  return await fetch(nextOf(await (await browser.post('/oauth/consent', form)).text()))
}

async function loginByBrowser(home: Record<string, string>, decision: 'connect' | 'refuse') {
  const cli = startCli(setup.program, ['login', '--url', setup.service.baseUrl, '--no-browser'], home)
  await expect.poll(cli.stderr, { timeout: 60_000 }).toContain('/oauth/authorize?')
  const address = /(http\S+)/.exec(cli.stderr())?.[1] ?? ''
  const redirect = new URL(new URL(address).searchParams.get('redirect_uri') ?? '')
  // A response with a wrong state is refused.
  expect((await fetch(`${redirect.href}?code=stolen&state=guessed&iss=http%3A%2F%2Fberth.test`)).status).toBe(
    400,
  )
  expect((await decide(address, decision)).status).toBe(200)
  return await cli.end()
}

it('berth login with a browser gets tokens, refreshes them when they expire, and logout revokes them', async () => {
  const home = homeOf('browser')
  expect(await loginByBrowser(home, 'connect')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Signed in at'),
  })
  expect(await runCli(setup.program, ['ls', '-q'], home)).toEqual({ code: 0, stdout: '', stderr: '' })
  const agents = await runCli(setup.program, ['keys', '--json'], home)
  expect(JSON.parse(agents.stdout)).toMatchObject({
    agents: expect.arrayContaining([expect.objectContaining({ kind: 'oauth', name: 'Berth CLI' })]),
  })

  const before = await keptIn(home)
  const oauth = before.profiles.default?.oauth
  if (oauth) oauth.expiresAt = new Date().toISOString()
  await writeFile(configOf(home), JSON.stringify(before))
  expect((await runCli(setup.program, ['ls', '-q'], home)).code).toBe(0)
  const after = await keptIn(home)
  expect(after.profiles.default?.oauth?.expiresAt).not.toBe(oauth?.expiresAt)
  expect((await stat(configOf(home))).mode & 0o777).toBe(0o600)

  expect((await runCli(setup.program, ['logout'], home)).code).toBe(0)
  await writeFile(configOf(home), JSON.stringify(after))
  expect(await runCli(setup.program, ['ls'], home)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('try: berth login'),
  })
})

it('berth login reports a refusal in the browser and stores nothing', async () => {
  const home = homeOf('refused')
  expect(await loginByBrowser(home, 'refuse')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('It was refused in the browser.\ntry: berth login'),
  })
  expect((await keptIn(home)).profiles).toEqual({})
})
