// `berth shell` and `berth exec -t` in a real terminal, provided by script(1).

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runCli, useCli } from '../support/clients.ts'
import { makeUnit } from '../support/make.ts'

const setup = useCli()

const environment = () => ({
  BERTH_URL: setup.service.baseUrl,
  BERTH_API_KEY: setup.team.key,
  HOME: setup.directory,
})

/** Starts the CLI in its own terminal, which says its modes before and after it. */
function inTerminal(words: string, env: Record<string, string> = {}) {
  const cli = `tty; echo $$; stty cols 90 rows 20; exec '${process.execPath}' '${setup.program}' ${words}`
  const line = 'stty -g; sh -c "$CLI"; code=$?; stty -g; exit $code'
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', line, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', CLI: cli, ...environment(), ...env },
  })
  let shown = ''
  child.stdout.on('data', (data: Buffer) => {
    shown += data.toString()
  })
  const ended = once(child, 'close').then(([code]) => code as number)
  const lines = () => shown.split('\r\n')
  return {
    type: (text: string) => child.stdin.write(text),
    shows: async (text: string) => await expect.poll(() => shown, { timeout: 60_000 }).toContain(text),
    ended,
    pid: () => Number(lines()[2]),
    modesBefore: () => lines()[0],
    modesNow: () => execFileSync('stty', ['-F', lines()[1] ?? '', '-g'], { encoding: 'utf8' }).trim(),
    /** What the CLI printed, and the modes after it. */
    after: () => /^.*\r\n.*\r\n\d+\r\n([^]*?)([0-9a-f:]+)\r\n$/.exec(shown)?.slice(1),
  }
}

/** Of the versions of Node that know no other raw mode than that of the input. */
const OLDER_NODE = `--import data:text/javascript,${encodeURIComponent(`
  import { ReadStream } from 'node:tty'
  const { setRawMode } = ReadStream.prototype
  ReadStream.prototype.setRawMode = function (mode) { return setRawMode.call(this, mode !== false) }`)}`

describe('in a terminal', () => {
  it('berth shell runs a shell in the unit with the terminal’s size and exits with its code', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const shell = inTerminal(`shell ${unit.name}`)
    await shell.shows('$ ')
    shell.type('stty size\r')
    await shell.shows('20 90')
    shell.type('echo wo""rd\r')
    await shell.shows('word')
    shell.type('exit 9\r')
    expect(await shell.ended).toBe(9)
  })

  it('berth exec -it passes Ctrl-C to the command', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const exec = inTerminal(`exec -it ${unit.name} -- cat`)
    exec.type('to and fro\r')
    await exec.shows('to and fro\r\nto and fro')
    exec.type('\x03')
    expect(await exec.ended).toBe(130)
  })

  it.each([
    ['this Node', ''],
    ['an older Node', OLDER_NODE],
  ])(
    'each byte of a unit’s terminal passes as it is, and the modes are put back, with %s',
    async (_which, options) => {
      const unit = await makeUnit(setup.service, setup.team)
      const exec = inTerminal(`exec -it ${unit.name} -- printf '%s\\n' a b`, { NODE_OPTIONS: options })
      expect(await exec.ended).toBe(0)
      expect(exec.after()).toEqual(['a\r\nb\r\n', exec.modesBefore()])
    },
  )

  it.each([
    ['SIGHUP', 129],
    ['SIGTERM', 143],
    ['SIGQUIT', 131],
  ] as const)('%s puts the modes of the terminal back', async (signal, code) => {
    const unit = await makeUnit(setup.service, setup.team)
    const shell = inTerminal(`shell ${unit.name}`)
    await shell.shows('$ ')
    expect(shell.modesNow()).not.toBe(shell.modesBefore())
    process.kill(shell.pid(), signal)
    expect(await shell.ended).toBe(code)
    expect(shell.after()?.[1]).toBe(shell.modesBefore())
  })

  it('a stopped CLI leaves the terminal as it was, and is raw again when it continues', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const shell = inTerminal(`shell ${unit.name}`)
    await shell.shows('$ ')
    const raw = shell.modesNow()
    process.kill(shell.pid(), 'SIGTSTP')
    const state = () => readFileSync(`/proc/${shell.pid()}/stat`, 'utf8').split(' ').at(2)
    await expect.poll(state, { timeout: 60_000 }).toBe('T')
    expect(shell.modesNow()).toBe(shell.modesBefore())
    process.kill(shell.pid(), 'SIGCONT')
    await expect.poll(shell.modesNow, { timeout: 60_000 }).toBe(raw)
    shell.type('exit 0\r')
    expect(await shell.ended).toBe(0)
    expect(shell.after()?.[1]).toBe(shell.modesBefore())
  })

  it('a Node without WebSocket is told which one a terminal needs', async () => {
    const shell = inTerminal('shell web', {
      NODE_OPTIONS: '--no-experimental-websocket',
      NO_COLOR: '1',
    })
    expect(await shell.ended).toBe(125)
    expect(shell.after()?.[0]).toMatch(
      /^error: A terminal needs Node 22 or newer, and this is Node \d+\.\d+\.\d+\.\r\ntry: berth exec web -- CMD…, which works with this one\r\n$/,
    )
  })

  it('an unknown unit is reported like in any other command', async () => {
    const shell = inTerminal('shell nobody')
    await shell.shows('There is no unit "nobody".')
    expect(await shell.ended).toBe(125)
  })
})

it('without a terminal, berth shell says what to run instead', async () => {
  const unit = await makeUnit(setup.service, setup.team)
  expect(await runCli(setup.program, ['shell', unit.name], environment())).toMatchObject({
    code: 125,
    stderr: `error: Standard input and output are no terminal.\ntry: berth exec ${unit.name} -- CMD…\n`,
  })
})
