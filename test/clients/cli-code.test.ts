// `berth code`: code in a unit of the fake engine, whose interpreter says what the test wants.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { runCli, startCli, useCli } from '../support/clients.ts'

const setup = useCli()
let asked: { code?: string; language?: string }[] = []
let said: object[] = []
const env = () => ({
  BERTH_URL: setup.service.baseUrl,
  BERTH_API_KEY: setup.team.key,
  HOME: setup.directory,
})
const berth = async (...args: string[]) => await runCli(setup.program, args, env())

const begin = { type: 'begin', context: 'ctx_1', language: 'python' }
const end = { type: 'end', end: 'done', count: 1, context: 'ctx_1' }
const picture = Buffer.from('a picture')

beforeAll(async () => {
  setup.service.engine.onExec(({ argv, stdin }) => {
    if (!argv[0]?.endsWith('/client')) return null
    asked.push(JSON.parse(String(stdin)) as { code: string })
    return { exitCode: 0, stdout: [begin, ...said].map((event) => `${JSON.stringify(event)}\n`).join('') }
  })
  await berth('run', 'node:22', '--name', 'lab')
})

it('the command prints what code prints and its value, and ends with 0', async () => {
  said = [
    { type: 'stdout', text: 'out\n' },
    { type: 'stderr', text: 'err\n' },
    { type: 'result', data: { 'text/plain': '42' }, main: true },
    end,
  ]
  expect(await berth('code', 'lab', '6 * 7')).toEqual({ code: 0, stdout: 'out\n42\n', stderr: 'err\n' })
  const json = await berth('code', 'lab', '6 * 7', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({ stdout: 'out\n', results: [{ main: true }] })
})

it('the command reads code of standard input, in the language that it names', async () => {
  asked = []
  const cli = startCli(setup.program, ['code', 'lab', '--language', 'bash'], env())
  cli.child.stdin?.end('echo $x')
  expect((await cli.end()).code).toBe(0)
  expect(asked).toMatchObject([{ code: 'echo $x', language: 'bash' }])
  expect(await berth('code', 'lab', '--language', 'cobol', '1')).toMatchObject({ code: 2 })
})

it('the command ends with 1 and the traceback where the code failed, and with 124 where its time was over', async () => {
  said = [{ type: 'error', name: 'ValueError', value: 'bad', traceback: ['line 1', 'ValueError: bad'] }, end]
  expect(await berth('code', 'lab', 'x')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'line 1\nValueError: bad\n',
  })
  said = [{ ...end, end: 'timeout' }]
  expect(await berth('code', 'lab', 'x', '--timeout', '1s')).toMatchObject({ code: 124 })
})

it('the command saves plots as files where it is told', async () => {
  const data = { 'text/plain': '<Figure>', 'image/png': picture.toString('base64') }
  said = [{ type: 'result', data, main: false }, end]
  expect((await berth('code', 'lab', 'plot')).stdout).toBe('<Figure>\n')
  const { stdout } = await berth('code', 'lab', 'plot', '--save', setup.directory)
  expect(stdout).toBe(`${join(setup.directory, 'plot-1.png')}\n`)
  expect(await readFile(stdout.trim())).toEqual(picture)
})
