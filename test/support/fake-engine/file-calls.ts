// The calls of the fake that are about files, and about what listens for a machine alone.

import type { FileOperations } from '../../../src/engine/files.ts'
import type { Engine, MachineRef } from '../../../src/engine/engine.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { type Call, type Faults, type Operation, untilAborted } from './faults.ts'
import {
  archiveOf,
  listIn,
  makeIn,
  moveIn,
  readFrom,
  removeFrom,
  statIn,
  unpackInto,
  userNamed,
  writeInto,
} from './files.ts'
import type { FakeMachine } from './machine.ts'
import { tellChange, watchIn } from './watching.ts'

type Parts = {
  faults: Faults
  call: (operation: Operation, of: Partial<MachineRef>) => Call
  findRunning: (ref: MachineRef) => FakeMachine
  clock: Clock
}

type Calls = FileOperations & Pick<Engine, 'openLoopback'>

export function fileCalls({ faults, call, findRunning, clock }: Parts): Calls {
  const changed = (ref: MachineRef, type: 'create' | 'write' | 'remove' | 'rename', path: string) =>
    tellChange(findRunning(ref), { type, path, isDirectory: false })
  const known = (user: string | undefined) => void (user === undefined || userNamed(user))
  return {
    watchFiles: async (ref, path, recursive, told, signal) =>
      await faults.run(
        call('watchFiles', ref),
        async (gone) => await watchIn(findRunning(ref), path, recursive, told, { clock, gone }),
        signal,
      ),

    writeFile: async (ref, path, ...file) =>
      await faults.run(call('writeFile', ref), async () => {
        const written = writeInto(findRunning(ref).files, path, ...file)
        changed(ref, 'create', path)
        return written
      }),

    readFile: async (ref, path, maxBytes, user) =>
      await faults.run(call('readFile', ref), async () => {
        known(user)
        return readFrom(findRunning(ref).files, path, maxBytes)
      }),

    receiveFile: async (ref, path, pieces, owner, signal) =>
      await faults.run(
        call('receiveFile', ref),
        async (gone) => {
          const received: Buffer[] = []
          await untilAborted(gone, async () => {
            for await (const piece of pieces) received.push(piece)
          })
          return writeInto(findRunning(ref).files, path, Buffer.concat(received), owner)
        },
        signal,
      ),

    sendFile: async (ref, path, onMode, onData, signal, user) =>
      await faults.run(
        call('sendFile', ref),
        async (gone) => {
          known(user)
          const { content, mode } = readFrom(findRunning(ref).files, path, Number.MAX_SAFE_INTEGER)
          onMode(mode)
          if (content.length > 0) await untilAborted(gone, async () => await onData(content))
        },
        signal,
      ),

    openLoopback: async (ref, port) =>
      await faults.run(call('openLoopback', ref), async () => findRunning(ref).loopbacks.get(port) ?? null),

    statFile: async (ref, path, user) =>
      await faults.run(call('statFile', ref), async () => {
        known(user)
        const { files, image } = findRunning(ref)
        // As a kernel has it of the first process.
        if (path === '/proc/1/cwd')
          return { ...statIn(files, '/', clock), type: 'link', target: image.workingDir }
        return statIn(files, path, clock)
      }),

    makeDirectory: async (ref, path, owner) =>
      await faults.run(call('makeDirectory', ref), async () => makeIn(findRunning(ref).files, path, owner)),

    moveFile: async (ref, from, to) =>
      await faults.run(call('moveFile', ref), async () => {
        moveIn(findRunning(ref).files, from, to)
        changed(ref, 'rename', from)
        changed(ref, 'create', to)
      }),

    listDirectory: async (ref, path, depth, user) =>
      await faults.run(call('listDirectory', ref), async () => {
        known(user)
        return listIn(findRunning(ref).files, path, clock, depth)
      }),

    removeFile: async (ref, path, recursive) =>
      await faults.run(call('removeFile', ref), async () => {
        removeFrom(findRunning(ref).files, path, recursive)
        changed(ref, 'remove', path)
      }),

    readArchive: async (ref, path, onData, signal, user) =>
      await faults.run(
        call('readArchive', ref),
        async (gone) => {
          known(user)
          for (const piece of archiveOf(findRunning(ref).files, path)) {
            await untilAborted(gone, async () => await onData(piece))
          }
        },
        signal,
      ),

    writeArchive: async (ref, path, pieces, signal) =>
      await faults.run(
        call('writeArchive', ref),
        async (gone) => {
          const { files } = findRunning(ref)
          const received: Buffer[] = []
          await untilAborted(gone, async () => {
            for await (const piece of pieces) received.push(piece)
          })
          unpackInto(files, path, Buffer.concat(received))
        },
        signal,
      ),
  }
}
