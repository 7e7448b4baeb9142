// The handler of each operation of the engine's socket, in one line each. Requests are already validated
// (protocol.ts).

import { z } from 'zod'
import type { Engine, FileChange } from '../engine.ts'
import type { TerminalInput } from '../terminal.ts'
import { machineDirectory, machinePath } from '../machine-path.ts'
import type { Frame } from './frames.ts'
import { streamedOperations } from './protocol.ts'
import type {
  StreamedOperation,
  StreamedRequest,
  TwoWayOperation,
  TwoWayRequest,
  UnaryAnswer,
  UnaryOperation,
  UnaryRequest,
} from './protocol.ts'
import { terminalMessage } from './shapes.ts'
import type { FrameStream } from './stream.ts'

type UnaryHandlers = {
  [K in UnaryOperation]: (engine: Engine, request: UnaryRequest[K]) => Promise<UnaryAnswer[K]>
}

export const unaryHandlers: UnaryHandlers = {
  capabilities: async (engine) => await engine.capabilities(),
  capacity: async (engine) => await engine.capacity(),
  renew: async (engine, { outcome }) => await engine.renew(outcome),
  pull: async (engine, { reference, waiter }) => await engine.pull(reference, waiter),
  create: async (engine, machine) => await engine.create(machine),
  start: async (engine, { ref, run }) => await engine.start(ref, run),
  stop: async (engine, { ref, graceMs }) => nothing(await engine.stop(ref, graceMs)),
  suspend: async (engine, { ref, graceMs }) => await engine.suspend(ref, graceMs),
  fork: async (engine, { forks }) => await engine.fork(forks),
  freeze: async (engine, { ref }) => nothing(await engine.freeze(ref)),
  thaw: async (engine, { ref }) => nothing(await engine.thaw(ref)),
  destroy: async (engine, { id }) => nothing(await engine.destroy(id)),
  putAside: async (engine, { id }) => nothing(await engine.putAside(id)),
  list: async (engine) => await engine.list(),
  metrics: async (engine, { id }) => await engine.metrics(id),
  startProcess: async (engine, { ref, request }) => await engine.startProcess(ref, request),
  processes: async (engine, { id }) => await engine.processes(id),
  processOutput: async (engine, { id, process, after, maxBytes }) =>
    await engine.processOutput(id, process, after, maxBytes),
  signalProcess: async (engine, { ref, process, signal }) =>
    nothing(await engine.signalProcess(ref, process, signal)),
  writeProcess: async (engine, { ref, process, data, end }) =>
    await engine.writeProcess(ref, process, data, end),
  keepProcessAwake: async (engine, { id, process, until }) =>
    nothing(await engine.keepProcessAwake(id, process, until)),
  forgetProcess: async (engine, { id, process }) => nothing(await engine.forgetProcess(id, process)),
  tasks: async (engine, { ref }) => await engine.tasks(ref),
  signalTask: async (engine, { ref, pid, signal }) => nothing(await engine.signalTask(ref, pid, signal)),
  openLoopback: async (engine, { ref, port }) => await engine.openLoopback(ref, port),
  writeFile: async (engine, { ref, path, content, ...owner }) =>
    await engine.writeFile(ref, machinePath(path), content, owner),
  readFile: async (engine, { ref, path, maxBytes, user }) =>
    await engine.readFile(ref, machinePath(path), maxBytes, user),
  statFile: async (engine, { ref, path, user }) => await engine.statFile(ref, machineDirectory(path), user),
  makeDirectory: async (engine, { ref, path, owner }) =>
    await engine.makeDirectory(ref, machinePath(path), owner),
  moveFile: async (engine, { ref, from, to, user }) =>
    nothing(await engine.moveFile(ref, machinePath(from), machinePath(to), user)),
  listDirectory: async (engine, { ref, path, depth, user }) =>
    await engine.listDirectory(ref, machineDirectory(path), depth, user),
  removeFile: async (engine, { ref, path, recursive }) =>
    nothing(await engine.removeFile(ref, machinePath(path), recursive)),
  logs: async (engine, { id, query }) => await engine.logs(id, query),
  restrict: async (engine, { ref, egress }) => nothing(await engine.restrict(ref, egress)),
  recover: async (engine, { wanted }) => await engine.recover(wanted),
}

type StreamedHandlers = {
  [K in StreamedOperation]: (
    engine: Engine,
    request: StreamedRequest[K],
    stream: FrameStream,
  ) => Promise<void>
}

