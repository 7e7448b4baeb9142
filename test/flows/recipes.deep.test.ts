// Every recipe as an agent uses it, with only the API, in both classes: created from its page, used by its real client at its
// endpoint, put to sleep, woken by that client, stopped, started and forked, and the fork is used the same way. `npm test`
// covers each recipe in one class, the deep tier in both.

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

/** Recipes whose images exist only on Docker Hub. */
const elsewhere = ['mongodb', 'neo4j']

/** The first unit of an image waits for the build. */
const WITH_BUILD_MS = 400_000

/** In the fast tier, alternate recipes run in alternate classes. */
const clientsIn = (isolation: 'runc' | 'gvisor') =>
  Object.entries(clients).filter(
    (_, index) => isDeep || ((index + testSeed) % 2 === 0) === (isolation === 'runc'),
  )

const patient = { concurrent: false, timeout: WITH_BUILD_MS }

describe.concurrent.each(['runc', 'gvisor'] as const)('with %s', (isolation) => {
  // Without the frozen tier, so that a sleeping unit is stopped.
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

  /** The unit with the default port, or with the database. */
  const mainOf = (units: Unit[]): Unit => {
    const main = units.at(-1)
    if (!main) throw new Error('there is no unit')
    return main
  }

  it('every recipe is listed and has a test', async () => {
    const { body } = await berth.call<RecipeList>('GET', '/v1/recipes')
    // nested.deep.test.ts uses docker, which class runc refuses, browser.deep.test.ts the browser, and
    // coding-agents.deep.test.ts the coding agents.
    const others = [
      'browser',
      'claude-code',
      'codex',
      'codex-environment',
      'codex-executor',
      'debian',
      'docker',
    ]
    const tested = [...Object.keys(clients), ...elsewhere, ...others]
    expect(body.recipes.map(({ name }) => name).toSorted()).toEqual(tested.toSorted())
  })

  it.each(clientsIn(isolation))(
    'the recipe %s survives sleep, stop, start and a fork, with its real client',
    patient,
    async (recipe, { params, port, use, writes }) => {
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
        // The short name resolves to the copy, as in the copy's environment.
        const { stdout } = await exec(berth, copy, ['getent', 'ahostsv4', sibling.name])
        if (sibling !== copy) expect(stdout).toContain(await addressOf(sibling))
      }
      // The source continues unharmed.
      expect(await use(at, null)).toBe(word)
      for (const { id } of [...units, ...forked.body.units]) {
        expect((await berth.call('DELETE', `/v1/units/${id}`)).status).toBe(200)
      }
    },
  )

  const addressOf = async (unit: Unit): Promise<string> =>
    (await exec(berth, unit, ['hostname', '-i'])).stdout.trim()

  /** Stops the units gracefully, so that every process can end by itself. */
  const restart = async (units: Unit[]) => {
    for (const { id } of units.toReversed()) {
      expect((await berth.call('POST', `/v1/units/${id}/stop`)).status).toBe(200)
    }
    for (const { id } of units) {
      const started = await berth.call<Unit>('POST', `/v1/units/${id}/start`)
      expect(started, JSON.stringify(started.body)).toMatchObject({ status: 200, body: { state: 'running' } })
    }
  }

  it('the recipe debian survives sleep, stop, start and a fork', patient, async () => {
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

  it.each(elsewhere)('the recipe %s reports that its image is not available', async (recipe) => {
    const answer = await berth.call<{ error: { code: string; message: string } }>('POST', '/v1/units', {
      recipe,
    })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
    expect(answer.body.error.message).toContain('docker.io/library/')
  })
})
