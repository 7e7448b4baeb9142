// Images built to attack the host when their units start (reliability I1; attacks during unpacking are in
// images-hostile.deep.test.ts). Each start harms only its own unit or is refused, and the error does not reveal host paths.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ImageConfig, isolationClasses, type MachineRef } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { partOf, testSeed } from '../support/part-of.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'

const MAX_GROWTH_BYTES = 200 * 1024 ** 2

type Shape = { script?: (canaries: string) => string; config?: Partial<ImageConfig> }

/** Known attacks on container engines. */
const shapes: Record<string, Shape> = {
  'a link for /dev, to the descriptors of the process that opens it': {
    script: () => 'rm -rf dev; ln -s proc/self/fd dev',
  },
  'a link for /proc': { script: () => 'rm -rf proc; ln -s etc proc' },
  'a link for /sys, to a directory of the host': { script: (to) => `rm -rf sys; ln -s ${to} sys` },
  'a link for /etc, to a directory of the host': { script: (to) => `mv etc etc.old; ln -s ${to} etc` },
  'a link for /tmp, to a directory of the host': { script: (to) => `rm -rf tmp; ln -s ${to} tmp` },
  'links for the files of /etc that each unit is given': {
    script: (to) => `for f in hosts hostname resolv.conf; do rm -f etc/$f; ln -s ${to}/kept etc/$f; done`,
  },
  'directories for the files of /etc that each unit is given': {
    script: () => 'for f in hosts hostname resolv.conf; do rm -f etc/$f; mkdir -p etc/$f/in; done',
  },
  'a pipe for the list of users': {
    script: () => 'rm etc/passwd; mkfifo etc/passwd',
    config: { user: 'somebody' },
  },
  'a list of users as large as the disk': {
    script: () => 'rm etc/passwd etc/group; truncate -s 1G etc/passwd; truncate -s 1G etc/group',
    config: { user: 'somebody:some' },
  },
  'a link for the list of users, to one of the host': {
    script: (to) => `rm etc/passwd; ln -s ${to}/kept etc/passwd`,
    config: { user: 'kept' },
  },
  'a user beyond all users': { config: { user: '4294967296' } },
  'a user whose number is negative': { config: { user: '-1:-1' } },
  'a working directory behind a descriptor': { config: { workingDir: '/proc/self/fd/8' } },
  'a working directory behind another process': { config: { workingDir: '/proc/1/root/../..' } },
  'the runtime itself as its program': { config: { entrypoint: ['/proc/self/exe'], cmd: ['--version'] } },
  'libraries for the process that starts it': {
    script: () => 'cp usr/bin/true evil.so',
    config: { env: ['LD_PRELOAD=/evil.so', 'LD_LIBRARY_PATH=/', 'PATH=/nowhere', 'BASH_ENV=/evil.so'] },
  },
  'programs under the names of the host’s': {
    script: () =>
      `for p in runc runsc conmon sh; do rm -f usr/bin/$p; printf '#!/usr/bin/bash\\nprintf x >/pwned\\n' > usr/bin/$p; chmod 755 usr/bin/$p; done`,
  },
}

let host: Awaited<ReturnType<typeof openHostEngine>>
let canaries: string
const suite = createSuite(
  async () => ({ engine: host.engine(), configuredImage: '', close: async () => await host.close() }),
  { isolation: 'runc', image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

beforeAll(async () => {
  canaries = await mkdtemp('/var/tmp/berth-canaries-')
  await writeFile(join(canaries, 'kept'), 'kept:x:0:0::/:/bin/sh\n')
  host = await openHostEngine()
  await suite.open()
})
afterAll(async () => {
  await suite.close()
  await rm(canaries, { recursive: true })
})

/** Returns `started` or the kind of the error. Checks that the error message contains no host paths. */
async function startOf(ref: MachineRef, cmd: string[] | null): Promise<string> {
  try {
    await suite.start(ref, { cmd })
    return 'started'
  } catch (error) {
    const { kind, publicMessage } = error as { kind?: string; publicMessage?: string }
    expect(publicMessage).not.toMatch(/\/var\/|\/run\/berth\/|\/proc\/\d/)
    return kind ?? String(error)
  }
}

describe.each(partOf(isolationClasses, 1, testSeed))(
  'a hostile image in a %s machine does not harm the host',
  (isolation) => {
    it.each(Object.keys(shapes))('with %s', async (name) => {
      const { script, config } = shapes[name] ?? {}
      const before = process.memoryUsage().rss
      const imageDigest = await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], {
        // A new image in each run, because the canaries are elsewhere each time.
        reference: `berth.local/hostile-start-${canaries.slice(-6)}:1`,
        ...(script ? { script: script(canaries) } : {}),
        ...(config ? { config } : {}),
      })
      const neighbour = await suite.running({}, { isolation, networkGroup: 2 })
      const { id } = await suite.create({ isolation, imageDigest })
      const ref = { id, generation: 1 }
      const outcome = await startOf(ref, config?.entrypoint ? null : ['/usr/bin/sleep', 'infinity'])
      expect(['started', 'start_failed', 'start_refused', 'image_invalid']).toContain(outcome)
      if (outcome === 'started' && (await suite.status(id))?.state === 'running')
        await suite.exec(ref, ['/usr/bin/ls', '/']).catch(() => {})
      expect((await suite.sh(neighbour, 'echo fine')).stdout).toBe('fine\n')
      await host.engine().destroy(id)

      expect(await readdir(canaries)).toEqual(['kept'])
      expect(await readFile(join(canaries, 'kept'), 'utf8')).toBe('kept:x:0:0::/:/bin/sh\n')
      expect(process.memoryUsage().rss - before).toBeLessThan(MAX_GROWTH_BYTES)
      await host.expectAsListed()
    })
  },
)
