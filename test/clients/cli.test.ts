// The CLI run as a process against the real service.

import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli, startCli, useCli } from '../support/clients.ts'
import { makeKey, makeUnit } from '../support/make.ts'

const setup = useCli()

const environment = () => ({
  BERTH_URL: setup.service.baseUrl,
  BERTH_API_KEY: setup.team.key,
  HOME: setup.directory,
})
const berth = async (
  args: string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
) => await runCli(setup.program, args, { ...environment(), ...env }, input)
/** Polls with a long timeout, because a process starts slowly on a busy machine. */
const until = <T>(look: () => T) => expect.poll(look, { timeout: 60_000 })
const unitsThere = async () =>
  (await setup.service.call<{ units: { state: string }[] }>('GET', '/v1/units', { key: setup.team.key })).body
    .units
const jsonOf = async (args: string[]) => JSON.parse((await berth([...args, '--json'])).stdout) as unknown

describe('the CLI', () => {
  it('creates, lists, executes in, forks, stops and removes units', async () => {
    const spec = ['--name', 'first', '--stack', 'shop', '-p', '8080', '-e', 'A=b c']
    const made = await berth(['run', 'node:22', ...spec])
    // A create that takes long tells its stages.
    const stages = expect.stringMatching(/^(?:\d+s creating first: .*\n)*$/) as string
    expect(made).toEqual({ code: 0, stdout: 'first\n', stderr: stages })
    expect((await berth(['ls'])).stdout).toMatch(
      /^NAME\tSTACK\tSTATE.*\nfirst\tshop\trunning\tsmall\t.*node:22\t/,
    )
    expect(await jsonOf(['ls'])).toMatchObject([{ name: 'first', env: { A: 'b c' }, ports: [8080] }])

    expect(await berth(['exec', 'first', 'sh', '-c', 'echo out; echo err >&2; exit 7'])).toEqual({
      code: 7,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    for (const own of [
      ['--json', 'shop/first', '--'],
      ['shop/first', '--json', '--'],
      ['first', '--timeout', '9s', '--json'],
    ]) {
      const { stdout } = await berth(['exec', ...own, 'echo', '-n', 'x', '--json'])
      expect(JSON.parse(stdout)).toMatchObject({ exitCode: 0, stdout: 'x --json' })
    }
    expect((await berth(['exec', 'first', 'echo', 'a', '--', 'b'])).stdout).toBe('a -- b\n')
    expect((await berth(['exec', '-i', 'first', 'cat'], { input: 'größe' })).stdout).toBe('größe')
    expect((await berth(['url', 'first'])).stdout).toMatch(/^https?:\/\/first-/)
    expect((await berth(['sleep', 'first', '2h'])).code).toBe(0)
    expect((await berth(['fork', 'first', '--name', 'second'])).stdout).toBe('second\n')
    expect(await berth(['stop', 'first', 'second'])).toMatchObject({ code: 0, stdout: 'first\nsecond\n' })
    expect((await berth(['start', 'first'])).code).toBe(0)
    const [id] = (await berth(['ls', '-q'])).stdout.split('\n')
    expect(id).toMatch(/^unit_[0-9a-z]+$/)
    expect(await jsonOf(['ls', '-q'])).toMatchObject([{ name: 'second' }, { name: 'first' }])
    expect(await berth(['rm', 'first', 'nobody', 'second'])).toEqual({
      code: 1,
      stdout: 'first\nsecond\n',
      stderr: 'error: There is no unit "nobody".\ntry: berth ls\n',
    })
    expect(await berth(['ls', '-q'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it('keeps, lists, binds and removes secrets, whose value comes from standard input', async () => {
    const set = ['secrets', 'set', 'KEY', '--host', 'api.example.com', '--host', 'b.example.com']
    expect(await berth(set, { input: 'sk-1\n' })).toEqual({ code: 0, stdout: 'KEY\n', stderr: '' })
    expect(await jsonOf(['secrets', 'ls'])).toMatchObject([
      { name: 'KEY', hosts: ['api.example.com', 'b.example.com'], units: 0 },
    ])
    const run = ['run', 'node:22', '--name', 'user', '--secret', 'KEY', '--secret', 'OTHER=KEY']
    expect((await berth(run)).code).toBe(0)
    expect(await jsonOf(['ls'])).toMatchObject([
      { env: { KEY: { teamSecret: 'KEY' }, OTHER: { teamSecret: 'KEY' } } },
    ])
    const shown = await berth(['exec', 'user', 'printenv', 'KEY'])
    expect(shown.stdout).toMatch(/^berth_secret_[0-9a-f]{40}\n$/)
    expect(await berth(['secrets', 'rm', 'KEY'])).toEqual({
      code: 0,
      stdout: 'KEY\n',
      stderr: 'user runs on without it\n',
    })
    expect((await berth(set)).stderr).toContain('Standard input has no value.')
    expect((await berth(['secrets', 'set', 'KEY'], { input: 'x' })).stderr).toContain('--host')
    expect((await berth(['rm', 'user'])).code).toBe(0)
  })

  it('removes a unit of run --rm when its command ends or is interrupted', async () => {
    expect(await berth(['run', '--rm', 'node:22', '--', 'sh', '-c', 'echo 42; exit 3'])).toEqual({
      code: 3,
      stdout: '42\n',
      stderr: '',
    })
    const cli = startCli(
      setup.program,
      ['run', '--rm', 'node:22', 'sh', '-c', 'echo up; sleep infinity'],
      environment(),
    )
    await until(cli.stdout).toBe('up\n')
    cli.child.kill('SIGINT')
    expect((await cli.end()).code).toBe(130)
    const release = setup.service.engine.hang('start')
    const early = startCli(setup.program, ['run', '--rm', 'node:22', 'true'], environment())
    await until(async () => (await unitsThere()).map(({ state }) => state)).toContain('creating')
    early.child.kill('SIGINT')
    release()
    expect((await early.end()).code).toBe(130)
    await until(unitsThere).toEqual([])
  })

  it('says how to remove the unit of a failed create, which --rm removes itself', async () => {
    setup.service.engine.fail('pull', 'image_not_found')
    const kept = await berth(['run', 'docker.io/library/no-such:1'])
    const [unit] = (await setup.service.call<{ units: { id: string }[] }>('GET', '/v1/units', setup.team))
      .body.units
    expect(kept).toMatchObject({ code: 125, stdout: '' })
    expect(kept.stderr).toMatch(/^error: Image "docker\.io\/library\/no-such:1": .*\n/)
    expect(kept.stderr).toContain(`\ntry: berth rm ${unit?.id}, which removes the unit that failed\n`)
    expect((await berth(['rm', unit?.id ?? ''])).code).toBe(0)
    setup.service.engine.fail('pull', 'image_not_found')
    expect(await berth(['run', '--rm', 'docker.io/library/no-such:1', 'true'])).toMatchObject({ code: 125 })
    expect(await unitsThere()).toEqual([])
  })

  it('prints the time of each line with logs -t', async () => {
    const unit = await makeUnit(setup.service, setup.team, {
      cmd: ['sh', '-c', 'echo one; echo two >&2; sleep infinity'],
    })
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
    await until(async () => (await berth(['logs', '-t', unit.name])).stderr).toMatch(
      new RegExp(`^${time} two\n$`),
    )
    expect((await berth(['logs', '--timestamps', unit.name])).stdout).toMatch(new RegExp(`^${time} one\n$`))
    await berth(['rm', unit.name])
  })

  it('copies files to and from a unit', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const [local, copy] = [join(setup.directory, 'with a space.txt'), join(setup.directory, 'copy.txt')]
    await writeFile(local, 'content\n')
    expect(await berth(['cp', local, `${unit.name}:/app/`])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await berth(['cp', `${unit.name}:/app/with a space.txt`, '-'])).stdout).toBe('content\n')
    expect((await berth(['cp', `${unit.name}:/app/with a space.txt`, copy])).code).toBe(0)
    expect(await readFile(copy, 'utf8')).toBe('content\n')
    expect(await berth(['cp', '-', `${unit.name}:/app/stdin`], { input: 'piped' })).toMatchObject({ code: 0 })
    expect(await berth(['cp', join(setup.directory, 'nowhere'), `${unit.name}:/x`])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('nowhere is not there.'),
    })
    await berth(['rm', unit.name])
  })

  it('copies folders to and from a unit, into a folder that is there or as a new one', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const [site, back] = [join(setup.directory, 'site'), join(setup.directory, 'back')]
    await mkdir(join(site, 'deep'), { recursive: true })
    await writeFile(join(site, 'index.html'), 'hello')
    await writeFile(join(site, 'deep', 'a name'), 'x'.repeat(1000))
    expect(await berth(['cp', site, `${unit.name}:/srv`])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await jsonOf(['cp', site, `${unit.name}:/srv/`])).toEqual({ path: '/srv/site', bytes: 1005 })
    expect((await berth(['cp', `${site}/.`, `${unit.name}:/tmp`])).code).toBe(0)
    for (const path of ['/srv', '/srv/site', '/tmp'])
      expect((await berth(['cp', `${unit.name}:${path}/index.html`, '-'])).stdout).toBe('hello')
    expect((await berth(['cp', `${unit.name}:/srv/site`, back])).code).toBe(0)
    expect((await berth(['cp', `${unit.name}:/srv/site`, back])).code).toBe(0)
    expect((await berth(['cp', `${unit.name}:/srv/deep/.`, back])).code).toBe(0)
    for (const path of ['deep/a name', 'site/deep/a name', 'a name'])
      expect(await readFile(join(back, path), 'utf8')).toBe('x'.repeat(1000))
    expect(await berth(['cp', `${unit.name}:/srv`, '-'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('/srv is a folder'),
    })
    expect(await berth(['cp', '-', `${unit.name}:/srv`], { input: 'x' })).toMatchObject({ code: 2 })
    expect(await berth(['cp', '--json', `${unit.name}:/srv/index.html`, '-'])).toMatchObject({ code: 2 })
    await berth(['rm', unit.name])
  })

  it('copies files above 1 MB and leaves the old file in place when a copy is refused', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const [local, copy] = [join(setup.directory, 'large file'), join(setup.directory, 'large copy')]
    const content = randomBytes(5_000_001)
    await writeFile(local, content)
    expect(await berth(['cp', local, `${unit.name}:/app/`])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await berth(['cp', `${unit.name}:/app/large file`, copy, '--json'])).toEqual({
      code: 0,
      stdout: `${JSON.stringify({ path: copy, bytes: content.length })}\n`,
      stderr: '',
    })
    expect(content.equals(await readFile(copy))).toBe(true)
    expect((await berth(['cp', '-', `${unit.name}:/app/in`], { input: 'y'.repeat(2_000_000) })).code).toBe(0)
    expect((await berth(['cp', `${unit.name}:/app/in`, '-'])).stdout).toBe('y'.repeat(2_000_000))
    expect(await berth(['cp', `${unit.name}:/app`, copy])).toMatchObject({ code: 1 })
    setup.service.engine.fail('writeArchive', new Error('the disk is gone'))
    expect(await berth(['cp', local, `${unit.name}:/app/in`])).toMatchObject({ code: 1, stdout: '' })
    const left = await berth(['exec', unit.name, '--', 'sh', '-c', 'test -f /app/in'])
    expect(left.code).toBe(0)
    expect((await berth(['cp', `${unit.name}:/app/in`, '-'])).stdout).toBe('y'.repeat(2_000_000))
    await berth(['rm', unit.name])
  })

  it('completes unit names, and nothing if the service is unreachable', async () => {
    const unit = await makeUnit(setup.service, setup.team, { name: 'completed' })
    expect((await berth(['__complete', '--', 'exec', 'compl'])).stdout).toBe('completed\n')
    expect((await berth(['__complete', '--', 'sta'])).stdout.split('\n').toSorted()).toEqual([
      '',
      'stack',
      'start',
      'stats',
    ])
    expect((await berth(['__complete', '--', 'stack', ''])).stdout).toBe('ls\nfork\nrm\n')
    expect((await berth(['__complete', '--', 'logs', '--fo'])).stdout).toBe('--follow\n')
    const away = { BERTH_URL: 'http://127.0.0.1:9' }
    expect(await berth(['__complete', '--', 'exec', ''], { env: away })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    })
    expect((await berth(['completion', 'bash'])).stdout).toContain('complete -o default -F _berth berth')
    await berth(['rm', unit.id])
  })
})

describe('streaming output', () => {
  it('of logs -f ends quietly when its reader closes the pipe', async () => {
    const unit = await makeUnit(setup.service, setup.team, {
      cmd: ['sh', '-c', 'head -c 1000000 /dev/zero; echo end; sleep infinity'],
    })
    const cli = startCli(setup.program, ['logs', '-f', unit.name], environment())
    cli.child.stdout?.once('data', () => cli.child.stdout?.destroy())
    expect(await cli.end()).toMatchObject({ code: 0, stderr: '' })
    await berth(['rm', unit.name])
  })

  it('of logs -f ends with the run', async () => {
    const unit = await makeUnit(setup.service, setup.team, {
      cmd: ['sh', '-c', 'echo one; echo two >&2; sleep infinity'],
    })
    const cli = startCli(setup.program, ['logs', '-f', unit.name], environment())
    await until(cli.stderr).toBe('two\n')
    setup.service.engine.endProcess(unit.id)
    expect(await cli.end()).toEqual({ code: 0, stdout: 'one\n', stderr: 'two\n' })
    expect((await berth(['logs', '-n', '1', unit.name])).stderr).toBe('two\n')
    await berth(['rm', unit.name])
  })

  it('of events is a sentence for each change, until Ctrl-C', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const cli = startCli(setup.program, ['events'], environment())
    // The stream tells nothing when it is open: something is done until it is seen.
    await expect
      .poll(async () => {
        await berth(['exec', unit.name, '--', 'echo', 'heard'])
        return cli.stdout()
      })
      .toContain(`Z  test key · berth-cli ran a command in ${unit.name} echo heard\n`)
    cli.child.kill('SIGINT')
    expect(await cli.end()).toMatchObject({ code: 130, stderr: '' })
    await berth(['rm', unit.name])
  })

  it('of exec stops when its reader closes the pipe, and Ctrl-C ends the command in the unit', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const endless = startCli(setup.program, ['exec', unit.name, 'yes'], environment())
    endless.child.stdout?.once('data', () => endless.child.stdout?.destroy())
    expect(await endless.end()).toMatchObject({ code: 0, stderr: '' })

    const execs = async () =>
      (
        await setup.service.call<{ events: { action: string; status: number | null }[] }>(
          'GET',
          '/v1/audit?limit=5',
          { key: setup.team.key },
        )
      ).body.events.filter(({ action, status }) => action === 'unit.exec' && status !== null).length
    const before = await execs()
    const cli = startCli(
      setup.program,
      ['exec', unit.name, 'sh', '-c', 'echo up; sleep infinity'],
      environment(),
    )
    await until(cli.stdout).toBe('up\n')
    cli.child.kill('SIGINT')
    expect(await cli.end()).toEqual({ code: 130, stdout: 'up\n', stderr: '' })
    await until(execs).toBeGreaterThan(before)
    await berth(['rm', unit.name])
  })

  it('of exec --timeout ends with exit code 124', async () => {
    const unit = await makeUnit(setup.service, setup.team)
    const running = berth(['exec', '--timeout', '5s', unit.name, 'sleep', 'infinity'])
    await expect
      .poll(() => setup.service.engine.calls.filter(({ operation }) => operation === 'exec').length)
      .toBeGreaterThan(0)
    let code: number | null = null
    void running.then((ended) => (code = ended.code))
    await until(() => {
      setup.service.clock.advance(5000)
      return code
    }).toBe(124)
    await berth(['rm', unit.name])
  })
})

