// Finds out whether class runc runs here, and with which CRIU it keeps memory.

import { access, constants, readFile } from 'node:fs/promises'
import type { ClassCapability } from '../../engine.ts'
import { criuPrograms, openCriu } from '../checkpoint/criu.ts'
import { criuMemory } from '../checkpoint/criu-memory.ts'
import { probeCheckpoint } from './memory.ts'
import { SECCOMP_PROFILE } from '../kernel/seccomp.ts'
import type { Paths } from '../paths.ts'
import type { Driver, DriverOptions, Memory } from '../runtime/driver.ts'
import { type ProbedClass, tryContainer, unavailable, versionOf } from './probing.ts'
import { runcDriver } from '../runtime/runc.ts'

/** Bit 24. */
const CAP_SYS_RESOURCE = 1n << 24n

export async function probeRunc(
  paths: Paths,
  instanceId: string,
  options: DriverOptions,
): Promise<ProbedClass> {
  const version = await versionOf(options.runc, /runc version (\S+)/)
  if (!version) return unavailable('runc', 'install the Debian package runc')
  const profile = await access(SECCOMP_PROFILE, constants.R_OK).then(
    () => true,
    () => false,
  )
  if (!profile) return unavailable('runc', 'install the Debian package golang-github-containers-common')
  const driver = runcDriver(paths.runtimeRoot('runc'), version, options)
  const { said } = await tryContainer(paths, driver, instanceId)
  if (said !== null) return unavailable('runc', `runc ${version} could not run a container: ${said}`)
  const { memory, detail } = await probeCriu(paths, driver, instanceId, options.criu ?? criuPrograms)
  const kept: ClassCapability['memory'] = { available: memory !== null, detail }
  return {
    capability: { class: 'runc', available: true, detail: `runc ${version}`, memory: kept },
    driver: { ...driver, memory },
  }
}

/** Returns the first program that works. */
async function probeCriu(
  paths: Paths,
  driver: Driver,
  instanceId: string,
  programs: string[],
): Promise<{ memory: Memory | null; detail: string }> {
  let detail = 'install CRIU (Debian: criu), or run the set-up again'
  for (const program of programs) {
    const criu = await openCriu(paths.criu, program)
    if (!criu) continue
    const memory = criuMemory(driver, criu)
    const said = await probeCheckpoint(paths, driver, memory, instanceId)
    if (said === null) return { memory, detail: `CRIU ${criu.version}${await limits()}` }
    detail = `CRIU ${criu.version} could not save and restore a container: ${said}`
  }
  return { memory: null, detail }
}

/** Without that capability the kernel hides what limits another user's processes. */
async function limits(): Promise<string> {
  const mask = /^CapEff:\s+([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1] ?? '0'
  const isWhole = (BigInt(`0x${mask}`) & CAP_SYS_RESOURCE) !== 0n
  return isWhole ? '' : ', without CAP_SYS_RESOURCE only of units whose processes are all root’s'
}
