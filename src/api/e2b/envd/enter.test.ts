import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { limits } from '../../../contract/limits.ts'
import { entering, readEntered } from './enter.ts'

/** What the command prints after the line with its process id. */
function printed(cwd: string, command: string[]): string {
  const [program = '', ...args] = entering(cwd, command)
  const entered = readEntered(execFileSync(program, args), cwd)
  return entered.kind === 'began' ? entered.rest.toString('utf8') : entered.kind
}

it('a command begins in its directory with its arguments as they are', () => {
  const args = ['', ' ', '*', '$HOME', 'a\nb', '"', "'"]
  const shown = printed(tmpdir(), [
    'sh',
    '-c',
    'pwd; for a in "$@"; do printf "<%s>" "$a"; done',
    'sh',
    ...args,
  ])
  expect(shown).toBe(`${tmpdir()}\n${args.map((each) => `<${each}>`).join('')}`)
})

it('an argument as long as the kernel takes arrives whole, beside others', () => {
  const long = `😀${'x'.repeat(limits.execArgvItemBytes - 4)}`
  expect(printed('/', ['printf', '<%s>', '', long, ' '])).toBe(`<><${long}>< >`)
})

it('a directory that is not there is refused', () => {
  expect(printed('/nowhere', ['true'])).toBe('refused')
})
