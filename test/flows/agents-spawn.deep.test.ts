// `berth agents spawn` beside the whole product, with real units of both classes. The controller is a program of the test's own that
// starts the hook for each claim, as those of vendors do, and tells it by its environment.

import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../src/lib/process.ts'
import { exec, listUnits } from '../support/berth-units.ts'
import { buildCli, runCli } from '../support/clients.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)
const TOKEN = 'tok-of-one-claim-0123456789'
const digest = createHash('sha256').update(TOKEN).digest('hex')
let directory: string
let program: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agents-spawn-'))
  program = await buildCli(join(directory, 'dist'))
  await writeFile(join(directory, 'token'), `${TOKEN}\n`, { mode: 0o600 })
})
afterAll(async () => await rm(directory, { recursive: true }))

/** A worker as a vendor's: it takes its token from a file, works on its disk, and goes on when it is woken. */
const worker =
  'sha256sum <"$BERTH_SESSION_TOKEN_FILE"; echo worked >>/work; cat /work; echo "wake=$WAKE"; exit 9'

async function claim({ wake }: { wake: boolean }) {
  const { baseUrl, apiKey } = berth.credentials
  const args = ['agents', 'spawn', '--session', 'ses_1', '--image', 'berth.local/debian:12', '--size', 'nano']
  const token = ['--token-file', join(directory, 'token'), '--env', `WAKE=${wake ? '1' : ''}`]
  return await runCli(program, [...args, ...token, '--', 'sh', '-c', worker], {
    BERTH_URL: baseUrl,
    BERTH_API_KEY: apiKey,
    HOME: directory,
  })
}

describe.each(usualClasses)('with %s, a session', (isolation) => {
  beforeAll(async () => await berth.start({ BERTH_ISOLATION: isolation }))
  afterAll(async () => {
    for (const { id } of await listUnits(berth)) await berth.call('DELETE', `/v1/units/${id}`)
    await berth.pressCtrlC()
  })

  it('works with the token of its claim, sleeps, and is woken with its disk by the next claim', async () => {
    const first = await claim({ wake: false })
    expect(first, first.stderr).toMatchObject({ code: 9, stdout: `${digest}  -\nworked\nwake=\n` })
    const [unit] = await listUnits(berth)
    expect(unit?.state).toBe('sleeping')
    const second = await claim({ wake: true })
    expect(second, second.stderr).toMatchObject({ code: 9, stdout: `${digest}  -\nworked\nworked\nwake=1\n` })
    expect((await listUnits(berth)).map(({ id }) => id)).toEqual([unit?.id])
  })

  it('has its token in the memory of its unit alone', async () => {
    const [unit] = await listUnits(berth)
    if (!unit) throw new Error('no unit')
    const look =
      "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; stat -c %a /dev/shm/*token*"
    const { stdout } = await exec(berth, unit, ['sh', '-c', look])
    expect(stdout).toMatch(/^600$/m)
    expect(stdout).not.toContain(TOKEN)
    await exec(berth, unit, ['sync'])
    const places = ['pool', 'machines', 'logs'].map((name) => join(berth.dataDir, name))
    const found = await run('grep', ['-rlaF', '--', TOKEN, ...places], { timeoutMs: 60_000 })
    expect(found.stdout).toBe('')
  })
})
