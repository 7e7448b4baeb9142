// What is inside of a sandbox: its services, its files, and whether it runs.

import { AppError, notFound } from '../../contract/errors.ts'
import { bodyBytesOf } from '../http/body.ts'
import { CODE_PORT, serveCode, TRAFFIC_TOKEN } from './code/serve.ts'
import { serviceOf } from './envd/describe.ts'
import { processMethods } from './envd/process-methods.ts'
import { processService } from './envd/process-service.ts'
import { createSandboxProcesses } from './envd/processes.ts'
import { serveFiles } from './envd/files.ts'
import { filesystemMethods } from './envd/filesystem-methods.ts'
import { filesystemService } from './envd/filesystem-service.ts'
import { createRpc, MESSAGE_BYTES } from './envd/rpc.ts'
import { signerOf } from './envd/signed-url.ts'
import { createSandboxUsers, type SandboxUsers } from './envd/users.ts'
import { SandboxGone } from './errors.ts'
import { orRefused } from './refused.ts'
import { type Arrived, headerOf, openSandboxCall, readHealth, type SandboxCall } from './sandbox-call.ts'

export type SandboxDoor = {
  serve: (arrived: Arrived, path: string, query: URLSearchParams) => Promise<void>
}

/** The port at which clients expect all of this; other ports are those of the sandbox's own servers. */
const DOOR_PORT = '49983'
const ports = [DOOR_PORT, CODE_PORT]

export function createSandboxDoor(): SandboxDoor {
  const users = createSandboxUsers()
  const processes = createSandboxProcesses(users)
  const rpc = createRpc([
    { service: serviceOf(processService), methods: processMethods(processes) },
    { service: serviceOf(filesystemService), methods: filesystemMethods(users) },
  ])
  return {
    serve: async (arrived, path, query) => {
      const { app, request, operations } = arrived
      const { sandboxId, port } = placeOf(arrived)
      const method = request.method ?? ''
      if (port === CODE_PORT) {
        const call = await openSandboxCall(arrived, sandboxId, headerOf(arrived, TRAFFIC_TOKEN))
        return await orRefused(call, call.sender, async () => await serveCode(call, path))
      }
      const signer = path === '/files' ? await signerOf(app, { sandboxId, method, query }) : null
      const call = await openSandboxCall(arrived, sandboxId, signer)
      if (rpc.has(path)) {
        await operations.admitBody(call.sender.caller, {
          bodyBytes: bodyBytesOf(request, { kind: 'json', maxBytes: MESSAGE_BYTES }),
          signal: arrived.signal,
          onceAnswered: (callback) => void arrived.response.once('close', callback),
        })
        return await rpc.serve(path, call)
      }
      await orRefused(call, call.sender, async () => await serveRest(call, users, path, query))
    },
  }
}

async function serveRest(
  call: SandboxCall,
  users: SandboxUsers,
  path: string,
  query: URLSearchParams,
): Promise<void> {
  const { request, response } = call
  if (path === '/files' && (request.method === 'GET' || request.method === 'POST'))
    return await serveFiles(call, users, query)
  if (path === '/health' && request.method === 'GET') {
    await readHealth(call)
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
    return
  }
  throw notFound('call', `${request.method} ${path}`)
}

function placeOf(arrived: Arrived): { sandboxId: string; port: string } {
  const id = headerOf(arrived, 'e2b-sandbox-id')
  const port = headerOf(arrived, 'e2b-sandbox-port') ?? DOOR_PORT
  if (id === null) throw new AppError('validation', 400, 'Name the sandbox in the header E2b-Sandbox-Id.')
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535)
    throw new AppError('validation', 400, 'The header E2b-Sandbox-Port must be a port from 1 to 65535.')
  if (!ports.includes(port))
    throw new SandboxGone(id.slice(0, 64), `Port ${port} of a sandbox is served at its own host name only`)
  return { sandboxId: id, port }
}
