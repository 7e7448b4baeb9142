// The operator’s command for credits: what it grants, what it refuses, and what it logs.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeTeam } from '../../test/support/make.ts'
import { type Service, startService } from '../../test/support/service.ts'
import { parseCommand, perform } from './credits.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

async function run(...args: string[]): Promise<string> {
  const command = parseCommand(args)
  if (command.kind === 'help') return 'help'
  return await perform({ db: service.app.db, log: service.app.log }, command)
}

describe('npm run credits', () => {
  it('grants and takes back whole cents with a note and prints the balance', async () => {
    const { teamId } = await makeTeam(service)
    expect(await run('show', teamId)).toBe(`${teamId} has 0 euro cents.`)
    expect(await run('grant', teamId, '2500', '--note', 'June')).toBe(`${teamId} has 2500 euro cents.`)
    const slug = teamId.replace('_', '-')
    expect(await run('grant', slug, '--note', 'too much', '--', '-500')).toBe(
      `${teamId} has 2000 euro cents.`,
    )
    expect(service.logged.join('')).toContain(`"teamId":"${teamId}","cents":-500,"note":"too much"`)
    const kept = await service.app.db
      .selectFrom('credits')
      .selectAll()
      .where('team_id', '=', teamId)
      .execute()
    expect(kept.map(({ nano_cents, note }) => [nano_cents, note])).toEqual([
      [2_500_000_000_000n, 'June'],
      [-500_000_000_000n, 'too much'],
    ])
  })

  it.each([[[]], [['--help']], [['grant', '-h']]])('prints its help for %j', async (args) => {
    expect(await run(...args)).toBe('help')
  })

  it.each([
    [['give'], 'there is no "give"'],
    [['show'], 'say which team'],
    [['show', 'team', '5'], 'nothing else'],
    [['grant', 'team', '5'], 'say what the credits are for'],
    [['grant', 'team', '5', '--note', ' '], 'say what the credits are for'],
    [['grant', 'team', '--note', 'x'], 'whole number'],
    [['grant', 'team', '0', '--note', 'x'], 'whole number'],
    [['grant', 'team', '1.5', '--note', 'x'], 'whole number'],
    [['grant', 'team', '99999999', '--note', 'x'], 'up to 10000000'],
    [['grant', 'team', '5', '6', '--note', 'x'], 'is not expected'],
    [['show', 'team_nobody'], 'There is no team "team_nobody"'],
  ])('refuses %j with an explanation', async (args, sentence) => {
    await expect(run(...args)).rejects.toThrow(sentence)
  })
})
