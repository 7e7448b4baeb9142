// The packages of a built-in image, as dpkg lists them.

import { createHash } from 'node:crypto'
import { pathInTree, readInTree } from '../kernel/unit-tree.ts'

/** Name → version: an image has packages of one architecture. */
export type Packages = Record<string, string>

const STATUS = '/var/lib/dpkg/status'
const MAX_STATUS_BYTES = 32 * 1024 * 1024

export function statusPathIn(rootfs: string): string {
  return pathInTree(rootfs, STATUS)
}

/** An image never changes, so its result is cached. */
export function findPackages(rootfs: string): Packages | null {
  const status = readInTree(rootfs, STATUS, MAX_STATUS_BYTES)
  return status && parseStatus(status.toString('utf8'))
}

export function readPackages(rootfs: string): Packages {
  const packages = findPackages(rootfs)
  if (packages === null) throw new Error(`${rootfs} has no list of packages`)
  return packages
}

export function parseStatus(text: string): Packages {
  const paragraphs = text.split(/\n\n+/)
  const entries = paragraphs.flatMap((paragraph): [string, string][] => {
    const field = (name: string) => new RegExp(`^${name}: (.+)$`, 'm').exec(paragraph)?.[1]
    const [name, version] = [field('Package'), field('Version')]
    const isInstalled = field('Status') === 'install ok installed'
    return isInstalled && name !== undefined && version !== undefined ? [[name, version]] : []
  })
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** A build is named by its definition and its packages: the same of both is the same image. */
export function buildDigest(definition: string, packages: Packages): string {
  const made = JSON.stringify({ definition, packages })
  return `sha256:${createHash('sha256').update(made).digest('hex')}`
}

/** The version of the image's main program: that of the first package whose version begins with the image's. */
export function mainVersion(version: string, named: string[], packages: Packages): string | null {
  const versions = [...named, 'base-files'].flatMap((name) => packages[name] ?? [])
  return versions.find((each) => each.replace(/^\d+:/, '').startsWith(version)) ?? null
}
