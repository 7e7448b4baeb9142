// Makes a ready machine: disk, network, sandbox, and in it a process that waits for its command. Everything that
// only the caller can specify comes later (claim.ts).

import { closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { mkdir, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import type { ImageConfig, MachineSpec, RunSpec } from '../../engine.ts'
import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { getDriver, newMachine, type EngineContext } from '../machine/context.ts'
import { closeUnused, makeStandby } from '../exec/make-standby.ts'
import type { Standby } from '../machine/standbys.ts'
import type { StoredImage } from '../images/store.ts'
import { freezeGroup } from '../kernel/cgroups.ts'
import { memoryInUse } from '../kernel/cgroup-memory.ts'
import { makeFifo } from '../kernel/syscalls.ts'
import { cleanUpRun } from '../machine/clean-up-run.ts'
import { makeRun, prepareGroup } from '../machine/make-run.ts'
import { beginMachine, newRecord } from '../records/record.ts'
import { removeMachineState } from '../machine/remove-state.ts'
import type { Attachment } from '../network/types.ts'
import type { RunPaths } from '../paths.ts'
import { traitsOf } from '../traits.ts'
import { createDisk, fillVolume } from '../storage/disks.ts'
import { writeEtc } from '../machine/etc.ts'
import { waitingCommand } from '../machine-programs/wait.ts'
import { shmBytesOf } from '../storage/shm.ts'
import { prepareShare } from '../storage/team-shares.ts'
import { closeNaming, prepareNaming } from './naming.ts'
import { readyName } from '../paths.ts'
import { FIRST_GENERATION } from './ready.ts'
import type { Ready } from '../machine/ready-machine.ts'

const MB = 1024 * 1024
const { O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** What a machine has until its start says otherwise. */
const nobodysRun: RunSpec = {
  hostname: 'berth',
  entrypoint: waitingCommand,
  cmd: null,
  env: {},
  files: [],
  searchDomain: 'internal',
  egress: null,
}

/** How long what an image begins ahead may take: longer, and it goes on in the unit. */
const AHEAD_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 20

/** The first process begins what the image has for this, and then waits. */
function runAheadOf(image: ImageConfig): RunSpec {
  const [waiting = ''] = nobodysRun.entrypoint ?? []
  if (image.ahead === undefined) return nobodysRun
  const begin = '"$@" </dev/null >/dev/null 2>&1 & exec "$0"'
  return { ...nobodysRun, entrypoint: ['/bin/sh', '-c', begin, waiting, ...image.ahead.command] }
}

/** Nothing of a unit has run in the machine, so that its files are the image's. */
async function untilBegun({ ahead }: ImageConfig, root: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + AHEAD_WITHIN_MS
  while (ahead && performance.now() < deadline && !existsSync(`/proc/self/fd/${root}/.${ahead.begun}`))
    await delay(LOOK_EVERY_MS, undefined, { signal })
}

/** Of the very files that a machine is made of. */
export function identityOf(host: EngineContext, spec: MachineSpec, imageRoot: string): string {
  const { binary } = getDriver(host, spec)
  const [root, program] = [imageRoot, binary].map((path) => statSync(path, { throwIfNoEntry: false }))
  return [root?.dev, root?.ino, program?.dev, program?.ino, program?.mtimeMs, program?.size].join(' ')
}

/** `of`: the spec of a machine of the kind that is wanted. What it has made before a failure is removed. */
export async function makeReady(
  host: EngineContext,
  of: MachineSpec,
  image: StoredImage,
  signal: AbortSignal,
): Promise<Ready> {
  const name = readyName(randomBytes(8).toString('hex'))
  const spec = { ...of, id: name }
  const paths = host.paths.run(name, FIRST_GENERATION)
  const ends = new Set<number>()
  try {
    return await make(host, { spec, paths, image, ends, signal })
  } catch (error) {
    for (const fd of ends) closeSync(fd)
    await removeReady(host, { name, paths })
    throw error
  }
}

type Making = {
  spec: MachineSpec
  paths: RunPaths
  image: StoredImage
  ends: Set<number>
  signal: AbortSignal
}

async function make(host: EngineContext, { spec, paths, image, ends, signal }: Making): Promise<Ready> {
  const record = { spec, forkGeneration: 0 }
  const driver = getDriver(host, spec)
  const identity = identityOf(host, spec, image.rootfs)
  const attachment = await makeLasting(host, { spec, paths, image })
  const { namespacePath: networkNamespace, address } = attachment
  const { config: imageConfig } = image.image
  const run = runAheadOf(imageConfig)
  await writeEtc(host, host.paths.machine(spec.id).upper, { address, run })
  const hold = (path: string, flags: number) => {
    const fd = openSync(path, flags)
    ends.add(fd)
    return fd
  }
  // As long as it is open, neither end of the FIFO waits for the other.
  const both = hold(paths.orders, O_RDWR | O_NONBLOCK)
  prepareGroup(host, { record, paths })
  let root = -1
  const { config, input, monitor } = await makeRun(host, {
    record,
    driver,
    run,
    paths,
    image,
    networkNamespace,
    signal,
    stdin: paths.orders,
    logFile: join(paths.logs, `${FIRST_GENERATION}.log`),
    restored: null,
    shmBytes: shmBytesOf(spec),
    onRoot: (rootfs) => (root = hold(rootfs, O_RDONLY | O_DIRECTORY)),
  })
  const go = await driver.start(paths, signal)
  if (go.kind === 'failed') throw new Error(`a machine could not be made ahead: ${go.reason.slice(-300)}`)
  const orders = hold(paths.orders, O_WRONLY | O_NONBLOCK)
  closeSync(both)
  ends.delete(both)
  await unlink(paths.orders)
  await untilBegun(imageConfig, root, signal)
  const naming = traitsOf(spec).sharesKernel
    ? null
    : await prepareNaming(driver, paths.container, config.process)
  const standby = driver.execDetaches ? await standbyOf(host, spec, attachment) : null
  if (!(await freezeGroup(host.cgroups, paths.container))) {
    if (naming) closeNaming(naming)
    if (standby) closeUnused(standby)
    throw new Error('it could not be frozen')
  }
  return {
    name: spec.id,
    spec,
    paths,
    driver,
    attachment,
    monitor,
    input,
    root,
    orders,
    naming,
    standby,
    imageRoot: image.rootfs,
    identity,
    memoryMb: Math.ceil(memoryInUse(host.cgroups, paths.container) / MB),
    takenAtMs: 0,
  }
}

/** Null if it could not be made: its first command is started by the runtime then. */
async function standbyOf(
  host: EngineContext,
  spec: MachineSpec,
  { address }: Attachment,
): Promise<Standby | null> {
  const machine = newMachine({ ...newRecord(spec, address), generation: FIRST_GENERATION }, null)
  return await makeStandby(host, machine, 'user').catch(() => null)
}

/** What the machine will keep for life, and the directories of its run. */
async function makeLasting(
  host: EngineContext,
  { spec, paths, image }: Pick<Making, 'spec' | 'paths' | 'image'>,
): Promise<Attachment> {
  const { networkGroup } = spec
  await beginMachine(host.paths, spec.id)
  const { logs } = host.paths.machine(spec.id)
  const makeDisk = async () => {
    await prepareShare(host.paths, networkGroup, host.shareBytes)
    await createDisk(host.paths, spec)
    await fillVolume(host, spec, image)
  }
  const makeDirectories = async () => {
    await mkdir(paths.execs, { recursive: true, mode: 0o700 })
    await mkdir(paths.rootfs)
    await symlink(logs, paths.logs)
    makeFifo(paths.orders)
  }
  const [attachment] = await allSettled([
    host.network.attach({ machineId: spec.id, group: networkGroup, address: null }),
    makeDisk(),
    makeDirectories(),
  ])
  return attachment
}

/** Removes everything of a machine that no create has taken. Its ends must be closed. */
export async function removeReady(
  host: EngineContext,
  { name, paths }: Pick<Ready, 'name' | 'paths'>,
): Promise<void> {
  await cleanUpRun(host, paths)
  await removeMachineState(host, name)
}