describe('the commands for stacks, recipes, usage and records', () => {
  it('print tables and the JSON of the service', async () => {
    const unit = await makeUnit(setup.service, setup.team, { name: 'shown' })
    setup.service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
    setup.service.engine.onExec(({ argv }) =>
      argv[0] === 'sh' && argv[3] === 'psql' ? { stdout: argv.slice(4).join('|') } : null,
    )
    const made = await berth([
      'recipe',
      'run',
      'postgres',
      '--set',
      'database=shop',
      '--name',
      'shop-db',
      '--stack',
      'store',
    ])
    expect(made.stdout).toMatch(/^shop-db\nDATABASE_URL=postgres:\/\/.*\/shop\nPOSTGRES_PASSWORD=/)
    for (const own of [[], ['--'], ['--timeout', '1m', '--']])
      expect(await berth(['db', 'psql', 'shop-db', ...own, '-c', 'select 1'])).toEqual({
        code: 0,
        stdout: '-c|select 1',
        stderr: '',
      })
    expect(await jsonOf(['db', 'psql', '--json', 'shop-db', '-c', 'select 1', '--'])).toMatchObject({
      stdout: '-c|select 1|--|--json',
    })
    expect((await berth(['recipe', 'show', 'postgres'])).stdout).toContain('DATABASE_URL')
    expect((await berth(['stack', 'fork', 'store', '--into', 'store-try'])).stdout).toBe('store-try\n')
    expect((await berth(['stack', 'ls'])).stdout).toContain('store-try\tshop-db (running)')
    for (const stack of ['store', 'store-try']) expect((await berth(['stack', 'rm', stack])).code).toBe(0)
    expect((await berth(['usage', '--days', '2'])).stdout).toMatch(/^DAY\tCOST\tHOURS RUN\n.*\n.*\nin all /)
    expect(await jsonOf(['quota'])).toMatchObject({ units: { max: expect.any(Number) } })
    expect((await berth(['audit', '-n', '40'])).stdout).toMatch(
      /^WHEN\tWHO\tWHAT\tSTATUS\tCOST\n[^]*\ttest key · berth-cli\tdestroyed the stack [a-z][\w-]*\t200\t/,
    )
    expect((await berth(['keys'])).stdout).toContain('test key')
    expect(await jsonOf(['ps', unit.name])).toEqual([])
    expect(await jsonOf(['stats', unit.name])).toMatchObject([
      { name: unit.name, state: 'running', cpus: expect.any(Number), run: { pids: { limit: 1024 } } },
    ])
    expect((await berth(['stats'])).stdout).toMatch(
      /^NAME\tSTATE\tCPU.*\n.*\trunning\t\d+% of 50%\t24 MiB of 512 MiB\t/,
    )
    expect(await berth(['stats', '-f'])).toMatchObject({ code: 2 })
    await berth(['rm', unit.name])
  })
})

