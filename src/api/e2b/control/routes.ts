// The control plane: which call is which operation.

import { notSupported } from '../errors.ts'
import type { ControlRoute } from './call.ts'
import { createSandbox } from './create.ts'
import {
  connect,
  forkSandbox,
  killSandbox,
  pauseSandbox,
  refresh,
  resume,
  setNetwork,
  setTimeout,
} from './life.ts'
import { getSandbox, listSandboxes, readLogs, readMetrics } from './look.ts'
import { createSnapshot, deleteSnapshot, listSnapshots } from './snapshots.ts'

/** Refused with a sentence, so that a client sees what is missing. */
const notYet = (what: string): ControlRoute['serve'] => {
  return async () => {
    throw notSupported(what)
  }
}

export const controlRoutes: readonly ControlRoute[] = [
  { method: 'POST', path: '/sandboxes', serve: createSandbox },
  { method: 'POST', path: '/v2/sandboxes', serve: createSandbox },
  { method: 'GET', path: '/sandboxes', serve: listSandboxes },
  { method: 'GET', path: '/v2/sandboxes', serve: listSandboxes },
  { method: 'GET', path: '/sandboxes/{id}', serve: getSandbox },
  { method: 'DELETE', path: '/sandboxes/{id}', serve: killSandbox },
  { method: 'POST', path: '/sandboxes/{id}/pause', serve: pauseSandbox },
  { method: 'POST', path: '/sandboxes/{id}/resume', serve: resume },
  { method: 'POST', path: '/sandboxes/{id}/connect', serve: connect },
  { method: 'POST', path: '/v2/sandboxes/{id}/connect', serve: connect },
  { method: 'POST', path: '/sandboxes/{id}/timeout', serve: setTimeout },
  { method: 'POST', path: '/sandboxes/{id}/refreshes', serve: refresh },
  { method: 'POST', path: '/sandboxes/{id}/fork', serve: forkSandbox },
  { method: 'PUT', path: '/sandboxes/{id}/network', serve: setNetwork },
  { method: 'GET', path: '/sandboxes/{id}/metrics', serve: readMetrics },
  { method: 'GET', path: '/sandboxes/{id}/logs', serve: readLogs },
  { method: 'GET', path: '/v2/sandboxes/{id}/logs', serve: readLogs },
  { method: 'POST', path: '/sandboxes/{id}/snapshots', serve: createSnapshot },
  { method: 'GET', path: '/snapshots', serve: listSnapshots },
  { method: 'DELETE', path: '/templates/{id}', serve: deleteSnapshot },
  { method: 'GET', path: '/templates', serve: notYet('A list of templates') },
  { method: 'POST', path: '/v3/templates', serve: notYet('A template of your own') },
  { method: 'GET', path: '/volumes', serve: notYet('A volume') },
  { method: 'POST', path: '/volumes', serve: notYet('A volume') },
  { method: 'GET', path: '/secrets', serve: notYet('A secret') },
  { method: 'POST', path: '/secrets', serve: notYet('A secret') },
]

export type FoundControl = { route: ControlRoute; sandboxId: string }

export function findControlRoute(method: string, path: string): FoundControl | null {
  for (const route of controlRoutes) {
    if (route.method !== method) continue
    const [before = '', after] = route.path.split('{id}')
    if (after === undefined) {
      if (path === route.path) return { route, sandboxId: '' }
      continue
    }
    const id =
      path.startsWith(before) && path.endsWith(after)
        ? decoded(path.slice(before.length, path.length - after.length))
        : ''
    if (/^[\w.:/-]{1,200}$/.test(id)) return { route, sandboxId: id }
  }
  return null
}

/** One part of a path; empty if it is more than one, or none. */
function decoded(part: string): string {
  try {
    return part.includes('/') ? '' : decodeURIComponent(part)
  } catch {
    return ''
  }
}
