// The code interpreter of a sandbox, at a port of its own: runs as lines of JSON, and contexts.

import { z } from 'zod'
import type { CodeContext, CodeContextList } from '../../../contract/code.ts'
import { notFound } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import { type Body, bodyBytesOf, jsonBody, readBody } from '../../http/body.ts'
import { sendJson } from '../../http/response.ts'
import { isEventStream, whenWritable } from '../../http/sse.ts'
import { runStreamed } from '../run.ts'
import { checkRuns, operate, type SandboxCall } from '../sandbox-call.ts'
import { toLines } from './lines.ts'
import { onceClosed } from '../../http/gone.ts'

/** Where clients expect the interpreter. */
export const CODE_PORT = '49999'
/** Newer clients have no other credential for the calls about contexts. */
export const TRAFFIC_TOKEN = 'e2b-traffic-access-token'

const aliases: Record<string, string> = { js: 'javascript', ts: 'typescript', python3: 'python' }
const language = z
  .string()
  .transform((name) => aliases[name.toLowerCase()] ?? name.toLowerCase())
  .nullish()

const executeBody = jsonBody(
  z.object({
    code: z.string(),
    context_id: z.string().nullish(),
    language,
    env_vars: z.record(z.string(), z.string()).nullish(),
  }),
)
const contextBody = jsonBody(z.object({ language, cwd: z.string().nullish() }), { isOptional: true })

export async function serveCode(call: SandboxCall, path: string): Promise<void> {
  const { request, response } = call
  await checkRuns(call)
  const asked = `${request.method} ${path}`
  if (asked === 'POST /execute') return await execute(call)
  if (asked === 'GET /contexts') {
    const { contexts } = (await operate(call, 'GET /v1/units/{id}/code/contexts', {})) as CodeContextList
    return sendJson(response, 200, contexts.map(toContext))
  }
  if (asked === 'POST /contexts') {
    const { language: named, cwd } = await readValue(call, contextBody)
    const body = { ...(named && { language: named }), ...(cwd && { cwd }) }
    const made = await operate(call, 'POST /v1/units/{id}/code/contexts', { body })
    return sendJson(response, 200, toContext(made as CodeContext))
  }
  const [, contextId = '', change = ''] = /^\/contexts\/([\w-]+)(\/restart|\/interrupt)?$/.exec(path) ?? []
  const isChange = request.method === 'POST' ? change !== '' : request.method === 'DELETE' && change === ''
  if (contextId === '' || !isChange) throw notFound('call', asked)
  const route = `${request.method} /v1/units/{id}/code/contexts/{contextId}${change}`
  await operate(call, route, { params: { contextId } })
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}

async function execute(call: SandboxCall): Promise<void> {
  const { operations, sender, unitId, signal, response } = call
  const asked = await readValue(call, executeBody)
  const body = {
    code: asked.code,
    // The client ends the call when its own time is over, which interrupts the code.
    timeoutMs: limits.codeTimeoutMs,
    ...(asked.language && { language: asked.language }),
    ...(asked.context_id && { context: asked.context_id }),
    ...(asked.env_vars && Object.keys(asked.env_vars).length > 0 && { env: asked.env_vars }),
  }
  const input = { params: { id: unitId }, body }
  const run = { route: 'POST /v1/units/{id}/code', input, signal, wantsStream: true }
  await runStreamed(operations, sender, run, async (stream) => {
    if (!isEventStream(stream)) throw new TypeError('code is answered as events')
    await stream.streamEvents(async (event) => {
      signal.throwIfAborted()
      if (!response.headersSent) {
        response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
        // A client counts the time of the code from here.
        response.flushHeaders()
      }
      for (const line of toLines(event))
        if (!response.write(`${JSON.stringify(line)}\n`)) await whenWritable(response, signal)
    })
  })
  response.end()
}

async function readValue<T>(
  { request, operations, sender, signal, response }: SandboxCall,
  body: Body<T>,
): Promise<T> {
  await operations.admitBody(sender.caller, {
    bodyBytes: bodyBytesOf(request, body),
    signal,
    onceAnswered: (callback) => onceClosed(response, callback),
  })
  return body.parse(await readBody(request, body))
}

function toContext({ id, language: name, cwd }: CodeContext) {
  return { id, language: name, cwd }
}
