// What the recipes for coding agents share: a machine on which the agent's own program of npm is installed at the first start
// (engine/oci/images/builtin/agent/coding-agent). Neither its key nor the repository's token is ever in it.

import type { EnvInput } from '../../../contract/env.ts'
import { validation } from '../../../contract/errors.ts'
import type { Size } from '../../../contract/policy.ts'
import { defineRecipe, type Recipe, type RecipeUnit } from '../define.ts'
import { brokered, env, type GivenSecret, type Requests, secret, size, string } from '../params.ts'
import { HAS_PLACEHOLDER } from './words.ts'

type Agent = {
  /** Also as the image's script calls it. */
  name: string
  title: string
  description: string
  /** In npm. */
  version: string
  /** The variable that has its key, and the secret of the team that is bound by default. */
  key: string
  /** For which a key of the unit's own is. */
  requests: Requests
  /** What it needs to know about where it runs. */
  env: Record<string, string>
}

export function codingAgent({ name, title, description, version, key, requests, env: own }: Agent): Recipe {
  return defineRecipe({
    name,
    title,
    description,
    tags: ['agent', 'shell'],
    params: {
      key: secret(`The key of its model. ${HAS_PLACEHOLDER}`, { teamSecret: key }),
      ...workParams({ version, taken: [key] }),
    },
    secrets: [],
    units: {
      main: ({ params }) => {
        const unit = workUnit(name, params)
        return { ...unit, env: { ...own, ...unit.env, [key]: brokered(key, params.key, requests) } }
      },
    },
    frontDoor: null,
    outputs: {},
  })
}

/** `taken`: variables besides those of this file that the recipe sets. */
export function workParams({ version, taken }: { version: string; taken: string[] }) {
  return {
    repository: string('A repository to clone into /workspace.', {
      pattern: /^(?:https:\/\/(?:[a-z0-9-]+\.)+[a-z0-9-]+(?:\/[A-Za-z0-9_~][A-Za-z0-9_.~-]*)+)?$/,
      format: 'empty, or an address such as https://github.com/owner/name.git',
      fallback: '',
    }),
    repositoryToken: secret(`The token for a private repository. ${HAS_PLACEHOLDER}`, null),
    version: string('Its version in npm.', {
      pattern: /^[0-9a-z][0-9a-z.-]{0,39}$/,
      format: 'a version such as 1.2.3, or a tag such as latest',
      fallback: version,
    }),
    env: env({ taken: ['AGENT_VERSION', 'REPOSITORY', 'REPOSITORY_TOKEN', ...taken] }),
    size: size('medium'),
  }
}

type Work = {
  repository: string
  repositoryToken: GivenSecret | null
  version: string
  env: EnvInput
  size: Size
}

/** `agent`: as the image's script calls it. */
export function workUnit(agent: string, { repository, repositoryToken: token, version, ...params }: Work) {
  return {
    image: 'berth.local/agent:1',
    cmd: ['coding-agent', agent],
    size: params.size,
    env: {
      ...params.env,
      AGENT_VERSION: version,
      REPOSITORY: repository,
      ...(token && { REPOSITORY_TOKEN: brokered('REPOSITORY_TOKEN', token, requestsOf(repository)) }),
    },
    healthcheck: { cmd: ['test', '-e', '/run/coding-agent-is-ready'], timeoutMs: INSTALLS_WITHIN_MS },
  } satisfies RecipeUnit
}

/** It has a program of hundreds of megabytes to install. */
const INSTALLS_WITHIN_MS = 300_000

/** Those of git for one repository. Throws `validation` if there is none. */
function requestsOf(repository: string): Requests {
  if (repository === '')
    throw validation([{ path: 'params.repositoryToken', message: 'is for a repository: name that too' }])
  const { hostname, pathname } = new URL(repository)
  const path = pathname.replace(/\.git$/, '')
  return { hosts: [hostname], methods: ['GET', 'POST'], paths: [`${path}/*`, `${path}.git/*`] }
}
