// What a process in the jails of skopeo and umoci can reach, as stated in the header of jail.ts.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Jail, jailCommand, runJailed } from '../../src/engine/oci/images/jail.ts'
import { getAccount } from '../../src/lib/system-users.ts'
import { run } from '../../src/lib/process.ts'

let directory: string
let fetchJail: Jail

beforeAll(async () => {
  directory = await mkdtemp('/var/tmp/berth-jail-')
  await writeFile(join(directory, 'secret'), 'secret')
  fetchJail = {
    program: 'fetch',
    args: [],
    readOnly: {},
    writable: {},
    account: await getAccount('berth-images'),
    maxFileBytes: 1024 * 1024,
    maxCpuS: 60,
  }
})

afterAll(async () => {
  await rm(directory, { recursive: true })
})

async function inFetchJail(script: string): Promise<string> {
  const jail = { ...fetchJail, args: ['bash', '-c', script] }
  const signal = new AbortController().signal
  const result = await runJailed(jail, { timeoutMs: 20_000, maxOutputBytes: 65_536, signal })
  return result.stdout.trim()
}

/** The unpack jail starts our own program, so the command line is changed to run bash instead. */
async function inUnpackJail(script: string): Promise<string> {
  const jail: Jail = { ...fetchJail, program: 'unpack', account: null }
  const command = jailCommand(jail)
  const [first = '', ...rest] = command.slice(0, command.lastIndexOf('--') + 1)
  const result = await run(first, [...rest, 'bash', '-c', script], { timeoutMs: 20_000 })
  return result.stdout.trim()
}

const jails: [string, (script: string) => Promise<string>][] = [
  ['fetch', inFetchJail],
  ['unpack', inUnpackJail],
]

test.each(jails)('the %s jail sees only /usr of the host', async (_, run) => {
  expect((await run('echo /* /berth/* /etc/* /proc/* /sys/* /root/* /home/*')).split(' ')).toEqual([
    '/berth',
    '/bin',
    '/dev',
    '/etc',
    '/lib',
    '/lib64',
    '/sbin',
    '/tmp',
    '/usr',
    '/berth/jailed',
    '/berth/node',
    '/etc/*',
    '/proc/*',
    '/sys/*',
    '/root/*',
    '/home/*',
  ])
  expect(await run(`cat ${directory}/secret && echo reached`)).toBe('')
})

test.each(jails)('the %s jail can write only to its own small /tmp', async (_, run) => {
  for (const place of ['/usr', '/usr/bin', '/berth/jailed', '/berth/node', '/usr/lib/x86_64-linux-gnu']) {
    expect(await run(`touch ${place}/x || echo x > ${place} && echo written`)).toBe('')
  }
  expect(await run('echo x > /tmp/x && echo written')).toBe('written')
  expect(
    await run('for n in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero > /tmp/$n || echo stopped; done'),
  ).toContain('stopped')
})

test.each(jails)('the %s jail has no network', async (_, run) => {
  expect(await run('(exec 3<>/dev/tcp/192.0.2.1/443) 2>&1')).toContain('Network is unreachable')
  expect(await run('(exec 3<>/dev/tcp/127.0.0.1/22) 2>&1')).toContain('Connection refused')
})

test('the fetch jail runs as its own user without capabilities or a way to gain any', async () => {
  const { uid, gid } = await getAccount('berth-images')
  expect(await inFetchJail('id -u; id -g; id -G')).toBe(`${uid}\n${gid}\n${gid}`)
  expect(await inFetchJail('setpriv --dump')).toMatch(/no_new_privs: 1[^]*bounding set: \[none\]/)
})

test('the unpack jail has six capabilities, and device nodes and mounts do not work in it', async () => {
  expect(await inUnpackJail('setpriv --dump')).toMatch(
    /no_new_privs: 1[^]*Capability bounding set: chown,dac_override,fowner,fsetid,mknod,setfcap\n/,
  )
  expect(await inUnpackJail('mknod /tmp/null c 1 3 && (echo x > /tmp/null) 2>&1')).toContain(
    'Permission denied',
  )
  expect(await inUnpackJail('mount -t proc proc /tmp && echo mounted; chroot /usr && echo changed')).toBe('')
  const asOwnRoot =
    'unshare --user --map-root-user --pid --fork --mount mount -t proc proc /tmp && echo mounted'
  expect(await inUnpackJail(asOwnRoot)).toBe('')
})

test.each(jails)('the %s jail limits the size of files', async (_, run) => {
  expect(await run('head -c 2000000 /dev/zero > /tmp/big; stat -c %s /tmp/big')).toBe('1048576')
})

test('a jail ends with its parent process', async () => {
  const [command = '', ...args] = jailCommand({ ...fetchJail, args: ['sleep', '98765'] })
  const parent = spawn('setsid', ['sh', '-c', '"$@" & echo $!; wait', 'sh', command, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const sleeping = async () =>
    (await run('pgrep', ['-f', '^sleep 98765$'], { timeoutMs: 5000 })).stdout
      .trim()
      .split('\n')
      .filter(Boolean)
  await expect.poll(sleeping, { timeout: 10_000 }).toHaveLength(1)
  parent.kill('SIGKILL')
  await expect.poll(sleeping, { timeout: 10_000 }).toHaveLength(0)
})