describe('an error is one sentence with a hint', () => {
  it.each<[string, string[], Record<string, string>, number, RegExp]>([
    [
      'no server',
      ['ls'],
      { BERTH_URL: 'http://127.0.0.1:9' },
      1,
      /^error: http:\/\/127\.0\.0\.1:9 cannot be reached: .*\ntry: berth profiles.*\n$/,
    ],
    [
      'a wrong key',
      ['ls'],
      { BERTH_API_KEY: 'berth_live_wrong' },
      4,
      /^error: The service does not know this API key\.\ntry: berth login\n$/,
    ],
    [
      'no sign-in',
      ['ls'],
      { BERTH_API_KEY: '', BERTH_URL: '' },
      4,
      /^error: You are signed in nowhere\.\ntry: berth login .*\n$/,
    ],
    [
      'no URL of a service',
      ['ls', '--url', 'not a url'],
      {},
      4,
      /^error: "not a url" is no URL of a service: .*\ntry: berth login .*\n$/,
    ],
    [
      'no home directory',
      ['login', '--url', 'http://127.0.0.1:9', '--key'],
      { HOME: '' },
      1,
      /^error: There is no home directory .*\ntry: set XDG_CONFIG_HOME.*\n$/,
    ],
    [
      'a home directory that takes no files',
      ['login', '--url', 'http://127.0.0.1:9', '--key'],
      { HOME: '/proc/none' },
      1,
      /^error: \/proc\/none\/.* cannot be written: .*\ntry: set XDG_CONFIG_HOME.*\n$/,
    ],
    ['a key but no home directory', ['quota', '-h'], { HOME: '' }, 0, /^$/],
    ['no unit', ['logs', 'two words'], {}, 1, /^error: There is no unit "two words"\.\ntry: berth ls\n$/],
    [
      'a name with control characters',
      ['rm', 'a\u001b[31mb'],
      {},
      1,
      /^error: There is no unit "a \[31mb"\.\ntry: berth ls\n$/,
    ],
    ['no unit to run in', ['exec', 'nobody', 'true'], {}, 125, /^error: There is no unit "nobody"/],
    ['an unknown command', ['lss'], {}, 2, /^error: There is no command "lss"\.\ntry: berth ls\n$/],
    [
      'an unknown option',
      ['ls', '--al'],
      {},
      2,
      /^error: Unknown option '--al'\. Did you mean --all\?\ntry: berth ls --help\n$/,
    ],
    ['a missing argument', ['exec'], {}, 2, /^error: An argument is missing: berth exec UNIT/],
    ['an invalid timeout', ['exec', '--timeout', 'soon', 'x', 'y'], {}, 2, /^error: "soon" is not a time/],
    [
      'an invalid timeout of a unit to make',
      ['run', 'node:22', '--timeout', 'soon', 'true'],
      {},
      2,
      /^error: "soon" is not a time: .*\ntry: berth run --help\n$/,
    ],
    [
      'an unknown size',
      ['run', 'node:22', '--size', 'huge'],
      {},
      2,
      /^error: The size is one of nano, small, medium, large; "huge" is none of them\ntry: berth run --help\n$/,
    ],
    [
      'what the service refuses of the arguments',
      ['run', 'node:22', '--name', 'Not A Name', '--', 'true'],
      {},
      2,
      /^error: .*name.*\ntry: berth run --help\n$/,
    ],
    ['an unknown option behind the unit', ['exec', 'nobody', '--jsn', '--', 'true'], {}, 2, /'--jsn'/],
    [
      'an unknown profile',
      ['ls', '--profile', 'none'],
      {},
      1,
      /^error: There is no profile "none"\.\ntry: berth profiles\n$/,
    ],
  ])('for %s', async (_what, args, env, code, stderr) => {
    const ended = await berth(args, { env })
    expect(ended.stderr).toMatch(stderr)
    expect(ended.code).toBe(code)
  })

  it('for an expired key and for a reached limit', async () => {
    const expiresAt = new Date(setup.service.clock.now().getTime() - 1000).toISOString()
    const ended = await makeKey(setup.service, { ...setup.team, policy: { expiresAt } })
    expect(await berth(['ls'], { env: { BERTH_API_KEY: ended.secret } })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('try: berth login'),
    })
    const small = await makeKey(setup.service, { ...setup.team, policy: { maxConcurrentUnits: 0 } })
    expect(await berth(['run', 'node:22'], { env: { BERTH_API_KEY: small.secret } })).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/^error: .*\ntry: berth quota\n$/),
    })
  })

  it.each<[string, string[], string]>([
    ['an unknown unit', ['logs', 'nobody', '--json'], 'not_found'],
    ['an unknown unit to run in', ['exec', 'nobody', '--json', '--', 'true'], 'not_found'],
    ['an unknown unit among several', ['stop', '--json', 'nobody'], 'not_found'],
    ['an unknown stack', ['stack', 'rm', '--json', 'nothing'], 'not_found'],
    ['an unknown profile', ['ls', '--json', '--profile', 'none'], 'not_found'],
    ['an unknown size', ['run', '--json', 'node:22', '--size', 'huge'], 'usage'],
    ['an unknown command', ['lss', '--json'], 'usage'],
    ['no service', ['ls', '--json', '--url', 'http://127.0.0.1:9'], 'connection_failed'],
  ])('in JSON with a code if --json is given: %s', async (_what, args, code) => {
    const { stderr } = await berth(args)
    expect(JSON.parse(stderr)).toMatchObject({ error: { message: expect.stringMatching(/./), code } })
  })

  it('in words if --json is for the command in the unit', async () => {
    const { stderr } = await berth(['exec', 'nobody', 'curl', '--json', '{}'])
    expect(stderr).toBe('error: There is no unit "nobody".\ntry: berth ls\n')
  })
})
