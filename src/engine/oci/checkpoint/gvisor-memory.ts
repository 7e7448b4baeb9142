// Saves the memory of gVisor machines. The sandbox saves itself, so its group must not be frozen: its kernel pauses what runs
// in it, and stays paused until the disk is copied too, or until it is killed. All of it goes over the control socket
// (runtime/control.ts), which also takes what the host has forgotten: a machine whose engine died in between goes on.
//
// A sandbox that is told to go on and does not stand ends in a panic: so `release` is only for one that is held.

import { createHash } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SAFE_PATH } from '../../../lib/process.ts'
import {
  type Answer,
  type Control,
  connectControl,
  executeMountingOver,
  executeOver,
  runsProbed,
  waitOver,
} from '../runtime/control.ts'
import { signalling } from '../exec/signal-in-gvisor.ts'
import { FORK_GENERATION, HELPER, type Process } from '../runtime/bundle.ts'
import { HELPER_DIR } from '../storage/mount-points.ts'
import { findingCapabilities } from '../runtime/capabilities.ts'
import type { Driver, Introduction, Limits, Memory, Standing } from '../runtime/driver.ts'

const ANSWER_TIMEOUT_MS = 10_000
/** A machine that goes on answers within milliseconds, unless its host is very busy. */
const HELD_AFTER_MS = 5000
/** What each command has in its environment (exec/command.ts), and the relay that leads it. */
const ANY_MARKER = 'BERTH_EXEC='

/** The files of an image, in the order in which the sandbox takes them. The pages are the large one. */
const IMAGE_FILES = ['checkpoint.img', 'pages_meta.img', 'pages.img']
const PAGES = 'pages.img'

/** Needs a driver whose sandboxes take commands directly. */
export function gvisorMemory(driver: Driver): Memory {
  const answers = (container: string, command: string[], signal: AbortSignal) =>
    endsWell(driver, container, command, { timeoutMs: ANSWER_TIMEOUT_MS, signal })
  return {
    madeWith: `${driver.class} ${driver.version}, ${flagsOf(driver)}, a processor with ${processorFeatures()}`,
    standing: standingOf(driver),
    // Measured: 0.1 s and 1.5 s per GB. The save is a pause.
    saving: { ms: 100, msPerGb: 1500, mostMs: 600, giveUpMs: 5000 },
    inConfig: (config) => config,
    save: (container, directory, limits) => save(driver, container, directory, limits),
    // The host name is that of the configuration, before anything runs.
    prepare: async (directory) => ({ directory, searchPath: SAFE_PATH }),
    answers,
    async endCommands(container, signal) {
      // The sandbox ends what it was told to execute, as it is restored, and not its children.
      if (!(await answers(container, signalling(ANY_MARKER, 'KILL'), signal)))
        throw new Error('what commands had left could not be ended')
    },
    introduce: (container, who, signal) => introduce(driver, container, who, signal),
    // The runtime says it to conmon, which reports it.
    complaint: async () => '',
  }
}

function standingOf(driver: Driver): Standing {
  return {
    hold: (container, thaw, signal) =>
      withControl(driver, container, async (control) => {
        // Sent first: then the sandbox reads it as soon as it runs.
        const paused = control.call('containerManager.Pause', {})
        thaw()
        expectDone(
          'a machine did not stand still',
          await inTime(paused, { timeoutMs: ANSWER_TIMEOUT_MS, signal }),
        )
      }),
    async release(container, isFrozen) {
      const control = await openControl(driver, container)
      const resumed = control.call('containerManager.Resume', {}).finally(control.close)
      if (isFrozen) return
      expectDone('a machine did not go on', await inTime(resumed, { timeoutMs: ANSWER_TIMEOUT_MS }))
    },
    isHeld: async (container) =>
      !(await endsWell(driver, container, [HELPER, 'true'], { timeoutMs: HELD_AFTER_MS })),
  }
}

/** Not through the page cache: what it holds is needed more by those that run, and a save beside heavy writes is quicker. */
async function save(
  driver: Driver,
  container: string,
  directory: string,
  limits: Limits & { ends: boolean },
): Promise<void> {
  const { O_CREAT, O_DIRECT, O_EXCL, O_RDWR } = constants
  const files: number[] = []
  try {
    for (const name of IMAGE_FILES) {
      const flags = O_CREAT | O_EXCL | O_RDWR | (name === PAGES ? O_DIRECT : 0)
      files.push(openSync(join(directory, name), flags, 0o600))
    }
    // One that goes on keeps its connections to others, and a restored one has none of them then. One that is to end ends.
    const Resume = !limits.ends
    const asked = { metadata: { compression: 'none' }, have_pages_file: true, Resume }
    await withControl(driver, container, async (control) => {
      const saved = control.call('containerManager.Checkpoint', asked, files)
      expectDone('a checkpoint failed', await inTime(saved, limits))
    })
  } finally {
    for (const fd of files) closeSync(fd)
  }
}

