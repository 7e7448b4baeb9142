// An engine in a process of its own, spoken to over its socket as the product's is: what a test needs that
// kills it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OciEngine, OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { connectEngine } from '../../src/engine/ipc/client.ts'
import type { FleetListenerOptions } from '../../src/lib/ipc/fleet-tls.ts'
import { SAFE_PATH } from '../../src/lib/process.ts'

export type EngineProcessInput = {
  options: Omit<OciOptions, 'onProgress' | 'log' | 'clock' | 'failpoints'>
  socketPath: string
  failpointsDir: string
  tls: FleetListenerOptions | null
  /** By how much the clock of its machine is ahead. */
  aheadMs: number
}

const program = fileURLToPath(new URL('engine-process-main.ts', import.meta.url))

/** Runs a command for which, and for whose children, the kernel has no inotify instance left. */
const WITHOUT_INOTIFY = `
my ($prctl, @inotify) = shift eq 'x64' ? (157, 253, 294) : (167, 26, 26);
my @filter = ([0x20, 0, 0, 0], [0x15, 2, 0, $inotify[0]], [0x15, 1, 0, $inotify[1]], [6, 0, 0, 0x7fff0000], [6, 0, 0, 0x50018]);
my $filter = join '', map { pack 'SCCL', @$_ } @filter;
my $program = pack 'S x6 P', scalar @filter, $filter;
syscall($prctl, 22, 2, $program, 0, 0) == 0 or die "prctl: $!";
exec { $ARGV[0] } @ARGV or die $!;
`

type Where = {
  withoutInotify?: boolean
  /** The path of the namespace that it runs in. */
  network?: string | null
  /** Where it answers a server on another machine. */
  tls?: FleetListenerOptions | null
  aheadMs?: number
  onStarted?: (pid: number) => void
}

/** Ready once it resolves. Closing one that was killed succeeds. */
export async function openEngineProcess(
  options: OciOptions,
  failpointsDir: string,
  { withoutInotify = false, network = null, tls = null, aheadMs = 0, onStarted }: Where = {},
): Promise<OciEngine> {
  const { onProgress: _, log: __, clock: ___, failpoints: ____, ...rest } = options
  const socketPath = join(options.runDir, 'engine.sock')
  const input: EngineProcessInput = { options: rest, socketPath, failpointsDir, tls, aheadMs }
  const command = [process.execPath, program]
  const [file = '', ...args] = [
    ...(network === null ? [] : ['nsenter', `--net=${network}`]),
    ...(withoutInotify ? ['perl', '-e', WITHOUT_INOTIFY, process.arch] : []),
    ...command,
  ]
  const child = spawn(file, args, {
    env: { PATH: SAFE_PATH },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  if (child.pid !== undefined) onStarted?.(child.pid)
  child.stdin.end(`${JSON.stringify(input)}\n`)
  const ended = once(child, 'exit')
  const said = await Promise.race([once(child.stdout, 'data'), ended])
  if (String(said[0]) !== 'ready\n') throw new Error('the engine did not come up')
  return {
    ...connectEngine({ address: { socketPath }, epoch: 1, onLost: () => {} }),
    close: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}
