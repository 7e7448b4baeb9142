// CRIU, by which runc machines keep what they have in memory. Which one does its work on this kernel only a try can
// tell (probe.ts); runc finds it under that name in a directory of our own, with the options that runc's
// command line lacks.

import { access, constants, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run, SAFE_PATH } from '../../../lib/process.ts'

export type Criu = {
  /** It goes into the manifest of what it wrote: no other version reads it. */
  version: string
  /** PATH for a runtime that is to find it. */
  searchPath: string
  /** A file of options, for the annotation `org.criu.config`. */
  options: string
}

/** The set-up fetches the first one only where Debian's own fails (scripts/criu.sh). */
export const criuPrograms = ['/usr/local/lib/berth/criu/criu', '/usr/sbin/criu']

/**
 * tcp-close: connections are neither saved nor restored, so a copy cannot answer on its source's; nor are those that
 * nobody has accepted yet (skip-in-flight), which a server under load always has. Nobody's packets are held back for
 * it, either. ghost-limit: files that are open and have no name any more, which no disk has.
 */
const OPTIONS = `tcp-close
skip-in-flight
network-lock skip
ghost-limit 67108864
file-locks
`

/** Null where the program is not there. */
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
