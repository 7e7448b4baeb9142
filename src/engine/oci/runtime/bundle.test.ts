// The whole OCI configuration of machines, compared with approved files (reliability I2).

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { ImageConfig, IsolationClass, RunSpec } from '../../engine.ts'
import { buildConfig, execProcess, type BundleInput, type Process } from './bundle.ts'

const image: ImageConfig = {
  env: ['PATH=/opt/bin', 'LANG=C', 'broken', '=odd'],
  entrypoint: ['/entry'],
  cmd: ['serve'],
  workingDir: '/srv',
  user: 'app',
  exposedPorts: [],
}

const run: RunSpec = {
  hostname: 'web',
  entrypoint: null,
  cmd: null,
  env: { LANG: 'de', LINES: 'a\nb="c"' },
  files: [],
  searchDomain: 's.internal',
  egress: null,
}

function input(
  changes: {
    isolation?: IsolationClass
    run?: Partial<RunSpec>
    image?: Partial<ImageConfig>
    uid?: number
  } = {},
): BundleInput {
  return {
    spec: {
      id: 'unit_1',
      imageDigest: 'sha256:0',
      isolation: changes.isolation ?? 'runc',
      size: { cpus: 0.25, memoryMb: 256, pids: 100, diskGb: 2 },
      volume: { mount: '/data', gb: 1 },
      networkGroup: 1,
    },
    run: { ...run, ...changes.run },
    image: { ...image, ...changes.image },
    user: { uid: changes.uid ?? 0, gid: 0, additionalGids: [], home: '/root' },
    rootfs: '/rootfs',
    mountPoints: { helper: '/run/berth', volume: '/data', tmp: null },
    helperDir: '/helper',
    forkGeneration: null,
    trust: null,
    volumeDir: '/volume',
    cgroupPath: '/berth-test/unit_1-1',
    networkNamespace: '/run/netns/n',
    ioDevice: { major: 7, minor: 3 },
    seccomp: { defaultAction: 'SCMP_ACT_ERRNO', architectures: [], syscalls: [] },
    openFiles: 1024,
    shmBytes: 134217728,
  }
}

// A list of missing settings would not detect an added one. The whole configuration is compared with a reviewed copy.
for (const isolation of ['runc', 'gvisor'] as const) {
  it(`the OCI configuration of a ${isolation} machine equals the reviewed ${isolation}-bundle.json`, () => {
    const golden = new URL(`testing/${isolation}-bundle.json`, import.meta.url)
    const config: unknown = JSON.parse(JSON.stringify(buildConfig(input({ isolation }))))
    expect(config).toEqual(JSON.parse(readFileSync(golden, 'utf8')))
  })
}

describe('a machine in which containers may run', () => {
  const configOf = (isolation: IsolationClass) => {
    const plain = input({ isolation })
    return buildConfig({ ...plain, spec: { ...plain.spec, nested: true } })
  }
  const plainOf = (isolation: IsolationClass) => buildConfig(input({ isolation }))

  it('has the rights of container engines over the kernel of its sandbox, and groups to write to', () => {
    const { process, ...rest } = configOf('gvisor')
    expect(process.capabilities.bounding).toEqual(
      expect.arrayContaining(['CAP_NET_ADMIN', 'CAP_NET_RAW', 'CAP_SYS_ADMIN']),
    )
    expect(process.noNewPrivileges).toBe(true)
    expect(JSON.stringify(rest)).toContain('/sys/fs/cgroup')
  })

  it('gets nothing of it from class runc, whose kernel is the host’s', () =>
    expect(configOf('runc')).toEqual(plainOf('runc')))

  it('gives commands as root what its first process may have, and no other machine’s commands', () => {
    const rights = (main: Process) => execProcess(main, ['id'], { asRoot: true }).capabilities.effective
    expect(rights(configOf('gvisor').process)).toContain('CAP_SYS_ADMIN')
    expect(rights(plainOf('gvisor').process)).not.toContain('CAP_SYS_ADMIN')
  })
})

