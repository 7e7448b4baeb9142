// Every recipe as an agent uses it, over the API alone, in both classes: made from what its page says, used by its real
// client through its published endpoint, put to sleep, woken by that client, stopped, started, forked, and the fork used
// alike. `npm test` has each in one of the classes, the deep tier in both.

import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Recipe, RecipeList } from '../../src/contract/recipe.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { exec } from '../support/berth-units.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { freeze } from '../support/published.ts'
import { type At, clients } from '../support/recipe-clients.ts'
import { useBerth } from '../support/use-berth.ts'

/** Their images are on Docker Hub alone. */
const elsewhere = ['mongodb', 'neo4j']

/** The first unit of an image waits for it to be built. */
const WITH_BUILD_MS = 400_000

/** Of two that follow one another the one is tried in runc and the other in gVisor. */
const clientsIn = (isolation: 'runc' | 'gvisor') =>
  Object.entries(clients).filter(
    (_, index) => isDeep || ((index + testSeed) % 2 === 0) === (isolation === 'runc'),
  )

const patient = { concurrent: false, timeout: WITH_BUILD_MS }

describe.concurrent.each(['runc', 'gvisor'] as const)('in %s', (isolation) => {
  // Without a first tier of sleep: a unit that sleeps has stopped.
  const berth = useBerth({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: '0s' })
  let ca: string

  beforeAll(async () => {
    ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
  })

  const create = async (recipe: string, more: object = {}) => {
    const answer = await berth.call<RunResult>('POST', '/v1/units', {
      recipe,
      waitTimeoutMs: 300_000,
      ...more,
    })
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    return answer.body
  }

  const expose = async ({ id }: Unit, port: number): Promise<Pick<At, 'url' | 'host' | 'port'>> => {
    const answer = await berth.call<Exposed>('POST', `/v1/units/${id}/expose`, { port, mode: 'public' })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    const { url } = answer.body
    const { hostname, port: at } = new URL(url.replace(/^[a-z+]+:/, 'https:'))
    return { url, host: hostname, port: Number(at) }
  }

  /** The unit with the front door, or with the database. */
  const mainOf = (units: Unit[]): Unit => {
    const main = units.at(-1)
    if (!main) throw new Error('there is no unit')
    return main
  }

  it('each is listed, and none is without a test', async () => {
    const { body } = await berth.call<RecipeList>('GET', '/v1/recipes')
    const tested = [...Object.keys(clients), ...elsewhere, 'debian']
    expect(body.recipes.map(({ name }) => name).toSorted()).toEqual(tested.toSorted())
  })

  it.each(clientsIn(isolation))('%s', patient, async (recipe, { params, port, use, writes }) => {
    const page = (await berth.call<Recipe>('GET', `/v1/recipes/${recipe}`)).body
    const door = port ?? page.frontDoor?.port ?? 0
    const { units, outputs } = await create(recipe, { params })
    expect(Object.keys(outputs)).toEqual(page.outputs.map(({ name }) => name))
    const unit = mainOf(units)
    const at = { ...(await expose(unit, door)), ca, outputs }
    const word = writes ? `word-${isolation}` : await use(at, null)
    expect(await use(at, writes ? word : null)).toBe(word)

    for (const each of units) await freeze(berth, each)
    expect(await use(at, null)).toBe(word)

    await restart(units)
    expect(await use(at, null)).toBe(word)

    const into = `fork-of-${recipe}`
    const forked = await berth.call<ForkResult>('POST', `/v1/stacks/${unit.stackId}/fork`, { into })
    expect(forked.status, JSON.stringify(forked.body)).toBe(201)
    const copy = mainOf(forked.body.units)
    const atCopy = { ...(await expose(copy, door)), ca, outputs }
    expect(await use(atCopy, null)).toBe(word)
    for (const sibling of forked.body.units) {
      // By its bare name, which its siblings were told, it is the copy that is meant.
      const { stdout } = await exec(berth, copy, ['getent', 'ahostsv4', sibling.name])
      if (sibling !== copy) expect(stdout).toContain(await addressOf(sibling))
    }
    // The source goes on beside it.
    expect(await use(at, null)).toBe(word)
    for (const { id } of [...units, ...forked.body.units]) {
      expect((await berth.call('DELETE', `/v1/units/${id}`)).status).toBe(200)
    }
  })

  const addressOf = async (unit: Unit): Promise<string> =>
    (await exec(berth, unit, ['hostname', '-i'])).stdout.trim()

  /** Stopped as somebody would who is done with it: every process is asked to end, and has time to. */
  const restart = async (units: Unit[]) => {
    for (const { id } of units.toReversed()) {
      expect((await berth.call('POST', `/v1/units/${id}/stop`)).status).toBe(200)
    }
    for (const { id } of units) {
      const started = await berth.call<Unit>('POST', `/v1/units/${id}/start`)
      expect(started, JSON.stringify(started.body)).toMatchObject({ status: 200, body: { state: 'running' } })
    }
  }

  it('debian runs what it is told', patient, async () => {
    const unit = mainOf((await create('debian')).units)
    const read = async (of: Unit) =>
      (await exec(berth, of, ['cat', '/etc/debian_version', '/root/kept'])).stdout
    await exec(berth, unit, ['sh', '-c', 'echo kept >/root/kept'])
    await freeze(berth, unit)
    expect(await read(unit)).toMatch(/^12.*kept/s)
    await restart([unit])
    const forked = await berth.call<ForkResult>('POST', `/v1/stacks/${unit.stackId}/fork`, {})
    expect(await read(mainOf(forked.body.units))).toMatch(/^12.*kept/s)
    expect(await read(unit)).toMatch(/^12.*kept/s)
  })

  it.each(elsewhere)('%s says plainly that its image cannot be had', async (recipe) => {
    const answer = await berth.call<{ error: { code: string; message: string } }>('POST', '/v1/units', {
      recipe,
    })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
    expect(answer.body.error.message).toContain('docker.io/library/')
  })
})
