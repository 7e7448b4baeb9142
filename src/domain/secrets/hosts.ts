// To which hosts a secret may go, and where secrets may be used at all.

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import { canonicalHostName } from '../../lib/egress/entry.ts'

/** Throws `validation` for a host that is Berth's or a unit's own: no stranger's API is there. */
export function checkHosts({ config }: Pick<App, 'config'>, hosts: readonly string[], path: string): void {
  const own = [config.publicUrl, config.gatewayPublicUrl].flatMap((url) =>
    url === null ? [] : [new URL(url).hostname],
  )
  const domains = [canonicalHostName(config.domain) ?? config.domain, 'internal', 'localhost']
  const issues = hosts.flatMap((host, at) => {
    const isOwn = own.includes(host) || domains.some((name) => host === name || host.endsWith(`.${name}`))
    if (!isOwn) return []
    return [
      {
        path: `${path}.${at}`,
        message: `${host} is a host of this service or of a unit; secrets go to other hosts`,
      },
    ]
  })
  if (issues.length > 0) throw validation(issues)
}

/** Throws `validation` where the engine does not put secrets into requests: a unit would send its placeholder. */
export async function checkBrokers(app: App, path: string): Promise<void> {
  const capabilities = await Promise.all(app.fleet.hosts().map(({ engine }) => engine.capabilities()))
  if (capabilities.every(({ brokersSecrets }) => brokersSecrets === true)) return
  throw validation([
    {
      path,
      message: 'this service does not put secrets into requests; use { "secret": NAME, "value": VALUE }',
    },
  ])
}
