import { describe, expect, it } from 'vitest'
import { run } from './process.ts'

describe('a program that is run', () => {
  it('is killed at its deadline with all of its group, and what it printed is kept', async () => {
    const script = 'echo begun; sleep 61 & sleep 60'
    const result = await run('sh', ['-c', script], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'begun\n' })
  })

  it('does not hold its caller when one that left its group holds the output', async () => {
    const script = 'setsid sleep 8 & echo ended'
    const result = await run('sh', ['-c', script], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'ended\n' })
  })

  it('is killed when its caller gives up, also before it began', async () => {
    const early = await run('sleep', ['60'], { timeoutMs: 60_000, signal: AbortSignal.abort() })
    expect(early).toMatchObject({ signal: 'SIGKILL', timedOut: false })
    const late = await run('sleep', ['60'], { timeoutMs: 60_000, signal: AbortSignal.timeout(100) })
    expect(late).toMatchObject({ signal: 'SIGKILL', timedOut: false })
  })
})
