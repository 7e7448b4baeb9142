// What the recipes for coding agents share: a machine on which the agent's own program of npm is installed at the first start
// (engine/oci/images/builtin/agent/coding-agent). Neither its key nor the repository's token is ever in it.

import { validation } from '../../../contract/errors.ts'
import { defineRecipe, type Recipe } from '../define.ts'
import { brokered, env, type Requests, secret, size, string } from '../params.ts'

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
      key: secret('The key of its model. The unit has a placeholder instead.', { teamSecret: key }),
      repository: string('A repository to clone into /workspace.', {
        pattern: /^(?:https:\/\/(?:[a-z0-9-]+\.)+[a-z0-9-]+(?:\/[A-Za-z0-9_~][A-Za-z0-9_.~-]*)+)?$/,
        format: 'empty, or an address such as https://github.com/owner/name.git',
        fallback: '',
      }),
      repositoryToken: secret(
        'The token for a private repository. The unit has a placeholder instead.',
        null,
      ),
      version: string('Its version in npm.', {
        pattern: /^[0-9a-z][0-9a-z.-]{0,39}$/,
        format: 'a version such as 1.2.3, or a tag such as latest',
        fallback: version,
      }),
      env: env({ taken: [key, 'AGENT_VERSION', 'REPOSITORY', 'REPOSITORY_TOKEN'] }),
      size: size('medium'),
    },
    secrets: [],
    units: {
      main: ({ params }) => ({
        image: 'berth.local/agent:1',
        cmd: ['coding-agent', name],
        size: params.size,
        env: {
          ...own,
          ...params.env,
          [key]: brokered(key, params.key, requests),
          AGENT_VERSION: params.version,
          REPOSITORY: params.repository,
          ...(params.repositoryToken && {
            REPOSITORY_TOKEN: brokered(
              'REPOSITORY_TOKEN',
              params.repositoryToken,
              requestsOf(params.repository),
            ),
          }),
        },
        healthcheck: {
          cmd: ['test', '-e', '/run/coding-agent-is-ready'],
          timeoutMs: INSTALLS_WITHIN_MS,
        },
      }),
    },
    frontDoor: null,
    outputs: {},
  })
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
