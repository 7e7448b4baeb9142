// What people type who know docker, or mistype; and commands that look at units or change their state.

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { runCli, useCli } from '../support/clients.ts'

const setup = useCli()

const berth = async (args: string[], env: Record<string, string> = {}) =>
  await runCli(setup.program, args, {
    BERTH_URL: setup.service.baseUrl,
    BERTH_API_KEY: setup.team.key,
    HOME: setup.directory,
    ...env,
  })

const stateOf = async (name: string) => {
  const { stdout } = await berth(['inspect', name])
  return (JSON.parse(stdout) as { state: string }[])[0]?.state
}

describe('commands that change the state of a unit', () => {
  it('put it to sleep now with its window as it is, wake it, restart it, and start it after a stop', async () => {
    await berth(['run', 'node:22', '--name', 'life', '--sleep', '2h'])
    expect(await berth(['sleep', 'life', '--now'])).toEqual({ code: 0, stdout: '', stderr: '' })
    const { stdout } = await berth(['inspect', 'life'])
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'life', state: 'sleeping', sleep: '2h' }])
    expect(await berth(['wake', 'life'])).toEqual({ code: 0, stdout: 'life\n', stderr: '' })
    expect(await stateOf('life')).toBe('running')
    expect(await berth(['restart', 'life'])).toMatchObject({ code: 0, stdout: 'life\n' })
    expect(await stateOf('life')).toBe('running')
    await berth(['stop', 'life'])
    expect(await berth(['wake', 'life'])).toMatchObject({
      code: 1,
      stderr: 'error: Unit "life" is stopped, not asleep.\ntry: berth start life\n',
    })
    expect(await berth(['restart', 'life'])).toMatchObject({ code: 0 })
    expect(await stateOf('life')).toBe('running')
  })

  it('name a command of the CLI as the way out where the service names a call', async () => {
    await berth(['run', 'node:22', '--name', 'halted'])
    await berth(['stop', 'halted'])
    const { code, stderr } = await berth(['exec', 'halted', 'true'])
    expect(code).toBe(125)
    expect(stderr).toMatch(/^error: .*`berth start unit_\w+`.*\ntry: berth start unit_\w+\n$/)
    expect(stderr).not.toMatch(/POST|\/v1\//)
  })
})

describe('words of the command line', () => {
  it('take options of every command also before its name', async () => {
    await berth(['run', 'node:22', '--name', 'led'])
    const { code, stdout } = await berth(['--json', '--url', setup.service.baseUrl, 'inspect', 'led'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'led' }])
    expect(await berth(['--json', 'exec', 'led', '--', 'echo', '--json'])).toMatchObject({
      stdout: expect.stringContaining('"stdout":"--json\\n"'),
    })
    expect(await berth(['--json', 'lss'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no command \\"lss\\".'),
    })
    expect(await berth(['--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Usage: berth'),
    })
  })

  it('that name several units get a hint how to name one', async () => {
    await berth(['run', 'node:22', '--name', 'same', '--stack', 'one'])
    await berth(['run', 'node:22', '--name', 'same', '--stack', 'other'])
    const { code, stderr } = await berth(['stop', 'same'])
    expect(code).toBe(2)
    expect(stderr).toMatch(
      /^error: Several stacks have a unit "same".*\ntry: berth ls, then STACK\/same or the id\n$/,
    )
    expect(await berth(['stop', 'other/same'])).toMatchObject({ code: 0 })
  })
})

