// The client of the engine, for unprivileged processes: the same interface, over its sockets or TLS. The engine may be
// restarted at any time; calls then fail with `engine_away`, and watchers of exits reconnect by themselves. No call
// is retried here: an exec must not run twice, and for others the caller decides.

import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Engine } from '../engine.ts'
import { EngineError, isEngineError } from '../errors.ts'
import {
  EPOCH_DEADLINE_MS,
  EPOCH_QUESTION,
  issuesOf,
  streamedOperations,
  twoWayOperations,
  unaryOperations,
} from './protocol.ts'
import { epoch as epochSchema } from './schemas.ts'
import type {
  StreamedOperation,
  StreamedRequest,
  TwoWayOperation,
  TwoWayRequest,
  UnaryAnswer,
  UnaryOperation,
  UnaryRequest,
} from './protocol.ts'
import { connectRpc } from './rpc-client.ts'
import { RPC_MAX_BYTES, rpcOperations, type RpcOperation } from './rpc-protocol.ts'
import { askForFrames, askForJson } from './request.ts'
import { type EngineAddress, type EngineTransport, transportTo } from './transport.ts'
import { lastMessage, inputFrames, terminalFrames } from './streamed-calls.ts'

/** Of a start as JSON: a quarter of the longest line, in which a character can take three bytes. */
const QUICK_START_LENGTH = RPC_MAX_BYTES / 4

/** The delay between two attempts to watch exits: as long as an engine takes to restart. */
const WATCH_AGAIN_MS = 250

/** Returns the newest epoch that the engine has seen. */
export async function askEngineEpoch(address: EngineAddress): Promise<number> {
  const transport = transportTo(address)
  const question = { transport, operation: EPOCH_QUESTION, body: '{}', deadlineMs: EPOCH_DEADLINE_MS }
  try {
    return epochSchema.parse(await askForJson(question))
  } finally {
    transport.close()
  }
}

type Connection = {
  address: EngineAddress
  /** The epoch of this server. */
  epoch: number
  /** Called when the engine has seen a later epoch: from then on all calls fail with `stale_caller`. */
  onLost: () => void
}

export function connectEngine({ address, ...caller }: Connection): Engine {
  return callOver(transportTo(address), caller)
}

/** The same for an engine whose host can be away: `cut` ends what is under way. */
export function connectFarEngine({ address, ...caller }: Connection): { engine: Engine; cut: () => void } {
  const transport = transportTo(address)
  return { engine: callOver(transport, caller), cut: () => transport.cut() }
}

