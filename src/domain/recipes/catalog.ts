// Every recipe, in the order in which they are listed.

import { browser } from './catalog/browser.ts'
import { claudeCode } from './catalog/claude-code.ts'
import { codexEnvironment } from './catalog/codex-environment.ts'
import { codexExecutor } from './catalog/codex-executor.ts'
import { codex } from './catalog/codex.ts'
import { debian } from './catalog/debian.ts'
import { docker } from './catalog/docker.ts'
import { etcd } from './catalog/etcd.ts'
import { mariadb } from './catalog/mariadb.ts'
import { mongodb } from './catalog/mongodb.ts'
import { neo4j } from './catalog/neo4j.ts'
import { node } from './catalog/node.ts'
import { postgres } from './catalog/postgres.ts'
import { python } from './catalog/python.ts'
import { rabbitmq } from './catalog/rabbitmq.ts'
import { redis } from './catalog/redis.ts'
import { staticFiles } from './catalog/static.ts'
import { webWithPostgres } from './catalog/web-with-postgres.ts'
import { notFound } from '../../contract/errors.ts'
import type { Recipe } from './define.ts'

export const recipes: readonly Recipe[] = [
  postgres,
  mariadb,
  redis,
  mongodb,
  neo4j,
  rabbitmq,
  etcd,
  node,
  python,
  staticFiles,
  debian,
  docker,
  browser,
  claudeCode,
  codex,
  codexExecutor,
  codexEnvironment,
  webWithPostgres,
]

/** Throws `not_found`. */
export function findRecipe(name: string): Recipe {
  const recipe = recipes.find((each) => each.name === name)
  if (!recipe) throw notFound('recipe', name)
  return recipe
}
