import { codingAgent } from './coding-agent.ts'

export const claudeCode = codingAgent({
  name: 'claude-code',
  title: 'Claude Code',
  description:
    'A machine with Claude Code, git and build tools, and a repository of yours. Open its terminal and type claude; the key of ' +
    'its model is put into its requests outside of the unit.',
  version: '2.1.332',
  key: 'ANTHROPIC_API_KEY',
  requests: {
    hosts: ['api.anthropic.com'],
    methods: ['GET', 'POST'],
    paths: ['/v1/messages', '/v1/messages/count_tokens', '/v1/models', '/v1/models/*'],
  },
  // It runs as root, whose boundary is the unit; its version is the recipe's; it calls nobody but its model.
  env: { IS_SANDBOX: '1', DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
})
