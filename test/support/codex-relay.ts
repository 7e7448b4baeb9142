// A registry and a relay of Codex's remote environments: executors register with their key and dial in, harnesses are told that key
// and dial in too, and the relay copies their frames, which it cannot read.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'

const PROFILE = 'noise_hybrid_ik_v1'
const HARNESS_AUTHORIZATION = 'harness-of-this-test'

export type CodexRelay = {
  url: string
  /** What its server does, for one that is reached elsewhere. */
  listener: RequestListener
  onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /** Who may register, and who may connect. */
  keys: { executor: string; harness: string }
  /** Answers the registration of an environment: 200 by default. */
  registerWith: (status: number) => void
  /** Ids of environments whose executor is connected now. */
  connected: () => string[]
  /** Every bearer that was sent, by the last part of the path. */
  bearers: { call: string; bearer: string }[]
  /** All bytes that were copied. */
  copied: () => Buffer
  close: () => Promise<void>
}

type Executor = { key: unknown; registration: string; socket: WebSocket | null; harness: WebSocket | null }

/** @param executorsAt Where executors are to dial in, `wss:`. Default: its own address. */
export async function startCodexRelay(executorsAt?: string): Promise<CodexRelay> {
  const keys = { executor: 'sk-env-of-the-executor', harness: 'sk-of-the-application' }
  const executors = new Map<string, Executor>()
  const bearers: CodexRelay['bearers'] = []
  const copied: Buffer[] = []
  let status = 200
  let registrations = 0
  let base = ''

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, id = '', call = ''] =
      /^\/cloud\/environment\/([\w-]+)\/(\w+)$/.exec(new URL(request.url ?? '', 'http://x').pathname) ?? []
    const bearer = (request.headers.authorization ?? '').replace(/^Bearer /, '')
    bearers.push({ call, bearer })
    const given = JSON.parse(await readBody(request)) as Record<string, unknown>
    const reply = (code: number, body: object) =>
      response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const known = executors.get(id)
    const about = { environment_id: id, security_profile: PROFILE }
    const isExecutor = bearer === keys.executor
    if (call === 'register' && isExecutor && status === 200) {
      const registration = `registration-${(registrations += 1)}`
      executors.set(id, { key: given['executor_public_key'], registration, socket: null, harness: null })
      const url = `${executorsAt ?? base.replace('http', 'ws')}/executor/${id}`
      return void reply(200, { ...about, url, executor_registration_id: registration })
    }
    if (call === 'register') return void reply(isExecutor ? status : 401, { error: { message: 'refused' } })
    if (call === 'connect' && bearer === keys.harness && known)
      return void reply(200, {
        ...about,
        url: `${base.replace('http', 'ws')}/harness/${id}`,
        executor_registration_id: known.registration,
        executor_public_key: known.key,
        harness_key_authorization: HARNESS_AUTHORIZATION,
      })
    if (call === 'validate' && isExecutor)
      return void reply(200, { valid: given['harness_key_authorization'] === HARNESS_AUTHORIZATION })
    reply(call === 'connect' && known ? 401 : 404, { error: { code: 'environment_offline', message: 'no' } })
  }

  const listener: RequestListener = (request, response) => void answer(request, response)
  const server = createServer(listener)
  const sockets = new WebSocketServer({ noServer: true })
  const onUpgrade: CodexRelay['onUpgrade'] = (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (opened) => {
      const [, role, id = ''] = /^\/(executor|harness)\/([\w-]+)$/.exec(request.url ?? '') ?? []
      const executor = executors.get(id)
      if (!executor) return opened.close()
      if (role === 'executor') executor.socket = opened
      else executor.harness = opened
      opened.on('message', (data: Buffer, isBinary) => {
        copied.push(data)
        const other = role === 'executor' ? executor.harness : executor.socket
        if (other?.readyState === WebSocket.OPEN) other.send(data, { binary: isBinary })
      })
    })
  server.on('upgrade', onUpgrade)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: base,
    listener,
    onUpgrade,
    keys,
    registerWith: (next) => void (status = next),
    connected: () =>
      [...executors].flatMap(([id, { socket }]) => (socket?.readyState === WebSocket.OPEN ? [id] : [])),
    bearers,
    copied: () => Buffer.concat(copied),
    close: async () => {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString() || '{}'
}
