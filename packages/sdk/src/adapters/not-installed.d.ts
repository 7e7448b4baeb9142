// Frameworks that are too large to be installed for every build of the SDK: what the adapters use of their types. The tests of
// these adapters check their sources with the frameworks' own types, without this file.

declare module 'deepagents' {
  export class BaseSandbox {}
  export type ExecuteResponse = { output: string; exitCode: number | null; truncated: boolean }
  type Reason = 'file_not_found' | 'permission_denied' | 'is_directory' | 'invalid_path'
  export type FileUploadResponse = { path: string; error: Reason | null }
  export type FileDownloadResponse = { path: string; content: Uint8Array | null; error: Reason | null }
}

declare module '@mastra/core/workspace' {
  export type ProviderStatus = 'pending' | 'running' | 'stopped' | 'destroyed' | 'error'
  export type MastraSandboxOptions = { workingDirectory?: string }
  export type SandboxStartResult = { outcome: 'created' | 'connected' }
  export type SandboxNetworking = { getPortUrl(port: number): Promise<string | null> }
  export type SandboxFileInput = { path: string; content: string | Uint8Array; mode?: number }
  export type WriteFilesOptions = { abortSignal?: AbortSignal }
  export type SandboxInfo = {
    id: string
    name: string
    provider: string
    status: ProviderStatus
    createdAt: Date
    metadata?: Record<string, unknown>
  }
  export class MastraSandbox {
    constructor(options: { name: string; processes: SandboxProcessManager } & MastraSandboxOptions)
    readonly workingDirectory: string | undefined
    getEnv(): Record<string, string | undefined>
    ensureRunning(): Promise<void>
  }

  export type SpawnProcessOptions = {
    cwd?: string
    env?: Record<string, string | undefined>
    timeout?: number
    abortSignal?: AbortSignal
    stdinMode?: 'pipe' | 'ignore'
  }
  export type ProcessInfo = { pid: string; command?: string; running: boolean; exitCode?: number }
  type Retained = {
    readonly stdoutTruncated: boolean
    readonly stderrTruncated: boolean
    readonly stdoutDroppedBytes: number
    readonly stderrDroppedBytes: number
  }
  export type CommandResult = Partial<Retained> & {
    success: boolean
    exitCode: number
    stdout: string
    stderr: string
    executionTimeMs: number
    timedOut?: boolean
    killed?: boolean
  }
  export class ProcessHandle implements Retained {
    readonly stdoutTruncated: boolean
    readonly stderrTruncated: boolean
    readonly stdoutDroppedBytes: number
    readonly stderrDroppedBytes: number
    constructor(options: SpawnProcessOptions)
    readonly pid: string
    command?: string
    readonly stdout: string
    readonly stderr: string
    emitStdout(text: string): void
    emitStderr(text: string): void
  }
  export class SandboxProcessManager {
    constructor(options: object)
    readonly sandbox: MastraSandbox
    readonly _tracked: Map<string, ProcessHandle>
  }

  export type FileContent = string | Uint8Array
  export type ReadOptions = { encoding?: string }
  export type WriteOptions = { recursive?: boolean; overwrite?: boolean; expectedMtime?: Date }
  export type ListOptions = { recursive?: boolean; extension?: string | string[]; maxDepth?: number }
  export type RemoveOptions = { recursive?: boolean; force?: boolean }
  export type CopyOptions = { overwrite?: boolean; recursive?: boolean }
  export type FileEntry = {
    name: string
    type: 'file' | 'directory'
    size?: number
    isSymlink?: boolean
  }
  export type FileStat = {
    name: string
    path: string
    type: 'file' | 'directory'
    size: number
    createdAt: Date
    modifiedAt: Date
  }
  export class MastraFilesystem {
    constructor(options: { name: string })
    readFile(path: string): Promise<string | (Uint8Array & { toString(encoding: string): string })>
  }
  export class FileNotFoundError extends Error {}
  export class FileExistsError extends Error {}
  export class IsDirectoryError extends Error {}
  export class NotDirectoryError extends Error {}
  export class DirectoryNotFoundError extends Error {}
  export class DirectoryNotEmptyError extends Error {}
  export class StaleFileError extends Error {
    constructor(path: string, expected: Date, actual: Date)
  }
}
