import { describe, expect, it } from 'vitest'
import { run } from './process.ts'

describe('a program started by run()', () => {
  it('is killed with its process group at its timeout, and its output is kept', async () => {
    const script = 'echo begun; sleep 61 & sleep 60'
    const result = await run('sh', ['-c', script], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'begun\n' })
  })

  it('does not block the caller when a process outside its group keeps the output open', async () => {
    const script = 'setsid sleep 8 & echo ended'
    const result = await run('sh', ['-c', script], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'ended\n' })
  })

  it('is killed when its signal aborts, also if that was before the start', async () => {
    const early = await run('sleep', ['60'], { timeoutMs: 60_000, signal: AbortSignal.abort() })
    expect(early).toMatchObject({ signal: 'SIGKILL', timedOut: false })
    const late = await run('sleep', ['60'], { timeoutMs: 60_000, signal: AbortSignal.timeout(100) })
    expect(late).toMatchObject({ signal: 'SIGKILL', timedOut: false })
  })
})
