// An agent of the OpenAI Agents SDK with the scripted model of its testing module, and all that a session can, on real units.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/openai-agents')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('openai-agents', { atLeast: '3.10', extra: 'openai-agents' })

async function told(program: string, argument: string): Promise<unknown> {
  const env = berth.connection
  const stdout = await python.run([join(programs, program), argument], { env })
  return JSON.parse(/^told (.*)$/m.exec(stdout)?.[1] ?? 'null')
}

it('an agent writes and runs programs and types into one, in the unit of the example, which is gone afterwards', async () => {
  expect(await told('run_example.py', join(project, 'examples/openai-agents'))).toEqual([
    'done',
    expect.stringContaining('exited with code 0'),
    expect.stringMatching(/code 3[^]*\/workspace\naaaaaaa\n[^]*cat: none: No such file/),
    expect.stringMatching(/session ID \d+[^]*>>> /),
    expect.stringMatching(/session ID \d+[^]*6 \* 7\s+42\s/),
  ])
  const { body } = await berth.call<{ units: unknown[] }>('GET', '/v1/units')
  expect(body.units).toEqual([])
})

it('a session has bytes, large files, users and a port, and is found again, also from its snapshot', async () => {
  const directory = join(python.directory, 'snapshots')
  await mkdir(directory)
  const files = ['deep', 'given.txt', 'passing.txt', 'secret']
  expect(await told('use_session.py', directory)).toEqual({
    given: 'given',
    bytes: true,
    user: ['nobody', 'blue', '/workspace', ''],
    timeout: true,
    large: true,
    bounded: true,
    missing: true,
    unreadable: true,
    unwritable: true,
    listed: files,
    port: [true, true],
    'no port': true,
    running: true,
    kept: ['sleeping', { by: 'test' }],
    again: [true, 'given'],
    deleted: 'destroyed',
    restored: [false, 3_145_728, files],
  })
})
