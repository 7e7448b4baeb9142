// The SDKs and the CLI with real containers, as the operator of a new installation uses them: with only the credentials
// file.

import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
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

it('berth cp keeps modes, and the owner, mode and links of what is there, whatever the size', async () => {
  expect(await cli('run', '--name', 'copies', IMAGE)).toMatchObject({ code: 0 })
  const sh = async (script: string) => (await cli('exec', 'copies', 'sh', '-c', script)).stdout
  const local = join(directory, 'tree')
  await mkdir(join(local, 'private'), { recursive: true })
  await chmod(join(local, 'private'), 0o700)
  await symlink('small', join(local, 'link'))
  const long = `${'long-'.repeat(40)}name`
  await writeFile(join(local, 'private', long), 'far')
  for (const [name, bytes] of [
    ['small', 1000],
    ['large', 2_000_000],
  ] as const) {
    const file = join(local, name)
    await writeFile(file, Buffer.alloc(bytes, name))
    await chmod(file, 0o751)
    expect(await cli('cp', file, `copies:/root/${name}`)).toMatchObject({ code: 0, stderr: '' })
    expect(await sh(`stat -c '%a %s' /root/${name}`)).toBe(`751 ${bytes}\n`)
    // Through a link that leads nowhere yet, and into a file with an owner and a mode of its own.
    await sh(`mkdir -p /srv/real; ln -s real/new-${name} /srv/link-${name}; echo old > /srv/${name}
      chmod 604 /srv/${name}; chown 33:44 /srv/${name}; ln -s ${name} /srv/to-${name}`)
    for (const target of [`link-${name}`, `to-${name}`])
      expect(await cli('cp', file, `copies:/srv/${target}`)).toMatchObject({ code: 0, stderr: '' })
    expect(
      await sh(`cd /srv; stat -c '%F %a %s' link-${name} real/new-${name}; stat -c '%a %u:%g %s' ${name}`),
    ).toBe(`symbolic link 777 ${`real/new-${name}`.length}\nregular file 751 ${bytes}\n604 33:44 ${bytes}\n`)
    const back = join(directory, `back-${name}`)
    expect(await cli('cp', `copies:/srv/link-${name}`, back)).toMatchObject({ code: 0, stderr: '' })
    expect((await stat(back)).mode & 0o777).toBe(0o751)
    expect((await readFile(back)).equals(Buffer.alloc(bytes, name))).toBe(true)
    await symlink(back, join(directory, `to-back-${name}`))
    await chmod(back, 0o640)
    expect(await cli('cp', `copies:/root/${name}`, join(directory, `to-back-${name}`))).toMatchObject({
      code: 0,
    })
    expect((await lstat(join(directory, `to-back-${name}`))).isSymbolicLink()).toBe(true)
    expect((await stat(back)).mode & 0o777).toBe(0o640)
  }
  for (const round of [1, 2])
    expect([round, await cli('cp', local, 'copies:/opt')]).toMatchObject([round, { code: 0, stderr: '' }])
  expect(await sh('cd /opt/tree; stat -c "%n %F %a" link private small; readlink link')).toBe(
    'link symbolic link 777\nprivate directory 700\nsmall regular file 751\nsmall\n',
  )
  const out = join(directory, 'out')
  for (const round of [1, 2])
    expect([round, await cli('cp', 'copies:/opt/tree/.', out)]).toMatchObject([
      round,
      { code: 0, stderr: '' },
    ])
  expect(await readlink(join(out, 'link'))).toBe('small')
  expect((await stat(join(out, 'private'))).mode & 0o777).toBe(0o700)
  expect(await readFile(join(out, 'private', long), 'utf8')).toBe('far')
  // A link that an earlier copy brought here is no way out of the folder.
  await sh('cd /opt/tree; rm link; echo planted > link')
  expect(await cli('cp', 'copies:/opt/tree/.', out)).toMatchObject({ code: 1 })
  expect((await readFile(join(out, 'small'))).equals(Buffer.alloc(1000, 'small'))).toBe(true)
  expect(await cli('rm', 'copies')).toMatchObject({ code: 0 })
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
