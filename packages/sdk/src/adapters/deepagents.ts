// A unit as the backend of a deep agent: its shell, and by it the file tools of the agent.

import { BaseSandbox } from 'deepagents'
import type { ExecuteResponse, FileDownloadResponse, FileUploadResponse } from 'deepagents'
import { isBerthError } from '../errors.ts'
import type { Unit } from '../unit.ts'
import { isMissingFile } from './paths.ts'

export type UnitBackendOptions = {
  /** Where commands start. Default: where the unit's commands start. */
  directory?: string | undefined
  /** How long a command may take at most, in ms. Default and longest: an hour. */
  timeoutMs?: number | undefined
}

const LONGEST_RUN_MS = 3_600_000

/** For `backend` of `createDeepAgent`. The unit stays: its maker destroys it. Paths are absolute. */
export class UnitBackend extends BaseSandbox {
  readonly unit: Unit
  readonly #options: UnitBackendOptions

  constructor(unit: Unit, options: UnitBackendOptions = {}) {
    super()
    this.unit = unit
    this.#options = options
  }

  get id(): string {
    return this.unit.id
  }

  /** A command that fails or runs out of its time is an answer, with 124 for the latter. */
  async execute(command: string): Promise<ExecuteResponse> {
    const { directory: cwd, timeoutMs = LONGEST_RUN_MS } = this.#options
    const result = await this.unit.exec(command, { cwd, timeoutMs })
    const { stdout, stderr, exitCode, timedOut, truncated } = result
    return { output: stdout + stderr, exitCode: timedOut ? 124 : exitCode, truncated }
  }

  /** Writes each file by itself: one that cannot be written has its error. */
  async uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]> {
    return await inTurn(files, async ([path, content]) => {
      try {
        await this.unit.files.writeStream(path, content)
        return { path, error: null }
      } catch (error) {
        return { path, error: reasonOf(error) }
      }
    })
  }

  async downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    return await inTurn(paths, async (path) => {
      try {
        const stream = await this.unit.files.readStream(path)
        return { path, content: new Uint8Array(await new Response(stream).arrayBuffer()), error: null }
      } catch (error) {
        return { path, content: null, error: reasonOf(error) }
      }
    })
  }
}

/** The framework's word for what is wrong with a path; anything else is thrown on. */
function reasonOf(error: unknown): 'file_not_found' | 'permission_denied' | 'is_directory' | 'invalid_path' {
  if (isMissingFile(error)) return 'file_not_found'
  if (!isBerthError(error, 'validation')) throw error
  const [first] = Array.isArray(error.details) ? (error.details as { reason?: string }[]) : []
  if (first?.reason === 'not_a_file') return 'is_directory'
  return first?.reason === 'not_permitted' || first?.reason === 'read_only'
    ? 'permission_denied'
    : 'invalid_path'
}

async function inTurn<Item, Answer>(items: Item[], ask: (item: Item) => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const item of items) answers.push(await ask(item))
  return answers
}
