// Runs nft(8), which all of the firewall goes through, but for the elements of a machine that starts (netfilter.ts).

import { type RunResult, SAFE_PATH } from '../../../lib/process.ts'
import { run, runOrThrow } from '../kernel/programs.ts'

/**
 * nft takes and gives back large blocks of memory all the time, and by itself malloc maps and unmaps each of them. In a
 * virtual machine an unmap can take half a millisecond, and the fifty of one listing half of its time. See mallopt(3).
 */
const env = { PATH: SAFE_PATH, MALLOC_MMAP_THRESHOLD_: '33554432', MALLOC_TRIM_THRESHOLD_: '134217728' }

const options = { timeoutMs: 10_000, maxOutputBytes: 64 * 1024 * 1024, env }

/** Applies lines of the nft language in one transaction. Throws ProcessFailed if the kernel refuses any of them. */
export async function applyRules(lines: readonly string[]): Promise<void> {
  await runOrThrow('nft', ['-f', '-'], { ...options, stdin: `${lines.join('\n')}\n` })
}

/** Runs nft to list something. The exit code is 1 where there is nothing of that name. */
export async function listRules(args: string[]): Promise<RunResult> {
  return await run('nft', args, options)
}

/** Returns what `nft -j list` lists, an object each; null where there is nothing of that name. */
export async function listAsJson<Entry>(...args: string[]): Promise<Entry[] | null> {
  const { exitCode, stdout } = await listRules(['-j', 'list', ...args])
  return exitCode === 0 ? (JSON.parse(stdout) as { nftables: Entry[] }).nftables : null
}
