import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { streamFlags } from './process-command.ts'

/** Reads half a gigabyte from a connection, and prints how often V8 has collected its whole heap meanwhile. */
const READS = `
  const { connect, createServer } = require('node:net')
  const { constants, PerformanceObserver } = require('node:perf_hooks')
  let count = 0
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) count += 1
  }).observe({ entryTypes: ['gc'] })
  const piece = Buffer.alloc(1024 * 1024)
  let left = 512
  const server = createServer((socket) => {
    const send = () => {
      while (left > 0) {
        left -= 1
        if (!socket.write(piece)) return socket.once('drain', send)
      }
      socket.end()
    }
    send()
  }).listen(0, '127.0.0.1', () => {
    const reader = connect(server.address().port, '127.0.0.1').resume()
    reader.once('close', () => setTimeout(() => server.close(() => console.log(count)), 100))
  })
`

async function collectionsWith(flags: string[]): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '-e', READS])
  return Number(stdout)
}

test('A process that copies streams does not collect its whole heap for the pieces that it reads', async () => {
  // How much it reads at once, and so keeps, depends on what else the host does.
  await expect.poll(() => collectionsWith([])).toBeGreaterThan(0)
  expect(await collectionsWith(streamFlags)).toBe(0)
})
