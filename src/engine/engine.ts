// The one interface between the rules and whatever runs machines (design 3). A *machine* is the engine's
// side of a unit. Nothing here may assume one host, a local path or a fixed address: a third engine will
// run machines on other hosts.
//
// Every run of a machine has a *generation*, counted up by the caller at each start. An effect of an older
// generation is a no-op, so a late caller can never hurt a newer run. All operations are idempotent:
// repeating one that has happened succeeds. Failures throw EngineError (errors.ts).

export const isolationClasses = ['gvisor', 'runc'] as const
export type IsolationClass = (typeof isolationClasses)[number]

export type ClassCapability = {
  class: IsolationClass
  available: boolean
  /** Runtime and version where available, else what to install or change. */
  detail: string
  /** Whether what is in a machine's memory can outlive its run, as shown by a probe that did it. */
  memory: { available: boolean; detail: string }
}

export type Capabilities = {
  classes: ClassCapability[]
  /** The class of machines that ask for none, and why it was chosen. */
  defaultClass: IsolationClass
  defaultReason: string
}

export type ImageConfig = {
  env: string[]
  entrypoint: string[]
  cmd: string[]
  workingDir: string
  user: string
  exposedPorts: number[]
}

/** An image as it lies here after a pull: `digest` names it from then on. */
export type Image = { reference: string; digest: string; config: ImageConfig }

/** The machine that is to be made of an image, and the team whose share of the pulls it takes. */
export type PullWaiter = { id: string; teamId: string; networkGroup: number }

export type MachineSize = { cpus: number; memoryMb: number; pids: number; diskGb: number }

/** What a machine keeps for its whole life: made by create, gone with destroy. */
export type MachineSpec = {
  id: string
  imageDigest: string
  isolation: IsolationClass
  size: MachineSize
  volume: { mount: string; gb: number } | null
  /** Machines of one network group may talk to each other, and to no other group. One group a team. */
  networkGroup: number
}

/** What a machine gets anew at each start. */
export type RunSpec = {
  hostname: string
  /** Null: the image's own. An entrypoint of the caller's drops the image's cmd, as with Docker. */
  entrypoint: string[] | null
  cmd: string[] | null
  /** Over the image's environment. Values can be secrets: they reach the machine by its configuration only. */
  env: Record<string, string>
  /** Boot files, written before the process starts. Path absolute within the machine. */
  files: { path: string; content: Buffer }[]
  /** Search domain of the resolver inside: siblings answer to their bare name in it. */
  searchDomain: string
}

export type MachineRef = { id: string; generation: number }

/** How a run began: with what an earlier one had in memory, or anew. */
export type Started = { resumed: boolean }

/** A machine to be made as a copy of another one: of its image, class, size, disk and volume. */
export type ForkSpec = {
  id: string
  /** `generation`: the newest run of the source the caller knows of. */
  source: MachineRef
  networkGroup: number
  /** What its first run will be started with. Null: it will not be started now, and needs no memory. */
  run: RunSpec | null
}

/** `copied`: what it has of its source. Memory is promised by the start that uses it, not before (`Started`). */
export type Forked = { status: MachineStatus; copied: 'memory' | 'disk' }

/**
 * How a run ended. `code` is 128 + n for signal n (spec 2.1). `byHost`: it was killed from outside of it, and nobody here
 * asked for that; false also where the host cannot tell.
 */
export type Exit = { code: number; oomKilled: boolean; byHost: boolean; at: Date }

export type MachineStatus = {
  id: string
  generation: number
  /** `lost`: it was running and is not, and nobody can say how it ended (the host went down). */
  state: 'created' | 'running' | 'exited' | 'lost'
  /** It runs, and stands still: see `freeze`. */
  frozen: boolean
  exit: Exit | null
  address: string
}

export type ExecRequest = {
  argv: string[]
  /** Over the environment of the machine's first process. */
  env?: Record<string, string> | undefined
  /** Left out or null: where the machine's first process began. */
  cwd?: string | null | undefined
  /** Null closes standard input at once: programs that wait for it end instead of hanging. */
  stdin: Buffer | null
  timeoutMs: number
}

export type ExecOutput = { stream: 'stdout' | 'stderr'; data: Buffer }
export type ExecExit = { exitCode: number; timedOut: boolean }

/** A command that outlives the call that begins it. */
export type ProcessRequest = {
  /** Of the caller's: asked for again under the same id, it is the same process. */
  id: string
  argv: string[]
  /** The command as it is told to others: without passwords. What is kept of it beyond its run. */
  shown: string[]
  /** Over the environment of the machine's first process. */
  env: Record<string, string>
  /** Null: where the machine's first process began. */
  cwd: string | null
  /** What it finds on standard input, which then ends. Null: nothing. */
  stdin: Buffer | null
  /** Kept for the caller, who decides what it means. */
  keepsAwake: boolean
}

/**
 * `exited`: with `exitCode`, which is 128 + n for signal n; it has 137 when its run was stopped under it, too. `lost`: its
 * run is over (suspended, begun anew, gone with the host), or it ended while nobody saw how.
 */
