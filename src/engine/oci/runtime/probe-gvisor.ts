// Finds out whether class gvisor runs here: which way its program must be called, and how commands get in.

import { stat } from 'node:fs/promises'
import { type Program } from '../exec/control.ts'
import { probeControl, type ProbedControl, removeProbe } from '../exec/control-probe.ts'
import type { Paths } from '../paths.ts'
import type { Driver, DriverOptions } from './driver.ts'
import { gvisorDriver, writeMaskedRunsc } from './gvisor.ts'
import { inNamespace, type ProbedClass, tryContainer, unavailable, versionOf } from './probing.ts'

/**
 * gVisor's checkpoints are made by a running sandbox, so they are not of the instant at which its disk is copied.
 * With a network, those of 2024 restore a sandbox that does nothing.
 */
const noGvisorMemory = {
  available: false,
  detail:
    'gVisor saves memory only while its sandbox runs on, so not together with the disk: disks are kept alone',
}

export async function probeGvisor(
  paths: Paths,
  instanceId: string,
  options: DriverOptions,
): Promise<ProbedClass> {
  const version = await versionOf(options.runsc, /runsc version (?:release-)?(\S+)/)
  if (!version) {
    return unavailable('gvisor', 'install runsc (Debian: bookworm-backports, or trixie and later)')
  }
  const tried = await tryGvisor(paths, instanceId, version, options)
  if (tried.kind === 'failed')
    return unavailable('gvisor', `runsc ${version} could not run a container: ${tried.said}`)
  const asked = options.gvisorCommands ?? 'auto'
  const { driver } = tried
  const probed = asked === 'runsc' ? null : await tryControl(paths, driver, instanceId)
  if (asked === 'direct' && probed?.kind === 'fails')
    return unavailable('gvisor', `runsc ${version} does not take commands directly: ${probed.why}`)
  const program = probed?.kind === 'works' ? probed.program : null
  const ways = probed?.kind === 'fails' ? `, commands by its exec only (${probed.why})` : ''
  const detail = `runsc ${version}${tried.note}${ways}`
  return {
    capability: { class: 'gvisor', available: true, detail, memory: noGvisorMemory },
    driver: { ...driver, commands: { program, otherwise: asked !== 'direct' } },
  }
}

async function tryGvisor(
  paths: Paths,
  instanceId: string,
  version: string,
  options: DriverOptions,
): Promise<{ kind: 'works'; driver: Driver; note: string } | { kind: 'failed'; said: string }> {
  const root = paths.runtimeRoot('runsc')
  const plain = gvisorDriver(root, version, options)
  const first = await tryContainer(paths, plain, instanceId)
  if (first.said === null)
    return { kind: 'works', driver: { ...plain, cutsWrites: first.cutsWrites }, note: '' }
  const masked = gvisorDriver(root, version, options, await writeMaskedRunsc(paths.helper, options.runsc))
  const { said, cutsWrites } = await tryContainer(paths, masked, instanceId)
  if (said !== null) return { kind: 'failed', said }
  return { kind: 'works', driver: { ...masked, cutsWrites }, note: ', with /proc/sys/net hidden from it' }
}

/** Of the files that were tried: who opens an engine again in the same process need not try again. */
const proven = new Map<string, Program>()

async function tryControl(paths: Paths, driver: Driver, instanceId: string): Promise<ProbedControl> {
  const { dev, ino, mtimeMs, size } = await stat(driver.binary)
  const file = [driver.binary, dev, ino, mtimeMs, size].join(' ')
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
