// The texts and examples of code and its contexts in the OpenAPI document.

import { type OperationDoc, sseExample } from './doc.ts'
import { ids, startedAt } from './values.ts'

const wakes = 'Wakes a sleeping unit, which then costs the price of its size until it sleeps again.'
const noCredits =
  'The unit sleeps and may not wake: the policy, the daily cap or the credits do not allow it. GET /v1/quota shows the numbers.'
const errors = {
  402: noCredits,
  404: 'There is no such unit or context. GET /v1/units/{id}/code/contexts lists those of the unit.',
  409: 'The unit cannot run, is not of the image berth.local/code:1, or the context is lost: restart it.',
  502: 'The interpreter ended while it answered. Send the call again.',
}

const context = {
  id: 'ctx_5b1c0e7a94d2f388',
  unitId: ids.unit,
  language: 'python',
  cwd: '/home/user',
  state: 'idle',
  createdAt: startedAt,
}
const end = {
  context: context.id,
  language: 'python',
  executionCount: 1,
  timedOut: false,
  truncated: false,
}
const value = { data: { 'text/plain': '42' }, main: true }

export const codeDocs: Record<string, OperationDoc> = {
  codeRun: {
    answer:
      'What the code printed, its values, and its error if it failed: a failure of the code is no error of the call.',
    cost: `${wakes} It stays awake while the code runs.`,
    errors,
    request: { code: 'print("hello")\n6 * 7', language: 'python', timeoutMs: 60_000 },
    response: { ...end, stdout: 'hello\n', stderr: '', results: [value], error: null },
    events: sseExample([
      { event: 'begin', data: { context: context.id, language: 'python' } },
      { event: 'stdout', data: { data: 'hello\n' } },
      { event: 'result', data: value },
      { event: 'end', data: end },
    ]),
  },
  codeContextCreate: {
    answer: 'The context, ready to run code.',
    cost: wakes,
    errors: { ...errors, 409: `${errors[409]} A unit has at most 64 contexts.` },
    request: { language: 'python', cwd: '/home/user', env: { MODE: 'fast' } },
    response: context,
  },
  codeContextList: {
    answer: 'The contexts, oldest first. `lost` ones did not survive a start without memory.',
    cost: wakes,
    errors,
    response: { contexts: [context] },
  },
  codeContextRestart: { answer: 'The context, begun anew.', cost: wakes, errors, response: context },
  codeContextInterrupt: {
    answer: 'The context. The run that was interrupted ends with the error `KeyboardInterrupt`.',
    cost: wakes,
    errors,
    response: { ...context, state: 'busy' },
  },
  codeContextDelete: {
    answer: 'The context as it was.',
    cost: wakes,
    errors,
    response: { ...context, state: 'lost' },
  },
}
