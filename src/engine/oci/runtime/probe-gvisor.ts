// Finds out whether class gvisor runs here: with which of the machine's programs, which way that must be called, and how
// commands get in. Everything follows from what a sandbox does, nothing from the version that a program states.

import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClassCapability } from '../../engine.ts'
import { gvisorMemory } from '../checkpoint/gvisor-memory.ts'
import { probeCheckpoint } from '../checkpoint/probe.ts'
import type { Program } from '../exec/control.ts'
import { probeControl, type ProbedControl, removeProbe } from '../exec/control-probe.ts'
import type { Paths } from '../paths.ts'
import type { Driver, DriverOptions } from './driver.ts'
import { gvisorDriver, writeMaskedRunsc } from './gvisor.ts'
import { type Kept, keepProgram, noteShown, shownOf } from './kept-programs.ts'
import { inNamespace, type ProbedClass, type Tried, tryContainer, unavailable, versionOf } from './probing.ts'
import { type Candidate, runscCandidates } from './runsc-candidates.ts'

/** What a probe has shown of a program: all that is needed to call it again. */
type Shown = Way & { version: string; cutsWrites: boolean; direct: Program | null; keepsMemory?: boolean }

/** How it must be called: with a flag that older ones do not know, or with a part of the host hidden from it. */
type Way = { knowsGofers: boolean; isMasked: boolean }

const ways: Way[] = [
  { knowsGofers: true, isMasked: false },
  { knowsGofers: false, isMasked: false },
  { knowsGofers: false, isMasked: true },
]
type Probed =
  | { kind: 'works'; driver: Driver; detail: string; memory: ClassCapability['memory'] }
  | { kind: 'refused'; why: string }

/** The first program that works is used, and why an earlier one is not is said. */
export async function probeGvisor(
  paths: Paths,
  instanceId: string,
  options: DriverOptions,
): Promise<ProbedClass> {
  const refused: string[] = []
  for (const candidate of await runscCandidates(options)) {
    const probed = await probeCandidate(paths, instanceId, candidate, options)
    if (probed.kind === 'works') {
      const others = refused.map((why) => `; not used: ${why}`).join('')
      return { capability: available(`${probed.detail}${others}`, probed.memory), driver: probed.driver }
    }
    refused.push(`${candidate.path} (${candidate.from}): ${probed.why}`)
  }
  const install = 'install runsc (Debian: bookworm-backports, or trixie and later)'
  return unavailable('gvisor', refused.length === 0 ? install : refused.join('; '))
}

/** The drivers of programs that runs of earlier engines may still have, by the name that their records have. */
export async function gvisorDriversOf(
  paths: Paths,
  programs: string[],
  options: DriverOptions,
): Promise<Map<string, Driver>> {
  const known = new Map<string, Driver>()
  for (const program of programs) {
    const shown = (await shownOf(paths.programs, program)) as Shown | null
    const kept = { program, path: join(paths.programs, program, 'runsc') }
    if (shown !== null) known.set(program, driverOf(paths, kept, shown, options))
  }
  return known
}

/** Of the system's own program; null if it does not work. */
export async function systemDriver(
  paths: Paths,
  instanceId: string,
  options: DriverOptions,
): Promise<Driver | null> {
  const system = (await runscCandidates(options)).at(-1)
  if (system === undefined) return null
  const probed = await probeCandidate(paths, instanceId, system, options)
  return probed.kind === 'works' ? probed.driver : null
}

function available(detail: string, memory: ClassCapability['memory']): ClassCapability {
  return { class: 'gvisor', available: true, detail, memory }
}

function driverOf(paths: Paths, kept: Kept, shown: Shown, options: DriverOptions): Driver {
  const { isMasked, knowsGofers } = shown
  const launcher = isMasked ? maskedOf(paths, kept) : kept.path
  const driver = {
    ...gvisorDriver(paths.runtimeRoot('runsc'), shown.version, kept, options, { launcher, knowsGofers }),
    cutsWrites: shown.cutsWrites,
    commands: { program: shown.direct, otherwise: options.gvisorCommands !== 'direct' },
  }
  return shown.keepsMemory === true ? { ...driver, memory: gvisorMemory(driver) } : driver
}

function maskedOf(paths: Paths, { program, path }: Kept): string {
  return program === '' ? join(paths.helper, 'runsc-masked') : join(dirname(path), 'runsc-masked')
}

