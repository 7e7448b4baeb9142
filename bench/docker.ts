// The peer: the same image and the same steps, asked of a Docker daemon started for the purpose on a socket
// and directories of its own.

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, runOrThrow } from '../src/lib/process.ts'
import { type Figures, measure } from './figures.ts'

const COMMAND_TIMEOUT_MS = 60_000

/** Null where Docker is not installed. */
export async function measureDocker(rootfs: string, rounds: number): Promise<Figures | null> {
  const found = await run('sh', ['-c', 'command -v dockerd && command -v docker'], { timeoutMs: 5000 })
  if (found.exitCode !== 0) return null
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-docker-'))
  const socket = `unix://${directory}/docker.sock`
  const places = [
    '--data-root',
    `${directory}/data`,
    '--exec-root',
    `${directory}/exec`,
    '--pidfile',
    `${directory}/pid`,
  ]
  const daemon = spawn('dockerd', ['--host', socket, ...places, '--bridge', 'none', '--iptables=false'], {
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => daemon.once('exit', resolve))
  const docker = (...args: string[]) =>
    runOrThrow('docker', ['--host', socket, ...args], {
      timeoutMs: COMMAND_TIMEOUT_MS,
      env: { PATH: process.env['PATH'] ?? '', HOME: directory },
    })
  try {
    await waitUntilUp(docker)
    await importImage(socket, rootfs)
    // Without network: Docker's bridge would need rules of its own on this host, so the peer's task is easier.
    const flags = ['--detach', '--network', 'none']
    return await measure(rounds, {
      create: async () => (await docker('run', ...flags, 'bench', 'sleep', 'infinity')).trim(),
      exec: (id) => docker('exec', id, 'echo', 'hello'),
      destroy: (id) => docker('rm', '--force', id),
    })
  } finally {
    daemon.kill('SIGTERM')
    await ended
    await run('umount', ['--recursive', '--lazy', directory], { timeoutMs: 10_000 })
    await rm(directory, { recursive: true, force: true })
  }
}

async function importImage(socket: string, rootfs: string): Promise<void> {
  const script = 'tar -C "$1" -c . | docker --host "$2" import - bench'
  await runOrThrow('sh', ['-c', script, 'import', rootfs, socket], { timeoutMs: COMMAND_TIMEOUT_MS })
}

async function waitUntilUp(docker: (...args: string[]) => Promise<string>): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await docker('version')
      return
    } catch (error) {
      if (attempt > 60) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}
