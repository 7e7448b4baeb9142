// For whom commands run, and what runs in a machine as it sees it itself.

import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { TerminalInput } from '../../../src/engine/terminal.ts'
import { kindOf, type Suite } from '../suite.ts'

const never = new AbortController().signal

async function* once(...inputs: TerminalInput[]): AsyncGenerator<TerminalInput> {
  yield* inputs
}

/** Of every engine. */
export function userClaims(suite: Suite): void {
  const machine = suite.shared()
  const request = { env: {}, cwd: null, stdin: null, timeoutMs: 20_000 }
  const run = async (argv: string[], user: string) => {
    const said: Buffer[] = []
    const exit = await suite
      .engine()
      .exec(machine(), { ...request, argv, user }, ({ data }) => void said.push(data))
    return { ...exit, said: Buffer.concat(said).toString() }
  }
  const start = async (argv: string[], more = {}) =>
    await suite.engine().startProcess(machine(), {
      id: `process_${randomBytes(6).toString('hex')}`,
      argv,
      shown: argv,
      env: {},
      cwd: null,
      stdin: null,
      keepsAwake: false,
      ...more,
    })

  test('a command runs for the user that was asked for, by name or by number', async () => {
    for (const user of ['daemon', '1']) expect(await run(['id', '-u'], user)).toMatchObject({ said: '1\n' })
    expect(await run(['id', '-u'], 'root')).toMatchObject({ said: '0\n', exitCode: 0 })
  })

  test('a command, a process and a terminal for a user that the machine does not have are refused', async () => {
    expect(await kindOf(run(['true'], 'nobody-of-that-name'))).toBe('unknown_user')
    expect(await kindOf(start(['true'], { user: '4711' }))).toBe('unknown_user')
    const asked = { argv: ['true'], timeoutMs: 20_000, size: null, user: '4711' }
    expect(await kindOf(suite.engine().terminal(machine(), asked, once(), () => {}, never))).toBe(
      'unknown_user',
    )
  })

  test('a process keeps its tag', async () => {
    const { id } = await start(['sleep', 'infinity'], { tag: 'the build' })
    const found = (await suite.engine().processes(machine().id)).find((process) => process.id === id)
    expect(found).toMatchObject({ tag: 'the build', state: 'running' })
    await suite.engine().forgetProcess(machine().id, id)
  })

  test('the pid of an interactive command is told before its output', async () => {
    const heard: string[] = []
    const exit = await suite.engine().terminal(
      machine(),
      { argv: ['echo', 'hello'], timeoutMs: 20_000, size: null },
      once(),
      ({ data }) => void heard.push(data.toString()),
      never,
      (pid) => void heard.push(pid > 1 ? 'a pid' : 'no pid'),
    )
    expect(exit.exitCode).toBe(0)
    expect([heard[0], heard.slice(1).join('')]).toEqual(['a pid', 'hello\n'])
  })

  test('what runs is listed by pid, and a signal ends one of it', async () => {
    const { id, pid } = await start(['sleep', 'infinity'], { tag: 'ended' })
    const listed = async () => (await suite.engine().tasks(machine())).tasks
    expect((await listed()).at(0)).toMatchObject({ pid: 1 })
    const own = (await listed()).find(({ groupId }) => groupId === pid)
    expect(own?.argv.at(-1)).toBe('infinity')
    await suite.engine().signalTask(machine(), own?.pid ?? 0, 'TERM')
    await expect
      .poll(async () => (await suite.engine().processes(machine().id)).find((each) => each.id === id))
      .toMatchObject({ state: 'exited', exitCode: 143 })
    expect(await kindOf(suite.engine().signalTask(machine(), 4_000_000, 'TERM'))).toBe('unknown_process')
  })
}