export type MachineProcess = Pick<ProcessRequest, 'id' | 'shown' | 'cwd' | 'keepsAwake'> & {
  state: 'running' | 'exited' | 'lost'
  exitCode: number | null
  /** Within the machine: its process group has the same. Null where it was never learnt. */
  pid: number | null
  startedAt: Date
  endedAt: Date | null
  /** Bytes of both streams, in the order they came: those from `from` to `to` are kept. */
  output: { from: number; to: number }
}

export const processSignals = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'STOP', 'CONT'] as const
export type ProcessSignal = (typeof processSignals)[number]

/** `end`: the offset behind it. What lies between the end of one piece and the beginning of the next is not kept. */
export type ProcessOutput = ExecOutput & { end: number }

/** `continues`: it was too long, and goes on in the next line of its stream. */
export type LogLine = {
  at: Date
  stream: 'stdout' | 'stderr'
  text: string
  continues?: true | undefined
  cursor: string
}

export type LogQuery = {
  /** Lines after this cursor, or from this time on. Neither: the newest `limit` lines. */
  after: string | null
  since: Date | null
  limit: number
}

/** `bytes` of a file's content. Names are as text: what is no UTF-8 has U+FFFD in it, and names nothing. */
export type DirectoryEntry = {
  name: string
  type: 'file' | 'directory' | 'link' | 'other'
  bytes: number
  modifiedAt: Date
}
/** By name. `truncated`: there are more than could be listed. */
export type Directory = { entries: DirectoryEntry[]; truncated: boolean }

export type WrittenFile = { bytes: number; sha256: string; verified: boolean }

/** What the machines of this engine share. */
export type Capacity = {
  cpus: number
  memoryMb: number
  availableMemoryMb: number
  /** What the machines of one network group may fill of the disks together. */
  teamDiskGb: number
}

export type RecoverReport = { adopted: number; removed: number; lost: number }

export interface Engine {
  capabilities(): Promise<Capabilities>

  /** As it is now: ask before a start. */
  capacity(): Promise<Capacity>

  /**
   * Makes an image present. `reference` is canonical (contract/image-reference.ts). Concurrent pulls of one reference are
   * one pull, which ends when nobody waits for it any more: `destroy` of the waiter's id ends its wait. Throws
   * EngineError `image_…`, `host_full` where too many pulls of the team wait, `unknown_machine` once it was destroyed.
   */
  pull(reference: string, waiter?: PullWaiter): Promise<Image>

  /** Disk, volume and address; nothing runs. */
  create(machine: MachineSpec): Promise<MachineStatus>

  /**
   * Starts a run; answers once its first process has been executed. An older run that is still there is
   * killed first. Throws `run_lost` for a generation that was used up by a start that came to nothing, or by
   * a run the host lost: it will never run, ask with a newer one.
   *
   * Where memory was kept for the machine (`suspend`, `fork`) the run goes on from there, if it is to begin as the
   * one before it did: with the same command, environment and boot files. Memory is used once, and on any doubt
   * about it the run begins anew, as if there were none.
   */
  start(ref: MachineRef, run: RunSpec): Promise<Started>

  /** SIGTERM, after `graceMs` SIGKILL to all of it. A frozen run is thawed for it. Keeps disk, volume and address, and nothing of its memory. */
  stop(ref: MachineRef, graceMs: number): Promise<void>

  /**
   * Ends a run, frozen or not, and keeps what it has in memory for the machine's next start, where its class can.
   * Answers whether it does; where it does not, the run is ended as `stop` ends it. A run that has ended has
   * nothing to keep.
   */
  suspend(ref: MachineRef, graceMs: number): Promise<boolean>

  /**
   * Makes machines as copies of others, all of them or none. Disks and volumes are of one instant, whatever runs on
   * them: sources that run stand still for it, for less than half a second, and go on with their connections; what
   * does not run is not woken. Where the class can, and a copy is to begin as its source's run did (`run`), its
   * memory of that instant is copied too, if it is small enough for that time. A machine that exists already is
   * answered as it is. Throws `unknown_machine` for a source that is not there, `host_full`.
   */
  fork(forks: ForkSpec[]): Promise<Forked[]>

  /**
   * Stops every process of a run where it stands: no CPU from then on, memory and connections kept. The run
   * stays `running`; what needs a process of it (exec, files) throws `frozen`. A command under way stands still
   * with it, but its deadline does not. Throws `not_running`, and `timeout` when it cannot be frozen, which
   * leaves it as it was.
   */
  freeze(ref: MachineRef): Promise<void>

  /** Lets a frozen run go on; succeeds where it is not frozen. Throws `not_running` when it has ended. */
  thaw(ref: MachineRef): Promise<void>

  /** Removes everything of the machine, whatever its state; unknown ids succeed. */
  destroy(id: string): Promise<void>

  /**
   * For a machine that nobody knows: ends its run, and keeps its disk and all else of it for a while, without its being
   * a machine any more. `recover` makes it one again where it is wanted after all. Unknown ids succeed.
   */
  putAside(id: string): Promise<void>

  /** Every machine here. */
  list(): Promise<MachineStatus[]>

