// What is inside of a sandbox: its services, its files, and whether it runs.

import { AppError, notFound } from '../../contract/errors.ts'
import type { UnitMetrics } from '../../contract/metrics.ts'
import type { Unit } from '../../contract/unit.ts'
import { bodyBytesOf } from '../http/body.ts'
import { sendJson } from '../http/response.ts'
import { CODE_PORT, serveCode, TRAFFIC_TOKEN } from './code/serve.ts'
import { sampleOf } from './control/metrics.ts'
import { serviceOf } from './envd/describe.ts'
import { processMethods } from './envd/process-methods.ts'
import { processService } from './envd/process-service.ts'
import { createSandboxProcesses } from './envd/processes.ts'
import { serveFiles } from './envd/files.ts'
import { filesystemMethods } from './envd/filesystem-methods.ts'
import { filesystemService } from './envd/filesystem-service.ts'
import { createRpc, MESSAGE_BYTES } from './envd/rpc.ts'
import { asSigned, signerOf } from './envd/signed-url.ts'
import { createSandboxUsers, type SandboxUsers } from './envd/users.ts'
import { SandboxGone } from './errors.ts'
import { orRefused } from './refused.ts'
import {
  type Arrived,
  checkRuns,
  headerOf,
  openSandboxCall,
  operate,
  readHealth,
  type SandboxCall,
} from './sandbox-call.ts'
import { onceClosed } from '../http/gone.ts'

export type SandboxDoor = {
  serve: (arrived: Arrived, path: string, query: URLSearchParams) => Promise<void>
}

/** The port at which clients expect all of this; other ports are those of the sandbox's own servers. */
const DOOR_PORT = '49983'
const ports = [DOOR_PORT, CODE_PORT]

/** PUT: of the files of a build, whose client knows only where to send them. */
const FILE_METHODS = new Set(['GET', 'POST', 'PUT'])

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
      const isSigned = path === '/files' && headerOf(arrived, 'x-access-token') === null
      const signer = isSigned ? await signerOf(app, { sandboxId, method, query }) : null
      const call = await openSandboxCall(arrived, sandboxId, signer).catch((error: unknown) => {
        throw isSigned && !(error instanceof SandboxGone) ? asSigned(error, query) : error
      })
      if (rpc.has(path)) {
        await operations.admitBody(call.sender.caller, {
          bodyBytes: bodyBytesOf(request, { kind: 'json', maxBytes: MESSAGE_BYTES }),
          signal: arrived.signal,
          onceAnswered: (callback) => onceClosed(arrived.response, callback),
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
  if (path === '/files' && FILE_METHODS.has(request.method ?? '')) return await serveFiles(call, users, query)
  if (path === '/health' && request.method === 'GET') {
    await readHealth(call)
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
    return
  }
  const read = reads[path]
  if (read !== undefined && request.method === 'GET') return sendJson(response, 200, await read(call))
  throw notFound('call', `${request.method} ${path}`)
}

/** What a client may read of a sandbox that runs. */
const reads: Record<string, (call: SandboxCall) => Promise<unknown>> = {
  '/metrics': readOwnMetrics,
  '/envs': readEnvs,
}

/** In the names that this service of a sandbox has for them. */
async function readOwnMetrics(call: SandboxCall): Promise<unknown> {
  await checkRuns(call)
  const sample = sampleOf((await operate(call, 'GET /v1/units/{id}/metrics', {})) as UnitMetrics)
  if (sample === null) throw new SandboxGone(call.sandboxId)
  return {
    ts: sample.timestampUnix,
    cpu_count: sample.cpuCount,
    cpu_used_pct: sample.cpuUsedPct,
    mem_total: sample.memTotal,
    mem_used: sample.memUsed,
    mem_cache: sample.memCache,
    disk_used: sample.diskUsed,
    disk_total: sample.diskTotal,
  }
}

/** Without secrets, which the API never shows. */
async function readEnvs(call: SandboxCall): Promise<unknown> {
  await checkRuns(call)
  const { env } = (await operate(call, 'GET /v1/units/{id}', {})) as Unit
  return Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === 'string'))
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