/** Of an engine with a kernel. */
export function realUserClaims(suite: Suite): void {
  const machine = suite.shared()
  const as = async (user: string, script: string) => {
    const said: Buffer[] = []
    await suite
      .engine()
      .exec(
        machine(),
        { argv: ['sh', '-c', script], user, stdin: null, timeoutMs: 20_000 },
        ({ data }) => void said.push(data),
      )
    return Buffer.concat(said).toString()
  }

  test('a command of a user has that user’s groups and home, and none of root’s rights', async () => {
    expect(await as('daemon', 'id -un; id -gn; echo $HOME')).toBe('daemon\ndaemon\n/usr/sbin\n')
    expect(await as('daemon', 'grep CapEff /proc/self/status')).toMatch(/CapEff:\s+0+\n/)
    expect(await as('daemon', 'touch /root/not-mine 2>&1; echo $?')).toMatch(/\n?1\n$/)
  })

  test('files are read as a user where that is asked for, and not what the user may not read', async () => {
    const ref = machine()
    const never = new AbortController().signal
    await suite.sh(ref, 'mkdir -p /srv/own/hidden && echo all > /srv/own/all && echo root > /srv/own/secret')
    await suite.sh(ref, 'chmod 600 /srv/own/secret; chmod 700 /srv/own/hidden; touch /srv/own/hidden/a')
    const engine = suite.engine()
    const read = async (path: string, user?: string) =>
      (await engine.readFile(ref, path, 100, user)).content.toString()
    const send = async (path: string, user?: string) => {
      const said: Buffer[] = []
      await engine.sendFile(
        ref,
        path,
        () => {},
        (data) => void said.push(data),
        never,
        user,
      )
      return Buffer.concat(said).toString()
    }
    for (const way of [read, send]) {
      expect(await way('/srv/own/all', 'daemon')).toBe('all\n')
      expect(await way('/srv/own/secret')).toBe('root\n')
      expect(await kindOf(way('/srv/own/secret', 'daemon'))).toBe('file_refused')
      expect(await kindOf(way('/srv/own/hidden/a', 'daemon'))).toBe('file_not_found')
      expect(await kindOf(way('/srv/own/all', 'not-there'))).toBe('unknown_user')
    }
    expect((await engine.statFile(ref, '/srv/own/secret', 'daemon')).mode).toBe(0o600)
    expect(await kindOf(engine.statFile(ref, '/srv/own/hidden/a', 'daemon'))).toBe('file_not_found')
    const { entries } = await engine.listDirectory(ref, '/srv/own', 2, 'daemon')
    expect(entries.map(({ name }) => name)).toEqual(['all', 'hidden', 'secret'])
    const archive = async (path: string, user?: string) =>
      await engine.readArchive(ref, path, () => {}, never, user)
    await archive('/srv/own/all', 'daemon')
    expect(await kindOf(archive('/srv/own', 'daemon'))).toBe('file_refused')
  })

  test('a user that is made is known at once', async () => {
    await expect(as('made', 'id -u')).rejects.toMatchObject({ kind: 'unknown_user' })
    await suite.sh(machine(), 'echo made:x:4242:4242::/srv:/bin/sh >> /etc/passwd')
    expect(await as('made', 'id -u; echo $HOME')).toBe('4242\n/srv\n')
    expect(await as('4242', 'id -u')).toBe('4242\n')
  })

  test('the pid that is told is the one that the command has, in a terminal too', async () => {
    for (const size of [null, { columns: 80, rows: 24 }]) {
      const heard: string[] = []
      let told = 0
      await suite.engine().terminal(
        machine(),
        { argv: ['sh', '-c', 'echo $$'], timeoutMs: 20_000, size, user: 'daemon' },
        once(),
        ({ data }) => void heard.push(data.toString()),
        never,
        (pid) => void (told = pid),
      )
      expect(heard.join('').trim()).toBe(String(told))
    }
  })

  test('a command of another user that takes too long ends with all that it has started', async () => {
    const argv = ['sh', '-c', 'sleep 5432 & sleep 5432']
    const asked = { argv, user: 'daemon', stdin: null, timeoutMs: 1000 }
    const exit = await suite.engine().exec(machine(), asked, () => {})
    expect(exit).toMatchObject({ timedOut: true })
    // The script has the number in its own command line.
    const isLeft = 'grep -sqa 543"2" /proc/[0-9]*/cmdline'
    const script = `for i in $(seq 50); do ${isLeft} || { echo none; exit; }; sleep 0.2; done; echo some`
    expect(await as('root', script)).toBe('none\n')
  })

  test('what no call started is listed, and what the engine itself runs is not', async () => {
    await suite.sh(machine(), 'sleep 4321 >/dev/null 2>&1 & true')
    const { tasks } = await suite.engine().tasks(machine())
    const left = tasks.find(({ argv }) => argv.join(' ') === 'sleep 4321')
    expect(left).toMatchObject({ uid: 0, owner: 'root' })
    expect(tasks.every(({ argv }) => !argv[0]?.startsWith('/run/berth/'))).toBe(true)
    await suite.engine().signalTask(machine(), left?.pid ?? 0, 'KILL')
    await expect
      .poll(async () =>
        (await suite.engine().tasks(machine())).tasks.some(
          ({ argv, state }) => argv.join(' ') === 'sleep 4321' && state !== 'Z',
        ),
      )
      .toBe(false)
  })
}
