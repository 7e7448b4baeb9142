// conmon outlives the engine. Where the engine runs from an image, which may be removed meanwhile, conmon and its libraries are
// copied out of it first, with the loader that starts it there.

import { statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { programsNamed, runOrThrow, SAFE_PATH } from '../../../lib/process.ts'
import { keepFiles } from './kept-programs.ts'

/** `program`: its name among the kept ones (kept-programs.ts); null where it is not kept. */
export type KeptMonitor = {
  program: string | null
  command: readonly [string, ...string[]]
  env: Record<string, string>
}

/** In its place: a file of the machine that the system's packages replace, and never remove under a process. */
export const installedMonitor: KeptMonitor = { program: null, command: ['conmon'], env: {} }

const OVERLAY = 0x79_4c_76_30
const TIMEOUT_MS = 10_000

/** `directory`: of all kept programs. */
export async function keepMonitor(directory: string): Promise<KeptMonitor> {
  return (await isOfImage())
    ? await keepWithLibraries(directory, await findProgram('conmon'))
    : installedMonitor
}

async function isOfImage(): Promise<boolean> {
  return (await statfs('/')).type === OVERLAY
}

/** Of a program that is linked dynamically. */
export async function keepWithLibraries(directory: string, source: string): Promise<KeptMonitor> {
  const listed = await runOrThrow(source, [], {
    timeoutMs: TIMEOUT_MS,
    env: { LD_TRACE_LOADED_OBJECTS: '1' },
  })
  const lines = [...listed.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)]
  const libraries = lines.flatMap(([, path]) => path ?? []).toSorted()
  const loader = libraries.map((path) => basename(path)).find((name) => name.startsWith('ld-'))
  if (loader === undefined) throw new Error(`${source} names no loader among its libraries`)
  const own = basename(source)
  const files = new Map([source, ...libraries].map((path) => [basename(path), path]))
  const program = await keepFiles(directory, files)
  const home = join(directory, program)
  const at = (name: string) => join(home, name)
  // Where the system's table of character sets is not looked for.
  return { program, command: [at(loader), '--library-path', home, at(own)], env: { GCONV_PATH: home } }
}

async function findProgram(name: string): Promise<string> {
  const [path] = await programsNamed(name)
  if (path === undefined) throw new Error(`There is no ${name} in ${SAFE_PATH}.`)
  return path
}
