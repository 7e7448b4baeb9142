// The script is told to the very shell that a unit's helper is, and what it becomes says what it sees.

import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StandbyCommand, standbyScript } from './standby-script.ts'

const HELPER = '/bin/busybox'
const START = join(import.meta.dirname, `../machine-programs/start-${process.arch}`)
/** Says what it was started with: its arguments from the name on, its environment, its directory, its input. */
const SHOW = `
const { readFileSync } = require('node:fs')
const read = (file) => readFileSync('/proc/self/' + file, 'utf8').split('\\0').slice(0, -1)
const input = readFileSync(0, 'utf8')
console.log(JSON.stringify({ argv: read('cmdline'), env: read('environ'), cwd: process.cwd(), input }))`

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'standby-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const plain = { env: ['PATH=/usr/bin:/bin', 'HOME=/root'], cwd: '/', hasStdin: false }

function run(command: StandbyCommand, input = '') {
  const script = standbyScript(command)
  if (script === null) throw new Error('There is no script for this command.')
  // Its own input is the script, and the command's is the fourth descriptor.
  const fed = `exec 3<<'END_OF_INPUT'\n${input}\nEND_OF_INPUT\n${script.replace('/run/berth/start', START)}`
  return spawnSync(HELPER, ['sh', '-s'], { input: fed, env: { HOME: '/' }, encoding: 'utf8' })
}

function program(name: string, content: string): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  chmodSync(path, 0o755)
  return path
}

describe('the script of a standby', () => {
  test('gives the program exactly the arguments and the environment that were asked for', () => {
    const value = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((text) => !text.includes('\0'))
    const variable = fc.stringMatching(/^[A-Z][A-Z0-9_]{2,8}$/)
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 5, size: 'max' }),
        fc.dictionary(variable, value, { maxKeys: 5 }),
        (args, variables) => {
          const env = Object.entries({ ...variables, PATH: '/usr/bin:/bin' }).map(
            ([name, text]) => `${name}=${text}`,
          )
          const command = { ...plain, argv: [process.execPath, '-e', SHOW, '--', ...args], env }
          fc.pre(standbyScript(command) !== null)
          const seen = JSON.parse(run(command).stdout)
          expect(seen.argv).toEqual(command.argv)
          // HOME is the runtime's: every machine has one.
          expect(seen.env.filter((entry: string) => !entry.startsWith('HOME=')).toSorted()).toEqual(
            env.toSorted(),
          )
        },
      ),
      { numRuns: 40 },
    )
  })

  test('starts the program in its directory, under its own name, with the input of the command', () => {
    const link = program('shown', `#!/bin/sh\nexec "${process.execPath}" -e "$SHOW" -- "$0"\n`)
    const env = [`PATH=${directory}`, `SHOW=${SHOW}`]
    const { stdout } = run({ argv: ['shown'], env, cwd: '/usr', hasStdin: true }, 'one line')
    const seen = JSON.parse(stdout)
    expect(seen).toMatchObject({ cwd: '/usr', input: 'one line\n' })
    expect(seen.argv.at(-1)).toBe(link)
  })

  test('gives the program an empty input if the command has none', () => {
    const { stdout } = run({ ...plain, argv: ['cat'] }, 'not for it')
    expect(stdout).toBe('')
  })

  test.each([
    ['a name that is nowhere in PATH', () => 'no-such-program', 127, 'command not found'],
    ['a path that does not exist', () => '/no/such/program', 127, 'command not found'],
    ['a directory', () => '/usr', 126, 'cannot be executed'],
    ['a file without the right to execute it', () => '/etc/hostname', 126, 'cannot be executed'],
    ['a program without a format', () => program('text', 'echo hi\n'), 126, 'cannot be executed'],
    ['an interpreter that is missing', () => program('lost', '#! /no/such -x\n'), 127, 'command not found'],
  ])('refuses %s as the runtime does', (_, name, code, words) => {
    const argv0 = name()
    const { status, stderr } = run({ ...plain, argv: [argv0] })
    expect({ status, stderr }).toEqual({ status: code, stderr: `${argv0}: ${words}\n` })
  })

  test('refuses a directory that cannot be entered', () => {
    const { status, stderr } = run({ ...plain, argv: ['true'], cwd: '/no/such' })
    expect({ status, stderr }).toEqual({
      status: 126,
      stderr: '/no/such: cannot be the working directory\n',
    })
  })

  test.each([
    ['a variable that the shell has for itself', { env: ['IFS=,'] }],
    ['a variable whose name the shell would drop', { env: ['with-dash=1'] }],
    ['more than a pipe holds', { env: [`LONG=${'x'.repeat(40_000)}`] }],
    ['a command without a name', { argv: [''] }],
    ['a relative directory', { cwd: 'tmp' }],
  ])('does not exist for %s', (_, change) => {
    expect(standbyScript({ ...plain, argv: ['true'], ...change })).toBeNull()
  })
})
