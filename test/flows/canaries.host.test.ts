// Reliability S22, on real machines: what a caller gives as a secret is in no command line and no environment of the host's
// processes, in no line that Berth prints, and in no file that anybody but root and its own user may read.

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
  // One that is still there while the host is looked at.
  void berth.call('POST', `${at}/exec`, { cmd: ['sleep', '60'], stdin: canary('stdin') }).catch(() => {})
  await berth.call('POST', `${at}/exec`, { cmd: ['true', `--password=${canary('argv')}`] })
  await berth.call('POST', `${at}/files`, { path: '/root/f', contentBase64: btoa(canary('file')) })
  await berth.call('POST', `${at}/exec`, { cmd: ['no-such-program', canary('refused')], timeoutMs: -1 })
})
describe('a secret that a caller gave', () => {
  it('is in no command line of the host, and in no environment but of its own unit', async () => {
    const found = []
    for (const pid of await processIds()) {
      const [group, command, environment] = await Promise.all(
        ['cgroup', 'cmdline', 'environ'].map((name) =>
          readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => ''),
        ),
      )
      // What runs within the unit is the caller's own.
      if (units.some(({ id }) => group?.includes(id))) continue
      if (`${command}${environment}`.includes(MARK)) found.push([pid, command])
    }
    expect(found).toEqual([])
  })

  it('is in nothing that Berth prints', () => {
    expect(berth.output).not.toContain(MARK)
  })

  it('is in no file that others may read', async () => {
    const trees = [berth.dataDir, runDirOf(await berth.instance())]
    // grep ends with 1 where it finds nothing, and with 2 where a file went while it looked.
    const { stdout } = await run('grep', ['-rlFs', '--devices=skip', MARK, ...trees], {
      maxBuffer: 2 ** 24,
    }).catch((error: { stdout: string }) => error)
    // Root's own are there: an engine has to start the unit anew.
    expect(stdout).not.toBe('')
    const open = []
    for (const path of stdout.split('\n').filter((line) => line !== '')) {
      // As who is nobody: every directory on the way counts.
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
