// The example of an agent with the E2B SDK, on a real unit, with a model of the test that speaks chat completions.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import { solve } from '../../examples/e2b/agent.ts'
import { connectionTo } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

type Asked = { messages: { role: string; content: string | null }[] }

const berth = useBerth(null)
let model: Server

/** First a command that fails, then one that works, then what that printed. */
function reply({ messages }: Asked): object {
  const heard = messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '')
  const call = (command: string) => ({
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: `call_${heard.length}`, function: { name: 'run', arguments: JSON.stringify({ command }) } },
    ],
  })
  if (heard.length === 0) return call('echo not here >&2; exit 7')
  if (heard.length === 1) return call('python3 -c "print(sum(range(101)))"')
  return { role: 'assistant', content: `It said "${heard[0]?.trim()}", then ${heard[1]?.trim()}.` }
}

beforeAll(async () => {
  await berth.start({ BERTH_ISOLATION: 'gvisor' })
  // The SDK waits a minute for a sandbox. Its image may take longer to build beside other tests.
  const spec = { name: 'first', image: 'berth.local/base:12' }
  const made = await berth.call<RunResult>('POST', '/v1/units', { spec, waitTimeoutMs: 300_000 })
  expect(made.body.units[0]?.state).toBe('running')
  model = createServer((request, response) => {
    void json(request).then((asked) =>
      response.end(JSON.stringify({ choices: [{ message: reply(asked as Asked) }] })),
    )
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
})
afterAll(() => void model.close())

it('the agent of the example runs commands in a sandbox, sees those that fail, and leaves none', async () => {
  const { apiKey, apiUrl, sandboxUrl } = connectionTo(berth)
  Object.assign(process.env, { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl })
  process.env['E2B_VALIDATE_API_KEY'] = 'false'
  const { port } = model.address() as AddressInfo
  const baseUrl = `http://127.0.0.1:${port}`
  const answer = await solve('What is the sum of the numbers to 100?', {
    baseUrl,
    apiKey: 'none',
    name: 'scripted',
  })
  expect(answer).toBe('It said "exit code 7\nnot here", then 5050.')
  const { body } = await berth.call<{ units: unknown[] }>('GET', '/v1/units?stack=sandboxes')
  expect(body.units).toEqual([])
})
