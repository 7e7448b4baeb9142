// The systemd unit file that is shipped (deploy/berth.service). What its KillMode means for units is tested where
// Berth is stopped and started beside them (flows/adoption.deep.test.ts).

import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../src/lib/process.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

async function settings(): Promise<Map<string, string>> {
  const text = await readFile(join(project, 'deploy/berth.service'), 'utf8')
  const lines = text.split('\n').filter((line) => /^[A-Z]\w+=/.test(line))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

test('systemd leaves units and their monitors alone when it stops the service', async () => {
  expect((await settings()).get('KillMode')).toBe('process')
})

test('the systemd unit starts existing programs from the documented directory', async () => {
  const unit = await settings()
  const at = unit.get('WorkingDirectory') ?? ''
  expect(await readFile(join(project, 'docs/operating.md'), 'utf8')).toContain(`runs Berth from \`${at}\``)
  for (const command of [unit.get('ExecStartPre'), unit.get('ExecStart')]) {
    const [program = '', script = ''] = command?.split(' ') ?? []
    expect(existsSync(program.replace(at, project)), program).toBe(true)
    expect(existsSync(join(project, script)), script).toBe(true)
  }
})

test('systemd-analyze accepts every line of the systemd unit', async ({ skip }) => {
  if (!existsSync('/usr/bin/systemd-analyze')) skip()
  const directory = await mkdtemp(join(tmpdir(), 'berth-deploy-'))
  try {
    const text = await readFile(join(project, 'deploy/berth.service'), 'utf8')
    await writeFile(
      join(directory, 'berth.service'),
      text.replaceAll('/opt/berth', project.replace(/\/$/, '')),
    )
    const said = await run('systemd-analyze', ['verify', join(directory, 'berth.service')], {
      timeoutMs: 60_000,
    })
    expect(said.stderr.split('\n').filter((line) => line.includes('berth.service'))).toEqual([])
  } finally {
    await rm(directory, { recursive: true })
  }
})
