// Finds out whether this host's runsc supports the control socket as control.ts uses it: runs commands in a sandbox
// made for that, and compares their user, directory, environment and output with what was requested.

import { randomInt } from 'node:crypto'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run } from '../kernel/programs.ts'
import { removeRootGroup } from '../kernel/cgroups.ts'
import type { Paths } from '../paths.ts'
import type { Process } from '../runtime/bundle.ts'
import { CAPABILITIES, capabilityMask, capabilitySets } from '../runtime/capabilities.ts'
import { probeConfig } from './bundle.ts'
import type { Driver } from '../runtime/driver.ts'
import { connectControl, type Program } from '../runtime/control.ts'
import { launchDirectly } from '../exec/direct.ts'
import type { OnOutput } from '../kernel/pipes.ts'

const PROBE_TIMEOUT_MS = 20_000
/** A sandbox whose engine dies over the probe ends by itself. */
const SANDBOX_SECONDS = '40'
const LOOK_EVERY_MS = 20

const SCRIPT = `
read -r line
echo "$(id -u) $(id -g) $(id -G)|$(pwd)|$PROBE|$(umask)|$line|$1"
grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status
! grep '^NoNewPrivs:.*0' /proc/self/status
echo apart >&2
exit 7`

export type ProbedControl = { kind: 'works'; program: Program } | { kind: 'fails'; why: string }

/** The sandbox has the network namespace of a path. */
export async function probeControl(
  paths: Paths,
  driver: Driver,
  container: string,
  namespace: string,
): Promise<ProbedControl> {
  const bundle = join(paths.runs, container)
  const rootfs = join(bundle, 'rootfs')
  const over = new AbortController()
  let ended: Promise<ProbedControl> | null = null
  try {
    await mkdir(rootfs, { recursive: true })
    // One of the commands is not root's.
    await chmod(rootfs, 0o755)
    const config = probeConfig(paths, namespace, rootfs, ['/helper/busybox', 'sleep', SANDBOX_SECONDS])
    await writeFile(join(bundle, 'config.json'), JSON.stringify(config), { mode: 0o600 })
    const args = [...driver.globalArgs, 'run', '--bundle', bundle, container]
    ended = run(driver.launcher, args, { timeoutMs: PROBE_TIMEOUT_MS }).then(
      (): ProbedControl => ({ kind: 'fails', why: 'it did not answer' }),
    )
    return await Promise.race([tryCommands(driver, container, over.signal), ended])
  } catch (error) {
    return { kind: 'fails', why: String(error instanceof Error ? error.message : error).slice(-300) }
  } finally {
    over.abort()
    // The removal waits for the sandbox to be reaped, which `runsc run` does.
    await removeProbe(paths, driver, container)
    await ended?.catch(() => {})
    // It may have been about to write down that the sandbox had started.
    await removeProbe(paths, driver, container)
  }
}

/** Also of an engine that died over its probe. */
export async function removeProbe(paths: Paths, driver: Driver, container: string): Promise<void> {
  const args = [...driver.globalArgs, 'delete', '-force', container]
  await run(driver.binary, args, { timeoutMs: PROBE_TIMEOUT_MS })
  await rm(join(paths.runs, container), { recursive: true, force: true })
  // runsc leaves it if the sandbox had not been reaped by then.
  removeRootGroup(container)
}

async function tryCommands(driver: Driver, container: string, signal: AbortSignal): Promise<ProbedControl> {
  await whenStarted(driver, container, signal)
  let program: Program | null = null
  for (const user of users) {
    const input = `given ${randomInt(2 ** 32)}`
    const tried = await tryCommand(driver, container, commandAs(user), Buffer.from(`${input}\n`))
    if (tried === null) return { kind: 'fails', why: 'its control socket has no listener' }
    program = tried.program
    const wanted = JSON.stringify([{ kind: 'ended', exitCode: 7 }, expected(user, input)])
    if (tried.ended !== wanted)
      return { kind: 'fails', why: `a command went otherwise than asked: ${tried.ended.slice(0, 600)}` }
  }
  return program ? { kind: 'works', program } : { kind: 'fails', why: 'nothing was tried' }
}

/** A sandbox listens before its first process has started. */
async function whenStarted(driver: Driver, container: string, signal: AbortSignal): Promise<void> {
  const command = { ...commandAs(firstUser), args: ['/helper/busybox', 'true'] }
  while (!signal.aborted) {
    const tried = await tryCommand(driver, container, command, null)
    if (tried && !/not started|does not exist|not found/.test(tried.ended)) return
    await delay(LOOK_EVERY_MS)
  }
}

/** The exit code and the output, as one text. Null: the socket has no listener. */
async function tryCommand(
  driver: Driver,
  container: string,
  process: Process,
  stdin: Buffer | null,
): Promise<{ program: Program; ended: string } | null> {
  const control = await connectControl(driver.root, container)
  if (!control) return null
  const said = { stdout: '', stderr: '' }
  const onOutput: OnOutput = ({ stream, data }) => void (said[stream] += data.toString('latin1'))
  // It ends with its sandbox.
  const [kill, signalInside, leave] = [async () => {}, async () => {}, () => {}]
  const asked = { control, container, process, stdin, onOutput, kill, signalInside, leave }
  const { outcome } = launchDirectly(asked)
  return { program: control.program, ended: JSON.stringify([await outcome, said]) }
}

type User = Process['user']

const firstUser: User = { uid: 0, gid: 0, additionalGids: [] }
const users = [firstUser, { uid: 1234, gid: 2345, additionalGids: [3456, 4567] }]

function commandAs(user: User): Process {
  return {
    terminal: false,
    user,
    args: ['/helper/busybox', 'sh', '-c', SCRIPT, 'probe', 'two\nlines'],
    env: ['PROBE=set', 'PATH=/helper', 'HOME=/'],
    cwd: '/helper',
    capabilities: capabilitySets(user.uid),
    rlimits: [],
    noNewPrivileges: true,
    oomScoreAdj: 0,
  }
}

function expected({ uid, gid, additionalGids }: User, input: string): { stdout: string; stderr: string } {
  const groups = [gid, ...additionalGids].join(' ')
  const all = mask(capabilityMask(CAPABILITIES))
  const held = uid === 0 ? all : mask(0)
  const stdout = [
    `${uid} ${gid} ${groups}|/helper|set|0022|${input}|two`,
    'lines',
    `CapPrm:\t${held}`,
    `CapEff:\t${held}`,
    `CapBnd:\t${all}`,
    '',
  ]
  return { stdout: stdout.join('\n'), stderr: 'apart\n' }
}

function mask(bits: number): string {
  return bits.toString(16).padStart(16, '0')
}
