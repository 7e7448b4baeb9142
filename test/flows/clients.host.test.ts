// The SDKs and the CLI with real containers, as the operator of a new installation uses them: with only the credentials
// file.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Berth } from '../../packages/sdk/src/index.ts'
import { buildCli, type Ended, project, runCli, startCli } from '../support/clients.ts'
import { hasPythonPackages, runPython } from '../support/python.ts'
import { useBerth } from '../support/use-berth.ts'

const service = useBerth()
const IMAGE = 'berth.local/python:3.11'

let directory: string
let program: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-clients-'))
  program = await buildCli(join(directory, 'dist'))
})
afterAll(async () => await rm(directory, { recursive: true }))

const env = () => ({ BERTH_DATA_DIR: service.dataDir, HOME: directory })
const cli = async (...args: string[]): Promise<Ended> => await runCli(program, args, env())

it('the SDK creates a unit, runs code in it, writes a file and forks it', async () => {
  const { baseUrl, apiKey } = service.credentials
  const berth = new Berth({ url: baseUrl, apiKey })
  await using unit = await berth.units.create({ image: IMAGE, waitTimeoutMs: 300_000 })
  expect((await unit.exec(['python3', '-c', 'print(6 * 7)'], { check: true })).stdout).toBe('42\n')
  const word = `it's "$HOME"; a && b`
  expect((await unit.sh`printf %s ${word}`).stdout).toBe(word)
  await unit.files.write('/app/a.txt', 'kept')
  await using copy = await unit.fork()
  expect(await copy.files.readText('/app/a.txt')).toBe('kept')
})

it('the CLI runs a file in a unit, and Ctrl-C ends the command in the unit', async () => {
  await writeFile(join(directory, 'hello.py'), 'print("hello")\n')
  expect(await cli('run', '--name', 'box', IMAGE)).toMatchObject({ code: 0, stdout: 'box\n' })
  expect(await cli('cp', join(directory, 'hello.py'), 'box:/root/hello.py')).toMatchObject({ code: 0 })
  expect(await cli('exec', 'box', 'python3', '/root/hello.py')).toEqual({
    code: 0,
    stdout: 'hello\n',
    stderr: '',
  })
  const running = startCli(program, ['exec', 'box', 'sh', '-c', 'echo up; exec sleep 4321'], env())
  await expect.poll(running.stdout, { timeout: 60_000 }).toBe('up\n')
  running.child.kill('SIGINT')
  expect((await running.end()).code).toBe(130)
  const find = 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "sleep 432[1]"'
  await expect
    .poll(async () => (await cli('exec', 'box', 'sh', '-c', find)).stdout, { timeout: 60_000 })
    .toBe('0\n')
  expect(await cli('rm', 'box')).toMatchObject({ code: 0 })
})

it.skipIf(!hasPythonPackages('httpx', 'websockets'))(
  'the first snippet of the Python page runs unchanged, and a terminal in Python takes what is typed',
  async () => {
    const page = await readFile(join(project, 'docs/python.md'), 'utf8')
    const snippet = /^```python\n([^]*?)^```$/m.exec(page)?.[1] ?? ''
    const ran = await runPython(['-c', snippet], { env: env() })
    expect(ran).toMatch(/^42\nhttps?:\/\/\S+\n<h1>Hello<\/h1>\n$/)
    const typed = `
from berth import Berth
with Berth() as berth, berth.units.create("${IMAGE}") as unit, unit.terminal(columns=70, rows=7) as terminal:
    terminal.write("stty size; exit 3\\r")
    print("".join(piece.text for piece in terminal), terminal.wait().exit_code)
`
    expect(await runPython(['-c', typed], { env: env() })).toMatch(/7 70\r\n[^]* 3\n$/)
  },
)
