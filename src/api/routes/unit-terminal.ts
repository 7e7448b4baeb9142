// GET /v1/units/{id}/exec: an interactive command over a WebSocket (docs/terminal.md).

import { z } from 'zod'
import { type AppError, validation } from '../../contract/errors.ts'
import { terminalFrameSchema, type TerminalQuery, terminalQuerySchema } from '../../contract/terminal.ts'
import { terminalStreams } from '../../contract/terminal.ts'
import { maskCommand, namesOf } from '../../domain/audit/mask.ts'
import { getUnit } from '../../domain/units/get.ts'
import {
  runTerminal,
  type TerminalInput,
  type TerminalLine,
  type TerminalOptions,
} from '../../domain/units/terminal.ts'
import { attachTerminal } from '../../domain/units/terminal-sessions.ts'
import { webSocket, type WebSocketMessage } from '../http/web-socket-answer.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const open = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/exec',
  summary: 'Open a terminal in a unit',
  description:
    'A WebSocket. Each binary frame begins with the number of its stream: 0 is standard input, 1 standard output, 2 ' +
    'standard error (without a terminal). The client sends commands as text: `{"resize":[columns,rows]}`, ' +
    '`{"signal":"INT"}`, `{"eof":true}`, and `{"pause":true}` to receive no output until `{"pause":false}`. The last ' +
    'frame is `{"exit":{"exitCode":0,"timedOut":false}}` or an error object. An error before the WebSocket opens (400, ' +
    '401, 403, 404, 429) is a JSON response; an error that keeps the unit from running is the last frame. Input and ' +
    'output count as use of the unit; an open, silent terminal does not: its unit falls asleep, and the next key wakes ' +
    'it, or gets an error if the run has ended. A session needs the `Origin` of this service. A client that cannot send ' +
    'headers offers the subprotocols `berth.v1` and ' +
    '`base64url.bearer.authorization.berth.<API key in base64url>`.',
  action: 'unit.terminal',
  kind: 'change',
  rate: 'execs',
  query: terminalQuerySchema,
  status: 101,
  response: z.null(),
  errors: [402, 404, 409, 502],
  record: ({ query: { cmd, cwd, env, tty, user, session } }) => ({
    ...(user !== undefined && { user }),
    ...(session !== undefined && { session }),
    tty: tty === '1',
    cmd: cmd ? maskCommand(cmd) : null,
    cwd: cwd ?? null,
    env: namesOf(env ?? {}),
  }),
  handle: async (app, { params, query }, { caller, signal, isUpgrade }) => {
    await getUnit(app, caller, params.id)
    if (!isUpgrade)
      throw validation([
        { path: 'upgrade', message: 'this path takes a WebSocket: send `Upgrade: websocket`' },
      ])
    // The unit is woken behind the handshake: a browser is shown no other answer to one than its success.
    return webSocket(async (peer) => {
      let told: Promise<void> = Promise.resolve()
      const onBegun = (pid: number) => {
        told = peer.sendJson({ pid })
        // A client that is gone gets no output either, which is reported there.
        told.catch(() => {})
      }
      const line: TerminalLine = {
        input: inputOf(peer.messages),
        onOutput: async ({ stream, data }) => {
          await told
          await peer.sendBinary(Buffer.concat([Buffer.from([terminalStreams[stream]]), data]))
        },
        signal,
        ...(query.pid === '1' && { onBegun }),
      }
      const { session: name } = query
      const options = optionsOf(query)
      const exit =
        name === undefined
          ? await runTerminal(app, caller, params.id, options, line)
          : await attachTerminal(app, caller, params.id, { ...options, name }, line)
      await peer.sendJson({ exit })
    })
  },
})

function optionsOf({ tty, cols, rows, cmd, cwd, env, user }: TerminalQuery): TerminalOptions {
  const size = tty === '1' ? { columns: cols, rows } : null
  return { argv: cmd ?? null, cwd: cwd ?? null, env: env ?? {}, size, user }
}

async function* inputOf(messages: AsyncIterable<WebSocketMessage>): AsyncGenerator<TerminalInput> {
  for await (const { isText, data } of messages) {
    if (isText) yield messageOf(data)
    else if (data[0] === terminalStreams.stdin) yield { kind: 'bytes', data: data.subarray(1) }
    else throw malformed()
  }
}

function messageOf(data: Buffer): TerminalInput {
  const parsed = terminalFrameSchema.safeParse(jsonOf(data))
  if (!parsed.success) throw malformed()
  const said = parsed.data
  if ('resize' in said) {
    const [columns, rows] = said.resize
    return { kind: 'resize', size: { columns, rows } }
  }
  return 'signal' in said ? { kind: 'signal', signal: said.signal } : { kind: 'eof' }
}

function jsonOf(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8'))
  } catch {
    return null
  }
}

function malformed(): AppError {
  return validation([
    {
      path: 'frame',
      message:
        'a frame must be bytes that begin with 0, or one of {"resize":[columns,rows]}, {"signal":"INT"}, {"eof":true}',
    },
  ])
}

export const unitTerminalRoutes: readonly Route[] = [open]
