// A pod of the DaemonSet joins as a host: the API server says of its token which pod and which node it is of. Only tokens for
// this audience count, which no other program accepts, and only those of the hosts' service account.

import { z } from 'zod'
import { createSemaphore } from '../../lib/concurrency/semaphore.ts'
import type { Log } from '../../lib/log.ts'
import type { Api } from '../../kubernetes/api.ts'
import { hostNameOf } from '../../kubernetes/node.ts'
import type { Admission } from '../join/door.ts'
import { Refusal } from '../join/protocol.ts'

export const AUDIENCE = 'berth-server'
export const HOSTS_ACCOUNT = 'berth-host'

/** The door is open to all pods, and the API server is not asked more than this for them at once. */
const REVIEWS_AT_ONCE = 4

const EXTRA = 'authentication.kubernetes.io/'
const reviewed = z.object({
  status: z.object({
    authenticated: z.boolean().default(false),
    audiences: z.array(z.string()).default([]),
    user: z
      .object({
        username: z.string().default(''),
        extra: z.record(z.string(), z.array(z.string())).default({}),
      })
      .default({ username: '', extra: {} }),
  }),
})

/** @param namespace Of the server and the hosts. */
export function admitPods(api: Api, { namespace, log }: { namespace: string; log: Log }): Admission {
  const atOnce = createSemaphore(REVIEWS_AT_ONCE)
  const user = `system:serviceaccount:${namespace}:${HOSTS_ACCOUNT}`

  const review = async (token: string) => {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [AUDIENCE] },
    }
    const path = '/apis/authentication.k8s.io/v1/tokenreviews'
    try {
      return reviewed.parse(await api.call({ method: 'POST', path, body })).status
    } catch (cause) {
      log.warn({ err: cause }, 'token of a pod could not be reviewed')
      throw new Refusal('the API server of Kubernetes cannot be asked about its token now; it tries again', {
        cause,
      })
    }
  }

  return {
    identify: async (token) => {
      // No other service account costs the API server a review.
      if (subjectOf(token) !== user) throw new Refusal(`its token is not one of the service account ${user}`)
      const status = await atOnce(async () => await review(token))
      if (!status.authenticated || !status.audiences.includes(AUDIENCE))
        throw new Refusal(`its token has ended, or is not for the audience ${AUDIENCE}`)
      if (status.user.username !== user)
        throw new Refusal(`its token is of ${status.user.username}, and hosts are of ${user}`)
      const [name, uid] = ['node-name', 'node-uid'].map((each) => status.user.extra[EXTRA + each]?.[0])
      if (!name || !uid)
        throw new Refusal('its token says of no node that it is for, which takes Kubernetes 1.32')
      return { name: hostNameOf(name), node: { name, uid } }
    },
    // A token is good for as long as its pod is there.
    use: () => () => {},
    joined: () => {},
    refused: () => {},
  }
}

/** As the token itself says, which is not proven by that; null for text that is no token. */
function subjectOf(token: string): string | null {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return z.object({ sub: z.string() }).parse(claims).sub
  } catch {
    return null
  }
}