describe('the command line of a machine', () => {
  const cases: [string, Partial<RunSpec>, string[]][] = [
    ['is the image’s entrypoint and cmd by default', {}, ['/entry', 'serve']],
    ['keeps the image’s entrypoint when the caller gives only cmd', { cmd: ['x'] }, ['/entry', 'x']],
    ['drops the image’s cmd when the caller gives an entrypoint', { entrypoint: ['/e'] }, ['/e']],
    ['is the caller’s when the caller gives both', { entrypoint: ['/e'], cmd: ['x'] }, ['/e', 'x']],
  ]
  for (const [claim, changes, args] of cases) {
    it(claim, () => expect(buildConfig(input({ run: changes })).process.args).toEqual(args))
  }

  it('is refused with advice when neither the image nor the caller gives one', () => {
    expect(() => buildConfig(input({ image: { entrypoint: [], cmd: [] } }))).toThrow(
      /give `cmd` or `entrypoint`/,
    )
  })
})

it('the environment merges defaults, image and caller in this order and drops malformed image entries', () => {
  expect(buildConfig(input()).process.env).toEqual([
    'PATH=/opt/bin',
    'HOSTNAME=web',
    'HOME=/root',
    'LANG=de',
    'LINES=a\nb="c"',
  ])
})

it('mounts go to the resolved targets of the image’s links, and the volume is mounted last', () => {
  const given = { ...input(), forkGeneration: '/generation' }
  given.mountPoints = { helper: '/var/run/berth', volume: '/tmp/data', tmp: '/rootfs/tmp' }
  const mounts = buildConfig(given)['mounts'] as { destination: string; source: string }[]
  expect(mounts.slice(-4).map(({ destination, source }) => `${source} ${destination}`)).toEqual([
    '/rootfs/tmp /tmp',
    '/helper /var/run/berth',
    '/generation /var/run/berth/fork-generation',
    '/volume /tmp/data',
  ])
  const without = buildConfig(input())['mounts'] as { destination: string }[]
  expect(without.map(({ destination }) => destination)).not.toContain('/tmp')
})

it('a non-root user has no capabilities', () => {
  const { capabilities } = buildConfig(input({ uid: 1000 })).process
  expect(capabilities.effective).toEqual([])
  expect(capabilities.permitted).toEqual([])
})

it('no machine has capabilities for devices, raw sockets, mounts or new privileges', () => {
  for (const isolation of ['runc', 'gvisor'] as const) {
    const { process } = buildConfig(input({ isolation }))
    expect(process.noNewPrivileges).toBe(true)
    for (const power of [
      'CAP_MKNOD',
      'CAP_NET_RAW',
      'CAP_SYS_ADMIN',
      'CAP_SYS_PTRACE',
      'CAP_DAC_READ_SEARCH',
    ]) {
      expect(Object.values(process.capabilities).flat()).not.toContain(power)
    }
  }
})

it('gVisor gets extra memory and threads for its own sandbox process', () => {
  const limitsOf = (isolation: IsolationClass) =>
    (
      buildConfig(input({ isolation }))['linux'] as {
        resources: { memory: { limit: number }; pids: { limit: number } }
      }
    ).resources
  expect(limitsOf('runc').memory.limit).toBe(256 * 1024 * 1024)
  expect(limitsOf('gvisor').memory.limit).toBeGreaterThan(256 * 1024 * 1024)
  expect(limitsOf('runc').pids.limit).toBe(100)
  expect(limitsOf('gvisor').pids.limit).toBeGreaterThan(100)
})

it('an exec runs as the machine’s user, and the helper runs as root', () => {
  const { process } = buildConfig(input({ uid: 1000 }))
  expect(execProcess(process, ['id']).user.uid).toBe(1000)
  const asRoot = execProcess(process, ['id'], { asRoot: true })
  expect(asRoot.user.uid).toBe(0)
  expect(asRoot.capabilities.effective).toContain('CAP_DAC_OVERRIDE')
})
