// The interpreter of a unit of the fake engine: whatever runs, its value is 2.

import type { Service } from './service.ts'

const context = {
  id: 'ctx_1',
  language: 'python',
  cwd: '/tmp',
  state: 'idle',
  createdAt: '2026-11-28T11:00:00Z',
}

const refusal = { type: 'refused', code: 'not_found', message: 'There is no such context.' }

export function answerCode({ engine }: Service): void {
  engine.onExec(({ argv, stdin }) => {
    if (!argv[0]?.endsWith('/client')) return null
    const { op, context: named = 'ctx_1' } = JSON.parse(String(stdin)) as { op: string; context?: string }
    const events = named.startsWith('ctx_') ? answersTo(op) : [refusal]
    return { exitCode: 0, stdout: events.map((event) => `${JSON.stringify(event)}\n`).join('') }
  })
}

function answersTo(op: string): object[] {
  if (op === 'list') return [{ type: 'end', contexts: [context] }]
  if (op !== 'run') return [{ type: 'end', context }]
  return [
    { type: 'begin', context: context.id, language: context.language },
    { type: 'result', data: { 'text/plain': '2' }, main: true },
    { type: 'end', end: 'done', count: 1, context: context.id },
  ]
}
