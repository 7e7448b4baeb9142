// The interface between the rules and the runtimes of machines (design 3). A *machine* is the engine's side of a
// unit. Nothing here may assume one host, a local path or a fixed address: other engines run machines elsewhere.
//
// Every run of a machine has a *generation*, which the caller increments at each start. An effect for an older
// generation does nothing, so a late caller can never harm a newer run. All operations are idempotent. Failures throw
// EngineError (errors.ts).

import type { MachineEgress, OnSeen } from './egress.ts'
import type { FileOperations } from './files.ts'
import type { Capabilities, Capacity, RecoverReport } from './host.ts'
import type { LogLine, LogQuery } from './log.ts'
import type { MachineRef } from './machine-ref.ts'
import type { MachineMetrics } from './metrics.ts'
import type { ExecExit, ExecOutput, ExecRequest, TerminalRequest } from './exec.ts'
import type { OnPulls } from './pull-progress.ts'
import type {
  EndedProcess,
  MachineProcess,
  MachineTask,
  ProcessOutput,
  ProcessRequest,
  ProcessSignal,
} from './process.ts'
import type { Renewal, RenewalOutcome } from './renewal.ts'
import type { TerminalInput } from './terminal.ts'
import type {
  Image,
  PullWaiter,
  MachineSpec,
  RunSpec,
  Started,
  ForkSpec,
  Forked,
  MachineStatus,
} from './machine.ts'

export type {
  Directory,
  DirectoryEntry,
  EntryFacts,
  FileChange,
  FileFacts,
  FileOwner,
  OnChanges,
  ReadFile,
  WrittenFile,
} from './files.ts'
export type { LogLine, LogQuery } from './log.ts'
export * from './host.ts'
export * from './machine.ts'
export type { MachineRef } from './machine-ref.ts'
export type { PullProgress, PullStage } from './pull-progress.ts'

export interface Engine extends FileOperations {
  capabilities(): Promise<Capabilities>

  /** Returns the current values: ask before a start. */
  capacity(): Promise<Capacity>

  /**
   * Tells the host what came of its last request for certificates, if anything, and returns what is to be known of those
   * that it has. Null: it is not a host that has joined.
   */
  renew(outcome: RenewalOutcome | null): Promise<Renewal | null>

  /**
   * Makes an image present. `reference` is canonical (contract/image-reference.ts). Concurrent pulls of one reference
   * are one pull, which ends when no caller waits for it any more: `destroy` of the waiter's id ends its wait. Throws
   * `image_…`, `host_full` if too many pulls of the team wait, `unknown_machine` once the waiter was destroyed.
   */
  pull(reference: string, waiter?: PullWaiter): Promise<Image>

  /** Creates disk, volume and address; starts nothing. */
  create(machine: MachineSpec): Promise<MachineStatus>

  /**
   * Starts a run; resolves once its first process has been executed. An older run that still exists is killed first.
   * Throws `run_lost` for a generation that a failed start used up, or a run that the host lost: use a newer one.
   *
   * If memory was kept for the machine (`suspend`, `fork`) and the command, environment and boot files are those of
   * the run before, the run resumes with it. Memory is used once, and if anything is wrong with it the run starts
   * without it.
   */
  start(ref: MachineRef, run: RunSpec): Promise<Started>

  /**
   * Sends SIGTERM, and after `graceMs` SIGKILL to all processes. A frozen run is thawed first. Keeps disk, volume and
   * address, but not the memory.
   */
  stop(ref: MachineRef, graceMs: number): Promise<void>

  /**
   * Ends a run, frozen or not, and keeps its memory for the machine's next start if the class supports that. Returns
   * whether the memory was kept; if not, the run is ended as by `stop`. A run that has ended has no memory to keep.
   */
  suspend(ref: MachineRef, graceMs: number): Promise<boolean>

