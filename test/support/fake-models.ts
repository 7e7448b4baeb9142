// The models of two vendors as their coding agents ask for them: the first answer of a turn is a call of the agent's shell, and
// the second, once that was answered, is text. And a repository of git for those who have its token.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type ModelCall = { host: string; path: string; key: string; body: string }

export type FakeModels = {
  /** Every request that came with a body. */
  calls: ModelCall[]
  /** The command that the model asks the agent's shell for. */
  command: string
  /** Called before the turn's last answer, while the agent waits for it. */
  beforeLast: () => Promise<void>
  answer: RequestListener
}

/** What the turn ends with. */
export const LAST_WORDS = 'that was all of it'

export function createFakeModels(): FakeModels {
  const models: FakeModels = {
    calls: [],
    command: 'true',
    beforeLast: async () => {},
    answer: (request, response) => {
      void readBody(request).then(async (body) => {
        const { host = '', authorization = '', 'x-api-key': key = authorization } = request.headers
        const path = new URL(request.url ?? '', 'http://x').pathname
        models.calls.push({ host, path, key: String(key), body })
        const answers = answersOf[path]
        if (request.method !== 'POST' || answers === undefined) return response.writeHead(404).end('{}')
        const asked = JSON.parse(body) as Asked
        const isLast = answers.isLast(asked)
        if (isLast) await models.beforeLast()
        return send(response, answers.events(isLast ? null : models.command, asked))
      })
    },
  }
  return models
}

type Asked = { model?: string; tools?: { name?: string }[]; messages?: unknown; input?: { type?: string }[] }
type Event = { type: string; [field: string]: unknown }
type Answers = {
  isLast: (asked: Asked) => boolean
  events: (command: string | null, asked: Asked) => Event[]
}

const answersOf: Record<string, Answers> = {
  '/v1/messages': {
    // Claude Code also asks for titles, without tools.
    isLast: ({ messages, tools = [] }) =>
      tools.every(({ name }) => name !== 'Bash') || JSON.stringify(messages).includes('"tool_result"'),
    events: (command, { model = '' }) => [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block:
          command === null
            ? { type: 'text', text: '' }
            : { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} },
      },
      {
        type: 'content_block_delta',
        index: 0,
        delta:
          command === null
            ? { type: 'text_delta', text: LAST_WORDS }
            : { type: 'input_json_delta', partial_json: JSON.stringify({ command, description: 'Try it' }) },
      },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: command === null ? 'end_turn' : 'tool_use', stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ],
  },
  '/v1/responses': {
    isLast: ({ input = [] }) => input.some(({ type = '' }) => type.endsWith('_call_output')),
    events: (command) => [
      { type: 'response.created', response: { id: 'resp_1' } },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item:
          command === null
            ? {
                type: 'message',
                id: 'msg_1',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text: LAST_WORDS, annotations: [] }],
              }
            : {
                type: 'custom_tool_call',
                id: 'ct_1',
                call_id: 'call_1',
                name: 'exec',
                input: `text((await tools.exec_command({ cmd: ${JSON.stringify(command)} })).output)`,
              },
      },
      {
        type: 'response.completed',
        response: {
          id: 'resp_1',
          usage: {
            input_tokens: 1,
            input_tokens_details: null,
            output_tokens: 1,
            output_tokens_details: null,
            total_tokens: 2,
          },
        },
      },
    ],
  },
}

function send(response: ServerResponse, events: Event[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}

/**
 * Serves a repository with one commit at `path`, by the simple protocol of plain files, to those who have the token as the password.
 *
 * @param directory Of the test's own, in which the repository is made.
 */
export async function createFakeRepository(
  directory: string,
  { path, token }: { path: string; token: string },
): Promise<RequestListener> {
  const bare = join(directory, 'repository.git')
  const git = async (...args: string[]) =>
    await run('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args])
  await git('init', '--quiet', '--initial-branch=main', join(directory, 'work'))
  await git('-C', join(directory, 'work'), 'commit', '--quiet', '--allow-empty', '--message=The first commit')
  await git('clone', '--quiet', '--bare', join(directory, 'work'), bare)
  await git('-C', bare, 'update-server-info')
  const expected = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`
  return (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    if (request.headers.authorization !== expected)
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    if (!pathname.startsWith(`${path}/`)) return response.writeHead(404).end()
    void readFile(join(bare, pathname.slice(path.length))).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    )
  }
}
