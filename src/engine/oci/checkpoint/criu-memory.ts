// Memory of class runc: CRIU writes the processes of a frozen container to files, and makes them again in a new one. A restored
// run has its current host name, the settings of its network namespace, and the host's clocks.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { run, runOrThrow } from '../kernel/programs.ts'
import { sysctl } from '../runtime/bundle.ts'
import type { Driver, Memory } from '../runtime/driver.ts'
import { runcAnswers } from '../runtime/runc.ts'
import type { Criu } from './criu.ts'

const SETTINGS_TIMEOUT_MS = 10_000
/** Two magic numbers, then the length of the message. */
const UTS_HEAD_BYTES = 12
/** Field 1, a string: the host name. */
const UTS_NODE_TAG = 0x0a

export function criuMemory(driver: Driver, criu: Criu): Memory {
  return {
    madeWith: `${driver.class} ${driver.version}, CRIU ${criu.version}, Linux ${release()}`,
    standing: null,
    // Measured: 0.1 s and 0.4 s per GB. The rest is for a busy host.
    saving: { ms: 100, msPerGb: 500, mostMs: 250, giveUpMs: 2000 },
    // runc reads there what its command line does not offer (criu.ts).
    inConfig: (config) => ({ ...config, annotations: { 'org.criu.config': criu.options } }),
    async save(container, directory, { timeoutMs, signal }) {
      const place = ['--image-path', directory, '--work-path', directory]
      const args = [...driver.globalArgs, 'checkpoint', '--leave-running', ...place, container]
      const said = await run(driver.binary, args, {
        timeoutMs,
        signal,
        // Identifies a dump that its engine died over (orphans.ts).
        cwd: directory,
        env: { PATH: criu.searchPath },
      })
      if (said.exitCode === 0) return
      const why = said.timedOut ? 'it took too long' : await criuErrors(join(directory, 'dump.log'))
      throw new Error(`a checkpoint failed: ${why || said.stderr.slice(-300)}`)
    },
    async prepare(directory, hostname, networkNamespace) {
      await Promise.all([
        renameHost(directory, hostname),
        followHostClocks(directory),
        setNetworkSettings(networkNamespace),
      ])
      return { directory, searchPath: criu.searchPath }
    },
    answers: (container, command, signal) => runcAnswers(driver, container, command, signal),
    // They are restored as what they were.
    endCommands: async () => {},
    introduce: null,
    complaint: (directory) => criuErrors(join(directory, 'restore.log')),
  }
}

/** Returns the last errors in CRIU's log; runc only says where the log is. */
async function criuErrors(log: string): Promise<string> {
  const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n')
  // Every call reports this one if the engine may not raise limits.
  const errors = lines.filter((line) => line.includes(' Error (') && !line.includes('RLIMIT_NOFILE'))
  return errors
    .slice(-3)
    .map((line) => line.replace(/^\(\S+\)\s+/, '').slice(0, 200))
    .join('; ')
}

/** In the saved image, so that no process of it ever sees another machine's name. */
async function renameHost(directory: string, hostname: string): Promise<void> {
  const images = (await readdir(directory)).filter((name) => name.startsWith('utsns-'))
  for (const name of images) {
    const path = join(directory, name)
    await writeFile(path, withHostName(await readFile(path), hostname))
  }
}

/**
 * With the saved clocks, CRIU makes a time namespace in which no time has passed. Commands of the runtime would not
 * be in it, and a run with two clocks cannot be checkpointed again. Without them, time has passed as for a frozen
 * machine; it never goes back, since memory is of the same boot (images.ts).
 */
async function followHostClocks(directory: string): Promise<void> {
  await rm(join(directory, 'timens-0.img'), { force: true })
}

export function withHostName(image: Buffer, hostname: string): Buffer {
  const message = image.subarray(UTS_HEAD_BYTES)
  const length = message[1] ?? 0
  // A kernel's host name has at most 64 bytes: its length is always a single byte.
  if (message.length !== image.readUInt32LE(8) || message[0] !== UTS_NODE_TAG || length > 64) {
    throw new Error('the host name in a checkpoint is not where it is expected')
  }
  const name = Buffer.from(hostname)
  const renamed = Buffer.concat([
    Buffer.from([UTS_NODE_TAG, name.length]),
    name,
    message.subarray(2 + length),
  ])
  const head = Buffer.from(image.subarray(0, UTS_HEAD_BYTES))
  head.writeUInt32LE(renamed.length, 8)
  return Buffer.concat([head, renamed])
}

/** The settings belong to the namespace, which is a new one, and a restore does not set them. */
async function setNetworkSettings(namespace: string): Promise<void> {
  const settings = Object.entries(sysctl).map(([name, value]) => `${name}=${value}`)
  const inside = ['/bin/busybox', 'sysctl', '-w', ...settings]
  await runOrThrow('nsenter', [`--net=${namespace}`, ...inside], { timeoutMs: SETTINGS_TIMEOUT_MS })
}
