// The input of a background process that stays open to calls: a pipe, whose writing end a keeper holds, so that it outlives
// the engine, and ends when the keeper does. It is written without waiting in the kernel, since a process may never read.

import { closeSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { type EngineContext, getRunning } from '../machine/context.ts'
import { whenNotHeld } from '../exec/exec.ts'
import type { Held } from './held-process.ts'
import { endKeeper, openInput } from './keeper.ts'
import { getProcess } from './processes.ts'
import { saveProcess } from './record.ts'

/** How long to wait for a process that does not read. */
const PATIENCE_MS = 5000
const LOOK_MS = 10

/** Returns how many bytes were written: less than all if the process does not read them in time. */
export async function writeProcess(
  host: EngineContext,
  ref: MachineRef,
  process: string,
  data: Buffer,
  end: boolean,
): Promise<number> {
  const held = getProcess(getRunning(host, ref), process)
  await held.begun
  const mine = held.written.then(async () => await writeInTurn(host, ref, held, data, end))
  held.written = mine.catch(() => {})
  return await mine
}

async function writeInTurn(
  host: EngineContext,
  ref: MachineRef,
  held: Held,
  data: Buffer,
  end: boolean,
): Promise<number> {
  const givesUpAt = performance.now() + PATIENCE_MS
  let written = 0
  for (;;) {
    try {
      written += await whenNotHeld(host, ref, async () => {
        refuseEnded(getRunning(host, ref).record.generation, held)
        return writeNow(held, data.subarray(written))
      })
    } catch (error) {
      // What was written is told; the next call is refused.
      if (written > 0) return written
      throw error
    }
    if (written === data.length || performance.now() >= givesUpAt) break
    await delay(LOOK_MS)
  }
  if (end && written === data.length && held.input) {
    const { input } = held
    held.record.takesInput = false
    await saveProcess(host.paths, ref.id, held.record)
    // Last: an engine that finds the keeper knows an input that is open.
    held.input = null
    endKeeper(input)
  }
  return written
}

function refuseEnded(generation: number, { record, input }: Held): void {
  if (record.state !== 'running' || record.generation !== generation)
    throw new EngineError('process_ended', 'The process has ended.')
  if (input === null) throw inputEnded()
}

/** As much as there is room for. */
function writeNow({ input }: Held, data: Buffer): number {
  if (input === null) throw inputEnded()
  let fd: number | null = null
  try {
    fd = openInput(input)
    return data.length === 0 ? 0 : writeSync(fd, data)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EAGAIN') return 0
    // Nothing reads it any more.
    if (code === 'EPIPE' || code === 'ENXIO') throw inputEnded()
    throw error
  } finally {
    if (fd !== null) closeSync(fd)
  }
}

function inputEnded(): EngineError {
  return new EngineError('input_ended', 'The process takes no input.')
}
