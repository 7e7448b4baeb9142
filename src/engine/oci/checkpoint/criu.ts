// CRIU, which checkpoints the memory of runc machines. Only an attempt shows which version works on this kernel
// (probes/memory.ts); runc finds it under that name in a directory of ours, with options that runc's command line lacks.

import { access, constants, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SAFE_PATH } from '../../../lib/process.ts'
import { run } from '../kernel/programs.ts'

export type Criu = {
  /** Stored in the manifest of a checkpoint: no other version can restore it. */
  version: string
  /** The PATH for a runtime that must find it. */
  searchPath: string
  /** An options file, for the annotation `org.criu.config`. */
  options: string
}

/** The set-up installs the first one only if Debian's own fails (scripts/criu.sh). */
export const criuPrograms = ['/usr/local/lib/berth/criu/criu', '/usr/sbin/criu']

/**
 * tcp-close: connections are neither saved nor restored, so that a copy cannot answer on its source's; nor are those
 * not yet accepted (skip-in-flight), which a busy server always has. No packets are held back for it either.
 * ghost-limit: the size of deleted files that are still open, which are not on the disk.
 */
const OPTIONS = `tcp-close
skip-in-flight
network-lock skip
ghost-limit 67108864
file-locks
`

/** Returns null if the program does not exist. */
export async function openCriu(directory: string, program: string): Promise<Criu | null> {
  const isThere = await access(program, constants.X_OK).then(
    () => true,
    () => false,
  )
  const shown = isThere ? await run(program, ['--version'], { timeoutMs: 10_000 }).catch(() => null) : null
  const version = /Version: (\S+)/.exec(shown?.stdout ?? '')?.[1]
  if (version === undefined) return null
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const [link, options] = [join(directory, 'criu'), join(directory, 'options.conf')]
  await rm(`${link}.new`, { force: true })
  await symlink(program, `${link}.new`)
  await rename(`${link}.new`, link)
  await writeFile(`${options}.new`, OPTIONS, { mode: 0o600 })
  await rename(`${options}.new`, options)
  return { version, searchPath: `${directory}:${SAFE_PATH}`, options }
}
