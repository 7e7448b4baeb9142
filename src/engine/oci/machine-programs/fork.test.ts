import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import { createSocketPair, sendWithFds } from '../kernel/unix-sockets.ts'
import { waitForChild } from '../kernel/children.ts'
import { FORK_REQUEST } from './fork.ts'

const directory = mkdtempSync(join(tmpdir(), 'berth-forker-'))
const program = join(import.meta.dirname, `fork-${process.arch}`)
const group = join(directory, 'tasks')
afterAll(() => rmSync(directory, { recursive: true }))

const running: { process: ChildProcess; socket: Socket }[] = []
afterEach(() => {
  for (const { process, socket } of running.splice(0)) {
    socket.destroy()
    process.kill('SIGKILL')
  }
})

/** A program that forks what `args` say. */
function start(args: string[], env: Record<string, string> = {}) {
  const [fd, its] = createSocketPair()
  const process = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'ignore', its] })
  closeFd(its)
  const socket = new Socket({ fd })
  const one = { process, socket, fd }
  running.push(one)
  return one
}

/** Asks for one process, and returns what it prints. It gets `input`, and has a fourth descriptor with `more`. */
async function fork({ socket, fd }: ReturnType<typeof start>, input: string, more = ''): Promise<string> {
  const [stdin, stdout, stderr, extra] = [createPipe(), createPipe(), createPipe(), createPipe()]
  const entry = openSync(group, 'w')
  const ends = [stdin.readEnd, stdout.writeEnd, stderr.writeEnd, extra.readEnd]
  const answered = once(socket, 'data')
  expect(sendWithFds(fd, FORK_REQUEST, [entry, ...ends])).toBe(FORK_REQUEST.length)
  closeSync(entry)
  await answered
  for (const end of ends) closeFd(end)
  for (const [to, bytes] of [
    [stdin.writeEnd, input],
    [extra.writeEnd, more],
  ] as const)
    new Socket({ fd: to, readable: false, writable: true }).end(bytes)
  const [said, complaint] = await Promise.all(
    [stdout.readEnd, stderr.readEnd].map(async (end) => await text(new Socket({ fd: end }))),
  )
  expect(complaint).toBe('')
  return said ?? ''
}

describe('the program that forks', () => {
  it('executes its own arguments, with its own environment, once for each request', async () => {
    const forker = start(['/bin/cat', '/proc/self/cmdline', '-', '/proc/self/environ'], { A: 'b', C: '' })
    for (const input of ['first', 'second', 'third'])
      expect(await fork(forker, input)).toBe(
        `/bin/cat\0/proc/self/cmdline\0-\0/proc/self/environ\0${input}A=b\0C=\0`,
      )
  })

  it('gives each process the four descriptors of its request and no other', async () => {
    const forker = start(['/bin/sh', '-s'])
    const look = 'for f in /proc/$$/fd/*; do echo "${f##*/}"; done'
    // With what this process passes on, and what the shell looks with.
    const fourth = openSync('/dev/null', 'r')
    const direct = spawnSync('/bin/sh', ['-s'], { input: look, stdio: ['pipe', 'pipe', 'pipe', fourth] })
    closeSync(fourth)
    for (const more of ['one\n', 'two\n'])
      expect(await fork(forker, `cat <&3; ${look}`, more)).toBe(`${more}${direct.stdout.toString()}`)
  })

  it('makes processes that are children of its own parent, lead a session, and entered their group first', async () => {
    const forker = start(['/bin/sh', '-s'])
    const said = await fork(forker, 'kill -0 $PPID && cat /proc/$$/stat; read -r line; exit 7')
    const [pid, , , parent, processGroup, session] = said.split(' ').map(Number)
    expect(parent).toBe(process.pid)
    expect([processGroup, session]).toEqual([pid, pid])
    // In the list of a group, that stands for who writes it.
    expect(readFileSync(group, 'utf8')).toBe('0')
    expect(await waitForChild(pid ?? 0)).toBe(7)
  })

  it('ends with its socket, while its processes go on', async () => {
    const forker = start(['/bin/sh', '-s'])
    const ended = once(forker.process, 'exit')
    const said = fork(
      forker,
      'while kill -0 "$(cat <&3)" 2>/dev/null; do :; done; echo alone',
      `${forker.process.pid}`,
    )
    await once(forker.socket, 'data')
    forker.socket.destroy()
    expect(await ended).toEqual([1, null])
    expect(await said).toBe('alone\n')
  })

  it('ends when what it is asked is nothing that it knows', async () => {
    const forker = start(['/bin/true'])
    forker.socket.write('?')
    expect(await once(forker.process, 'exit')).toEqual([1, null])
  })
})
