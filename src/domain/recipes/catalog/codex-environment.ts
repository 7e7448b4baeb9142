import { defineRecipe } from '../define.ts'
import { brokered, secret, string } from '../params.ts'
import { CODEX_VERSION } from './codex.ts'
import { workParams, workUnit } from './coding-agent.ts'
import { HAS_PLACEHOLDER } from './words.ts'

const taken = ['CODEX_REMOTE', 'CODEX_ENVIRONMENT', 'CODEX_ENVIRONMENT_KEY']

export const codexEnvironment = defineRecipe({
  name: 'codex-environment',
  title: 'Environment of OpenAI’s Agents API',
  description:
    'A machine that registers itself as the environment of a session, for where berth agents forward cannot run. Its key is put into ' +
    'its requests outside of the unit. Give it sleep: never, since the vendor cannot wake it.',
  tags: ['agent'],
  params: {
    remote: string('The address to register at, as the session gives it.', {
      pattern: /^https:\/\/(?:[a-z0-9-]+\.)+[a-z0-9-]+(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$/,
      format: 'an https address such as https://api.openai.com/v1',
      example: 'https://api.openai.com/v1',
    }),
    environment: string('The id of the environment.', {
      pattern: /^[A-Za-z0-9_-]{1,128}$/,
      format: 'an id such as env_01AbC',
      example: 'env_01AbC',
    }),
    key: secret(`The key of the environment. ${HAS_PLACEHOLDER}`, {
      teamSecret: 'CODEX_ENVIRONMENT_KEY',
    }),
    ...workParams({ version: CODEX_VERSION, taken }),
  },
  secrets: [],
  units: {
    main: ({ params }) => {
      const unit = workUnit('codex-environment', params)
      const { hostname, pathname } = new URL(params.remote)
      const path = `${pathname.replace(/\/$/, '')}/cloud/environment/${params.environment}/*`
      const env = {
        ...unit.env,
        CODEX_REMOTE: params.remote,
        CODEX_ENVIRONMENT: params.environment,
        CODEX_ENVIRONMENT_KEY: brokered('CODEX_ENVIRONMENT_KEY', params.key, {
          hosts: [hostname],
          methods: ['POST'],
          paths: [path],
        }),
      }
      return { ...unit, env }
    },
  },
  frontDoor: null,
  outputs: {},
})