export const streamedHandlers: StreamedHandlers = {
  exec: async (engine, { ref, request }, stream) => {
    const exit = await engine.exec(
      ref,
      request,
      async ({ stream: name, data }) => await stream.write(name, data),
      stream.gone,
    )
    await stream.write('message', JSON.stringify(exit))
  },
  followLogs: async (engine, { id, after }, stream) => {
    for await (const line of engine.followLogs(id, after, stream.gone)) {
      await stream.write('message', JSON.stringify(line))
    }
  },
  followProcess: async (engine, { id, process, after }, stream) => {
    const { item } = streamedOperations.followProcess
    for await (const piece of engine.followProcess(id, process, after, stream.gone)) {
      await stream.write('message', JSON.stringify(z.encode(item, piece)))
    }
  },
  readArchive: async (engine, { ref, path, user }, stream) => {
    const send = async (data: Buffer) => await stream.write('stdout', data)
    await engine.readArchive(ref, machineDirectory(path), send, stream.gone, user)
    await stream.write('message', 'null')
  },
  watchFiles: async (engine, { ref, path, recursive }, stream) => {
    const told = {
      onBegun: () => stream.push('message', JSON.stringify({ begun: true })),
      onChanges: async (changes: FileChange[]) => await stream.write('message', JSON.stringify(changes)),
    }
    await engine.watchFiles(ref, machineDirectory(path), recursive, told, stream.gone)
    await stream.write('message', 'null')
  },
  sendFile: async (engine, { ref, path, user }, stream) => {
    const onMode = (mode: number) => stream.push('message', JSON.stringify({ mode }))
    const send = async (data: Buffer) => await stream.write('stdout', data)
    await engine.sendFile(ref, machinePath(path), onMode, send, stream.gone, user)
    await stream.write('message', 'null')
  },
  watchExits: async (engine, _request, stream) => {
    // Exits are not awaited: one that cannot be sent ends the stream, and its watcher reconnects.
    await engine.watchExits((status) => stream.push('message', JSON.stringify(status)), stream.gone)
  },
  watchProcesses: async (engine, _request, stream) => {
    await engine.watchProcesses((ended) => stream.push('message', JSON.stringify(ended)), stream.gone)
  },
  watchTraffic: async (engine, _request, stream) => {
    await engine.watchTraffic((ids) => stream.push('message', JSON.stringify(ids)), stream.gone)
  },
  watchEgress: async (engine, _request, stream) => {
    await engine.watchEgress(
      async (lines) => await stream.write('message', JSON.stringify(lines)),
      stream.gone,
    )
  },
  watchPulls: async (engine, _request, stream) => {
    await engine.watchPulls((pulls) => stream.push('message', JSON.stringify(pulls)), stream.gone)
  },
}

type TwoWayHandlers = {
  [K in TwoWayOperation]: (
    engine: Engine,
    request: TwoWayRequest[K],
    input: AsyncIterable<Frame>,
    stream: FrameStream,
  ) => Promise<void>
}

export const twoWayHandlers: TwoWayHandlers = {
  writeArchive: async (engine, { ref, path, keep }, input, stream) => {
    await engine.writeArchive(ref, machineDirectory(path), bytesOf(input), stream.gone, keep)
    await stream.write('message', 'null')
  },
  receiveFile: async (engine, { ref, path, owner }, input, stream) => {
    const written = await engine.receiveFile(ref, machinePath(path), bytesOf(input), owner, stream.gone)
    await stream.write('message', JSON.stringify(written))
  },
  terminal: async (engine, { ref, request, tellPid }, input, stream) => {
    const onBegun = (pid: number) => stream.push('message', JSON.stringify({ pid }))
    const exit = await engine.terminal(
      ref,
      request,
      terminalInputOf(input),
      async ({ stream: name, data }) => await stream.write(name, data),
      stream.gone,
      tellPid ? onBegun : undefined,
    )
    await stream.write('message', JSON.stringify(exit))
  },
}

/** Message frames are what `terminalMessage` says, and nothing else. */
async function* terminalInputOf(input: AsyncIterable<Frame>): AsyncGenerator<TerminalInput> {
  for await (const { type, data } of input) {
    if (type === 'input') yield { kind: 'bytes', data }
    else if (type === 'message') yield terminalMessage.parse(JSON.parse(data.toString('utf8')))
  }
}

async function* bytesOf(input: AsyncIterable<Frame>): AsyncGenerator<Buffer> {
  for await (const { type, data } of input) if (type === 'input') yield data
}

function nothing(_done: void): null {
  return null
}
