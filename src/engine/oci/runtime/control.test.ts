import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Answer, connectControl, waitOver } from './control.ts'

let root: string
let servers: Server[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'control-'))
})
afterEach(async () => {
  for (const server of servers) server.close()
  servers = []
  await rm(root, { recursive: true })
})

/** Starts a fake sandbox control socket that runs `answer` for each request; returns the requests it received. */
async function sandbox(answer: (socket: Socket) => void): Promise<string[]> {
  const asked: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      asked.push(data.toString())
      answer(socket)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(join(root, 'runsc-unit.sock'), resolve))
  return asked
}

async function answerTo(answer: (socket: Socket) => void): Promise<Answer> {
  await sandbox(answer)
  const control = await connectControl(root, 'unit')
  if (!control) throw new Error('nobody listens')
  return await control.call('containerManager.WaitPID', {}).finally(control.close)
}

it('the control client identifies the server program and sends WaitPID as JSON', async () => {
  const asked = await sandbox((socket) => socket.write('{"success":true,"err":"","result":256}'))
  const control = await connectControl(root, 'unit')
  const { dev, ino } = await stat(process.execPath)
  expect(control?.program).toEqual({ dev, ino })
  expect(control && (await waitOver(control, 'unit', 7))).toBe(1)
  expect(asked).toEqual(['{"method":"containerManager.WaitPID","arg":{"PID":7,"CID":"unit"}}'])
  control?.close()
})

it('the control client reads a response that arrives in two chunks', async () => {
  const answer = await answerTo((socket) => {
    socket.write('{"success":false,"err":"no}')
    setImmediate(() => socket.write('t so","result":null}'))
  })
  expect(answer).toEqual({ kind: 'refused', complaint: 'no}t so' })
})

it.each([
  ['ends', (socket: Socket) => void socket.end('{"success":true')],
  ['sends a response that never ends', (socket: Socket) => void socket.write('"'.padEnd(1_000_000, 'x'))],
  [
    'sends a response in an endless drip of small chunks',
    (socket: Socket) => {
      const drip = () => void (socket.destroyed || (socket.write('['), setImmediate(drip)))
      drip()
    },
  ],
])('the control client reports a broken connection when the sandbox %s', async (_, answer) => {
  expect(await answerTo(answer)).toEqual({ kind: 'broken' })
})

it.each([
  '[]',
  '{"success":1}',
  '{"success":true}',
  '{"success":true,"result":-1}',
  '{"success":true,"result":1e99}',
])('waitOver returns null for the malformed response %s', async (said) => {
  await sandbox((socket) => socket.write(said))
  const control = await connectControl(root, 'unit')
  expect(control && (await waitOver(control, 'unit', 7))).toBeNull()
  control?.close()
})

it('waitOver returns 128 plus the signal number, as a shell does', async () => {
  await sandbox((socket) => socket.write('{"success":true,"err":"","result":9}'))
  const control = await connectControl(root, 'unit')
  expect(control && (await waitOver(control, 'unit', 7))).toBe(137)
  control?.close()
})

it('connectControl returns null when nothing listens on the socket', async () => {
  expect(await connectControl(root, 'unit')).toBeNull()
})
