// Reliability S22, on real machines: a secret from a caller appears in no command line and no environment of the host's
// processes, in no output of Berth, and in no file that is readable by anyone but root and Berth's own user.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { runDirOf } from '../../src/supervisor/instance.ts'
import { processIds } from '../support/berth.ts'
import { createUnit } from '../support/berth-units.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)
const MARK = 'c4nary7f3a9c'
const canary = (place: string) => `${MARK}-${place}`

const berth = useBerth({ BERTH_LOG_LEVEL: 'debug' })
const units: Unit[] = []

beforeAll(async () => {
  const unit = await createUnit(berth, {
    name: 'canaries',
    image: 'berth.local/debian:12',
    env: { TOKEN: { secret: 'TOKEN', value: canary('env') } },
    files: { '/etc/app.conf': canary('boot-file') },
  })
  units.push(unit)
  const at = `/v1/units/${unit.id}`
  // A command that is still running while the host is examined.
  void berth.call('POST', `${at}/exec`, { cmd: ['sleep', '60'], stdin: canary('stdin') }).catch(() => {})
  await berth.call('POST', `${at}/exec`, { cmd: ['true', `--password=${canary('argv')}`] })
  await berth.call('POST', `${at}/files`, { path: '/root/f', contentBase64: btoa(canary('file')) })
  await berth.call('POST', `${at}/exec`, { cmd: ['no-such-program', canary('refused')], timeoutMs: -1 })
})
describe('a secret from a caller', () => {
  it('is in no command line of the host and in no environment other than its unit’s', async () => {
    const found = []
    for (const pid of await processIds()) {
      const [group, command, environment] = await Promise.all(
        ['cgroup', 'cmdline', 'environ'].map((name) =>
          readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => ''),
        ),
      )
      // Processes of the unit belong to the caller.
      if (units.some(({ id }) => group?.includes(id))) continue
      if (`${command}${environment}`.includes(MARK)) found.push([pid, command])
    }
    expect(found).toEqual([])
  })

  it('is not in the output of Berth', () => {
    expect(berth.output).not.toContain(MARK)
  })

  it('is in no file that other users can read', async () => {
    const trees = [berth.dataDir, runDirOf(await berth.instance())]
    // grep exits with 1 if it finds nothing and with 2 if a file vanished during the search.
    const { stdout } = await run('grep', ['-rlFs', '--devices=skip', MARK, ...trees], {
      maxBuffer: 2 ** 24,
    }).catch((error: { stdout: string }) => error)
    // Files of root contain it, because an engine has to be able to restart the unit.
    expect(stdout).not.toBe('')
    const open = []
    for (const path of stdout.split('\n').filter((line) => line !== '')) {
      // As an unprivileged user, because the modes of all parent directories count.
      const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups', '--', 'cat', path]
      if (
        await run('setpriv', asNobody).then(
          () => true,
          () => false,
        )
      )
        open.push(path)
    }
    expect(open).toEqual([])
  })
})