describe('habits of docker', () => {
  it('logs --process shows what run -d started, and logs says how where the unit itself printed nothing', async () => {
    await berth(['run', '-d', '--name', 'job', 'node:22', '--', 'sh', '-c', 'echo one; echo two >&2'])
    const { stdout, stderr } = await berth(['logs', 'job'])
    const id = /\ntry: berth logs --process (\w+) job\n$/.exec(stderr)?.[1] ?? ''
    expect([stdout, id]).toEqual(['', expect.stringMatching(/./)])
    const printed = { code: 0, stdout: 'one\n', stderr: 'two\n' }
    expect(await berth(['logs', '-f', '--process', id, 'job'])).toEqual(printed)
    expect(await berth(['logs', '--process', id, 'job'])).toEqual(printed)
    expect(await berth(['logs', '--process', id, '--since', '5m', 'job'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--since is for the output of the unit'),
    })
  })

  it('run -d starts the command in the background, and rm -f destroys and passes over what is not there', async () => {
    expect(await berth(['run', '-d', '--name', 'server', 'node:22', '--', 'sleep', '60'])).toEqual({
      code: 0,
      stdout: 'server\n',
      stderr: '',
    })
    expect((await berth(['ps', 'server'])).stdout).toMatch(/\trunning\t-\t.*\tsleep 60\n/)
    const [id = ''] = /proc_\w+/.exec((await berth(['ps', 'server'])).stdout) ?? []
    const until = await berth(['keep-awake', 'server', id, '30m'])
    expect(until).toMatchObject({ code: 0, stderr: '' })
    expect(Date.parse(until.stdout.trim())).toBeGreaterThan(setup.service.clock.now().getTime() + 29 * 60_000)
    expect((await berth(['keep-awake', 'server', id, '5h'])).code).toBe(2)
    expect(await berth(['rm', '-f', 'server', 'nobody'])).toEqual({ code: 0, stdout: 'server\n', stderr: '' })
  })

  it('logs take --tail, a duration for --since, and -t', async () => {
    await berth(['run', 'node:22', '--name', 'talker'])
    for (const asked of [
      ['--tail', '5'],
      ['--tail', 'all'],
      ['--since', '5m'],
      ['-t', '--since', '1d'],
    ])
      expect(await berth(['logs', ...asked, 'talker'])).toMatchObject({ code: 0, stderr: '' })
    expect(await berth(['logs', '--since', 'yesterday', 'talker'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('write 5m, 2h or 1d') as string,
    })
  })

  it('cp takes -r and -a', async () => {
    await writeFile(join(setup.directory, 'a.txt'), 'a')
    expect(await berth(['cp', '-r', join(setup.directory, 'a.txt'), 'talker:/root/a.txt'])).toMatchObject({
      code: 0,
    })
    expect((await berth(['cp', '-a', 'talker:/root/a.txt', '-'])).stdout).toBe('a')
  })

  it.each<[string[], number, RegExp]>([
    [['run', '-p', '8080:80', 'node:22'], 2, /ports are not mapped.*\ntry: --port 80, then berth url UNIT\n/],
    [
      ['run', '-d', '--rm', 'node:22', 'true'],
      2,
      /-d and --rm exclude each other\ntry: berth run -d --time-to-live/,
    ],
    [['run', '-it', 'node:22'], 125, /are no terminal\.\ntry: berth run -- CMD/],
    [['images'], 2, /try: berth run IMAGE: an image is pulled or built when a unit needs it\n/],
    [['kill', 'x'], 2, /try: berth stop UNIT, or berth rm UNIT\n/],
    [['ps'], 2, /An argument is missing: berth ps UNIT\ntry: berth ls, or berth ps UNIT\n/],
    [['ps', '-a'], 2, /try: berth ls --all\n/],
    [['run', '-v', '/data:/data', 'node:22'], 2, /Unknown option '-v'\ntry: --volume PATH:GB/],
    [['run', '--cpus', '2', 'node:22'], 2, /try: --size small: nano, small, medium or large\n/],
    [['run', '--restart=always', 'node:22'], 2, /try: berth start UNIT/],
    [['rm', '-rf', 'web'], 2, /try: berth rm -f UNIT: a unit goes with its disk\n/],
    [['up'], 2, /There is no command "up"\.\ntry: berth run IMAGE --stack NAME/],
    [['volume', 'ls'], 2, /try: berth run --volume PATH:GB IMAGE/],
    [['help', 'frob'], 2, /There is no command "frob"\.\ntry: berth help\n/],
    [['man', 'run'], 2, /"run" is one argument too many: berth man\n/],
    [['sleep', 'web'], 2, /try: berth sleep web 30m, or berth sleep web --now\n/],
  ])('%j gets a hint', async (args, code, stderr) => {
    const ended = await berth(args)
    expect(ended.stderr).toMatch(stderr)
    expect(ended.code).toBe(code)
  })
})

describe('what is mistyped', () => {
  it.each<[string[], RegExp]>([
    [['lgos', 'web'], /^error: There is no command "lgos"\.\ntry: berth logs\n$/],
    [['stpo', 'web'], /\ntry: berth stop\n$/],
    [['ls', '--quite'], /^error: Unknown option '--quite'\. Did you mean --quiet\?\n/],
    [['logs', 'talkre'], /^error: There is no unit "talkre"\. Did you mean "talker"\?\ntry: berth ls\n$/],
    [['run', 'node:22', '--size', 'big'], /The size is one of nano, small, medium, large/],
  ])('%j is told what was meant', async (args, stderr) => {
    expect((await berth(args)).stderr).toMatch(stderr)
  })

  it('does not look for what is meant among words that are far away', async () => {
    expect((await berth(['frobnicate'])).stderr).toBe(
      'error: There is no command "frobnicate".\ntry: berth help\n',
    )
  })
})

describe('what a person asks of the CLI itself', () => {
  it('whoami says the service, the credential and its limits', async () => {
    const { stdout } = await berth(['whoami'])
    expect(stdout).toContain(`service\t${setup.service.baseUrl}\nsigned in by\tBERTH_API_KEY\n`)
    const { stdout: json } = await berth(['whoami', '--json'])
    expect(JSON.parse(json)).toMatchObject({ url: setup.service.baseUrl, by: 'BERTH_API_KEY', profile: null })
  })

  it('man has every command, and man(1) reads it without a warning', async () => {
    const { stdout } = await berth(['man'])
    const file = join(setup.directory, 'berth.1')
    await writeFile(file, stdout)
    for (const name of ['inspect', 'restart', 'egress log']) expect(stdout).toContain(`.SS berth ${name} `)
    const page = await promisify(execFile)('man', [
      '--warnings',
      '-E',
      'UTF-8',
      '-P',
      'cat',
      '-l',
      file,
    ]).catch((error: NodeJS.ErrnoException) => {
      // A machine without man has nothing to read it with.
      if (error.code === 'ENOENT') return null
      throw error
    })
    if (page !== null)
      expect(page).toMatchObject({ stderr: '', stdout: expect.stringContaining('berth run IMAGE') })
  })
})
