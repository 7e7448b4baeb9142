// `berth mcp`: connects a program that speaks MCP over stdio with /mcp of the service. Each line becomes one POST;
// the response, whole or streamed, is printed line by line.

import { createInterface } from 'node:readline'
import type { Context } from '../context.ts'
import { note, write } from '../output.ts'

type Message = {
  id?: string | number
  method?: string
  params?: { name?: string; protocolVersion?: string; _meta?: Record<string, unknown> }
}

/** Of the connection: what the service told at its beginning is said with every call. */
type Session = { version: string | null; id: string | null }

const VERSION_META = 'io.modelcontextprotocol/protocolVersion'

export async function mcp(context: Context): Promise<void> {
  const berth = context.berth()
  const session: Session = { version: null, id: null }
  const pending = new Set<Promise<void>>()
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })
  context.signal.addEventListener('abort', () => lines.close())
  for await (const line of lines) {
    if (line.trim() === '') continue
    const message = parsed(line)
    const answered = forward(await berth.authorization(), berth.url, {
      session,
      message,
      line,
      signal: context.signal,
    }).catch(async (error: Error) => await refuse(message, error))
    // What comes first says how the others are sent.
    if (message.method === 'initialize') await answered
    pending.add(answered)
    void answered.finally(() => pending.delete(answered))
  }
  await Promise.all(pending)
}

type Forwarded = { session: Session; message: Message; line: string; signal: AbortSignal }

async function forward(
  authorization: string,
  url: string,
  { session, message, line, signal }: Forwarded,
): Promise<void> {
  const meta = message.params?._meta?.[VERSION_META]
  const version = typeof meta === 'string' ? meta : session.version
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    redirect: 'error',
    signal,
    body: line,
    headers: {
      authorization,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(version === null ? {} : { 'mcp-protocol-version': version }),
      ...(session.id === null ? {} : { 'mcp-session-id': session.id }),
      ...(typeof meta === 'string' && message.method ? { 'mcp-method': message.method } : {}),
      ...(typeof meta === 'string' && message.params?.name ? { 'mcp-name': message.params.name } : {}),
    },
  })
  session.id = response.headers.get('mcp-session-id') ?? session.id
  for await (const text of messagesOf(response)) {
    const answer = parsed(text) as {
      result?: { protocolVersion?: string }
      error?: unknown
      jsonrpc?: string
    }
    if (answer.jsonrpc === undefined)
      throw new Error(`${url}/mcp answered HTTP ${response.status}: ${text.slice(0, 300)}`)
    if (message.method === 'initialize') session.version = answer.result?.protocolVersion ?? null
    await write(`${JSON.stringify(answer)}\n`)
  }
}

async function* messagesOf(response: Response): AsyncGenerator<string> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const text = await response.text()
    if (text.trim() !== '') yield text
    return
  }
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/)
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block.split(/\r?\n/).filter((each) => each.startsWith('data:'))
      if (data.length > 0) yield data.map((each) => each.slice(5).trimStart()).join('\n')
    }
  }
}

function parsed(text: string): Message {
  try {
    return JSON.parse(text) as Message
  } catch {
    return {}
  }
}

/** A request is answered in any case: its program would wait for ever. */
async function refuse({ id }: Message, { message }: Error): Promise<void> {
  note(`error: ${message}`)
  if (id === undefined) return
  await write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_603, message } })}\n`)
}