const WRITE = `
while [ $# -gt 0 ]; do
  ${HELPER} rm -f "$1"; printf %s "$2" > "$1" || exit 1; shift 2
done`

/**
 * Over the file that is there, whose content its kernel may know from before the copy, and which nobody may write. A copy of
 * such a copy has the one that is mounted already, on which none can be.
 */
const MOUNT = `
set -e; PATH=
if ${HELPER} grep -q " $2 tmpfs " /proc/mounts; then
  ${HELPER} mount -o remount,bind,rw "$2" "$2"; echo "$1" > "$2"; ${HELPER} mount -o remount,bind,ro "$2" "$2"; exit
fi
file=$(${HELPER} mktemp /dev/shm/XXXXXX); echo "$1" > "$file"; ${HELPER} chmod 444 "$file"
${HELPER} mount -o bind "$file" "$2"; ${HELPER} mount -o remount,bind,ro "$2" "$2"
${HELPER} rm "$file"`

async function introduce(
  driver: Driver,
  container: string,
  { files, forkGeneration }: Introduction,
  signal: AbortSignal,
): Promise<void> {
  const limits = { timeoutMs: ANSWER_TIMEOUT_MS, signal }
  const write = [HELPER, 'sh', '-c', WRITE, 'write', ...files.flat()]
  const mount = [
    HELPER,
    'sh',
    '-c',
    MOUNT,
    'mount',
    String(forkGeneration),
    `${HELPER_DIR}/${FORK_GENERATION}`,
  ]
  const done = await Promise.all([
    endsWell(driver, container, write, limits),
    endsWell(driver, container, mount, limits, executeMountingOver),
  ])
  if (!done.every(Boolean)) throw new Error('a copy could not be told who it is')
}

/** Whether a command of the helper, as root, ends well in time. */
async function endsWell(
  driver: Driver,
  container: string,
  command: string[],
  limits: Pick<Limits, 'timeoutMs'> & Partial<Limits>,
  execute = executeOver,
): Promise<boolean> {
  const nothing = openSync('/dev/null', 'r+')
  try {
    return await withControl(driver, container, async (control) => {
      const ended = (async () => {
        const begun = await execute(control, container, helperProcess(command), [nothing, nothing, nothing])
        return begun.kind === 'begun' ? await waitOver(control, container, begun.pid) : null
      })()
      return (await inTime(ended, limits)) === 0
    })
  } catch {
    return false
  } finally {
    closeSync(nothing)
  }
}

function helperProcess(args: string[]): Process {
  return {
    terminal: false,
    user: { uid: 0, gid: 0, additionalGids: [] },
    args,
    env: [],
    cwd: '/',
    capabilities: findingCapabilities(),
    rlimits: [],
    noNewPrivileges: true,
    oomScoreAdj: 0,
  }
}

async function openControl({ root, commands }: Driver, container: string): Promise<Control> {
  const control = await connectControl(root, container)
  if (control && commands.program && runsProbed(control, commands.program)) return control
  control?.close()
  throw new Error('its sandbox takes no orders')
}

async function withControl<T>(
  driver: Driver,
  container: string,
  work: (control: Control) => Promise<T>,
): Promise<T> {
  const control = await openControl(driver, container)
  try {
    return await work(control)
  } finally {
    control.close()
  }
}

/** Rejects if that takes too long, or is given up. */
async function inTime<T>(
  work: Promise<T>,
  { timeoutMs, signal }: Pick<Limits, 'timeoutMs'> & Partial<Limits>,
): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('it took too long')), timeoutMs)
  const giveUp = () => late.reject(new Error('it was given up'))
  signal?.addEventListener('abort', giveUp, { once: true })
  if (signal?.aborted) giveUp()
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
  }
}

function expectDone(otherwise: string, answer: Answer): void {
  if (answer.kind === 'done') return
  const why =
    answer.kind === 'refused' ? answer.complaint.slice(-300) : 'its sandbox ended, or does not answer'
  throw new Error(`${otherwise}: ${why}`)
}

/** They must be the same at the restore. Where its state lies is no matter. */
function flagsOf({ globalArgs }: Driver): string {
  return digest(globalArgs.slice(globalArgs.indexOf('--root') + 2).join(' '))
}

/** The sandbox has told its processes of them. */
function processorFeatures(): string {
  return digest(/^(?:flags|Features)\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '')
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}
