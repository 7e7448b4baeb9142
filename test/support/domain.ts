// The domain on a real Postgres and the fake engine, without HTTP: what tests beside the domain's files run
// on. Each call of `makeCaller` is a team of its own.

import { policySchema, type Policy } from '../../src/contract/policy.ts'
import { type App, createApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { type CreateFromSpec, createFromSpecSchema } from '../../src/contract/create.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { createKey } from '../../src/domain/credentials/keys.ts'
import { createUnits } from '../../src/domain/units/create.ts'
import { getUnit } from '../../src/domain/units/get.ts'
import { createFakeEngine, type FakeEngine } from './fake-engine/fake-engine.ts'
import { SecretKey } from '../../src/lib/crypto.ts'
import { unobserved } from '../../src/lib/observer.ts'
import { createFailpoints, type Failpoints, type Fault } from '../../src/lib/failpoints.ts'
import { newId } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Letter } from '../../src/integrations/mail-transport.ts'
import { openStripe } from '../../src/integrations/stripe.ts'
import { openDatabase } from '../../src/store/db.ts'
import { insertTeam, insertUser } from '../../src/store/teams.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { createTestDatabase } from './postgres.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { firstHost } from './hosts.ts'
import { createPublicFetch } from '../../src/lib/public-fetch.ts'

export type TestDomain = {
  app: App
  engine: FakeEngine
  clock: TestClock
  databaseUrl: string
  /** Fault to come, by the place it comes at (lib/failpoints.ts). A crash is a call that never returns. */
  faults: Map<string, Fault>
  /** What was mailed (domain/mail/deliver.ts). */
  letters: Letter[]
  makeCaller(policy?: Partial<Policy>, plan?: Caller['plan']): Promise<Caller>
  /** The service as it is after its process died and came back: same database, same engine, nothing under way. */
  restarted(): App
  close(): Promise<void>
}

const secretKey = new SecretKey(Buffer.alloc(32, 7))

export async function createTestDomain(env: Record<string, string> = {}): Promise<TestDomain> {
  const database = await createTestDatabase()
  const clock = createTestClock()
  const engine = createFakeEngine({ clock })
  const db = openDatabase(database.url, silentLog)
  const faults = new Map<string, Fault>()
  const letters: Letter[] = []
  const config = loadConfig(env)
  const parts = {
    config,
    db,
    fleet: createFleet(await firstHost(db, engine)),
    clock,
    log: silentLog,
    secretKey,
    failpoints: scriptedFailpoints(faults),
    deliverMail: async (letter: Letter) => void letters.push(letter),
    observer: unobserved,
    payments: config.payments && (await openStripe(config.payments)),
    fetchPublic: createPublicFetch(),
  }
  const app = createApp(parts)
  return {
    app,
    engine,
    clock,
    databaseUrl: database.url,
    faults,
    letters,
    makeCaller: (policy = {}, plan = 'team') => makeCaller(app, policy, plan),
    restarted: () => createApp(parts),
    close: async () => {
      await db.destroy()
      await database.drop()
    },
  }
}

function scriptedFailpoints(faults: Map<string, Fault>): Failpoints {
  const take = (place: string) => {
    const fault = faults.get(place) ?? null
    faults.delete(place)
    return fault
  }
  return createFailpoints(take, async () => await new Promise<never>(() => {}))
}

/** Somebody of a team of their own, with a key. */
export async function makeCaller(
  app: Pick<App, 'db'> & { clock: Pick<App['clock'], 'now'> },
  policy: Partial<Policy>,
  plan: Caller['plan'],
): Promise<Caller> {
  const userId = newId('user')
  const teamId = newId('team')
  const createdAt = app.clock.now()
  await insertUser(app.db, {
    id: userId,
    email: `${userId}@example.com`,
    name: 'Test',
    admin: false,
    createdAt,
  })
  await insertTeam(app.db, {
    id: teamId,
    slug: teamId,
    name: 'Test',
    personal: true,
    plan,
    paysAsItGoes: true,
    ownerId: userId,
    createdAt,
  })
  const { network_group } = await app.db
    .selectFrom('teams')
    .select('network_group')
    .where('id', '=', teamId)
    .executeTakeFirstOrThrow()
  return await addKey(app, { userId, teamId, networkGroup: network_group, plan }, policy)
}

/** Another key of a team: a unit that nobody calls runs on the account of the one that it last ran on. */
export async function addKey(
  { db, clock }: { db: App['db']; clock: Pick<App['clock'], 'now'> },
  { userId, teamId, networkGroup, plan }: Pick<Caller, 'userId' | 'teamId' | 'networkGroup' | 'plan'>,
  policy: Partial<Policy>,
): Promise<Caller> {
  const full = policySchema.parse({ maxConcurrentUnits: 100, ...policy })
  const key = { teamId, name: 'test', policy: full, createdBy: userId, createdAt: clock.now() }
  const { id } = await createKey(db, key)
  return {
    kind: 'key',
    credentialId: id,
    credentialName: key.name,
    clientName: null,
    userId,
    teamId,
    networkGroup,
    plan,
    role: 'owner',
    policy: full,
  }
}

/** A create body with every default filled in. */
export function createBody(
  spec: Record<string, unknown> = {},
  rest: Record<string, unknown> = {},
): CreateFromSpec {
  return createFromSpecSchema.parse({
    spec: { name: 'web', image: 'berth.local/debian:12', ...spec },
    ...rest,
  })
}

export async function makeUnit(
  app: App,
  caller: Caller,
  spec: Record<string, unknown> = {},
  rest: Record<string, unknown> = {},
): Promise<Unit> {
  const { units } = await createUnits(app, caller, createBody(spec, rest))
  const [unit] = units
  if (!unit) throw new Error('a create answered no unit')
  return unit
}

/** Waits for the unit to be as the test expects; the test's own time limit bounds it. */
export async function eventually(app: App, caller: Caller, id: string, state: Unit['state']): Promise<Unit> {
  for (;;) {
    const unit = await getUnit(app, caller, id)
    if (unit.state === state) return unit
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