  /**
   * Creates machines as copies of others, all or none. Disks and volumes are of one instant: running sources are
   * paused for less than half a second, and keep their connections; others are not woken. If the class supports it,
   * and a copy is to start as its source's run did (`run`), its memory of that instant is copied too, if it is small
   * enough. Returns a machine that exists already as it is. Throws `unknown_machine` for a missing source,
   * `host_full`.
   */
  fork(forks: ForkSpec[]): Promise<Forked[]>

  /**
   * Pauses all processes of a run: they get no CPU, and keep memory and connections. The run stays `running`;
   * operations that need a process in it (exec, files) throw `frozen`. A command in progress is paused too, but its
   * deadline goes on. Throws `not_running`, and `timeout` if it cannot be frozen; it then keeps running.
   */
  freeze(ref: MachineRef): Promise<void>

  /** Resumes a frozen run; succeeds if it is not frozen. Throws `not_running` if it has ended. */
  thaw(ref: MachineRef): Promise<void>

  /** Removes everything of the machine, in any state; unknown ids succeed. */
  destroy(id: string): Promise<void>

  /**
   * For a machine that the database does not know: ends its run, and keeps its disk and other data for a while, although
   * it no longer counts as a machine. `recover` restores it if it is wanted after all. Unknown ids succeed.
   */
  putAside(id: string): Promise<void>

  /** Returns what a machine uses, in any state, without a process in it. */
  metrics(id: string): Promise<MachineMetrics>

  /** Returns every machine of this engine. */
  list(): Promise<MachineStatus[]>

