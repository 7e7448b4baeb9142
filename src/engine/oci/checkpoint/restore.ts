// What a restored run needs besides the runtime's own restore: its current host name, the settings of its network
// namespace, the host's clocks, no groups of commands that are over, and a check that it answers.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runOrThrow } from '../kernel/programs.ts'
import { HELPER, sysctl } from '../runtime/bundle.ts'
import { type Cgroups, dissolveChildren } from '../kernel/cgroups.ts'
import type { Restored } from '../runtime/monitor.ts'
import { answers, type Runtime } from '../runtime/runtime.ts'

const SETTINGS_TIMEOUT_MS = 10_000
/** Two magic numbers, then the length of the message. */
const UTS_HEAD_BYTES = 12
/** Field 1, a string: the host name. */
const UTS_NODE_TAG = 0x0a

export async function prepareRestore(
  runtime: Runtime,
  directory: string,
  hostname: string,
  networkNamespace: string,
): Promise<Restored> {
  if (!runtime.criu) throw new Error(`${runtime.class} cannot restore memory`)
  await Promise.all([
    renameHost(directory, hostname),
    followHostClocks(directory),
    setNetworkSettings(networkNamespace),
  ])
  return { directory, searchPath: runtime.criu.searchPath }
}

/** The memory of a run that does not answer is discarded. */
export async function enterRestored(
  cgroups: Cgroups,
  runtime: Runtime,
  container: string,
  signal: AbortSignal,
): Promise<{ kind: 'started' } | { kind: 'failed'; reason: string }> {
  dissolveChildren(cgroups, container)
  if (await answers(runtime, container, [HELPER, 'true'], signal)) return { kind: 'started' }
  return { kind: 'failed', reason: 'it did not answer after its memory was restored' }
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
