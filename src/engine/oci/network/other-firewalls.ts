// If another firewall (Docker, ufw, firewalld, the operator's own) drops packets that are not on its list, our accept
// has no effect, since every firewall must accept. So our interfaces get an accept at the head of its chains, and our
// own table still decides. Other tools remove it when they reload: the watchdog restores it. Other rules are never
// changed.

import { readFile } from 'node:fs/promises'
import type { Log } from '../../../lib/log.ts'
import { run, runOrThrow } from '../kernel/programs.ts'
import type { Names } from './names.ts'
import { applyRules, listAsJson } from './nft.ts'

export type OtherFirewalls = {
  /** Adds what is missing. */
  ensure(): Promise<void>
  remove(): Promise<void>
}

type Hook = 'forward' | 'input'
type Chain = { family: string; table: string; name: string; hook: Hook; policy: string; handle: number }

const TIMEOUT_MS = 10_000

export function createOtherFirewalls(
  names: Names,
  dnsPort: number,
  rulesGeneration: () => number,
  log: Log,
): OtherFirewalls {
  const reported = new Set<string>()
  /** The last change of any rules after which ours were in place. */
  let ensuredAt: number | null = null
  /** A firewall that cannot be changed is logged once, not every two seconds. */
  const attempt = async (name: string, work: () => Promise<void>) => {
    try {
      await work()
      reported.delete(name)
    } catch (error) {
      if (!reported.has(name))
        log.warn({ err: error, firewall: name }, 'machines may be cut off by another firewall')
      reported.add(name)
    }
  }

  return {
    async ensure() {
      const generation = rulesGeneration()
      // The old kind of iptables does not change this number, and failures are retried.
      const isSame = generation === ensuredAt && reported.size === 0
      if (isSame && !(await usesOldIptables())) return
      const chains = await listChains()
      if (await usesIptables(chains)) await attempt('iptables', () => ensureIptables(names, dnsPort))
      for (const chain of chains.filter((each) => isStrict(each) && !isOfIptables(each))) {
        await attempt(chain.table, () => ensureChain(names, dnsPort, chain))
      }
      ensuredAt = generation
    },
    async remove() {
      const chains = await listChains()
      if (await usesIptables(chains)) await attempt('iptables', () => removeIptables(names, dnsPort))
      for (const chain of chains.filter((each) => !isOfIptables(each))) {
        await attempt(chain.table, () => removeFromChain(names, chain))
      }
    },
  }
}

// nftables

async function listChains(): Promise<Chain[]> {
  const listed = await listAsJson<{ chain?: Chain }>('chains')
  if (listed === null) throw new Error('nft did not list the chains of this host')
  return listed
    .flatMap((entry) => entry.chain ?? [])
    .filter((chain) => chain.hook === 'forward' || chain.hook === 'input')
    .filter((chain) => chain.family === 'ip' || chain.family === 'inet')
    .filter((chain) => !chain.table.startsWith('berth_'))
}

/** firewalld's chains accept by policy and end with a reject. */
function isStrict(chain: Chain): boolean {
  return chain.policy === 'drop' || chain.table === 'firewalld'
}

async function ensureChain(names: Names, dnsPort: number, chain: Chain): Promise<void> {
  if ((await ownHandles(names, chain)).length > 0) return
  const rules = nftAccepts(names, dnsPort)[chain.hook].map(
    (rule) => `insert rule ${chain.family} ${chain.table} ${chain.name} ${rule} comment "${names.table}"`,
  )
  await applyRules(rules)
}

async function removeFromChain(names: Names, chain: Chain): Promise<void> {
  const rules = (await ownHandles(names, chain)).map(
    (handle) => `delete rule ${chain.family} ${chain.table} ${chain.name} handle ${handle}`,
  )
  if (rules.length === 0) return
  await applyRules(rules)
}

async function ownHandles(names: Names, { family, table, name }: Chain): Promise<number[]> {
  type Entry = { rule?: { comment?: string; handle: number } }
  const listed = await listAsJson<Entry>('chain', family, table, name)
  if (listed === null) throw new Error(`nft did not list the chain ${name} of ${table}`)
  return listed.flatMap(({ rule }) => (rule?.comment === names.table ? [rule.handle] : []))
}

function nftAccepts(names: Names, dnsPort: number): Record<Hook, string[]> {
  const ours = `"${names.interfacePrefix}*"`
  return {
    forward: [`iifname ${ours} accept`, `oifname ${ours} ct state established,related accept`],
    input: ['udp', 'tcp'].map(
      (protocol) => `iifname ${ours} ip daddr ${names.gateway} ${protocol} dport ${dnsPort} accept`,
    ),
  }
}

// iptables, in either version: its own tool is used, since it cannot read rules that nft adds to its chains.

function isOfIptables(chain: Chain): boolean {
  return chain.family === 'ip' && chain.table === 'filter' && /^[A-Z]+$/.test(chain.name)
}

/** Checked without running iptables, which would create its tables on a host that has none. */
async function usesIptables(chains: Chain[]): Promise<boolean> {
  return chains.some(isOfIptables) || (await usesOldIptables())
}

async function usesOldIptables(): Promise<boolean> {
  try {
    return (await readFile('/proc/net/ip_tables_names', 'utf8')).split('\n').includes('filter')
  } catch {
    return false
  }
}

async function ensureIptables(names: Names, dnsPort: number): Promise<void> {
  for (const [chain, rules] of Object.entries(iptablesAccepts(names, dnsPort))) {
    const listed = await iptables(['-S', chain])
    const isOpen = listed.trim() === `-P ${chain} ACCEPT`
    if (isOpen || listed.includes(` ${names.interfacePrefix}+ `)) continue
    for (const rule of rules) await iptables(['-I', chain, '1', ...rule])
  }
}

async function removeIptables(names: Names, dnsPort: number): Promise<void> {
  for (const [chain, rules] of Object.entries(iptablesAccepts(names, dnsPort))) {
    for (const rule of rules) {
      await run('iptables', ['-w', '5', '-D', chain, ...rule], { timeoutMs: TIMEOUT_MS })
    }
  }
}

function iptablesAccepts(names: Names, dnsPort: number): Record<'FORWARD' | 'INPUT', string[][]> {
  const ours = `${names.interfacePrefix}+`
  return {
    FORWARD: [
      ['-i', ours, '-j', 'ACCEPT'],
      ['-o', ours, '-m', 'conntrack', '--ctstate', 'RELATED,ESTABLISHED', '-j', 'ACCEPT'],
    ],
    INPUT: ['udp', 'tcp'].map((protocol) => [
      '-i',
      ours,
      '-d',
      names.gateway,
      '-p',
      protocol,
      '--dport',
      String(dnsPort),
      '-j',
      'ACCEPT',
    ]),
  }
}

async function iptables(args: string[]): Promise<string> {
  return await runOrThrow('iptables', ['-w', '5', ...args], {
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: 16 * 1024 * 1024,
  })
}
