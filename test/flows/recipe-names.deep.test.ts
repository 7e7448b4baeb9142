// Reliability Z8: what happens to a value inside a unit. The scripts of the built-in databases create users, passwords and
// databases from arbitrary values, and the real client can log in with them.

import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { mariadb } from '../../src/domain/recipes/catalog/mariadb.ts'
import { postgres } from '../../src/domain/recipes/catalog/postgres.ts'
import { rabbitmq } from '../../src/domain/recipes/catalog/rabbitmq.ts'
import { redis } from '../../src/domain/recipes/catalog/redis.ts'
import type { Recipe } from '../../src/domain/recipes/define.ts'
import { exec } from '../support/berth-units.ts'
import { publish } from '../support/published.ts'
import { clients } from '../support/recipe-clients.ts'
import { useBerth } from '../support/use-berth.ts'

/** Characters with a special meaning in a shell, SQL, a URL or a configuration file. */
const passwords = {
  'with shell metacharacters': `--x $(touch /made) \`touch /made\` \${HOME} ' " \\ ; & | > < * ? # ! ~ é 日本`,
  'with SQL and URL metacharacters': `'; drop table x; -- " \\' \\\\ %s %00 @:/?#&=[]{} $$ $1 \u{1f600}`,
  'of several lines': `one\ntwo "\nrequirepass ""\n--three\n`,
}
const name = `$(id) 'a' "b" \`c\` \\ ; -- % @:/?#é`

type Case = {
  recipe: Recipe
  port: number
  /** Names that the recipe's parameters would not allow. */
  names: Record<string, string>
  outputs: (password: string) => Record<string, string>
}

const as = (scheme: string, password: string, path = '') =>
  `${scheme}://${encodeURIComponent(name)}:${encodeURIComponent(password)}@host${path}`
const cases: Case[] = [
  {
    recipe: postgres,
    port: 5432,
    names: { POSTGRES_USER: name, POSTGRES_DB: name },
    outputs: (password) => ({ DATABASE_URL: as('postgres', password, `/${encodeURIComponent(name)}`) }),
  },
  {
    recipe: mariadb,
    port: 3306,
    names: { MARIADB_USER: name, MARIADB_DATABASE: name },
    outputs: (password) => ({ DATABASE_URL: as('mysql', password, `/${encodeURIComponent(name)}`) }),
  },
  { recipe: redis, port: 6379, names: {}, outputs: (password) => ({ REDIS_URL: as('redis', password) }) },
  {
    recipe: rabbitmq,
    port: 5672,
    names: { RABBITMQ_DEFAULT_USER: name },
    outputs: (password) => ({ AMQP_URL: as('amqp', password) }),
  },
]

const berth = useBerth({ BERTH_ISOLATION: 'runc' })
let ca: string

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
})

/** The first unit may have to wait for its image to be built. */
const timeout = 400_000

describe.each(cases)('the recipe $recipe.name', ({ recipe, port, names, outputs }) => {
  it.each(Object.entries(passwords))('accepts a password %s', { timeout }, async (_how, password) => {
    const secrets = Object.fromEntries(recipe.secrets.map((secret) => [secret, password]))
    const at = { name: recipe.name, stackName: recipe.name }
    const made = recipe.make({ ...at, params: recipe.parse({}), secrets })
    const [planned] = made.units
    if (!planned) throw new Error('a recipe made no unit')
    const { spec, databasePorts } = planned
    const protocol = databasePorts[0]?.protocol ?? 'http'
    const published = await publish(berth, { ...spec, env: { ...spec.env, ...names } }, { port, protocol })
    const use = clients[recipe.name]?.use
    expect(await use?.({ ...published, ca, outputs: outputs(password) }, 'kept')).toBe('kept')
    const { stdout } = await exec(berth, published.unit, [
      'sh',
      '-c',
      'ls -d /made; cat /proc/[0-9]*/cmdline',
    ])
    expect(stdout).not.toContain('/made\n')
    expect(stdout.replaceAll('\0', ' ')).not.toContain(password.trim())
    expect((await berth.call('DELETE', `/v1/units/${published.unit.id}`)).status).toBe(200)
  })
})
