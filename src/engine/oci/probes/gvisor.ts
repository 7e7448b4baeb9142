// Finds out whether class gvisor runs here: with which of the machine's programs, which way that must be called, and how
// commands get in. Everything follows from what a sandbox does, nothing from the version that a program states.

import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClassCapability } from '../../engine.ts'
import { gvisorMemory } from '../checkpoint/gvisor-memory.ts'
import { probeCheckpoint } from './memory.ts'
import type { Program } from '../runtime/control.ts'
import { probeControl, type ProbedControl, removeProbe } from './control.ts'
import type { Paths } from '../paths.ts'
import type { Driver, DriverOptions } from '../runtime/driver.ts'
import { gvisorDriver, type Platform, writeMaskedRunsc } from '../runtime/gvisor.ts'
import { type Kept, keepProgram, noteShown, shownOf } from '../runtime/kept-programs.ts'
import { probeNested } from './nested.ts'
import { hasVirtualization, type KvmFinding, probeKvm } from './platform.ts'
import { inNamespace, type ProbedClass, type Tried, tryContainer, unavailable, versionOf } from './probing.ts'
import { type Candidate, runscCandidates } from './runsc-candidates.ts'

/** What a probe has shown of a program: all that is needed to call it again. */
type Shown = Way & {
  version: string
  cutsWrites: boolean
  direct: Program | null
  keepsMemory?: boolean
  /** Absent: systrap. */
  platform?: Platform
  /** Why no containers can run in its machines; null: they can; absent: it was not tried. */
  cannotNest?: string | null
}

/** How it must be called: with a flag that older ones do not know, or with a part of the host hidden from it. */
type Way = { knowsGofers: boolean; isMasked: boolean }

const ways: Way[] = [
  { knowsGofers: true, isMasked: false },
  { knowsGofers: false, isMasked: false },
  { knowsGofers: false, isMasked: true },
]

const VERSION = /runsc version (?:release-)?(\S+)/

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
  const { isMasked, knowsGofers, platform = 'systrap', cannotNest = 'it was not tried' } = shown
  const launcher = isMasked ? maskedOf(paths, kept) : kept.path
  const make = (nests: boolean): Driver => ({
    ...gvisorDriver(paths.runtimeRoot('runsc'), shown.version, kept, options, {
      launcher,
      knowsGofers,
      nests,
      platform,
    }),
    cutsWrites: shown.cutsWrites,
    commands: { program: shown.direct, otherwise: options.gvisorCommands !== 'direct' },
  })
  const driver = make(false)
  const memory = shown.keepsMemory === true ? gvisorMemory(driver) : null
  const nested = cannotNest === null ? { driver: make(true), why: null } : { driver: null, why: cannotNest }
  return { ...driver, memory, nested }
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
  const version = await versionOf(path, VERSION)
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
  const platform = await platformOf(paths, instanceId, kept, { ...way, version, cutsWrites, direct }, options)
  const commanded = driverOf(
    paths,
    kept,
    { ...way, version, cutsWrites, direct, platform, cannotNest: null },
    options,
  )
  const memory = await probeMemory(paths, commanded, instanceId)
  const cannotNest = await whyNotNested(paths, commanded, instanceId)
  const shown = { ...way, version, cutsWrites, direct, platform, keepsMemory: memory.available, cannotNest }
  if (isKept) await noteShown(kept, shown)
  const notes = [
    `runsc ${version}, ${from}`,
    ...(platform === 'kvm' ? ['with hardware virtualization'] : []),
    ...(way.isMasked ? ['with /proc/sys/net hidden from it'] : []),
    ...(probed?.kind === 'fails' ? [`commands by its exec only (${probed.why})`] : []),
  ]
  return { kind: 'works', driver: driverOf(paths, kept, shown, options), detail: notes.join(', '), memory }
}

/** Only where the processor can virtualize: a sandbox on another /dev/kvm hangs until its deadline, at each start. */
async function platformOf(
  paths: Paths,
  instanceId: string,
  kept: Kept,
  shown: Shown,
  options: DriverOptions,
): Promise<Platform> {
  if (!hasVirtualization()) return 'systrap'
  const finding = await tryKvm(paths, instanceId, kept, shown, options)
  return finding.kind === 'works' && finding.isQuicker ? 'kvm' : 'systrap'
}

async function tryKvm(
  paths: Paths,
  instanceId: string,
  kept: Kept,
  shown: Shown,
  options: DriverOptions,
): Promise<KvmFinding> {
  const on = (platform: Platform) => driverOf(paths, kept, { ...shown, platform }, options)
  return await probeKvm(paths, { kvm: on('kvm'), systrap: on('systrap') }, instanceId)
}

/** Whether sandboxes can use the hardware virtualization of this host, whatever its processor says. Null: there is no gVisor. */
export async function findKvm(
  paths: Paths,
  instanceId: string,
  options: DriverOptions,
): Promise<KvmFinding | null> {
  for (const { path } of await runscCandidates(options)) {
    const kept = { program: '', path }
    const version = await versionOf(path, VERSION)
    const tried = version === null ? null : await tryWays(paths, instanceId, kept, version, options)
    if (version === null || tried?.kind !== 'works') continue
    const { way, cutsWrites } = tried
    return await tryKvm(paths, instanceId, kept, { ...way, version, cutsWrites, direct: null }, options)
  }
  return null
}

/** What was said of files: who opens an engine again in the same process need not try again. */
const keeping = new Map<string, string | null>()
const nesting = new Map<string, string | null>()

async function probeMemory(
  paths: Paths,
  driver: Driver,
  instanceId: string,
): Promise<ClassCapability['memory']> {
  const { commands, version } = driver
  if (commands.program === null)
    return { available: false, detail: `runsc ${version} does not take orders directly` }
  const said = await saidOnce(keeping, driver, () =>
    probeCheckpoint(paths, driver, gvisorMemory(driver), instanceId),
  )
  if (said === null) return { available: true, detail: `runsc ${version} saves and restores its sandboxes` }
  const detail = `runsc ${version} could not save and restore a sandbox, so disks are kept alone: ${said}`
  return { available: false, detail }
}

async function whyNotNested(paths: Paths, { nested }: Driver, instanceId: string): Promise<string | null> {
  const { driver, why } = nested
  return driver === null ? why : await saidOnce(nesting, driver, () => probeNested(paths, driver, instanceId))
}

async function saidOnce(
  known: Map<string, string | null>,
  driver: Driver,
  probe: () => Promise<string | null>,
): Promise<string | null> {
  const file = await fileOf(driver)
  const said = known.get(file)
  if (said !== undefined) return said
  const fresh = await probe()
  known.set(file, fresh)
  return fresh
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
