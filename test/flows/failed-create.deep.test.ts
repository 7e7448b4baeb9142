// A unit that never becomes ready because of a misbehaving healthcheck (reliability I25): the create fails in time, nothing
// of it keeps running, and its log can be read.

import { describe, expect, it } from 'vitest'
import type { LogPage } from '../../src/contract/logs.ts'
import { isolationClasses } from '../../src/engine/engine.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { partOf, testSeed } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

/** The commands of the healthcheck. */
const checks = {
  'prints endlessly': 'yes',
  'leaves detached processes behind': 'for i in $(seq 20); do (setsid sleep 4711 &); done; exit 1',
  'fails at once': 'exit 3',
}

describe.each(partOf(isolationClasses, 1, testSeed))(
  'a create in class %s fails cleanly if its healthcheck',
  (isolation) => {
    const berth = useBerth({ BERTH_ISOLATION: isolation })

    it.each(Object.entries(checks))('%s', async (name, script) => {
      const spec = {
        name: 'sick',
        image: 'berth.local/debian:12',
        cmd: ['sh', '-c', 'echo one; echo FATAL canary; exec sleep infinity'],
        healthcheck: { cmd: ['sh', '-c', script], intervalMs: 500, timeoutMs: 4000 },
      }
      const answer = await berth.call<{ error: { details: { unitId: string } } }>('POST', '/v1/units', {
        spec,
      })
      expect(answer.status, JSON.stringify(answer.body)).toBe(502)
      const { unitId } = answer.body.error.details
      const { body } = await berth.call<LogPage>('GET', `/v1/units/${unitId}/logs`)
      expect([name, ...body.lines.map(({ text }) => text)]).toEqual([name, 'one', 'FATAL canary'])
      await eventually(async () => {
        const { processes, cgroups } = await berth.hostState()
        expect([...processes, ...cgroups].filter((each) => each.includes(unitId))).toEqual([])
        expect(processes.filter((each) => each.includes('sleep 4711'))).toEqual([])
      })
      // It occupies no slot and no name that another unit needs.
      const next = await createUnit(berth, { ...spec, healthcheck: { cmd: ['true'] } })
      expect((await exec(berth, next, ['echo', 'fine'])).stdout).toBe('fine\n')
      for (const id of [next.id, unitId])
        expect((await berth.call('DELETE', `/v1/units/${id}`)).status).toBe(200)
    })
  },
)
