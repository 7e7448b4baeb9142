import { expect, it, vi } from 'vitest'
import { reapOrphans } from './children.ts'
import { run, startProgram } from './programs.ts'

const limits = { timeoutMs: 60_000 }
const env = { PATH: '/usr/bin:/bin' }

it('a program that has ended keeps its number until its output is closed, also while orphans are reaped', async () => {
  const running = run('sh', ['-c', 'sleep 1 & exit 3'], limits)
  void reapOrphans()
  expect(await running).toMatchObject({ exitCode: 3, timedOut: false })
})

it('a program that has ended and been waited for is sent no signal any more', async () => {
  const program = startProgram('true', [], { env, stdio: [] })
  expect(await program.ended).toEqual({ exitCode: 0, signal: null })
  const kill = vi.spyOn(process, 'kill')
  try {
    program.kill()
    expect(kill).not.toHaveBeenCalled()
  } finally {
    kill.mockRestore()
  }
})

it('a program that runs is killed with its group, and one that was not started has nothing to kill', async () => {
  const program = startProgram('sh', ['-c', 'sleep 60 & wait'], { env, stdio: [] })
  program.kill()
  expect(await program.ended).toEqual({ exitCode: null, signal: 'SIGKILL' })
  const none = startProgram('/nowhere', [], { env, stdio: [] })
  none.kill()
  await expect(none.ended).rejects.toThrow('ENOENT')
})
