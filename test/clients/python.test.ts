// The Python library: its generated files, its types, and its own tests against the real service.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeWheel } from '../../scripts/python-wheel.ts'
import { writtenFiles } from '../../scripts/written-files.ts'
import { project } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { buildWheelByHatchling, hasPythonPackages, pythonPackage, runPython } from '../support/python.ts'
import { type Service, startService } from '../support/service.ts'
import { startUnitPort } from '../support/unit-port.ts'

let service: Service
let unitPort: Awaited<ReturnType<typeof startUnitPort>>
let team: TestTeam
let directory: string
beforeAll(async () => {
  unitPort = await startUnitPort()
  service = await startService(unitPort)
  team = await makeTeam(service)
  service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
  service.engine.onExec(({ argv }) => (argv[0] === 'python3' ? { exitCode: 0, stdout: '42\n' } : null))
  directory = await mkdtemp(join(tmpdir(), 'berth-python-'))
})
afterAll(async () => {
  await service.close()
  unitPort.close()
  await rm(directory, { recursive: true })
})

/** `npm test` installs these packages (scripts/setup.sh); `npm run check` runs without them. */
const itWith = (...packages: string[]) => it.skipIf(!hasPythonPackages(...packages))

it('the generated files of the Python library are up to date; otherwise run npm run gen', async () => {
  const written = Object.entries(writtenFiles()).filter(([path]) => path.startsWith('packages/python/'))
  for (const [path, text] of written) expect(await readFile(join(project, path), 'utf8'), path).toBe(text)
  const there = (await readdir(join(project, 'packages/python/src/berth/_sync'))).filter((name) =>
    name.endsWith('.py'),
  )
  expect(there).toHaveLength(written.length - 1)
})

itWith('httpx', 'pytest')(
  'the Python library passes its own tests against the service',
  { timeout: 300_000 },
  async () => {
    const env = { BERTH_TEST_URL: service.baseUrl, BERTH_TEST_KEY: team.key }
    expect(await runPython(['-m', 'pytest'], { env })).toMatch(/^\d+ passed/m)
  },
)

itWith('mypy')('the Python library passes mypy', { timeout: 300_000 }, async () => {
  expect(await runPython(['-m', 'mypy', '--cache-dir', join(directory, 'mypy')])).toContain('no issues found')
})

itWith('httpx', 'websockets')(
  'the snippets of docs/python.md run in order',
  { timeout: 120_000 },
  async () => {
    const page = await readFile(join(project, 'docs/python.md'), 'utf8')
    const snippets = [...page.matchAll(/^```python\n([^]*?)^```$/gm)].map(([, text = '']) => text)
    expect(snippets.length).toBeGreaterThan(7)
    const cwd = await mkdtemp(join(directory, 'page-'))
    await writeFile(join(cwd, 'page.py'), snippets.join('\n'))
    const env = { BERTH_URL: service.baseUrl, BERTH_API_KEY: team.key, HOME: cwd }
    const stdout = await runPython(['page.py'], { cwd, env })
    expect(stdout).toMatch(/^42\nhttp/)
    for (const line of ['exited 3', 'started', 'Exit(exit_code=0, timed_out=False)', 'gone', 'async 42'])
      expect(stdout).toContain(line)
    const left = await service.call<{ units: { name: string }[] }>('GET', '/v1/units', { key: team.key })
    expect(left.body.units).toEqual([])
  },
)

it('the Python wheel is reproducible and can be imported without an HTTP library', {
  timeout: 120_000,
}, async () => {
  const [first, second] = await Promise.all(
    ['one', 'two'].map(async (name) => await writeWheel(pythonPackage, join(directory, name))),
  )
  expect((await readFile(first ?? '')).equals(await readFile(second ?? ''))).toBe(true)
  const program = 'import sys, berth; print(berth.__file__, "httpx" in sys.modules or "anyio" in sys.modules)'
  expect(await runPython(['-I', '-c', `import sys; sys.path.insert(0, "${first}"); ${program}`])).toBe(
    `${first}/berth/__init__.py False\n`,
  )
})

itWith('hatchling')(
  'the Python wheel has the files and the metadata that hatchling gives it, of whatever version of the format',
  { timeout: 120_000 },
  async () => {
    const own = await writeWheel(pythonPackage, join(directory, 'own'))
    const theirs = await buildWheelByHatchling(join(directory, 'theirs'))
    const program = `import json, sys, zipfile
from email.parser import Parser
def read(path):
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        names = sorted(file.namelist())
        metadata = Parser().parsestr(file.read(next(n for n in names if n.endswith("METADATA"))).decode())
        return names, sorted((k, v.replace('"', "'")) for k, v in metadata.items() if k != "Metadata-Version"), metadata.get_payload().strip()
print(json.dumps([read(path) for path in sys.argv[1:]]))`
    const [ours, expected] = JSON.parse(await runPython(['-I', '-c', program, own, theirs])) as unknown[]
    expect(ours).toEqual(expected)
  },
)
