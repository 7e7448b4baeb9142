// `berth shell` and `berth exec -t` in a real terminal, provided by script(1).

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { runCli, useCli } from '../support/clients.ts'
import { makeUnit } from '../support/make.ts'

const setup = useCli()

const environment = () => ({
  BERTH_URL: setup.service.baseUrl,
  BERTH_API_KEY: setup.team.key,
  HOME: setup.directory,
})

/** Starts the CLI in its own terminal. */
function inTerminal(words: string) {
  const line = `stty cols 90 rows 20; exec '${process.execPath}' '${setup.program}' ${words}`
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', line, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', ...environment() },
  })
  let shown = ''
  child.stdout.on('data', (data: Buffer) => {
    shown += data.toString()
  })
  const ended = once(child, 'close').then(([code]) => code as number)
  return {
    type: (text: string) => child.stdin.write(text),
    shows: async (text: string) => await expect.poll(() => shown, { timeout: 60_000 }).toContain(text),
    ended,
  }
}

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
