// What a machine with secrets trusts (decisions/brokered-secrets.md): the image's own bundle and the authority of its team,
// in a file of the run that is mounted, read-only, where programs look. Nothing is written to the machine's disk.

import { readFile, writeFile } from 'node:fs/promises'
import { bundlePaths } from '../../../lib/egress/trust.ts'
import { EngineError } from '../../errors.ts'
import type { RunSpec } from '../../engine.ts'
import { HELPER_DIR, type MountPoints } from './mount-points.ts'
import { fileInTree, readInTree } from '../kernel/unit-tree.ts'

/** `at`: where `file` of this host is mounted in the machine, besides next to its helper. */
export type Trust = { file: string; at: string[] }

/** The file's name next to the helper, where every machine has an empty one of that name. */
export const TRUST = 'trust.pem'
export const TRUST_FILE = `${HELPER_DIR}/${TRUST}`

const MAX_BUNDLE_BYTES = 4 * 1024 * 1024

type Wanted = {
  run: Pick<RunSpec, 'egress'>
  /** The machine's root, mounted; and the root of its image, which never changes. */
  rootfs: string
  imageRootfs: string
  imageEnv: string[]
  mountPoints: MountPoints
  file: string
  authority: string | null
}

/** Returns null for a machine without secrets. */
export async function prepareTrust(wanted: Wanted): Promise<Trust | null> {
  const { run, rootfs, imageRootfs, mountPoints, file, authority } = wanted
  if (run.egress === null || run.egress.secrets.length === 0) return null
  if (authority === null)
    throw new EngineError(
      'start_failed',
      'The process that puts secrets into requests is not there: try again.',
    )
  const bundle = readBundle(wanted) ?? (await readHostBundle())
  await writeFile(file, `${bundle}\n${authority}`, { mode: 0o644 })
  // By the image, so that memory finds the same mounts again.
  const inImage = bundlePaths.filter((path) => fileInTree(imageRootfs, path) !== null)
  const found = inImage.flatMap((path) => fileInTree(rootfs, path) ?? [])
  return { file, at: [...new Set(found)].filter((path) => isFree(mountPoints, path)) }
}

/** Of the machine's root as it is, which its programs may have changed. */
function readBundle({ rootfs, imageEnv }: Wanted): string | null {
  const named = imageEnv.flatMap((entry) => /^SSL_CERT_FILE=(\/.+)$/s.exec(entry)?.[1] ?? [])
  for (const path of [...named, ...bundlePaths]) {
    const content = readInTree(rootfs, path, MAX_BUNDLE_BYTES)
    if (content !== null && content.length > 0) return content.toString('latin1')
  }
  return null
}

/** For an image without one, so that a program that is pointed to the file still reaches everything else. */
async function readHostBundle(): Promise<string> {
  for (const path of bundlePaths) {
    const content = await readFile(path, 'latin1').catch(() => null)
    if (content !== null) return content
  }
  return ''
}

/** Whether it lies in the machine's root itself, and not in what is mounted there. */
function isFree({ helper, volume }: MountPoints, path: string): boolean {
  const mounted = ['/proc', '/sys', '/dev', '/tmp', helper, ...(volume === null ? [] : [volume])]
  return mounted.every((each) => !path.startsWith(`${each}/`))
}
