import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as ofEngine from '../engine/oci/kernel/programs.ts'
import * as byNode from './process.ts'

const limits = { timeoutMs: 60_000 }

describe.each([
  ['a program that Node starts for run()', byNode],
  ['a program that the engine starts for run()', ofEngine],
])('%s', (_, { run, runOrThrow }) => {
  it('is told of as it ended, with all that it printed', async () => {
    const script = 'echo out; echo err >&2; exit 7'
    const ended = { stdout: 'out\n', stderr: 'err\n', timedOut: false }
    expect(await run('sh', ['-c', script], limits)).toEqual({ exitCode: 7, signal: null, ...ended })
    const killed = await run('sh', ['-c', 'kill -TERM $$'], limits)
    expect(killed).toEqual({ exitCode: null, signal: 'SIGTERM', stdout: '', stderr: '', timedOut: false })
    const failed = runOrThrow('sh', ['-c', script], limits)
    await expect(failed).rejects.toThrow(byNode.ProcessFailed)
    await expect(failed).rejects.toThrow('sh -c ended with 7: err')
    expect(await runOrThrow('echo', ['said'], limits)).toBe('said\n')
  })

  it('has the environment, the directory and the input that it was given, and no others', async () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), 'berth-run-')))
    try {
      const given = { ...limits, env: { PATH: '/usr/bin:/bin', ONE: '1' }, cwd: directory, stdin: 'typed' }
      const script = 'cat; env | grep -vE "^(PWD|SHLVL|_|OLDPWD)=" | sort; pwd'
      const said = ['typedONE=1', 'PATH=/usr/bin:/bin', directory]
      expect((await run('sh', ['-c', script], given)).stdout.trim().split('\n')).toEqual(said)
    } finally {
      rmSync(directory, { recursive: true })
    }
    expect((await run('cat', [], limits)).stdout).toBe('')
  })

  it('gets input that no pipe can hold, and may end without reading it', async () => {
    const stdin = 'x'.repeat(3_000_000)
    expect((await run('wc', ['-c'], { ...limits, stdin })).stdout.trim()).toBe('3000000')
    expect(await run('true', [], { ...limits, stdin })).toMatchObject({ exitCode: 0, timedOut: false })
  })

  it('goes on where it prints more than is kept', async () => {
    const script = 'head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 3'
    const result = await run('sh', ['-c', script], { ...limits, maxOutputBytes: 1000 })
    expect(result).toMatchObject({ exitCode: 3, stdout: '\0'.repeat(1000), stderr: '\0'.repeat(1000) })
  })

  it('is an error if it cannot be started', async () => {
    await expect(run('/nowhere/program', [], limits)).rejects.toThrow('ENOENT')
    await expect(run('no-such-program', [], { ...limits, stdin: 'x' })).rejects.toThrow('ENOENT')
  })

  it('is killed with its process group at its timeout, and its output is kept', async () => {
    const script = 'echo begun; sleep 61 & sleep 60'
    const result = await run('sh', ['-c', script], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'begun\n' })
  })

  it('is killed with what it has left in its process group, if that keeps the output open', async () => {
    // It would be given up, with nothing known of its end.
    const result = await run('sh', ['-c', 'sleep 61 & exit 5'], { timeoutMs: 300 })
    expect(result).toMatchObject({ timedOut: true, exitCode: 5 })
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

it('programs of both kinds that run at once each have their own end', async () => {
  const codes = Array.from({ length: 20 }, (_, index) => index)
  const ended = codes.map((code) =>
    (code % 2 === 0 ? byNode : ofEngine).run('sh', ['-c', `sleep 0.0${code % 7}; exit ${code}`], limits),
  )
  expect((await Promise.all(ended)).map(({ exitCode }) => exitCode)).toEqual(codes)
})
