import { expect, test } from 'vitest'
import { agentOf } from './known-agents.ts'

test.each([
  ['claude-code/2.1 (linux; x64)', { name: 'claude-code', title: 'Claude Code', version: '2.1' }],
  ['claude-cli/1.0.88 (external, cli)', { name: 'claude-code', title: 'Claude Code', version: '1.0.88' }],
  [
    'Mozilla/5.0 (X11) AppleWebKit/537.36 Cursor/1.2.3',
    { name: 'cursor', title: 'Cursor', version: '1.2.3' },
  ],
  ['codex_cli_rs/0.40.0 (Debian 12; x86_64)', { name: 'codex', title: 'Codex', version: '0.40.0' }],
  ['goose', { name: 'goose', title: 'Goose', version: null }],
  ['GOOSE/1', { name: 'goose', title: 'Goose', version: '1' }],
])('%s is recognised as an agent', (userAgent, expected) => {
  expect(agentOf(userAgent)).toEqual(expected)
})

test.each([
  null,
  '',
  'curl/8.5.0',
  'node',
  'Mozilla/5.0 (compatible; claude-code/2.1) Chrome/140',
  'Mozilla/5.0 (a (nested) claude-code/2.1',
  'constructor/1 __proto__/2 toString',
  'claude-code/2.1/x claude-code/<script>',
  'not-claude-code/2.1',
])('%s is not recognised as an agent', (userAgent) => {
  expect(agentOf(userAgent)).toBeNull()
})
