// `npm run team -- …`: what only the operator decides about teams and people. The API has no such operation, so no
// stolen session or key can give itself a plan.

import { parseArgs } from 'node:util'
import type { Kysely } from 'kysely'
import type { Config } from '../config.ts'
import { planOrder as plans } from '../domain/teams/plan-limits.ts'
import type { Log } from '../lib/log.ts'
import { print } from '../lib/terminal.ts'
import type { Database } from '../store/db.ts'
import { changeTeam, findTeamByIdOrSlug, listTeams, listTeamsOfUser, type Plan } from '../store/teams.ts'
import { findUserOfAddress, setAdmin } from '../store/users.ts'
import { printable } from '../lib/printable.ts'
import { formatTable } from './table.ts'
import { runBesideBerth } from './beside-berth.ts'

const help = `What the operator decides about teams and people.

  npm run team -- list
      every team: id, plan, whether it pays as it goes, members, owners, name

  npm run team -- set TEAM [--plan ${plans.join('|')}] [--pays-as-it-goes yes|no]
      TEAM is an id or a slug. A plan says how many keys, members and teams there may be, and whether units may
      run for ever. A team that pays as it goes goes on when its credits are used up.

  npm run team -- set-user EMAIL --admin yes|no
      An admin operates the service: questions to its support are for the first of them, teams that an admin makes
      pay as they go, and their own team can be shared: it gets the plan team, as that of the first account has.`

export async function runTeamCommand(config: Config, args: string[]): Promise<number> {
  const command = parseCommand(args)
  if (command.kind === 'help') {
    print(help)
    return 0
  }
  for (const line of await runBesideBerth(config, (inside) => perform(inside, command))) print(line)
  return 0
}

type Command =
  | { kind: 'help' }
  | { kind: 'list' }
  | { kind: 'set'; team: string; plan: Plan | undefined; paysAsItGoes: boolean | undefined }
  | { kind: 'set-user'; email: string; admin: boolean }

/** Throws a sentence that says what to type instead. */
export function parseCommand(args: string[]): Command {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      plan: { type: 'string' },
      'pays-as-it-goes': { type: 'string' },
      admin: { type: 'string' },
    },
  })
  const { plan, admin, 'pays-as-it-goes': pays } = values
  const [verb, subject, ...rest] = positionals
  if (values.help || verb === undefined) return { kind: 'help' }
  if (rest.length > 0) throw usage(`"${rest.join(' ')}" is not expected`)
  switch (verb) {
    case 'list':
      if (subject !== undefined || plan !== undefined || pays !== undefined || admin !== undefined) {
        throw usage('list takes nothing else')
      }
      return { kind: 'list' }
    case 'set':
      if (subject === undefined) throw usage('say which team: its id or slug')
      if (admin !== undefined) throw usage('people are admins, not teams: use set-user')
      if (plan === undefined && pays === undefined) throw usage('say --plan or --pays-as-it-goes')
      return {
        kind: 'set',
        team: subject,
        plan: planOf(plan),
        paysAsItGoes: yesOrNo('--pays-as-it-goes', pays),
      }
    case 'set-user': {
      if (subject === undefined) throw usage('name the address of an account')
      if (plan !== undefined || pays !== undefined) throw usage('teams have plans, not people: use set')
      const isAdmin = yesOrNo('--admin', admin)
      if (isAdmin === undefined) throw usage('say --admin yes or --admin no')
      return { kind: 'set-user', email: subject, admin: isAdmin }
    }
    default:
      throw usage(`there is no "${verb}"; use list, set or set-user`)
  }
}

/** Returns the lines to print. */
export async function perform(
  { db, log }: { db: Kysely<Database>; log: Log },
  command: Exclude<Command, { kind: 'help' }>,
): Promise<string[]> {
  if (command.kind === 'list') return await tableOfTeams(db)
  if (command.kind === 'set-user') {
    const { email, admin } = command
    const user = await findUserOfAddress(db, email)
    if (user === null) throw new Error(`No account has the address "${email}".`)
    await setAdmin(db, { id: user.id, admin })
    log.info({ userId: user.id, admin }, 'operator changed whether a person is an admin')
    const shared = admin ? await makeShareable({ db, log }, user.id) : []
    return [`${user.email} is ${admin ? 'an admin' : 'no admin'} now.`, ...shared]
  }
  const { plan, paysAsItGoes } = command
  const team = await findTeamByIdOrSlug(db, command.team)
  if (team === null) throw new Error(`There is no team "${command.team}"; "npm run team -- list" shows them.`)
  await changeTeam(db, { id: team.id, plan, paysAsItGoes })
  log.info({ teamId: team.id, plan, paysAsItGoes }, 'operator changed a team')
  return await tableOfTeams(db, team.id)
}

/** The personal team of an operator is no smaller than that of the first account; returns what to say of it. */
async function makeShareable(
  { db, log }: { db: Kysely<Database>; log: Log },
  userId: string,
): Promise<string[]> {
  const own = (await listTeamsOfUser(db, userId)).find(({ personal, role }) => personal && role === 'owner')
  if (own?.plan !== 'hobby') return []
  await changeTeam(db, { id: own.id, plan: 'team' })
  log.info({ teamId: own.id, plan: 'team' }, 'operator changed a team')
  return [`Their own team, ${own.slug}, has the plan team now: they can invite people to it.`]
}

async function tableOfTeams(db: Kysely<Database>, only?: string): Promise<string[]> {
  const teams = (await listTeams(db)).filter(({ id }) => only === undefined || id === only)
  const rows = teams.map(({ id, plan, paysAsItGoes, members, owners, name }) => {
    return [id, plan, paysAsItGoes ? 'yes' : 'no', String(members), owners.join(', '), printable(name)]
  })
  return formatTable([['team', 'plan', 'pays as it goes', 'members', 'owners', 'name'], ...rows])
}

function planOf(text: string | undefined): Plan | undefined {
  const plan = plans.find((each) => each === text)
  if (text !== undefined && plan === undefined)
    throw usage(`--plan is one of ${plans.join(', ')}, not "${text}"`)
  return plan
}

function yesOrNo(option: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined
  if (text !== 'yes' && text !== 'no') throw usage(`${option} is yes or no, not "${text}"`)
  return text === 'yes'
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run team -- --help" shows how it is used.`)
}
