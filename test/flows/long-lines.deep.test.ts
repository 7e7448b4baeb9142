// Lines that conmon cuts at 8192 bytes, within characters: whole wherever a log is read.

import { describe, expect, it } from 'vitest'
import { Berth as Client } from '../../packages/sdk/src/index.ts'
import type { LogPage } from '../../src/contract/logs.ts'
import { createUnit } from '../support/berth-units.ts'
import { newEra } from '../support/mcp.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const LINES = ['a', 'bc', 'def'].map((letters) => letters + '😀€é'.repeat(4000))
const SCRIPT = "for letters in a bc def; do echo $letters$(yes 😀€é | head -n 4000 | tr -d '\\n'); done"

describe.each(usualClasses)('a unit in class %s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  const spec = { image: 'berth.local/debian:12', cmd: ['sh', '-c', `${SCRIPT}; exec sleep infinity`] }

  it('has lines of 36 kB of Unicode whole in its log, by REST, by a follower and by MCP', async () => {
    const { id, name } = await createUnit(berth, { name: 'long', ...spec })
    const { baseUrl, apiKey } = berth.credentials
    const unit = await new Client({ url: baseUrl, apiKey }).units.get(id)
    const followed: string[] = []
    for await (const { text } of unit.logs({ follow: true })) {
      if (followed.push(text) === LINES.length) break
    }
    expect(followed).toEqual(LINES)
    const { body } = await berth.call<LogPage>('GET', `/v1/units/${id}/logs`)
    expect(body.lines.map(({ text }) => text)).toEqual(LINES)
    const session = await newEra({ baseUrl, key: apiKey })
    const { text } = await session.call('read_logs', { unit: name })
    await session.close()
    expect([text.includes('😀€é'), text.includes('\ufffd')]).toEqual([true, false])
  })

  it('has them whole in the log that is kept after its create failed', async () => {
    const healthcheck = { cmd: ['sh', '-c', 'exit 3'], intervalMs: 500, timeoutMs: 4000 }
    const answer = await berth.call<{ error: { details: { unitId: string } } }>('POST', '/v1/units', {
      spec: { name: 'sick', ...spec, healthcheck },
    })
    expect(answer.status, JSON.stringify(answer.body)).toBe(502)
    const { unitId } = answer.body.error.details
    const { body } = await berth.call<LogPage>('GET', `/v1/units/${unitId}/logs`)
    expect(body.lines.map(({ text }) => text)).toEqual(LINES)
  })
})
