// The kernel's connection tracking.

import { run } from '../kernel/programs.ts'

const TIMEOUT_MS = 5000
const MAX_LISTING_BYTES = 16 * 1024 * 1024
/** Beyond that, all connections of the machine are cut, including those that it may keep. */
const MAX_SINGLE_CUTS = 64

/** A connection that a machine has begun. `redirected`: it goes to this host instead. */
export type Flow = { protocol: string; address: string; port: number; redirected: boolean }

/** The next owner of the address must not receive packets for the last one (reliability I10). */
export async function forgetConnections(address: string): Promise<void> {
  const sides = ['--orig-src', '--orig-dst'].map((side) =>
    // Exits with 1 if there was none. Without the tool, connections end by their own timeouts.
    run('conntrack', ['-D', side, address], { timeoutMs: TIMEOUT_MS }).catch(() => undefined),
  )
  await Promise.all(sides)
}

/**
 * Cuts the connections begun by the machine with this address that are not allowed any more: the next packet of each
 * is one of a new connection, for which the firewall's rules decide.
 */
export async function cutConnections(address: string, isAllowed: (flow: Flow) => boolean): Promise<void> {
  const listed = await run('conntrack', ['-L', '--orig-src', address], {
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: MAX_LISTING_BYTES,
  })
  if (listed.exitCode !== 0) throw new Error(`conntrack: ${listed.stderr.slice(0, 200)}`)
  const flows = listed.stdout.split('\n').flatMap((line) => readFlow(line) ?? [])
  const targets = new Set(
    flows
      .filter((flow) => !isAllowed(flow))
      .map(({ protocol, address: to, port }) => `${protocol} ${to} ${port}`),
  )
  if (targets.size > MAX_SINGLE_CUTS) return await cut(['--orig-src', address])
  for (const target of targets) {
    const [protocol = '', to = '', port = ''] = target.split(' ')
    const ported = protocol === 'tcp' || protocol === 'udp' ? ['--orig-port-dst', port] : []
    await cut(['-p', protocol, '--orig-src', address, '--orig-dst', to, ...ported])
  }
}

async function cut(which: string[]): Promise<void> {
  await run('conntrack', ['-D', ...which], { timeoutMs: TIMEOUT_MS })
}

/** Reads a line of `conntrack -L`: the original direction comes first, then the reply's. */
export function readFlow(line: string): Flow | null {
  const [, protocol = '', original = '', reply = ''] = /^(\w+)\s+\d+\s.*?(src=.*?)(src=.*)$/.exec(line) ?? []
  const to = /dst=(\d+(?:\.\d+){3})/.exec(original)?.[1]
  const from = /src=(\d+(?:\.\d+){3})/.exec(reply)?.[1]
  if (to === undefined || from === undefined) return null
  return {
    protocol,
    address: to,
    port: Number(/dport=(\d+)/.exec(original)?.[1] ?? 0),
    redirected: from !== to,
  }
}