function callOver(transport: EngineTransport, { epoch, onLost }: Omit<Connection, 'address'>): Engine {
  const quickly = connectRpc({ transport, epoch })

  async function ask<K extends UnaryOperation>(
    operation: K,
    request: UnaryRequest[K],
  ): Promise<UnaryAnswer[K]> {
    const { request: schema, answer, deadlineMs } = unaryOperations[operation]
    const encoded = encode(schema, request)
    const asked = isQuick(operation, encoded)
      ? quickly(operation, encoded, deadlineMs)
      : askForJson({ transport, operation, body: JSON.stringify(encoded), deadlineMs, epoch })
    return z.parse(answer, await asked.catch(noticeLoss)) as UnaryAnswer[K]
  }

  function noticeLoss(error: unknown): never {
    if (isEngineError(error, 'stale_caller')) onLost()
    throw error
  }

  function stream<K extends StreamedOperation>(
    operation: K,
    request: StreamedRequest[K],
    signal?: AbortSignal,
  ) {
    const body = JSON.stringify(encode(streamedOperations[operation].request, request))
    return askForFrames({ transport, operation, body, signal, epoch })
  }

  function exchange<K extends TwoWayOperation>(
    operation: K,
    request: TwoWayRequest[K],
    input: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ) {
    const body = JSON.stringify(encode(twoWayOperations[operation].request, request))
    return askForFrames({ transport, operation, body, input, signal, epoch })
  }

  async function* items<K extends 'followLogs' | 'followProcess'>(
    operation: K,
    request: StreamedRequest[K],
    signal: AbortSignal,
  ): AsyncGenerator<z.output<(typeof streamedOperations)[K]['item']>> {
    const { item } = streamedOperations[operation]
    try {
      for await (const { data } of stream(operation, request, signal)) {
        yield item.parse(JSON.parse(data.toString('utf8'))) as z.output<
          (typeof streamedOperations)[K]['item']
        >
      }
    } catch (error) {
      // A follower that has stopped does not get an error.
      if (!signal.aborted) throw error
    }
  }

  /** Reconnects across restarts of the engine, until the signal aborts. */
  async function watch(
    operation: 'watchExits' | 'watchProcesses' | 'watchTraffic' | 'watchEgress' | 'watchPulls',
    onItem: (item: unknown) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const untilAway = async () => {
      for await (const { data } of stream(operation, {}, signal))
        await onItem(JSON.parse(data.toString('utf8')))
    }
    while (!signal.aborted) {
      await untilAway().catch(() => {})
      // It ends first of all when the engine is stopped.
      if (operation === 'watchExits' && !signal.aborted) transport.renew()
      await delay(WATCH_AGAIN_MS, undefined, { signal }).catch(() => {})
    }
  }

  return {
    capabilities: async () => await ask('capabilities', {}),
    capacity: async () => await ask('capacity', {}),
    renew: async (outcome) => await ask('renew', { outcome }),
    pull: async (reference, waiter) => await ask('pull', { reference, waiter }),
    create: async (machine) => await ask('create', machine),
    start: async (ref, run) => await ask('start', { ref, run }),
    stop: async (ref, graceMs) => void (await ask('stop', { ref, graceMs })),
    suspend: async (ref, graceMs) => await ask('suspend', { ref, graceMs }),
    fork: async (forks) => await ask('fork', { forks }),
    freeze: async (ref) => void (await ask('freeze', { ref })),
    thaw: async (ref) => void (await ask('thaw', { ref })),
    destroy: async (id) => void (await ask('destroy', { id })),
    putAside: async (id) => void (await ask('putAside', { id })),
    list: async () => await ask('list', {}),
    metrics: async (id) => await ask('metrics', { id }),
    startProcess: async (ref, request) => await ask('startProcess', { ref, request }),
    processes: async (id) => await ask('processes', { id }),
    processOutput: async (id, process, after, maxBytes) =>
      await ask('processOutput', { id, process, after, maxBytes }),
    signalProcess: async (ref, process, signal) =>
      void (await ask('signalProcess', { ref, process, signal })),
    writeProcess: async (ref, process, data, end) => await ask('writeProcess', { ref, process, data, end }),
    keepProcessAwake: async (id, process, until) =>
      void (await ask('keepProcessAwake', { id, process, until })),
    forgetProcess: async (id, process) => void (await ask('forgetProcess', { id, process })),
    tasks: async (ref) => await ask('tasks', { ref }),
    signalTask: async (ref, pid, signal) => void (await ask('signalTask', { ref, pid, signal })),
    openLoopback: async (ref, port) => await ask('openLoopback', { ref, port }),
    writeFile: async (ref, path, content, owner) => await ask('writeFile', { ref, path, content, ...owner }),
    readFile: async (ref, path, maxBytes, user) => await ask('readFile', { ref, path, maxBytes, user }),
    statFile: async (ref, path, user) => await ask('statFile', { ref, path, user }),
    makeDirectory: async (ref, path, owner) => await ask('makeDirectory', { ref, path, owner }),
    moveFile: async (ref, from, to, user) => void (await ask('moveFile', { ref, from, to, user })),
    listDirectory: async (ref, path, depth = 1, user) =>
      await ask('listDirectory', { ref, path, ...(depth > 1 && { depth }), user }),
    removeFile: async (ref, path, recursive) => void (await ask('removeFile', { ref, path, recursive })),
    logs: async (id, query) => await ask('logs', { id, query }),
    restrict: async (ref, egress) => void (await ask('restrict', { ref, egress })),
    recover: async (wanted) => await ask('recover', { wanted }),

    exec: async (ref, request, onOutput, signal) => {
      const frames = stream('exec', { ref, request }, signal)
      const exit = await lastMessage(frames, (type, data) => onOutput({ stream: type, data }))
      if (exit === null) throw new EngineError('engine_away', 'The engine ended before the command did.')
      return streamedOperations.exec.item.parse(exit.said)
    },

    terminal: async (ref, request, input, onOutput, signal, onBegun) => {
      const asked = { ref, request, ...(onBegun && { tellPid: true }) }
      for await (const { type, data } of exchange('terminal', asked, terminalFrames(input), signal)) {
        if (type === 'stdout' || type === 'stderr') await onOutput({ stream: type, data })
        else {
          const said = twoWayOperations.terminal.item.parse(JSON.parse(data.toString('utf8')))
          if (!('pid' in said)) return said
          onBegun?.(said.pid)
        }
      }
      throw new EngineError('engine_away', 'The engine ended before the command did.')
    },

    followLogs: (id, after, signal) => items('followLogs', { id, after }, signal),
    followProcess: (id, process, after, signal) => items('followProcess', { id, process, after }, signal),

    readArchive: async (ref, path, onData, signal, user) => {
      const end = await lastMessage(stream('readArchive', { ref, path, user }, signal), (_type, data) =>
        onData(data),
      )
      if (end === null) throw new EngineError('engine_away', 'The engine ended before the archive did.')
      streamedOperations.readArchive.item.parse(end.said)
    },

    writeArchive: async (ref, path, pieces, signal, keep = false) => {
      const request = { ref, path, keep }
      for await (const { data } of exchange('writeArchive', request, inputFrames(pieces), signal))
        return void twoWayOperations.writeArchive.item.parse(JSON.parse(data.toString('utf8')))
      throw new EngineError('engine_away', 'The engine ended before the archive did.')
    },

    watchFiles: async (ref, path, recursive, { onBegun, onChanges }, signal) => {
      const { item } = streamedOperations.watchFiles
      for await (const { data } of stream('watchFiles', { ref, path, recursive }, signal)) {
        const said = item.parse(JSON.parse(data.toString('utf8')))
        if (said === null) return
        if ('begun' in said) onBegun()
        else await onChanges(said)
      }
      throw new EngineError('engine_away', 'The engine ended while it watched.')
    },

    sendFile: async (ref, path, onMode, onData, signal, user) => {
      for await (const { type, data } of stream('sendFile', { ref, path, user }, signal)) {
        if (type === 'stdout') await onData(data)
        else {
          const said = streamedOperations.sendFile.item.parse(JSON.parse(data.toString('utf8')))
          if (said === null) return
          onMode(said.mode)
        }
      }
      throw new EngineError('engine_away', 'The engine ended before the file did.')
    },

    receiveFile: async (ref, path, pieces, owner, signal) => {
      const request = { ref, path, owner }
      for await (const { data } of exchange('receiveFile', request, inputFrames(pieces), signal))
        return twoWayOperations.receiveFile.item.parse(JSON.parse(data.toString('utf8')))
      throw new EngineError('engine_away', 'The engine ended before the file did.')
    },

    watchExits: async (onExit, signal) =>
      await watch('watchExits', (item) => onExit(streamedOperations.watchExits.item.parse(item)), signal),

    watchProcesses: async (onEnd, signal) =>
      await watch(
        'watchProcesses',
        (item) => onEnd(streamedOperations.watchProcesses.item.parse(item)),
        signal,
      ),

    watchTraffic: async (onTraffic, signal) =>
      await watch(
        'watchTraffic',
        (item) => onTraffic(streamedOperations.watchTraffic.item.parse(item)),
        signal,
      ),

    watchEgress: async (onSeen, signal) =>
      await watch('watchEgress', (item) => onSeen(streamedOperations.watchEgress.item.parse(item)), signal),

    watchPulls: async (onPulls, signal) =>
      await watch('watchPulls', (item) => onPulls(streamedOperations.watchPulls.item.parse(item)), signal),
  }
}

function isQuick(operation: UnaryOperation, request: unknown): operation is RpcOperation {
  if (operation === 'start' && JSON.stringify(request).length > QUICK_START_LENGTH) return false
  return rpcOperations.some((quick) => quick === operation)
}

/** Encodes a request. */
function encode(schema: z.ZodType, request: unknown): unknown {
  const encoded = z.safeEncode(schema, request)
  if (encoded.success) return encoded.data
  throw new EngineError('internal', `The request to the engine is invalid: ${issuesOf(encoded.error)}.`)
}
