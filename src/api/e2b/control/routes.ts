// The control plane: which call is which operation.

import { notSupported } from '../errors.ts'
import { findAlias, readBuild, requestBuild, startBuild } from './builds.ts'
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
import { getSandbox, listSandboxes, readLogs } from './look.ts'
import { readManyMetrics, readMetrics } from './metrics.ts'
import { createSecret, deleteSecret, getSecret, listSecrets, updateSecret } from './secrets.ts'
import { createSnapshot, deleteSnapshot, listSnapshots } from './snapshots.ts'
import { assignTags, listTags, removeTags } from './tags.ts'
import { linkFiles } from './template-files.ts'
import { createVolume, deleteVolume, getVolume, listVolumes } from './volumes.ts'

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
  { method: 'GET', path: '/sandboxes/metrics', serve: readManyMetrics },
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
  { method: 'GET', path: '/templates', serve: notYet('A list of templates') },
  { method: 'POST', path: '/v3/templates', serve: requestBuild },
  { method: 'POST', path: '/v2/templates/{id}/builds/{build}', serve: startBuild },
  { method: 'GET', path: '/templates/{id}/builds/{build}/status', serve: readBuild },
  { method: 'GET', path: '/templates/aliases/{id}', serve: findAlias },
  { method: 'GET', path: '/templates/{id}/files/{build}', serve: linkFiles },
  { method: 'POST', path: '/templates/tags', serve: assignTags },
  { method: 'DELETE', path: '/templates/tags', serve: removeTags },
  { method: 'GET', path: '/templates/{id}/tags', serve: listTags },
  { method: 'DELETE', path: '/templates/{id}', serve: deleteSnapshot },
  { method: 'GET', path: '/teams', serve: notYet('A list of teams') },
  { method: 'GET', path: '/volumes', serve: listVolumes },
  { method: 'POST', path: '/volumes', serve: createVolume },
  { method: 'GET', path: '/volumes/{id}', serve: getVolume },
  { method: 'DELETE', path: '/volumes/{id}', serve: deleteVolume },
  { method: 'GET', path: '/secrets', serve: listSecrets },
  { method: 'POST', path: '/secrets', serve: createSecret },
  { method: 'GET', path: '/secrets/{id}', serve: getSecret },
  { method: 'POST', path: '/secrets/{id}', serve: updateSecret },
  { method: 'DELETE', path: '/secrets/{id}', serve: deleteSecret },
]

export type FoundControl = { route: ControlRoute; id: string; buildId: string }

const patterns = controlRoutes.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`),
}))

export function findControlRoute(method: string, path: string): FoundControl | null {
  for (const { route, pattern } of patterns) {
    if (route.method !== method) continue
    const parts = pattern.exec(path)
    if (parts === null) continue
    const { id = null, build = null } = parts.groups ?? {}
    const [named, builds] = [decoded(id), decoded(build)]
    if (named !== null && builds !== null) return { route, id: named, buildId: builds }
  }
  return null
}

/** Null for what names nothing; empty where there is no such part. */
function decoded(part: string | null): string | null {
  if (part === null) return ''
  try {
    const text = decodeURIComponent(part)
    return /^[\w.:/-]{1,200}$/.test(text) ? text : null
  } catch {
    return null
  }
}
