// Runs the same image and the same steps with Docker, for comparison. The Docker daemon is started for the benchmark, with
// its own socket and directories.

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { criuPrograms } from '../src/engine/oci/checkpoint/criu.ts'
import { run, runOrThrow } from '../src/lib/process.ts'
import { type Actions, type Figures, measure, timed } from './figures.ts'
import { measureFirstCommands } from './first-command.ts'

const COMMAND_TIMEOUT_MS = 300_000

/** Runs the client; answers what it prints. */
export type Docker = (...args: string[]) => Promise<string>

// Without network: Docker's bridge would need rules of its own on this host, so the peer's task is easier.
const FLAGS = ['--detach', '--network', 'none']

/** Null where Docker is not installed. */
export async function measureDocker(rootfs: string, rounds: number): Promise<Figures | null> {
  return await withDocker(rootfs, async (docker) => await measure(rounds, actionsOf(docker)))
}

/** Null where it is not installed. */
export async function measureFirstCommandsInDocker(rootfs: string): Promise<string | null> {
  return await withDocker(rootfs, async (docker) => await measureFirstCommands('docker', actionsOf(docker)))
}

function actionsOf(docker: Docker): Actions {
  return {
    create: async () => (await docker('run', ...FLAGS, 'bench', 'sleep', 'infinity')).trim(),
    exec: (id) => docker('exec', id, 'echo', 'hello'),
    destroy: (id) => docker('rm', '--force', id),
  }
}

/** The nearest that Docker has to a fork: `commit` and `run`, of a disk only. Null where it is not installed. */
export async function measureDockerForks(
  rootfs: string,
  disks: { name: string; megabytes: number; rounds: number }[],
): Promise<Figures | null> {
  return await withDocker(rootfs, async (docker) => {
    const figures: Figures = {}
    for (const { name, megabytes, rounds } of disks) {
      const samples: number[] = []
      figures[name] = samples
      const source = (await docker('run', ...FLAGS, 'bench', 'sleep', 'infinity')).trim()
      await docker('exec', source, 'sh', '-c', `head -c ${megabytes}M /dev/zero > /root/filler && sync`)
      for (let round = 0; round < rounds; round += 1) {
        const copy = await timed(samples, async () => {
          await docker('commit', source, 'copy')
          return (await docker('run', ...FLAGS, 'copy', 'sleep', 'infinity')).trim()
        })
        await docker('rm', '--force', copy)
        await docker('rmi', '--force', 'copy')
      }
      await docker('rm', '--force', source)
    }
    return figures
  })
}

/** The nearest that Docker has to a sleep which keeps memory. Null where it is not installed, or does not work. */
export async function measureDockerCheckpoint(rootfs: string, rounds: number): Promise<Figures | null> {
  return await withDocker(rootfs, async (docker) => {
    const figures = { 'fall asleep, cold': [] as number[], 'start, cold': [] as number[] }
    const id = (await docker('run', ...FLAGS, 'bench', 'sleep', 'infinity')).trim()
    try {
      for (let round = 0; round < rounds; round += 1) {
        const checkpoint = `checkpoint-${round}`
        await timed(figures['fall asleep, cold'], () => docker('checkpoint', 'create', id, checkpoint))
        await timed(figures['start, cold'], () => docker('start', '--checkpoint', checkpoint, id))
        await docker('checkpoint', 'rm', id, checkpoint)
      }
      return figures
    } catch (error) {
      console.log(`docker checkpoint does not work here: ${String(error).slice(0, 300)}`)
      return null
    } finally {
      await docker('rm', '--force', id)
    }
  })
}

async function withDocker<T>(rootfs: string, work: (docker: Docker) => Promise<T>): Promise<T | null> {
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
  const options = ['--bridge', 'none', '--iptables=false', '--experimental']
  const daemon = spawn('dockerd', ['--host', socket, ...places, ...options], {
    stdio: 'ignore',
    // It finds the CRIU there that Berth uses.
    env: { ...process.env, PATH: [...criuPrograms.map(dirname), process.env['PATH']].join(':') },
  })
  const ended = new Promise((resolve) => daemon.once('exit', resolve))
  const docker: Docker = (...args) =>
    runOrThrow('docker', ['--host', socket, ...args], {
      timeoutMs: COMMAND_TIMEOUT_MS,
      env: { PATH: process.env['PATH'] ?? '', HOME: directory },
    })
  try {
    await waitUntilUp(docker)
    await importImage(socket, rootfs)
    return await work(docker)
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

async function waitUntilUp(docker: Docker): Promise<void> {
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
