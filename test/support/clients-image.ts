// An image with the clients that people use, from Debian's packages and, for Deno, npm's. It takes some minutes to make, once for
// all tests of a machine.

import { createHash } from 'node:crypto'
import { buildImage } from '../../src/engine/oci/images/build.ts'
import { type BuiltIn, referenceOf } from '../../src/engine/oci/images/builtin.ts'
import { imageLimits } from '../../src/engine/oci/images/image-limits.ts'
import { openStore, type StoredImage } from '../../src/engine/oci/images/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'

const DENO = '2.9.6'

const definition: BuiltIn = {
  name: 'clients',
  version: '12',
  packages: [
    'ca-certificates',
    'cargo-web',
    'chromium',
    'curl',
    'default-jdk-headless',
    'git',
    'golang-go',
    'libnss3-tools',
    'nodejs',
    'npm',
    'openssh-client',
    'openssh-server',
    'python3',
    'python3-pip',
    'wget',
  ],
  cmd: ['sleep', 'infinity'],
}

/** The image of these packages is made once, whatever their versions are by now. */
export async function makeClientsImage(imagesDir: string): Promise<StoredImage> {
  const store = await openStore(imagesDir, systemClock)
  const identity = createHash('sha256').update(JSON.stringify([definition, DENO]))
  const signal = AbortSignal.timeout(1_800_000)
  const options = { onProgress: () => {}, limits: imageLimits, background: false, signal }
  return await store.make(
    { digest: `sha256:${identity.digest('hex')}`, maker: 'a test' },
    async (workshop) => {
      const { config } = await buildImage(definition, workshop, options)
      await addDeno(workshop)
      return { reference: referenceOf(definition), config }
    },
    signal,
  )
}

/** Debian has none; npm's package of it is the program alone. */
async function addDeno({ rootfs, scratch }: { rootfs: string; scratch: string }): Promise<void> {
  const arch = process.arch === 'x64' ? 'x64' : 'arm64'
  const name = `@deno/linux-${arch}-glibc@${DENO}`
  const options = { cwd: scratch, timeoutMs: 300_000 }
  await runOrThrow('npm', ['pack', '--silent', name], options)
  await runOrThrow(
    'sh',
    ['-euc', 'tar -xzf ./*.tgz && install -m 755 package/deno "$1"', 'sh', `${rootfs}/usr/local/bin/deno`],
    options,
  )
}
