import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { messageFor } from './wait.ts'

const program = join(import.meta.dirname, `wait-${process.arch}`)

const become = (path: string, args: string[], env: string[] = []) => {
  const input = messageFor({ path, args, env })
  if (input === null) throw new Error('there is no message for it')
  return spawnSync(program, { input, env: { ITS: 'own' }, timeout: 2000 })
}

describe('the program that waits', () => {
  it('becomes the command with exactly its arguments and its environment', () => {
    const odd = ['', "it's", 'two\nlines', '$(id) `id` "', '\u{1f6a2}', 'x'.repeat(5000)]
    const env = ['A=1', 'B.C=\n', 'A=2', 'no value']
    const { stdout } = become('/bin/cat', ['/proc/self/cmdline', '/proc/self/cmdline', ...odd], env)
    expect(stdout.toString().split('\0').slice(0, 8)).toEqual([
      '/proc/self/cmdline',
      '/proc/self/cmdline',
      ...odd,
    ])
    const seen = become('/bin/cat', ['cat', '/proc/self/environ'], env).stdout.toString()
    expect(seen).toBe(`${env.join('\0')}\0`)
  })

  it('leaves it an empty stdin and no other descriptor', () => {
    const script = 'cat; readlink /proc/$$/fd/0; ls /proc/$$/fd'
    const { stdout } = become('/bin/sh', ['sh', '-c', script])
    const direct = spawnSync('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    expect(stdout.toString()).toBe(direct.stdout.toString())
    expect(stdout.toString()).toMatch(/^\/dev\/null\n0\n1\n2\n/)
  })

  it('ends with its engine, and waits on if its command is none', () => {
    expect(spawnSync(program, { input: '', timeout: 2000 })).toMatchObject({ status: 0 })
    expect(become('/nowhere', ['nowhere'])).toMatchObject({ signal: 'SIGTERM' })
  })

  it('has no message for what a pipe does not take at once, or an execve', () => {
    expect(messageFor({ path: '/bin/true', args: ['x'.repeat(70_000)], env: [] })).toBeNull()
    expect(messageFor({ path: '/bin/true', args: ['a\0b'], env: [] })).toBeNull()
  })
})