  /**
   * Runs a command in a running machine. `onOutput` gets output as it comes and is waited for, which is
   * how a slow reader holds the command back; aborting kills the command. A command that cannot be
   * executed ends with 127 (not found) or 126 and says why on stderr, as a shell does. One that is killed because
   * its machine is stopped, suspended or destroyed throws `run_ended`, after all output it had; one that dies of its
   * machine's own end has exit code 137.
   */
  exec(
    ref: MachineRef,
    request: ExecRequest,
    onOutput: (output: ExecOutput) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<ExecExit>

  /**
   * Begins a process in a running machine and answers once it runs; it goes on without its caller and without this
   * engine, and stands still and goes on with its machine. A command that cannot be executed ends as with `exec`. Of
   * each machine `limits.processes` are kept, of each network group `limits.teamProcesses`: those longest over go first.
   * Throws `process_limit` where all of them run, `process_refused` where the machine can begin no more of them.
   */
  startProcess(ref: MachineRef, request: ProcessRequest): Promise<MachineProcess>

  /** Oldest first, whatever the machine's state: also those of earlier runs. A fork has those that ran in its source, as `lost`. */
  processes(id: string): Promise<MachineProcess[]>

  /**
   * What a process has printed after an offset, oldest first: up to `maxBytes`, or fewer where there are many pieces.
   * Nothing where nothing is there yet. Throws `unknown_process`.
   */
  processOutput(id: string, process: string, after: number, maxBytes: number): Promise<ProcessOutput[]>

  /** Output after an offset as it comes, until the process has ended or the signal aborts. */
  followProcess(id: string, process: string, after: number, signal: AbortSignal): AsyncIterable<ProcessOutput>

  /**
   * Gives its process group a signal; KILL goes to all that came of it, in groups of their own too. Throws
   * `unknown_process`, `process_ended`, and what `exec` throws where the machine does not run.
   */
  signalProcess(ref: MachineRef, process: string, signal: ProcessSignal): Promise<void>

  /** Forgets a process and its output, which is killed if it runs. Unknown ones succeed. Throws `frozen` where it stands still. */
  forgetProcess(id: string, process: string): Promise<void>

  /** Writes within a running machine: temporary name, fsync, rename, then hashes what the machine reads back. */
  writeFile(ref: MachineRef, path: string, content: Buffer): Promise<WrittenFile>

  /** Throws EngineError `file_not_found`, `not_a_file` or `file_too_large` (over `maxBytes`). */
  readFile(ref: MachineRef, path: string, maxBytes: number): Promise<Buffer>

  /** What lies in a directory of a running machine: `limits.directoryEntries` at most. Throws `file_not_found`, `not_a_directory`. */
  listDirectory(ref: MachineRef, path: string): Promise<Directory>
  /**
   * Removes what has that name in a running machine: a link, and not what it leads to; a directory that holds something
   * only with `recursive`, else `directory_not_empty`. Throws `file_not_found`, `file_refused`, and `timeout` with part of it gone.
   */
  removeFile(ref: MachineRef, path: string, recursive: boolean): Promise<void>

  /**
   * A directory of a running machine, or one file, in the format of tar; names begin with `./`. `onData` is waited for; it
   * may have had part of it before this throws `file_not_found`, `not_a_file` (a device, or what the kernel shows),
   * `file_too_large` (over `limits.archiveBytes`), `file_refused` or `timeout`. Aborting ends it. What is in it is the
   * machine's word alone.
   */
  readArchive(
    ref: MachineRef,
    path: string,
    onData: (data: Buffer) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void>
  /**
   * Unpacks an archive in the format of tar into a directory of a running machine, which is made if it is not there. No
   * entry leads out of the directory; files are root's. Throws `not_a_directory`, `not_an_archive`, `disk_full`,
   * `file_refused`, `timeout`: what came before that stays. Rejects when the pieces do.
   */
  writeArchive(
    ref: MachineRef,
    path: string,
    pieces: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): Promise<void>

  /** Stored lines of all runs of the machine, oldest first: up to the limit, or fewer where they are long. */
  logs(id: string, query: LogQuery): Promise<LogLine[]>

  /** Lines after `after` (null: from the oldest kept) as they come, until the signal aborts or the run ends. */
  followLogs(id: string, after: string | null, signal: AbortSignal): AsyncIterable<LogLine>

  /** Calls back for every run that ends, at least once each; on subscribing also for those ended before. */
  watchExits(onExit: (status: MachineStatus) => void, signal: AbortSignal): Promise<void>

  /**
   * Calls back, a few times a second, with the machines that others of their group have sent packets to
   * since the last time, whether they run or not; a new watcher also with those of up to a minute before.
   * Packets of machines that are frozen or being stopped do not count: whoever sleeps must wake nobody. Nor
   * do segments that only keep a connection alive.
   */
  watchTraffic(onTraffic: (ids: string[]) => void, signal: AbortSignal): Promise<void>

  /**
   * Keeps the machines named, those put aside included, removes every other one of this instance and whatever was left
   * by any. `removed` counts the machines, and what was left of others since the last call.
   */
  recover(wanted: string[]): Promise<RecoverReport>
}
