// What the recipes for programs share: the caller's files below /app, in an image that installs their dependencies
// and starts them (engine/oci/images/builtin).

import { env, files, size } from '../params.ts'
import { listensAt } from './listens-at.ts'

export const APP_PORT = 8080

export function appParams(description: string, example: Record<string, string>) {
  return {
    files: files('/app', { description, example }),
    env: env({ taken: ['PORT'] }),
    size: size('small'),
  }
}

/** It may have to install many packages before it listens. */
const INSTALLS_WITHIN_MS = 300_000

export const appUnit = {
  cmd: ['app'],
  ports: [APP_PORT],
  healthcheck: { cmd: listensAt(APP_PORT), timeoutMs: INSTALLS_WITHIN_MS },
}

/** The port that the healthcheck and the default port use. */
export const appEnv = { PORT: String(APP_PORT) }
