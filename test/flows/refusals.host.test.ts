// What prevents Berth from starting is reported in one sentence that says what to do.

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { SAFE_PATH } from '../../src/lib/process.ts'
import { Berth } from '../support/berth.ts'
import { useBerth } from '../support/use-berth.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const setup = fileURLToPath(new URL('../../scripts/setup.sh', import.meta.url))

/** Runs a command as an unprivileged user. If the project is below /root, that user cannot read it. */
const asNobody = (...command: string[]) =>
  spawnSync('setpriv', ['--reuid=nobody', '--clear-groups', ...command], {
    encoding: 'utf8',
    env: { PATH: SAFE_PATH },
  })
const isReadableByAll = asNobody('test', '-r', main).status === 0

const berth = useBerth(null)

async function refusal(env: Record<string, string>): Promise<string> {
  const refused = new Berth(berth.dataDir).launch(env)
  expect(await refused.exitCode()).toBe(1)
  return refused.output
}

describe('npm start refuses', () => {
  it('a port that is in use, and names the setting', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    expect(await refusal({ BERTH_API_ADDRESS: `127.0.0.1:${port}` })).toMatch(
      new RegExp(`berth: 127.0.0.1:${port} is taken by another program: .* set BERTH_API_ADDRESS to another`),
    )
    other.close()
  })

  it('an invalid setting, and names it', async () => {
    expect(await refusal({ BERTH_ISOLATION: 'none' })).toMatch(
      /berth: BERTH_ISOLATION must be one of auto, gvisor, runc, not "none"/,
    )
  })

  it('a data directory whose path cannot be mounted', async () => {
    expect(await refusal({ BERTH_DATA_DIR: '/var/tmp/with space' })).toMatch(/Set BERTH_DATA_DIR to a path/)
  })

  it('an unreachable database, without printing its password', async () => {
    const output = await refusal({ DATABASE_URL: 'postgresql://u:hunter2@127.0.0.1:1/none' })
    expect(output).toMatch(/berth: The database cannot be used \(ECONNREFUSED.*DATABASE_URL/)
    expect(output).not.toContain('hunter2')
  })

  it.skipIf(!isReadableByAll)('a set-up by a user other than root', () => {
    const result = asNobody('sh', setup)
    expect(result.status).toBe(1)
    expect(result.stderr).toMatch(/^berth: .*run this as root/)
  })

  it.skipIf(!isReadableByAll)('to run as a user other than root', () => {
    const result = asNobody(process.execPath, main, 'all')
    expect(result.status).toBe(1)
    expect(result.stderr).toMatch(/berth: root: no\. .*sudo/)
  })

  it('a data directory that another Berth is using', async () => {
    await berth.start()
    expect(await refusal({})).toMatch(
      /berth: Berth already runs on .* \(process \d+\): stop that one, or set BERTH_DATA_DIR/,
    )
  })
})