  /**
   * Runs a command in a running machine. `onOutput` gets output as it is printed and is awaited, so a slow reader
   * slows the command down; aborting kills the command. A command that cannot be executed ends with 127 (not found)
   * or 126 and an error on stderr, as in a shell. A command killed because its machine is stopped, suspended or
   * destroyed throws `run_ended`, after all its output; one that dies because the machine's own process ends has exit
   * code 137. Throws `unknown_user`.
   */
  exec(
    ref: MachineRef,
    request: ExecRequest,
    onOutput: (output: ExecOutput) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<ExecExit>

  /**
   * Runs a command as `exec` does, in a terminal of its own or on pipes, while its input comes. Bytes are taken no
   * faster than the command reads them, but for some that wait for it; what is no bytes does not wait behind them. In a
   * terminal everything is printed on `stdout`, INT and QUIT reach what runs in its foreground, and the command and its
   * descendants are hung up on when it ends. The end of `input` is like `eof`. Aborting kills the command. `onBegun` is told
   * the pid that the command has in the machine, before its first output.
   */
  terminal(
    ref: MachineRef,
    request: TerminalRequest,
    input: AsyncIterable<TerminalInput>,
    onOutput: (output: ExecOutput) => void | Promise<void>,
    signal: AbortSignal,
    onBegun?: (pid: number) => void,
  ): Promise<ExecExit>

  /**
   * Sets what a machine may reach, in any state of it, from the next packet on. Resolves once that is in force and
   * connections that are no longer allowed are cut. Null: no restriction. Kept over runs, freezes, and restarts of
   * each process and of the engine. For an older generation it does nothing: a newer start has stated its own rules.
   */
  restrict(ref: MachineRef, egress: MachineEgress | null): Promise<void>

  /**
   * Starts a process in a running machine and resolves once it runs. It runs on without its caller and without this
   * engine, and is paused and resumed with its machine. A command that cannot be executed ends as in `exec`. Each
   * machine keeps `limits.processes`, each network group `limits.teamProcesses`: those that ended first are deleted
   * first. Throws `process_limit` if all of them run, `process_refused` if the machine cannot start more.
   */
  startProcess(ref: MachineRef, request: ProcessRequest): Promise<MachineProcess>

  /**
   * Returns the processes, oldest first, in any state of the machine, including those of earlier runs. A fork has
   * those that ran in its source, as `lost`.
   */
  processes(id: string): Promise<MachineProcess[]>

  /**
   * Returns the output of a process after an offset, oldest first: up to `maxBytes`, or less if there are many
   * pieces; empty if there is none yet. Throws `unknown_process`.
   */
  processOutput(id: string, process: string, after: number, maxBytes: number): Promise<ProcessOutput[]>

  /** Yields output after an offset until the process has ended or the signal aborts. */
  followProcess(id: string, process: string, after: number, signal: AbortSignal): AsyncIterable<ProcessOutput>

  /**
   * Sends a signal to its process group; KILL also reaches descendants in other groups. Throws `unknown_process`,
   * `process_ended`, and the errors of `exec` if the machine does not run.
   */
  signalProcess(ref: MachineRef, process: string, signal: ProcessSignal): Promise<void>

  /**
   * Writes to the standard input of a process that takes input, as far as it is read within some seconds, and then ends it if
   * `end`. Returns how many bytes were written: if not all, the input was not ended. Concurrent calls write one after the
   * other. Throws `unknown_process`, `process_ended`, `input_ended`, and the errors of `exec` if the machine does not run.
   */
  writeProcess(ref: MachineRef, process: string, data: Buffer, end: boolean): Promise<number>

  /** Stores until when the process keeps its unit awake, in any state of the machine. Throws `unknown_process`, `process_ended`. */
  keepProcessAwake(id: string, process: string, until: Date): Promise<void>

  /**
   * Kills a process if it runs, and deletes it with its output. Unknown ones succeed. Throws `frozen` if the machine
   * is frozen.
   */
  forgetProcess(id: string, process: string): Promise<void>

  /**
   * Returns what runs in a running machine, by pid, without what the engine itself runs in it; at most
   * `limits.processTable`, and whether there are more.
   */
  tasks(ref: MachineRef): Promise<{ tasks: MachineTask[]; truncated: boolean }>

  /** Sends a signal to one process, also if the engine did not start it. Throws `unknown_process`. */
  signalTask(ref: MachineRef, pid: number, signal: ProcessSignal): Promise<void>

  /**
   * Returns a port at the machine's address that leads to one at which something listens for the machine itself alone, in
   * IPv4 or IPv6, until the run ends; null if nothing does.
   */
  openLoopback(ref: MachineRef, port: number): Promise<number | null>

  /** Returns stored lines of all runs of the machine or of one, oldest first: up to the limit, or fewer if long. */
  logs(id: string, query: LogQuery): Promise<LogLine[]>

  /** Yields lines after `after` (null: from the oldest stored) until the signal aborts or the run ends. */
  followLogs(id: string, after: string | null, signal: AbortSignal): AsyncIterable<LogLine>

  /** Calls back at least once for every run that ends; when subscribing also for those that ended before. */
  watchExits(onExit: (status: MachineStatus) => void, signal: AbortSignal): Promise<void>

  /**
   * Calls `onEnd` for each background process that ends or is lost from now on. Resolves when the signal aborts. What ends while
   * nobody watches is told to nobody: `processes` has it.
   */
  watchProcesses(onEnd: (ended: EndedProcess) => void, signal: AbortSignal): Promise<void>

  /**
   * Calls back a few times a second with the machines that others of their group have sent packets to since the last
   * time, whether they run or not; a new watcher also gets those of the last minute. Packets from machines that are
   * frozen or being stopped do not count, since a sleeping unit must not wake others; nor do TCP keepalives.
   */
  watchTraffic(onTraffic: (ids: string[]) => void, signal: AbortSignal): Promise<void>

  /**
   * Calls back with what restricted machines reached and were refused, at most once a second. Each line is told once,
   * to the newest watcher, and is lost if that one fails; counts that no watcher has taken yet are added up.
   */
  watchEgress(onSeen: OnSeen, signal: AbortSignal): Promise<void>

  /** Calls back with the pulls that machines wait for: as one begins a stage, then each second in which they change. */
  watchPulls(onPulls: OnPulls, signal: AbortSignal): Promise<void>

  /**
   * Keeps the named machines, including those put aside, and removes every other one of this instance with all
   * leftovers. `removed` counts the machines, and leftovers of others since the last call.
   */
  recover(wanted: string[]): Promise<RecoverReport>
}
