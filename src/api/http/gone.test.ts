import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { goneWith, onceClosed } from './gone.ts'

/** A response whose caller has left before anything was written. */
async function leftAlone(): Promise<{ response: ServerResponse; signal: AbortSignal }> {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const caller = connect((server.address() as AddressInfo).port, '127.0.0.1')
  caller.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const { signal } = goneWith(response)
  caller.destroy()
  await once(response, 'close')
  return { response, signal }
}

it('what is asked for after the caller left is called at once, so that nothing stays taken', async () => {
  const { response, signal } = await leftAlone()
  expect(signal.aborted).toBe(true)
  let calls = 0
  onceClosed(response, () => {
    calls += 1
  })
  expect(calls).toBe(1)
})
