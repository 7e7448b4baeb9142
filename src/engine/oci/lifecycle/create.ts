// Creates what a machine keeps for life: disk, volume, address. Starts nothing. A failure is rolled back; after a
// crash the next engine rolls back, because it finds no record.

import type { MachineSpec, MachineStatus } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import type { StoredImage } from '../images/store.ts'
import { createDisk, fillVolume } from '../storage/disks.ts'
import { newMachine, statusOf, type EngineContext } from '../machine/context.ts'
import { hastenGracePeriods } from '../kernel/grace-periods.ts'
import type { Attachment } from '../network/types.ts'
import { checkReserve } from '../storage/pool.ts'
import { beginMachine, newRecord, saveRecord } from '../records/record.ts'
import { prepareShare } from '../storage/team-shares.ts'
import { claimReady } from '../warm-pool/claim.ts'
import { removeMachineState } from '../machine/remove-state.ts'

export function createMachine(host: EngineContext, spec: MachineSpec): Promise<MachineStatus> {
  return host.lock(spec.id, async () => {
    const existing = host.machines.get(spec.id)
    if (existing) return statusOf(existing)
    // Again: an engine of another instance sets it back when it ends.
    hastenGracePeriods(host.paths.gracePeriods)
    const isRoom = checkReserve(host.paths, host.reserveGb)
    // Awaited below, at the latest when the image is held.
    isRoom.catch(() => {})
    return await host.images.hold([spec.imageDigest], async ([image]) => {
      await isRoom
      const ready = image && host.ready.take(spec, image)
      if (ready) return await claimReady(host, spec, ready)
      if (image) return await makeMachine(host, spec, image)
      throw new EngineError('image_not_found', 'The image is no longer on this host: pull it again.')
    })
  })
}

async function makeMachine(
  host: EngineContext,
  spec: MachineSpec,
  image: StoredImage,
): Promise<MachineStatus> {
  const attachment = await makeLasting(host, spec, image)
  const { address } = attachment
  const machine = newMachine(newRecord(spec, address), attachment)
  try {
    await host.effect('engine.create.record', () => saveRecord(host.paths, machine.record))
  } catch (error) {
    await removeMachineState(host, spec.id)
    throw error
  }
  host.machines.set(spec.id, machine)
  return statusOf(machine)
}

/** Both or neither: the one that succeeds is awaited before it is rolled back. */
async function makeLasting(host: EngineContext, spec: MachineSpec, image: StoredImage): Promise<Attachment> {
  const group = { machineId: spec.id, group: spec.networkGroup, address: null }
  await beginMachine(host.paths, spec.id)
  const [attached, made] = await Promise.allSettled([
    host.effect('engine.create.network', () => host.network.attach(group)),
    makeDisk(host, spec, image),
  ])
  if (attached.status === 'fulfilled' && made.status === 'fulfilled') return attached.value
  await removeMachineState(host, spec.id)
  throw attached.status === 'rejected' ? attached.reason : made.status === 'rejected' ? made.reason : null
}

async function makeDisk(host: EngineContext, spec: MachineSpec, image: StoredImage): Promise<void> {
  await host.effect('engine.create.disk', async () => {
    await prepareShare(host.paths, spec.networkGroup, host.shareBytes)
    await createDisk(host.paths, spec)
  })
  await host.effect('engine.create.volume-data', () => fillVolume(host, spec, image))
}
