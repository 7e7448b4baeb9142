// Machines that are upgraded one after the other run two versions for a while: this code beside a copy of it that says it is a
// later one. What has changed between two releases is tried with these (docs/operating.md).

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { VERSION } from '../../src/lib/version.ts'
import { Berth, eventually } from '../support/berth.ts'
import { project } from '../support/clients.ts'
import { createUnitOn, drainOwnHost, hosts, joinAs, useMachine } from '../support/host-lab.ts'
import { callAs, type OwnedUnit } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
let copies: string
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
  copies = await mkdtemp('/var/tmp/berth-versions-')
})
afterAll(async () => await rm(copies, { recursive: true }))
const berth = useBerth(() => settings)
const east = useMachine('east', 45, { BERTH_ISOLATION: 'runc' })

const laterBy = (minors: number) => {
  const [major = 0, minor = 0] = VERSION.split('.').map(Number)
  return `${major}.${minor + minors}.0`
}

/** This code as if it were another version's. */
async function codeOf(version: string): Promise<string> {
  const code = join(copies, version)
  for (const each of ['src', 'scripts', 'package-lock.json', 'tsconfig.json'])
    await cp(join(project, each), join(code, each), { recursive: true })
  for (const each of ['node_modules', 'packages']) await symlink(join(project, each), join(code, each))
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as object
  await writeFile(join(code, 'package.json'), JSON.stringify({ ...manifest, version }))
  return code
}

const command = async (...args: string[]) => await hosts(berth, settings, ...args)
const row = async () => (await command('list')).split('\n').find((each) => each.startsWith('east ')) ?? ''
const soon = async (pattern: RegExp) =>
  await eventually(async () => expect(await row()).toMatch(pattern), 60_000)

describe('a host of another version', () => {
  const next = laterBy(1)
  let made: OwnedUnit
  /** What runs on the host's machine. */
  let there: Berth
  afterAll(async () => void (there.hasEnded || (await there.pressCtrlC())))

  const startAs = async (version: string) => {
    await there.pressCtrlC()
    there = new Berth(east.berth.dataDir, await codeOf(version), east.network)
    await there.start(east.settings)
  }
  const at = () => `/v1/units/${made.unit.id}`
  const run = async () =>
    await callAs<{ stdout: string; error?: { code: string } }>(made.owner, 'POST', `${at()}/exec`, {
      cmd: ['sh', '-c', 'cut -d " " -f 22 /proc/1/stat'],
    })
  let began: string

  it('joins one minor version away from the server, which says so and uses it', async () => {
    there = new Berth(east.berth.dataDir, await codeOf(next), east.network)
    await joinAs(berth, settings, { ...east, berth: there })
    await soon(/^east +ready /)
    await drainOwnHost(berth, settings)
    expect(await row()).toContain(`it runs Berth ${next}, and this machine ${VERSION}`)
    made = await createUnitOn({ berth, command, name: 'east' })
    const { status, body } = await run()
    expect(status).toBe(200)
    began = body.stdout
  })

  it('is away two minor versions from the server, with a sentence that says why, and its units run on', async () => {
    await startAs(laterBy(2))
    await soon(/^east +away .*it runs Berth \S+ and the server \S+ which work together only one minor/)
    expect(await run()).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
  })

  it('is back with a version that fits, and so is what ran there', async () => {
    await rm(join(copies, next), { recursive: true })
    await startAs(next)
    await soon(/^east +ready /)
    expect(await run()).toMatchObject({ status: 200, body: { stdout: began } })
    expect((await callAs(made.owner, 'DELETE', at())).status).toBe(200)
  })
})
