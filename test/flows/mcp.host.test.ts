// An agent's first minutes with a new installation, by published MCP clients: list units, create a unit with progress, run
// a command, write a file, read the log, destroy.

import { expect, it } from 'vitest'
import { type McpSession, newEra, oldEra } from '../support/mcp.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()

it.each([
  ['2026', newEra],
  ['2025', oldEra],
])('an MCP client of %s creates a unit, works in it and destroys it', async (era, connect) => {
  const { baseUrl, apiKey } = berth.credentials
  const session: McpSession = await connect({ baseUrl, key: apiKey })
  try {
    expect((await session.call('list_units')).structuredContent).toMatchObject({ units: [] })

    const name = `box-${era}`
    const heard: string[] = []
    const made = await session.call(
      'create_unit',
      {
        name,
        image: 'berth.local/debian:12',
        cmd: ['sh', '-c', 'echo up; sleep infinity'],
        // A healthcheck that takes a while, so that there is progress to report.
        healthcheck: ['sh', '-c', 'test -f /tmp/ready || (sleep 3; touch /tmp/ready; false)'],
        wait_seconds: 300,
      },
      { onProgress: (message) => heard.push(message) },
    )
    expect(made).toMatchObject({
      isError: false,
      structuredContent: {
        units: [{ name, state: 'running' }],
        costLine: expect.stringContaining('an hour'),
      },
    })
    expect(heard.join('\n')).toMatch(/\(\d+ s\)/)

    const ran = await session.call('run_command', {
      unit: name,
      command: 'uname -s; echo to-stderr >&2; exit 3',
    })
    expect(ran.text).toMatch(/^exit 3 [^]*<output \w+>\nLinux\n[^]*<stderr \w+>\nto-stderr\n/)
    const inside = await session.call('run_command', { unit: name, command: 'pwd', cwd: '/var/log' })
    expect(inside.text).toContain('\n/var/log\n')

    const begun = await session.call('run_command', {
      unit: name,
      command: 'read word; sleep 2; echo "$word of $PWD"; exit 4',
      stdin: 'out\n',
      cwd: '/var/log',
      background: true,
    })
    const process = begun.structuredContent?.['process']
    const waited = await session.call('read_process', { unit: name, process, wait_seconds: 45 })
    expect(waited.text).toMatch(/^exit 4 [^]*<output \w+>\nout of \/var\/log\n/)
    const endless = await session.call('run_command', {
      unit: name,
      argv: ['sleep', '999'],
      background: true,
    })
    const ended = { unit: name, process: endless.structuredContent?.['process'] }
    expect(await session.call('signal_process', ended)).toMatchObject({ isError: false })
    expect((await session.call('read_process', { ...ended, wait_seconds: 45 })).text).toMatch(/^exit 143 /)

    await session.call('write_file', { unit: name, path: '/root/a.txt', text: 'one\ntwo\n' })
    const read = await session.call('read_file', { unit: name, path: '/root/a.txt', from_line: 2 })
    expect(read.text).toMatch(/lines 2 to 2 of 2 lines\n<file \w+>\ntwo\n/)
    expect((await session.call('read_logs', { unit: name })).text).toContain(' up\n')

    const gone = await session.call('destroy_unit', { unit: name, confirm: name })
    expect(gone.structuredContent).toMatchObject({ state: 'destroyed' })
    expect((await session.call('read_audit', { limit: 1 })).text).toContain('via mcp by codex')
  } finally {
    await session.close()
  }
})
