// Checks what units need to reach the internet, and what clients need to reach Berth.

import { readFile } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { SECOND } from '../lib/clock.ts'
import { run } from '../lib/process.ts'
import { claimPorts, listensAt } from './ports.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'

export const networkChecks: Check[] = [
  { name: 'nftables', run: nftablesFinding },
  {
    name: 'forwarding',
    run: async () => forwardingFinding((await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim()),
  },
  { name: 'other firewalls', run: async () => firewallFinding(await ruleset()) },
]

export const portsCheck: Check = { name: 'ports', run: portsFinding }

async function nftablesFinding(): Promise<Finding> {
  const listed = await run('nft', ['list', 'tables'], { timeoutMs: 20 * SECOND }).catch(() => null)
  if (listed?.exitCode === 0) return ok('usable')
  return fail(
    `not usable: ${listed?.stderr.trim() ?? 'nft is not installed'}`,
    'Isolation between teams needs it: install nftables and use a kernel that supports it.',
  )
}

function forwardingFinding(value: string): Finding {
  return value === '1' ? ok('on') : ok('off; the engine switches it on')
}

async function ruleset(): Promise<unknown> {
  const listed = await run('nft', ['--json', 'list', 'chains'], { timeoutMs: 20 * SECOND }).catch(() => null)
  return listed?.exitCode === 0 ? JSON.parse(listed.stdout) : { nftables: [] }
}

type Listed = {
  nftables: { chain?: { family: string; table: string; name: string; hook?: string; policy?: string } }[]
}

/** Finds chains of other programs that drop forwarded traffic: of Docker, ufw or firewalld. */
export function firewallFinding(listed: unknown): Finding {
  // The type is nft's own output; a missing field is treated like an unknown value.
  const chains = (listed as Listed).nftables.flatMap((entry) => entry.chain ?? [])
  const dropping = chains.filter(
    ({ hook, policy, table }) => hook === 'forward' && policy === 'drop' && !table.startsWith('berth_'),
  )
  if (dropping.length === 0) return ok('none that drops forwarded traffic')
  const names = dropping.map(({ family, table, name }) => `${family} ${table} ${name}`).join(', ')
  return warn(
    `${names} drops forwarded traffic`,
    'The engine adds its own accept rules. If units still reach nothing, allow forwarding from berth interfaces there.',
  )
}

async function portsFinding(config: Config): Promise<Finding> {
  try {
    const claimed = await claimPorts(config)
    const shown = (['apiAddress', 'gatewayHttp', 'gatewayTls', 'gatewayMysql'] as const).filter((key) =>
      listensAt(config, key),
    )
    const addresses = shown.map((key) => claimed[key])
    return ok(`${addresses.map(({ host, port }) => `${host}:${port}`).join(', ')} are free`)
  } catch (error) {
    return warn(
      error instanceof Error ? error.message : String(error),
      'This is fine if Berth itself already runs there.',
    )
  }
}
