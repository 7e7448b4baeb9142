import { codingAgent } from './coding-agent.ts'

export const CODEX_VERSION = '0.171.0'

export const codex = codingAgent({
  name: 'codex',
  title: 'Codex',
  description:
    'A machine with OpenAI’s Codex, git and build tools, and a repository of yours. Open its terminal and type codex; the key of ' +
    'its model is put into its requests outside of the unit.',
  version: CODEX_VERSION,
  key: 'OPENAI_API_KEY',
  requests: {
    hosts: ['api.openai.com'],
    methods: ['GET', 'POST'],
    paths: ['/v1/responses', '/v1/responses/*', '/v1/models', '/v1/models/*'],
  },
  env: {},
})
