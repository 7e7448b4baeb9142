// Units as the sandboxes and filesystems of Mastra's workspaces.

import { MastraSandbox } from '@mastra/core/workspace'
import type {
  MastraSandboxOptions,
  SandboxFileInput,
  SandboxInfo,
  SandboxNetworking,
} from '@mastra/core/workspace'
import type { ProviderStatus, SandboxStartResult, WriteFilesOptions } from '@mastra/core/workspace'
import { Berth } from '../berth.ts'
import { isBerthError } from '../errors.ts'
import type { Unit } from '../unit.ts'
import type { CreateOptions } from '../units.ts'
import { UnitFilesystem, type UnitFilesystemOptions } from './mastra-filesystem.ts'
import { UnitProcesses } from './mastra-processes.ts'
import { absolutePath } from './paths.ts'

export { UnitFilesystem, type UnitFilesystemOptions }

export type UnitSandboxOptions = MastraSandboxOptions & {
  /** Default: one of the environment. */
  berth?: Berth
  /** A unit of yours: it is neither stopped nor destroyed. Without it the sandbox makes one of `spec`. */
  unit?: Unit
  spec?: Partial<CreateOptions>
  /** Of the sandbox, and the name of the unit that it makes: a second sandbox with it finds that unit. Default: random. */
  id?: string
}

const DEFAULT_IMAGE = 'berth.local/python:3.11'

/** For `sandbox` of a Workspace. Destroying it destroys the unit that it made. */
export class UnitSandbox extends MastraSandbox {
  readonly id: string
  readonly name = 'UnitSandbox'
  readonly provider = 'berth'
  status: ProviderStatus = 'pending'
  declare readonly processes: UnitProcesses
  readonly networking: SandboxNetworking
  readonly #berth: Berth
  readonly #given: Unit | undefined
  readonly #spec: Partial<CreateOptions>
  #unit: Unit | undefined

  constructor({ berth = new Berth(), unit, spec = {}, id, ...options }: UnitSandboxOptions = {}) {
    super({ ...options, name: 'UnitSandbox', processes: new UnitProcesses(() => this.unit) })
    this.#berth = berth
    this.#given = unit
    this.#spec = spec
    this.id = unit?.name ?? id ?? `mastra-${crypto.randomUUID().slice(0, 8)}`
    this.networking = { getPortUrl: async (port: number) => await this.unit.url(port) }
  }

  /** Throws before the sandbox is started. */
  get unit(): Unit {
    if (!this.#unit) throw new Error(`The sandbox ${this.id} has not been started.`)
    return this.#unit
  }

  /** Throws BerthError as `berth.units.create` does. */
  async start(): Promise<SandboxStartResult> {
    const found = this.#given ?? (await this.#berth.units.find(this.id))
    const { image = DEFAULT_IMAGE } = this.#spec
    const unit = found ?? (await this.#berth.units.create({ ...this.#spec, image, name: this.id }))
    if (unit.state === 'stopped') await unit.start()
    this.#unit = await unit.ready()
    if (this.workingDirectory !== undefined) await unit.files.makeDirectory(this.workingDirectory)
    return { outcome: found ? 'connected' : 'created' }
  }

  /** Keeps the disk; a later start goes on with it. */
  async stop(): Promise<void> {
    if (!this.#given) await this.#unit?.stop()
    // A caller of this method itself, and not of a workspace, finds it so too.
    this.status = 'stopped'
  }

  async destroy(): Promise<void> {
    if (!this.#given)
      await this.#unit?.destroy().catch((error: unknown) => {
        if (!isBerthError(error, 'not_found')) throw error
      })
    this.#unit = undefined
    this.status = 'destroyed'
  }

  async writeFiles(files: SandboxFileInput[], options: WriteFilesOptions = {}): Promise<void> {
    await this.ensureRunning()
    for (const { path, content, mode } of files) {
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
      const at = absolutePath(path, this.workingDirectory ?? '/')
      await this.unit.files.writeStream(at, bytes, { mode, signal: options.abortSignal })
    }
  }

  getInstructions(): string {
    const where = this.workingDirectory === undefined ? '' : ` Commands start in ${this.workingDirectory}.`
    return `A Linux container with a disk of its own. Commands run by sh -c as root.${where}`
  }

  getInfo(): SandboxInfo {
    const { id, name, provider, status } = this
    const { createdAt, image } = this.#unit?.info ?? {}
    return { id, name, provider, status, createdAt: new Date(createdAt ?? Date.now()), metadata: { image } }
  }
}
