// Commands and terminals of sandboxes, by the official client, on real units of both classes.

import { type CommandHandle, type CommandResult, CommandExitError, NotFoundError, Sandbox } from 'e2b'
import { beforeAll, describe, expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)

describe.each(['gvisor', 'runc'])('with %s, a sandbox', (isolation) => {
  let sandbox: Sandbox
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    sandbox = await createSandbox(berth)
  })

  const run = async (command: string): Promise<CommandResult> => await sandbox.commands.run(command)

  it('runs a command as its user, in the home of that user', async () => {
    const { stdout, stderr, exitCode } = await run('echo "$(whoami) $(pwd) $HOME"; echo apart >&2')
    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: 'user /home/user /home/user\n',
      stderr: 'apart\n',
      exitCode: 0,
    })
  })

  it('runs a command as root, with an environment and in a directory', async () => {
    const { stdout } = await sandbox.commands.run('echo "$(whoami) $(pwd) $GREETING"', {
      user: 'root',
      cwd: '/var/tmp',
      envs: { GREETING: 'hello there' },
    })
    expect(stdout).toBe('root /var/tmp hello there\n')
  })

  it('has a home that its user can write to, and the tools of an agent', async () => {
    const { stdout } = await run(
      'touch file && git --version && python3 --version && node --version && curl --version',
    )
    expect(stdout).toMatch(/git version[\s\S]*Python 3[\s\S]*v\d+[\s\S]*curl/)
  })

  it('reports a command that fails as an error with its exit code and output', async () => {
    const failed = await run('echo before; exit 3').catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(CommandExitError)
    expect(failed).toMatchObject({ exitCode: 3, stdout: 'before\n' })
  })

  it('refuses a user and a directory that it does not have', async () => {
    await expect(sandbox.commands.run('true', { user: 'stranger' })).rejects.toThrow(/stranger/)
    await expect(sandbox.commands.run('true', { cwd: '/nowhere' })).rejects.toThrow(/nowhere/)
  })

  it('passes the output of a command on while it runs, in its order', async () => {
    const said: string[] = []
    await sandbox.commands.run('for i in 1 2 3; do echo $i; sleep 0.05; done', {
      onStdout: (text) => void said.push(text),
    })
    expect(said.join('')).toBe('1\n2\n3\n')
  })

  it('gives a command the input that is sent to it, until that is closed', async () => {
    const command = await sandbox.commands.run('wc -c', { background: true, stdin: true })
    await sandbox.commands.sendStdin(command.pid, 'x'.repeat(70_000))
    await sandbox.commands.closeStdin(command.pid)
    expect((await command.wait()).stdout.trim()).toBe('70000')
  })

  it('keeps a background command when its client leaves, and lets another attach to it', async () => {
    const started = await sandbox.commands.run('read -r line; echo "heard $line"', {
      background: true,
      stdin: true,
    })
    await started.disconnect()
    const pids = (await sandbox.commands.list()).map(({ pid }) => pid)
    expect(pids).toContain(started.pid)
    const again = await sandbox.commands.connect(started.pid)
    await sandbox.commands.sendStdin(started.pid, 'it\n')
    expect((await again.wait()).stdout).toBe('heard it\n')
  })

  it('tells the process id that the process has inside, and kills by it', async () => {
    const told = Promise.withResolvers<string>()
    const command = await sandbox.commands.run('echo $$; exec sleep 1000', {
      background: true,
      onStdout: told.resolve,
    })
    await told.promise
    expect(await sandbox.commands.kill(command.pid)).toBe(true)
    const failed = await command.wait().catch((error: unknown) => error)
    expect(failed).toMatchObject({ stdout: `${command.pid}\n`, exitCode: -1, error: 'signal: killed' })
    expect(await sandbox.commands.kill(command.pid)).toBe(false)
    expect(await sandbox.commands.kill(999_999)).toBe(false)
  })

  it('ends a command whose time is over', async () => {
    const late = sandbox.commands.run('sleep 1000', { timeoutMs: 1000 })
    await expect(late).rejects.toThrow(/timeout/i)
    await expect.poll(async () => (await sandbox.commands.list()).length).toBe(0)
  })

  it('prints a megabyte and more without a loss', async () => {
    const { stdout } = await run('head -c 3000000 /dev/zero | tr "\\0" x')
    expect(stdout.length).toBe(3_000_000)
  })

  it('has a terminal with a size, which can be changed', async () => {
    let shown = ''
    const terminal: CommandHandle = await sandbox.pty.create({
      cols: 90,
      rows: 20,
      onData: (data) => void (shown += new TextDecoder().decode(data)),
    })
    const type = async (text: string) => {
      await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(text))
    }
    await type('stty size; echo fir""st\n')
    await expect.poll(() => shown).toContain('20 90')
    await expect.poll(() => shown).toContain('first')
    await sandbox.pty.resize(terminal.pid, { cols: 91, rows: 21 })
    await type('stty size; exit\n')
    await expect.poll(() => shown).toContain('21 91')
    expect((await terminal.wait()).exitCode).toBe(0)
  })

  it('keeps a terminal that its client leaves, lets another attach to it, and kills it', async () => {
    const bytes = (text: string) => new TextEncoder().encode(text)
    const size = { cols: 80, rows: 24 }
    const { pid, disconnect } = await sandbox.pty
      .create({ ...size, onData: () => {} })
      .then((terminal) => ({ pid: terminal.pid, disconnect: async () => await terminal.disconnect() }))
    await sandbox.pty.sendInput(pid, bytes('KEPT=kept\n'))
    await disconnect()
    let shown = ''
    const onData = (data: Uint8Array) => void (shown += new TextDecoder().decode(data))
    const again = await sandbox.pty.connect(pid, { onData })
    await sandbox.pty.sendInput(pid, bytes('echo "it is $KEPT"\n'))
    await expect.poll(() => shown).toContain('it is kept')
    expect(await sandbox.pty.kill(pid)).toBe(true)
    await expect(again.wait()).rejects.toThrow(CommandExitError)
    expect(await sandbox.pty.kill(pid)).toBe(false)
    await expect(sandbox.pty.connect(pid, { onData })).rejects.toThrow(NotFoundError)
  })

  it('takes no input as no input, and a command of a hundred thousand characters', async () => {
    const command = await sandbox.commands.run('wc -c', { background: true, stdin: true })
    await command.sendStdin('')
    await command.closeStdin()
    expect((await command.wait()).stdout.trim()).toBe('0')
    expect((await run(`printf %s ${'x'.repeat(100_000)} | wc -c`)).stdout.trim()).toBe('100000')
    expect((await run('echo "$E2B_SANDBOX $E2B_SANDBOX_ID"')).stdout).toBe(`true ${sandbox.sandboxId}\n`)
  })

  it('runs while another client is connected to it by its id', async () => {
    const other = await Sandbox.connect(sandbox.sandboxId, connectionTo(berth))
    expect((await other.commands.run('echo there')).stdout).toBe('there\n')
    expect(await other.isRunning()).toBe(true)
  })

  it('is not found once it was killed', async () => {
    const other = await createSandbox(berth)
    expect(await other.kill()).toBe(true)
    expect(await other.isRunning()).toBe(false)
    await expect(other.commands.run('true')).rejects.toThrow(/not found|not running|timeout/i)
    expect(await Sandbox.kill(other.sandboxId, connectionTo(berth))).toBe(false)
  })
})
