// `npm run credits -- …`: shows the credits of teams, and grants credits. A grant is also the way to correct a wrong
// charge, since charges are never changed (decisions/money.md).

import { parseArgs } from 'node:util'
import type { Kysely } from 'kysely'
import type { Config } from '../config.ts'
import { creditBalanceCents } from '../domain/billing/balance.ts'
import { grantCredits } from '../domain/credits/grant.ts'
import { systemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { print } from '../lib/terminal.ts'
import type { Database } from '../store/db.ts'
import { repeatedly } from '../store/outage.ts'
import { findTeamByIdOrSlug } from '../store/teams.ts'
import { runBesideBerth } from './beside-berth.ts'

const help = `What teams have left to spend.

  npm run credits -- show TEAM
      TEAM is an id or a slug: "npm run team -- list" shows them.

  npm run credits -- grant TEAM CENTS --note "why"
      So many whole euro cents more; the note stays with them. To take some back: grant TEAM --note "why" -- -500`

export async function runCreditsCommand(config: Config, args: string[]): Promise<number> {
  const command = parseCommand(args)
  if (command.kind === 'help') {
    print(help)
    return 0
  }
  print(await runBesideBerth(config, (inside) => perform(inside, command)))
  return 0
}

type Command =
  | { kind: 'help' }
  | { kind: 'show'; team: string }
  | { kind: 'grant'; team: string; cents: number; note: string }

/** Throws a sentence that says what to type instead. */
export function parseCommand(args: string[]): Command {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { note: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  const [verb, team, amount, ...rest] = positionals
  const { note } = values
  if (values.help || verb === undefined) return { kind: 'help' }
  if (verb !== 'show' && verb !== 'grant') throw usage(`there is no "${verb}"; use show or grant`)
  if (team === undefined) throw usage('say which team: its id or slug')
  if (rest.length > 0) throw usage(`"${rest.join(' ')}" is not expected`)
  if (verb === 'show') {
    if (amount !== undefined || note !== undefined) throw usage('show takes a team and nothing else')
    return { kind: 'show', team }
  }
  if (note === undefined || note.trim() === '')
    throw usage('say what the credits are for, as --note "June, by invoice"')
  return { kind: 'grant', team, cents: wholeCents(amount), note }
}

/** Returns the lines to print. */
export async function perform(
  { db, log }: { db: Kysely<Database>; log: Log },
  command: Exclude<Command, { kind: 'help' }>,
): Promise<string> {
  const team = await findTeamByIdOrSlug(db, command.team)
  if (team === null) throw new Error(`There is no team "${command.team}"; "npm run team -- list" shows them.`)
  if (command.kind === 'grant') {
    const { cents, note } = command
    await grantCredits(db, { teamId: team.id, cents, note, at: systemClock.now() })
    log.info({ teamId: team.id, cents, note }, 'operator granted credits')
  }
  // An operator who is told of a failure after the grant would grant again.
  const balances = await repeatedly(() => creditBalanceCents(db, [team.id]))
  return `${team.id} has ${balances.get(team.id) ?? 0} euro cents.`
}

/** A typing error must not give away a fortune. */
const MAX_CENTS = 10_000_000

function wholeCents(text: string | undefined): number {
  const cents = /^-?\d{1,8}$/.test(text ?? '') ? Number(text) : 0
  if (cents !== 0 && Math.abs(cents) <= MAX_CENTS) return cents
  throw usage(`CENTS is a whole number of euro cents up to ${MAX_CENTS}, as 2500, not "${text ?? ''}"`)
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run credits -- --help" shows how it is used.`)
}
