// Environments of hosted agents.

import type { OperationDoc } from './doc.ts'
import { free } from './units.ts'
import { ids, policy, startedAt, unit } from './values.ts'

const notAllowed =
  'Your role in the team does not allow it, or a key was sent where a person has to be signed in.'

const environment = {
  id: 'hosted_0192f0c0a1b27c3d8e4f5a6b7c8d9e0f',
  vendor: 'claude',
  environment: 'env_01AbC',
  on: true,
  state: 'waiting',
  note: null,
  notedAt: null,
  key: { id: ids.key, name: 'claude env_01AbC' },
  image: 'berth.local/agent:1',
  size: 'small',
  egress: { mode: 'none', siblings: 'none' },
  sleep: '1m',
  timeToLive: '24h',
  copyOf: null,
  atOnce: 8,
  working: 1,
  createdAt: startedAt,
}

const session = {
  id: 'sesn_01XyZ',
  state: 'working',
  note: null,
  turns: 2,
  unit: { id: unit.id, name: 'claude-5b1c0e7a94d2f388', state: 'running' },
  costCents: 0.0042,
  beganAt: startedAt,
  changedAt: startedAt,
}

export const hostedAgentDocs: Record<string, OperationDoc> = {
  unitCalls: {
    answer: 'They are in the audit log, as one call of `unit.calls` about the unit.',
    cost: free,
    errors: { 404: 'There is no such unit in your team.' },
    request: {
      calls: [
        { method: 'process/start', cmd: ['/bin/bash', '-lc', 'npm test'], session: '01a22a22-fc67-7a40' },
        { method: 'fs/readFile', path: '/workspace/package.json', count: 2 },
      ],
    },
    response: { ok: true },
  },
  hostedList: {
    answer: 'Every environment with its state and last error; never a credential.',
    response: { environments: [environment] },
  },
  hostedCreate: {
    answer: 'The environment, on. Its state tells within seconds whether the vendor takes the credential.',
    cost: 'Nothing by itself; units of sessions cost what units cost.',
    errors: {
      402: 'The plan has no seat for another key, or the team has as many environments as it may.',
      403: notAllowed,
      409: 'The team has this environment already.',
    },
    request: { environment: 'env_01AbC', environmentKey: 'sk-ant-oat01-4f9a', policy },
    response: { environment },
  },
  hostedGet: {
    answer: 'The environment, and its sessions with their turns, units and costs.',
    response: { environment, sessions: [session] },
  },
  hostedChange: {
    answer: 'The environment as it is now. Work that was under way is begun again in the same units.',
    cost: free,
    errors: { 403: notAllowed },
    request: { on: false },
    response: { environment: { ...environment, on: false, state: 'off', working: 0 } },
  },
  hostedDelete: {
    answer: 'The environment and its key are gone. `destroyed` are the units of its sessions.',
    errors: { 403: notAllowed },
    response: { ok: true, destroyed: [ids.unit] },
  },
}
