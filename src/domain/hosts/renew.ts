// The server carries the requests of hosts for new certificates to the supervisor, and the answers back
// (decisions/joining.md). It decides nothing about them. The database keeps when the certificates end, for the operator.

import type { App } from '../../app.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { noteRefusedRenewal, saveCertificatesEnd } from '../../store/host-certificates.ts'
import { onEachHost } from './each-host.ts'

/** One run of the background job. */
export async function renewCertificates(app: App): Promise<void> {
  await onEachHost(app, 'renew certificates', async (host) => {
    if (host.address === null || host.isLost) return
    // A host that cannot do this now works as before, and its certificates are good for months.
    await renewOf(app, host).catch((error: unknown) => {
      app.log.warn(
        { err: error, host: host.name },
        'certificates of a host not looked after; will be retried',
      )
    })
  })
}

async function renewOf(app: App, host: FleetHost): Promise<void> {
  const asked = await host.engine.renew(null)
  await note(app, host, asked?.endsAt ?? null)
  if (!asked?.request || !app.signRenewal) return
  const outcome = await app.signRenewal({ host: host.name, request: asked.request })
  const told = await host.engine.renew(outcome)
  const at = app.clock.now()
  if (!('refused' in outcome)) return await note(app, host, told?.endsAt ?? null, { renewedAt: at })
  app.log.warn({ host: host.name, why: outcome.refused }, 'certificates of a host not renewed')
  await noteRefusedRenewal(app.db, { id: host.id, at, reason: outcome.refused })
}

async function note(
  app: App,
  host: FleetHost,
  endsAt: Date | null,
  { renewedAt = null }: { renewedAt?: Date | null } = {},
): Promise<void> {
  if (endsAt?.getTime() === host.certificatesEnd?.getTime()) return
  await saveCertificatesEnd(app.db, { id: host.id, endsAt, renewedAt })
  host.certificatesEnd = endsAt
}
