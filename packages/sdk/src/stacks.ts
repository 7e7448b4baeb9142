// Stacks: units that share a private network, sleep together and are forked together.

import type { Stack as StackInfo, StackFork, StackList } from './contract.ts'
import { type List, type ListOptions, listOf } from './list.ts'
import { printsAs } from './printed.ts'
import { type CallOptions, type MakeOptions, newKey, type Transport } from './transport.ts'
import { type Forked, forkOf, Unit } from './unit.ts'

export type ForkedStack = Forked

export class Stack {
  /** What the service answered last. */
  info: StackInfo
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, info: StackInfo) {
    this.#transport = transport
    this.#path = `/v1/stacks/${encodeURIComponent(info.id)}`
    this.info = info
  }

  get id(): string {
    return this.info.id
  }

  get name(): string {
    return this.info.name
  }

  /** Oldest first. */
  get units(): Unit[] {
    return this.info.units.map((unit) => new Unit(this.#transport, unit))
  }

  async refresh(options: CallOptions = {}): Promise<this> {
    this.info = await this.#transport.json({ method: 'GET', path: this.#path, ...options })
    return this
  }

  /** All of it as it is at one instant, or nothing. */
  async fork(options: StackFork & MakeOptions = {}): Promise<ForkedStack> {
    return await forkOf(this.#transport, this.#path, options)
  }

  /** Gone for good, with every unit in it. */
  async destroy(options: CallOptions = {}): Promise<this> {
    this.info = await this.#transport.json({
      method: 'DELETE',
      path: this.#path,
      extraMs: 120_000,
      ...options,
    })
    return this
  }
}

printsAs(
  Stack,
  ({ name, info: { units }, id }) =>
    `Stack(${name}, ${units.length === 1 ? '1 unit' : `${units.length} units`}, ${id})`,
)

export type Stacks = {
  create: (name: string, options?: MakeOptions) => Promise<Stack>
  list: (options?: ListOptions) => List<Stack>
  /** By id. Throws `not_found`. */
  get: (id: string, options?: CallOptions) => Promise<Stack>
  /** By name; null where there is none. */
  find: (name: string, options?: ListOptions) => Promise<Stack | null>
}

export function stacksOf(transport: Transport): Stacks {
  const path = '/v1/stacks'
  const list: Stacks['list'] = ({ limit, ...options } = {}) =>
    listOf(async (cursor) => {
      const query = { limit, cursor }
      const { stacks, next } = await transport.json<StackList>({ method: 'GET', path, query, ...options })
      return { items: stacks.map((info) => new Stack(transport, info)), next }
    })
  return {
    create: async (name, { idempotencyKey = newKey(), ...options } = {}) =>
      new Stack(
        transport,
        await transport.json({ method: 'POST', path, body: { name }, idempotencyKey, ...options }),
      ),
    list,
    get: async (id, options = {}) =>
      new Stack(
        transport,
        await transport.json({ method: 'GET', path: `${path}/${encodeURIComponent(id)}`, ...options }),
      ),
    find: async (name, options) => {
      for await (const stack of list(options)) if (stack.name === name) return stack
      return null
    },
  }
}
