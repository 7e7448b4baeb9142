// A folder of a unit as the filesystem of a workspace.

import {
  DirectoryNotEmptyError,
  DirectoryNotFoundError,
  FileExistsError,
  FileNotFoundError,
} from '@mastra/core/workspace'
import { IsDirectoryError, MastraFilesystem, NotDirectoryError, StaleFileError } from '@mastra/core/workspace'
import type { CopyOptions, FileContent, FileEntry, FileStat, ListOptions } from '@mastra/core/workspace'
import type { ProviderStatus, ReadOptions, RemoveOptions, WriteOptions } from '@mastra/core/workspace'
import type { FileFacts } from '../contract.ts'
import type { Unit } from '../unit.ts'
import { absolutePath, factsBehindLinks, orNull } from './paths.ts'

export type UnitFilesystemOptions = {
  /** The folder that is its root: no path leads above it, links in the unit apart. Default: all of the unit's files. */
  root?: string
}

type ReadContent = Awaited<ReturnType<MastraFilesystem['readFile']>>
type Bytes = Exclude<ReadContent, string>

/** Node's, whose types a program of the SDK need not have. */
const { Buffer: buffers } = globalThis as unknown as {
  Buffer: { from: (bytes: ArrayBuffer | Uint8Array) => Bytes }
}

/** For `filesystem` of a Workspace, of a unit or of a `UnitSandbox`, which is started when a file is first asked for. */
export class UnitFilesystem extends MastraFilesystem {
  readonly id: string
  readonly name = 'UnitFilesystem'
  readonly provider = 'berth'
  readonly basePath: string
  status: ProviderStatus = 'pending'
  readonly #of: Unit | { readonly unit: Unit; ensureRunning(): Promise<void> }

  constructor(
    of: Unit | { readonly id: string; readonly unit: Unit; ensureRunning(): Promise<void> },
    { root = '/' }: UnitFilesystemOptions = {},
  ) {
    super({ name: 'UnitFilesystem' })
    this.#of = of
    this.id = `${of.id}:${root}`
    this.basePath = absolutePath('', root)
  }

