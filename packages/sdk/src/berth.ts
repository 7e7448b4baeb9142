// The client: `const berth = new Berth()`. It leads to units, stacks, recipes, usage and the other parts of the API.

import type {
  Agent,
  AgentList,
  AuditEvent,
  AuditList,
  KeyList,
  Pricing,
  Quota,
  SupportMessage,
  SupportTicket,
  Unit as UnitInfo,
  Usage,
} from './contract.ts'
import { type HostedAgents, hostedAgentsOf } from './hosted-agents.ts'
import { type List, type ListOptions, listOf } from './list.ts'
import { printsAs } from './printed.ts'
import { type Recipes, recipesOf } from './recipes.ts'
import { type Secrets, secretsOf } from './secrets.ts'
import { type BerthOptions, settingsOf } from './settings.ts'
import type { StreamEvent } from './sse.ts'
import { type Stacks, stacksOf } from './stacks.ts'
import {
  type Call,
  type CallOptions,
  createTransport,
  type MakeOptions,
  newKey,
  type Transport,
} from './transport.ts'
import { type Units, unitsOf } from './units.ts'

export type AuditFilter = ListOptions & {
  /** Id of a key. */
  key?: string | undefined
  /** Name of an agent, such as `claude-code`. */
  agent?: string | undefined
  /** Such as `unit.create`. */
  action?: string | undefined
  /** Id of what a call was about. */
  target?: string | undefined
  /** From then on, and before then: times as ISO 8601. */
  since?: string | undefined
  until?: string | undefined
  /** Only what was answered with an error. */
  failed?: boolean | undefined
}

export type UsageOptions = CallOptions & {
  days?: number | undefined
  /** Also what each of these had of a day: the ten with the greatest cost, and the rest. */
  by?: 'agent' | 'stack' | 'unit' | undefined
}

/**
 * One thing that changed. `gone` has the id of a unit or stack that is destroyed. `team` means its people, or the team
 * itself. `host` is one that units of the team are on. `process` is a background process that has ended. `change` is a call
 * that changed something, as a sentence; it comes where it is asked for.
 */
export type TeamEvent =
  | { event: 'reset'; data: object }
  | { event: 'unit'; data: UnitInfo }
  | { event: 'stack'; data: { id: string; name: string } }
  | { event: 'agent'; data: Agent }
  | { event: 'gone'; data: { id: string } }
  | { event: 'team'; data: { id: string } }
  | {
      event: 'change'
      data: {
        id: string
        at: string
        action: string
        target: string | null
        status: number
        sentence: string
      }
    }
  | {
      event: 'host'
      data: { id: string; state: 'ready' | 'draining' | 'away' | 'lost' | 'removed'; since: string }
    }
  | {
      event: 'process'
      data: {
        unitId: string
        id: string
        tag: string | null
        state: 'exited' | 'lost'
        exitCode: number | null
      }
    }
  | { event: 'money'; data: { spentTodayCents: number; creditBalanceCents: number } }

export class Berth {
  readonly units: Units
  readonly stacks: Stacks
  readonly recipes: Recipes
  readonly secrets: Secrets
  readonly hostedAgents: HostedAgents
  /** Of the service. */
  readonly url: string
  readonly #transport: Transport
  readonly #apiKey: () => string | Promise<string>

  /** Throws `not_configured` where neither options nor environment say where the service is and with which key. */
  constructor(options: BerthOptions = {}) {
    const settings = settingsOf(options)
    this.url = settings.url
    this.#apiKey = settings.apiKey
    this.#transport = createTransport(settings)
    this.units = unitsOf(this.#transport)
    this.stacks = stacksOf(this.#transport)
    this.recipes = recipesOf(this.#transport)
    this.secrets = secretsOf(this.#transport)
    this.hostedAgents = hostedAgentsOf(this.#transport)
  }

  /** What this key may still run and spend. */
  async quota(options: CallOptions = {}): Promise<Quota> {
    return await this.#read('/v1/quota', options)
  }

  /** What the team used, day by day. */
  async usage({ days, by, ...options }: UsageOptions = {}): Promise<Usage> {
    return await this.#read('/v1/usage', options, { days, by })
  }

  async pricing(options: CallOptions = {}): Promise<Pricing> {
    return await this.#read('/v1/pricing', options)
  }

  /** What was asked of the service, by whom, and how it ended; newest first. */
  audit({ signal, timeoutMs, ...filter }: AuditFilter = {}): List<AuditEvent> {
    return listOf(async (cursor) => {
      const query = { ...filter, cursor }
      const { events, next } = await this.#read<AuditList>('/v1/audit', { signal, timeoutMs }, query)
      return { items: events, next }
    })
  }

  /** Keys and connected programs of the team, with their policies. */
  async agents(options: CallOptions = {}): Promise<AgentList> {
    return await this.#read('/v1/agents', options)
  }

  /** Keys are made by people, under Agents in the dashboard, never with a key. */
  async keys(options: CallOptions = {}): Promise<Agent[]> {
    return (await this.#read<KeyList>('/v1/keys', options)).keys
  }

  /** A message to the operator of the service; the answer comes by mail. */
  async support(
    message: SupportMessage,
    { idempotencyKey = newKey(), ...options }: MakeOptions = {},
  ): Promise<SupportTicket> {
    const call = { method: 'POST' as const, path: '/v1/support', body: message, idempotencyKey, ...options }
    return await this.#transport.json(call)
  }

  /** What changes in the team, as it changes, until the signal aborts. `reset`: read your lists again. `changes`: also who did what. */
  async *events({
    changes,
    ...options
  }: CallOptions & { changes?: boolean | undefined } = {}): AsyncGenerator<TeamEvent> {
    const query = { changes: changes || undefined }
    const stream = this.#transport.events({ method: 'GET', path: '/v1/events', query, ...options })
    for await (const { event, data } of stream) yield { event, data } as TeamEvent
  }

  /** Any call of the API, for what this library has no method for. */
  async request<T = unknown>(
    method: Call['method'],
    path: string,
    call: Omit<Call, 'method' | 'path'> = {},
  ): Promise<T> {
    return await this.#transport.json<T>({ ...call, method, path })
  }

  /**
   * Any stream of the API, for what this library has no method for: resolves when it is open. Nothing connects it again:
   * the `id` of an event says where to go on.
   */
  async stream(path: string, call: Omit<Call, 'method' | 'path'> = {}): Promise<AsyncGenerator<StreamEvent>> {
    return await this.#transport.openEvents({ ...call, method: 'GET', path })
  }

  /** The Authorization header that calls have, for what speaks with the service by other means, such as MCP. */
  async authorization(): Promise<string> {
    return `Bearer ${await this.#apiKey()}`
  }

  async #read<T>(path: string, options: CallOptions, query: Call['query'] = {}): Promise<T> {
    return await this.#transport.json<T>({ method: 'GET', path, query, ...options })
  }
}

// Never its key.
printsAs(Berth, ({ url }) => `Berth(${url})`)
