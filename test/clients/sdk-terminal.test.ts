// Terminals of the SDK against the real service.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Berth, type Terminal, type Unit } from '../../packages/sdk/src/index.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  const { id } = await makeUnit(service, team)
  unit = await new Berth({ url: service.baseUrl, apiKey: team.key }).units.get(id)
})
afterAll(async () => await service.close())

async function textOf(terminal: Terminal): Promise<{ stdout: string; stderr: string }> {
  const text = { stdout: '', stderr: '' }
  for await (const { stream, bytes } of terminal.output) text[stream] += new TextDecoder().decode(bytes)
  return text
}

describe('a terminal', () => {
  it('of a program that does not know its size has one all the same', async () => {
    const terminal = await unit.terminal({ command: 'true', columns: 0, rows: 0 })
    terminal.resize(0, 0)
    expect(await terminal.wait()).toMatchObject({ exitCode: 0 })
  })

  it('takes input, streams output, can be resized and returns its exit code', async () => {
    const terminal = await unit.terminal({ columns: 70, rows: 7 })
    terminal.write('stty size\r')
    let shown = ''
    for await (const { bytes } of terminal.output) {
      shown += new TextDecoder().decode(bytes)
      if (shown.endsWith('7 70\r\n$ ')) {
        terminal.resize(71, 8)
        terminal.write('stty size\rexit 4\r')
      }
    }
    expect(shown).toContain('8 71')
    expect(await terminal.wait()).toEqual({ exitCode: 4, timedOut: false })
  })

  it('without a TTY has separate stdout and stderr, an environment and an end of input', async () => {
    const terminal = await unit.terminal({
      tty: false,
      command: 'echo $A; echo err >&2',
      env: { A: 'a b=c' },
      cwd: '/tmp',
    })
    expect(await textOf(terminal)).toEqual({ stdout: 'a b=c\n', stderr: 'err\n' })
    const cat = await unit.terminal({ tty: false, command: ['cat'] })
    cat.write(new Uint8Array([0x68, 0x69]))
    cat.end()
    expect(await textOf(cat)).toMatchObject({ stdout: 'hi' })
    expect(await cat.wait()).toMatchObject({ exitCode: 0 })
  })

  it('with a session is attached to again', async () => {
    const first = await unit.terminal({ session: 'main', env: { PLACE: 'harbour' } })
    first.write('echo before\r')
    let shown = ''
    for await (const { bytes } of first.output) {
      shown += new TextDecoder().decode(bytes)
      if (shown.includes('before\r\n')) break
    }
    first.close()
    const again = await unit.terminal({ session: 'main' })
    again.write('echo at the $PLACE\rexit 5\r')
    const { stdout } = await textOf(again)
    expect(stdout).toContain('before\r\n')
    expect(stdout).toContain('at the harbour\r\n')
    expect(await again.wait()).toMatchObject({ exitCode: 5 })
  })

  it('ends by a signal and when its caller aborts', async () => {
    const interrupted = await unit.terminal({ command: ['sleep', '1000'] })
    interrupted.signal('INT')
    expect(await interrupted.wait()).toMatchObject({ exitCode: 130 })
    const caller = new AbortController()
    const aborted = await unit.terminal({ command: ['sleep', '1000'], signal: caller.signal })
    caller.abort(new Error('enough'))
    await expect(aborted.wait()).rejects.toThrow('enough')
  })
})

describe('an error of a terminal', () => {
  it('is thrown with its code, before and after the connection is open', async () => {
    await expect(unit.terminal({ columns: 5000 })).rejects.toMatchObject({ code: 'validation', status: 400 })
    const gone = await makeUnit(service, team)
    const mine = await new Berth({ url: service.baseUrl, apiKey: team.key }).units.get(gone.id)
    await mine.destroy()
    const terminal = await mine.terminal()
    await expect(terminal.wait()).rejects.toMatchObject({ code: 'invalid_state' })
  })
})