async function probeCandidate(
  paths: Paths,
  instanceId: string,
  { path, from }: Candidate,
  options: DriverOptions,
): Promise<Probed> {
  const version = await versionOf(path, /runsc version (?:release-)?(\S+)/)
  if (!version) return { kind: 'refused', why: 'it does not tell its version' }
  const isKept = options.keepsPrograms !== false
  const kept = isKept ? await keepProgram(paths.programs, path) : { program: '', path }
  const tried = await tryWays(paths, instanceId, kept, version, options)
  if (tried.kind === 'failed')
    return { kind: 'refused', why: `runsc ${version} could not run a container: ${tried.said}` }
  const asked = options.gvisorCommands ?? 'auto'
  const probed = asked === 'runsc' ? null : await tryControl(paths, tried.driver, instanceId)
  if (asked === 'direct' && probed?.kind === 'fails')
    return { kind: 'refused', why: `runsc ${version} does not take commands directly: ${probed.why}` }
  const direct = probed?.kind === 'works' ? probed.program : null
  const { way, cutsWrites } = tried
  const commanded = driverOf(paths, kept, { ...way, version, cutsWrites, direct }, options)
  const memory = await probeMemory(paths, commanded, instanceId)
  const shown = { ...way, version, cutsWrites, direct, keepsMemory: memory.available }
  if (isKept) await noteShown(kept, shown)
  const notes = [
    `runsc ${version}, ${from}`,
    ...(way.isMasked ? ['with /proc/sys/net hidden from it'] : []),
    ...(probed?.kind === 'fails' ? [`commands by its exec only (${probed.why})`] : []),
  ]
  return { kind: 'works', driver: driverOf(paths, kept, shown, options), detail: notes.join(', '), memory }
}

/** Which files keep memory: who opens an engine again in the same process need not try again. */
const keeping = new Map<string, string | null>()

async function probeMemory(
  paths: Paths,
  driver: Driver,
  instanceId: string,
): Promise<ClassCapability['memory']> {
  const { commands, version } = driver
  if (commands.program === null)
    return { available: false, detail: `runsc ${version} does not take orders directly` }
  const file = await fileOf(driver)
  const known = keeping.get(file)
  const said =
    known === undefined ? await probeCheckpoint(paths, driver, gvisorMemory(driver), instanceId) : known
  keeping.set(file, said)
  if (said === null) return { available: true, detail: `runsc ${version} saves and restores its sandboxes` }
  const detail = `runsc ${version} could not save and restore a sandbox, so disks are kept alone: ${said}`
  return { available: false, detail }
}

async function fileOf({ binary }: Driver): Promise<string> {
  const { dev, ino, mtimeMs, size } = await stat(binary)
  return [dev, ino, mtimeMs, size].join(' ')
}

type TriedWays =
  | { kind: 'works'; driver: Driver; way: Way; cutsWrites: boolean }
  | { kind: 'failed'; said: string }

async function tryWays(
  paths: Paths,
  instanceId: string,
  kept: Kept,
  version: string,
  options: DriverOptions,
): Promise<TriedWays> {
  await writeMaskedRunsc(maskedOf(paths, kept), kept.path)
  let last: Tried = { said: null, cutsWrites: true }
  for (const way of ways) {
    const driver = driverOf(paths, kept, { ...way, version, cutsWrites: true, direct: null }, options)
    last = await tryContainer(paths, driver, instanceId)
    if (last.said === null) return { kind: 'works', driver, way, cutsWrites: last.cutsWrites }
  }
  return { kind: 'failed', said: last.said ?? '' }
}

/** Of the files that were tried: who opens an engine again in the same process need not try again. */
const proven = new Map<string, Program>()

async function tryControl(paths: Paths, driver: Driver, instanceId: string): Promise<ProbedControl> {
  const file = await fileOf(driver)
  const container = `probe-commands-${instanceId}`
  const known = proven.get(file)
  if (known) {
    await removeProbe(paths, driver, container)
    return { kind: 'works', program: known }
  }
  const probed = await inNamespace(driver, instanceId, (namespace) =>
    probeControl(paths, driver, container, namespace),
  )
  if (probed.kind === 'works') proven.set(file, probed.program)
  return probed
}
