// A unit for programs of the AI SDK: as the sandbox that tools get as `experimental_sandbox`, and as ready-made tools.

import type { Experimental_SandboxSession } from 'ai'
import type { Unit } from '../unit.ts'
import { absolutePath, factsBehindLinks, orNull } from './paths.ts'
import { LONGEST_RUN_MS, spawnInUnit } from './ai-processes.ts'

export { unitTools, type UnitTools } from './ai-tools.ts'

export type UnitSandboxOptions = {
  /** Where commands start and relative paths begin; it is made if it is not there. Default: where the unit's commands start. */
  directory?: string | undefined
  /** How long `run` may take at most, in ms. It then ends with the code 124. Default and longest: an hour. */
  timeoutMs?: number | undefined
}

/**
 * A unit as the sandbox of the AI SDK, for `experimental_sandbox` of `generateText`, `streamText` and agents. The unit stays
 * the caller's: its maker destroys it.
 *
 * @throws BerthError as every call of the unit does. A missing file is no error: reads answer null, as the AI SDK has it.
 */
export async function unitSandbox(
  unit: Unit,
  { directory: asked, timeoutMs = LONGEST_RUN_MS }: UnitSandboxOptions = {},
): Promise<Experimental_SandboxSession> {
  if (asked !== undefined) await unit.files.makeDirectory(asked)
  const directory = asked ?? (await unit.exec('pwd', { check: true })).stdout.trim()
  const at = (path: string) => absolutePath(path, directory)
  const write = async (
    path: string,
    content: Uint8Array | ReadableStream<Uint8Array>,
    signal?: AbortSignal,
  ) => void (await unit.files.writeStream(at(path), content, { signal }))
  const read = async (path: string, signal?: AbortSignal) =>
    await orNull(unit.files.readStream(at(path), { signal }))
  const readBytes = async (path: string, signal?: AbortSignal) => {
    const stream = await read(path, signal)
    return stream && new Uint8Array(await new Response(stream).arrayBuffer())
  }

  return {
    description: `A Linux container of the image ${unit.info.image}. Commands run by sh -c and start in ${directory}.`,
    readFile: async ({ path, abortSignal }) => await read(path, abortSignal),
    readBinaryFile: async ({ path, abortSignal }) => await readBytes(path, abortSignal),
    readTextFile: async ({ path, encoding = 'utf-8', startLine, endLine, abortSignal }) => {
      const bytes = await readBytes(path, abortSignal)
      return bytes && linesOf(new TextDecoder(encoding).decode(bytes), startLine, endLine)
    },
    writeFile: async ({ path, content, abortSignal }) => await write(path, content, abortSignal),
    writeBinaryFile: async ({ path, content, abortSignal }) => await write(path, content, abortSignal),
    writeTextFile: async ({ path, content, encoding = 'utf-8', abortSignal }) => {
      if (!/^utf-?8$/i.test(encoding)) throw new RangeError(`Text is written as utf-8, not as ${encoding}.`)
      await write(path, new TextEncoder().encode(content), abortSignal)
    },
    stat: async ({ path, abortSignal }) => {
      const facts = await factsBehindLinks(unit, at(path), { signal: abortSignal })
      if (facts === null) return null
      return { type: facts.type === 'link' ? 'other' : facts.type, size: facts.bytes }
    },
    listDirectory: async ({ path, abortSignal }) => {
      const entries = await orNull(unit.files.list(at(path), { signal: abortSignal }).all())
      return (
        entries?.map(({ name, type }) => ({ name, type: type === 'link' ? ('symlink' as const) : type })) ??
        null
      )
    },
    deleteFile: async ({ path, abortSignal }) => {
      const options = { signal: abortSignal }
      const facts = await orNull(unit.files.facts(at(path), options))
      if (facts?.type === 'directory') throw new Error(`${at(path)} is a directory.`)
      return facts !== null && (await orNull(unit.files.delete(at(path), options))) !== null
    },
    spawn: spawnInUnit(unit, at),
    run: async ({ command, workingDirectory = directory, env, abortSignal }) => {
      const asked = { cwd: at(workingDirectory), env, timeoutMs, signal: abortSignal }
      const { exitCode, stdout, stderr, timedOut } = await unit.exec(command, asked)
      return { exitCode: timedOut ? 124 : exitCode, stdout, stderr }
    },
  }
}

/** Lines are counted from 1, and the end is included. */
function linesOf(text: string, from = 1, to = Number.POSITIVE_INFINITY): string {
  if (from === 1 && to === Number.POSITIVE_INFINITY) return text
  return (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice(from - 1, to).join('')
}
