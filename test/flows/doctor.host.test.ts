// `npm run doctor` as an operator runs it, on this machine.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { run } from '../../src/lib/process.ts'
import { keepsMemory } from '../support/memory-kept.ts'

let dataDir: string
let said: string

const scratches = async () => (await readdir('/run')).filter((name) => name.startsWith('berth-doctor-'))

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-doctor-data-'))
  const env = { PATH: process.env['PATH'] ?? '', BERTH_DATA_DIR: dataDir }
  said = (await run(process.execPath, ['src/main.ts', 'doctor'], { timeoutMs: 180_000, env })).stdout
}, 200_000)

afterAll(async () => await rm(dataDir, { recursive: true, force: true }))

const lineOf = (check: string) => said.split('\n').find((line) => line.includes(`  ${check}: `)) ?? said

it('doctor says that both classes work, with which programs', () => {
  expect(lineOf('isolation')).toMatch(
    / ok {3}isolation: gvisor works \(runsc \S+, .+\); runc works \(runc .+\)/,
  )
})

it.skipIf(!keepsMemory.gvisor)('doctor says that class gvisor keeps the memory of its units', () => {
  expect(lineOf('memory of units')).toContain('gvisor keeps it')
})

it('doctor says of /dev/kvm what a sandbox that uses it does, and hangs for none', async () => {
  const flags = /^flags\s*:.*$/m.exec(await readFile('/proc/cpuinfo', 'utf8'))?.[0] ?? ''
  const canVirtualize = /\b(?:vmx|svm)\b/.test(flags)
  expect(lineOf('hardware virtualization')).toMatch(
    canVirtualize ? /no \/dev\/kvm|a sandbox/ : /no \/dev\/kvm|a sandbox that uses it fails/,
  )
})

it('doctor leaves no mount, process or directory of its probes', async () => {
  expect(await scratches()).toEqual([])
  expect(await readFile('/proc/self/mounts', 'utf8')).not.toContain('berth-doctor-')
})
