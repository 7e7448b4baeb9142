// Units and images with traps in their files: links where the host mounts and writes, and programs with the names of
// ours. The host must only read and write within their trees, and never run their programs outside the sandbox
// (reliability I24 for volumes).

import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { IsolationClass, MachineRef } from '../../src/engine/engine.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { deriveImage } from '../support/derived-images.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'
import { createForking } from './claims/forks.ts'

let host: Awaited<ReturnType<typeof openHostEngine>>
let canaries: string
let hostileImage: string
let imageWithoutRun: string
const suite = createSuite(
  async () => ({ engine: host.engine(), configuredImage: '', close: async () => await host.close() }),
  { isolation: 'runc', image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

/** A program under each name that one of ours might have. It leaves a mark in the tree in which it runs. */
const TROJANS = `
for at in newroot/q newroot/q/berth q q/berth newroot/q/helper; do
  mkdir -p ./$at
  for name in busybox tar sh; do
    printf '#!/usr/bin/bash\\nprintf x > /pwned\\n' > ./$at/$name
    chmod 755 ./$at/$name
  done
done
mkdir -p ./oldroot ./newroot/oldroot
rm ./usr/bin/sh
cp ./q/sh ./usr/bin/sh`

beforeAll(async () => {
  canaries = await mkdtemp('/var/tmp/berth-canaries-')
  host = await openHostEngine()
  await suite.open()
  const derive = async (reference: string, script: string) =>
    await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], { reference, script })
  hostileImage = await derive('berth.local/hostile:1', `${TROJANS}\nrm -rf run\nln -s /newroot/q run`)
  // A directory of the image cannot be moved away by its unit. Without /run in the image, the unit owns it.
  imageWithoutRun = await derive('berth.local/without-run:1', `${TROJANS}\nrm -rf run`)
})
afterEach(async () => {
  expect(await readdir(canaries)).toEqual([])
  await host.expectAsListed()
})
afterAll(async () => {
  await suite.close()
  await rm(canaries, { recursive: true })
})

const bootFiles = [
  { path: '/srv/boot', content: Buffer.from('boot') },
  { path: '/run/berth/boot', content: Buffer.from('boot') },
]

const bash = async (ref: MachineRef, script: string) =>
  await suite.exec(ref, ['/usr/bin/bash', '-euc', script])

describe.each<IsolationClass>(['runc', 'gvisor'])('the engine with a %s machine', (isolation) => {
  it('never runs programs that an image puts in the place of its own helper', async () => {
    const ref = await suite.running({ files: bootFiles }, { isolation, imageDigest: hostileImage })
    expect(await bash(ref, 'cat /srv/boot; ls /')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^boot(?!.*pwned)/s),
    })
    await suite.engine().writeFile(ref, '/root/file', Buffer.from('written'))
    expect((await bash(ref, 'cat /root/file; ls /')).stdout).toMatch(/^written(?!.*pwned)/s)
  })

  it('does not start an image with a link in the place of a mount or a boot file, and names it', async () => {
    const plants = [
      ['rm -rf proc; ln -s srv proc', 'Nothing can be mounted at /proc: a link'],
      ['rm -rf run; ln -s run run', 'The directory /run/berth cannot be made in the machine: links'],
      ['rm -rf srv; ln -s srv srv', 'The boot file /srv/boot cannot be written: links'],
    ] as const
    for (const [script, said] of plants) {
      const image = { reference: 'berth.local/planted:1', script }
      const imageDigest = await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], image)
      await expect(suite.running({ files: bootFiles }, { isolation, imageDigest })).rejects.toMatchObject({
        kind: 'start_refused',
        publicMessage: expect.stringContaining(said),
      })
    }
  })

  it('stays in the unit’s tree and runs no program of the unit despite links planted before a restart', async () => {
    const shapes = [
      'mv /run /run.old; ln -s /newroot/q /run',
      `mv /run /run.old; mkdir -p ${canaries} /oldroot${canaries}; ln -s /oldroot${canaries} /run`,
      'mv /run /run.old; mkdir /run; ln -s /newroot/q/berth /run/berth',
      `mv /run /run.old; ln -s ../../../../../..${canaries} /run; mkdir -p ${canaries}`,
      `mv /etc /etc.old; mkdir -p ${canaries}; ln -s ${canaries} /etc`,
    ]
    const ref = await suite.running({}, { isolation, imageDigest: imageWithoutRun })
    for (const [i, shape] of shapes.entries()) {
      const now = { id: ref.id, generation: 1 + i }
      expect(await bash(now, shape)).toMatchObject({ exitCode: 0, stderr: '' })
      await suite.engine().stop(now, 0)
      const next = await suite.start({ id: ref.id, generation: 2 + i }, { files: bootFiles })
      expect((await bash(next, 'cat /srv/boot; ls /')).stdout).toMatch(/^boot(?!.*pwned)/s)
      if (shape.includes('/run.old')) await bash(next, 'rm -rf /run; mv /run.old /run')
    }
  })

  it('mounts a volume at the target of the unit’s links, but not over /dev', async () => {
    const volume = { mount: '/a/dev', gb: 1 }
    const ref = await suite.running({}, { isolation, volume })
    await bash(ref, 'ln -s /proc/sys/kernel/core_pattern /a/dev/null; mv /a /a.old; ln -s ../../srv /a')
    await suite.engine().stop(ref, 0)
    const next = await suite.start({ id: ref.id, generation: 2 })
    expect(await bash(next, 'readlink /srv/dev/null; rm /a; ln -s / /a')).toMatchObject({
      stdout: '/proc/sys/kernel/core_pattern\n',
      stderr: '',
    })
    await suite.engine().stop(next, 0)
    await expect(suite.start({ id: ref.id, generation: 3 })).rejects.toMatchObject({
      kind: 'start_refused',
      publicMessage: expect.stringMatching(/^Nothing can be mounted at \/a\/dev: a link/),
    })
  })

  it('writes the host name of a forked unit into its own tree even if its /etc is a link', async () => {
    const source = await suite.running({}, { isolation })
    await bash(
      source,
      `mv /etc /moved; mkdir -p ${canaries}; ln -s ${canaries} /etc; ln -sf /pwned /moved/hostname`,
    )
    const copy = await createForking(suite).running(source, { hostname: 'copy' })
    const { stdout } = await bash(copy, `cat ${canaries}/hostname; ls /`)
    expect(stdout).toMatch(/^copy\n(?!.*pwned)/s)
  })
})

it('destroying a machine removes all subvolumes in its volume and disk and nothing else', async () => {
  const volume = { mount: '/data', gb: 1 }
  const [spec, other] = [await suite.create({ volume }), await suite.create({ volume })]
  const machine = host.paths.machine(spec.id)
  const names = ['a', 'a/b', 'a/b/c d', `a/b/c d/x\nID 256 gen 1 top level 5 path ${other.id}`]
  const many = Array.from({ length: 80 }, (_, n) => `a/${n}`)
  const planted = [...names, ...many].map((name) => `${machine.volume}/${name}`)
  for (const path of [...planted, ...names.map((name) => `${machine.upper}/${name}`)])
    await runOrThrow('btrfs', ['--quiet', 'subvolume', 'create', path], { timeoutMs: 20_000 })
  await suite.engine().destroy(spec.id)
  expect([machine.volume, machine.disk].filter((path) => existsSync(path))).toEqual([])
  const { volume: left, disk } = host.paths.machine(other.id)
  expect([left, disk].filter((path) => !existsSync(path))).toEqual([])
})
