import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'

const module = JSON.stringify(join(import.meta.dirname, 'end-process.ts'))
const BYTES = 1_000_000

function run(script: string) {
  const program = `import { endProcess } from ${module}; ${script}`
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

test('a process that ends has printed all of a long text, whose reader is slow', async () => {
  const child = run(`process.stdout.write('x'.repeat(${BYTES})); await endProcess(3)`)
  let read = 0
  for await (const piece of child.stdout) {
    read += (piece as Buffer).length
    await delay(1)
  }
  expect(read).toBe(BYTES)
})

test('a process ends with its exit code although its reader has gone', async () => {
  const child = run(`process.stdout.write('x'.repeat(${BYTES})); await endProcess(3)`)
  child.stdout.destroy()
  expect((await once(child, 'exit'))[0]).toBe(3)
})
