// Proves that gVisor can use the network namespaces made here: a real sandbox with busybox inside.

import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunResult, run } from '../../../lib/process.ts'
import {
  DNS_PORT,
  HOST,
  type Lab,
  type NetworkProcess,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'

const PORT = 7000
const hasRunsc = (await run('runsc', ['--version'], { timeoutMs: 10_000 }).catch(() => null))?.exitCode === 0

let lab: Lab
let network: NetworkProcess
let directory: string

beforeAll(async () => {
  lab = await openLab()
  directory = await mkdtemp(join(tmpdir(), `lab-${lab.instance.id}-gvisor-`))
  network = await lab.openNetwork()
  await network.recover([])
  await lab.serve(lab.outside, `${PUBLIC}:${PORT}`)
  await lab.serve(lab.host, `${lab.gateway}:${DNS_PORT}`, `${lab.gateway}:${PORT}`, `${HOST}:${PORT}`)
})
afterAll(async () => {
  await lab?.close()
  if (directory) await rm(directory, { recursive: true, force: true })
})

test.skipIf(!hasRunsc)(
  'a gVisor machine reaches its group, the resolver and the internet, and nothing else, in two runs',
  async () => {
    const sibling = await network.attach({ machineId: 'sibling', group: 1, address: null })
    const stranger = await network.attach({ machineId: 'stranger', group: 2, address: null })
    await lab.serve(sibling.namespacePath, `0.0.0.0:${PORT}`)
    await lab.serve(stranger.namespacePath, `0.0.0.0:${PORT}`)
    let address: string | null = null
    // Twice, because gVisor empties the namespace that it is given: the second run needs a new one.
    for (const runId of ['first', 'second']) {
      const machine = await network.attach({ machineId: 'gvisor', group: 1, address })
      address ??= machine.address
      expect(machine.address).toBe(address)
      const open = [`${sibling.address} ${PORT}`, `${PUBLIC} ${PORT}`, `${lab.gateway} 53`]
      const closed = [
        `${stranger.address} ${PORT}`,
        `${lab.gateway} ${PORT}`,
        `${HOST} ${PORT}`,
        '169.254.169.254 80',
      ]
      const script = [...open, ...closed]
        .map((target) => `/bin/busybox timeout 3 /bin/busybox nc -w 2 ${target} </dev/null; echo`)
        .join('; ')
      const result = await runInGvisor(runId, machine.namespacePath, script)
      const [fromSibling, fromPublic, fromResolver, ...rest] = result.stdout.trimEnd().split('\n')
      expect([fromSibling, fromPublic, fromResolver], result.stderr).toEqual([address, HOST, address])
      expect(rest.join('')).toBe('')
    }
  },
)

async function runInGvisor(id: string, namespace: string, script: string): Promise<RunResult> {
  const bundle = join(directory, id)
  await mkdir(join(bundle, 'rootfs/bin'), { recursive: true })
  await copyFile('/bin/busybox', join(bundle, 'rootfs/bin/busybox'))
  const config = {
    ociVersion: '1.0.2',
    process: {
      args: ['/bin/busybox', 'sh', '-c', script],
      cwd: '/',
      env: ['PATH=/bin'],
      user: { uid: 0, gid: 0 },
    },
    root: { path: 'rootfs', readonly: true },
    linux: {
      namespaces: [
        ...['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
        { type: 'network', path: namespace },
      ],
    },
  }
  await writeFile(join(bundle, 'config.json'), JSON.stringify(config))
  const runsc = [
    'runsc',
    '--root',
    join(directory, 'state'),
    '--network=sandbox',
    '--ignore-cgroups',
    'run',
    '-bundle',
    bundle,
  ]
  // Since kernel 6.17 some settings are per namespace, and a runsc of 2024 fails on them. It ignores them if they are
  // hidden.
  const masked = 'mount -t tmpfs -o ro tmpfs /proc/sys/net && exec "$@"'
  return await run('unshare', ['--mount', 'sh', '-c', masked, 'sh', ...runsc, `${lab.instance.id}-${id}`], {
    timeoutMs: 60_000,
  })
}
