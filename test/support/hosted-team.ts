// A person of a Berth's first team, who lets a control plane of the tests give its sessions units there.

import { readdir, readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import type { HostedAnswer, HostedChanged, HostedSession } from '../../src/contract/hosted-agents.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Berth } from './berth.ts'
import type { ManagedAgents } from './managed-agents.ts'

export const AGENT_IMAGE = 'berth.local/agent:1'

export type HostedTeam = {
  /** A call with the person's session. */
  ask: <T>(method: string, path: string, body?: unknown) => Promise<T>
  /** Of an environment, those that changed last first. */
  sessionsOf: (id: string) => Promise<HostedSession[]>
  unitOf: (id: string) => Promise<Unit>
  stateOf: (id: string) => Promise<Unit['state']>
}

export async function signInToHosted(berth: Berth): Promise<HostedTeam> {
  const { baseUrl, signInUrl } = berth.credentials
  const token = new URL(signInUrl).searchParams.get('token') ?? ''
  const signedIn = await fetch(`${baseUrl}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: baseUrl, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }),
  })
  const cookies = signedIn.headers.getSetCookie().map((each) => each.split(';')[0])
  const cookie = cookies.join('; ')

  async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        cookie,
        origin: baseUrl,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    expect(response.status, text).toBeLessThan(300)
    return JSON.parse(text) as T
  }

  const unitOf = async (id: string) => (await berth.call<Unit>('GET', `/v1/units/${id}`)).body
  return {
    ask,
    sessionsOf: async (id) => (await ask<HostedAnswer>('GET', `/v1/hosted-agents/${id}`)).sessions,
    unitOf,
    stateOf: async (id) => (await unitOf(id)).state,
  }
}

/** Returns its id. */
export async function addEnvironment(
  { ask }: HostedTeam,
  { environment, key }: ManagedAgents,
  atOnce: number,
): Promise<string> {
  const { environment: added } = await ask<HostedChanged>('POST', '/v1/hosted-agents', {
    environment,
    environmentKey: key,
    image: AGENT_IMAGE,
    size: 'nano',
    atOnce,
    policy: { maxConcurrentUnits: 2 * atOnce, dailySpendCapCents: 10_000 },
  })
  return added.id
}

/** Of all processes on this host whose control group has the name, in ticks of the kernel's clock. */
export async function processorTimeOf(name: string): Promise<number> {
  let ticks = 0
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
    if (groups.includes(name)) ticks += await ticksOf(pid)
  }
  return ticks
}

/** None for a process that is gone. */
export async function ticksOf(pid: string | number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [user = 0, kernel = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number)
  return user + kernel
}
