// One sandbox of the OpenAI Agents SDK, on one unit. Its file calls act as root, commands as `runAs`.

import type { Editor } from '@openai/agents'
import {
  type ExecCommandArgs,
  type ExposedPortEndpoint,
  type ListDirectoryArgs,
  type Manifest,
  type MaterializeEntryArgs,
  type ReadFileArgs,
  type SandboxDirectoryEntry,
  type SandboxExecResult,
  type SandboxSession,
  type SandboxSessionState,
  SandboxUnsupportedFeatureError,
  type ViewImageArgs,
  type WorkspaceArchiveData,
  type WriteStdinArgs,
} from '@openai/agents/sandbox'
import type { Unit } from '../unit.ts'
import { editorOf } from './openai-agents-editor.ts'
import { putEntry } from './openai-agents-entries.ts'
import { imageOf, type ImageOutput } from './openai-agents-image.ts'
import { asTold, Shells } from './openai-agents-shells.ts'
import { absolutePath, factsBehindLinks, isMissingFile } from './paths.ts'

export interface UnitSessionState extends SandboxSessionState {
  unitId: string
}

/** The longest that the service runs a command for. */
const LONGEST_RUN_MS = 3_600_000

const types = { directory: 'dir', file: 'file', link: 'other', other: 'other' } as const

export class UnitSession implements SandboxSession<UnitSessionState> {
  readonly state: UnitSessionState
  readonly unit: Unit
  readonly #isOwned: boolean
  readonly #shells: Shells

  /** @param isOwned Whether the unit goes with the session. */
  constructor(unit: Unit, state: UnitSessionState, isOwned: boolean) {
    this.unit = unit
    this.state = state
    this.#isOwned = isOwned
    this.#shells = new Shells(unit)
  }

  #at(path: string): string {
    return absolutePath(path, this.state.manifest.root)
  }

  #command({ cmd, workdir = '.', shell = 'sh', login = false, runAs }: ExecCommandArgs) {
    const env = this.state.environment ?? {}
    return { command: [shell, login ? '-lc' : '-c', cmd], cwd: this.#at(workdir), env, user: runAs }
  }

  async start(): Promise<void> {
    await this.unit.files.makeDirectory(this.state.manifest.root)
  }

  async running(): Promise<boolean> {
    return (await this.unit.refresh()).state === 'running'
  }

  /** Runs a command to its end, an hour at most. */
  async exec(args: ExecCommandArgs): Promise<SandboxExecResult> {
    const startedAt = performance.now()
    const { command, ...options } = this.#command(args)
    const result = await this.unit.exec(command, { ...options, timeoutMs: LONGEST_RUN_MS })
    const { stdout, stderr, exitCode, timedOut } = result
    const wallTimeSeconds = (performance.now() - startedAt) / 1000
    return { output: stdout + stderr, stdout, stderr, wallTimeSeconds, exitCode: timedOut ? null : exitCode }
  }

  /** What a model gets: the output so far, with the session to go on with where the command still runs. */
  async execCommand(args: ExecCommandArgs): Promise<string> {
    if (!this.supportsPty()) return asTold(await this.exec(args), args.maxOutputTokens)
    return asTold(await this.#shells.start({ ...args, ...this.#command(args) }), args.maxOutputTokens)
  }

  async writeStdin(args: WriteStdinArgs): Promise<string> {
    return asTold(await this.#shells.write(args), args.maxOutputTokens)
  }

  /** Whether this program has WebSockets, as Node does since 22. */
  supportsPty(): boolean {
    return typeof WebSocket === 'function'
  }

  async readFile({ path, maxBytes }: ReadFileArgs): Promise<Uint8Array> {
    const stream = await this.unit.files.readStream(this.#at(path))
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
    return maxBytes === undefined ? bytes : bytes.subarray(0, maxBytes)
  }

  async viewImage({ path }: ViewImageArgs): Promise<ImageOutput> {
    return imageOf(path, await this.readFile({ path }))
  }

  async listDir({ path }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
    const folder = this.#at(path)
    const entries = await this.unit.files.list(folder).all()
    return entries.map(({ name, type }) => ({ name, path: absolutePath(name, folder), type: types[type] }))
  }

  async pathExists(path: string): Promise<boolean> {
    return (await factsBehindLinks(this.unit, this.#at(path))) !== null
  }

  async directoryExists(path: string): Promise<boolean> {
    return (await factsBehindLinks(this.unit, this.#at(path)))?.type === 'directory'
  }

  createEditor(runAs?: string): Editor {
    return editorOf(this.unit, (path) => this.#at(path), runAs)
  }

  async materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void> {
    await putEntry(this.unit, this.#at(path), entry, runAs)
  }

  async applyManifest(manifest: Manifest, runAs?: string): Promise<void> {
    if (manifest.users.length > 0 || manifest.groups.length > 0)
      throw new SandboxUnsupportedFeatureError('Users and groups belong into the image of the unit.')
    for (const [path, entry] of Object.entries(manifest.validatedEntries()))
      await this.materializeEntry({ path, entry, ...(runAs === undefined ? {} : { runAs }) })
    this.state.environment = { ...this.state.environment, ...(await manifest.resolveEnvironment()) }
  }

  /** The workspace as a tar archive, of up to 2 GB. */
  async persistWorkspace(): Promise<Uint8Array> {
    const archive = await this.unit.files.archive(this.state.manifest.root)
    return new Uint8Array(await new Response(archive).arrayBuffer())
  }

  /** Puts such an archive in the place of the workspace. */
  async hydrateWorkspace(data: WorkspaceArchiveData): Promise<void> {
    const { root } = this.state.manifest
    await this.unit.files.delete(root, { recursive: true }).catch((error: unknown) => {
      if (!isMissingFile(error)) throw error
    })
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data)
    await this.unit.files.unpack(root, bytes)
  }

  /** Publishes the port for those who have its URL. */
  async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
    const url = new URL(await this.unit.url(port))
    const tls = url.protocol === 'https:'
    return { host: url.hostname, port: Number(url.port) || (tls ? 443 : 80), tls, url: url.href }
  }

  async delete(): Promise<void> {
    this.#shells.end()
    if (this.#isOwned) await this.unit[Symbol.asyncDispose]()
  }
}