  /** Started here and not by `init`: a workspace initializes its parts at once. */
  async #unit(): Promise<Unit> {
    if (!('ensureRunning' in this.#of)) return this.#of
    await this.#of.ensureRunning()
    return this.#of.unit
  }

  async init(): Promise<void> {}
  async destroy(): Promise<void> {}

  resolveAbsolutePath(path: string): string {
    return absolutePath(`.${absolutePath(path, '/')}`, this.basePath)
  }

  async #facts(path: string): Promise<FileFacts | null> {
    return await factsBehindLinks(await this.#unit(), this.resolveAbsolutePath(path))
  }

  /** Bytes, or text where an encoding is named. */
  override async readFile(path: string, options: ReadOptions = {}): Promise<ReadContent> {
    const facts = await this.#facts(path)
    if (facts === null) throw new FileNotFoundError(path)
    if (facts.type === 'directory') throw new IsDirectoryError(path)
    const stream = await (await this.#unit()).files.readStream(facts.path)
    const bytes = buffers.from(await new Response(stream).arrayBuffer())
    return options.encoding === undefined ? bytes : bytes.toString(options.encoding)
  }

  async writeFile(path: string, content: FileContent, options: WriteOptions = {}): Promise<void> {
    const { overwrite = true, recursive = true, expectedMtime } = options
    const facts = await this.#facts(path)
    if (facts?.type === 'directory') throw new IsDirectoryError(path)
    if (facts !== null && !overwrite) throw new FileExistsError(path)
    if (facts !== null && expectedMtime !== undefined) {
      const isNow = new Date(facts.modifiedAt)
      if (isNow.getTime() !== expectedMtime.getTime()) throw new StaleFileError(path, expectedMtime, isNow)
    }
    const folder = path.replace(/\/[^/]*$/, '')
    if (!recursive && (await this.#facts(folder)) === null) throw new DirectoryNotFoundError(folder)
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
    await (await this.#unit()).files.writeStream(this.resolveAbsolutePath(path), bytes)
  }

  async appendFile(path: string, content: FileContent): Promise<void> {
    const before = (await this.exists(path)) ? ((await this.readFile(path)) as Uint8Array) : new Uint8Array()
    const more: Uint8Array = typeof content === 'string' ? new TextEncoder().encode(content) : content
    const all = new Uint8Array(before.length + more.length)
    all.set(before)
    all.set(more, before.length)
    await this.writeFile(path, all)
  }

  async deleteFile(path: string, { force = false }: RemoveOptions = {}): Promise<void> {
    const unit = await this.#unit()
    const at = this.resolveAbsolutePath(path)
    const facts = await orNull(unit.files.facts(at))
    if (facts?.type === 'directory') throw new IsDirectoryError(path)
    if (facts === null && !force) throw new FileNotFoundError(path)
    if (facts !== null) await orNull(unit.files.delete(at))
  }

  async copyFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    const facts = await this.#checkTransfer(src, dest, options)
    if (facts.type === 'directory' && !options.recursive) throw new IsDirectoryError(src)
    const [from, to] = [this.resolveAbsolutePath(src), this.resolveAbsolutePath(dest)]
    const unit = await this.#unit()
    await unit.files.makeDirectory(absolutePath('..', to))
    await unit.exec(['cp', '-R', '-T', '--', from, to], { check: true })
  }

  async moveFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    await this.#checkTransfer(src, dest, options)
    await (await this.#unit()).files.move(this.resolveAbsolutePath(src), this.resolveAbsolutePath(dest))
  }

  async #checkTransfer(src: string, dest: string, { overwrite = true }: CopyOptions): Promise<FileFacts> {
    const [facts, there] = [await this.#facts(src), await this.#facts(dest)]
    if (facts === null) throw new FileNotFoundError(src)
    if (there !== null && !overwrite) throw new FileExistsError(dest)
    return facts
  }

  async mkdir(path: string, { recursive = true }: { recursive?: boolean } = {}): Promise<void> {
    const facts = await this.#facts(path)
    if (facts !== null && (facts.type !== 'directory' || !recursive)) throw new FileExistsError(path)
    const above = absolutePath('..', absolutePath(path, '/'))
    if (!recursive && (await this.#facts(above)) === null) throw new DirectoryNotFoundError(above)
    await (await this.#unit()).files.makeDirectory(this.resolveAbsolutePath(path))
  }

  async rmdir(path: string, { recursive = false, force = false }: RemoveOptions = {}): Promise<void> {
    const facts = await this.#facts(path)
    if (facts === null && force) return
    if (facts === null) throw new DirectoryNotFoundError(path)
    if (facts.type !== 'directory') throw new NotDirectoryError(path)
    const unit = await this.#unit()
    if (!recursive && (await unit.files.list(facts.path).all()).length > 0)
      throw new DirectoryNotEmptyError(path)
    await unit.files.delete(facts.path, { recursive })
  }

  async readdir(path: string, options: ListOptions = {}): Promise<FileEntry[]> {
    const { recursive = false, maxDepth = Number.POSITIVE_INFINITY, extension } = options
    const facts = await this.#facts(path)
    if (facts === null) throw new DirectoryNotFoundError(path)
    if (facts.type !== 'directory') throw new NotDirectoryError(path)
    const unit = await this.#unit()
    const found: FileEntry[] = []
    const add = async (folder: string, prefix: string, depth: number): Promise<void> => {
      for (const { name, type, bytes } of await unit.files.list(folder).all()) {
        const kind = type === 'directory' ? ('directory' as const) : ('file' as const)
        const entry = { name: prefix + name, type: kind, size: bytes }
        found.push(type === 'link' ? { ...entry, isSymlink: true } : entry)
        if (recursive && type === 'directory' && depth < maxDepth)
          await add(absolutePath(name, folder), `${prefix}${name}/`, depth + 1)
      }
    }
    await add(facts.path, '', 1)
    const ends = extension === undefined ? [''] : [extension].flat()
    return found.filter(
      ({ name, type }) => type === 'directory' || ends.some((end: string) => name.endsWith(end)),
    )
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#facts(path)) !== null
  }

  /** The time of a change stands for that of the creation, which a unit does not tell. */
  async stat(path: string): Promise<FileStat> {
    const facts = await this.#facts(path)
    if (facts === null) throw new FileNotFoundError(path)
    const modifiedAt = new Date(facts.modifiedAt)
    const type = facts.type === 'directory' ? 'directory' : 'file'
    const name =
      path
        .split('/')
        .filter((part) => part !== '')
        .at(-1) ?? ''
    return {
      name,
      path,
      type,
      size: type === 'directory' ? 0 : facts.bytes,
      createdAt: modifiedAt,
      modifiedAt,
    }
  }
}
